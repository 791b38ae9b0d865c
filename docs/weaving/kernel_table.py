"""Records what each kernel takes of a GPU, in ptxas's own words: docs/recorded/kernels.json, which the pages quote.

Run where there is a CUDA toolkit: python3 docs/weaving/kernel_table.py. CUDACXX names another nvcc.
"""
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NVCC = os.environ.get("CUDACXX", "nvcc")
ARCHITECTURES = ("sm_80", "sm_89", "sm_90a", "sm_120")
FORMS = ("Q8_0", "Q4_0", "Q4_1")  # chapter 12's DeviceForm, by its numbers
FIELDS = {"registers": r"Used (\d+) registers", "shared": r"(\d+) bytes smem",
          "spills": r"(\d+) bytes spill stores"}


def kernels_of(source, architecture):
    """{kernel: {registers, shared, spills}}; shared is static shared memory, in bytes."""
    command = [NVCC, "-std=c++20", "--expt-relaxed-constexpr", f"-arch={architecture}", "-O3", "-DNDEBUG",
               "-Xptxas=-v", f"-I{ROOT}/common", f"-I{ROOT}/chapters", "-cubin", "-o", os.devnull, source]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode != 0:
        raise SystemExit(said.stderr)
    found = {}
    for text in said.stderr.split("Compiling entry function '")[1:]:
        numbers = {name: re.search(pattern, text) for name, pattern in FIELDS.items()}
        found[readable(text.split("'")[0])] = {name: int(n[1]) if n else 0 for name, n in numbers.items()}
    return found


def readable(symbol):
    """flash<64, true> for the symbol that the compiler makes of it."""
    name = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True).stdout.strip()
    name = re.sub(r"\((?:t2t::)?DeviceForm\)(\d)", lambda m: FORMS[int(m[1])], name)
    name = re.sub(r"^void |t2t::|\(anonymous namespace\)::|\((int|bool|unsigned int)\)", "", name)
    return name[:name.rindex("(")] if "(" in name else name


def main():
    version = subprocess.run([NVCC, "--version"], capture_output=True, text=True, check=True).stdout
    record = {"nvcc": re.search(r"release ([\d.]+)", version)[1]}
    for source in sorted(ROOT.glob("chapters/**/*.cu")):
        by_architecture = {one: kernels_of(source, one) for one in ARCHITECTURES}
        text = source.read_text()
        chapter = ROOT / "chapters" / source.relative_to(ROOT / "chapters").parts[0]
        in_order = sorted(by_architecture[ARCHITECTURES[0]], key=lambda name: text.find(name.split("<")[0] + "("))
        for kernel in in_order:
            row = {"source": str(source.relative_to(chapter)), "kernel": kernel}
            row.update({one: by_architecture[one][kernel] for one in ARCHITECTURES})
            record.setdefault(chapter.name, []).append(row)
    (ROOT / "docs/recorded/kernels.json").write_text(json.dumps(record, indent=1) + "\n")


main()
