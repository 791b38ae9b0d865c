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
import written


def main():
    parser = argparse.ArgumentParser(prog="./learn compare")
    parser.add_argument("what", nargs="+", metavar="NN [part ...]")
    pairs = check.parts(parser.parse_args().what)
    for chapter, part in pairs:
        compare_text(chapter, part)
    for chapter in dict.fromkeys(chapter for chapter, _ in pairs):
        compare_speed(chapter)


def compare_text(chapter, part):
    try:
        theirs, ours = written.read(chapter, part).own, house.ours(chapter, part).read_text()
    except written.Unreadable as error:
        house.die(str(error))
    found = {}
    for f in source.functions(theirs):
        found.setdefault(f.name, []).append(f)
    for our in source.functions(ours):
        their = found[our.name].pop(0) if found.get(our.name) else None
        tell(f"{our.name}: yours", source.whole(theirs, their) if their else "(missing)")
        tell(f"{our.name}: ours", source.whole(ours, our))


def tell(title, text):
    print(house.bold(title))
    for line in text.splitlines():
        print(f"  {line}")
    print()


def compare_speed(chapter):
    """The chapter's bench with their parts and with ours, one after the other."""
    passing = [part for part in house.written(chapter) if progress.passes(chapter, part)]
    if not passing:
        return house.say(f"Speed is compared once a part passes as it is now: ./learn check {chapter[:2]}")
    programs = {"yours": f"{chapter}_bench_mine", "ours": f"{chapter}_bench"}
    mine.build([(chapter, part) for part in passing], *programs.values())
    lines = {}
    for whose, program in programs.items():
        house.at_work(f"timing {whose}")
        lines[whose] = bench(program, chapter)
    house.at_work("")
    print(house.bold(f"Speed of {', '.join(passing)}: your time over ours, and compared with a limit or other work"))
    for their, ours in zip(lines["yours"], lines["ours"]):
        threads = f"{ours['threads']} thread{'s' * (ours['threads'] > 1)}"
        print(f"  {their['seconds'] / ours['seconds']:5.2f}  {ours['what'][:50]}, {threads}")
        print(f"{'':9}{text_of(their['seconds'])}, ours {text_of(ours['seconds'])}; "
              f"{ours['limit'][:28]} {text_of(ours['limit_seconds'])}")


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
