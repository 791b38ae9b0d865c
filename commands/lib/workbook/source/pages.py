"""Where the pages say something: the section that quotes a function, or that names a mistake."""
import functools
import itertools
import re

from workbook.book import ROOT, ours
from workbook.source import cpp


def pages_of(chapter: str):
    """The chapter's page, its other pages, then those of other chapters: some parts are explained
    on a page of their own."""
    own, others = ROOT / "docs" / f"{chapter}.md", (ROOT / "docs").glob("*.md")
    return [own, *sorted((page for page in others if page not in (own, ROOT / "docs/mistakes.md")),
                         key=lambda page: (not _is_of(page, chapter), page))]


def _is_of(page, chapter: str):
    return page.name.startswith(chapter[:3])


@functools.cache
def lines_of(page):
    return page.read_text().splitlines()


def section_of_mistake(chapter: str, name):
    for page in pages_of(chapter):
        lines = lines_of(page)
        for i, line in enumerate(lines):
            if f"tests/wrong/{chapter}/{name}.patch" in line:
                return f'docs/{page.name}, line {i + 1}: "{_heading(lines, i)}"'
    return "docs/mistakes.md"


def section_of_function(chapter: str, part: str, name):
    """(page, heading, line of the listing) where the function is quoted, or what it calls in its
    file, or else another function of the file; None if none is."""
    listings = list(_listings(chapter, part))
    own = {f.name: f for f in cpp.definitions(ours(chapter, part).read_text())}
    body = own[name].body if name in own else ""  # a constant that holds a function is none
    for wanted in [name, *(called for called in cpp.calls(body) if called in own)]:
        for page, i, listing in listings:
            if any(_begins(wanted.split("::")[-1], line) for line in listing):
                return page, _heading(lines_of(page), i), i
    return next(((page, _heading(lines_of(page), i), i) for page, i, _ in listings), None)


def _listings(chapter: str, part: str):
    """(page, line, lines) of each listing of the part's file."""
    link = rf"\[`.*\]\(\.\./chapters/{chapter}/(?:\w+/)*{part}\.(cpp|cu)\b"
    for page in pages_of(chapter):
        lines = lines_of(page)
        for i, line in enumerate(lines):
            if re.match(link, line):
                end = lines.index("```", i + 3) if "```" in lines[i + 3:] else len(lines)
                yield page, i, lines[i:end]


def _begins(name, line) -> bool:
    """Whether the function's definition begins on this line, or ends its head there."""
    name = re.escape(name)
    return bool(re.match(rf"(\w[\w:<>,&* ]* )?(\w+::)*{name}\(|\s.*\b{name}\(.*\{{|"
                         rf".*\bauto {name} = \[", line))


def section_that_names(chapter: str, part: str, name):
    """The same of the first paragraph of the chapter's pages that names the function, or else the
    part. The line is the paragraph's end."""
    for named in (rf"`[^`]*\b{re.escape(name.split('::')[-1])}\b[^`]*`", rf"\b{part}\b"):
        for page in filter(lambda page: _is_of(page, chapter), pages_of(chapter)):
            lines = lines_of(page)
            for i, line in enumerate(lines):
                if i > 2 and re.search(named, line):
                    end = next(j for j in range(i, len(lines)) if not lines[j].strip())
                    return page, _heading(lines, i), end
    return None


def prose_before(page, line):
    """What the page says between the heading, or the listing before, and this line: a line for each
    paragraph."""
    return _prose([*itertools.takewhile(_is_text, reversed(lines_of(page)[:line]))][::-1])


def prose_after(page, heading):
    """What the page says between this heading and the first listing or heading after it."""
    lines = lines_of(page)
    begin = next(i for i, line in enumerate(lines)
                 if _is_heading(line) and line.lstrip("# ") == heading)
    return _prose(itertools.takewhile(_is_text, lines[begin + 1:]))


def _is_text(line):
    is_link_of_listing = re.fullmatch(r"\[`[^`]+`\]\(\.\./[^)]+\)", line)
    return not line.startswith("```") and not _is_heading(line) and not is_link_of_listing


def _is_heading(line):
    return bool(re.match("#+ ", line))


def _prose(lines):
    said = "\n".join(one for one in lines if not one.startswith(("[[[", "<!--", "-->"))
                     and "]]]" not in one and "[[[" not in one)
    paragraphs = (" ".join(one.replace("**", "").split())
                  for one in re.split(r"\n\s*\n", said.strip()))
    return "\n".join(re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", one) for one in paragraphs)


def _heading(lines, i):
    return next((lines[j].lstrip("# ") for j in range(i, -1, -1) if _is_heading(lines[j])), "")
