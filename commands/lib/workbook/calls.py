"""Which checks call a part: those that fail while none of its functions is written. tests/workbook/calls.json keeps
their names, so that a score counts no others; ./learn test NN --record finds them anew."""
import functools
import json
import os

import checks
import house
import source
import written

FILE = house.ROOT / "tests/workbook/calls.json"


@functools.cache
def read():
    """"NN_name/PART" -> names of checks"""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def of(chapter, part):
    return read().get(f"{chapter}/{part}", [])


def renew(chapter):
    """Records the checks of a chapter's parts; of parts that are gone nothing is kept."""
    known = {f"{name}/{part}": of(name, part) for name in house.chapters() for part in house.parts_to_write(name)}
    known |= {f"{chapter}/{part}": found(chapter, part) for part in house.parts_to_write(chapter)}
    FILE.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    read.cache_clear()


def found(chapter, part):
    """The names of the checks that fail with the part as ./learn start writes it, in their order."""
    ours = house.ours(chapter, part)
    text = source.skeleton(ours.name, ours.read_text(), house.header(chapter, part)).encode()
    with written.built([written.Text(chapter, part, {f"{chapter}/{ours.name}": text})], f"mine_{chapter}_{part}") as build:
        if not build.good:
            house.die(f"{chapter} {part} does not build as ./learn start writes it")
        names = sum(checks.names(build.program), [])
        failed = _failing(build.program, names)
    return [name for name in names if name in failed]


def _failing(program, names):
    """A check that ends the program fails, and those after it are run again without it."""
    failed = set()
    while names:
        result = checks.run_some(program, os.environ, True, checks.only(names), names)
        if not result.checks:
            house.die(f"{program} runs no check: {result.ended}")
        failed |= {f.check for f in result.failures} | set(result.failed) | {result.running}
        names = result.unreached
    return failed
