#!/usr/bin/env python3
"""How often ./learn check finds a planted mistake. Each mistake is judged as a reader's part would be.

    naming.py OUT [--every N] FOLDER ... BUILD    plants mistakes, and adds a line for each to the file OUT
    naming.py OUT --weave BUILD                   writes docs/recorded/naming.json from OUT, for the table of docs/workbook.md

FOLDER is tests/wrong/NN_name, whose mistakes are recorded, or tests/workbook/invented/NN_name, of which check knows nothing: there
NAME.patch is a mistake in our source, and PART.NAME.cpp a part that is written otherwise, with WRONG in each line that is wrong.
What stands in OUT is not measured again.
"""
import argparse
import collections
import dataclasses
import difflib
import functools
import json
import os
import pathlib
import statistics
import time

from learner import ROOT  # first: it says where the modules below are

from workbook import book, checks, written
from workbook.programs import switches
from workbook.source import cpp
from workbook.verdict import diagnosis, judge


@dataclasses.dataclass
class Mistake:
    file: pathlib.Path
    chapter: str
    part: str

    @classmethod
    def of(cls, file):
        if file.suffix == ".cpp":
            return cls(file, file.parent.name, file.name.partition(".")[0])
        part = pathlib.Path(switches.part_of(file))
        return cls(file, part.parts[1], part.stem)

    @property
    def name(self):
        return str(self.file.relative_to(ROOT / "tests"))

    @property
    def can_be_planted(self):
        is_header = self.file.suffix == ".patch" and not switches.file_of(self.file).endswith(".cpp")
        return not is_header and self.chapter in book.chapters() and self.part in book.parts_to_write(self.chapter)

    @functools.cached_property
    def text(self):
        if self.file.suffix == ".cpp":
            return self.file.read_text()
        return switches.patched(str(book.ours(self.chapter, self.part).relative_to(ROOT)), self.file)

    @functools.cached_property
    def wrong_lines(self):
        """The numbers of the lines that are wrong, or between which some are missing."""
        lines = self.text.splitlines()
        if self.file.suffix == ".cpp":
            return {n for n, line in enumerate(lines, 1) if "WRONG" in line}
        ours, found = book.ours(self.chapter, self.part).read_text().splitlines(), set()
        for tag, _, _, first, after in difflib.SequenceMatcher(None, ours, lines, autojunk=False).get_opcodes():
            if tag != "equal":
                found |= set(range(first + 1, after + 1)) or {first, first + 1}
        return found

    def wrong_functions(self):
        """The functions that have such a line."""
        spans = {f.name: range(f.line, f.line + f.signature.count("\n") + f.body.count("\n") + 1) for f in cpp.definitions(self.text)}
        return {name for name, lines in spans.items() if self.wrong_lines & set(lines)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1, help="only every so many of each folder")
    parser.add_argument("--weave", action="store_true")
    flags = parser.parse_args()
    if flags.weave:
        return weave([json.loads(line) for line in flags.out.read_text().splitlines()])
    known = flags.out.read_text() if flags.out.exists() else ""
    for folder in flags.folders:
        files = sorted([*folder.resolve().glob("*.patch"), *folder.resolve().glob("*.cpp")])
        some = [one for one in map(Mistake.of, files) if one.can_be_planted]
        for one in some[::flags.every]:
            if f'"{one.name}"' not in known:
                with open(flags.out, "a") as out:
                    out.write(json.dumps(measured(one)) + "\n")


def measured(mistake):
    chapter, part = mistake.chapter, mistake.part
    text = written.Text(chapter, part, {f"{chapter}/{book.theirs(chapter, part).name}": mistake.text.encode()})
    found, began = {"mistake": mistake.name, "part": f"{chapter}/{part}"}, time.monotonic()
    with written.built([text], f"mine_{chapter}_{part}", book.checks_of(chapter, part)) as build:
        if not build.good:
            return found | {"verdict": "does not build"}
        ours = book.BUILD / book.checks_of(chapter, part)
        verdict = judge.of_program(chapter, part, build.program, checks.names(ours), ours)
        found |= {"verdict": verdict.word, "seconds": since(began)}
        if verdict.word in ("fails", "ended") and not book.is_kernel(chapter, part):
            verdict.program, verdict.text = diagnosis.keep(chapter, part, build.program), text
            found |= by_records(verdict, mistake) | by_exchange(verdict, mistake)
    print(found, flush=True)
    return found


def since(began):
    return round(time.monotonic() - began, 1)


def by_records(verdict, mistake):
    """Whether a record names it; another record may be the same mistake, which a person must say."""
    names = [one.name for one in verdict.alike]
    return {"records": "silent" if not names else "named" if mistake.file.stem in names else "another", "names": names}


def by_exchange(verdict, mistake):
    """What the exchange of lines shows: the statement that is wrong, or its function, or something else."""
    began = time.monotonic()
    found, lines = diagnosis.look(verdict), mistake.wrong_lines
    shown = [one for exchange in found for one in exchange]
    hit = [one for one in shown if any(one.first - 1 <= line <= one.last + 1 for line in lines)]
    used = {name for one in shown for name in one.uses} & mistake.wrong_functions()
    said = ("silent" if not found else "too many" if len(found) > diagnosis.TOLD else "statement" if any(one.kind != "function" for one in hit)
            else "function" if hit or used else "elsewhere")
    return {"exchange": said, "shown": [[one.kind, one.function, one.first, one.last, *one.uses] for one in shown], "seconds of exchange": since(began)}


def weave(measured):
    """Writes the table of what was found."""
    sets = {"known ones, by their records": [], "known ones, as if they were not recorded": [], "invented, in our source": [],
            "invented, in a source written otherwise": []}
    for one in measured:
        if "records" in one and one["mistake"].startswith("wrong/"):
            sets["known ones, by their records"].append({"another": "wrong"}.get(one["records"], one["records"]))
            sets["known ones, as if they were not recorded"].append(one["exchange"])
        elif "records" in one:
            own = one["mistake"].endswith(".cpp")
            sets["invented, in a source written otherwise" if own else "invented, in our source"].append("named" if one["records"] == "another" else one["exchange"])
    rows = []
    for name, said in sets.items():
        count = collections.Counter(said)
        rows.append([name, *map(str, (len(said), count["named"], count["statement"], count["function"],
                                      count["silent"] + count["too many"], count["wrong"] + count["elsewhere"]))])
    seconds = sorted(one["seconds of exchange"] for one in measured if "seconds of exchange" in one)
    passed = sum(one["verdict"] == "passes" for one in measured)
    note = (f"The exchange took {statistics.median(seconds):.1f} s (median), and {seconds[len(seconds) * 9 // 10]:.1f} s or less in nine of ten. "
            f"Invented mistakes that no check noticed, and that are not in the table: {passed}. Measured by `tests/workbook/naming.py` on "
            f"{processor()}, while other programs ran.")
    columns = ["mistakes", "planted", "named", "statement shown", "function shown", "not found", "wrong"]
    (ROOT / "docs/recorded/naming.json").write_text(json.dumps({"columns": columns, "rows": rows, "note": note}, indent=1) + "\n")


def processor():
    names = [line.partition(": ")[2] for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} threads" if names else "an unnamed processor"


if __name__ == "__main__":
    main()
