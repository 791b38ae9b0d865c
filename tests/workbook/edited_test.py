#!/usr/bin/env python3
"""What happens when a reader edits the book's own sources: which wrong versions are skipped, which
checks are left out of a verdict on the reader's part, and what ./learn test says."""
import contextlib
import io
import os
import platform
import unittest
import unittest.mock

from learner import BUILD  # first: it says where the modules below are

from workbook import edited
from workbook.programs import plan
from workbook.verdict import judge, our_checks, telling
from workbook.wrong_versions import keys, rejections, wrong

CHAPTER, PART, SOURCE = "02_normalization", "rms_norm", "chapters/02_normalization/rms_norm.cpp"
MISTAKE = "sum_for_mean"


class WrongVersions(unittest.TestCase):
    def test_patches_that_do_not_fit_are_skipped_and_the_others_planned(self):
        right = plan.switches.patched

        def patched(part, patch):
            if patch.stem == MISTAKE:
                raise plan.switches.DoesNotFit("its lines are gone")
            return right(part, patch)
        with unittest.mock.patch.object(plan.switches, "patched", patched), unittest.mock.patch.object(plan, "write"):
            made = plan._made(CHAPTER)
        self.assertEqual(made.skipped, {MISTAKE: SOURCE})
        self.assertIn("wrong_axis", made.together[SOURCE])
        self.assertNotIn(MISTAKE, made.together[SOURCE])

    def test_nothing_is_skipped_in_the_sources_as_they_are(self):
        if edited.files():
            self.skipTest("sources are edited")
        self.assertEqual([plan.of(folder).skipped for folder in plan.folders() if plan.of(folder).skipped], [])

    def test_mistakes_with_instructions_that_are_not_there_are_not_made(self):
        with unittest.mock.patch.object(plan, "_instructions", set), unittest.mock.patch.object(plan, "write"):
            made = plan._made("12_quantization")
        self.assertEqual(made.elsewhere["sums_beyond_16_bits"], "__AVX2__")
        self.assertNotIn("sums_beyond_16_bits", str([made.together, made.alone]))
        self.assertIn("__SSE2__" if platform.machine() == "x86_64" else "__ARM_NEON", plan._instructions())

    def test_with_edited_sources_all_tests_try_none_and_a_chapter_s_those_that_fit(self):
        skips = unittest.mock.patch.object(rejections, "skipped", lambda folder: {MISTAKE})
        with unittest.mock.patch.object(edited, "files", lambda: [SOURCE]), skips:
            self.assertEqual(rejections.chosen_of([CHAPTER], False, []), {CHAPTER: []})
            chosen = rejections.chosen_of([CHAPTER], [SOURCE], [CHAPTER])[CHAPTER]
        self.assertEqual(set(chosen), {name for name, _, _ in wrong.patches(CHAPTER)} - {MISTAKE})

    def test_without_edits_a_few_are_drawn_and_stay_the_same(self):
        folders = plan.folders()
        drawn = keys.drawn(folders, keys.DRAWN)
        self.assertEqual(len(drawn), keys.DRAWN)
        self.assertEqual(keys.drawn(folders, keys.DRAWN), drawn)


class Verdicts(unittest.TestCase):
    def test_a_check_that_ours_fails_too_does_not_count(self):
        program = BUILD / wrong.program(CHAPTER, MISTAKE, PART)
        with unittest.mock.patch.dict(os.environ, T2T_WRONG=MISTAKE):
            alone = judge.of_program(CHAPTER, PART, program)
            verdict = judge.of_program(CHAPTER, PART, program, ours=program)
        self.assertEqual((alone.word, alone.left_out), ("fails", set()))
        self.assertEqual((verdict.word, verdict.left_out), ("passes", alone.failed))
        self.assertEqual(verdict.counts, (alone.counts[0], alone.counts[0]))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), unittest.mock.patch.object(edited, "files", lambda: [SOURCE]):
            telling.tell(verdict)
        self.assertIn("left out, since our own parts fail them here", said.getvalue())
        self.assertIn(f"Edited: {SOURCE}", " ".join(said.getvalue().split()))

    def test_what_ours_passes_counts(self):
        with unittest.mock.patch.dict(os.environ, T2T_WRONG=MISTAKE):
            verdict = judge.of_program(CHAPTER, PART, BUILD / wrong.program(CHAPTER, MISTAKE, PART), ours=BUILD / f"{CHAPTER}_test")
        self.assertEqual((verdict.word, verdict.left_out), ("fails", set()))


class Told(unittest.TestCase):
    def test_the_checks_of_a_chapter_say_which_fail_and_name_the_mistake(self):
        said = io.StringIO()
        program = wrong.program(CHAPTER, MISTAKE, PART)
        with unittest.mock.patch.dict(os.environ, T2T_WRONG=MISTAKE), contextlib.redirect_stdout(said):
            self.assertFalse(our_checks.tell(CHAPTER, program))
        self.assertIn("A known mistake fails the same checks", said.getvalue())
        self.assertIn("sum for mean", said.getvalue())
        self.assertLess(said.getvalue().count("\n"), 60)


if __name__ == "__main__":
    unittest.main()
