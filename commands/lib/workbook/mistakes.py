"""Recognises a mistake by what it computes: the numbers that its failed checks report, all of which must be those recorded
of a wrong version. One that resembles it only in part isn't named."""
import dataclasses
import functools
import re

import wrong

SAME = 1e-3  # by how much two reported numbers may differ, of the larger
ROUNDING = 1e-5  # numbers as small as this may be made of rounding, which differs between processors


@dataclasses.dataclass
class Mistake:
    name: str
    part: str
    says: str  # its one line
    fails: dict  # check and expression -> the first numbers reported


@dataclasses.dataclass
class Likeness:
    mistake: Mistake
    same: bool  # the same checks fail with the same numbers; else the same mistake in another form, or in both


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


def recognised(chapter, part, failures):
    """The known mistakes that compute what the part computes, as far as its failures tell: those that fail the same checks
    with the same numbers, or else those that give these numbers in the same checks, but in the other of two forms or in
    one where the part has both. Checks that call what is still to be written count on neither side."""
    waiting = {f.check for f in failures if f.not_written}
    fails = fails_of(f for f in failures if f.check not in waiting)
    of_part = [_without(m, waiting) for m in known(chapter) if m.part == part]
    same = [Likeness(m, True) for m in of_part if _same_fails(fails, m.fails)]
    return same or [Likeness(m, False) for m in of_part if _same_in_another_form(fails, m.fails)]


def _without(mistake, checks):
    fails = {site: numbers for site, numbers in mistake.fails.items() if site.split(" | ")[0] not in checks}
    return dataclasses.replace(mistake, fails=fails)


def _same_fails(ours, theirs):
    return bool(ours) and ours.keys() == theirs.keys() and all(_same_numbers(ours[site], theirs[site]) for site in ours)


def _same_in_another_form(ours, theirs):
    """Whether the numbers agree wherever a check fails for both, whatever the check calls there, and these are most of either's
    numbers and enough to be no chance. Checks of one form alone fail for one of them, and checks that compare two forms pass
    where both are wrong."""
    ours, theirs = _facts(ours), _facts(theirs)
    common = [fact for fact in ours if _among(fact, theirs)]
    told = {(check, *numbers) for check, numbers in common if any(_tells(n) for n in numbers)}
    apart = {check for check, _ in ours} & {check for check, _ in theirs} - {check for check, _ in common}
    return (len(told) >= 5 and not apart and len(common) >= 0.8 * len(ours)
            and sum(_among(fact, ours) for fact in theirs) >= 0.8 * len(theirs))


def _tells(number):
    """Whether it is more than a flag, an index or a rounding."""
    return not isinstance(number, str) and abs(number) > ROUNDING and number != 1


def _facts(fails):
    """Check and numbers, whatever the check calls there."""
    return [(site.split(" | ")[0], numbers) for site, numbers in fails.items()]


def _among(fact, facts):
    """A check that compares two forms has what it got and what it wanted exchanged where the other one is wrong."""
    (check, numbers), turned = fact, [*fact[1][:-2], *fact[1][:-3:-1]]
    return any(check == other and (_same_numbers(numbers, those) or _same_numbers(turned, those)) for other, those in facts)


def _same_numbers(ours, theirs):
    def same(a, b):
        if isinstance(a, str) or isinstance(b, str):
            return a == b
        return abs(a - b) <= max(SAME * max(abs(a), abs(b)), ROUNDING)
    return len(ours) == len(theirs) and all(map(same, ours, theirs))
