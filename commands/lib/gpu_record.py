"""gpu_record.py LINES CLOCKS FOLDER NAME DRIVER CAPABILITY: what a bench on a GPU measured, as
FOLDER/NAME.json.

LINES has one JSON object a line, from the benches and gpu_torch.py; CLOCKS has what nvidia-smi said
twice a second: clock of the multiprocessors and of the memory in MHz, power in W, temperature in
°C.
"""
import datetime
import json
import pathlib
import re
import statistics
import sys


def median_of(rows, column):
    numbers = [float(row[column]) for row in rows if re.fullmatch(r"[\d.]+", row[column])]
    return statistics.median(numbers) if numbers else None


def main(lines, clocks, folder, name, driver, capability):
    rows = [[cell.strip() for cell in line.split(",")]
            for line in pathlib.Path(clocks).read_text().splitlines()]
    rows = [row for row in rows if len(row) == 4]
    fields = ("sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c")
    record = {"name": name, "driver": driver, "compute_capability": capability,
              "date": datetime.date.today().isoformat(),
              "while_measuring": {field: median_of(rows, i) for i, field in enumerate(fields)}}
    target = pathlib.Path(folder) / (re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") + ".json")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    results = ",\n  ".join(json.dumps(json.loads(line))  # a line each
                           for line in pathlib.Path(lines).read_text().splitlines())
    head = json.dumps(record, indent=1, sort_keys=True).removesuffix("\n}")
    part.write_text(f'{head},\n "results": [\n  {results}\n ]\n}}\n')
    part.replace(target)
    print(f"written: {target}")


main(*sys.argv[1:])
