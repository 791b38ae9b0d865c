"""Turns docs/*.md and the README into the pages that Sphinx reads. It changes no sentence: it gives links to sources a
place in the site, drops the markers of what is woven, adds the chapter's checks to a page's line of links, and writes
the table of contents from weaving/way.txt.

stage(into) writes the pages, and returns the files and folders of the book to which they link, each with the anchors of its lines.
"""
import pathlib
import re
import sys
import unicodedata

HOME = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "docs/weaving"))
import way  # noqa: E402

LOOK_UP = ["README", "at_a_glance", "glossary", "mistakes", "claims", "coming_from", "on_paper", "workbook", "replay", "CONTRIBUTING"]
LISTING = re.compile(r"(^ *```.*?^ *```[^\n]*\n)", re.S | re.M)
LINK = re.compile(r"\]\(([^()\s:#]+)(#[^()\s]*)?\)")
HTML_LINK = re.compile(r'(<a href=")([^":#]+)(#[^"]*)?"')
PIECE = re.compile(r"^<!-- piece: ([a-z_]+) -->$", re.M)


def slug(heading):
    """A heading's anchor, as a code host makes it (weaving/links.py): of numbers, it keeps the decimal digits alone."""
    kept = (c for c in heading.lower() if c in "-_ " or unicodedata.category(c)[0] in "LM" or unicodedata.category(c) == "Nd")
    return "".join(kept).replace(" ", "-")


class Links:
    """Where a page's links lead in the site. `seen` collects the files and folders of the book that they name, and the
    anchors of lines in them."""

    def __init__(self, folder, seen):
        self.folder, self.seen = folder, seen

    def see(self, path, anchor=""):
        self.seen.setdefault(path, set()).update([anchor] if anchor else [])

    def place(self, path, anchor=""):
        """(the page of the site, whether it is one of Sphinx's): of a path as a page writes it, or None if it is no such link.
        Wrong versions are on the page of their folder."""
        target = (self.folder / path).resolve()
        if not target.exists() or not target.is_relative_to(HOME):
            return None
        if target == HOME / "README.md":
            return "index.md", True
        if target.suffix in (".md", ".svg") and target.parent == HOME / "docs":
            return target.name, True
        if target.suffix == ".patch":
            self.see(target.parent)
            return f"{target.parent.relative_to(HOME)}/index.html#{target.stem}", False
        self.see(target, anchor)
        inside = str(target.relative_to(HOME))
        return inside + ("/index.html" if target.is_dir() else ".html"), False

    def markdown(self, match):
        path, anchor = match[1], match[2] or ""
        page, ours = self.place(path, anchor) or (path, True)
        if ours:
            return f"]({page}{anchor})"
        return f"]({'line' if '#' in page + anchor else 'source'}:{page}{anchor})"  # conf.py: myst_url_schemes

    def html(self, match):
        path, anchor = match[2], match[3] or ""
        page, ours = self.place(path, anchor) or (path, True)
        return f'{match[1]}{page.removesuffix(".md") + ".html" if ours else "source/" + page}{anchor}"'


def with_checks(text, name, links):
    """Adds the chapter's checks to the line "Read beside …" at the head of a page."""
    found = sorted((HOME / "tests").glob(f"{name[:2]}_*_test.cpp")) if name[:2].isdigit() else []
    main = [one for one in found if "kernels" not in one.name]
    if not main:
        return text
    links.see(main[0])
    line = f" · its checks: [`tests/{main[0].name}`](source:tests/{main[0].name}.html)"
    return re.sub(r"^(Read beside (?:.+\n)+)", lambda m: "{.beside}\n" + m[1].rstrip("\n") + line + "\n", text, count=1, flags=re.M)


def toctree(names, caption=""):
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{head}\n" + "\n".join(names) + "\n```\n"


def contents():
    """{page: what is written at its end}: each page of the route of ideas holds the pages that go deeper."""
    groups = []
    for name, of_ideas in way.pages():
        if of_ideas:
            groups.append([name])
        else:
            groups[-1].append(name)
    ends = {idea: toctree(deeper) for idea, *deeper in groups if deeper}
    ends["index"] = toctree([idea for idea, *_ in groups], "The route of ideas") + toctree(LOOK_UP, "Look up")
    return ends


def begin(text):
    """The README's first paragraph, then where to begin, then what a run shows, which stands further down in the README."""
    title, first, rest = text.split("\n\n", 2)
    buttons = ('<p class="begin"><a href="01_embedding.html">Begin with 01 Embedding</a> <a href="README.html">How to read</a>'
               f"<span>The first page takes about {way.minutes(['01_embedding'])} minutes.</span></p>")
    shown = re.search(r"^This is part of what `.*?^```text\n.*?^```\n\n", rest, re.S | re.M)
    return "\n\n".join([title, first, buttons, shown[0].strip(), rest.replace(shown[0], "")])


def staged(path, name, links):
    text = path.read_text()
    pieces = LISTING.split(re.sub(r"^<!-- \[\[\[(cog .*?|end)\]\]\] -->\n\n?", "", text, flags=re.M))
    for i in range(0, len(pieces), 2):  # the odd ones are listings
        prose = HTML_LINK.sub(links.html, LINK.sub(links.markdown, pieces[i]))
        pieces[i] = PIECE.sub(r'<div class="piece" data-piece="\1"></div>', prose)
    return with_checks("".join(pieces), name, links)


def write_if_new(path, text):
    """An unchanged page keeps its time, by which Sphinx knows that it need not be read again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def stage(into):
    into.mkdir(parents=True, exist_ok=True)
    ends, seen, kept = contents(), {}, set()
    sources = {page.stem: page for page in sorted((HOME / "docs").glob("*.md"))} | {"index": HOME / "README.md", "replay": HOME / "docs/site/replay.md"}
    for name, path in sources.items():
        links = Links(HOME if name == "index" else HOME / "docs", seen)
        text = staged(path, name, links)
        text = begin(text) if name == "index" else text
        write_if_new(into / f"{name}.md", text + ends.get(name, ""))
        kept.add(f"{name}.md")
    for figure in (HOME / "docs").glob("*.svg"):
        write_if_new(into / figure.name, figure.read_text())
        kept.add(figure.name)
    for old in into.iterdir():
        if old.name not in kept:
            old.unlink()
    return seen
