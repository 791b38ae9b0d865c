#!/usr/bin/env python3
"""Checks that take many minutes, of the folders of tests whose sources have changed since these checks passed.

    unless_passed.py asan    the checks in the build of the preset asan: memory errors, undefined behaviour
    unless_passed.py tsan    the kernels' checks, and a server under load, in the build of the preset tsan: data races
    unless_passed.py races   in that build: ThreadSanitizer reports the race in each kernel of tests/wrong/NN_name/races
    unless_passed.py arm     some checks on an emulated ARM processor

unless_passed.json holds for each of the four, and each folder, a hash of the sources that decide the result: the checks and
their fixtures, the chapter, the chapters that these include, and common. A folder that passes is noted there, to be committed.
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "commands/lib"))

from workbook.wrong_versions import keys  # noqa: E402

NOTED = pathlib.Path(__file__).with_suffix(".json")
SERVER = "16_server_test"
UNDER_LOAD = "under load*,many threads ask*,200 clients*,closing lets*,*goes away in the middle*"


def main(what):
    folders = FOLDERS[what]()
    grounds = {folder: keys.ground(folder) for folder in folders}
    if what == "races":
        grounds = {folder: f"{ground} {keys.of_folder(f'tests/wrong/{folder}/races')}" for folder, ground in grounds.items()}
    noted = json.loads(NOTED.read_text()) if NOTED.exists() else {}
    changed = [folder for folder in folders if noted.get(what, {}).get(folder) != grounds[folder]]
    print(f"{what}: of {len(folders)} folders, these have changed since their checks passed:", *changed or ["none"], flush=True)
    failed = CHECK[what](changed) if changed else []
    passed = noted.get(what, {}) | {folder: grounds[folder] for folder in changed if folder not in failed}
    if changed:
        NOTED.write_text(json.dumps(noted | {what: passed}, indent=1, sort_keys=True) + "\n")
    if failed:
        sys.exit(f"{what}: these failed: {' '.join(failed)}")


def asan(folders):
    return check("asan", programs("asan", folders))


def tsan(folders):
    built = programs("tsan", folders)
    failed = check("tsan", [program for program in built if program != SERVER])
    if SERVER in built:  # OpenMP's own threads, which ThreadSanitizer does not see, would be reported
        build("tsan", [SERVER])
        run(f"build/tsan/{SERVER}", f"-tc={UNDER_LOAD}", OMP_NUM_THREADS="1", TSAN_OPTIONS="halt_on_error=1")
    return failed


def races(_):
    run("python3", "commands/lib/workbook", "programs", "races", T2T_BUILD=str(ROOT / "build/tsan"))
    run("ninja", "-C", "build/tsan", "-f", "programs.ninja", "races")
    return []


def arm(_):
    run("tests/arm.sh")
    return []


def programs(preset, folders=None):
    """The programs of a build that check these folders, or all."""
    listed = run("ninja", "-C", f"build/{preset}", "-t", "query", "checks", stdout=subprocess.PIPE).stdout.split()
    checking = sorted(one for one in listed if one.endswith("_test") or one == "fault")
    if preset == "tsan":
        checking = [one for one in checking if one == SERVER or one[:2] in ("cu", "fa") or one.endswith("_kernels_test") and one[:2] != SERVER[:2]]
    return [one for one in checking if folders is None or folder_of(one) in folders]


def folder_of(program):
    return "cuda_faults" if program == "fault" else program.removesuffix("_test").removesuffix("_kernels")


def check(preset, programs):
    """Builds test programs, and runs the tests that ctest knows them by. Returns the folders in which some failed."""
    if not programs:
        return []
    build(preset, programs)
    names = ["cuda_faults/.*" if one == "fault" else one.removesuffix("_test").replace("_kernels", "/kernels") for one in programs]
    try:
        run("ctest", "--preset", preset, "-j", os.cpu_count(), "-R", f"^({'|'.join(names)})$")
    except subprocess.CalledProcessError:
        failed = ROOT / "build" / preset / "Testing/Temporary/LastTestsFailed.log"  # "29:19_ranks"
        return sorted({line.partition(":")[2].partition("/")[0] for line in failed.read_text().splitlines()})
    return []


def build(preset, programs):
    run("cmake", "--build", "--preset", preset, "--target", *programs)


def run(*command, stdout=None, **environment):
    return subprocess.run([str(word) for word in command], cwd=ROOT, env=os.environ | environment, stdout=stdout, text=True, check=True)


CHECK = {"asan": asan, "tsan": tsan, "races": races, "arm": arm}
FOLDERS = {"asan": lambda: sorted({folder_of(one) for one in programs("asan")}),
           "tsan": lambda: sorted({folder_of(one) for one in programs("tsan")}),
           "races": lambda: sorted(races.parent.name for races in (ROOT / "tests/wrong").glob("*/races")),
           "arm": lambda: ["10_pretrained", "12_quantization"]}

if __name__ == "__main__":
    if sys.argv[1:] not in [[what] for what in CHECK]:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{sys.argv[1]}: this failed: {' '.join(failed.cmd)}")
