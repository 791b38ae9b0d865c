#!/usr/bin/env python3
"""Shows that the checks reject a wrong version: expect_rejected.py FOLDER MISTAKE PROGRAM [STAMP]

The folder's record, failing_checks.json, names a check that the mistake fails. It runs alone, up to its first failed assertion.
A mistake that isn't recorded must fail some check, in an assertion: after a crash, an exception or a time-out the reader
would not learn what is wrong. Checks that take long (the test suite "slow") run only if no other notices it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys


class NotRejected(Exception):
    pass


def main(folder, mistake: str, program, stamp=None) -> None:
    record = pathlib.Path(folder, "failing_checks.json")
    try:
        said = rejection(record, mistake, program)
    except NotRejected as why:
        lines = [f"FAILED: {record.parent.name} does not reject {mistake}", *str(why).splitlines()]
        sys.exit("\n".join("| " + line for line in lines))
    if stamp:
        pathlib.Path(stamp).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(stamp).write_text(said + "\n")
    else:
        print(said)


def rejection(record, mistake: str, program):
    """What the checks say of the mistake: the recorded one, or else the first that rejects it."""
    check = first_check(record, mistake)
    if check is None:
        return by_any(mistake, program)
    # Another processor may round so that this check does not notice it. Then others must.
    return by_check(check, mistake, program) or by_any(mistake, program)


def by_check(check, mistake: str, program):
    """What this check alone says of the mistake, if it rejects it: its first failed assertion."""
    # In a filter of doctest commas separate names, ? stands for a byte and * for any number of them.
    pattern = re.sub(r"[^ -~]", "*", re.sub(r'[,*?\\"]', "?", check))
    out, failed = run(program, mistake, f"--test-case={pattern}", "--abort-after=1")
    return told(out, failed) if failed and not ended_badly(out) else None


def first_check(record, mistake: str):
    if not record.exists():
        return None
    known = json.loads(record.read_text())
    sites = list(known["mistakes"].get(mistake, {}))
    return known["checks"][int(sites[0])].split(" | ")[0] if sites else None


def by_any(mistake: str, program):
    """The same of all checks together, which must come to their end."""
    out, failed = run(program, mistake, "--test-suite-exclude=slow", "--abort-after=20")
    if failed == 0:
        out, failed = run(program, mistake, "--test-suite=slow", "--abort-after=20")
    if failed is None:
        raise NotRejected("The checks did not run to their end:\n" + "\n".join(out.splitlines()[-5:]))
    if ended_badly(out):
        raise NotRejected("It ends in an exception or crash:\n" + ended_badly(out))
    if not told(out, failed):
        raise NotRejected(f"No assertion notices this mistake ({failed} failed).")
    return told(out, failed)


def run(program, mistake: str, *flags):
    """What the checks print, and how many assertions fail; None if they do not come to their end."""
    try:
        done = subprocess.run([program, "--no-colors", *flags], env=dict(os.environ, T2T_WRONG=mistake), timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return "60 seconds were not enough", None
    out = done.stdout.decode(errors="replace")
    found = re.search(r"^\[doctest\] assertions:.*\| *(\d+) failed", out, re.M)
    return out, int(found.group(1)) if found else None


def ended_badly(out):
    lines = out.splitlines()
    at = next((i for i, line in enumerate(lines) if re.search("test case (THREW exception|CRASHED)", line)), None)
    return "" if at is None else "\n".join(lines[max(0, at - 3):at + 4])


def told(out, failed):
    lines = [line for line in out.splitlines() if "THREW exception" not in line]
    at = next((i for i, line in enumerate(lines) if re.search(r"ERROR: CHECK", line)), None)
    return "" if at is None else f"rejected by {failed} checks, the first:\n" + "\n".join(lines[at:at + 3])


if __name__ == "__main__":
    main(*sys.argv[1:])
