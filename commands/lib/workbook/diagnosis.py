"""Which mistake a part makes, by what it computes: the variants of ours (variants.py) that compute the same in every check.

The variants of a part are compiled and run once, in the background, and what they compute is kept in build/release/variants.
"""
import concurrent.futures
import dataclasses
import fcntl
import functools
import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import behaviour
import house
import variants
import wrong

MOST_SECONDS = 300  # for running the variants of a part
PATIENCE = 8  # seconds that a verdict waits for variants that are being run
TRIED = 16  # changes that are tried in the other form and in both
LEAST = 0.15  # of the numbers of both that are the same, for one to be tried


@dataclasses.dataclass
class Diagnosis:
    mistakes: list = dataclasses.field(default_factory=list)  # (name, its one line, where)
    changes: list = dataclasses.field(default_factory=list)  # (Changed, where)
    looking: str = ""  # how far the comparison is, if it isn't done


@dataclasses.dataclass
class Known:
    without: list  # checks that take long
    ours: dict  # what ours computes
    told: dict  # change -> Changed
    apart: dict  # variant -> what it computes otherwise
    turned: dict  # form -> what differs if it is computed through the other, without a mistake
    programs: dict  # variant -> the program that can make it
    seconds: int = behaviour.SECONDS  # of processor time that a run may take
    ours_long: dict = dataclasses.field(default_factory=dict)  # what ours computes in the checks that take long
    long: dict = dataclasses.field(default_factory=dict)  # variant that only these tell from ours -> what it computes otherwise
    long_seconds: int = 0

    def program(self, variant):
        return self.programs.get(variant.name) or next(iter(self.programs.values()))


def folder(chapter, part):
    return house.BUILD / "variants" / f"{chapter}_{part}"


def can(chapter, part):
    """Kernels have no variants: their checks take the stand-in's time."""
    return not house.is_kernel(chapter, part)


@functools.cache
def key(chapter, part):
    """What the variants depend on: our part, its wrong versions, the kinds of changes, and the program of the checks."""
    files = [house.ours(chapter, part), *sorted((house.ROOT / "tests/wrong" / chapter).glob("*.patch")),
             *(house.ROOT / "tests/wrong/forms" / chapter).glob(f"{part}.cpp"),
             *(pathlib.Path(__file__).with_name(name) for name in ("tokens.py", "changes.py", "variants.py", "behaviour.py"))]
    test = (house.BUILD / f"{chapter}_test").stat()
    return hashlib.sha256(b"\0".join([f"{test.st_size} {test.st_mtime_ns}".encode(), *(f.read_bytes() for f in files)])).hexdigest()[:16]


def known(chapter, part):
    """What is kept of the part's variants, or None if it isn't there or not of these sources."""
    try:
        kept = json.loads((folder(chapter, part) / "told.json").read_text())
        if kept.pop("key") != key(chapter, part):
            return None
        kept["told"] = {name: variants.Changed(**change) for name, change in kept["told"].items()}
        return Known(**kept)
    except (OSError, ValueError, KeyError):
        return None


def begin(*pairs):
    """Builds the checks of these parts and prepares their variants in the background, one part after the other."""
    wanted = [f"{chapter}/{part}" for chapter, part in pairs]
    if wanted and not os.environ.get("T2T_NO_VARIANTS"):
        subprocess.Popen(["nice", "-n", "19", sys.executable, __file__, *wanted], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, start_new_session=True)


def prepare(chapter, part):
    """Builds the checks, compiles the variants, runs each, and keeps what they compute. Another process that does the
    same goes first."""
    made = folder(chapter, part)
    made.mkdir(parents=True, exist_ok=True)
    with open(made / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        key.cache_clear()
        if not house.build(house.checks_of(chapter, part)) or not can(chapter, part) or known(chapter, part):
            return
        with tempfile.TemporaryDirectory(prefix="fresh-", dir=made.parent) as fresh:
            _tell_progress(made, "being compiled")
            right = variants.split_of(chapter, part)
            bodies, told = variants.changed_bodies(right)
            turned = variants.turned_bodies(chapter, part, right)
            bodies = variants.recorded(chapter, part, right) + bodies
            programs = _kept(made, variants.build(chapter, part, right, bodies, told, turned, fresh))
            if not programs:
                raise SystemExit(f"learn: the variants of {chapter} {part} do not build")
            kept = _computed(made, programs, sorted({form for _, form, _ in turned}))
            kept.told = {name: told[name] for name in programs if name in told}
            (made / "fresh.json").write_text(json.dumps(dataclasses.asdict(kept) | {"key": key(chapter, part)}))
            os.replace(made / "fresh.json", made / "told.json")


def _kept(made, programs):
    """Puts the programs into the part's folder."""
    places = {}
    for program in dict.fromkeys(programs.values()):
        places[program] = str(made / f"program_{len(places)}")
        subprocess.run(["strip", program], check=False)
        os.replace(program, places[program])
    return {name: places[program] for name, program in programs.items()}


def _computed(made, programs, forms):
    kept = Known([], {}, {}, {}, {}, programs)
    ours = next(iter(programs.values()))
    kept.without = behaviour.long_checks(behaviour.run(ours, seconds=60))
    began = time.monotonic()
    kept.ours = behaviour.read(behaviour.run(ours, without=kept.without, seconds=60))
    kept.seconds = math.ceil(3 * (time.monotonic() - began))
    until = time.monotonic() + MOST_SECONDS
    for i, (variant, facts) in enumerate(_each(map(variants.Variant, _scattered(programs)), kept), 1):
        if facts:
            kept.apart[variant.name] = facts
        _tell_progress(made, f"{i} of {len(programs)}")
        if time.monotonic() > until:
            break
    _compute_long(made, kept, i)
    kept.turned = {variant.form: facts for variant, facts in _each([variants.Variant("", form) for form in forms], kept)}
    return kept


def _compute_long(made, kept, tried):
    """What the variants compute in the checks that take long, of those that no other check tells from ours."""
    silent = [variants.Variant(name) for name in list(_scattered(kept.programs))[:tried] if name not in kept.apart]
    if not kept.without or not silent:
        return
    began = time.monotonic()
    kept.ours_long = behaviour.read(behaviour.run(next(iter(kept.programs.values())), only=kept.without, seconds=60))
    kept.long_seconds = math.ceil(3 * (time.monotonic() - began))
    until = time.monotonic() + MOST_SECONDS / 2
    for i, (variant, facts) in enumerate(_each(silent, kept, long=True), 1):
        if facts:
            kept.long[variant.name] = facts
        _tell_progress(made, f"{i} of {len(silent)}, in checks that take long")
        if time.monotonic() > until:
            break


def _scattered(names):
    """The recorded mistakes, and then the changes in an order in which some of each function come early."""
    changed = [name for name in names if name.startswith("change ")]
    return [name for name in names if not name.startswith("change ")] + [name for n in range(8) for name in changed[n::8]]


def _each(some, known_ones, long=False):
    """(variant, what it computes otherwise than ours), …; in the checks that take long, or in all others."""
    def run(variant):
        return variant, _apart(known_ones.program(variant), known_ones, variant, long)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            yield from pool.map(run, some)
        finally:
            pool.shutdown(cancel_futures=True)


def _apart(program, known_ones, variant=None, long=False):
    """What a program computes otherwise than ours."""
    if long:
        told = behaviour.run(program, variant, only=known_ones.without, seconds=known_ones.long_seconds)
        return behaviour.apart(behaviour.read(told), known_ones.ours_long)
    told = behaviour.run(program, variant, known_ones.without, known_ones.seconds)
    return behaviour.apart(behaviour.read(told), known_ones.ours)


def _tell_progress(made, text):
    (made / "progress").write_text(text)


def keep(chapter, part, program):
    """Keeps the program in which the reader's part is linked; where it is now."""
    kept = folder(chapter, part) / "theirs"
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(program, kept)
    return kept


def look(chapter, part, program):
    """What is known to compute what this program computes, in which the reader's part is linked."""
    known_ones = known(chapter, part)
    if known_ones is None:
        begin((chapter, part))
        known_ones = _wait(chapter, part)
    if known_ones is None:
        return Diagnosis(looking=_progress(chapter, part))
    told = behaviour.run(program, without=known_ones.without, seconds=known_ones.seconds)
    facts = behaviour.read(told)
    if known_ones.long and not behaviour.apart(facts, known_ones.ours):
        theirs = _apart(program, known_ones, long=True)
        alike = [variants.Variant(name) for name, apart in known_ones.long.items() if theirs and behaviour.agree(apart, theirs)]
        return _told(chapter, known_ones, alike)
    return compared(chapter, known_ones, facts)


def _wait(chapter, part):
    until = time.monotonic() + PATIENCE
    found = None
    while found is None and time.monotonic() < until and not os.environ.get("T2T_NO_VARIANTS"):
        house.at_work(f"comparing with variants of our part: {_progress(chapter, part)}")
        time.sleep(0.2)
        key.cache_clear()
        found = known(chapter, part)
    house.at_work("")
    return found


def _progress(chapter, part):
    path = folder(chapter, part) / "progress"
    return path.read_text() if path.exists() else "being compiled"


def compared(chapter, known_ones, facts):
    """The diagnosis of a part that computes these facts."""
    theirs = behaviour.apart(facts, known_ones.ours)
    waiting = behaviour.waiting(facts)
    theirs = _without(theirs, waiting, ())
    if not theirs:
        return Diagnosis()
    alike = [variants.Variant(name) for name, apart in known_ones.apart.items() if behaviour.agree(_without(apart, waiting, ()), theirs)]
    if not alike:
        alike = _turned_alike(known_ones, theirs, waiting)
    return _told(chapter, known_ones, alike)


def _without(facts, checks, keys):
    return {key: text for key, text in facts.items() if key.split(" | ")[0] not in checks and key not in keys}


def _turned_alike(known_ones, theirs, waiting):
    """The same in the other form or in both: first the recorded mistakes, then the changes that have most of these numbers
    in any form."""
    values = {(key.split(" | ")[0], text) for key, text in theirs.items()}

    def likeness(name):
        facts = known_ones.apart[name]
        common = sum((key.split(" | ")[0], text) in values or (key in theirs and behaviour.same(text, theirs[key])) for key, text in facts.items())
        return common / (len(facts) + len(theirs) - common)
    like = {name: likeness(name) for name in known_ones.apart}
    likely = sorted((name for name in like if like[name] > LEAST), key=lambda name: (-like[name], name))
    recorded = [name for name in known_ones.apart if name not in known_ones.told]
    changed = [name for name in likely if name in known_ones.told][:TRIED]
    return next(filter(None, (_alike_in_forms(known_ones, names, theirs, waiting) for names in (recorded, changed))), [])


def _alike_in_forms(known_ones, names, theirs, waiting):
    some = [variants.Variant(name, form, only) for form in known_ones.turned for name in names for only in (False, True)]
    return [variant for variant, facts in _each(some, known_ones)
            if behaviour.agree(*(_without(one, waiting, known_ones.turned[variant.form]) for one in (facts, theirs)))]


def _told(chapter, known_ones, alike):
    says = {name: line for name, _, line in wrong.patches(chapter)}
    mistakes = {variant.name: (variant.name, says[variant.name], _where(variant)) for variant in reversed(alike) if variant.name in says}
    by_form = {}
    for variant in alike:
        if variant.name in known_ones.told:
            by_form.setdefault(variant.form, []).append((known_ones.told[variant.name], _where(variant)))
    # A mistake in both forms is found from either of them: it is told from the one in which it is in fewer places.
    return Diagnosis(list(mistakes.values()), min(map(_simplest, by_form.values()), key=len, default=[]))


def _where(variant):
    if not variant.form:
        return ""
    return f"in the {'row form' if variant.form == 'rows' else 'formula'} alone" if variant.only else "in both forms"


def _simplest(changes):
    """One change of each statement, the shortest."""
    found = {}
    for change, form in sorted(changes, key=lambda one: abs(len(one[0].was) - len(one[0].then)) + len(one[0].then)):
        found.setdefault((change.function, change.line), (change, form))
    return list(found.values())


def main(words):
    for word in words:
        prepare(*word.split("/"))


if __name__ == "__main__":
    main(sys.argv[1:])
