"""Compiles the variants of a part (variants.py) and runs each once, so that diagnosis.py can compare what the reader's part
computes with what they compute. ./learn start and check begin it in the background, as a program of its own.
"""
import contextlib
import fcntl
import functools
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

import behaviour
import calls
import house
import known_variants
import variants

MOST_SECONDS = 300  # for running the variants of a part


def begin(*pairs):
    """Builds the checks of these parts and prepares their variants in the background, one part after the other."""
    wanted = [f"{chapter}/{part}" for chapter, part in pairs]
    if wanted and not os.environ.get("T2T_NO_VARIANTS"):
        subprocess.Popen([sys.executable, __file__, *wanted], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, start_new_session=True)


def end(chapter, part):
    """Ends what begin began for a part, if it still runs: nobody asks which mistake a part makes that passes."""
    made = known_variants.folder(chapter, part)
    with contextlib.suppress(OSError, ValueError):  # it was never begun, or has just ended
        if _is_locked(made / "lock"):
            os.killpg(int((made / "process").read_text()), signal.SIGTERM)


def _is_locked(path):
    with open(path) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def main(words):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for word in words:
        prepare(*word.split("/"), in_background=True)


def prepare(chapter, part, in_background=False):
    """Builds the checks, compiles the variants, runs each, and keeps what they compute. Another process that does the
    same goes first."""
    made = known_variants.folder(chapter, part)
    made.mkdir(parents=True, exist_ok=True)
    with open(made / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (made / "process").write_text(str(os.getpid()) if in_background else "")
        known_variants.key.cache_clear()
        if not house.build(house.checks_of(chapter, part)) or not variants.exist(chapter, part) or known_variants.of(chapter, part):
            return
        if in_background:
            os.nice(19)  # not before, since ./learn check may wait for the build
        with tempfile.TemporaryDirectory(prefix="fresh-", dir=made.parent) as fresh:
            known_variants.tell_progress(chapter, part, "being compiled")
            programs, told = _built(chapter, part, fresh)
            programs = _moved(programs, made)
            if not programs:
                raise SystemExit(f"learn: the variants of {chapter} {part} do not build")
            known = _computed(programs, list(calls.of(chapter, part)), functools.partial(known_variants.tell_progress, chapter, part))
            known.told = {name: told[name] for name in programs if name in told}
            known_variants.keep(chapter, part, known)


def _built(chapter, part, fresh):
    """The variants' programs, and what each change is."""
    right = variants.split_of(chapter, part)
    bodies, told = variants.changed_bodies(right)
    bodies = variants.recorded(chapter, part, right) + bodies
    return variants.build(chapter, part, right, bodies, told, fresh), told


def _moved(programs, made):
    """Puts the programs into the part's folder."""
    places = {}
    for program in dict.fromkeys(programs.values()):
        places[program] = str(made / f"program_{len(places)}")
        subprocess.run(["strip", program], check=False)
        os.replace(program, places[program])
    return {name: places[program] for name, program in programs.items()}


def _computed(programs, checks, tell_progress):
    """What ours computes in these checks, and what each variant computes otherwise, as far as there is time."""
    known = known_variants.Known([], [], [], {}, {}, {}, programs)
    ours = next(iter(programs.values()))
    known.quick, known.more, long = behaviour.by_time(checks, behaviour.run(ours, only=checks, seconds=60))
    known.slow = known.more + long
    known.ours, known.seconds = _ours(ours, known.quick)
    some = [variants.Variant(name) for name in _scattered(programs)]
    known.apart, tried = _apart(known, some, MOST_SECONDS, lambda i: tell_progress(f"{i} of {len(some)}"))
    silent = [variant for variant in some[:tried] if variant.name not in known.apart]
    if known.slow and silent:
        known.ours_long, known.long_seconds = _ours(ours, known.slow)
        known.long, _ = _apart(known, silent, MOST_SECONDS / 2, long=True,
                               tell=lambda i: tell_progress(f"{i} of {len(silent)}, in checks that take long"))
    return known


def _ours(program, checks):
    """What ours computes in these checks, and how many seconds a variant may take for them."""
    began = time.monotonic()
    facts = behaviour.read(behaviour.run(program, only=checks, seconds=60))
    return facts, math.ceil(3 * (time.monotonic() - began))


def _apart(known, some, most_seconds, tell, long=False):
    """{variant: what it computes otherwise than ours}, without those that compute the same, and how many were run in time."""
    until, found = time.monotonic() + most_seconds, {}
    for tried, (variant, facts) in enumerate(known.run_each(some, long), 1):
        if facts:
            found[variant.name] = facts
        tell(tried)
        if time.monotonic() > until:
            break
    return found, tried


def _scattered(names):
    """The recorded mistakes, and then the changes in an order in which some of each function come early."""
    changed = [name for name in names if name.startswith("change ")]
    return [name for name in names if not name.startswith("change ")] + [name for n in range(8) for name in changed[n::8]]


if __name__ == "__main__":
    main(sys.argv[1:])
