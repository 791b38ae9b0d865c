"""Races between the threads of a part whose checks pass: two threads use the same number at the
same time, and one writes it.

ThreadSanitizer watches what the compiler made of the reader's file, while the same checks run on
plain threads (tests/support/watched_threads.cpp). A part that starts no thread and keeps nothing
between calls has no races.
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile

from workbook import book, running, written
from workbook.programs import cmake_commands, missing_functions

# Names of what starts a thread, with OpenMP's loops.
STARTS_THREAD = r"GOMP_|_ZNSt6thread15_M_start_thread|pthread_create|thrd_create|__kmpc_"
# Data that may change and outlives a call; not what the stream header and local constants leave.
KEPT = r"^(?!_ZStL8__ioinit|_ZGV)"


@dataclasses.dataclass
class Access:
    what: str  # "writes" or "reads"
    function: str
    file: str  # of the reader's, or "" if the other access is not in it
    line: int


@dataclasses.dataclass
class Told:
    race: tuple = ()  # two of Access
    unwatched: str = ""  # why it could not be looked for


def possible(object_file) -> bool:
    """Whether an object file starts threads, or keeps what may change between calls."""
    return any(re.search(STARTS_THREAD, name) if kind == "U" else
               kind in "bBdD" and re.search(KEPT, name)
               for kind, name in missing_functions.named(object_file))


def look(text):
    """Runs the checks on the part once more, watched. Their verdict is known: only races count."""
    if not can_be_watched():
        return Told(unwatched="this compiler can't watch threads")
    with written.built([text], f"mine_{text.chapter}_{text.part}_races") as build:
        if not build.good:
            return Told(unwatched="the part does not build for it")
        # What starts threads or shares work by OpenMP's own library, and not by the stand-in.
        lacking = [name.partition("@")[0] for kind, name in missing_functions.named(build.program)
                   if kind == "U" and name.startswith("GOMP_")]
        if lacking:
            return Told(unwatched=f"it uses {lacking[0]} of OpenMP, which can't be watched")
        return _run(build.program)


def can_be_watched():
    return any("/watched_threads.dir/" in output for output in cmake_commands.commands())


def _run(program):
    with tempfile.TemporaryDirectory(prefix="t2t-races-") as folder:
        room, record = pathlib.Path(folder, "room"), pathlib.Path(folder, "record")
        room.mkdir()
        options = f"log_path={folder}/races exitcode=0 halt_on_error=1 report_signal_unsafe=0"
        environment = os.environ | {"TSAN_OPTIONS": options, "OPENBLAS_NUM_THREADS": "1"}
        # ThreadSanitizer wants its addresses where it expects them: without chance, and without a
        # limit on them.
        words = [*_not_scattered(), program, "--reporters=xml", f"--out={record}", "--no-colors",
                 "--test-suite-exclude=slow"]
        ended = running.run(words, environment, room, record, times=6, limited=False)
        told = "".join(file.read_text(errors="replace")
                       for file in sorted(pathlib.Path(folder).glob("races.*")))
    reports = map(_read, told.split("WARNING: ThreadSanitizer: ")[1:])
    if race := next(filter(None, reports), ()):
        return Told(race)
    if "FATAL: ThreadSanitizer" in told + ended.printed:
        return Told(unwatched="this system does not let ThreadSanitizer run")
    return Told(unwatched=ended.stopped)


def _not_scattered():
    words = ["setarch", "-R"]
    try:
        works = subprocess.run([*words, "true"], capture_output=True).returncode == 0
    except OSError:
        works = False
    return words if works else []


def _read(report):
    """The two accesses of a report, if one is in the reader's file."""
    if not report.startswith("data race"):
        return ()
    stacks = re.findall(r"^  (?:Previous )?(?:atomic )?([Ww]rite|[Rr]ead) of size.*\n"
                        r"((?:    #.*\n)+)", report, re.M)
    both = tuple(_access(kind, frames) for kind, frames in stacks[:2])
    return both if len(both) == 2 and any(one.file for one in both) else ()


def _access(kind, frames):
    what = "writes" if kind.lower() == "write" else "reads"
    for function, file, line in re.findall(r"#\d+ (.*?) (/\S.*?):(\d+)", frames):
        if file.startswith(f"{book.WORK}/"):
            return Access(what, function, file, int(line))
    return Access(what, re.search(r"#0 (\S+)", frames).group(1), "", 0)
