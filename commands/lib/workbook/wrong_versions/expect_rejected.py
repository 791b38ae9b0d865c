#!/usr/bin/env python3
"""Shows that the checks reject a wrong version: expect_rejected.py FOLDER MISTAKE PROGRAM [STAMP]

The folder's record, failing_checks.json, names a check that the mistake fails. It runs alone, up to
its first failed assertion. A mistake that isn't recorded must fail some check, in an assertion:
after a crash, an exception or a time-out the reader would not learn what is wrong. Checks that take
long (the test suite "slow") run only if no other notices it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys


class NotRejected(Exception):
    pass


def main(folder, mistake: str, program, stamp="/dev/stdout") -> None:
    try:
        said = rejection(pathlib.Path(folder, "failing_checks.json"), mistake, program)
    except NotRejected as why:
        name = pathlib.Path(folder).name
        lines = [f"FAILED: {name} does not reject {mistake}", *str(why).splitlines()]
        sys.exit("\n".join("| " + line for line in lines))
    pathlib.Path(stamp).write_text(said + "\n")


def rejection(record, mistake: str, program):
    """What the checks say of the mistake: the recorded one, or else the first that rejects it."""
    known = json.loads(record.read_text()) if record.exists() else {"mistakes": {}}
    for site in known["mistakes"].get(mistake, {}):
        # Another processor may round so that this check does not notice it. Then others must.
        check = known["checks"][int(site)].split(" | ")[0]
        return by_check(check, mistake, program) or by_any(mistake, program)
    return by_any(mistake, program)


def by_check(check, mistake: str, program):
    """What this check alone says of the mistake, if it rejects it: its first failed assertion."""
    # In a filter of doctest commas separate names, ? stands for a byte and * for any number of
    # them.
    pattern = re.sub(r"[^ -~]", "*", re.sub(r'[,*?\\"]', "?", check))
    out, failed = run(program, mistake, f"--test-case={pattern}", "--abort-after=1")
    return told(out, failed) if failed and not ended_badly(out) else None


def by_any(mistake: str, program):
    """The same of all checks together, which must come to their end."""
    out, failed = run(program, mistake, "--test-suite-exclude=slow", "--abort-after=20")
    if failed == 0:
        out, failed = run(program, mistake, "--test-suite=slow", "--abort-after=20")
    if failed is None:
        raise NotRejected("The checks did not run to their end:\n" +
                          "\n".join(out.splitlines()[-5:]))
    if ended_badly(out):
        raise NotRejected("It ends in an exception or crash:\n" + ended_badly(out))
    if not told(out, failed):
        raise NotRejected(f"No assertion notices this mistake ({failed} failed).")
    return told(out, failed)


def run(program, mistake: str, *flags):
    """What the checks print, and how many assertions fail; None if they do not come to their
    end."""
    try:
        done = subprocess.run([program, "--no-colors", *flags], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env=dict(os.environ, T2T_WRONG=mistake))
    except subprocess.TimeoutExpired:
        return "60 seconds were not enough", None
    out = done.stdout.decode(errors="replace")
    found = re.search(r"^\[doctest\] assertions:.*\| *(\d+) failed", out, re.M)
    return out, int(found.group(1)) if found else None


def lines_from(out, pattern, before, after):
    """The lines around the first that has the pattern, or ""."""
    lines = out.splitlines()
    at = next((i for i, line in enumerate(lines) if re.search(pattern, line)), None)
    return "" if at is None else "\n".join(lines[max(0, at - before):at + after])


def ended_badly(out):
    return lines_from(out, "test case (THREW exception|CRASHED)", 3, 4)


def told(out, failed):
    out = re.sub(r".*THREW exception.*\n", "", out)
    said = lines_from(out, r"ERROR: CHECK", 0, 3)
    return said and f"rejected by {failed} checks, the first:\n{said}"


if __name__ == "__main__":
    main(*sys.argv[1:])
