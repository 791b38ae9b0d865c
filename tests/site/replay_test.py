"""The replay page: a saved run opens, broken files are refused with a line, and two traces part where --compare says."""
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

import browser
import programs

TRACE = browser.HOME / "tests/fixtures/10_pretrained/trace"


def npy(header, values=b""):
    header = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values


BROKEN = {
    "empty": (b"", "not a .npy file of version 1.0"),
    "other": (b"GGUF" * 40, "not a .npy file of version 1.0"),
    "version": (b"\x93NUMPY\x02\x00" + b" " * 100, "not a .npy file of version 1.0"),
    "cut": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n", b"\0" * 12), "holds 12 bytes of values, its shape needs 16"),
    "huge": (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }\n", b"\0" * 4), "is larger than the file"),
    "doubles": (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n", b"\0" * 8), "holds <f8, wanted <f4 or <i4"),
    "columns": (npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }\n", b"\0" * 4), "is in column-major order"),
    "script": (npy("{'descr': '<f4', 'shape': (1,), '<script>alert(1)</script>': 0}\n", b"\0" * 4), "has a header that can't be read"),
    "inside": (b"\x93NUMPY\x01\x00\x40\x00{'descr'", "ends inside its header"),
    "long": (b"\x93NUMPY\x01\x00\xff\xff" + b" " * 70000, "has a header of 65535 bytes, wanted at most 1024"),
}


class Replay(unittest.TestCase):
    def setUp(self):
        self.reader = browser.browser().reader()
        self.page = self.reader.open("replay.html")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def choose(self, index, folder, says):
        self.page.locator("input[type=file]").nth(index).set_input_files(folder)
        self.page.wait_for_function("(says) => document.querySelector('.result').textContent.includes(says)", arg=says)
        return self.page.inner_text(".piece .result")

    def test_saved_run(self):
        subprocess.run([programs.BUILD / "04_causal_attention", "--save", self.folder], capture_output=True, check=True, env=os.environ | {"T2T_BRIEF": "1"})
        names = sorted(one.stem for one in self.folder.glob("*.npy"))
        self.choose(0, self.folder, f"Tensors: {len(names)}.")
        self.assertEqual(sorted(self.page.locator("[aria-label='the tensors'] button").all_inner_texts()), names)
        self.page.get_by_role("button", name="weights", exact=True).focus()
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("canvas")
        self.page.focus("canvas")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            self.page.keyboard.press(key)
        (_, S), values = programs.npy(self.folder / "weights.npy")
        name, read = self.page.inner_text(".reading").split(" = ")
        self.assertEqual((name, float(read)), ("weights[2, 1]", values[2 * S + 1]))
        self.assertEqual(self.reader.take(), {})

    def test_traces_part(self):
        """One tensor is another's copy: --compare and the page name it."""
        shutil.copytree(TRACE, self.folder / "parted")
        shutil.copy(TRACE / "layer_6_x_plus_feed_forward.npy", self.folder / "parted/layer_7_x_plus_feed_forward.npy")
        self.choose(0, TRACE, "Tensors: ")
        said = self.choose(1, self.folder / "parted", "differ at")
        self.assertIn("They first differ at layer_7_x_plus_feed_forward: for token 0 by", said)
        program = programs.BUILD / "10_pretrained"
        if program.exists():
            printed = subprocess.run([program, "--compare", TRACE, self.folder / "parted"], capture_output=True, text=True).stdout
            self.assertIn("They first differ at layer_7_x_plus_feed_forward: for token 0", " ".join(printed.split()))
        self.assertIn("agree", self.choose(1, TRACE, "agree"))

    def test_broken_files(self):
        for name, (content, _) in BROKEN.items():
            (self.folder / f"{name}.npy").write_bytes(content)
        (self.folder / "good.npy").write_bytes(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n", struct.pack("<2f", 1, 2)))
        self.choose(0, self.folder, "Tensors: 1.")
        lines = self.page.locator(".refused").all_inner_texts()
        self.assertEqual(len(lines), len(BROKEN))
        for name, (_, why) in BROKEN.items():
            self.assertTrue(any(line.startswith(f"Refused: {name}.npy: ") and why in line for line in lines), (name, lines))
        self.assertEqual(self.reader.take(), {})

    def test_no_tensors(self):
        (self.folder / "readme.txt").write_text("text")
        self.choose(0, self.folder, "Tensors: 0.")
        self.assertIn("the folder contains no .npy file", self.page.inner_text(".refused"))
