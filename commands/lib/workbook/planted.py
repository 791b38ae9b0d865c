"""Our source of a part with the book's wrong versions planted in it, to be built in the place of the reader's part."""
import dataclasses
import pathlib
import sys
import tempfile

import house
import written

sys.path.insert(0, str(house.ROOT / "tests/wrong"))
import switches  # noqa: E402


@dataclasses.dataclass
class Planted:
    text: written.Text
    patches: list  # those that T2T_WRONG chooses among by name; without it the text does what ours does


def together(chapter, part):
    """All wrong versions that one source can hold."""
    patches = [patch for patch in _patches(chapter, part) if not _is_alone(chapter, part, patch)]
    with tempfile.NamedTemporaryFile("r+") as made:
        switches.write(_path(chapter, part), made.name, patches)
        switched = pathlib.Path(made.name).read_text()
    support = house.ROOT / "tests/support"
    include = '#include "support/wrong_version.hpp"\n'
    chooses = (support / "wrong_version.hpp").read_text().replace("#pragma once", "")
    chooses += (support / "wrong_version.cpp").read_text().replace(include, "")
    return Planted(_text(chapter, part, switched.replace(include, chooses)), patches)


def alone(chapter, part):
    """Those that need a source each."""
    return [Planted(_text(chapter, part, switches.patched(_path(chapter, part), patch)), [patch])
            for patch in _patches(chapter, part) if _is_alone(chapter, part, patch)]


def _patches(chapter, part):
    """A later chapter's wrong versions of the part included."""
    every = sorted((house.ROOT / "tests/wrong").glob("*/*.patch"))
    return [patch for patch in every if switches.part_of(patch) == _path(chapter, part)]


def _is_alone(chapter, part, patch):
    right = switches.split(house.ours(chapter, part).read_text())
    return switches.changed(right, switches.split(switches.patched(_path(chapter, part), patch))) is None


def _path(chapter, part):
    return str(house.ours(chapter, part).relative_to(house.ROOT))


def _text(chapter, part, source):
    return written.Text(chapter, part, {f"{chapter}/{house.theirs(chapter, part).name}": source.encode()})
