"""The book's wrong versions, and which checks each of them fails: by these a mistake is recognised.

tests/wrong/NN_name/failing_checks.json holds, for each wrong version of a chapter's parts, the checks that it fails and
the first numbers that each of them reports: first a check that rejects it alone. ./learn test NN --record writes it anew.
"""
import dataclasses
import functools
import json
import re

from house import BUILD, ROOT

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


def patches(chapter):
    """[(name, part, its one line), ...] of a chapter's wrong versions."""
    found = []
    for patch in sorted((ROOT / "tests/wrong" / chapter).glob("*.patch")):
        text = patch.read_text()
        part = re.search(r"^\+\+\+ b/[\w/]+/(\w+)\.(?:cpp|cu)$", text, re.M).group(1)
        found.append((patch.stem, part, text.splitlines()[0]))
    return found


def program(chapter, mistake, part):
    """The test program that makes this mistake when T2T_WRONG names it."""
    plan = (BUILD / "wrong_versions.cmake").read_text()
    alone = re.search(rf"^set\(T2T_ALONE_{chapter} (.*)\)$", plan, re.M).group(1).split()
    return f"{chapter}_{mistake}" if mistake in alone else f"{chapter}_wrong_{part}"


def record_of(chapter):
    return ROOT / "tests/wrong" / chapter / "failing_checks.json"


@functools.cache
def record(chapter):
    """{"checks": [text, ...], "mistakes": {name: {number of a check: numbers}}, "keys": {name: key}}"""
    path = record_of(chapter)
    return {"checks": [], "mistakes": {}, "keys": {}, **(json.loads(path.read_text()) if path.exists() else {})}


def write(chapter, fresh):
    """Writes a record, with the keys that are current now."""
    import keys
    record.cache_clear()
    _write(chapter, fresh)
    _write(chapter, dict(fresh, keys={name: keys.key(chapter, name) for name in fresh["mistakes"]}))
    record.cache_clear()


def _write(chapter, fresh):
    texts = [f"  {json.dumps(site, ensure_ascii=False)}" for site in fresh["checks"]]
    fails = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in fresh["mistakes"].items()]
    keys_of = [f"  {json.dumps(name)}: {json.dumps(key)}" for name, key in fresh["keys"].items()]
    parts = [f'{name}: {ends[0]}\n' + ",\n".join(lines) + f"\n{ends[1]}" for name, ends, lines in
             (('"checks"', "[]", texts), ('"mistakes"', "{}", fails), ('"keys"', "{}", keys_of))]
    record_of(chapter).write_text("{" + ", ".join(parts) + "}\n")


@functools.cache
def known(chapter):
    """The recorded mistakes of a chapter."""
    checks, mistakes = record(chapter)["checks"], record(chapter)["mistakes"]
    return [Mistake(name, part, says, {checks[int(i)]: numbers for i, numbers in mistakes[name].items()})
            for name, part, says in patches(chapter) if name in mistakes]


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
