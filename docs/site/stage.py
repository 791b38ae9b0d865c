"""Turns docs/*.md and the README into the pages that Sphinx reads. It changes no sentence: it gives links to sources a
place in the site, drops the markers of what is woven, adds the chapter's checks to a page's line of links, and writes
the table of contents from weaving/way.txt.

Another language has a folder of docs/ with the name that Sphinx has for it, such as docs/zh_CN. It holds its first page,
index.md, and as many translated pages as there are, each under the name of the page that it translates.

stage(edition, into, seen) writes the pages of one language, and adds to `seen` the files and folders of the book to which
they link, each with the anchors of its lines.
"""
import functools
import pathlib
import re
import sys
import unicodedata

HOME = pathlib.Path(__file__).resolve().parents[2]
DOCS = HOME / "docs"
sys.path.insert(0, str(HOME / "docs/weaving"))
import way  # noqa: E402

FIRST = "en"
LOOK_UP = ["README", "at_a_glance", "glossary", "mistakes", "claims", "coming_from", "on_paper", "workbook", "replay", "CONTRIBUTING"]
LISTING = re.compile(r"(^ *```.*?^ *```[^\n]*\n)", re.S | re.M)
LINK = re.compile(r"\]\(([^()\s:#]+)(#[^()\s]*)?\)")
HTML_LINK = re.compile(r'(<a href=")([^":#]+)(#[^"]*)?"')
PIECE = re.compile(r"^<!-- piece: ([a-z_]+) -->$", re.M)


def slug(heading):
    """A heading's anchor, as a code host makes it (weaving/links.py): of numbers, it keeps the decimal digits alone."""
    kept = (c for c in heading.lower() if c in "-_ " or unicodedata.category(c)[0] in "LM" or unicodedata.category(c) == "Nd")
    return "".join(kept).replace(" ", "-")


class Edition:
    """The pages in one language: {name in the site: file}. English lies at the top of the site, and another language in a
    folder of it, which leads `up` to the top."""

    def __init__(self, language):
        self.language, self.is_first = language, language == FIRST
        self.folder, self.up = ("", "") if self.is_first else (f"{language}/", "../")
        self.docs = DOCS if self.is_first else DOCS / language
        self.pages = {page.stem: page for page in sorted(self.docs.glob("*.md"))}
        if self.is_first:
            self.pages |= {"index": HOME / "README.md", "replay": DOCS / "site/replay.md"}

    def name_of(self, path):
        return next((name for name, page in self.pages.items() if page == path), None)


@functools.cache
def editions():
    return [Edition(FIRST), *(Edition(page.parent.name) for page in sorted(DOCS.glob("*/index.md")))]


class Links:
    """Where the links of an edition's page lead in the site. `seen` collects the files and folders of the book that they
    name, and the anchors of lines in them."""

    def __init__(self, edition, folder, seen):
        self.edition, self.folder, self.seen = edition, folder, seen

    def see(self, path, anchor=""):
        self.seen.setdefault(path, set()).update([anchor] if anchor else [])

    def place(self, path, anchor=""):
        """(kind, page of the site) of a path as a page writes it, or None if it is no such link. The kind is "" for a page or
        figure that Sphinx makes in this edition, "page" for one of another edition, and "source" for a page of sources.
        Wrong versions are on the page of their folder."""
        target = (self.folder / path).resolve()
        if not target.exists() or not target.is_relative_to(HOME):
            return None
        for edition in editions():
            if name := edition.name_of(target):
                here = edition.language == self.edition.language
                return ("", f"{name}.md") if here else ("page", f"{self.edition.up}{edition.folder}{name}.html")
        if target.suffix == ".svg" and target.parent == DOCS:
            return "", target.name
        if target.suffix == ".patch":
            self.see(target.parent)
            return "source", f"{target.parent.relative_to(HOME)}/index.html#{target.stem}"
        self.see(target, anchor)
        return "source", str(target.relative_to(HOME)) + ("/index.html" if target.is_dir() else ".html")

    def markdown(self, match):
        path, anchor = match[1], match[2] or ""
        kind, page = self.place(path, anchor) or ("", path)
        if kind and "#" in page + anchor:
            kind += "-line"
        return f"]({kind}{':' if kind else ''}{page}{anchor})"  # conf.py: myst_url_schemes

    def html(self, match):
        path, anchor = match[2], match[3] or ""
        kind, page = self.place(path, anchor) or ("", path)
        if kind == "source":
            page = f"{self.edition.up}source/{page}"
        return f'{match[1]}{re.sub(r"[.]md$", ".html", page)}{anchor}"'


def with_checks(text, name, links):
    """Adds the chapter's checks to the line "Read beside …" at the head of an English page."""
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


def contents(edition):
    """{page: what is written at its end}: each page of the route of ideas holds the pages that go deeper."""
    groups = []
    for name, of_ideas in way.pages():
        if name in edition.pages:
            if of_ideas or not groups:
                groups.append([name])
            else:
                groups[-1].append(name)
    ends = {idea: toctree(deeper) for idea, *deeper in groups if deeper}
    captions = ("The route of ideas", "Look up") if edition.is_first else ("", "")
    lists = [[idea for idea, *_ in groups], [name for name in LOOK_UP if name in edition.pages]]
    ends["index"] = "".join(map(toctree, lists, captions))
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


def stage(edition, into, seen):
    into.mkdir(parents=True, exist_ok=True)
    ends, kept = contents(edition), set()
    for name, path in edition.pages.items():
        folder = DOCS if name == "replay" and edition.is_first else path.parent
        text = staged(path, name, Links(edition, folder, seen))
        text = begin(text) if name == "index" and edition.is_first else text
        write_if_new(into / f"{name}.md", text + ends.get(name, ""))
        kept.add(f"{name}.md")
    for figure in DOCS.glob("*.svg"):
        write_if_new(into / figure.name, figure.read_text())
        kept.add(figure.name)
    for old in into.iterdir():
        if old.name not in kept:
            old.unlink()
