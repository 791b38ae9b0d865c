"""What is known of the variants of a part (variants.py): what each computes otherwise than ours. prepare_variants.py finds it out
once and keeps it in build/release/variants, for diagnosis.py, which compares the reader's part with it.
"""
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib

import behaviour
import house
import variants


@dataclasses.dataclass
class Known:
    quick: list  # checks that call the part and take a short time
    more: list  # other short ones, by which what is found is confirmed
    slow: list  # all that aren't quick
    ours: dict  # what ours computes
    told: dict  # change -> Changed
    apart: dict  # variant -> what it computes otherwise
    programs: dict  # variant -> the program that can make it
    seconds: int = behaviour.SECONDS  # of processor time that a run may take
    ours_long: dict = dataclasses.field(default_factory=dict)  # what ours computes in the slow checks
    long: dict = dataclasses.field(default_factory=dict)  # variant that only these tell from ours -> what it computes otherwise
    long_seconds: int = 0

    def program(self, variant):
        return self.programs.get(variant.name) or next(iter(self.programs.values()))

    def run_each(self, some, long=False):
        """(variant, what it computes otherwise than ours), …; in the checks that take long, or in all others."""
        def run(variant):
            return variant, self.run(self.program(variant), variant, long)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                yield from pool.map(run, some)
            finally:
                pool.shutdown(cancel_futures=True)

    def run(self, program, variant=None, long=False):
        """What a program computes otherwise than ours."""
        if long:
            told = behaviour.run(program, variant, only=self.slow, seconds=self.long_seconds)
            return behaviour.apart(behaviour.read(told), self.ours_long)
        return behaviour.apart(self.facts(program, variant), self.ours)

    def facts(self, program, variant=None, more=False):
        """What a program computes in the quick checks, or in those by which that is confirmed."""
        seconds = self.seconds * (4 if more else 1)
        return behaviour.read(behaviour.run(program, variant, only=self.more if more else self.quick, seconds=seconds))


def of(chapter, part):
    """What is kept of the part's variants, or None if it isn't there or not of these sources."""
    try:
        kept = json.loads((folder(chapter, part) / "told.json").read_text())
        if kept.pop("key") != key(chapter, part):
            return None
        kept["told"] = {name: variants.Changed(**change) for name, change in kept["told"].items()}
        return Known(**kept)
    except (OSError, ValueError, KeyError):
        return None


def keep(chapter, part, known):
    """Keeps what is known of the part's variants, as a whole or not at all."""
    fresh = folder(chapter, part) / "fresh.json"
    fresh.write_text(json.dumps(dataclasses.asdict(known) | {"key": key(chapter, part)}))
    os.replace(fresh, fresh.with_name("told.json"))


def folder(chapter, part):
    return house.BUILD / "variants" / f"{chapter}_{part}"


@functools.cache
def key(chapter, part):
    """What the variants depend on: our part, its wrong versions, the kinds of changes, and the program of the checks."""
    here = pathlib.Path(__file__).parent
    files = [house.ours(chapter, part), *sorted((house.ROOT / "tests/wrong" / chapter).glob("*.patch")),
             *(here / name for name in ("tokens.py", "variants.py", "behaviour.py")), *sorted(here.glob("change*.py"))]
    test = (house.BUILD / f"{chapter}_test").stat()
    return hashlib.sha256(b"\0".join([f"{test.st_size} {test.st_mtime_ns}".encode(), *(f.read_bytes() for f in files)])).hexdigest()[:16]


def tell_progress(chapter, part, text):
    (folder(chapter, part) / "progress").write_text(text)


def progress(chapter, part):
    """How far the part's variants are."""
    path = folder(chapter, part) / "progress"
    return path.read_text() if path.exists() else "being compiled"
