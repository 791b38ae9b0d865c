"""What a program of checks computes: every assertion with what it came to, whether it passes or fails, and how far that of
another program is the same. tests/support/every_assertion.cpp writes it.
"""
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import threading
import time

SECONDS = 1  # of processor time, and at least: our own checks, without long ones, take a part of it
LONG = 0.06  # seconds of a check that is not short
QUICK = 0.25  # seconds of all quick checks together
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)(?![\w.])")
OF_THE_RUN = re.compile(r"0x[0-9a-f]+|(?<=\bt2t)_\w+?_\d+\b")  # addresses, and folders named after a process
SAME = 1e-4  # by how much two numbers may differ, of the larger


def by_time(checks, told):
    """The checks in three lists, by what a program told: the first of those that are short, which take QUICK seconds together
    (the fastest of them first), the others of them, and long ones."""
    took = dict(re.findall(r"^check (.*)\n(?:(?!took|check ).*\n)*took (.*)$", told, re.M))
    took = {check: float(took.get(check, LONG + 1)) for check in checks}
    quick, more, long, left = [], [], [], QUICK
    for check, seconds in took.items():
        (long if seconds > LONG else quick if seconds <= left else more).append(check)
        left -= seconds if seconds <= min(LONG, left) else 0
    return sorted(quick, key=took.get), more, long


def run(program, variant=None, only=(), seconds=SECONDS, suite="--test-suite-exclude=slow"):
    """What the program tells, with the mistake of this variant: of all its checks, or of some of them only. How it ended stands
    at the end."""
    with tempfile.TemporaryDirectory(prefix="t2t-told-") as room:
        record = pathlib.Path(room, "told")
        code = _ran(program, variant, only, seconds, room, ["--reporters=every_assertion", "--success", f"--out={record}", suite])
        ended = "too late" if code is None else "in time" if code >= 0 else f"signal {-code}"
        return (record.read_text(errors="replace") if record.exists() else "") + f"\nended {ended}\n"


def passes(program, variant, checks, seconds):
    """Whether the program passes these checks in time, with the mistake of this variant."""
    with tempfile.TemporaryDirectory(prefix="t2t-told-") as room:
        return _ran(program, variant, checks, seconds, room, []) == 0


def _ran(program, variant, only, seconds, room, options):
    """The exit status of a program of checks, or None if it took too long."""
    def limits():
        for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_FSIZE, 64 << 20), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(kind, (most, most))
    chosen = ["--test-case=" + ",".join(re.sub(r'[,*?\\"]|[^ -~]+', "*", name) for name in only)] if only else []
    began = time.monotonic()
    with subprocess.Popen([program, "--no-colors", *options, *chosen], cwd=room, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, preexec_fn=limits,
                          env=dict(os.environ, T2T_OWN_WORDS="1", OMP_NUM_THREADS="1", **(variant.environment if variant else {}))) as process:
        # A wait with a timeout would ask again and again, at longer and longer intervals, while the program takes milliseconds.
        late = threading.Timer(10 * seconds, process.kill)
        late.start()
        try:
            code = process.wait()
        finally:
            late.cancel()
            process.kill()  # if this is interrupted
    return code if time.monotonic() - began < 10 * seconds else None


def read(told):
    """{"check | line | which": what it came to}, without checks of allocations and what calls a function that isn't written."""
    facts, check, own = {}, "", {}
    for line in told.splitlines():
        word, _, rest = line.partition(" ")
        if word == "check":
            facts.update(own)
            check, own, count = rest, {}, {}
        elif word == "ended":
            facts.update(own)
            own = {}
            if rest != "in time":
                facts["ended"] = rest
        elif word == "threw" and check:
            own[f"{check} | threw"] = "not written" if rest.startswith("not written yet") else "threw"
        elif word.isdigit() and check:
            count[word] = count.get(word, 0) + 1
            own[f"{check} | {word} | {count[word]}"] = _came_to(rest)
    return facts


def check_of(key):
    return key.split(" | ")[0]


def waiting(facts):
    """The checks that call what is still to be written."""
    return {check_of(key) for key, text in facts.items() if text == "not written" or "not written yet" in text}


def _came_to(rest):
    passed, _, text = rest.partition(" ")
    if text.startswith("wanted a refusal"):
        ended = "refused" if passed == "1" else text.rpartition("; ")[2]
        return "other words" if ended.startswith('got "') else re.sub(r'(another type).*', r"\1", ended)
    differences = re.match(r"~ .*? ~", text)
    return f"{passed} {differences.group() if differences else OF_THE_RUN.sub('', text)}"


def apart(facts, right):
    """What of these facts differs from ours: of what is missing, that it is missing."""
    different = {key: text for key, text in facts.items() if not same(text, right.get(key, ""))}
    return different | {key: "" for key in right if key not in facts}


def agree(ours, theirs):
    """Whether two sets of differences are the same."""
    return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)


def same(a, b):
    if a == b:
        return True
    if "~" in a and "~" in b and "close" not in a and "close" not in b:
        return _same_differences(a, b)
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    return all(_near(x, y) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)))


def _near(x, y):
    x, y = float(x), float(y)
    return x == y or (x != x and y != y) or abs(x - y) <= SAME * max(abs(x), abs(y)) + 1e-6


def _same_differences(a, b):
    """Differences are told in units of the bound, to which rounding may come on both sides."""
    if a[0] != b[0]:
        return False
    n, not_finite, *ours = map(float, a[2:].strip("~ ").split())
    m, others, *theirs = map(float, b[2:].strip("~ ").split())
    size = max(ours[1], theirs[1])
    rounding = [4, 4 * n, 4 * n ** 0.5, 4 * n ** 0.5]
    return (n, not_finite) == (m, others) and all(
        abs(x - y) <= SAME * (size if i else max(abs(x), abs(y))) + r for i, (x, y, r) in enumerate(zip(ours, theirs, rounding)))
