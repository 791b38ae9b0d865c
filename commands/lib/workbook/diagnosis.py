"""Where a part is wrong that fails its checks, and makes no recorded mistake: which lines of the reader's ours can take the place
of (exchanged.py). judge.py keeps the program with the reader's part, and telling.py and report.py ask here."""
import os

from workbook import book, cpp, exchanged, progress, trial

TOLD = 3  # exchanges: of more, each would be no more than one of many


def keep(chapter: str, part: str, program):
    """Keeps the program in which the reader's part is linked; where it is now."""
    kept = book.BUILD / "judged" / f"{chapter}_{part}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(program, kept)
    return kept


def look(verdict):
    """The exchanges of lines with which the part of this verdict passes."""
    wrong_ones = {failure.check for failure in verdict.wrong} or {verdict.result.running}
    if not any(wrong_ones) or not _fails_again(verdict.program, wrong_ones):
        return []
    book.at_work("trying lines of ours in the place of yours")
    try:
        found = exchanged.look(verdict.text, wrong_ones, verdict.failed - wrong_ones)
    finally:
        book.at_work("")
    if 1 <= len(found) <= TOLD:
        _note_next(verdict, {lines.function for exchange in found for lines in exchange})
    return found


def _fails_again(program, wrong_ones) -> bool:
    """Whether the checks fail with one thread, too. Otherwise they would pass after any exchange."""
    return not trial.passes(program, None, sorted(wrong_ones), exchanged.WHOLE_SECONDS)


def _note_next(verdict, wrong_ones):
    """Notes the function that is wrong, or calls what is, for ./learn hint."""
    ours = book.ours(verdict.chapter, verdict.part).read_text()
    for function in cpp.to_write(ours):
        if wrong_ones & {one.name for one in cpp.with_helpers(ours, function)}:
            return progress.note(verdict.chapter, verdict.part, next=function.name)
