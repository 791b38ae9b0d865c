"""The verdict on one part of a reader's: builds it in the place of ours, runs the checks, and looks for the
known mistake that it resembles."""
import dataclasses
import os
import re

import checks
import house
import mistakes
import progress
import source
import written


@dataclasses.dataclass
class Verdict:
    chapter: str
    part: str
    word: str  # "passes", "fails", "is not written", "does not build", "ended"
    why: str = ""
    result: checks.Result = None
    alike: list = dataclasses.field(default_factory=list)

    @property
    def wrong(self):
        """The failures of checks that call nothing which is still to be written."""
        waiting = {f.check for f in self.result.failures if f.not_written}
        return [f for f in self.result.failures if f.check not in waiting]

    @property
    def unwritten(self):
        """The first failure because of the function to write next: of those that checks call, the first of the part."""
        waiting = [f for f in self.result.failures if f.not_written]
        called = {f.not_written for f in waiting}
        order = [one for one in numbered(self.chapter, self.part) if one in called]
        return next((f for f in waiting if f.not_written == order[0]), None) if order else None

    @property
    def first(self):
        """The failure to tell first: one of what is written, in the order of teaching."""
        return (self.wrong or [self.unwritten])[0]

    def function(self):
        """The function to look at next, if the first failure names one."""
        first = self.first if self.result and self.result.failures else None
        if first is None or first.not_written:
            return first.not_written[0] if first else None
        names = [f.name for f in source.functions(house.ours(self.chapter, self.part).read_text())]
        return next((n for n in names if re.search(rf"\b{n.split('::')[-1]}\(", first.asked)), None)

    @property
    def failed(self):
        return set(self.result.failed) | {f.check for f in self.result.failures}

    @property
    def counts(self):
        return len(set(self.result.checks) - self.failed), len(set(self.result.checks))


def numbered(chapter, part):
    """(name, number among those of this name) -> function, in the order of our source."""
    found = {}
    for f in source.functions(house.ours(chapter, part).read_text()):
        found[f.name, sum(name == f.name for name, _ in found) + 1] = f
    return found


def judge(chapter, part):
    file = house.theirs(chapter, part)
    try:
        text = written.read(chapter, part)
    except OSError as error:
        return Verdict(chapter, part, "does not build", f"{house.shown(file)} can't be read: {error.strerror}.")
    why = _lacking(text)
    if why:
        return Verdict(chapter, part, "does not build", why)
    with written.built([text], f"mine_{chapter}_{part}") as build:
        if not build.good:
            return Verdict(chapter, part, "does not build", f"The first error of the build of {house.shown(file)} is above.")
        verdict = of_program(chapter, part, build.program)
    passed, of = verdict.counts
    progress.note(chapter, part, digest=text.digest, passes=verdict.word == "passes", checks=[passed, of],
                  next=verdict.function())
    return verdict


def of_program(chapter, part, program):
    """The verdict on a test program in which the part is linked."""
    result = checks.run(program, os.environ)
    verdict = Verdict(chapter, part, "fails", result=result)
    if result.good:
        verdict.word = "passes"
    elif verdict.wrong:
        verdict.alike = mistakes.resembled(chapter, part, result.failures)
    elif verdict.unwritten:
        verdict.word = "is not written"
    else:
        verdict.word, verdict.why = "ended", result.ended
    return verdict


def _lacking(text):
    """What the file lacks of the functions that other parts call: without it ours would be linked as well."""
    chapter, part = text.chapter, text.part
    if not text.own.strip():
        return f"{house.shown(house.theirs(chapter, part))} is empty. Remove it, and ./learn start {chapter[:2]} {part} writes it anew."
    has = [f.name.split("::")[-1] for f in source.functions(text.own)]
    for function in source.functions(house.ours(chapter, part).read_text()):
        short = function.name.split("::")[-1]
        if short not in has:
            return f"{function.name} is missing. Other parts call it:\n  {re.sub(r'//.*', '', function.signature)}"
        has.remove(short)
    return ""
