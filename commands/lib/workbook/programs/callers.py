"""Which checks call a part, and which of its functions each of them calls.
tests/workbook/calls.json keeps it, with the check first from which a mistake is easiest to see: one
that calls few functions of the part, and of those one that takes a short time. So a score counts no
other checks, and of those by hand, which are told before others, the easiest comes first.
./learn test NN --record finds it anew.
"""
import functools
import json
import math
import os
import pathlib
import re
import tempfile

from workbook import book, checks, written
from workbook.programs import switches, trial
from workbook.source import cpp, skeleton

FILE = book.ROOT / "tests/workbook/calls.json"
SHORT = 2e-4  # seconds: checks that are shorter, or within a factor of 8, keep the file's order
LATE = ["unusual", "refusals", "allocation"]  # kinds of checks that are told after all others


@functools.cache
def read():
    """"NN_name/PART" -> {check: names of functions}"""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def of(chapter: str, part: str):
    return read().get(f"{chapter}/{part}", {})


def in_order_of_ease(chapter: str, part: str, failures):
    """The failures with those first that are easy to follow."""
    order = {check: i for i, check in enumerate(of(chapter, part))}

    def ease(failure: checks.Failure):
        late = LATE.index(failure.kind) + 1 if failure.kind in LATE else 0
        return late, failure.kind != "by hand", order.get(failure.check, len(order))
    return sorted(failures, key=ease)


def renew(chapter: str) -> None:
    """Records the checks of a chapter's parts; of parts that are gone nothing is kept. A check has
    a line."""
    known = {f"{name}/{part}": found(name, part) if name == chapter else of(name, part)
             for name in book.chapters() for part in book.parts_to_write(name)}
    texts = []
    for part, some in known.items():
        lines = (f" {json.dumps(name, ensure_ascii=False)}: {json.dumps(functions)}"
                 for name, functions in some.items())
        texts.append(json.dumps(part) + ": {\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{" + ",\n".join(texts) + "}\n")
    read.cache_clear()


def found(chapter: str, part: str):
    """{check: names of functions}: of a kernel all functions of the file, since its program can't
    note its calls."""
    if book.is_kernel(chapter, part):
        functions = [f.name for f in cpp.to_write(book.ours(chapter, part).read_text())]
        return {check: functions for check in _without_the_part(chapter, part)}
    with tempfile.TemporaryDirectory(prefix="t2t-calls-") as folder:
        made = pathlib.Path(folder, f"{part}.cpp")
        made.write_text(noting_calls(switches.of_part(chapter, part)))
        program = trial.program(chapter, part, made)
        if program is None:
            book.die(f"{chapter} {part} does not build if its functions note their calls")
        told = "".join(trial.told(program, suite, 300) for suite in (checks.QUICK, checks.SLOW))
    noted = re.findall(r"^check (.*)\n(?:(?!calls |check |took ).*\n)*calls (.*)\ntook (.*)$",
                       told, re.M)
    noted.sort(key=lambda one: (len(one[1].split()),
                                math.floor(math.log(max(float(one[2]), SHORT) / SHORT, 8))))
    return {check: functions.split() for check, functions, _ in noted}


def noting_calls(split):
    """The source, in which each function notes that it is called, but for those that the compiler
    may run."""
    text = '#include "support/wrong_version.hpp"\n'
    for between, one in zip(split.between, split.functions):
        notes = f'{{ t2t::note_call("{one.name}"); {one.body} }}'
        text += between + (one.body if one.may_run_in_compiler else notes)
    return text + split.between[-1]


def _without_the_part(chapter: str, part: str):
    """The checks that fail with the part as ./learn start writes it."""
    text, name = skeleton.of(chapter, part).encode(), book.ours(chapter, part).name
    files = {f"{chapter}/{name}": text}
    with written.built([written.Text(chapter, part, files)], f"mine_{chapter}_{part}") as build:
        if not build.good:
            book.die(f"{chapter} {part} does not build as ./learn start writes it")
        result = checks.run(build.program, os.environ)
    return [check for check in result.checks if check in {*result.failed, result.running}]
