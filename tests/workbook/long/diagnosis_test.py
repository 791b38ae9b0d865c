"""Checks of what finds a mistake by what a part computes, on one small part: given the build folder."""
import dataclasses
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import learner  # first: it says where the modules below are

import behaviour
import changes
import diagnosis
import house
import judge
import known_variants
import prepare_variants
import variants
import wrong

PART = "02_normalization", "rms_norm"


class Changes(unittest.TestCase):
    BODY = """{
  expect_shape("y", y, {T, C});
  for (std::size_t t = 0; t < T; ++t) {
    float sum = 0;
    for (std::size_t c = 0; c < C; ++c) sum += x[c] * (scale + x[c + start]);
    y[t] = sum / float(C);
    done(t);
  }
}"""

    def texts(self):
        made = changes.of("void f(Row x, std::size_t start, float scale, std::size_t T, std::size_t C, Row y) ", self.BODY)
        return {"".join(change.of(self.BODY).split()) for change in made}

    def made(self, was, now):
        self.assertIn(was, self.BODY)
        self.assertTrue("".join(self.BODY.replace(was, now).split()) in self.texts(), f"{was} -> {now}")

    def test_what_someone_forgets_or_mistakes_is_among_them(self):
        for was, now in [("c + start", "c"), ("c + start", "start"), ("t < T", "t <= T"), ("t < T", "t < C"), ("sum / float(C)", "sum"),
                         ("sum / float(C)", "sum / float(T)"), ("+=", "="), ("x[c] * (scale + x[c + start])", "x[c] * scale + x[c + start]"),
                         ("float sum = 0", "float sum = 1"), ("done(t);", ";"), ("y[t]", "y[0]"), ("y[t]", "y[(t + 1)]"), ("scale + x", "scale - x"),
                         ("y[t] = sum / float(C);\n    done(t);", "done(t); y[t] = sum / float(C);")]:
            self.made(was, now)

    OTHER = """{
  const float r = gain * scale, m = mean(x);
  if (most > 0 && r > most) {
    y[i] = f(r + m);
    y[i + n] = g(r + m);
  }
  count += steps(i, n);
  switch (kind) {
    case Kind::one: return r / m;
    case Kind::two: return m;
  }
}"""

    def test_conditions_origins_and_places_that_belong_together_are_changed(self):
        head = "float h(ConstRow x, float gain, float scale, float most, std::size_t i, std::size_t n, Kind kind, Row y) "
        texts = {"".join(change.of(self.OTHER).split()) for change in changes.of(head, self.OTHER)}
        for edits in ([("most > 0 && r > most", "most > 0")], [("return r", "return (gain)")], [("return r", "return (gain * scale)")],
                      [("+= steps(i, n)", "+= 1")], [("steps(i, n)", "(i % n)")], [("r / m", "gain + (r / m)")],
                      [("f(r + m)", "f(r) + f(m)")], [("f(r + m)", "(f(r) + m)"), ("g(r + m)", "(g(r) + m)")],
                      [("y[i]", "y[2 * i]"), ("y[i + n]", "y[2 * i + 1]")],
                      [("scale, m = mean(x);", "scale;"), ("if (", "if ("), ("  count", "  const float m = mean(x); count")],
                      [("case Kind::one: return", "case Kind::two: case Kind::one: return"), ("case Kind::two: return m", "return m")],
                      [("case Kind::one: return", "return"), ("case Kind::two", "case Kind::one: case Kind::two")]):
            text = self.OTHER
            for was, now in edits:
                text = text.replace(was, now)
            self.assertIn("".join(text.split()), texts, edits)

    def test_a_sum_may_be_set_once_before_the_loop(self):
        self.assertTrue(any("{floatsum=0;for(std::size_tt=0;" in text for text in self.texts()))

    def test_what_a_refusal_says_stays(self):
        self.assertEqual([text for text in self.texts() if "expect_shape(" in text and 'expect_shape("y",y,{T,C});' not in text], [])

    def test_it_is_told_with_the_expression_around_it(self):
        told = [(c.was, c.then) for c in changes.of("void f(Row x, std::size_t start)", "{ use(x[start + 1] * 2); }")]
        self.assertIn(("start + 1", "start"), told)


class Behaviour(unittest.TestCase):
    def test_numbers_are_compared_and_words_are_equal(self):
        self.assertTrue(behaviour.same("1 3 == 3", "1 3 == 3"))
        self.assertTrue(behaviour.same("0 0.123456789 <  0.1", "0 0.123456788 <  0.1"))
        self.assertFalse(behaviour.same("0 0.1234 <  0.1", "0 0.1254 <  0.1"))
        self.assertFalse(behaviour.same("0 3 == 4", "0 3 != 4"))
        self.assertTrue(behaviour.same("0 nan == 1", "0 nan == 1"))
        self.assertFalse(behaviour.same("0 nan == 1", "0 2 == 1"))

    def test_differences_are_equal_to_rounding(self):
        self.assertTrue(behaviour.same("0 ~ 4 0 1e6 2e6 5e5 -3e5 ~", "0 ~ 4 0 1.00001e6 2e6 5.00001e5 -3e5 ~"))
        self.assertFalse(behaviour.same("0 ~ 4 0 1e6 2e6 5e5 -3e5 ~", "0 ~ 4 0 1e6 2e6 5e5 3e5 ~"))
        self.assertFalse(behaviour.same("0 ~ 4 1 1e6 2e6 5e5 -3e5 ~", "0 ~ 4 0 1e6 2e6 5e5 -3e5 ~"))
        self.assertFalse(behaviour.same("1 ~ close ~", "0 ~ 4 0 3 3 1 1 ~"))

    def test_what_another_run_would_name_otherwise_does_not_count(self):
        one, other = (behaviour.read(f"check a\n12 1 /tmp/t2t_test_{number}/x: 3 at 0x{number}\n\nended in time\n") for number in (317, 3172))
        self.assertEqual(one, other)
        self.assertIn("3 at", one["a | 12 | 1"])

    def test_what_waits_for_another_function_is_known(self):
        facts = behaviour.read("check a\n12 1 3 == 3\nthrew not written yet: f\ncheck b\n20 1 1 == 1\n\nended in time\n")
        self.assertEqual(behaviour.waiting(facts), {"a"})
        self.assertEqual(facts["b | 20 | 1"], "1 1 == 1")


class Preparation(unittest.TestCase):
    def test_it_ends_when_the_part_passes(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(known_variants, "folder", lambda *_: pathlib.Path(folder)):
            prepare_variants.end(*PART)  # it was never begun
            waits = ("import fcntl, os, pathlib, sys, time\nfolder = pathlib.Path(sys.argv[1])\nlock = open(folder / 'lock', 'w')\n"
                     "fcntl.flock(lock, fcntl.LOCK_EX)\n(folder / 'process').write_text(str(os.getpid()))\nprint(flush=True)\ntime.sleep(60)")
            with subprocess.Popen([sys.executable, "-c", waits, folder], stdout=subprocess.PIPE, start_new_session=True) as process:
                process.stdout.readline()
                prepare_variants.end(*PART)
                self.assertEqual(process.wait(10), -signal.SIGTERM)
            prepare_variants.end(*PART)  # it has ended


class Diagnosis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        prepare_variants.prepare(*PART)
        cls.known = known_variants.of(*PART)

    def found(self, variant):
        program = self.known.program(variant or variants.Variant("none"))
        return diagnosis.compared(PART[0], self.known, self.known.facts(program, variant))

    def judged(self, text):
        """The diagnosis of a part with this text, as ./learn check makes it."""
        theirs = house.theirs(*PART)
        theirs.parent.mkdir(exist_ok=True)
        theirs.write_text(text)
        verdict = judge.judge(*PART)
        self.assertEqual(verdict.word, "fails")
        return diagnosis.look(verdict)

    def test_recorded_mistakes_are_named(self):
        for name in (name for name, part, _ in wrong.patches(PART[0]) if part == PART[1]):
            self.assertEqual([one for one, _ in self.found(variants.Variant(name)).mistakes], [name])

    def test_a_recorded_mistake_is_named_only_if_all_checks_agree(self):
        path = house.ours(*PART).relative_to(house.ROOT)
        theirs = house.theirs(*PART)
        theirs.parent.mkdir(exist_ok=True)
        theirs.write_text(variants.switches.patched(str(path), house.ROOT / "tests/wrong" / PART[0] / "sum_for_mean.patch"))
        verdict = judge.judge(*PART)
        self.assertEqual([one.name for one in verdict.alike], ["sum_for_mean"])
        another = dataclasses.replace(verdict.alike[0], name="wrong_axis")
        self.assertEqual(diagnosis.not_contradicted(*PART, verdict.program, [another]), [])

    def test_ours_makes_none(self):
        self.assertEqual(self.found(None), diagnosis.Diagnosis())

    def test_what_nobody_recorded_is_located(self):
        ours = house.ours(*PART).read_text()
        found = self.judged(ours.replace("gain * x * as_column", "(1 + gain) * x * as_column"))
        self.assertEqual(found.mistakes, [])
        change, = found.changes
        self.assertEqual(change.function, "rms_norm")
        self.assertIn("(1 + gain", change.then)


if __name__ == "__main__":
    unittest.main()
