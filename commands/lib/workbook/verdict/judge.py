"""The verdict on one part of a reader's: builds it in the place of ours, runs the checks, and looks
for the known mistake that it makes."""
import dataclasses
import os
import pathlib
from typing import cast

from workbook import book, checks, progress, written
from workbook.programs import callers, cmake_commands, missing_functions, programs
from workbook.source import cpp
from workbook.verdict import diagnosis, races
from workbook.wrong_versions import mistakes, wrong


@dataclasses.dataclass
class Verdict:
    chapter: str
    part: str
    word: str  # "passes", "fails", "is not written", "does not build", "ended", "races"
    why: str = ""
    result: checks.Result = cast(checks.Result, None)  # of what builds
    alike: list = dataclasses.field(default_factory=list)  # recorded mistakes that fail the same
    program: pathlib.Path | None = None  # of the checks with the part, for a diagnosis
    text: written.Text | None = None  # what was judged, for a diagnosis
    said: str = ""  # by the compiler, of what does not build
    warnings: list = dataclasses.field(default_factory=list)  # by the compiler, of what builds
    watched: races.Told = cast(races.Told, None)  # of a look for them, if all checks pass
    left_out: set = dataclasses.field(default_factory=set)  # checks that ours fails: not counted

    @property
    def wrong(self):
        """The failures of checks that call nothing which is still to be written."""
        waiting = {f.check for f in self.result.failures if f.not_written}
        return [f for f in self.result.failures if f.check not in waiting]

    @property
    def unwritten(self):
        """The first failure because of the function to write next: of those that the check told
        first calls, the first of the part."""
        order = list(numbered(self.chapter, self.part))
        waiting = [f for f in self.result.failures if f.not_written in order]
        of_check = [f for f in waiting if f.check == waiting[0].check]
        return min(of_check, key=lambda f: order.index(f.not_written), default=None)

    @property
    def first(self):
        """The failure to tell first: one of what is written, in the order of teaching."""
        return (self.wrong or [self.unwritten])[0]

    def function(self):
        """The function to look at next: one that is still to be written, the one in which a known
        mistake is, or the one that the failing check calls."""
        first = self.first if self.result and self.result.failures else None
        if first is None or first.not_written:
            return first.not_written[0] if first else None
        text = book.ours(self.chapter, self.part).read_text()
        if self.alike:
            lines = set(wrong.lines_changed(self.chapter, self.alike[0].name))
            return next((f.name for f in cpp.to_write(text) for one in cpp.with_helpers(text, f)
                         if lines & set(one.body.splitlines())), None)
        names = {f.name.split("::")[-1]: f.name for f in reversed(cpp.to_write(text))}
        return next((names[one] for one in _called(first) if one in names), None)

    @property
    def failed_at(self):
        """The check that is told first, in a few words, or what else is wrong."""
        if self.word == "races":
            return "a race between two threads"
        if not self.result or self.result.good:
            return None
        check, (file, line) = self.result.running, self.result.begins or ("", 0)
        if self.result.failures:
            check, file, line = self.first.check, self.first.file, self.first.line
        return f'"{check}"' + (f" (tests/{file.rpartition('/tests/')[2]}:{line})" if file else "")

    @property
    def failed(self):
        return set(self.result.failed) | {f.check for f in self.result.failures}

    @property
    def passed(self):
        return set(self.result.checks) - self.failed - {self.result.running}

    @property
    def counted(self):
        """The checks that call the part, those that were not reached included, and any other that
        fails."""
        others = [c for c in self.result.checks if c not in self.passed]
        calling = dict.fromkeys([*callers.of(self.chapter, self.part), *others])
        return [check for check in calling if check not in self.left_out]

    @property
    def counts(self):
        """How many checks passed, of how many that count."""
        return len(self.passed & set(self.counted)), len(self.counted)


def _called(failure: checks.Failure):
    """The functions that a failing check calls: those of the expression, then those of its lines,
    the last first; behind each helper of the test's file stands what the helper calls."""
    if not failure.file:
        return []
    file = pathlib.Path(failure.file).read_text()
    helpers = {f.name: cpp.calls(f.body) for f in cpp.definitions(file)}
    lines = "\n".join(file.splitlines()[failure.begins:failure.line])
    found = []
    waiting = [*cpp.calls(failure.asked), *reversed(cpp.calls(lines))]
    while waiting:
        if (name := waiting.pop(0)) not in found:
            found.append(name)
            waiting = [*helpers.get(name, []), *waiting]
    return found


def numbered(chapter: str, part: str):
    """(name, number among those of this name) -> function, in the order of our source."""
    found: dict[tuple[str, int], cpp.Item] = {}
    for f in cpp.functions(book.ours(chapter, part).read_text()):
        found[f.name, sum(name == f.name for name, _ in found) + 1] = f
    return found


def judge(chapter: str, part: str, before_races=lambda verdict: None):
    """The verdict on a part. A look for races takes some seconds more: before it, what the checks
    say is handed out."""
    try:
        text = written.read(chapter, part)
    except written.Unreadable as error:
        return Verdict(chapter, part, "does not build", str(error))
    if verdict := unbuilt(text):
        return verdict
    checks_of = book.checks_of(chapter, part)
    with written.built([text], f"mine_{chapter}_{part}", checks_of) as build:
        if not build.good:
            return _not_built(text, build)
        ours = book.BUILD / checks_of
        verdict = of_program(chapter, part, build.program, checks.names(ours), ours)
        if verdict.word in ("fails", "ended") and not book.is_kernel(chapter, part):
            verdict.program, verdict.text = diagnosis.keep(chapter, part, build.program), text
    verdict.warnings = written.warnings(text)
    if verdict.word == "passes" and text.may_race:
        before_races(verdict)
        verdict.watched = races.look(text)
        verdict.word = "races" if verdict.watched.race else "passes"
    progress.note(chapter, part, digest=text.digest, passes=verdict.word == "passes",
                  checks=[*verdict.counts], next=verdict.function(), failed=verdict.failed_at)
    return verdict


def unbuilt(text):
    """The verdict on a part of which no object comes about, or one without a function that other
    parts call."""
    theirs, library, ours = objects_of(text.chapter, text.part)
    with written.built([text], theirs, library) as build:
        if not build.good:
            return _not_built(text, build)
        written.keep_warnings(text, build)
        text.may_race = (not book.is_kernel(text.chapter, text.part) and
                         races.possible(build.program))
        why = missing_functions.lacking(text, build.program, book.BUILD / ours)
        return Verdict(text.chapter, text.part, "does not build", why) if why else None


def objects_of(chapter: str, part: str):
    """The reader's object, our library, and our object in it, as the build names them."""
    library = f"{chapter}_stand_in" if book.is_kernel(chapter, part) else f"{chapter}_parts"
    return (programs.mine_object(chapter, part), library,
            cmake_commands.object_of(book.ours(chapter, part)))


def _not_built(text, build):
    theirs = book.shown(book.theirs(text.chapter, text.part))
    why = build.limit or f"The first error of the build of {theirs} is above."
    return Verdict(text.chapter, text.part, "does not build", why, said=build.said)


def of_program(chapter: str, part: str, program, names=(), ours=None):
    """The verdict on a test program in which the part is linked. Names are those of the checks that
    there are. What the program `ours`, in which our part is linked, fails too, because a source was
    edited or on this processor, does not count."""
    result = checks.run(program, os.environ, names=names)
    waiting = {f.check for f in result.failures if f.not_written}
    bad = [*result.failed, *(f.check for f in result.failures), result.running]
    bad = [check for check in dict.fromkeys(bad) if check and check not in waiting]
    left_out = checks.failing(ours, os.environ, bad) if ours and bad else set()
    result = checks.without(result, left_out)
    result.failures = callers.in_order_of_ease(chapter, part, result.failures)
    verdict = Verdict(chapter, part, "fails", result=result, left_out=left_out)
    if result.good:
        verdict.word = "passes"
    elif verdict.wrong:
        verdict.alike = mistakes.recognized(chapter, part, result.failures, left_out)
    elif verdict.unwritten:
        verdict.word = "is not written"
    else:
        verdict.word, verdict.why = "ended", result.ended
    return verdict
