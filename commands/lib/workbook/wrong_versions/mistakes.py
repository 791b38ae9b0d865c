"""Recognizes a mistake by the numbers that its failed checks report, all of which must be those
recorded of a wrong version. diagnosis.py finds mistakes that aren't recorded like this, or are made
in another form."""
import dataclasses
import functools
import re

from workbook.wrong_versions import wrong

SAME = 1e-3  # by how much two reported numbers may differ, of the larger
ROUNDING = 1e-5  # numbers as small as this may be made of rounding, which differs by processor


@dataclasses.dataclass
class Mistake:
    name: str
    part: str
    says: str  # its one line
    fails: dict  # check and expression -> the first numbers reported


@functools.cache
def known(chapter: str):
    """The recorded mistakes of a chapter."""
    checks, mistakes = wrong.record(chapter)["checks"], wrong.record(chapter)["mistakes"]
    return [Mistake(name, part, says, {checks[int(i)]: numbers
                                       for i, numbers in mistakes[name].items()})
            for name, part, says in wrong.patches(chapter) if name in mistakes]


def fails_of(failures):
    """Check and expression -> the first numbers that the first failure there reports."""
    fails: dict[str, list] = {}
    for failure in failures:
        fails.setdefault(failure.site, _numbers(failure.got.split("\n")[0]))
    return fails


def _numbers(text):
    found = re.findall(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?![\w])", text)
    return [n if n.strip("-+") in ("inf", "nan") else float(f"{float(n):.5g}") for n in found[:4]]


def recognized(chapter: str, part: str, failures, left_out=()):
    """The known mistakes that fail the same checks with the same numbers. Checks that call what is
    still to be written, and those that are left out, count on neither side."""
    waiting = {*left_out, *(f.check for f in failures if f.not_written)}

    def counted(fails):
        return {site: numbers for site, numbers in fails.items()
                if site.split(" | ")[0] not in waiting}
    fails = counted(fails_of(failures))
    return [m for m in known(chapter) if m.part == part and same_fails(fails, counted(m.fails))]


def same_fails(ours, theirs):
    """Whether all numbers are the same, and not all of them may be made of rounding."""
    return (ours.keys() == theirs.keys() and
            all(len(ours[site]) == len(theirs[site]) and
                all(map(_same, ours[site], theirs[site])) for site in ours) and
            any(not numbers or any(isinstance(n, str) or abs(n) > ROUNDING for n in numbers)
                for numbers in ours.values()))


def _same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return abs(a - b) <= max(SAME * max(abs(a), abs(b)), ROUNDING)
