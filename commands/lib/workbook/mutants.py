"""./learn mutants: which small changes of our own parts the checks notice, and how.

universalmutator changes one operator or number of a line at a time. A few such mutants of each file are drawn,
built in the place of the file, and run through the chapter's checks.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import subprocess
import tempfile

import checks
import graph
import house
import source

RULES = ["universal.rules", "c_like.rules", "cpp.rules"]
WAYS = ["assertion", "exception", "crash", "time-out", "survives"]


@dataclasses.dataclass
class Mutant:
    file: pathlib.Path
    line: int
    was: str
    now: str
    way: str = ""


def main():
    parser = argparse.ArgumentParser(prog="./learn mutants")
    parser.add_argument("chapters", nargs="*", metavar="NN")
    parser.add_argument("--each", type=int, default=4, metavar="N", help="mutants of each file (default 4)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", help="this file of the chapter alone: rms_norm.cpp")
    flags = parser.parse_args()
    if flags.each < 1:
        house.die(f"--each: wanted at least 1, got {flags.each}")
    names = [house.chapter(word) for word in flags.chapters] or [c for c in house.chapters() if house.parts_to_write(c)]
    if not house.build(*(test for name in names for test in tests_of(name))):
        house.die("the checks do not build")
    all_tried = []
    for name in names:
        for file in files_of(name, flags.file):
            tried = try_file(name, file, flags.each, flags.seed)
            tell_file(name, file, tried)
            all_tried += tried
    tell_all(all_tried)


def tests_of(name):
    """The programs of a chapter's checks: a chapter with kernels has one more."""
    return [f"{test}_test" for test in (name, f"{name}_kernels") if (house.ROOT / f"tests/{test}_test.cpp").exists()]


def files_of(name, only):
    """The sources of the chapter's library."""
    files = [pathlib.Path(one["file"]) for output, one in graph.commands().items() if f"/{name}_parts.dir/" in output]
    found = sorted(f for f in files if only in (None, f.name))
    if not found:
        house.die(f"{name} has no file {only}; it has: {', '.join(sorted(f.name for f in files))}")
    return found


def candidates(file):
    """Every mutant of the file's functions: not of comments, messages or what is outside of any function.

    Nor of a tensor's number of axes: such a mutant builds only where it writes anywhere in memory. Nor of ++ into
    +-, after which a loop does not count."""
    from universalmutator import mutator
    text = file.read_text()
    bare = source.without_comments(text).splitlines()
    inside = {n for f in source.definitions(text) for n in range(f.line, f.line + f.signature.count("\n") + f.body.count("\n") + 1)}
    with contextlib.redirect_stdout(None):
        made = mutator.mutants_regexp(text.splitlines(keepends=True), ruleFiles=RULES, ignorePatterns=[])
    lines = text.splitlines()
    found = {}
    for line, now, *_ in made:
        now = now.rstrip("\n")
        code = source.without_comments(now + "\n").rstrip()
        if "\n" not in now and line in inside and _told_apart(code) != _told_apart(bare[line - 1]) and not now.lstrip().startswith("//"):
            found[line, code] = Mutant(file, line, lines[line - 1].strip(), now)
    return list(found.values())


def _told_apart(code):
    for what, replaced in [(r"\b(Tensor|normal)<[^<>]*>", r"\1<>"), (r"[-+]{2}", "++"), (r'"(\\.|[^"\\])*"', '""')]:
        code = re.sub(what, replaced, code)
    return code.rstrip()


def try_file(name, file, each, seed):
    """Draws mutants until enough of them build and change the program."""
    drawn = candidates(file)
    random.Random(f"{seed} {file.name}").shuffle(drawn)
    original = compiled(name, file, file.read_text())
    tried, at = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while len(tried) < each and at < len(drawn):
            some = drawn[at:at + each - len(tried)]
            at += len(some)
            tried += [m for m in pool.map(lambda m: try_one(name, m, original), some) if m]
    return tried


def try_one(name, mutant, original):
    """The mutant with the way in which it was noticed, or None if it does not build or is the same program."""
    lines = mutant.file.read_text().splitlines()
    lines[mutant.line - 1] = mutant.now
    with tempfile.TemporaryDirectory(prefix="t2t-mutant-") as folder:
        code = compiled(name, mutant.file, "\n".join(lines) + "\n", folder)
        if code is None or code == original:
            return None
        for test in tests_of(name):
            if (program := graph.linked(test, folder, f"{folder}/mutant.o")) is None:
                return None
            mutant.way = way_of(checks.run(program, os.environ, own_words=False))
            if mutant.way != "survives":
                break
    return mutant


def compiled(name, file, text, folder=None):
    """The machine code of a file, compiled as the chapter's checks are; its object stays in the folder.

    None where it does not build, or where a function does not return what it should: that may do anything."""
    with contextlib.ExitStack() as stack:
        folder = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="t2t-mutant-"))
        changed, made = pathlib.Path(folder, file.name), pathlib.Path(folder, "mutant.o")
        changed.write_text(text)
        words = graph.for_checks(graph.object_of(file), changed, made, "-Werror=return-type", f"-I{file.parent}")
        if subprocess.run(words, cwd=house.BUILD, stderr=subprocess.DEVNULL).returncode != 0:
            return None
        bare = pathlib.Path(folder, "code")
        subprocess.run(["objcopy", "-O", "binary", "--only-section=.text*", "--only-section=.rodata*", made, bare], check=True)
        return bare.read_bytes()


def way_of(result):
    """How it was noticed: a check that failed before the program crashed is what ./learn check shows."""
    if any(not f.got.startswith("threw an exception: ") for f in result.failures):
        return "assertion"
    if result.failures:
        return "exception"
    if result.ended:
        return "time-out" if result.ended.startswith("did not") else "crash"
    return "survives" if result.good else "exception"


def tell_file(name, file, tried):
    counts = ", ".join(f"{n} {way}" for way in WAYS if (n := sum(m.way == way for m in tried)))
    print(f"{name}/{file.name}: {counts or 'no mutants'}", flush=True)
    for m in tried:
        if m.way not in ("assertion", "exception"):
            print(f"  {m.way}: line {m.line}\n    was {m.was}\n    now {m.now.strip()}", flush=True)


def tell_all(tried):
    good = sum(m.way in ("assertion", "exception") for m in tried)
    print("\n" + house.bold(f"{len(tried)} mutants that build and change the program"))
    for way in WAYS:
        print(f"  {way:<10} {sum(m.way == way for m in tried):4}")
    print(f"  {100 * good / max(1, len(tried)):.1f} % are noticed by an assertion or an exception with a message")


if __name__ == "__main__":
    main()
