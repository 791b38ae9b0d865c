"""Runs a program in which a reader's part is linked: in a folder of its own, without most of the environment, and
under limits of time and memory. What it started ends with it."""
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

# What programs need of the reader's environment. A part has no use for the rest, such as keys and tokens.
NEEDED = re.compile(r"PATH|LANG|LC_\w+|(LD|DYLD)_\w+|(OMP|GOMP|KMP|OPENBLAS|VECLIB|GLIBC|T2T)_(?!WORK$)\w+|\w*SAN_OPTIONS")


@dataclasses.dataclass
class End:
    stopped: str  # why it was stopped, if it was
    code: int  # its exit status, or a signal's number below 0
    printed: str  # the end of what it wrote to the terminal


def run(words, environment, room, record, times=1, limited=True):
    """Runs it in the folder room until it ends, or until its record does not grow. The limits of time are so many times
    the usual ones, and its addresses have a limit unless it needs more of them than there is memory."""
    mark = secrets.token_hex(16)
    needed = {name: value for name, value in environment.items() if NEEDED.fullmatch(name)}
    output = room.with_name("printed")
    with output.open("wb") as printed:
        process = subprocess.Popen(words, cwd=room, env=needed | {"HOME": str(room), "TMPDIR": str(room), "T2T_RUN": mark},
                                   stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
                                   start_new_session=True, preexec_fn=lambda: limit(memory=MEMORY if limited else None))
        stopped = _wait(process, record, times)
    _end_what_is_left(mark)
    return End(stopped, process.returncode, output.read_bytes()[-2000:].decode(errors="replace").strip())


def limit(seconds: int | None = None, memory: int | None = None, file: int | None = 256 << 20) -> None:
    """Limits of this process: seconds of processor time, bytes of address space, and of a file."""
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_CORE, 0)):
        if most is not None:
            resource.setrlimit(kind, (most, most))


def _wait(process, record, times):
    """Waits for the end, and stops a program whose record has not grown for SILENT_SECONDS though it was busy, or for
    six times as long: on a loaded machine a check may wait for its turn. All checks together may take WHOLE_SECONDS, and
    four times as long if they compute. What the program started is ended with it."""
    silent, whole = times * SILENT_SECONDS, times * WHOLE_SECONDS
    size, began = 0, time.monotonic()
    since, busy = began, 0
    try:
        while True:
            try:
                process.wait(0.05)
                return ""
            except subprocess.TimeoutExpired:
                pass
            now, seconds = record.stat().st_size if record.exists() else 0, time.monotonic()
            if now != size:
                size, since, busy = now, seconds, _busy(process)
            if seconds - since > 6 * silent or (seconds - since > silent and _busy(process) - busy > 0.9 * silent):
                return f"did not end within {silent} seconds{_taken(process)}"
            if seconds - began > 4 * whole or (seconds - began > whole and _sleeps(process, seconds - began)):
                return f"did not come to its end within {whole} seconds, of which it computed for {_busy(process):.0f}"
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _sleeps(process, seconds) -> bool:
    """Whether it computed for so little of these seconds that it can't have waited for its turn alone."""
    return pathlib.Path("/proc/self/stat").exists() and _busy(process) < seconds / 10


def _end_what_is_left(mark) -> None:
    """Ends what the program started in a session of its own: it has the mark in its environment, where Linux shows it."""
    for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


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
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0


def how_it_ended(code):
    if code < 0:
        names = {signal.SIGSEGV: "a segmentation fault: it read or wrote memory that is not its own, or filled the stack, as "
                                 "a function that calls itself without end does",
                 signal.SIGABRT: "an abort", signal.SIGFPE: "an arithmetic exception, such as an integer divided by 0",
                 signal.SIGBUS: "a bus error", signal.SIGXFSZ: "more output than 256 MB"}
        return "ended with " + names.get(-code, f"signal {-code}")
    return f"ended the whole program, with exit status {code}, before the checks were done"
