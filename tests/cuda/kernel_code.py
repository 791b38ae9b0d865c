#!/usr/bin/env python3
"""What nvcc makes of the kernels for Hopper: kernel_code.py [NVCC [NVDISASM]]

ptxas may undo in silence what a kernel with products of warpgroups asks for: it inserts waits (its messages C7509 to C7520), spills
registers, or moves a wait up, before the exponentials that are to run beside the product. The kernel stays right, but is slow. This
compiles each of them for sm_90a and fails for any of the three; and it must find them in the slow versions of tests/wrong/*/code.
Without nvdisasm the order of waits is not looked at, and the exit status is 77.
"""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "commands/lib"))

from workbook.programs import switches  # noqa: E402

OVERLAPS = ("overlapped", "persistent")  # after a step's wait for scores comes its softmax, then a wait for the means
EXPONENTIALS = 64  # of a thread in a step: 64 queries by 128 keys, for 128 threads
SKIPPED = 77


def main(nvcc="nvcc", nvdisasm="nvdisasm"):
    nvdisasm = shutil.which(nvdisasm)
    sources = [(source.stem, source, source.read_text()) for source in sorted((ROOT / "chapters").glob("*/kernels/hopper/*.cu"))]
    slow = [(patch.stem, ROOT / switches.part_of(patch), switches.patched(switches.part_of(patch), patch))
            for patch in sorted((ROOT / "tests/wrong").glob("*/code/*.patch"))]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda one: complaints(nvcc, nvdisasm, pathlib.Path(folder), *one), [*sources, *slow]))
    bad = [line for lines in found[:len(sources)] for line in lines]
    if nvdisasm:
        bad += [f"{name}: nothing is found in this slow version" for (name, _, _), lines in zip(slow, found[len(sources):]) if not lines]
    print(*bad, sep="\n", end="\n" if bad else "")
    print(f"{len(sources)} kernels compiled for sm_90a, and {len(slow)} slow versions",
          "" if nvdisasm else "; nvdisasm is not here, so the order of waits was not looked at")
    sys.exit(1 if bad else 0 if nvdisasm else SKIPPED)


def complaints(nvcc, nvdisasm, folder, name, source, text):
    made, cubin = folder / f"{name}.cu", folder / f"{name}.cubin"
    made.write_text(text)
    done = subprocess.run([nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_90a", "-Xptxas=-v,-warn-spills", f"-I{ROOT}/common",
                           f"-I{ROOT}/chapters", "-cubin", "-o", cubin, made], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"{name} does not compile:\n{done.stderr}"]
    found = [f"{name}: {line}" for line in done.stderr.splitlines() if re.search(r"C75\d\d|[1-9]\d* bytes spill", line)]
    return found + (disorder(nvdisasm, name, cubin) if nvdisasm and source.stem in OVERLAPS else [])


def disorder(nvdisasm, name, cubin):
    """Kernels in which less than three quarters of a step's exponentials stand between the wait for the scores and the next one."""
    text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    kernels = re.split(r"^//-+ \.text\.(\S+)", text, flags=re.M)[1:]
    counts = {kernel: exponentials_after_scores(code) for kernel, code in zip(kernels[::2], kernels[1::2])}
    return [f"{name}: only {count} of a step's {EXPONENTIALS} exponentials run beside the product of the means, in {kernel}"
            for kernel, count in counts.items() if count < EXPONENTIALS * 3 // 4]


def exponentials_after_scores(code):
    """The wait for scores leaves one group of products pending, that of the means."""
    _, _, after = code.partition("WARPGROUP.DEPBAR.LE gsb0, 0x1")
    return after.partition("WARPGROUP.DEPBAR")[0].count("MUFU.EX2")


if __name__ == "__main__":
    main(*sys.argv[1:])
