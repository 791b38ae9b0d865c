"""Checks of the way along the parts: what begins at once, which parts build, and which of them a chat runs through."""
import concurrent.futures
import fcntl
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

from learner import BUILD, ROOT, WORK  # first: it says where the modules below are

from workbook import book
from workbook.commands import parts_list
from workbook.programs import cmake_commands, plan, switches
from workbook.source import cpp, skeleton

WEIGHTS = pathlib.Path(os.environ.get("T2T_WEIGHTS", ROOT / "build/weights/smollm2-135m-instruct.q4_1.gguf"))

ALL = [(name, part) for name in book.chapters() for part in book.parts_to_write(name)]
CPP = [pair for pair in ALL if book.ours(*pair).suffix == ".cpp"]


def command(name, part, made):
    """How our part is compiled, for another file."""
    return cmake_commands.compilation(cmake_commands.object_of(book.ours(name, part)), made, made.with_suffix(".o"), "-w")


class Way(unittest.TestCase):
    def test_what_is_said_of_a_part_is_said_of_one_that_is_to_be_written(self):
        for name in book.chapters():
            said = [part for word in ("easy", "hard") for part in book.parts_named(name, word)]
            self.assertEqual(len(said), len(set(said)), name)
            self.assertLessEqual({*said, *book.parts_named(name, "chat")}, set(book.parts_to_write(name)), name)

    def test_minutes_count_what_is_to_be_written(self):
        text = "#include <a>\n// what\nA::A() { b(); }\n\nint a(int x) {\n  // why\n  return x;\n}\n"
        self.assertEqual(([f.name for f in cpp.to_write(text)], cpp.lines_to_write(text)), (["a"], 2))
        self.assertTrue(all(parts_list.minutes(*pair) % 5 == 0 and parts_list.minutes(*pair) > 5 for pair in ALL))

    def test_a_wrong_kernel_and_the_hosts_code_beside_it_are_built_for_the_stand_in(self):
        """Which is there without a CUDA toolkit, too."""
        for folder in plan.folders():
            for part in {switches.part_of(patch) for patch in plan.patches_in(folder)}:
                if cmake_commands.is_of_kernels(pathlib.Path(part)):
                    self.assertIn("/stand_in/", cmake_commands.object_of(ROOT / part), part)

    def test_what_an_unnamed_namespace_holds_is_not_to_be_written(self):
        text = "namespace t2t {\nnamespace {\nint helper() { return 1; }\n}\nint a() { return helper(); }\n}\n"
        self.assertEqual([f.name for f in cpp.functions(text)], ["a"])

    def test_every_skeleton_builds(self):
        """All in one file, since what the compiler takes longest for are the headers."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "all.cpp")
            file.write_text("".join(f'#line 1 "{name}/{part}"\n{skeleton.of(name, part)}' for name, part in CPP))
            # The longest command: it names the folders of the most libraries, MPI's among them.
            words = max(([word for word in command(*pair, file) if word != "-w"] for pair in CPP), key=len)
            said = subprocess.run([*words, "-fsyntax-only", "-Wno-unused"], cwd=BUILD, capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr[:2000])

    @unittest.skipUnless(WEIGHTS.is_file(), "the real model's file is missing")
    def test_a_chat_runs_through_the_parts_that_are_said_to_be_needed(self):
        """One that is needed and one that isn't, drawn anew each time; all of them where T2T_ALL is set."""
        until = [pair for pair in CPP if pair[0] <= "10_pretrained"]
        kinds = [[pair for pair in until if parts_list.in_chat(*pair) == needed] for needed in (True, False)]
        drawn = until if os.environ.get("T2T_ALL") else [random.choice(kind) for kind in kinds]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for pair, said in zip(drawn, pool.map(chat_without, drawn)):
                with self.subTest(pair):
                    self.assertEqual("not written yet" in said, parts_list.in_chat(*pair), said[-300:])
                    self.assertTrue("not written yet" in said or "tokens" in said, said[-300:])


def chat_without(pair):
    """What the program of chapter 10 says in a chat when a part is not written."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, f"{pair[1]}.cpp")
        file.write_text(skeleton.of(*pair))
        subprocess.run(command(*pair, file), cwd=BUILD, check=True)
        program = cmake_commands.linked("10_pretrained", folder, file.with_suffix(".o"))
        told = subprocess.run([program, "--model", WEIGHTS, "--chat", "--tokens", "8"], input="What is the capital of France?\n",
                              capture_output=True, text=True)
        return told.stdout + told.stderr


class Start(unittest.TestCase):
    def test_a_part_begins_at_once_though_another_builds(self):
        with open(ROOT / "build/lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            told = subprocess.run([ROOT / "learn", "start", "13", "train_bpe"], capture_output=True, text=True, timeout=5)
        self.assertIn("train_bpe.cpp: 2 functions to write", told.stdout)
        self.assertIn("Then: ./learn check 13 train_bpe", " ".join(told.stdout.split()))
        commands = json.loads((WORK / "compile_commands.json").read_text())
        theirs = str(book.theirs("13_training", "train_bpe"))
        self.assertTrue(any(one["file"] == theirs and one["command"].endswith(f"-c {theirs}") for one in commands))


if __name__ == "__main__":
    unittest.main()
