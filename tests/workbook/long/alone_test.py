"""Checks of ./learn check NN part function: one small part is built, in which functions are missing or wrong."""
import contextlib
import io
import unittest

from learner import BUILD  # first: it says where the modules below are

import alone
import check
import checks
import house
import progress
import source
import telling

PART = "02_normalization", "rms_norm"
OURS = house.ours(*PART).read_text()
BODY = {f.name: f.body for f in source.functions(OURS)}


def without(name, text=OURS):
    """The part in which a function is not written."""
    return "#include <stdexcept>\n" + text.replace(BODY[name], f'{{ throw std::logic_error("not written yet: {name}"); }}')


class Text(unittest.TestCase):
    def test_every_check_is_found_in_the_files(self):
        for name in ("01_embedding", "02_normalization", "08_block", "13_training"):
            if (program := BUILD / f"{name}_test").exists():
                self.assertEqual({piece.name for piece in alone._pieces(name) if piece.is_check}, set(sum(checks.names(program), [])))

    def test_a_check_calls_a_function_by_name_and_through_helpers(self):
        rows, formula = (alone.calls_of(*PART, name) for name in ("rms_norm_rows", "rms_norm"))
        by_hand = "rms_norm: by hand, the row (3, 4) has root mean square sqrt(12.5)"
        self.assertEqual(rows[by_hand].asked, ["CHECK(all_close(rms_by_rows(x, full(2, 1), 0), want, bound(2)))"])
        self.assertEqual(len(formula[by_hand].asked), 1)
        self.assertNotIn("layer_norm: by hand, the row (1, 3) goes to (-1, 1), and from there to gain and bias", rows)

    def test_a_third_word_is_a_function_only_of_the_part_before_it(self):
        self.assertTrue(check.names_function(["2", "rms_norm", "rms_norm_rows"]))
        self.assertFalse(check.names_function(["2", "rms_norm", "layer_norm"]))
        self.assertFalse(check.names_function(["2", "rms_norm", "3"]))
        self.assertFalse(check.names_function(["2", "rms_norm"]))


class Function(unittest.TestCase):
    def judged(self, text, function):
        path = house.theirs(*PART)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        one, said = alone.of(*PART, function), io.StringIO()
        with contextlib.redirect_stdout(said):
            telling.tell_function(one, function)
        self.assertFalse(progress.passes(*PART))
        return one, " ".join(said.getvalue().split())

    def test_a_formula_passes_while_the_rows_are_not_written(self):
        text = without("rms_norm_rows")
        one, said = self.judged(text, "rms_norm")
        self.assertEqual((one.word, one.others), ("passes", ["rms_norm_rows"]))
        self.assertIn(f"rms_norm passes the {len(one.whole + one.partly)} checks that can judge it", said)
        self.assertIn("not right or not written yet: rms_norm_rows", said)
        one, said = self.judged(text, "rms_norm_rows")
        self.assertEqual(one.word, "is not written")
        self.assertIn("Next: write void rms_norm_rows(", said)

    def test_a_wrong_formula_fails_though_the_rows_are_not_written(self):
        one, said = self.judged(without("rms_norm_rows").replace("= xt::mean", "= xt::sum"), "rms_norm")
        self.assertEqual(one.word, "fails")
        self.assertIn("got 0.6, want 0.84852815", said)

    def test_right_rows_pass_beside_a_wrong_formula(self):
        text = OURS.replace("= xt::mean", "= xt::sum")
        self.assertEqual(self.judged(text, "rms_norm_rows")[0].word, "passes")
        self.assertEqual(self.judged(text, "rms_norm")[0].word, "fails")

    def test_a_part_that_does_not_build_is_told(self):
        self.assertEqual(self.judged("no", "rms_norm")[0].word, "does not build")


if __name__ == "__main__":
    unittest.main()
