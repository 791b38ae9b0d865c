"""The program of a chapter's checks with another source in the place of a part's: how it is
compiled and linked, and what its checks say. Where the source holds several bodies of a function
(switches.switched), T2T_WRONG names the one that is taken. """
import os
import pathlib
import re
import subprocess
import tempfile
import threading

from workbook import book, checks, running
from workbook.programs import cmake_commands

COMPILER_SECONDS, COMPILER_BYTES = 180, 6 << 30


def command(chapter: str, part: str, made):
    """How the chapter's checks are compiled, for this file."""
    checks = cmake_commands.objects_of_checks(f"{chapter}_test")[0]
    return cmake_commands.compilation(checks, made, made.with_suffix(".o"), "-w", "-fmax-errors=0",
                                      f"-I{book.ours(chapter, part).parent}")


def compiled(words, started=None):
    """Runs a compiler, which may take much time and memory for many bodies. Its process is added to
    those that were started, if they are given: it can be ended as a group."""
    process = subprocess.Popen(words, cwd=book.BUILD, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               start_new_session=started is not None,
                               preexec_fn=lambda: running.limit(COMPILER_SECONDS, COMPILER_BYTES,
                                                                None))
    if started is not None:
        started.append(process)
    try:
        said = process.communicate()
    finally:
        process.kill()  # if this is interrupted
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def bodies_named_in(errors):
    """The bodies of which a compiler's errors tell. After a bracket too few it takes for wrong what
    is right."""
    lost = r"error: expected (?:unqualified-id before \W+else|\W+}\W+before|declaration)"
    return set(re.findall(r"^(?:In file included from )?wrong ([\w ]+):\d+",
                          re.split(lost, errors)[0], re.M))


def program(chapter: str, part: str, made):
    """Compiles a source and links it with the chapter's checks: the program, or None."""
    said = compiled(command(chapter, part, made))
    return linked(chapter, made) if said.returncode == 0 else None


def linked(chapter: str, made):
    return cmake_commands.linked(f"{chapter}_test", made.parent, made.with_suffix(".o"))


def passes(program, body, names, seconds) -> bool:
    """Whether the program passes these checks in so much processor time, with this body, or None
    for those that are ours."""
    return _ran(program, seconds, [checks.pattern(names)], {"T2T_WRONG": body} if body else {}) == 0


def told(program, suite, seconds):
    """What all checks of a suite tell of themselves (tests/support/every_assertion.cpp)."""
    with tempfile.TemporaryDirectory(prefix="t2t-told-") as room:
        record = pathlib.Path(room, "told")
        _ran(program, seconds,
             ["--reporters=every_assertion", "--success", f"--out={record}", suite])
        return record.read_text(errors="replace") if record.exists() else ""


def _ran(program, seconds, flags, environment={}):
    """The exit status of a program of checks, which is below 0 if it took too long."""
    environment = dict(os.environ, T2T_OWN_WORDS="1", OMP_NUM_THREADS="1", **environment)
    with (tempfile.TemporaryDirectory(prefix="t2t-trial-") as room,
          subprocess.Popen([program, "--no-colors", *flags], cwd=room, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                           preexec_fn=lambda: running.limit(seconds, running.MEMORY)) as process):
        # A wait with a timeout would ask again and again, at longer and longer intervals, while the
        # program takes milliseconds.
        late = threading.Timer(10 * seconds, process.kill)
        late.start()
        try:
            return process.wait()
        finally:
            late.cancel()
            process.kill()  # if this is interrupted
