"""Recognises a mistake: by which checks it fails, and with which numbers, beside those recorded of the wrong versions."""
import dataclasses
import functools
import re

import wrong

SAME = 1e-3  # by how much two reported numbers may differ, of the larger


@dataclasses.dataclass
class Mistake:
    name: str
    part: str
    says: str  # its one line
    fails: dict  # check and expression -> the first numbers reported


@dataclasses.dataclass
class Likeness:
    mistake: Mistake
    share: float  # of all checks that either fails, those that both do
    numbers: float  # of these, those that report the same numbers

    @property
    def same(self):
        return self.share == 1 and self.numbers >= 0.8


@functools.cache
def known(chapter):
    """The recorded mistakes of a chapter."""
    checks, mistakes = wrong.record(chapter)["checks"], wrong.record(chapter)["mistakes"]
    return [Mistake(name, part, says, {checks[int(i)]: numbers for i, numbers in mistakes[name].items()})
            for name, part, says in wrong.patches(chapter) if name in mistakes]


def fails_of(failures):
    """Check and expression -> the first numbers that the first failure there reports."""
    fails = {}
    for failure in failures:
        if failure.site not in fails:
            fails[failure.site] = _numbers(failure.got.split("\n")[0])
    return fails


def _numbers(text):
    found = re.findall(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?![\w])", text)
    return [n if n.strip("-+") in ("inf", "nan") else float(f"{float(n):.5g}") for n in found[:4]]


def resembled(chapter, part, failures):
    """What the failures resemble, the most alike first: the same mistakes only, if there are any. Checks that call
    what is still to be written count on neither side."""
    waiting = {f.check for f in failures if f.not_written}
    fails = fails_of(f for f in failures if f.check not in waiting)
    alike = sorted((_likeness(fails, _without(m, waiting)) for m in known(chapter) if m.part == part),
                   key=lambda one: (-one.same, -(one.share + one.numbers / 2)))
    same = [one for one in alike if one.same]
    return same or [one for one in alike if one.share >= 0.5 and one.numbers >= 0.25][:1]


def _without(mistake, checks):
    fails = {site: numbers for site, numbers in mistake.fails.items() if site.split(" | ")[0] not in checks}
    return dataclasses.replace(mistake, fails=fails)


def _likeness(fails, mistake):
    both = fails.keys() & mistake.fails.keys()
    either = fails.keys() | mistake.fails.keys()
    agree = sum(_same_numbers(fails[site], mistake.fails[site]) for site in both)
    return Likeness(mistake, len(both) / max(1, len(either)), agree / max(1, len(both)))


def _same_numbers(ours, theirs):
    def same(a, b):
        return a == b or (not isinstance(a, str) and not isinstance(b, str) and abs(a - b) <= SAME * max(abs(a), abs(b)))
    return len(ours) == len(theirs) and all(map(same, ours, theirs))
