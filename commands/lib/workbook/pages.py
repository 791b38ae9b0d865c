"""Where the pages say something: the section that quotes a function, or that names a mistake."""
import functools
import re

from house import ROOT


def pages_of(chapter):
    """The chapter's page, then the others: some parts are explained on a page of their own."""
    own = ROOT / "docs" / f"{chapter}.md"
    return [own, *sorted(p for p in (ROOT / "docs").glob("*.md") if p != own and p.name != "mistakes.md")]


@functools.cache
def lines_of(page):
    return page.read_text().splitlines()


def section_of_mistake(chapter, name):
    for page in pages_of(chapter):
        found = _section(page, rf"tests/wrong/{chapter}/{name}\.patch")
        if found:
            return f'docs/{page.name}, line {found[1]}: "{found[0]}"'
    return "docs/mistakes.md"


def section_of_function(chapter, part, name):
    """(page, heading, line of the listing) where the function is quoted, or None."""
    short = re.escape(name.split("::")[-1])
    for page in pages_of(chapter):
        lines = lines_of(page)
        for i, line in enumerate(lines):
            if line.startswith("[`") and re.search(rf"\]\(\.\./chapters/{chapter}/(?:\w+/)?{part}\.", line):
                end = next((j for j in range(i + 3, len(lines)) if lines[j] == "```"), len(lines))
                if any(re.match(rf"(\w[\w:<>,&* ]* )?{short}\(|\s.*\b{short}\(.*\{{", one) for one in lines[i:end]):
                    return page, _heading(lines, i), i
    return None


def prose_before(page, line):
    """What the page says between the heading, or the listing before, and this line: a line for each paragraph."""
    lines, said = lines_of(page), []
    for one in reversed(lines[:line]):
        if one.startswith(("#", "```")):
            break
        if not one.startswith(("[[[", "<!--", "-->")) and "]]]" not in one and "[[[" not in one:
            said.insert(0, one)
    paragraphs = re.split(r"\n\s*\n", "\n".join(said).strip())
    return "\n".join(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(one.split())) for one in paragraphs)


def _section(page, pattern):
    lines = lines_of(page)
    for i, line in enumerate(lines):
        if re.search(pattern, line):
            return _heading(lines, i), i + 1
    return None


def _heading(lines, i):
    return next((lines[j].lstrip("# ") for j in range(i, -1, -1) if lines[j].startswith("#")), "")
