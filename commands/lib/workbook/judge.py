"""The verdict on one part of a reader's: builds it in the place of ours, runs the checks, and looks for the
known mistake that it makes."""
import dataclasses
import os
import pathlib
import re

import checks
import diagnosis
import house
import mistakes
import progress
import source
import symbols
import written


@dataclasses.dataclass
class Verdict:
    chapter: str
    part: str
    word: str  # "passes", "fails", "is not written", "does not build", "ended"
    why: str = ""
    result: checks.Result = None
    alike: list = dataclasses.field(default_factory=list)  # the recorded mistakes that fail the same checks
    program: pathlib.Path = None  # of the checks with the part, for a diagnosis if no recorded mistake is alike
    said: str = ""  # by the compiler, of what does not build
    warnings: list = dataclasses.field(default_factory=list)  # by the compiler, of what builds

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
        """How many checks passed, of how many there are, those that were not reached included."""
        return len(self.passed), len(self.all_checks)

    @property
    def passed(self):
        return set(self.result.checks) - self.failed - {self.result.running}

    @property
    def all_checks(self):
        return list(dict.fromkeys([*self.result.checks, *self.result.unreached]))


def numbered(chapter, part):
    """(name, number among those of this name) -> function, in the order of our source."""
    found = {}
    for f in source.functions(house.ours(chapter, part).read_text()):
        found[f.name, sum(name == f.name for name, _ in found) + 1] = f
    return found


def judge(chapter, part):
    try:
        text = written.read(chapter, part)
    except written.Unreadable as error:
        return Verdict(chapter, part, "does not build", str(error))
    verdict = unbuilt(text)
    if verdict:
        return verdict
    with written.built([text], f"mine_{chapter}_{part}", house.checks_of(chapter, part)) as build:
        if not build.good:
            return _not_built(text, build)
        verdict = of_program(chapter, part, build.program, checks.names(house.BUILD / house.checks_of(chapter, part)))
        if verdict.word == "fails" and not verdict.alike and diagnosis.can(chapter, part):
            verdict.program = diagnosis.keep(chapter, part, build.program)
    verdict.warnings = written.warnings(text)
    passed, of = verdict.counts
    progress.note(chapter, part, digest=text.digest, passes=verdict.word == "passes", checks=[passed, of],
                  next=verdict.function())
    return verdict


def unbuilt(text):
    """The verdict on a part of which no object comes about, or one without a function that other parts call."""
    theirs, library, ours = objects_of(text.chapter, text.part)
    with written.built([text], theirs, library) as build:
        written.keep_warnings(text, build)
        if not build.good:
            return _not_built(text, build)
        why = symbols.lacking(text, build.program, house.BUILD / ours)
        return Verdict(text.chapter, text.part, "does not build", why) if why else None


def objects_of(chapter, part):
    """The reader's object, our library, and our object in it, as the build names them."""
    ours, target = house.ours(chapter, part), f"mine_{chapter}_{part}"
    source_of_ours = ours.relative_to(house.ROOT)
    if ours.suffix == ".cpp":
        library = f"{chapter}_parts"
        return symbols.object_of(target, f"mine/{chapter}/{ours.name}"), library, symbols.object_of(library, source_of_ours)
    library = f"{chapter}_stand_in"
    return (symbols.object_of(target, f"stand_in/{target}.cpp"), library,
            symbols.object_of(library, f"stand_in/{source_of_ours}.cpp"))


def _not_built(text, build):
    why = build.limit or f"The first error of the build of {house.shown(house.theirs(text.chapter, text.part))} is above."
    return Verdict(text.chapter, text.part, "does not build", why, said=build.said)


def of_program(chapter, part, program, names=()):
    """The verdict on a test program in which the part is linked. Names are those of the checks that there are."""
    result = checks.run(program, os.environ, names=names)
    verdict = Verdict(chapter, part, "fails", result=result)
    if result.good:
        verdict.word = "passes"
    elif verdict.wrong:
        verdict.alike = mistakes.recognised(chapter, part, result.failures)
    elif verdict.unwritten:
        verdict.word = "is not written"
    else:
        verdict.word, verdict.why = "ended", result.ended
    return verdict

