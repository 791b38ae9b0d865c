"""The numbers of the chapters' programs: tables that their pages show, which ./learn docs --check compares with what the
programs print, and the tensors that a run saves with --save."""
import functools
import os
import pathlib
import re
import struct
import subprocess
import tempfile

import browser

BUILD = pathlib.Path(os.environ.get("T2T_BUILD", browser.HOME / "build/release"))


def rows(page, title, pattern):
    """The lines, in the output with this title, that the pattern finds: what stands between their spaces."""
    text = (browser.HOME / f"docs/{page}.md").read_text()
    output = text.split(f"```text\n{title}", 1)[1].split("```", 1)[0]
    return [line.split() for line in output.splitlines()[1:] if re.search(pattern, line) and line.startswith("  ")]


def table(page, title):
    """The same, of the lines that begin with a number."""
    return rows(page, title, r"^ +-?[\d.]+  ")


def npy(path):
    """(shape, numbers) of a file that --save has written: floats or integers in the order of rows."""
    data = path.read_bytes()
    assert data[:6] == b"\x93NUMPY"
    length = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + length].decode()
    kind = re.search(r"'descr': '([^']+)'", header)[1]
    shape = [int(n) for n in re.search(r"'shape': \(([^)]*)\)", header)[1].replace(",", " ").split()]
    letter, size = {"<f4": ("f", 4), "<f8": ("d", 8), "<i4": ("i", 4), "<i8": ("q", 8)}[kind]
    return shape, list(struct.unpack(f"<{(len(data) - 10 - length) // size}{letter}", data[10 + length:]))


@functools.cache
def run(name, *flags):
    """(what the program prints, {name: (shape, numbers)} of what it saves)."""
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run([BUILD / name, "--save", folder, *flags], capture_output=True, text=True, check=True,
                                 env=os.environ | {"T2T_BRIEF": "1"}).stdout
        return printed, {one.stem: npy(one) for one in pathlib.Path(folder).glob("*.npy")}


def logits(prompt):
    """The real model's, for the token after the prompt; None where its weights are not."""
    weights = pathlib.Path(os.environ.get("T2T_WEIGHTS", browser.HOME / "build/weights/smollm2-135m-instruct.q4_1.gguf"))
    if not weights.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "logits.npy")
        subprocess.run([BUILD / "10_pretrained", "--model", weights, "--prompt", prompt, "--logits", file], capture_output=True, check=True)
        return npy(file)[1]
