"""Checks of what is said of a mistake, on one small part: given the build folder."""
import unittest

import learner  # first: it says where the modules below are

from workbook import book
from workbook.programs import switches
from workbook.verdict import diagnosis, judge

PART = "02_normalization", "rms_norm"


class Diagnosis(unittest.TestCase):
    def judged(self, text):
        """The verdict on a part with this text, which fails."""
        theirs = book.theirs(*PART)
        theirs.parent.mkdir(exist_ok=True)
        theirs.write_text(text)
        verdict = judge.judge(*PART)
        self.assertEqual(verdict.word, "fails")
        return verdict

    def test_a_recorded_mistake_is_named(self):
        path = book.ours(*PART).relative_to(book.ROOT)
        patch = book.ROOT / "tests/wrong" / PART[0] / "sum_for_mean.patch"
        verdict = self.judged(switches.patched(str(path), patch))
        self.assertEqual([one.name for one in verdict.alike], [patch.stem])

    def test_what_nobody_recorded_is_located(self):
        ours = book.ours(*PART).read_text()
        verdict = self.judged(ours.replace("gain * x * as_column", "(1 + gain) * x * as_column"))
        self.assertEqual(verdict.alike, [])
        (lines,), = diagnosis.look(verdict)
        self.assertEqual((lines.function, lines.kind), ("rms_norm", "lines"))
        self.assertIn("(1 + gain", lines.text)


if __name__ == "__main__":
    unittest.main()
