"""Checks of hints, and of the counts of checks, given the build folder. Of one small part it is found anew which checks
call it."""
import contextlib
import io
import subprocess
import unittest
import unittest.mock

import check_names
from learner import ROOT  # first: it says where the modules below are

from workbook import book, checks, progress, written
from workbook.commands import check, hint, passing_parts, watch
from workbook.programs import callers
from workbook.source import cpp
from workbook.verdict import judge

PART = "02_normalization", "rms_norm"
BY_HAND = "rms_norm: by hand, the row (3, 4) has root mean square sqrt(12.5)"


def all_functions():
    return [(name, part, function) for name in book.chapters() for part in book.parts_to_write(name)
            for function in cpp.to_write(book.ours(name, part).read_text())]


def failure(check, got, asked="", file="", line=0, begins=0):
    return checks.Failure(check, file, line, begins, asked, got, [])


def verdict(failures, ran=(), part=PART):
    result = checks.Result(failures, [*dict.fromkeys([*ran, *(f.check for f in failures)])], [])
    return judge.Verdict(*part, "fails", result=result)


class Questions(unittest.TestCase):
    def test_each_function_has_one_that_reads_by_itself(self):
        asked = {}
        for chapter, part, function in all_functions():
            with self.subTest(f"{chapter} {part} {function.name}"):
                question = hint.questions(chapter).get(function.name, "")
                self.assertRegex(question, r"^[A-Z].*\?$")
                self.assertLessEqual(hint.words_of(question), 40)
                self.assertEqual(asked.setdefault(question, (chapter, function.name)), (chapter, function.name))

    def test_none_is_about_a_function_that_is_gone(self):
        for chapter in {chapter for chapter, _, _ in all_functions()}:
            there = {function.name for name, _, function in all_functions() if name == chapter}
            self.assertEqual(set(hint.questions(chapter)), there, chapter)


class Texts(unittest.TestCase):
    def test_a_hint_has_80_to_160_words(self):
        for failed in (None, f'"{BY_HAND}" (tests/02_normalization_test.cpp:72)'):
            for chapter, part, function in all_functions():
                known = {"failed": failed, "next": function.name}
                with unittest.mock.patch.object(progress, "of", return_value=known if failed else {}):
                    for step in range(1, hint.steps_for(chapter, part, function) + 1):
                        paragraphs, ending = hint.text(chapter, part, function, step)
                        count = hint.words_of(" ".join([*paragraphs, ending]))
                        self.assertTrue(hint.LEAST <= count <= hint.MOST, (chapter, part, function.name, step, count))

    def test_a_long_function_is_shown_in_two_steps(self):
        for chapter, part, function in all_functions():
            steps = hint.steps_for(chapter, part, function)
            whole = hint.code(chapter, part, function, steps)
            self.assertEqual(steps, 4 if len(whole) > hint.LONG else 3)
            self.assertIn(function.signature.splitlines()[0], "\n".join(whole))
            if steps == 4:
                some = hint.code(chapter, part, function, 3)
                self.assertLess(len(some), len(whole))
                self.assertIn("\n".join(some), "\n".join(whole))


class Counts(unittest.TestCase):
    def learn(self, *words):
        return subprocess.run([ROOT / "learn", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True).stdout

    def write(self, **known):
        path = book.theirs(*PART)
        path.parent.mkdir(exist_ok=True)
        path.write_text(book.ours(*PART).read_text())
        progress.note(*PART, digest=written.read(*PART).digest, checks=[15, 15], **known)
        self.addCleanup(progress.FILE.unlink)
        self.addCleanup(path.unlink)
        return path

    def test_a_hint_is_about_what_failed_last(self):
        self.write(passes=False, next="expect_mean_squares", failed=f'"{BY_HAND}" (tests/02_normalization_test.cpp:72)')
        said = " ".join(self.learn("hint", "02").split())
        self.assertIn("for expect_mean_squares", said)
        self.assertIn(f'The last check that failed is "{BY_HAND}" (tests/02', said)
        self.assertIn(hint.questions(PART[0])["expect_mean_squares"], said)
        self.assertIn("1 hint", self.learn("list"))

    def test_a_hint_about_a_part_that_passes_is_not_counted(self):
        self.write(passes=True)
        first, second = (self.learn("hint", *PART, "rms_norm") for _ in range(2))
        self.assertIn("hint 2 of", second)
        for said in (first, second):
            self.assertIn("so this hint is not counted", said)
        self.assertNotIn("hint", self.learn("list"))

    def test_what_was_edited_since_passes_no_more(self):
        path = self.write(passes=True)
        self.assertIn("passes", self.learn("list"))
        path.write_text(path.read_text() + "\n")
        said = self.learn("list")
        self.assertIn("passed, edited since", said)
        self.assertIn(" 0 of ", said)

    def test_graduate_says_whose_each_part_is(self):
        said = passing_parts.whose("03_rope", [PART])
        self.assertEqual(said, "Yours: 02 rms_norm. Ours: 01 embedding; 02 layer_norm, rms_norm_rows, layer_norm_rows; 03 rope, rope_rows.")

    def test_only_checks_that_call_the_part_count(self):
        calling = list(callers.of(*PART))
        some = verdict([failure(calling[0], "false")], [*calling, "layer_norm: of no concern"])
        self.assertEqual(some.counts, (len(calling) - 1, len(calling)))
        other = verdict([failure("layer_norm: fails too", "false")], calling)
        self.assertEqual(other.counts, (len(calling), len(calling) + 1))
        self.assertNotIn("of no concern", check.record([some]))


class Calls(unittest.TestCase):
    def test_every_part_is_recorded_with_checks_that_there_are(self):
        self.assertEqual(set(callers.read()), {f"{chapter}/{part}" for chapter, part, _ in all_functions()})
        there = check_names.all_of_them()
        for part, names in callers.read().items():
            self.assertTrue(names, part)
            self.assertFalse(set(names) - there, f"{part}: ./learn test {part[:2]} --record")

    def test_they_are_found_anew(self):
        found, known = callers.found(*PART), callers.of(*PART)
        self.assertEqual(found, known, "./learn test 02 --record")
        self.assertEqual(sorted(map(len, known.values())), [len(functions) for functions in known.values()])

    def test_what_is_easy_to_follow_comes_first(self):
        first, second = [check for check in callers.of(*PART) if checks.kind_of(check) == "property"][:2]
        failures = [failure(check, "false") for check in ["refused: x", second, first, "one that is new", "y may be x itself"]]
        told = [f.check for f in callers.in_order_of_ease(*PART, failures)]
        self.assertEqual(told, [first, second, "one that is new", "y may be x itself", "refused: x"])


class Next(unittest.TestCase):
    def test_the_function_to_write_is_one_that_the_check_told_first_calls(self):
        rows, room = (failure(check, f"threw an exception: not written yet: {name}") for check, name in
                      (("by hand: six heads", "grouped_attention_rows"), ("refused: no room", "expect_room")))
        part = "06_gqa", "grouped_rows"
        self.assertEqual(verdict([rows, room], part=part).function(), "grouped_attention_rows")
        grouped = failure(rows.check, "threw an exception: not written yet: expect_grouped")
        self.assertEqual(verdict([rows, grouped, room], part=part).function(), "expect_grouped")
        self.assertEqual(verdict([room], part=part).function(), "expect_room")
        own = failure("by hand: six heads", "threw an exception: not written yet: a_helper_of_theirs")
        self.assertEqual(verdict([own, room], part=part).function(), "expect_room")

    def test_a_function_that_fails_is_found_behind_a_helper_of_the_test(self):
        file = ROOT / "tests/02_normalization_test.cpp"
        lines = file.read_text().splitlines()
        at = next(i for i, line in enumerate(lines, 1) if "CHECK(all_close(rms_by_rows(" in line)
        asked = "all_close(rms_by_rows(x, full(2, 1), 0), want, bound(2))"
        failed = failure(BY_HAND, "element [0, 0]", asked, str(file), at, at - 3)
        self.assertEqual(verdict([failed], part=("02_normalization", "rms_norm_rows")).function(), "rms_norm_rows")
        self.assertEqual(verdict([failed]).failed_at, f'"{BY_HAND}" (tests/02_normalization_test.cpp:{at})')


class Watch(unittest.TestCase):
    def test_the_verdict_comes_last(self):
        one = verdict([failure(BY_HAND, "element [0, 0]: got 0.6")], callers.of(*PART))
        one.result.printed = "a line that the part printed"
        said = io.StringIO()
        with unittest.mock.patch.object(judge, "judge", return_value=one), contextlib.redirect_stdout(said):
            watch.tell([PART])
        printed, count, got = (said.getvalue().index(text) for text in ("the part printed", "checks pass.", "got 0.6"))
        self.assertTrue(printed < count < got)
        self.assertTrue(said.getvalue().endswith("got 0.6\n"))
        self.assertNotIn("\033", said.getvalue())

    def test_a_terminal_is_cleared(self):
        screen = io.StringIO()
        screen.isatty = lambda: True
        one = verdict([failure(BY_HAND, "false")])
        with unittest.mock.patch.object(judge, "judge", return_value=one), contextlib.redirect_stdout(screen):
            watch.tell([])
            self.assertEqual(screen.getvalue(), "")
            watch.tell([PART])
        self.assertTrue(screen.getvalue().startswith("\033[H\033[2J"))


if __name__ == "__main__":
    unittest.main()
