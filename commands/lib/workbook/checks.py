"""Runs a chapter's checks on a part and reads which of them fail.

A test program writes its results as XML to a file, so that what the part itself prints does not
get in between. running.py runs it under limits: a part that never ends, takes too much memory or
ends the program is reported as that.
"""
import contextlib
import dataclasses
import pathlib
import re
import secrets
import subprocess
import tempfile
import time
import xml.etree.ElementTree as xml

from workbook import running

QUICK, SLOW = "--test-suite-exclude=slow", "--test-suite=slow"
NOT_WRITTEN = r"not written yet: ([\w:~]+)(?: \((\d+) of \d+\))?"

# The kinds of checks, by words of their names. What no reader begins with is unusual: large sizes,
# several threads, packed weights, results in the place of what is read.
KINDS = [("refusals", r"refus|bad input|bad settings|not possible"), ("by hand", r"by hand"),
         ("allocation", r"allocat"),
         ("unusual", r"\d{3}|threads|packed|itself|written over|wider|a view|real model"),
         ("odd sizes", r"odd|any length|every shape|no round numbers|any size"),
         ("reference", r"PyTorch|float64|published|tokenizers")]


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
        """What is asked, the same wherever the book lies: a path to a fixture begins with its
        folder."""
        asked = re.sub(r'"[^"]*/tests/fixtures/', '"fixtures/', self.asked)
        return f"{self.check} | {' '.join(asked.split())}"

    @property
    def not_written(self):
        """The function that is still to be written: its name, and its number among those of this
        name."""
        found = re.search(NOT_WRITTEN, self.got)
        return (found.group(1), int(found.group(2) or 1)) if found else None


@dataclasses.dataclass
class Result:
    failures: list
    checks: list  # names of the test cases that ran
    failed: list  # names of those that failed
    unreached: list = dataclasses.field(default_factory=list)  # known ones that did not run
    ended: str = ""  # how the program ended, if not by itself
    running: str = ""  # the check that ran then
    begins: tuple = ()  # its file and line
    printed: str = ""  # what the part wrote to the terminal
    seconds: float = 0

    @property
    def good(self):
        bad = self.failures or self.ended or self.failed or self.unreached
        return not bad and bool(self.checks)


def without(result, checks):
    """The same result, as if there were no such checks."""
    left = dataclasses.replace(result, failures=[f for f in result.failures
                                                 if f.check not in checks])
    for name in ("checks", "failed", "unreached"):
        setattr(left, name, [one for one in getattr(result, name) if one not in checks])
    if result.running in checks:
        left.ended, left.running, left.begins = "", "", ()
    return left


def kind_of(check):
    return next((kind for kind, words in KINDS if re.search(words, check)), "property")


def names(program):
    """The checks that a test program has: those that are quick, and those that take long."""
    def of(suite):
        told = subprocess.run([program, "--list-test-cases", "--reporters=xml", suite],
                              capture_output=True, text=True)
        return [case.get("name") for case in xml.fromstring(told.stdout).iter("TestCase")
                if case.get("skipped") == "false"]
    return of(QUICK), of(SLOW)


def pattern(some):
    return "--test-case=" + ",".join(re.sub(r'[,*?\\"]|[^ -~]+', "*", name) for name in some)


def only(program, environment, some):
    """What some checks say."""
    return _run(program, environment, False, pattern(some), some)


def failing(program, environment, some):
    """Which of some checks a program fails, or does not come to."""
    result = only(program, environment, some)
    return {*some} & {*result.failed, *result.unreached, result.running}


def run(program, environment, own_words=True, names=()):
    """All checks but those that take long, and these if the others find nothing. Where their names
    are known, a program that runs fewer has not passed."""
    quick_names, slow_names = names or ((), ())
    result = _run(program, environment, own_words, QUICK, quick_names)
    if result.good:
        slow = _run(program, environment, own_words, SLOW, slow_names)
        slow.checks = result.checks + slow.checks
        slow.seconds += result.seconds
        slow.printed = slow.printed or result.printed
        return slow
    return result


def _run(program, environment, own_words, suite, names):
    with tempfile.TemporaryDirectory(prefix="t2t-check-") as folder:
        # The part runs in a folder of its own and is not told where its record lies.
        record, room = pathlib.Path(folder, secrets.token_hex(16)), pathlib.Path(folder, "room")
        room.mkdir()
        began = time.monotonic()
        # Threads that wait do not spin: where other programs are at work, that takes the time of
        # threads that compute.
        environment = {"OMP_WAIT_POLICY": "passive"} | environment
        if own_words:
            environment["T2T_OWN_WORDS"] = "1"
        words = [program, "--reporters=xml", f"--out={record}", "--no-colors", suite]
        ended = running.run(words, environment, room, record, times=1 if suite == QUICK else 6)
        result, is_whole = _read(record)
        result.seconds, result.printed = time.monotonic() - began, ended.printed
        _take_the_end(result, is_whole, ended, names)
        return result


def _take_the_end(result, is_whole, ended, names) -> None:
    """How the program ended, and which checks it did not come to."""
    crashes = [f for f in result.failures if f.got.startswith("crashed: ")]
    if crashes:
        result.failures = [f for f in result.failures if f not in crashes]
        result.running, result.begins = crashes[0].check, (crashes[0].file, crashes[0].begins)
    # An exception that leaves a thread ends the program, which prints what it said.
    if (said := re.search(NOT_WRITTEN, result.printed)) and result.running:
        result.failures.append(Failure(result.running, "", 0, 0, "", said.group(), []))
    result.unreached = [name for name in names if name not in result.checks]
    passed = not result.failures and not result.failed
    if ended.stopped:
        result.ended = ended.stopped
    elif not is_whole or result.running or (passed and ended.code != 0):
        result.ended = running.how_it_ended(ended.code)
    elif passed and result.unreached:
        result.ended = (f"ended the whole program, with exit status {ended.code}, when only "
                        f"{len(names) - len(result.unreached)} of {len(names)} checks had run")
    if result.ended and re.search(r"(malloc|free|realloc)\(\)|corrupted", result.printed):
        result.ended += (": the memory of other numbers was written over, so something wrote "
                         "outside of its array")


def _read(record):
    """What the record says, also of a program that did not write it to its end, and whether it is
    whole."""
    result, failures = Result([], [], []), []
    text = record.read_text(errors="replace") if record.exists() else ""
    root, parser = xml.Element("none"), xml.XMLPullParser(["start"])
    with contextlib.suppress(xml.ParseError, StopIteration):
        parser.feed(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", text))
        _, root = next(parser.read_events())
    for case in root.iter("TestCase"):
        if case.get("skipped") is not None:
            continue
        name, outcome = case.get("name"), case.find("OverallResultsAsserts")
        result.checks.append(name)
        if outcome is None:
            result.running, result.begins = name, (case.get("filename"), int(case.get("line")))
        elif outcome.get("test_case_success") == "false":
            result.failed.append(name)
        failures += [_failure(case, one) for one in case.iter() if _is_failure(one)][:2000]
    known = {(f.site, f.line, f.got): f for f in reversed(failures)}  # the first of equal ones
    result.failures = list(known.values())[::-1]
    return result, text.rstrip().endswith("</doctest>")


def _is_failure(element):
    """Whether it is a failed assertion, a message of one, or an exception outside of any."""
    return (element.tag == "Expression" and element.get("success") == "false" or
            element.tag == "Message" and element.get("type") in ("ERROR", "FATAL ERROR") or
            element.tag == "Exception" and "crash" in element.attrib)


def _thrown(element):
    text = " ".join((element.text or "").split())
    if "bad_alloc" in text:
        text += (f": it asked for more than the {running.MEMORY >> 30} GiB of memory that a check "
                 "may take")
    return ("crashed: " if element.get("crash") == "true" else "threw an exception: ") + text


def _failure(case, element):
    name, begins = case.get("name"), int(case.get("line"))
    if element.tag == "Exception":
        return Failure(name, case.get("filename"), begins, begins, "", _thrown(element), [])

    def text(tag):
        return (element.findtext(tag) or "").strip("\n")
    thrown = element.find("Exception")
    got = text("Expanded").strip() or text("Text").strip() if thrown is None else _thrown(thrown)
    told = [" ".join((info.text or "").split()) for info in element.findall("Info")]
    place = element
    if element.get("filename").endswith("tests/support/guarded_memory.cpp"):
        place = case  # the memory is looked at when it is freed, wherever in the check that is
    return Failure(name, place.get("filename"), int(place.get("line")), begins,
                   text("Original").strip(), got, told)
