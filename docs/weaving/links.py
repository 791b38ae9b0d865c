"""Checks that every relative link of the pages given leads to a file and, after #, to a heading there.

Prints each that does not, and ends with status 1. A code host makes a heading's anchor as here: small
letters, spaces to hyphens, everything but letters, digits, hyphens and underscores left out.
"""
import functools
import pathlib
import re
import sys
import unicodedata


def _lines(page):
    """The page without its listings."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)


def _stays(character):
    """Word characters, among numbers the decimal digits alone: not the 2 of a square."""
    return character in "-_ " or unicodedata.category(character)[0] in "LM" or unicodedata.category(character) == "Nd"


@functools.cache
def _anchors(page):
    found = set()
    for heading in re.findall(r"^#+ (.*)", _lines(page), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        anchor = "".join(c for c in text.strip().lower() if _stays(c)).replace(" ", "-")
        again = sum(1 for one in found if re.fullmatch(re.escape(anchor) + r"(-\d+)?", one))
        found.add(f"{anchor}-{again}" if again else anchor)
    return found


def _broken(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", _lines(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page.resolve()
        if not target.exists():
            yield f"{page}: {link}: there is no such file"
        elif anchor and target.suffix == ".md" and anchor not in _anchors(target):
            yield f"{page}: {link}: no heading there has this anchor"


broken = [line for name in sys.argv[1:] for line in _broken(pathlib.Path(name))]
print("\n".join(broken), end="\n" if broken else "")
sys.exit(bool(broken))
