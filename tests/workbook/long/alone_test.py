"""Checks of ./learn check NN part function: one small part is built, in which functions are missing or wrong."""
import contextlib
import io
import unittest

from learner import BUILD  # first: it says where the modules below are

from workbook import book, checks, progress
from workbook.commands import check
from workbook.source import cpp
from workbook.verdict import one_function, telling

PART = "01_embedding", "embedding"
OURS = book.ours(*PART).read_text()
BODY = {f.name: f.body for f in cpp.functions(OURS)}


def without(name, text=OURS):
    """The part in which a function is not written."""
    return "#include <stdexcept>\n" + text.replace(BODY[name], f'{{ throw std::logic_error("not written yet: {name}"); }}')


class Text(unittest.TestCase):
    def test_every_check_is_found_in_the_files(self):
        for name in ("01_embedding", "02_normalization", "08_block", "13_training"):
            if (program := BUILD / f"{name}_test").exists():
                self.assertEqual({piece.name for piece in one_function.pieces(name) if piece.is_check}, set(sum(checks.names(program), [])))

    def test_a_check_calls_a_function_by_name_and_through_helpers(self):
        rows, formula = (one_function.calls_of(*PART, name) for name in ("embed_rows", "embed"))
        by_hand = "look-up: by hand, ids (3, 0, 3) select the last row, the first and the last again"
        self.assertEqual(rows[by_hand].asked, ["CHECK(all_close(by_rows({3, 0, 3}, small_table()), want, 0))"])
        self.assertEqual(len(formula[by_hand].asked), 1)
        self.assertNotIn("one_hot: by hand, the 1 stands at the id", rows)

    def test_a_third_word_is_a_function_only_of_the_part_before_it(self):
        self.assertTrue(check.names_function(["1", "embedding", "embed_rows"]))
        self.assertFalse(check.names_function(["1", "embedding", "rms_norm"]))
        self.assertFalse(check.names_function(["1", "embedding", "3"]))
        self.assertFalse(check.names_function(["1", "embedding"]))


class Function(unittest.TestCase):
    def judged(self, text, function):
        path = book.theirs(*PART)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        one, said = one_function.of(*PART, function), io.StringIO()
        with contextlib.redirect_stdout(said):
            telling.tell_function(one, function)
        self.assertFalse(progress.passes(*PART))
        return one, " ".join(said.getvalue().split())

    def test_a_formula_passes_while_the_rows_are_not_written(self):
        text = without("embed_rows")
        one, said = self.judged(text, "embed")
        self.assertEqual((one.word, one.others), ("passes", ["embed_rows"]))
        self.assertIn(f"embed passes the {len(one.whole + one.partly)} checks that can judge it", said)
        self.assertIn("not right or not written yet: embed_rows", said)
        one, said = self.judged(text, "embed_rows")
        self.assertEqual(one.word, "is not written")
        self.assertIn("Next: write void embed_rows(", said)

    def test_a_wrong_formula_fails_though_the_rows_are_not_written(self):
        one, said = self.judged(without("embed_rows").replace("return matmul(one_hot", "return 2 * matmul(one_hot"), "embed")
        self.assertEqual(one.word, "fails")
        self.assertIn("got -2, want -1", said)

    def test_right_rows_pass_beside_a_wrong_formula(self):
        text = OURS.replace("return matmul(one_hot", "return 2 * matmul(one_hot")
        self.assertEqual(self.judged(text, "embed_rows")[0].word, "passes")
        self.assertEqual(self.judged(text, "embed")[0].word, "fails")

    def test_a_part_that_does_not_build_is_told(self):
        self.assertEqual(self.judged("no", "embed")[0].word, "does not build")


if __name__ == "__main__":
    unittest.main()
