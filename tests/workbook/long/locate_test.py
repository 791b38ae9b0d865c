"""Checks of ./learn locate, with a small random model in the place of the real one: given the build folder."""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import unittest.mock

from learner import BUILD, ROOT, WORK  # first: it says where the modules below are

from workbook import book, running
from workbook.differences import blame, operations, traces
from workbook.programs import switches
from workbook.source import cpp, skeleton

SCRATCH = tempfile.TemporaryDirectory(prefix="t2t-locate-")
MODEL = pathlib.Path(SCRATCH.name, "tiny.gguf")
os.environ["T2T_WEIGHTS"] = str(MODEL)


def learn(*words):
    run = subprocess.run([ROOT / "learn", "locate", *words], capture_output=True, text=True, cwd="/", stdin=subprocess.DEVNULL)
    return run.returncode, " ".join((run.stdout + run.stderr).split())


class Parts(unittest.TestCase):
    RIGHT = book.ours("02_normalization", "rms_norm_rows").read_text()

    def setUp(self):
        subprocess.run([BUILD / "tiny_model", MODEL], check=True)

    def save(self, name, part, text):
        path = WORK / name / f"{part}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.addCleanup(path.unlink, missing_ok=True)

    def locate(self, text):
        self.save("02_normalization", "rms_norm_rows", text)
        return learn("02", "rms_norm_rows")

    def wrong(self, name):
        patch = ROOT / f"tests/wrong/02_normalization/{name}.patch"
        return switches.patched("chapters/02_normalization/fast/rms_norm_rows.cpp", patch)

    def test_a_part_that_is_right_agrees_in_every_text(self):
        status, said = self.locate(self.RIGHT)
        self.assertEqual(status, 0, said)
        self.assertEqual(len(re.findall(r"agree .*? results", said)), 6)
        self.assertNotIn("DIFFER", said)

    def test_a_known_mistake_is_located_and_named(self):
        status, said = self.locate(self.wrong("sum_for_mean_in_rows").replace("// ", "// my "))
        self.assertEqual(status, 1, said)
        for says in ("Yours: 02 rms_norm_rows. All others are the book's.", "DIFFER one token: 4 tokens, 33 results",
                     "at token 0 of 4", "At layer 0, attention_norm (the norm before attention). It differs by",
                     "embedding . ", "attention_norm Xx", "Your 02 rms_norm_rows makes it",
                     "rms_norm_rows: docs/02_normalization_fast.md, line", "so it is probably this: sum for mean in rows: ",
                     "Next: ./learn check 02 rms_norm_rows"):
            self.assertIn(says, said)

    def test_an_unknown_mistake_is_located_and_not_named(self):
        status, said = self.locate(self.RIGHT.replace("std::sqrt(", "1.07f * std::sqrt("))
        self.assertEqual(status, 1, said)
        self.assertIn("At layer 0, attention_norm", said)
        self.assertIn("Your 02 rms_norm_rows makes it", said)
        self.assertNotIn("known mistake", said)

    def test_of_two_parts_the_one_at_fault_is_found(self):
        block = book.ours("08_block", "block_rows").read_text()
        self.save("02_normalization", "rms_norm_rows", self.RIGHT)
        self.save("08_block", "block_rows", block.replace("norm_rows(from, gains, s.norm, s.eps, to)",
                                                          "norm_rows(from, gains, s.norm, s.eps + 0.1f, to)"))
        status, said = learn()
        self.assertEqual(status, 1, said)
        self.assertIn("Yours: 02 rms_norm_rows; 08 block_rows.", said)
        self.assertIn("At layer 0, attention_norm", said)
        self.assertIn("Your 08 block_rows makes it", said)
        self.assertIn("Next: ./learn check 08 block_rows", said)

    def test_what_is_not_written_or_does_not_build_is_told(self):
        header = book.header("02_normalization", "rms_norm_rows")
        status, said = self.locate(skeleton.made_of("rms_norm_rows.cpp", self.RIGHT, header))
        self.assertEqual(status, 1, said)
        self.assertIn("Yours did not come so far: it ended with", said)
        self.assertIn("not written yet: rms_norm_rows", said)
        self.assertIn("Next: write it. ./learn check 02 rms_norm_rows", said)
        status, said = self.locate("nonsense")
        self.assertEqual(status, 1, said)
        self.assertIn("02 rms_norm_rows does not build", said)
        self.assertIn("there is nothing of yours to compare", said)

    def test_a_missing_model_is_told(self):
        MODEL.unlink()
        self.assertEqual(learn(), (1, "learn: the real model's file is missing. ./learn weights fetches it"))


class Engine(unittest.TestCase):
    """Another engine's trace: ours, with other numbers."""

    def setUp(self):
        subprocess.run([BUILD / "tiny_model", MODEL], check=True)
        self.trace = pathlib.Path(SCRATCH.name, "trace")
        subprocess.run([BUILD / "10_pretrained", "--ids", "72,101,108,108,111", "--trace", self.trace],
                       check=True, capture_output=True)
        self.addCleanup(shutil.rmtree, self.trace)

    def times(self, name, t, factor):
        """Multiplies a row of a file."""
        file = self.trace / f"{name}.npy"
        content, row = bytearray(file.read_bytes()), [factor * number for number in traces._row(file, t)]
        begin = 10 + int.from_bytes(content[8:10], "little")
        struct.pack_into(f"<{len(row)}f", content, begin + 4 * len(row) * t, *row)
        file.write_bytes(content)

    def test_the_same_numbers_agree_and_what_a_trace_lacks_is_skipped(self):
        (self.trace / "layer_0_q.npy").unlink()
        self.assertEqual(learn("--trace", str(self.trace)), (0, "All 32 results that both have agree, for 5 tokens."))

    def test_the_first_other_number_is_located(self):
        self.times("layer_1_v", 2, 1.5)
        self.times("layer_1_heads", 1, 1.5)  # of another token
        self.times("layer_1_gate", 2, 1.0009)
        self.times("layer_1_up", 2, 1.0011)
        status, said = learn("--trace", str(self.trace))
        self.assertEqual(status, 1, said)
        for says in ("at token 2 of 5 (from 0) Hello ^ At layer 1, v (the values). It differs by 0.5 of", "v .X",
                     "heads ..", "gate ..", "up .x", "logits .", "Usual causes: w_v", "Ours is block_rows, chapter 08. Read docs/08_block_fast.md"):
            self.assertIn(says, said)

    def test_agreement_is_what_compare_takes_for_it(self):
        original = pathlib.Path(SCRATCH.name, "original")
        self.addCleanup(shutil.rmtree, original)
        for factor, good in ((1.0009, True), (1.0011, False), (float("nan"), False)):
            shutil.copytree(self.trace, original, dirs_exist_ok=True)
            self.times("layer_0_up", 3, factor)
            compare = subprocess.run([BUILD / "10_pretrained", "--compare", original, self.trace], capture_output=True)
            self.assertEqual(compare.returncode == 0, good, factor)
            self.assertEqual(learn("--trace", str(self.trace))[0] == 0, good, factor)
            shutil.copytree(original, self.trace, dirs_exist_ok=True)

    def test_a_broken_trace_is_refused(self):
        (self.trace / "layer_0_k.npy").write_bytes((self.trace / "layer_0_k.npy").read_bytes()[:-3])
        status, said = learn("--trace", str(self.trace))
        self.assertEqual(status, 1)
        self.assertRegex(said, r"^learn: \S+/layer_0_k.npy: holds \d+ bytes of values, its shape needs \d+$")
        (self.trace / "ids.npy").write_bytes(b"")
        self.assertIn("ids.npy: wanted up to 1024 ids as int32", learn("--trace", str(self.trace))[1])
        self.assertIn("is no folder of .npy files", learn("--trace", str(MODEL))[1])
        self.assertIn("takes no parts of yours", learn("02", "--trace", str(self.trace))[1])


class Pieces(unittest.TestCase):
    def test_every_operation_of_a_trace_is_known_and_made_by_functions_that_there_are(self):
        listed = (ROOT / "chapters/08_block/fast/trace.cpp").read_text().partition("names = {")[2].partition("}")[0]
        names = re.findall(r'"(\w+)"', listed)
        self.assertEqual(operations.ORDER, ["tokens", *names])
        for name in operations.ORDER:
            for chapter, part, function in operations.makers(name):
                self.assertIn(part, book.parts_to_write(chapter))
                self.assertIn(function, [f.name for f in cpp.functions(book.ours(chapter, part).read_text())])

    def test_names_stand_in_the_order_of_computation(self):
        names = ["embedding", "layer_2_q", "layer_2_q_rotated", "layer_10_q", "final_norm", "logits", "other"]
        self.assertEqual(sorted(reversed(names), key=operations.place_of), names)

    def test_every_wrong_version_of_these_parts_can_be_planted(self):
        for chapter, part in operations.seen():
            patches = [patch for _, some in blame.planted(chapter, part) for patch in some]
            path = str(book.ours(chapter, part).relative_to(book.ROOT))
            self.assertEqual(sorted(patches), blame.patches_of(path))

    def test_a_program_that_never_ends_is_stopped(self):
        loop = pathlib.Path(SCRATCH.name, "loop")
        loop.write_text("#!/bin/sh\nwhile :; do :; done\n")
        loop.chmod(0o700)
        MODEL.touch()
        ours = traces.Traces(None, None, seconds=1)
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(running, "SILENT_SECONDS", 1):
            made = traces.make(loop, [traces.Text("0", "", "a")], pathlib.Path(folder), ours)
        self.assertEqual(made.ended, "did not end within 1 seconds")


if __name__ == "__main__":
    unittest.main()
