"""The book's wrong versions: their patches, the programs that make them, and what is recorded of
them.

tests/wrong/NN_name/failing_checks.json holds, for each wrong version of a chapter's parts, the
checks that it fails and the first numbers that each of them reports, first a check that rejects it
alone; and its key (keys.py). ./learn test NN --record writes it anew.
"""
import functools
import json
import pathlib
import re

from workbook.programs import plan


def patches(chapter: str):
    """[(name, part, its one line), ...] of a chapter's wrong versions."""
    return [(patch.stem, pathlib.Path(plan.switches.part_of(patch)).stem,
             patch.read_text().splitlines()[0]) for patch in plan.patches_in(chapter)]


def lines_changed(chapter: str, mistake: str):
    """The lines of our part that a wrong version takes away or replaces, but for short ones like a
    brace."""
    text = (plan.FOLDERS / chapter / f"{mistake}.patch").read_text()
    return [line for line in re.findall(r"^-(?!-- )(.*)$", text, re.M) if len(line.strip()) > 2]


def program(chapter: str, mistake: str, part: str):
    """The test program that makes this mistake when T2T_WRONG names it."""
    alone = mistake in plan.of(chapter).alone
    return f"{chapter}_{mistake}" if alone else f"{chapter}_wrong_{part}"


@functools.cache
def record(chapter: str):
    """{"recorded": key of the checks, "checks": [text, ...],
    "mistakes": {name: {number of a check: numbers}}, "keys": {name: key}}"""
    path = plan.FOLDERS / chapter / "failing_checks.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    return {"recorded": "", "checks": [], "mistakes": {}, "keys": {}, **known}


def write(chapter: str, fresh) -> None:
    """Writes a record, a line for each check, mistake and key."""
    def lines(some):
        return ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in some.items())
    checks = ",\n".join(f"  {json.dumps(site, ensure_ascii=False)}" for site in fresh["checks"])
    (plan.FOLDERS / chapter / "failing_checks.json").write_text(
        f'{{"recorded": "{fresh["recorded"]}", "checks": [\n{checks}\n], '
        f'"mistakes": {{\n{lines(fresh["mistakes"])}\n}}, '
        f'"keys": {{\n{lines(fresh["keys"])}\n}}}}\n')
    record.cache_clear()
