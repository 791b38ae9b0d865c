"""Programs that CMake does not know of: those in which another source takes the place of one of our parts, and what shows that
tests pass and that wrong versions are rejected. ninja builds them, from a file that is written here beside CMake's own.

    programs TARGET ...   writes build/release/programs.ninja, in which these targets can be built

    NN_name_wrong_PART       the checks of chapter NN with all wrong versions of a part that one source can hold; T2T_WRONG chooses
    NN_name_MISTAKE          the same with a wrong version that needs a source of its own
    NN_name_rejects_MISTAKE  the checks have rejected that mistake
    mine_NN_name_PART        the checks with the reader's part; mine_NN_name_PART_races watches its threads
    mine_NN_name_PART_examples, …_examples_MISTAKE   the reader's cases, with our part as it is or with a mistake
    PROGRAM_mine             a program or bench with all of the reader's parts that are listed
    races                    in a build with ThreadSanitizer: it reports a race in each kernel of tests/wrong/NN_name/races
    NAME_passes, tests       a test, or all of those of ./learn test, has passed since anything that it depends on has changed
    pages_passes             the pages are as the sources and the programs are
    workbook                 what the checks of the workbook's commands need

Each program is one of CMake's, linked once more with an object before the libraries (cmake_commands.py).
"""
import functools
import json
import os
import pathlib
import re
import shlex
import sys

from workbook import book, plan
from workbook.cmake_commands import commands, compilation, for_checks, is_of_kernels, link, main_of_parts, object_of, without_precompiled
from workbook.book import BUILD
from workbook.ninja_file import Writer


def main(*targets) -> None:
    """Writes what these targets need."""
    writer = Writer()
    if "races" in targets:
        write_races(writer)
    write_tests(writer)
    folders = [one for one in plan.folders() if any(f"{one}_" in target for target in targets) and is_built(one)]
    for folder in folders:
        write_wrong(writer, folder)
    for text in sorted((BUILD / "mine").glob("*/*.c*")):
        if text.suffix in (".cpp", ".cu") and is_built(text.parent.name):
            write_mine(writer, text.parent.name, text)
    if is_built("02_normalization"):
        write_cases(writer, "workbook_examples", book.ROOT / "tests/workbook/rms_norm_examples.cpp", "02_normalization", "rms_norm")
    for target in targets:
        if target.endswith("_mine"):
            write_with_mine(writer, target)
    writer.write()


def is_built(folder) -> bool:
    """Whether the chapter is among those that CMake builds here."""
    return f"{folder}_test" in commands()


def write_wrong(writer, folder) -> None:
    """The programs of a folder of wrong versions, and their rejections."""
    planned = plan.of(folder)
    for part, mistakes in planned.together.items():
        program = f"{folder}_wrong_{pathlib.Path(part).stem}"
        wrong_program(writer, folder, part, program, plan.source_of(folder, pathlib.Path(part).stem))
        for mistake in mistakes:
            rejection(writer, folder, mistake, program)
    for mistake, part in planned.alone.items():
        program = f"{folder}_{mistake}"
        wrong_program(writer, folder, part, program, plan.source_of(folder, mistake))
        rejection(writer, folder, mistake, program)


def wrong_program(writer, folder, part: str, program, source) -> None:
    """The folder's checks with a wrong source before the library that holds ours. Kernels are compiled as they are."""
    made, how = f"wrong/{folder}/{source.stem}.o", compilation if part.endswith(".cu") else for_checks
    checks = f"{folder}_kernels_test" if is_of_kernels(pathlib.Path(part)) else f"{folder}_test"
    writer.compile(made, source, how(object_of(book.ROOT / part), source, made, *_include(part)))
    writer.link(program, link(checks, program, [made]))


def _include(part: str):
    """Where a patched source finds what lies beside ours, and what tests/support has."""
    return [f"-I{book.ROOT / 'tests'}", f"-I{(book.ROOT / part).parent}"]


def rejection(writer, folder, mistake: str, program) -> None:
    stamp = f"rejected/{folder}/{mistake}"
    shows = book.ROOT / "commands/lib/workbook/expect_rejected.py"
    record = book.ROOT / "tests/wrong" / folder / "failing_checks.json"
    writer.run(stamp, f"{folder}: {mistake}", ["python3", shows, record.parent, mistake, BUILD / program, stamp],
               [program, shows, *([record] if record.exists() else [])])
    writer.phony(f"{folder}_rejects_{mistake}", [stamp])


def write_races(writer) -> None:
    """The kernels in which only the race detector finds the mistake."""
    stamps = []
    for patch in sorted((book.ROOT / "tests/wrong").glob("*/races/*.patch")):
        folder, part = patch.parts[-3], plan.switches.part_of(patch)
        source = plan.source_of(folder, f"race_{patch.stem}")
        plan.write(source, plan.switches.patched(part, patch))
        program, stamp = f"{folder}_race_{patch.stem}", f"rejected/{folder}/race_{patch.stem}"
        wrong_program(writer, folder, part, program, source)
        shows = book.ROOT / "commands/lib/workbook/expect_race.py"
        writer.run(stamp, f"{folder}: a race in {patch.stem}", ["python3", shows, patch.stem, BUILD / program, stamp], [program, shows])
        stamps.append(stamp)
    writer.phony("races", stamps)


def write_mine(writer, chapter: str, text):
    """What is built of a text of the reader's: a part, or cases of one."""
    part = text.stem
    if part.endswith("_examples") and part.removesuffix("_examples") in _parts(chapter):
        return write_cases(writer, f"mine_{chapter}_{part}", text, chapter, part.removesuffix("_examples"))
    if part not in _parts(chapter) or book.ours(chapter, part).suffix != text.suffix:
        return
    mine, ours = f"mine_{chapter}_{part}", object_of(book.ours(chapter, part))
    made = mine_object(chapter, part)
    if text.suffix == ".cu":
        includer = BUILD / "mine" / chapter / f"{part}.cu.cpp"
        includer.write_text(f'#include "{text}"\n') if not includer.exists() else None
        writer.compile(made, includer, compilation(ours, includer, made))
        writer.link(mine, link(f"{chapter}_kernels_test", mine, [made], main_of_parts()))
        return
    writer.compile(made, text, for_checks(ours, text, made, "-Wno-unused-parameter"))
    writer.link(mine, link(f"{chapter}_test", mine, [made], main_of_parts()))
    watched = next((output for output in commands() if "/watched_threads.dir/" in output), None)
    if watched:
        made = f"mine/{chapter}/{part}.races.o"
        words = without_precompiled(compilation(ours, text, made, "-w", "-O1", "-g1", "-fsanitize=thread"))
        writer.compile(made, text, words)
        writer.link(f"{mine}_races", [*link(f"{chapter}_test", f"{mine}_races", [watched, made], main_of_parts()), "-fsanitize=thread"])


def mine_object(chapter: str, part: str):
    """The object of the reader's part as it is judged."""
    return f"mine/{chapter}/{part}.o"


@functools.cache
def _parts(chapter: str):
    return {file.stem for file in (book.ROOT / "chapters" / chapter).rglob("*.c*") if file.suffix in (".cpp", ".cu")}


def write_cases(writer, program, text, chapter: str, part: str) -> None:
    """A reader's cases of a part: PROGRAM makes the part's mistakes that are compiled together, and PROGRAM_MISTAKE one of the
    chapter's others."""
    if program in writer.known:
        return
    test = f"{chapter}_test"
    checks = _checks_in(test)
    made = f"mine/{program}.o"
    writer.compile(made, text, compilation(checks[0], text, made))
    planned = plan.of(chapter)
    write_wrong(writer, chapter)
    objects = {"": [f"wrong/{chapter}/{part}.o"] if any(pathlib.Path(p).stem == part for p in planned.together) else []}
    objects |= {f"_{mistake}": [f"wrong/{chapter}/{mistake}.o"] for mistake, of in planned.alone.items() if not is_of_kernels(pathlib.Path(of))}
    for ending, of_mistake in objects.items():
        words = link(test, program + ending, [made, *of_mistake], main_of_parts())
        writer.link(program + ending, [word for word in words if word not in checks])


def _checks_in(test):
    """The objects of a program's own checks."""
    return [output for output in commands() if f"/{test}.dir/" in output and output.endswith(".o")]


def write_with_mine(writer, target) -> None:
    """A program or bench with the reader's parts before the libraries that hold ours."""
    listed = json.loads((BUILD / "mine.json").read_text()) if (BUILD / "mine.json").exists() else []
    program, objects = target.removesuffix("_mine"), []
    for chapter, part in listed:
        text, made = BUILD / "mine" / chapter / f"{part}.cpp", f"mine/{chapter}/{part}.part.o"
        library = f"lib{chapter}_parts.a"
        if any(word.endswith(library) for word in link(program, target, [])):
            writer.compile(made, text, compilation(object_of(book.ours(chapter, part)), text, made))
            objects.append(made)
    writer.link(target, link(program, target, objects))


def write_tests(writer) -> None:
    """That tests pass: those of ctest, and what is checked by scripts."""
    passed: list[str] = []
    other_orders: list[str] = []
    built: list[str] = []
    runner = book.ROOT / "tests/expect_passed"

    def passes(name, words, needs):
        stamp = f"passed/{name.replace('/', '_')}_passes"
        writer.run(stamp, name, [runner, name, stamp, *words], [runner, *needs])
        writer.phony(f"{name.replace('/', '_')}_passes", [stamp])
        return stamp
    for name, words, properties in tests_of_ctest():
        used = [os.path.relpath(word, BUILD) for word in words]
        if re.search(r'LABELS "gpu"|PASS_REGULAR_EXPRESSION', properties):
            built += used  # ctest runs these, and tells if there is no GPU
            continue
        environment = re.findall(r'ENVIRONMENT "([^"]*)"', properties)
        fixtures = _files(f"tests/fixtures/{used[0].removesuffix('_test')}")
        stamps = other_orders if name.endswith("_shuffled") else passed
        stamps.append(passes(name, ["env", *environment, *words], [used[0], *fixtures]))
    programs = book.chapters()
    if set(programs) <= set(commands()):  # with chapters left out, pages can't be compared
        text = [book.ROOT / "learn", book.ROOT / "README.md", *(file for folder in ("commands", "docs", "chapters", "common", "tests")
                                                                   for file in _files(folder) if file.suffix not in (".npy", ".gguf", ".pyc"))]
        passed.append(passes("includes", ["python3", book.ROOT / "tests/includes_test.py"], text))
        passed.append(passes("learn", [book.ROOT / "tests/learn_test.sh", BUILD], [*programs, "common_bench", "tiny_model", *text]))
        write_wrong(writer, "02_normalization")
        passes("pages", [book.ROOT / "commands/lib/pages.sh", "--check"],
               [*programs, "13_by_hand", "02_normalization_wrong_rms_norm", "workbook_examples", *text])
        passes("10_pretrained/weights", [BUILD / "10_pretrained_weights_test"], ["10_pretrained_weights_test"])
    of_edited_test = "02_normalization_wrong_rms_norm"
    writer.phony("tests", [*passed, *built, of_edited_test])
    writer.phony("other_orders", other_orders)  # of the kernels' threads
    helpers = [one for one in ("10_pretrained", "hostile", "tiny_model", "trace_texts") if one in commands()]
    wrong_norms = [f"02_normalization_wrong_{part}" for part in ("rms_norm_rows", "layer_norm", "layer_norm_rows")]
    writer.phony("workbook", ["02_normalization_test", *helpers, "workbook_examples", of_edited_test, *wrong_norms])


def tests_of_ctest():
    """[(name, words of the command, its properties), ...] from the files that CMake writes for ctest. (ctest itself tells commands
    only of what is built.)"""
    found = []
    for file in sorted(BUILD.glob("chapters/*/CTestTestfile.cmake")) + sorted(BUILD.glob("tests/CTestTestfile.cmake")):
        text = file.read_text()
        for name, words in re.findall(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", text, re.M):
            properties = re.search(rf"^set_tests_properties\(\[=\[{re.escape(name)}\]=\] PROPERTIES (.*)\)$", text, re.M)
            found.append((name, shlex.split(words), properties.group(1) if properties else ""))
    known = {os.path.relpath(word, BUILD) for _, words, _ in found for word in words}
    lost = [one for one in commands() if re.fullmatch(r"(?!cmake_)\w+_test", one) and one not in known | {"10_pretrained_weights_test"}]
    if lost:
        sys.exit(f"no test of ctest runs {', '.join(lost)}")
    return found


@functools.cache
def _files(folder):
    return sorted(file for file in (book.ROOT / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
