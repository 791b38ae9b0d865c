"""The book's wrong versions: their patches, the programs that make them, and what is recorded of them.

tests/wrong/NN_name/failing_checks.json holds, for each wrong version of a chapter's parts, the checks that it fails and
the first numbers that each of them reports, first a check that rejects it alone; and its key (keys.py).
./learn test NN --record writes it anew.
"""
import functools
import json
import pathlib
import re

from workbook import plan
from workbook.book import ROOT


def patches(chapter: str):
    """[(name, part, its one line), ...] of a chapter's wrong versions."""
    found = []
    for patch in sorted((ROOT / "tests/wrong" / chapter).glob("*.patch")):
        part = pathlib.Path(plan.switches.part_of(patch)).stem
        found.append((patch.stem, part, patch.read_text().splitlines()[0]))
    return found


def lines_changed(chapter: str, mistake: str):
    """The lines of our part that a wrong version takes away or replaces, but for short ones like a brace."""
    text = (ROOT / "tests/wrong" / chapter / f"{mistake}.patch").read_text()
    return [line for line in re.findall(r"^-(?!-- )(.*)$", text, re.M) if len(line.strip()) > 2]


def edits(chapter: str, mistake: str):
    """(part, [(lines that a wrong version takes away, lines in their place), ...]), without blanks at their ends and empty lines."""
    text = (ROOT / "tests/wrong" / chapter / f"{mistake}.patch").read_text()
    part, hunks = text.partition("+++ b/")[2].split("\n", 1)
    groups = re.findall(r"((?:^-.*\n?)*)((?:^\+.*\n?)*)", hunks, re.M)
    return part, [tuple(tuple(filter(None, (line[1:].strip() for line in some.splitlines()))) for some in group) for group in groups if any(group)]


def program(chapter: str, mistake: str, part: str):
    """The test program that makes this mistake when T2T_WRONG names it."""
    return f"{chapter}_{mistake}" if mistake in plan.of(chapter).alone else f"{chapter}_wrong_{part}"


def record_of(chapter: str):
    return ROOT / "tests/wrong" / chapter / "failing_checks.json"


@functools.cache
def record(chapter: str):
    """{"recorded": key of the checks, "checks": [text, ...], "mistakes": {name: {number of a check: numbers}}, "keys": {name: key}}"""
    path = record_of(chapter)
    return {"recorded": "", "checks": [], "mistakes": {}, "keys": {}, **(json.loads(path.read_text()) if path.exists() else {})}


def write(chapter: str, fresh) -> None:
    texts = [f"  {json.dumps(site, ensure_ascii=False)}" for site in fresh["checks"]]
    fails = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in fresh["mistakes"].items()]
    keys_of = [f"  {json.dumps(name)}: {json.dumps(key)}" for name, key in fresh["keys"].items()]
    parts = [f'{name}: {ends[0]}\n' + ",\n".join(lines) + f"\n{ends[1]}" for name, ends, lines in
             (('"checks"', "[]", texts), ('"mistakes"', "{}", fails), ('"keys"', "{}", keys_of))]
    record_of(chapter).write_text("{" + ", ".join([f'"recorded": "{fresh["recorded"]}"', *parts]) + "}\n")
    record.cache_clear()
