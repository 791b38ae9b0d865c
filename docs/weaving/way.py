"""The way through the pages: way.txt names them in order. A page that is not indented is on the route of
ideas; those below it go deeper into the same.

python3 docs/weaving/way.py        how long each page is, in words
python3 docs/weaving/way.py check  fails if a page is too long for one sitting, not on the way, or has no line that names its neighbours
"""
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parents[1]
LOOK_UP = {"CONTRIBUTING", "README", "at_a_glance", "claims", "coming_from", "glossary", "mistakes", "on_paper", "workbook"}
MOST, MOST_PROSE = 4000, 1900  # words of a page that is read in one sitting
A_MINUTE, OTHER_A_MINUTE = 180, 90  # words of prose, and of listings, outputs and tables


def pages():
    """[(name, whether it is on the route of ideas), …] in order."""
    lines = (pathlib.Path(__file__).with_name("way.txt")).read_text().splitlines()
    return [(line.strip(), not line.startswith(" ")) for line in lines if line.strip()]


def title(name):
    return re.match(r"# (.*)", (DOCS / f"{name}.md").read_text()).group(1)


def words(name):
    """(all told, of prose): without listings, outputs, tables, headings and what weaves them. The line of neighbours does
    not count, nor does what a figure says to who cannot see it."""
    page = re.sub(r"<!-- \[\[\[cog way\(\).*|^!\[.*?$", "", (DOCS / f"{name}.md").read_text(), flags=re.S | re.M)
    text = re.sub(r"^```.*?^```", "", page, flags=re.S | re.M)
    lines = [line for line in text.splitlines() if not re.match(r"\||#|<!-- |\[`[^`]+`\]\(\.\./", line)]
    return len(page.split()), len(re.sub(r"</?[a-z][^<>]*>", "", "\n".join(lines)).split())


def minutes(names):
    """An estimate, to five minutes."""
    told, prose = map(sum, zip(*map(words, names)))
    return 5 * round((prose / A_MINUTE + (told - prose) / OTHER_A_MINUTE) / 5)


def neighbours(name):
    """The line at the end of a page: what comes before and after it, on both routes."""
    everything, ideas = [page for page, _ in pages()], [page for page, of_ideas in pages() if of_ideas]
    if name in ideas:
        on_paper = "" if not name[0].isdigit() else f" Problems on paper: [{name[:2]}](on_paper.md#{title(name).lower().replace(' ', '-')})."
        return f"The route of ideas: {_around(ideas, name)}. The route in depth: {_around(everything, name)}.{on_paper}\n"
    idea = [page for page in everything[:everything.index(name)] if page in ideas][-1]
    return f"The idea: {_link(idea)}. The route in depth: {_around(everything, name)}.\n"


def _around(route, name):
    i = route.index(name)
    before, after = (f"← {_link(route[i - 1])}" if i > 0 else ""), (f"{_link(route[i + 1])} →" if i + 1 < len(route) else "")
    return " · ".join(filter(None, [before, after]))


def _link(name):
    return f"[{title(name)}]({name}.md)"


def routes():
    """A table: each page of the route of ideas with what goes deeper, and minutes."""
    rows = ["| the idea | minutes | in depth | minutes |", "| --- | ---: | --- | ---: |"]
    groups = []
    for name, of_ideas in pages():
        if of_ideas:
            groups.append([name])
        else:
            groups[-1].append(name)
    for idea, *deeper in groups:
        rows.append(f"| {_link(idea)} | {minutes([idea])} | {', '.join(map(_link, deeper))} | {minutes(deeper) if deeper else ''} |")
    hours = [sum(minutes([g[0]]) for g in groups) / 60, sum(minutes(g[1:]) for g in groups if g[1:]) / 60]
    rows.append(f"| together | {hours[0]:.0f} hours | | {hours[1]:.0f} hours |")
    return "\n".join(rows) + "\n"


def faults():
    on_the_way = [name for name, _ in pages()]
    for page in sorted(DOCS.glob("*.md")):
        if page.stem not in LOOK_UP | set(on_the_way):
            yield f"{page.name} is not on the way (docs/weaving/way.txt), and no page to look things up in"
    for name in on_the_way:
        if not (DOCS / f"{name}.md").exists():
            yield f"docs/weaving/way.txt names {name}, and there is no such page"
            continue
        told, prose = words(name)
        if told > MOST or prose > MOST_PROSE:
            yield f"{name}.md has {told:,} words, {prose:,} of them prose; a page of one sitting has at most {MOST:,} and {MOST_PROSE:,}"
        if "[[[cog way() ]]]" not in (DOCS / f"{name}.md").read_text():
            yield f"{name}.md does not end with the marker way(), which names its neighbours"


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        found = list(faults())
        print("\n".join(found), end="\n" if found else "")
        sys.exit(bool(found))
    for page in sorted(DOCS.glob("*.md")):
        print("{:7,} words, {:6,} of prose  ".format(*words(page.stem)) + page.name)
