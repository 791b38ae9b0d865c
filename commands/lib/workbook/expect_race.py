#!/usr/bin/env python3
"""Shows that ThreadSanitizer reports a race in a wrong kernel: expect_race.py NAME PROGRAM STAMP

The kernels in the folders races/ compute the right numbers on the stand-in, so the checks can't reject them.
"""
import os
import pathlib
import subprocess
import sys


def main(name, program, stamp) -> None:
    environment = dict(os.environ, OMP_NUM_THREADS="1", TSAN_OPTIONS="halt_on_error=1")
    done = subprocess.run([program], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    said = done.stdout + done.stderr
    if "ThreadSanitizer: data race" not in said:
        sys.exit(f"| FAILED: no race was reported in {name}\n" + "\n".join("| " + line for line in said.splitlines()[-5:]))
    pathlib.Path(stamp).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(stamp).touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
