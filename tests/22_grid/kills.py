#!/usr/bin/env python3
"""Kills a training on a grid again and again, with SIGKILL and at random moments: kills.py PROGRAM [KILLS [SEED]].

PROGRAM is chapter 22's. Each time the training of a mixture goes on on another grid. At the end the loss of its last step
must have the bits of a training that was never killed, on one rank. After each kill, the checkpoint must be whole and not
older than the last one that was told, and no process may be left.
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, KILLS = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
CHANCE = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
STEPS = 40
GRIDS = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1), (1, 2, 2), (2, 1, 2), (1, 1, 4), (4, 1, 1)]  # data, stages, experts


def command(folder, grid):
    data, stages, experts = map(str, grid)
    return [PROGRAM, "--train", folder, "--mixture", "--data", data, "--stages", stages, "--tensor", "1", "--experts", experts,
            "--steps", str(STEPS), "--every", "2"]


def ranks_of(folder):
    """The processes of the ranks, by their command lines; mpirun's names the folder, too."""
    found = subprocess.run(["pgrep", "-f", f"^{re.escape(PROGRAM)} --train {re.escape(folder)}"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def last_loss(output):
    found = re.search(rf"The loss of step {STEPS} is (\S+)\.$", output, re.M)
    return found and found[1]


def killed_training(folder, most_kills):
    """Runs a training in the folder to its end, killing it up to so many times. Returns the kills and the last loss."""
    kills, last = 0, 0
    while True:
        grid = CHANCE.choice(GRIDS)
        run = subprocess.Popen(command(folder, grid), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pids = []
        if kills < most_kills:
            time.sleep(CHANCE.uniform(0.3, 3))
            pids = ranks_of(folder)
            if pids:
                os.kill(CHANCE.choice(pids), signal.SIGKILL)
        start = time.monotonic()
        output, errors = run.communicate(timeout=600)
        while ranks_of(folder) and time.monotonic() - start < 10:  # mpirun ends before the last of them
            time.sleep(0.1)
        kills += bool(pids)
        said = f"grid {grid}, status {run.returncode}\n{output}{errors}"
        began = re.search(r"goes on after step (\d+)", output)
        if began and int(began[1]) < last:
            sys.exit(f"step {last} had been saved, and this went on before it: {said}")
        if ranks_of(folder):
            sys.exit(f"{len(ranks_of(folder))} ranks are left: {said}")
        last = max([last, *map(int, re.findall(r"^step +(\d+)", output, re.M)), *([int(began[1])] if began else [])])
        if last_loss(output):
            return kills, last_loss(output)
        if not pids and last < STEPS:
            sys.exit(f"ended without its last step: {said}")
        if last == STEPS:  # killed after its last checkpoint
            return kills, None


def main():
    with tempfile.TemporaryDirectory() as top:
        want = last_loss(subprocess.run(command(f"{top}/whole", (1, 1, 1)), capture_output=True, text=True, check=True).stdout)
        kills, trainings = 0, 0
        while kills < KILLS:
            more, got = killed_training(f"{top}/killed-{trainings}", KILLS - kills)
            kills, trainings = kills + more, trainings + 1
            if got not in (want, None):
                sys.exit(f"the loss of step {STEPS} is {got}; of a training that was never killed {want}")
        print(f"{kills} kills in {trainings} trainings, on other grids each time: the loss of step {STEPS} has the bits of a training "
              f"that was never killed ({want})")


main()
