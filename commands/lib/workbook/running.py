"""Runs a program in which a reader's part is linked: in a folder of its own, without most of the
environment, and under limits of time and memory. What it started ends with it."""
import contextlib
import dataclasses
import os
import pathlib
import re
import resource
import secrets
import signal
import subprocess
import time

SILENT_SECONDS = 10  # a check that says nothing for so long is stopped
WHOLE_SECONDS = 60  # and so are all of them together
MEMORY = 4 << 30  # bytes of address space

# What programs need of the reader's environment. A part has no use for the rest, such as keys and
# tokens.
NEEDED = re.compile(r"PATH|LANG|LC_\w+|(LD|DYLD)_\w+|\w*SAN_OPTIONS|"
                    r"(OMP|GOMP|KMP|OPENBLAS|VECLIB|GLIBC|T2T)_(?!WORK$)\w+")


@dataclasses.dataclass
class End:
    stopped: str  # why it was stopped, if it was
    code: int  # its exit status, or a signal's number below 0
    printed: str  # the end of what it wrote to the terminal


def run(words, environment, room, record, times=1, limited=True):
    """Runs it in the folder room until it ends, or until its record does not grow. The limits of
    time are so many times the usual ones, and its addresses have a limit unless it needs more of
    them than there is memory."""
    mark, output = secrets.token_hex(16), room.with_name("printed")
    needed = {name: value for name, value in environment.items() if NEEDED.fullmatch(name)}
    own = {"HOME": str(room), "TMPDIR": str(room), "T2T_RUN": mark}
    with output.open("wb") as printed:
        process = subprocess.Popen(words, cwd=room, env=needed | own, stdin=subprocess.DEVNULL,
                                   stdout=printed, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=lambda: limit(memory=MEMORY if limited else None))
        stopped = _wait(process, record, times)
    # What the program started in a session of its own has the mark in its environment, where Linux
    # shows it.
    for other in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in other.read_bytes():
                os.kill(int(other.parent.name), signal.SIGKILL)
    said = output.read_bytes()[-2000:].decode(errors="replace").strip()
    return End(stopped, process.returncode, said)


def limit(seconds: int | None = None, memory: int | None = None,
          file: int | None = 256 << 20) -> None:
    """Limits of this process: seconds of processor time, bytes of address space, and of a file."""
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory),
                       (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_CORE, 0)):
        if most is not None:
            resource.setrlimit(kind, (most, most))


def _wait(process, record, times):
    """Waits for the end, and stops a program whose record has not grown for SILENT_SECONDS though
    it was busy, or for six times as long: on a loaded machine a check may wait for its turn. All
    checks together may take WHOLE_SECONDS, and four times as long if they compute."""
    silent, whole = times * SILENT_SECONDS, times * WHOLE_SECONDS
    began = since = time.monotonic()
    size, before = 0, 0.0
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
                return ""
            grown = record.stat().st_size if record.exists() else 0
            now, busy = time.monotonic(), _busy(process)
            if grown != size:
                size, since, before = grown, now, busy
            quiet, all_together = now - since, now - began
            if quiet > 6 * silent or (quiet > silent and busy - before > 0.9 * silent):
                return f"did not end within {silent} seconds{_taken(process)}"
            sleeps = pathlib.Path("/proc/self/stat").exists() and busy < all_together / 10
            if all_together > 4 * whole or (all_together > whole and sleeps):
                return (f"did not come to its end within {whole} seconds, of which it computed for "
                        f"{busy:.0f}")
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _taken(process):
    """What is to be said of the memory that a program holds, if it is much."""
    try:
        pages = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return ""
    taken = pages * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return f", and held {taken:.1f} GiB of memory by then" if taken > 1 else ""


def _busy(process):
    """The seconds of processor time that the program has taken; 0 where that can't be read."""
    try:
        stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0


def how_it_ended(code):
    if code >= 0:
        return f"ended the whole program, with exit status {code}, before the checks were done"
    names = {signal.SIGSEGV: "a segmentation fault: it read or wrote memory that is not its "
                             "own, or filled the stack, as a function that calls itself without "
                             "end does",
             signal.SIGABRT: "an abort", signal.SIGBUS: "a bus error",
             signal.SIGFPE: "an arithmetic exception, such as an integer divided by 0",
             signal.SIGXFSZ: "more output than 256 MB"}
    return "ended with " + names.get(-code, f"signal {-code}")
