"""Checks of what finds the lines of a reader's that are wrong, on a part written with other names: given the build folder."""
import unittest

import learner  # first: it says where the modules below are

from workbook import written
from workbook.programs import callers, switches
from workbook.verdict import aligned, exchanged

PART = "02_normalization", "rms_norm"

THEIRS = """#include "02_normalization/rms_norm.hpp"
#include <string>
#include "shapes.hpp"
namespace t2t {
void expect_mean_squares(ConstMatrix rows, float tiny) {
  expect(rows.cols > 0, "x", "at least 1 channel", 0);
  expect(tiny >= 0, "eps", "0 or more", tiny);
  for (std::size_t t = 0; tiny == 0 && t < rows.rows; ++t) {
    double sum = 0;
    for (float v : rows.row(t)) sum += v * v;
    const bool divides = float(sum) != 0;
    expect(divides, "eps", "more than 0 (row " + std::to_string(t) + " has a mean square of 0)", tiny);
  }
}
Tensor<2> rms_norm(const Tensor<2>& rows, const Tensor<1>& weight, float tiny) {
  expect_shape("gain", weight, {rows.shape(1)});
  expect_mean_squares(rows, tiny);
  const Tensor<1> power = xt::mean(rows * rows, {1});
  const Tensor<1> factor = 1 / xt::sqrt(power + tiny);
  return weight * rows * as_column(factor);
}
}  // namespace t2t
"""
NORM = "const Tensor<1> power = xt::mean(rows * rows, {1});"
FACTOR = "const Tensor<1> factor = 1 / xt::sqrt(power + tiny);"


class Aligned(unittest.TestCase):
    def places(self, theirs, ours):
        one, = aligned.differing(*(switches.cut(f"void f(Row x, std::size_t n) {body}") for body in (theirs, ours)))
        return [(one.body[place.begin:place.end], place.ours) for place in one.places]

    def test_a_place_is_told_in_the_names_of_the_reader(self):
        self.assertEqual(self.places("{ float total = 0; for (float v : x) total += v; use(total / n); use(total); }",
                                     "{ float sum = 0; for (float v : x) sum += v * v; use(sum / n); use(sum); }"),
                         [("total += v;", "total += v * v;")])

    def test_what_is_missing_and_what_is_too_much_are_places(self):
        self.assertEqual(self.places("{ begin(x); use(n); }", "{ begin(x); done(n); use(n); }"), [("", "done(n); ")])
        self.assertEqual(self.places("{ begin(x); done(n); use(n); }", "{ begin(x); use(n); }"), [("done(n);", "")])

    def test_equal_functions_have_no_places(self):
        same = switches.cut("int f(int a) { return a; }"), switches.cut("int f(int b) {  return b;  // the same\n}")
        self.assertEqual(aligned.differing(*same), [])

    def test_members_keep_their_names(self):
        same = "{ for (float v : x) use(v.x, v.total); }", "{ for (float w : x) use(w.x, w.total); }"
        self.assertEqual(aligned.differing(*(switches.cut(f"void f(Row x) {body}") for body in same)), [])

    def test_brackets_around_a_statement_are_no_difference(self):
        self.assertEqual(self.places("{ for (float v : x) { use(v); } done(n); }", "{ for (float v : x) use(v); done(n + 1); }"),
                         [("done(n);", "done(n + 1);")])

    def test_a_block_is_exchanged_as_a_whole(self):
        (was, ours), = self.places("{ for (float v : x) use(v); }", "{ for (float v : x) { see(v); use(v); } }")
        self.assertEqual((was, "".join(ours.split())), ("use(v);", "{see(v);use(v);}"))

    def test_texts_and_characters_count(self):
        self.assertEqual(self.places("""{ use("a", 'c'); }""", """{ use("b", 'c'); }"""), [("""use("a", 'c');""", """use("b", 'c');""")])
        self.assertEqual(self.places("""{ use("a", 'c'); }""", """{ use("a", 'd'); }"""), [("""use("a", 'c');""", """use("a", 'd');""")])

    def test_what_a_place_uses_is_told(self):
        one, = aligned.differing(switches.cut("int g() { return 1; } void f(int n) { const int m = n * n; use(m + g()); }"),
                                 switches.cut("void f(int n) { const int m = n * n; use(n); }"))
        self.assertEqual([place.uses for place in one.places], [("g", "m")])

    def test_what_the_reader_does_not_declare_is_taken_along(self):
        ours = switches.cut("#include <x>\nnamespace t2t {\nstatic constexpr int n = 3;\nstatic int g() { return n; }\nint f() { return g(); }\n}")
        text = " ".join(aligned.lacking(switches.cut("const int n = 3; int f() { return n; }"), ours).split())
        self.assertEqual(text, "#include <x> namespace t2t { namespace of_ours { static constexpr int n = 3; static int g() { return n; } } using of_ours::g; }")


class Exchanged(unittest.TestCase):
    def found(self, *edits):
        """[(function, its lines, kind), ...] of each exchange, for the reader's part with these edits."""
        text = THEIRS
        for was, now in edits:
            self.assertEqual(text.count(was), 1)
            text = text.replace(was, now)
        lines = text.splitlines()
        exchanges = exchanged.look(written.Text(*PART, {"02_normalization/rms_norm.cpp": text.encode()}), list(callers.of(*PART)))
        return [[(one.function, [line.strip() for line in lines[one.first - 1:one.last]], one.kind) for one in exchange] for exchange in exchanges]

    def test_one_line_is_found(self):
        wrong = NORM.replace("{1}", "{0}")
        self.assertEqual(self.found((NORM, wrong)), [[("rms_norm", [wrong], "lines")]])

    def test_two_lines_are_found_together(self):
        norm, factor = NORM.replace("{1}", "{0}"), FACTOR.replace("+ tiny", "* tiny")
        self.assertEqual(self.found((NORM, norm), (FACTOR, factor)), [[("rms_norm", [norm], "lines"), ("rms_norm", [factor], "lines")]])

    def test_of_what_is_built_otherwise_all_lines_are_told(self):
        ((function, lines, kind),), = self.found(("float(sum) != 0", "float(sum) == 0"))
        self.assertEqual((function, kind), ("expect_mean_squares", "lines"))
        self.assertIn("const bool divides = float(sum) == 0;", lines)

    def test_two_functions_are_found_together(self):
        one, other = self.found(("float(sum) != 0", "float(sum) == 0"), (NORM, NORM.replace("mean", "sum")))[0]
        self.assertEqual({one[0], other[0]}, {"rms_norm", "expect_mean_squares"})


if __name__ == "__main__":
    unittest.main()
