"""Runs a chapter's checks on a part and reads which of them fail.

A test program writes its results as XML to a file, so that what the part itself prints does not get in
between. It runs under limits: a part that never ends, takes too much memory or ends the program is
reported as that.
"""
import dataclasses
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as xml

SILENT_SECONDS = 10  # a check that says nothing for so long is stopped
MEMORY = 4 << 30  # bytes of address space
NOT_WRITTEN = r"not written yet: ([\w:~]+)(?: \((\d+) of \d+\))?"

# The order in which checks are told, by words of their names: what can be followed on paper comes first,
# and what no reader begins with last.
KINDS = [("refusals", r"refus|bad input|bad settings|not possible"), ("by hand", r"by hand"),
         ("allocation", r"allocat"), ("odd sizes", r"odd|any length|every shape|no round numbers|any size"),
         ("reference", r"PyTorch|float64|published|tokenizers")]
ORDER = ["by hand", "property", "reference", "odd sizes", "refusals", "allocation"]


@dataclasses.dataclass
class Failure:
    check: str  # the name of the test case
    file: str
    line: int
    begins: int  # the line at which the test case begins
    asked: str  # the expression, as the test's source has it
    got: str  # what it came to
    told: list  # what the test case noted of its inputs

    @property
    def kind(self):
        return kind_of(self.check)

    @property
    def site(self):
        """What is asked, the same wherever the book lies: a path to a fixture begins with its folder."""
        asked = re.sub(r'"[^"]*/tests/fixtures/', '"fixtures/', self.asked)
        return f"{self.check} | {' '.join(asked.split())}"

    @property
    def not_written(self):
        """The function that is still to be written: its name, and its number among those of this name."""
        found = re.search(NOT_WRITTEN, self.got)
        return (found.group(1), int(found.group(2) or 1)) if found else None


@dataclasses.dataclass
class Result:
    failures: list
    checks: list  # names of the test cases that ran
    failed: list  # names of those that failed
    ended: str = ""  # how the program ended, if not by itself
    running: str = ""  # the check that ran then
    begins: tuple = ()  # its file and line
    printed: str = ""  # what the part wrote to the terminal
    seconds: float = 0

    @property
    def good(self):
        return not self.failures and not self.ended and not self.failed and bool(self.checks)


def kind_of(check):
    return next((kind for kind, words in KINDS if re.search(words, check)), "property")


def run(program, environment, own_words=True):
    """All checks but those that take long, and these if the others find nothing."""
    result = _run(program, environment, own_words, "--test-suite-exclude=slow")
    if result.good:
        slow = _run(program, environment, own_words, "--test-suite=slow")
        slow.checks = result.checks + slow.checks
        slow.seconds += result.seconds
        slow.printed = slow.printed or result.printed
        return slow
    # Of one kind, those of the chapter's own file come before those of files like 04_…/heads_test.cpp.
    result.failures.sort(key=lambda f: (ORDER.index(f.kind), len(f.file)))
    return result


def _run(program, environment, own_words, suite):
    environment = dict(environment, **({"T2T_OWN_WORDS": "1"} if own_words else {}))
    with tempfile.TemporaryDirectory(prefix="t2t-check-") as folder:
        record, output = pathlib.Path(folder, "checks.xml"), pathlib.Path(folder, "printed")
        began = time.monotonic()
        with output.open("wb") as printed:
            process = subprocess.Popen([program, "--reporters=xml", f"--out={record}", "--no-colors", suite], cwd=folder,
                                       env=environment, stdin=subprocess.DEVNULL, stdout=printed,
                                       stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_limits)
            ended = _wait(process, record, SILENT_SECONDS if "exclude" in suite else 6 * SILENT_SECONDS)
        result = _read(record)
        result.seconds = time.monotonic() - began
        result.printed = output.read_bytes()[-2000:].decode(errors="replace").strip()
        crashes = [f for f in result.failures if f.got.startswith("crashed: ")]
        if crashes:
            result.failures = [f for f in result.failures if f not in crashes]
            result.running, result.begins = crashes[0].check, (crashes[0].file, crashes[0].begins)
        _blame_threads(result)
        complete = result.running == "" and result.complete
        result.ended = ended or ("" if complete else _how_it_ended(process.returncode))
        if re.search(r"(malloc|free|realloc)\(\)|corrupted", result.printed) and result.ended:
            result.ended += ": the memory of other numbers was written over, so something wrote outside of its array"
        return result


def _blame_threads(result):
    """An exception that leaves a thread ends the program: what it said stands in what the program printed."""
    said = re.search(NOT_WRITTEN, result.printed)
    if said and result.running:
        result.failures.append(Failure(result.running, "", 0, 0, "", said.group(), []))


def _limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait(process, record, seconds):
    """Waits for the end, and stops a program whose record has not grown for so long though it was busy, or for six
    times as long: on a loaded machine a check may wait for its turn."""
    size, since, busy = 0, time.monotonic(), _busy(process)
    try:
        while True:
            try:
                process.wait(0.05)
                return ""
            except subprocess.TimeoutExpired:
                pass
            now = record.stat().st_size if record.exists() else 0
            if now != size:
                size, since, busy = now, time.monotonic(), _busy(process)
            silent = time.monotonic() - since
            if silent > 6 * seconds or (silent > seconds and _busy(process) - busy > seconds / 2):
                return f"did not end within {seconds} seconds"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _busy(process):
    """The seconds of processor time that the program has taken; 0 where that can't be read."""
    try:
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0


def _how_it_ended(code):
    if code < 0:
        names = {signal.SIGSEGV: "a segmentation fault: it read or wrote memory that is not its own",
                 signal.SIGABRT: "an abort", signal.SIGFPE: "an arithmetic exception, such as a whole number divided by 0",
                 signal.SIGBUS: "a bus error", signal.SIGXFSZ: "more output than 256 MB"}
        return "ended with " + names.get(-code, f"signal {-code}")
    return f"ended the whole program, with exit status {code}, before the checks were done"


def _read(record):
    """What the record says, also of a program that did not write it to its end."""
    result = Result([], [], [])
    result.complete = False
    parser = xml.XMLPullParser(["start", "end"])
    text = record.read_text(errors="replace") if record.exists() else ""
    text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", text)
    try:
        parser.feed(text)
        for event, element in parser.read_events():
            _take(result, event, element)
    except xml.ParseError:
        pass
    result.failures = list({(f.site, f.line, f.got): f for f in reversed(result.failures)}.values())[::-1]
    return result


def _take(result, event, element):
    tag, case = element.tag, getattr(result, "case", None)
    if event == "start" and tag == "TestCase" and element.get("skipped") is None:
        result.case, result.running = element, element.get("name")
        result.begins = element.get("filename"), int(element.get("line"))
        result.checks.append(element.get("name"))
    elif event == "end" and tag == "TestCase":
        outcome = element.find("OverallResultsAsserts")
        if outcome is not None and outcome.get("test_case_success") == "false":
            result.failed.append(element.get("name"))
        result.running = ""
    elif event == "end" and tag in ("Expression", "Message") and case is not None and len(result.failures) < 2000:
        if element.get("success") == "false" or element.get("type") in ("ERROR", "FATAL ERROR"):
            result.failures.append(_failure(case, element))
    elif event == "end" and tag == "Exception" and case is not None and "crash" in element.attrib:
        result.failures.append(Failure(case.get("name"), case.get("filename"), int(case.get("line")),
                                       int(case.get("line")), "", _thrown(element), []))
    elif event == "end" and tag == "doctest":
        result.complete = True


def _thrown(element):
    text = " ".join((element.text or "").split())
    if "bad_alloc" in text:
        text += f": it asked for more than the {MEMORY >> 30} GiB of memory that a check may take"
    return ("crashed: " if element.get("crash") == "true" else "threw an exception: ") + text


def _failure(case, element):
    def text(tag):
        found = element.find(tag)
        return (found.text or "").strip("\n") if found is not None else ""
    got = text("Expanded").strip() or text("Text").strip()
    thrown = element.find("Exception")
    if thrown is not None:
        got = _thrown(thrown)
    told = [" ".join((info.text or "").split()) for info in element.findall("Info")]
    return Failure(case.get("name"), element.get("filename"), int(element.get("line")), int(case.get("line")),
                   text("Original").strip(), got, told)
