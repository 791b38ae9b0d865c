#!/usr/bin/env python3
"""Trains chapter 24's small models for recall and writes docs/recorded/recall.json: the shares that they find, by the number of pairs. Each of
five kinds is trained with three rates and one seed, and with two more seeds at the rate that found most of 16 pairs. It takes some minutes on
one core: python3 docs/weaving/recall.py"""
import datetime
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ["attention", "window", "linear", "delta", "hybrid"]
SEEDS, PAIRS, STEPS, RATES = 3, 16, 4000, (0.03, 0.015, 0.0075)


def shares(kind, rate, seed):
    """The shares found of 1, 2, 4 … pairs by one model."""
    program = pathlib.Path(os.environ.get("T2T_BUILD", ROOT / "build/release")) / "24_delta_rule"
    text = subprocess.run([program, "--recall", kind, "--pairs", str(PAIRS), "--steps", str(STEPS), "--rate", str(rate), "--seed", str(seed)],
                          check=True, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1")).stdout
    return {int(pairs): float(found) for pairs, found in re.findall(r"^ +(\d+) +1 +\d+ +([01]\.\d+)$", text, re.M)}


def cell(values):
    return f"{sum(values) / len(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return re.sub(r" \d+-Core Processor", "", line.split(":")[1].strip())
    return "an unknown processor"


runs, rate_of = {}, {}
for kind in KINDS:
    of_rate = {rate: shares(kind, rate, 1) for rate in RATES}
    rate_of[kind] = max(RATES, key=lambda rate: of_rate[rate][PAIRS])
    runs[kind] = [of_rate[rate_of[kind]], *(shares(kind, rate_of[kind], seed) for seed in range(2, SEEDS + 1))]
    print(kind, rate_of[kind], runs[kind], flush=True)
counts = list(runs[KINDS[0]][0])
rows = [[kind, f"{rate_of[kind]:g}", *(cell([run[n] for run in runs[kind]]) for n in counts)] for kind in KINDS]
note = (f"Shares of the values of 128 held-out sequences per number of pairs: the mean of {SEEDS} seeds, then the least and the greatest. Two layers "
        f"each, at most {STEPS:,} steps of 16 sequences; of three rates, the best one with the first seed. {cpu()}, one thread, {datetime.date.today()}, "
        "`docs/weaving/recall.py`.")
path = ROOT / "docs/recorded/recall.json"
path.write_text(json.dumps({"columns": ["layers", "rate", *(f"{n} pair{'s' if n > 1 else ''}" for n in counts)], "rows": rows, "note": note},
                           indent=1, ensure_ascii=False) + "\n")
