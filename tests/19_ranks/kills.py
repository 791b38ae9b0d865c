#!/usr/bin/env python3
"""Kills a training on ranks again and again, with SIGKILL and at random moments: kills.py PROGRAM [KILLS [SEED]].

PROGRAM is chapter 19's. Each time the training goes on with another number of ranks and another split. At the end its
weights must be those of a training that was never killed, on one rank. After each kill, the checkpoint must be whole
and not older than the last one that was told, and no process may be left.
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
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
STEPS = 60


def command(folder, ranks, split):
    return [PROGRAM, "--train", folder, "--ranks", str(ranks), "--split", split, "--steps", str(STEPS), "--every", "2"]


def ranks_of(folder):
    """The processes of the ranks, by their command lines; mpirun's names the folder, too."""
    found = subprocess.run(["pgrep", "-f", f"^{re.escape(PROGRAM)} --train {re.escape(folder)}"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def checksum(output):
    return re.search(r"have the checksum (\w+)", output)


def killed_training(folder, chance, most_kills):
    """Runs a training in the folder to its end, killing it up to so many times. Returns the kills, the checksum, and the
    longest time from a kill to the end of all ranks."""
    kills, last, slowest = 0, 0, 0.0
    while True:
        ranks, split = chance.randint(1, 5), chance.choice(["zero1", "fsdp"])
        run = subprocess.Popen(command(folder, ranks, split), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        killed = kills < most_kills
        if killed:
            time.sleep(chance.uniform(0.3, 3))
            pids = ranks_of(folder)
            killed = bool(pids)
            if killed:
                os.kill(chance.choice(pids), signal.SIGKILL)
        start = time.monotonic()
        output, errors = run.communicate(timeout=600)
        while ranks_of(folder) and time.monotonic() - start < 10:  # mpirun ends before the last of them
            time.sleep(0.1)
        if killed:
            kills, slowest = kills + 1, max(slowest, time.monotonic() - start)
        said = f"{ranks} ranks, {split}, status {run.returncode}\n{output}{errors}"
        began = re.search(r"goes on after step (\d+)", output)
        if began and int(began[1]) < last:
            sys.exit(f"step {last} had been saved, and this went on before it: {said}")
        if ranks_of(folder):
            sys.exit(f"{len(ranks_of(folder))} ranks are left: {said}")
        last = max([last, *map(int, re.findall(r"^step +(\d+)", output, re.M)), *([int(began[1])] if began else [])])
        if checksum(output):
            return kills, checksum(output)[1], slowest
        if not killed:
            sys.exit(f"ended without a checksum: {said}")


def main():
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory() as top:
        want = checksum(subprocess.run(command(f"{top}/whole", 1, "fsdp"), capture_output=True, text=True, check=True).stdout)[1]
        kills, trainings, slowest = 0, 0, 0.0
        while kills < KILLS:
            more, got, longest = killed_training(f"{top}/killed-{trainings}", chance, KILLS - kills)
            kills, trainings, slowest = kills + more, trainings + 1, max(slowest, longest)
            if got != want:
                sys.exit(f"the weights have the checksum {got}; of a training that was never killed {want}")
        print(f"{kills} kills in {trainings} trainings: all ranks ended within {slowest:.1f} s of each, and the weights after "
              f"{STEPS} steps are those of a training that was never killed ({want})")


main()
