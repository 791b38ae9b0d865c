"""What each figure of the pages must be: docs/NAME.svg, as common/figure writes it.

python3 docs/weaving/figures.py [FILE...]  prints what is wrong with the figures, by default with all of docs/, and ends with
                                           status 1 if anything is
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

DOCS = pathlib.Path(__file__).resolve().parents[1]
SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 20_000
TONES = {"ink", "quiet", "first", "second", "third", "paper"}
SHARE = 0.56  # of a letter's size: its width, on average
LEFT = {"start": 0, "middle": 0.5, "end": 1}  # of the words' width


def alternative(svg):
    """What a page says of a figure for who cannot see it: its title and its description."""
    root = ElementTree.fromstring(svg)
    return " ".join(f"{root.findtext(SVG + 'title', '').rstrip('.')}. {root.findtext(SVG + 'desc', '')}".split())


def faults(svg):
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        return [f"is no XML: {error}"]
    found = []
    if len(svg.encode()) > MOST_BYTES:
        found.append(f"has {len(svg.encode()):,} bytes, at most {MOST_BYTES:,}")
    found += [f"has no {name}" for name in ("title", "desc") if not root.findtext(SVG + name, "").strip()]
    if "prefers-color-scheme:dark" not in svg:
        found.append("has no colours for dark pages")
    width, height = float(root.get("width")), float(root.get("height"))
    for one in root.iter():
        if one.get("fill") or one.get("stroke") or one.get("style"):
            found.append(f"has a colour of its own in {one.tag.removeprefix(SVG)}: tones are classes")
        if one.tag == SVG + "text":
            found += _outside(one, width, height)
        if one.get("class") and not set(one.get("class").split()) - {"head"} <= TONES:
            found.append(f"has an unknown tone: {one.get('class')}")
    if re.search(r"\bnan\b|\binf\b", re.sub(r">[^<]*<", "><", svg)):
        found.append("has a coordinate that is no number")
    return found


def _outside(text, width, height):
    """Words that leave the picture, by their length and the usual width of a letter."""
    words, size = "".join(text.itertext()), float(text.get("font-size", 14))
    x, y, wide = float(text.get("x")), float(text.get("y")), SHARE * size * len(words)
    left = x - LEFT[text.get("text-anchor", "start")] * wide
    if left < -1 or left + wide > width + 1 or y - 0.8 * size < -1 or y + 0.2 * size > height + 1:
        yield f"has words that leave the picture: {words!r}"


if __name__ == "__main__":
    paths = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(DOCS.glob("*.svg"))
    lines = [f"{path.name} {fault}" for path in paths for fault in faults(path.read_text())]
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))
