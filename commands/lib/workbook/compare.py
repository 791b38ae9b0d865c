"""./learn compare: the reader's part beside ours, its text and its speed."""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import check
import house
import mine
import progress
import source


def main():
    parser = argparse.ArgumentParser(prog="./learn compare")
    parser.add_argument("what", nargs="+", metavar="NN [part ...]")
    pairs = check.parts(parser.parse_args().what)
    for chapter, part in pairs:
        compare_text(chapter, part)
    for chapter in dict.fromkeys(chapter for chapter, _ in pairs):
        compare_speed(chapter)


def compare_text(chapter, part):
    theirs = {}
    for f in source.functions(house.theirs(chapter, part).read_text(errors="replace")):
        theirs.setdefault(f.name, []).append(f)
    for our in source.functions(house.ours(chapter, part).read_text()):
        their = theirs[our.name].pop(0) if theirs.get(our.name) else None
        print(house.bold(f"{our.name}: yours") if their else f"{our.name}: yours is missing")
        if their:
            tell(their)
        print(house.bold(f"{our.name}: ours"))
        tell(our)


def tell(function):
    for line in f"{function.signature} {function.body}".splitlines():
        print(f"  {line}")
    print()


def compare_speed(chapter):
    """Both benches, ours and theirs in turn, twice: the better time of each line counts."""
    passing = [part for part in house.written(chapter) if progress.passes(chapter, part)]
    if not passing:
        return house.say(f"Speed is compared once a part of {chapter} passes: ./learn check {chapter[:2]}")
    mine.use([(chapter, part) for part in passing])
    programs = {"yours": f"{chapter}_bench_mine", "ours": f"{chapter}_bench"}
    if not house.build(*programs.values()):
        house.die("the benches do not build")
    times = {}
    for _ in range(2):
        for whose, program in programs.items():
            for i, line in enumerate(bench(program, chapter)):
                row = times.setdefault(i, {"what": line["what"], "limit": line["limit"], "threads": line["threads"]})
                for key, seconds in ((whose, line["seconds"]), ("limit_seconds", line["limit_seconds"])):
                    row[key] = min(row.get(key, seconds), seconds)
    print(house.bold(f"Speed of {', '.join(passing)}: your time over ours, and beside a limit or other work"))
    for row in times.values():
        print(f"  {row['what'][:44]:<44} x{row['threads']} {row['yours'] / row['ours']:6.2f} of ours")
        print(f"{'':6}{text_of(row['yours'])}, ours {text_of(row['ours'])}; {row['limit']}, {text_of(row['limit_seconds'])}")


def bench(program, chapter):
    with tempfile.TemporaryDirectory(prefix="t2t-bench-") as folder:
        record = pathlib.Path(folder, "bench.json")
        run = subprocess.run([house.BUILD / program, "--json", record], env=os.environ, cwd=house.ROOT,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if run.returncode != 0:
            house.die(f"{program}: {run.stderr.strip()}")
        return json.loads(record.read_text())[chapter]["lines"]


def text_of(seconds):
    unit, factor = ("us", 1e6) if seconds < 1e-3 else ("ms", 1e3) if seconds < 1 else ("s", 1)
    return f"{seconds * factor:.3g} {unit}"


if __name__ == "__main__":
    main()
