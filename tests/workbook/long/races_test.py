"""Checks of what finds races between the threads of a part, on one small part: given the build folder."""
import unittest
import unittest.mock

import learner  # first: it says where the modules below are

from workbook import book
from workbook.verdict import judge, races

PART = "02_normalization", "rms_norm_rows"
LOOP = "  for_each_row(T, C, [&](std::size_t t) { rms_norm_row(x.row(t), gain, eps, y.row(t)); });\n"
ROW = "static void rms_norm_row(ConstRow x, ConstRow gain, float eps, Row y) {\n"


class Races(unittest.TestCase):
    def judged(self, was, now):
        ours, theirs = book.ours(*PART).read_text(), book.theirs(*PART)
        self.assertEqual(ours.count(was), 1)
        theirs.parent.mkdir(parents=True, exist_ok=True)
        theirs.write_text(ours.replace(was, now))
        verdict = judge.judge(*PART)
        self.assertEqual(verdict.watched and verdict.watched.unwatched, "")
        return verdict, theirs.read_text().splitlines()

    def assert_race(self, was, now, in_line):
        verdict, lines = self.judged(was, now)
        self.assertEqual(verdict.word, "races")
        self.assertIn(in_line, [lines[one.line - 1].strip() for one in verdict.watched.race if one.file])

    def test_ours_has_none(self):
        self.assertEqual(self.judged(LOOP, LOOP)[0].word, "passes")

    def test_a_buffer_that_all_rows_share(self):
        shared = "static std::vector<float> squares(1 << 16);\n"
        square = "  for (std::size_t c = 0; c < x.size(); ++c) squares[c] = x[c] * x[c];\n"
        self.assert_race(ROW, shared + ROW + square, square.strip())

    def test_a_sum_that_all_threads_of_openmp_add_to(self):
        loop = "#pragma omp parallel for\n  for (std::size_t t = 0; t < T; ++t) {\n    {}\n    rms_norm_row(x.row(t), gain, eps, y.row(t));\n  }\n"
        counted = "std::size_t rows = 0;\n" + loop + "  expect(rows == T, \"x\", \"all rows\", rows);\n"
        self.assertEqual(self.judged(LOOP, counted.replace("for\n", "for reduction(+ : rows)\n", 1).replace("{}", "rows += 1;"))[0].word, "passes")
        atomic = "std::atomic<std::size_t> rows = 0;\n" + loop.replace("{}", "rows += 1;")
        self.assertEqual(self.judged(LOOP, atomic)[0].word, "passes")
        self.assert_race(LOOP, "std::size_t rows = 0;\n" + loop.replace("{}", "rows += y.cols;") + "  asm volatile(\"\" : : \"r\"(rows));\n",
                         "rows += y.cols;")

    def test_what_cannot_be_watched_is_said(self):
        self.judged(LOOP, LOOP)
        with unittest.mock.patch.object(races, "can_be_watched", lambda: False):
            verdict = judge.judge(*PART)
        self.assertEqual((verdict.word, verdict.watched.unwatched), ("passes", "this compiler can't watch threads"))


class Possible(unittest.TestCase):
    def test_only_with_threads_or_something_kept_between_calls(self):
        for names, possible in [([("T", "f")], False), ([("U", "GOMP_parallel")], True), ([("b", "_ZStL8__ioinit")], False),
                                ([("b", "_ZL5total")], True), ([("b", "_ZGVZ1fvE1a")], False), ([("U", "_ZNSt6thread4joinEv")], False)]:
            with unittest.mock.patch.object(races.missing_functions, "named", lambda _, names=names: names):
                self.assertEqual(races.possible(None), possible, names)


if __name__ == "__main__":
    unittest.main()
