"""Our source of a part with the book's wrong versions planted in it, to be built in the place of the reader's part."""
import dataclasses

from workbook import book, plan, switches, written


@dataclasses.dataclass
class Planted:
    text: written.Text
    patches: list  # those that T2T_WRONG chooses among by name; without it the text does what ours does


def together(chapter: str, part: str):
    """All wrong versions that one source can hold."""
    patches = [patch for patch in _patches(chapter, part) if not _is_alone(chapter, part, patch)]
    path = _path(chapter, part)
    switched = switches.together(path, {patch: switches.patched(path, patch) for patch in patches})
    support = book.ROOT / "tests/support"
    include = '#include "support/wrong_version.hpp"\n'
    chooses = (support / "wrong_version.hpp").read_text().replace("#pragma once", "")
    chooses += (support / "wrong_version.cpp").read_text().replace(include, "")
    return Planted(_text(chapter, part, switched.replace(include, chooses)), patches)


def alone(chapter: str, part: str):
    """Those that need a source each."""
    return [Planted(_text(chapter, part, switches.patched(_path(chapter, part), patch)), [patch])
            for patch in _patches(chapter, part) if _is_alone(chapter, part, patch)]


def _patches(chapter: str, part: str):
    """A later chapter's wrong versions of the part included, and those left out that no longer fit it."""
    every = ((folder, patch) for folder in plan.folders() for patch in plan.patches_in(folder))
    return [patch for folder, patch in every if switches.part_of(patch) == _path(chapter, part) and patch.stem not in plan.of(folder).skipped]


def _is_alone(chapter: str, part: str, patch):
    return switches.is_alone(_path(chapter, part), switches.patched(_path(chapter, part), patch))


def _path(chapter: str, part: str):
    return str(book.ours(chapter, part).relative_to(book.ROOT))


def _text(chapter: str, part: str, source):
    return written.Text(chapter, part, {f"{chapter}/{book.theirs(chapter, part).name}": source.encode()})
