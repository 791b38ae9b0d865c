"""Programs that CMake does not know of: those in which another source takes the place of one of our
parts, and what shows that tests pass and that wrong versions are rejected. ninja builds them, from
a file that is written here beside CMake's own.

    programs TARGET ...   writes build/release/programs.ninja, in which these targets can be built

    NN_name_wrong_PART       the checks of chapter NN with all wrong versions of a part that one
                             source can hold; T2T_WRONG chooses
    NN_name_MISTAKE          the same with a wrong version that needs a source of its own
    NN_name_rejects_MISTAKE  the checks have rejected that mistake
    mine_NN_name_PART        the checks with the reader's part; …_races watches its threads
    mine_NN_name_PART_examples, …_examples_MISTAKE
                             the reader's cases, with our part as it is or with a mistake
    PROGRAM_mine             a program or bench with all of the reader's parts that are listed
    races                    in a build with ThreadSanitizer: it reports a race in each kernel of
                             tests/wrong/NN_name/races
    NAME_passes, tests       a test, or all of those of ./learn test, has passed since anything that
                             it depends on has changed
    pages_passes             the pages are as the sources and the programs are
    workbook                 what the checks of the workbook's commands need

Each program is one of CMake's, linked once more with an object before the libraries
(cmake_commands.py).
"""
import functools
import json
import os
import pathlib
import re
import shlex
import sys

from workbook import book
from workbook.book import BUILD, ROOT
from workbook.programs import plan
from workbook.programs.cmake_commands import (LITTLE_WORK, commands, compilation, is_of_kernels,
                                              link, main_of_parts, object_of, objects_of_checks,
                                              without_precompiled)
from workbook.programs.ninja_file import Writer

# Says of a kernel in races/, which computes the right numbers, that the detector reports its race.
SHOWS_RACE = ('OMP_NUM_THREADS=1 TSAN_OPTIONS=halt_on_error=1 "$1" </dev/null 2>&1 | '
              'grep "ThreadSanitizer: data race" >"$2" || '
              '{ rm "$2"; echo "| FAILED: no race was reported in $0"; exit 1; }')


def main(*targets) -> None:
    """Writes what these targets need."""
    writer = Writer()
    if "races" in targets:
        write_races(writer)
    write_tests(writer)
    for folder in plan.folders():
        if any(f"{folder}_" in target for target in targets) and is_built(folder):
            write_wrong(writer, folder)
    for text in sorted((BUILD / "mine").glob("*/*.c*")):
        if text.suffix in (".cpp", ".cu") and is_built(text.parent.name):
            write_mine(writer, text.parent.name, text)
    if is_built("02_normalization"):
        write_cases(writer, "workbook_examples", ROOT / "tests/workbook/rms_norm_examples.cpp",
                    "02_normalization", "rms_norm")
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
    together = [(part, f"wrong_{pathlib.Path(part).stem}", pathlib.Path(part).stem, mistakes)
                for part, mistakes in planned.together.items()]
    alone = [(part, mistake, mistake, [mistake]) for mistake, part in planned.alone.items()]
    shows = ROOT / "commands/lib/workbook/wrong_versions/expect_rejected.py"
    record = plan.FOLDERS / folder / "failing_checks.json"
    for part, ending, source, mistakes in together + alone:
        program = f"{folder}_{ending}"
        wrong_program(writer, folder, part, program, plan.source_of(folder, source))
        for mistake in mistakes:
            stamp = f"rejected/{folder}/{mistake}"
            writer.run(stamp, f"{folder}: {mistake}",
                       ["python3", shows, record.parent, mistake, BUILD / program, stamp],
                       [program, shows, *([record] if record.exists() else [])])
            writer.phony(f"{folder}_rejects_{mistake}", [stamp])


def wrong_program(writer, folder, part: str, program, source) -> None:
    """The folder's checks with a wrong source before the library that holds ours. Kernels are
    compiled as they are."""
    made, checks = f"wrong/{folder}/{source.stem}.o", f"{folder}_test"
    if is_of_kernels(pathlib.Path(part)):
        checks = f"{folder}_kernels_test"
    # A patched source finds what lies beside ours, and what tests/support has.
    flags = [f"-I{ROOT / 'tests'}", f"-I{(ROOT / part).parent}"]
    if not part.endswith(".cu"):
        flags.insert(0, LITTLE_WORK)
    writer.compile(made, source, compilation(object_of(ROOT / part), source, made, *flags))
    writer.link(program, link(checks, program, [made]))


def write_races(writer) -> None:
    """The kernels in which only the race detector finds the mistake."""
    stamps = []
    for patch in sorted(plan.FOLDERS.glob("*/races/*.patch")):
        folder, part, name = patch.parts[-3], plan.switches.part_of(patch), f"race_{patch.stem}"
        source, program = plan.source_of(folder, name), f"{folder}_{name}"
        plan.write(source, plan.switches.patched(part, patch))
        wrong_program(writer, folder, part, program, source)
        stamps.append(f"rejected/{folder}/{name}")
        writer.run(stamps[-1], f"{folder}: a race in {patch.stem}",
                   ["bash", "-c", SHOWS_RACE, patch.stem, BUILD / program, stamps[-1]], [program])
    writer.phony("races", stamps)


def write_mine(writer, chapter: str, text):
    """What is built of a text of the reader's: a part, or cases of one."""
    part, mine = text.stem, f"mine_{chapter}_{text.stem}"
    parts = {file.stem for file in (ROOT / "chapters" / chapter).rglob("*.c*")
             if file.suffix in (".cpp", ".cu")}
    if part.endswith("_examples") and (of := part.removesuffix("_examples")) in parts:
        return write_cases(writer, mine, text, chapter, of)
    if part not in parts or book.ours(chapter, part).suffix != text.suffix:
        return
    ours, made = object_of(book.ours(chapter, part)), mine_object(chapter, part)
    if text.suffix == ".cu":
        includer = BUILD / "mine" / chapter / f"{part}.cu.cpp"
        plan.write(includer, f'#include "{text}"\n')
        writer.compile(made, includer, compilation(ours, includer, made))
        writer.link(mine, link(f"{chapter}_kernels_test", mine, [made], main_of_parts()))
        return
    flags = [LITTLE_WORK, "-Wno-unused-parameter"]
    writer.compile(made, text, compilation(ours, text, made, *flags))
    writer.link(mine, link(f"{chapter}_test", mine, [made], main_of_parts()))
    watched = next((one for one in commands() if "/watched_threads.dir/" in one), None)
    if watched:
        made, flags = f"mine/{chapter}/{part}.races.o", ["-w", "-O1", "-g1", "-fsanitize=thread"]
        writer.compile(made, text, without_precompiled(compilation(ours, text, made, *flags)))
        words = link(f"{chapter}_test", f"{mine}_races", [watched, made], main_of_parts())
        writer.link(f"{mine}_races", [*words, "-fsanitize=thread"])


def mine_object(chapter: str, part: str):
    """The object of the reader's part as it is judged."""
    return f"mine/{chapter}/{part}.o"


def write_cases(writer, program, text, chapter: str, part: str) -> None:
    """A reader's cases of a part: PROGRAM makes the part's mistakes that are compiled together, and
    PROGRAM_MISTAKE one of the chapter's others."""
    if program in writer.known:
        return
    test, made, planned = f"{chapter}_test", f"mine/{program}.o", plan.of(chapter)
    checks = objects_of_checks(test)
    writer.compile(made, text, compilation(checks[0], text, made))
    write_wrong(writer, chapter)
    together = part in (pathlib.Path(path).stem for path in planned.together)
    objects = {"": [f"wrong/{chapter}/{part}.o"] if together else []}
    objects |= {f"_{mistake}": [f"wrong/{chapter}/{mistake}.o"]
                for mistake, of in planned.alone.items() if not is_of_kernels(pathlib.Path(of))}
    for ending, of_mistake in objects.items():
        words = link(test, program + ending, [made, *of_mistake], main_of_parts())
        writer.link(program + ending, [word for word in words if word not in checks])


def write_with_mine(writer, target) -> None:
    """A program or bench with the reader's parts before the libraries that hold ours."""
    kept = BUILD / "mine.json"
    program, objects = target.removesuffix("_mine"), []
    for chapter, part in json.loads(kept.read_text()) if kept.exists() else []:
        text, made = BUILD / "mine" / chapter / f"{part}.cpp", f"mine/{chapter}/{part}.part.o"
        if any(word.endswith(f"lib{chapter}_parts.a") for word in link(program, target, [])):
            words = compilation(object_of(book.ours(chapter, part)), text, made)
            writer.compile(made, text, words)
            objects.append(made)
    writer.link(target, link(program, target, objects))


def write_tests(writer) -> None:
    """That tests pass: those of ctest, and what is checked by scripts."""
    passed: list[str] = []
    other_orders: list[str] = []
    built: list[str] = []
    runner = ROOT / "tests/expect_passed"

    def passes(name, words, needs):
        name = name.replace("/", "_")
        stamp = f"passed/{name}_passes"
        writer.run(stamp, name, [runner, name, stamp, *words], [runner, *needs])
        writer.phony(f"{name}_passes", [stamp])
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
    programs, of_edited_test = book.chapters(), "02_normalization_wrong_rms_norm"
    if set(programs) <= set(commands()):  # with chapters left out, pages can't be compared
        text = [ROOT / "learn", ROOT / "README.md"]
        text += [file for folder in ("commands", "docs", "chapters", "common", "tests")
                 for file in _files(folder) if file.suffix not in (".npy", ".gguf", ".pyc")]
        passed.append(passes("includes", ["python3", ROOT / "tests/includes_test.py"], text))
        passed.append(passes("learn", [ROOT / "tests/learn_test.sh", BUILD],
                             [*programs, "common_bench", "tiny_model", *text]))
        write_wrong(writer, "02_normalization")
        passes("pages", [ROOT / "commands/lib/pages.sh", "--check"],
               [*programs, "13_by_hand", of_edited_test, "workbook_examples", *text])
        weights = "10_pretrained_weights_test"
        passes("10_pretrained/weights", [BUILD / weights], [weights])
    writer.phony("tests", [*passed, *built, of_edited_test])
    writer.phony("other_orders", other_orders)  # of the kernels' threads
    helpers = {"10_pretrained", "hostile", "tiny_model", "trace_texts"} & commands().keys()
    wrong = [f"02_normalization_wrong_{one}" for one in ("rms_norm_rows", "layer_norm",
                                                         "layer_norm_rows")]
    writer.phony("workbook", ["02_normalization_test", *sorted(helpers), "workbook_examples",
                              of_edited_test, *wrong])


def tests_of_ctest():
    """[(name, words of the command, its properties), ...] from the files that CMake writes for
    ctest. (ctest itself tells commands only of what is built.)"""
    found, files = [], [*BUILD.glob("chapters/*/CTestTestfile.cmake"),
                        *BUILD.glob("tests/CTestTestfile.cmake")]
    for file in sorted(files):
        text = file.read_text()
        for name, words in re.findall(r"^add_test\(\[=\[(.*?)\]=\] (.*)\)$", text, re.M):
            properties = re.search(rf"^set_tests_properties\(\[=\[{re.escape(name)}\]=\] "
                                   r"PROPERTIES (.*)\)$", text, re.M)
            found.append((name, shlex.split(words), properties.group(1) if properties else ""))
    known = {os.path.relpath(word, BUILD) for _, words, _ in found for word in words}
    lost = [one for one in commands() if re.fullmatch(r"(?!cmake_)\w+_test", one)
            and one not in known | {"10_pretrained_weights_test"}]
    if lost:
        sys.exit(f"no test of ctest runs {', '.join(lost)}")
    return found


@functools.cache
def _files(folder):
    return sorted(file for file in (ROOT / folder).rglob("*")
                  if file.is_file() and "__pycache__" not in file.parts)
