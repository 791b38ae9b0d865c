"""Checks of ./learn example, on one small part: given the build folder."""
import contextlib
import io
import unittest
import unittest.mock

from learner import ROOT  # first: it says where the modules below are

from workbook import book, progress, running
from workbook.commands import example, parts_list as listed
from workbook.source import cpp, skeleton

PART = "02_normalization", "rms_norm"
FILE = book.theirs("02_normalization", "rms_norm_examples")
TRUE = (ROOT / "tests/workbook/rms_norm_examples.cpp").read_text()


class Example(unittest.TestCase):
    def setUp(self):
        FILE.unlink(missing_ok=True)
        progress.FILE.unlink(missing_ok=True)

    def learn(self, text=None, status=0, what=("02", "rms_norm")):
        """What the command says when the file holds this text."""
        if text is not None:
            FILE.parent.mkdir(exist_ok=True)
            FILE.write_text(text)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                example.main(*what)
                ended = 0
            except SystemExit as end:
                ended = end.code
        self.assertEqual(ended, status, said.getvalue())
        return " ".join(said.getvalue().split())

    def test_it_writes_a_file_that_builds_and_stays(self):
        self.assertIn("Write cases in", self.learn())
        text = FILE.read_text()
        self.assertIn("//   Tensor<2> rms_norm(const Tensor<2>& x,     // [T, C]\n", text)
        self.assertIn("it has no case of yours yet", self.learn(status=1))
        self.assertEqual(FILE.read_text(), text)

    def test_every_function_of_a_part_is_named(self):
        """Those of classes have no declaration of their own."""
        for name in book.chapters():
            for part in book.parts_to_write(name):
                functions = [f.name for f in cpp.functions(book.ours(name, part).read_text())]
                said = "\n".join(skeleton.declarations(book.header(name, part).read_text()))
                for function in functions:
                    if "::" not in function and book.ours(name, part).suffix == ".cpp":
                        self.assertRegex(said, rf"\b{function}\(", f"{name} {part}")

    def test_true_cases_catch_mistakes(self):
        said = self.learn(TRUE)
        self.assertIn("your 2 cases accept the right part and catch 2 of 4 mistakes", said)
        self.assertIn('"by hand: (3, 4) has a mean square of 12.5" catches sum for mean, wrong axis.', said)
        self.assertIn("These are not caught: eps outside the root: eps is added to the root instead of", said)
        self.assertEqual(listed.state(*PART), "examples 2 of 4")

    def test_a_function_that_no_case_calls_is_named(self):
        only = TRUE[:TRUE.index('TEST_CASE("by hand')] + TRUE[TRUE.index('TEST_CASE("a token'):]
        said = self.learn(only)
        self.assertIn("your case accepts the right part and catches 1 of 4 mistakes", said)
        self.assertIn("Your cases do not call expect_mean_squares.", said)

    def test_a_case_that_is_not_true_is_shown(self):
        said = self.learn(TRUE.replace("0.84853f, 1.13137f", "0.6f, 0.8f"), status=1)
        self.assertIn("a case of yours is not true, since the book's part fails it", said)
        self.assertIn("got 0.84852815, want 0.6", said)
        self.assertIn("rms_norm_examples.cpp:", said)
        self.assertEqual(progress.of(*PART), {})

    def test_a_case_that_hangs_or_crashes_is_shown_and_catches_what_it_hangs_on(self):
        hanging = TRUE.replace("CHECK(all_close(", "while (!(y(0, 0) > 0.7f)) {\n  }\n  CHECK(all_close(")
        with unittest.mock.patch.object(running, "SILENT_SECONDS", 1):
            self.assertIn('has a mean square of 12.5" catches sum for mean, wrong axis.', self.learn(hanging))
            said = self.learn(hanging.replace("> 0.7f", "> 7"), status=1)
        self.assertIn('In the case "by hand: (3, 4) has a mean square of 12.5" it did not end within 1 seconds', said)
        said = self.learn(TRUE.replace("Tensor<2> y =", "*static_cast<volatile int*>(nullptr) = 1;\n  Tensor<2> y ="), status=1)
        self.assertIn("it ended with a segmentation fault", said)

    def test_what_holds_no_cases_is_told(self):
        self.assertIn("has no TEST_CASE", self.learn(TRUE[:TRUE.index("TEST_CASE")], status=1))
        self.assertIn("rms_norm_examples.cpp is empty", self.learn("", status=1))
        self.assertIn("rms_norm_examples.cpp does not build; its first error is above", self.learn("no C++", status=1))

    def test_refusals_say_what_is_wanted(self):
        self.assertIn("wanted one part, got 4: 02 rms_norm, 02 layer_norm", self.learn(status=1, what=["02"]))
        self.assertIn("is a CUDA kernel", self.learn(status=1, what=["11", "fused_online_softmax"]))


if __name__ == "__main__":
    unittest.main()
