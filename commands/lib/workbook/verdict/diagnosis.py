"""Where a part is wrong that fails its checks, and makes no recorded mistake: which lines of the
reader's ours can take the place of (exchanged.py). judge.py keeps the program with the reader's
part, and telling.py and check.py ask here."""
import os

from workbook import book, progress
from workbook.programs import trial
from workbook.source import cpp
from workbook.verdict import exchanged

TOLD = 3  # exchanges: of more, each would be no more than one of many


def keep(chapter: str, part: str, program):
    """Keeps the program in which the reader's part is linked; where it is now."""
    kept = book.BUILD / "judged" / f"{chapter}_{part}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(program, kept)
    return kept


def look(verdict):
    """The exchanges of lines with which the part of this verdict passes. The function that they are
    in, or that calls it, is noted for ./learn hint."""
    wrong = {failure.check for failure in verdict.wrong} or {verdict.result.running}
    # Checks that pass with one thread would pass after any exchange.
    seconds = exchanged.WHOLE_SECONDS
    if not any(wrong) or trial.passes(verdict.program, None, sorted(wrong), seconds):
        return []
    book.at_work("trying lines of ours in the place of yours")
    try:
        found = exchanged.look(verdict.text, wrong, verdict.failed - wrong)
    finally:
        book.at_work("")
    if 1 <= len(found) <= TOLD:
        names = {lines.function for exchange in found for lines in exchange}
        ours = book.ours(verdict.chapter, verdict.part).read_text()
        for function in cpp.to_write(ours):
            if names & {one.name for one in cpp.with_helpers(ours, function)}:
                progress.note(verdict.chapter, verdict.part, next=function.name)
                break
    return found
