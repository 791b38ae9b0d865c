"""Which of the reader's parts makes the first difference between two models, and which known
mistakes make the same."""
import contextlib
import math
import pathlib
import re
import tempfile

from workbook import book, checks, written
from workbook.commands import passing_parts
from workbook.differences import operations, traces
from workbook.programs import plan, switches
from workbook.source import cpp

SAME = 1e-3  # how near two wrong results must be, of their difference from the right one


@contextlib.contextmanager
def program_of(parts):
    """The program of traces, with these parts of the reader's and ours for all others."""
    listed = passing_parts.listed([(part.chapter, part.part) for part in parts])
    with written.built(parts, f"{traces.PROGRAM}_mine", listed=listed) as made:
        if not made.good:
            book.die("the program with your parts does not build")
        yield made.program


def still_to_write(parts, parting):
    """The part whose function was called and is not written yet."""
    found = re.search(checks.NOT_WRITTEN, parting.says) if parting.ended else None
    return next((part for part in parts if found and found.group(1) in
                 {f.name for f in cpp.functions(book.ours(part.chapter, part.part).read_text())}),
                None)


def responsible(parts, parting, ours, theirs, folder):
    """The part with ours in whose place the models do not part there, and the patches of the wrong
    versions that part so."""
    makers = [maker[:2] for maker in operations.makers(parting.name)]
    for suspect in sorted(parts, key=lambda part: (part.chapter, part.part) not in makers):
        others, alike = [part for part in parts if part is not suspect], []
        for i, (text, patches) in enumerate(planted(suspect.chapter, suspect.part)):
            with program_of([*others, text]) as program:
                if i == 0:
                    book.at_work(f"ours in the place of {suspect.part}")
                    again = traces.make(program, [parting.text], folder / suspect.part, ours)
                    still = traces.parting([parting.text], ours, again)
                    if still and still.place == parting.place:
                        break
                alike += [patch for patch in patches
                          if _is_alike(program, patch, parting, ours, theirs)]
        else:
            return suspect, alike
    return None, []


def _is_alike(program, patch: pathlib.Path, parting, ours, theirs) -> bool:
    """Whether a wrong version gives the numbers of theirs where theirs part from ours."""
    if parting.ended or parting.name == "tokens":
        return False
    book.at_work(f"is it {patch.stem.replace('_', ' ')}?")
    with tempfile.TemporaryDirectory(prefix="locate-", dir=book.ROOT / "build") as folder:
        wrong = traces.make(program, [parting.text], pathlib.Path(folder), ours, patch.stem)
        if not parting.file(wrong).is_file():
            return False
        got, want, same = (traces.numbers_of(parting.file(one)) for one in (theirs, ours, wrong))
    return (len(got) == len(want) == len(same) and
            math.dist(got, same) <= SAME * math.dist(got, want))


def planted(chapter: str, part: str):
    """[(our source of a part, the patches of wrong versions among which T2T_WRONG chooses in it),
    ...]: first one with all that one source can hold, which without T2T_WRONG does what ours does,
    then those that need a source each."""
    path = str(book.ours(chapter, part).relative_to(book.ROOT))
    texts = {patch: switches.patched(path, patch) for patch in patches_of(path)}
    alone = {patch: text for patch, text in texts.items() if switches.is_alone(path, text)}
    switched = {patch: text for patch, text in texts.items() if patch not in alone}
    support, include = book.ROOT / "tests/support", '#include "support/wrong_version.hpp"\n'
    chooses = (support / "wrong_version.hpp").read_text().replace("#pragma once", "")
    chooses += (support / "wrong_version.cpp").read_text().replace(include, "")
    sources = [(switches.together(path, switched).replace(include, chooses), [*switched]),
               *((text, [patch]) for patch, text in alone.items())]
    name = f"{chapter}/{book.theirs(chapter, part).name}"
    return [(written.Text(chapter, part, {name: source.encode()}), patches)
            for source, patches in sources]


def patches_of(path):
    """A later chapter's wrong versions of the part included, and those left out that no longer fit
    it."""
    return [patch for folder in plan.folders() for patch in plan.patches_in(folder)
            if switches.part_of(patch) == path and patch.stem not in plan.of(folder).skipped]
