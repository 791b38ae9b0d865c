"""The book's sources as pages: each file that a page links to, and each file of a folder that a page links to, with its
lines numbered and highlighted. A line that a page links to has the anchor #L23, as on a code host. The numbers are one
text for all pages, of which a page shows as many as it has lines.

These pages are plain: no navigation, and six colours, for there are many of them.
"""
import html
import pathlib
import re

from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.lexers.diff import DiffLexer
from pygments.lexers.shell import BashLexer
from pygments.token import Token
from pygments.util import ClassNotFound

MOST = 400_000  # bytes of a file that is shown
COLOURS = [(Token.Comment.Preproc, "p"), (Token.Comment, "c"), (Token.Literal.String, "s"), (Token.Keyword, "k"),
           (Token.Generic.Inserted, "i"), (Token.Generic.Deleted, "d")]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title} - Tensor to Token</title><link rel="stylesheet" href="{root}_static/source.css">
<script src="{root}_static/source.js"></script></head>
<body><header><nav aria-label="Where this file is"><a href="{root}index.html">Tensor to Token</a> / {path}</nav>{pages}</header>
<main>
{main}
</main></body></html>
"""


def lexer_of(path, text):
    if path.suffix == ".patch":
        return DiffLexer(stripnl=False)
    if text.startswith("#!") and "bash" in text[:30]:
        return BashLexer(stripnl=False)
    try:
        return get_lexer_for_filename(path.name, stripnl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False)


def spans(text, lexer):
    """The text as HTML: neighbours of one colour share a span, and no span crosses the end of a line."""
    at, colour, made = [], "", []

    def flush():
        shown = "".join(at).replace("&", "&amp;").replace("<", "&lt;")  # a ">" stands for itself
        for i, line in enumerate(re.split("(\n)", shown)):
            made.append(f"<b class={colour}>{line}</b>" if colour and line.strip() else line)
        at.clear()

    for token, value in lexer.get_tokens(text):
        found = next((letter for kind, letter in COLOURS if token in kind), "")
        if found != colour and value.strip():
            flush()
            colour = found
        at.append(value)
    flush()
    return "".join(made)


def numbered(text, lexer, anchors=frozenset()):
    lines = spans(text, lexer).rstrip("\n").split("\n")
    if isinstance(lexer, DiffLexer):  # the lines of a patch have their numbers in it
        return "<pre tabindex=0>" + "\n".join(lines) + "\n</pre>"
    shown = (f"<i id=L{i}>{line}</i>" if f"#L{i}" in anchors else line for i, line in enumerate(lines, 1))
    return "<pre class=code tabindex=0>" + "\n".join(shown) + "\n</pre>"


def breadcrumbs(inside, is_folder):
    """Each folder above a file, as links to its list of files."""
    parts = inside.parts
    up = ["../" * (len(parts) - 1 - i + is_folder) for i in range(1, len(parts))]
    links = [f'<a href="{there}index.html">{part}</a>' for there, part in zip(up, parts)]
    return " / ".join(links + [f"<strong>{parts[-1]}</strong>"])


def first_sentence(text):
    """What a file says of itself in its first comment."""
    words = re.match(r"(?:#!.*\n)?((?:(?://|#|\"\"\") ?[^\n]*\n)+)", text)
    said = re.sub(r"^(//|#|\"\"\") ?", "", words[1], flags=re.M) if words else ""
    sentence = re.match(r"[A-Z].*?[.:](?=\s|$)", " ".join(said.split()))
    return sentence[0] if sentence and "pragma" not in sentence[0] else ""


def is_current(page, newest, anchors):
    """Whether a page is newer than what it shows, and has these anchors."""
    return page.exists() and page.stat().st_mtime > newest and all(f" id={one[1:]}>" in page.read_text() for one in anchors)


class Sources:
    """Writes the pages of what `linked` names: {path: the anchors of its lines that a page links to}."""

    def __init__(self, home, into, linked):
        self.home, self.into, self.linked, self.written = home, into, linked, set()

    def write(self, inside, name, title, main):
        page = self.into / "source" / name
        root = "../" * (len(page.relative_to(self.into).parts) - 1)
        chapter = re.match(r"(?:chapters|tests/wrong)/(\d\d_\w+)|tests/(\d\d_\w+?)(?:_kernels)?_test", str(inside))
        about = next((g for g in chapter.groups() if g), "") if chapter else ""
        pages = f'<a href="{root}{about}.html">the chapter\'s page</a>' if (self.home / f"docs/{about}.md").exists() else ""
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(PAGE.format(title=html.escape(title), root=root, path=breadcrumbs(inside, page.name == "index.html"), pages=pages, main=main))
        self.written.add(page)

    def file(self, path):
        inside, page = path.relative_to(self.home), self.into / "source" / (str(path.relative_to(self.home)) + ".html")
        if page in self.written:
            return
        anchors = self.linked.get(path, set())
        if is_current(page, max(path.stat().st_mtime, pathlib.Path(__file__).stat().st_mtime), anchors):
            self.written.add(page)
            return
        data = path.read_bytes()
        shown = len(data) <= MOST and b"\0" not in data
        main = numbered(text := data.decode(), lexer_of(path, text), anchors) if shown else f"<p>{len(data):,} bytes, which are not shown here.</p>"
        self.write(inside, f"{inside}.html", str(inside), main)

    def patches(self, path):
        """All wrong versions of a chapter on one page."""
        texts = {one.stem: one.read_text() for one in sorted(path.glob("*.patch"))}
        return "".join(f"<h2 id={name}>{name.replace('_', ' ')}</h2>{numbered(text, DiffLexer(stripnl=False))}" for name, text in texts.items())

    def folder(self, path):
        inside, rows = path.relative_to(self.home), []
        if self.into / f"source/{inside}/index.html" in self.written:
            return
        if patches := self.patches(path):
            self.write(inside, f"{inside}/index.html", f"{inside}/", patches)
            return
        for one in sorted(path.iterdir(), key=lambda p: (p.is_dir(), p.name)):
            if one.is_dir() and one.name != "__pycache__":
                self.folder(one)
                rows.append(f'<tr><td><a href="{one.name}/index.html">{one.name}/</a><td>')
            elif one.is_file():
                self.file(one)
                said = first_sentence(one.read_text(errors="replace")[:3000])
                rows.append(f'<tr><td><a href="{one.name}.html">{one.name}</a><td>{html.escape(said)}')
        self.write(inside, f"{inside}/index.html", f"{inside}/", "<table>" + "\n".join(rows) + "</table>")

    def above(self, path):
        """The list of a folder above what is shown: only what is shown of it."""
        page = self.into / "source" / path / "index.html"
        if page in self.written:
            return
        inside = sorted({p.relative_to(page.parent).parts[0] for p in self.written if p.is_relative_to(page.parent)})
        rows = [f'<tr><td><a href="{name}{"" if name.endswith(".html") else "/index.html"}">{name.removesuffix(".html")}</a>' for name in inside]
        self.write(path, f"{path}/index.html", f"{path}/", "<table>" + "\n".join(rows) + "</table>")

    def write_numbers(self):
        pages = (page.read_text().count("\n") for page in self.written)
        numbers = r"\a ".join(str(i) for i in range(1, max(pages) + 1))
        (self.into / "_static/numbers.css").write_text(f'.code::before {{ content: "{numbers}"; }}\n')

    def all(self):
        for path in sorted(self.linked):
            self.folder(path) if path.is_dir() else self.file(path)
        parents = {p for page in list(self.written) for p in page.relative_to(self.into / "source").parents}
        for path in sorted(parents, key=lambda p: -len(p.parts)):
            if path.parts:
                self.above(path)
        for old in (self.into / "source").rglob("*.html"):
            if old not in self.written:
                old.unlink()
        self.write_numbers()
        return len(self.written)
