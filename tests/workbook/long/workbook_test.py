"""Checks of ./learn start, check, hint and list. One small part alone is built: given the build folder."""
import os
import pathlib
import subprocess
import threading
import time
import unittest
import unittest.mock

import check_names
from learner import BUILD, ROOT, WORK  # first: it says where the modules below are

from workbook import book, checks, progress, running, written
from workbook.commands import start
from workbook.differences import traces
from workbook.programs import missing_functions, plan, switches
from workbook.source import cpp, pages, skeleton
from workbook.verdict import judge
from workbook.wrong_versions import mistakes, wrong


def all_parts():
    return [(name, part) for name in book.chapters() for part in book.parts_to_write(name)]


class Source(unittest.TestCase):
    def names(self, text):
        return [f.name for f in cpp.functions(text)]

    def test_functions_are_found_whatever_stands_between_them(self):
        text = """#include "a.hpp"
namespace t2t {
static constexpr int N = 3;
struct Local { int f() { return 1; } };
/// What a does.
int a(int x,          // [T]
      const char* y = "{(") {
  if (x) { return '}'; }  // not the end: }
  return 0;
}
static int helper() { return 2; }
template <class F>
static void templated(F f) {}
Thing::Thing(int x) : first_(x), second_{x, {1, 2}} { run(); }
bool Thing::good() const { return true; }
const std::vector<int>& b() {
  static const std::vector<int> all = {1, 2};
  return all;
}
}  // namespace t2t
"""
        self.assertEqual(self.names(text), ["a", "Thing::Thing", "Thing::good", "b"])

        a, thing = cpp.functions(text)[:2]
        self.assertEqual(a.comment, "/// What a does.")
        self.assertTrue(a.body.startswith("{") and a.body.endswith("}") and "return 0" in a.body)
        self.assertEqual(thing.signature, "Thing::Thing(int x)")
        self.assertEqual(thing.body, "{ run(); }")

    def test_a_body_may_begin_with_try(self):
        text = "int a(int x) try { return g(1'000, '}'); } catch (const E& e) { throw; } catch (...) { throw; }\nint b() { return 1; }\n"
        self.assertEqual(self.names(text), ["a", "b"])
        self.assertEqual(cpp.functions(text)[0].body, text[text.index("try"):text.index("\nint b")])

    def test_members_that_a_constructor_sets_are_no_functions(self):
        thing, = switches.cut("Thing::Thing(int x) : first_{x}, second_(x) { run(); }").functions
        self.assertEqual(thing.name, "Thing::Thing")
        thing, = switches.cut("Thing::Thing(int x) : a_(f([](int y) { return y; })), b_{g({1, 2}), x}, c_(x) { run(); }").functions
        self.assertEqual(thing.name, "Thing::Thing")

    def test_functions_may_begin_at_any_column(self):
        text = "namespace t2t {\n  // What a does.\n  int a(int x)\n  {\n    return x;\n  }\n  struct S { int b(); };\n  int S::b() { return 1; }\n}\n"
        self.assertEqual([(f.name, f.comment, f.line) for f in cpp.functions(text)], [("a", "// What a does.", 3), ("S::b", "", 8)])

    def test_what_can_t_be_read_is_told_by_its_line(self):
        text = "int a() {\n  return 1;\n}\nint b() {\n  return this ->* 1 +* ;\n}\n"
        self.assertEqual((self.names(text), cpp.unread(text)), (["a", "b"], 5))
        unread = [part for name, part in all_parts() if cpp.unread(book.ours(name, part).read_text())]
        self.assertLessEqual(set(unread), {"lora", "bulk_copies"})  # pointers to members; a macro

    def test_line_ends_and_marks_of_other_systems(self):
        self.assertEqual(self.names("\ufeffnamespace t2t {\r\nint a() {\r\n  return 1;\r\n}\r\n}"), ["a"])

    def test_a_return_type_may_stand_behind_and_attributes_before(self):
        self.assertEqual(self.names("""auto a(int x) -> std::vector<int> { return {x}; }
__attribute__((noinline, target("avx2"))) void b() {}
[[nodiscard]] int c() noexcept { return 1; }
auto D::e() const -> int { return 1; }
"""), ["a", "b", "c", "D::e"])

    def test_every_skeleton_has_the_functions_of_our_part_and_their_contracts(self):
        for name, part in all_parts():
            with self.subTest(f"{name}/{part}"):
                ours = book.ours(name, part)
                text = skeleton.of(name, part)
                self.assertEqual(self.names(text), self.names(ours.read_text()))
                constructors = [n for n in self.names(text) if n.split("::")[0] == n.split("::")[-1] and "::" in n]
                self.assertEqual(text.count("not written yet: "), len(self.names(text)) - len(constructors))
                self.assertRegex(text, "(?m)^/// |^// See kernels.hpp")

    def test_functions_with_one_name_have_their_own_contracts(self):
        header = "/// Of one.\nint a(int x,  // [T]\n      int y = f({1, 2}));\n\n/// Of all.\nint a(std::span<const int> all, Trace see = {});\n"
        told = [skeleton.contract(header, one) for one in cpp.functions(
            "int a(std::span<const int> all, Trace see) { return 2; }\nint a(int x, int y) { return 1; }\nint b() { return 0; }\n")]
        self.assertEqual(told, ["/// Of all.", "/// Of one.", ""])

    def test_every_function_has_a_hint(self):
        for name, part in all_parts():
            for function in cpp.functions(book.ours(name, part).read_text()):
                with self.subTest(f"{name}/{part}: {function.name}"):
                    page, heading, line = pages.section_of_function(name, part, function.name)
                    self.assertRegex(heading, "^[0-9A-Z]")
                    self.assertTrue(pages.lines_of(page)[line].startswith("[`"))

    def test_a_constant_that_holds_a_function_has_a_section(self):
        page, _, _ = pages.section_of_function("07_swiglu", "activation_rows", "gelu_tanh_lanes")
        self.assertIn("gelu_tanh_lanes = [", page.read_text())


class Hostile(unittest.TestCase):
    def verdict(self, way):
        return checks.run(BUILD / "hostile", dict(os.environ, T2T_HOSTILE=way))

    def test_a_part_that_behaves_passes(self):
        self.assertTrue(self.verdict("").good)

    def test_an_endless_loop_is_stopped(self):
        with unittest.mock.patch.object(running, "SILENT_SECONDS", 1):
            result = self.verdict("loop")
        self.assertEqual(result.ended, "did not end within 1 seconds")
        self.assertEqual(result.running, "by hand: a part that misbehaves")

    def test_a_crash_is_told(self):
        for way in ("crash", "stack"):
            result = self.verdict(way)
            self.assertFalse(result.good)
            self.assertIn("a segmentation fault", result.ended)
            self.assertEqual(result.running, "by hand: a part that misbehaves")

    def test_spoilt_memory_of_malloc_is_told_at_once(self):
        result = self.verdict("heap")
        self.assertRegex(result.ended, "an abort|a segmentation fault")
        self.assertEqual(result.running, "by hand: a part that misbehaves")
        self.assertLess(result.seconds, running.SILENT_SECONDS)

    def test_memory_has_a_limit(self):
        with unittest.mock.patch.object(running, "MEMORY", 1 << 30):
            result = self.verdict("memory")
        self.assertFalse(result.good)
        self.assertIn("bad_alloc", result.failures[0].got)

    def test_the_end_of_the_program_is_no_success(self):
        result = self.verdict("exit")
        self.assertIn("exit status 0", result.ended)
        self.assertFalse(result.good)

    def test_what_a_part_prints_does_not_count(self):
        result = self.verdict("prints")
        self.assertEqual(len(result.failures), 1)
        self.assertIn("hello", result.printed)

    def test_a_record_that_the_part_wrote_has_too_few_checks(self):
        names = checks.names(BUILD / "hostile")
        result = checks.run(BUILD / "hostile", dict(os.environ, T2T_HOSTILE="forges"), names=names)
        self.assertFalse(result.good)
        self.assertIn("when only 1 of 2 checks had run", result.ended)
        self.assertEqual(result.unreached, ["by hand: a part that misbehaves"])

    def test_a_child_ends_with_the_program(self):
        child = int(self.verdict("child").printed.split()[-1])
        with self.assertRaises(ProcessLookupError):
            for _ in range(100):
                os.kill(child, 0)
                stat = pathlib.Path(f"/proc/{child}/stat")
                if stat.exists() and stat.read_text().rpartition(") ")[2].startswith("Z"):
                    raise ProcessLookupError  # it has ended, and nobody has asked how
                time.sleep(0.02)

    def test_all_checks_together_have_a_limit(self):
        with unittest.mock.patch.object(running, "WHOLE_SECONDS", 1):
            result = self.verdict("sleeps")
        self.assertEqual(result.ended, "did not come to its end within 1 seconds, of which it computed for 0")

    def test_the_reader_s_environment_is_not_the_part_s(self):
        with unittest.mock.patch.dict(os.environ, SECRET_TOKEN="1"):
            self.assertTrue(self.verdict("environment").good)

    def test_a_write_past_a_vector_is_shown_with_the_lines_of_its_check(self):
        failure = self.verdict("vector").failures[0]
        self.assertIn("written after the last of 12 bytes", failure.got)
        self.assertEqual(pathlib.Path(failure.file).name, "hostile.cpp")

    def test_an_exception_of_no_standard_type_is_told(self):
        self.assertIn("exception", self.verdict("throws").failures[0].got)

    def test_a_write_past_the_end_is_a_failed_check(self):
        result = self.verdict("past the end")
        self.assertIn("written after the last number of a tensor of 6 numbers", result.failures[0].got)


class Symbols(unittest.TestCase):
    HEADER = """class Merger {
 public:
  void run(int id);

 private:
  const int* find(int id) const;
};
int find(int id);
"""

    def test_a_private_function_is_known(self):
        found = [name for name in ("Merger::find", "Merger::run", "find", "Other::find") if missing_functions.is_private(name, self.HEADER)]
        self.assertEqual(found, ["Merger::find"])

    def test_every_function_of_a_part_is_found_in_our_object(self):
        """Otherwise nobody would notice that a reader's object lacks it."""
        for name, part in all_parts():
            with self.subTest(f"{name}/{part}"):
                ours = BUILD / judge.objects_of(name, part)[2]
                found = [function.name for function, _ in missing_functions.promised(name, part, ours)]
                wanted = [f.name for f in cpp.functions(book.ours(name, part).read_text())]
                self.assertEqual(set(found), set(wanted))
                self.assertGreaterEqual(len(found), len(wanted))


class Texts(unittest.TestCase):
    """A verdict is about the text that was read, whatever the times of files say."""
    RIGHT = book.ours("02_normalization", "rms_norm_rows").read_text()
    WRONG = RIGHT.replace("std::sqrt(", "(", 1)

    def save(self, text):
        path = WORK / "02_normalization/rms_norm_rows.cpp"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.addCleanup(path.unlink, missing_ok=True)
        self.addCleanup(progress.FILE.unlink, missing_ok=True)
        return path

    def verdict(self):
        return judge.judge("02_normalization", "rms_norm_rows").word

    def test_an_older_file_and_a_save_during_the_compilation_are_seen(self):
        self.assertNotEqual(self.WRONG, self.RIGHT)
        self.save(self.RIGHT)
        self.assertEqual(self.verdict(), "passes")
        os.utime(self.save(self.WRONG), (0, 0))
        during = threading.Timer(0.5, self.save, [self.RIGHT])
        during.start()
        self.assertEqual(self.verdict(), "fails")
        during.join()
        self.assertFalse(progress.passes("02_normalization", "rms_norm_rows"))
        self.assertEqual(self.verdict(), "passes")
        self.assertTrue(progress.passes("02_normalization", "rms_norm_rows"))
        copies = [f.name for f in (book.BUILD / "mine/02_normalization").iterdir() if f.stem == "rms_norm_rows"]
        self.assertEqual(sorted(copies), ["rms_norm_rows.cpp", "rms_norm_rows.o", "rms_norm_rows.said"])

    def test_ours_is_not_judged_in_the_place_of_a_function_that_is_missing(self):
        for was, now, says in (("namespace t2t {", "namespace mine { using namespace t2t;", "The file defines mine::rms_norm_rows,"),
                               ("namespace t2t {", "#if 1\n#else\nnamespace t2t {", "between #if and #endif"),
                               ("ConstRow gain, float eps, Matrix", "ConstRow gain, double eps, Matrix",
                                "defines t2t::rms_norm_rows with other arguments")):
            self.save(self.RIGHT.replace(was, now) + ("#endif\n" if "#if" in now else ""))
            verdict = judge.judge("02_normalization", "rms_norm_rows")
            self.assertEqual(verdict.word, "does not build")
            self.assertIn(says, verdict.why)

    def test_a_part_that_includes_ours_is_refused(self):
        self.save('#include "02_normalization/fast/rms_norm_rows.cpp"\n')
        self.assertIn("includes our chapters/02_normalization/fast/rms_norm_rows.cpp", judge.judge("02_normalization", "rms_norm_rows").why)

    def test_a_header_of_the_reader_s_belongs_to_the_text(self):
        path = self.save('#include "own/values.hpp"\n#include "02_normalization/rms_norm.hpp"\n')
        header = path.parent / "own/values.hpp"
        header.parent.mkdir()
        self.addCleanup(header.parent.rmdir)
        self.addCleanup(header.unlink)
        header.write_text("static constexpr int N = 1;\n")
        text = written.read("02_normalization", "rms_norm_rows")
        self.assertEqual(list(text.files), ["02_normalization/rms_norm_rows.cpp", "02_normalization/own/values.hpp"])
        header.write_text("static constexpr int N = 2;\n")
        self.assertNotEqual(written.read("02_normalization", "rms_norm_rows").digest, text.digest)

    def test_a_compiler_that_was_stopped_is_told(self):
        stopped = "g++: internal compiler error: CPU time limit exceeded signal terminated program cc1plus"
        self.assertIn("had computed for 60 seconds", written.limit_in(stopped))
        self.assertIn("more than 4 GiB", written.limit_in("cc1plus: out of memory allocating 208 bytes after a total of 1 bytes"))
        self.assertEqual(written.limit_in("a.cpp:1:1: error: expected ;"), "")

    def test_what_is_no_text_is_told_as_what_it_is(self):
        path = self.save("")
        for make, says in ((path.mkdir, "is a folder"), (lambda: os.mkfifo(path), "is a pipe or a device"),
                           (lambda: path.symlink_to("nowhere"), "is a link to a file that is not there"),
                           (lambda: path.write_bytes(self.RIGHT.encode("utf-16")), "is in UTF-16"),
                           (lambda: path.write_bytes(b"a\0b"), "is not text"),
                           (lambda: path.write_bytes(b"/" * (2 << 20)), "has 2,097,152 bytes; a part may have up to 1,048,576"),
                           (lambda: path.write_text("\n"), "is empty")):
            path.unlink()
            make()
            self.assertIn(says, judge.judge("02_normalization", "rms_norm_rows").why)
            if path.is_dir():
                path.rmdir()
                path.touch()


class Numbers(unittest.TestCase):
    def test_numbers_of_our_files_are_read(self):
        fixtures = book.ROOT / "tests/fixtures/10_pretrained/trace"
        ids = traces.numbers_of(fixtures / "ids.npy")
        norm = traces.numbers_of(fixtures / "final_norm.npy")
        self.assertTrue(all(isinstance(one, int) and one >= 0 for one in ids))
        self.assertEqual(len(norm) % len(ids), 0)
        self.assertTrue(all(isinstance(one, float) for one in norm))


class Mistakes(unittest.TestCase):
    def test_every_wrong_version_is_recorded_with_checks_that_there_are(self):
        names = check_names.all_of_them()
        for chapter in {name for name, _ in all_parts()}:
            known = mistakes.known(chapter)
            self.assertEqual({m.name for m in known}, {name for name, _, _ in wrong.patches(chapter)},
                             f"./learn test {chapter[:2]} --record records them")
            for mistake in known:
                self.assertTrue(mistake.fails, f"{chapter} {mistake.name} fails no check")
                for site in mistake.fails:
                    self.assertNotIn("/tests/fixtures/", site, "a path of one machine")
                    check = site.split(" | ")[0]
                    self.assertTrue(check in names, f"{chapter}: {check}: ./learn test {chapter[:2]} --record")

    def test_no_mistake_is_named_in_the_place_of_another(self):
        """Each record in turn is taken for what a part does that the book doesn't know: then none of the others fits, or
        the two can't be told apart by any number that a check reports."""
        pairs = 0
        for chapter in plan.folders():
            known = mistakes.known(chapter)
            for one in known:
                pairs += sum(other.part == one.part and mistakes.same_fails(one.fails, other.fails) for other in known if other is not one)
        self.assertLessEqual(pairs, 8)

    def test_wrong_versions_are_recognized_by_their_names(self):
        """All of them where they were recorded. On another processor sums are rounded otherwise, and with them the
        numbers of mistakes that are made of rounding."""
        patches = wrong.patches("02_normalization")
        recognized = []
        for name, part, _ in patches:
            with unittest.mock.patch.dict(os.environ, T2T_WRONG=name):
                verdict = judge.of_program("02_normalization", part, BUILD / wrong.program("02_normalization", name, part))
            self.assertEqual(verdict.word, "fails")
            recognized += [name] if verdict.alike and verdict.alike[0].name == name else []
        self.assertGreater(len(recognized), len(patches) / 2)


class Commands(unittest.TestCase):
    def learn(self, *words, status=0):
        run = subprocess.run([ROOT / "learn", *words], capture_output=True, text=True, cwd="/", stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def test_refusals_say_what_to_do(self):
        self.assertIn("has no part 'rmsnorm' to write; it has: rms_norm, layer_norm",
                      self.learn("start", "02", "rmsnorm", status=1))
        self.assertIn("no part is begun. Begin with: ./learn start 02", self.learn("check", status=1))
        self.assertIn("rope.cpp is not begun. Begin with: ./learn start 03 rope", self.learn("check", "03", "rope", status=1))
        self.assertIn("there is no chapter '\u0662'", self.learn("start", "\u0662", status=1))
        self.assertIn("there is no chapter '99'", self.learn("hint", "99", status=1))

    def test_hints_come_in_steps(self):
        for step, says in ((1, "mean square is 1, and what"), (2, "docs/02_normalization.md"), (3, "mean_square = xt::mean")):
            said = self.learn("hint", "02", "rms_norm", "rms_norm")
            self.assertIn(f"hint {step} of 3 for rms_norm", said)
            self.assertIn(says, said)
        self.assertIn("has no function 'none'", self.learn("hint", "02", "rms_norm", "none", status=1))

    def test_the_map_fits_its_columns(self):
        said = self.learn("list")
        self.assertIn("parts", said)
        self.assertLessEqual(max(map(len, said.splitlines())), 80)

    def test_progress_that_is_damaged_is_told_and_kept(self):
        file = WORK / "progress.json"
        kept = file.with_suffix(".damaged")
        for text in ("[]", "null", '{"02_normalization/rms_norm": {"che', '{"02_normalization/rms_norm": 3}', "[" * 100000):
            file.write_text(text)
            said = self.learn("list")
            self.assertEqual(said.count("is not as ./learn writes it"), 1)
            self.assertIn("parts pass", said)
            self.assertEqual(kept.read_text(), text)
        kept.unlink()

    def test_what_can_t_be_written_is_told(self):
        self.learn("hint", "02", "layer_norm", "layer_norm")
        fresh = WORK / "progress.fresh"
        fresh.mkdir()
        self.addCleanup(fresh.rmdir)
        self.assertIn("so results and hints are not counted", self.learn("hint", "02", "layer_norm", "layer_norm"))
        self.assertIn("nowhere/x.json can't be written", self.learn("check", "--json", "/nowhere/x.json", status=1))

    def test_again_puts_what_is_written_aside(self):
        path = WORK / "03_rope/rope.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        for n in (1, 2):
            path.write_text(f"written {n}")
            aside = path.with_name(f"rope.cpp.{n}")
            self.addCleanup(aside.unlink)
            start.put_aside("03_rope", "rope")
            self.assertEqual(aside.read_text(), f"written {n}")
            self.assertFalse(path.exists())

    def test_assistants_are_told_how_to_help_once(self):
        told = WORK / "AGENTS.md"
        told.unlink(missing_ok=True)
        start.tell_assistants()
        self.assertIn("Don't write it for them", told.read_text())
        told.write_text("mine")
        start.tell_assistants()
        self.assertEqual(told.read_text(), "mine")

    def test_a_part_that_is_no_file_is_told(self):
        path = WORK / "03_rope/rope.cpp"
        path.mkdir(parents=True)
        self.addCleanup(path.rmdir)
        self.assertIn("rope.cpp is there already and is no file", self.learn("start", "03", status=1))
        self.assertIn("rope.cpp is a folder, and a part is a file", self.learn("check", "03", status=1))


if __name__ == "__main__":
    unittest.main()
