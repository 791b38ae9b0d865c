#!/usr/bin/env python3
"""Stops one rank of a training on a grid, as a rank that hangs, again and again: hangs.py PROGRAM [TIMES [SEED]].

PROGRAM is chapter 22's. The others must end soon after the time limit that a flag sets, with a line that names both
ranks of a message, and no process may be left.
"""
import os
import random
import re
import signal
import subprocess
import sys
import time

PROGRAM, TIMES = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
CHANCE = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
LIMIT, PARTS = 2, 63  # seconds; micro-batches, for a long training that no other program has


def ranks_of_training():
    """The processes of the ranks, by their command lines."""
    found = subprocess.run(["pgrep", "-f", f"^{re.escape(PROGRAM)} --limit {LIMIT} --parts {PARTS}"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def stopped_training(flags):
    """Returns the seconds from the stop to the end of all ranks, and the line that one of them ended with."""
    run = subprocess.Popen([PROGRAM, "--limit", str(LIMIT), "--parts", str(PARTS), *flags],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(CHANCE.uniform(1.5, 3))
    os.kill(CHANCE.choice(ranks_of_training()), signal.SIGSTOP)
    start = time.monotonic()
    errors = run.communicate(timeout=120)[1]
    while ranks_of_training() and time.monotonic() - start < 60:
        time.sleep(0.1)
    seconds = time.monotonic() - start
    line = re.search(rf"^22_grid: rank \d+: .* have not gone through after {LIMIT} seconds.*", errors, re.M)
    if not line or run.returncode == 0:
        sys.exit(f"status {run.returncode}: {errors}")
    if ranks_of_training():
        sys.exit(f"{len(ranks_of_training())} ranks are left")
    return seconds, line[0]


def main():
    slowest = 0.0
    for n in range(TIMES):
        seconds, line = stopped_training(["--same-bits"] if n % 2 else [])
        slowest = max(slowest, seconds)
        print(f"{seconds:.1f} s: {line}")
    print(f"{TIMES} ranks stopped: all others ended within {slowest:.1f} s, at a limit of {LIMIT} s")


main()
