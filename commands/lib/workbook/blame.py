"""Which of the reader's parts makes the first difference between two models, and which known mistakes make the same."""
import contextlib
import math
import pathlib
import re
import tempfile

from workbook import book, checks, cpp, operations, passing_parts, planted, traces, written

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
                 {f.name for f in cpp.functions(book.ours(part.chapter, part.part).read_text())}), None)


def responsible(parts, parting, ours, theirs, folder):
    """The part with ours in whose place the models do not part there, and the patches of the wrong versions that part so."""
    makers = [maker[:2] for maker in operations.makers(parting.name)]
    for suspect in sorted(parts, key=lambda part: (part.chapter, part.part) not in makers):
        others = [part for part in parts if part is not suspect]
        all_wrong = planted.together(suspect.chapter, suspect.part)
        with program_of([*others, all_wrong.text]) as program:
            book.at_work(f"ours in the place of {suspect.part}")
            again = traces.make(program, [parting.text], folder / suspect.part, ours)
            still = traces.parting([parting.text], ours, again)
            if still and still.place == parting.place:
                continue
            alike = [patch for patch in all_wrong.patches if _is_alike(program, patch, parting, ours, theirs)]
        for one in planted.alone(suspect.chapter, suspect.part):
            with program_of([*others, one.text]) as program:
                alike += [patch for patch in one.patches if _is_alike(program, patch, parting, ours, theirs)]
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
    return len(got) == len(want) == len(same) and math.dist(got, same) <= SAME * math.dist(got, want)
