"""How CMake builds things, as ninja tells it: the command that compiles one of our sources or links
a program, and the same for another source or with another object before the libraries.
"""
import functools
import json
import os
import pathlib
import shlex
import subprocess
import sys

from workbook import book
from workbook.book import BUILD

# As T2T_LITTLE_WORK of common/cmake/flags.cmake: of checks there is more to compile than to run.
LITTLE_WORK = "-Og"


@functools.cache
def commands():
    """What CMake builds: output -> its command."""
    if not (BUILD / "build.ninja").exists() and book.bash("configure"):
        sys.exit(1)
    told = subprocess.run(["ninja", "-t", "compdb"], cwd=BUILD, capture_output=True, text=True,
                          check=True)
    return {one["output"]: one for one in json.loads(told.stdout)}


@functools.cache
def _outputs_by_file():
    found = {}
    for output, one in commands().items():
        if output.endswith(".o"):
            found.setdefault(os.path.realpath(BUILD / one["file"]), output)
    return found


def object_of(file):
    """The object of one of our sources. Of kernels, and of the host's code beside them, it is the
    one for the stand-in."""
    return next(_outputs_through(pathlib.Path(file)), None) or _outputs_by_file()[
        os.path.realpath(file)]


def is_of_kernels(file) -> bool:
    """Whether it is a kernel, or the host's code beside kernels."""
    return file.suffix == ".cu" or not {"kernels", "on_gpu"}.isdisjoint(file.parts)


def _outputs_through(file):
    """The objects that are compiled by way of a source that includes the file, as t2t_kernels does
    it."""
    if is_of_kernels(file):
        folder, chapter, *rest = file.relative_to(book.ROOT).parts
        ending = f"stand_in/{'/'.join(rest)}.cpp.o"
        yield from (output for output in commands()
                    if output.startswith(f"{folder}/{chapter}/") and output.endswith(ending))


def objects_of_checks(test):
    """The objects of a program's own checks."""
    return [output for output in commands() if f"/{test}.dir/" in output and output.endswith(".o")]


def compilation(output, source, made, *more):
    """The words that compile a source as CMake compiles this output."""
    words = shlex.split(commands()[output]["command"])
    for flag in ("-MT", "-MF"):
        if flag in words:
            del words[words.index(flag):words.index(flag) + 2]
    words = [word for word in words if word != "-MD"]
    words[words.index("-o") + 1] = str(made)
    words[words.index("-c") + 1] = str(source)
    return [*words[:words.index("-o")], *more, *words[words.index("-o"):]]


def without_precompiled(words):
    """The same without the headers that were read for all files: they were read without a
    sanitizer, say."""
    found = [i for i, word in enumerate(words)
             if word == "-include" and "cmake_pch" in words[i + 1]]
    return [word for i, word in enumerate(words) if i not in found and i - 1 not in found]


def link(program, made, objects, replaced=()):
    """The words that link a program of CMake's once more, with these objects before its libraries.
    Replaced are [(object, the one that takes its place), ...]."""
    command = commands()[program]["command"].removeprefix(": && ").removesuffix(" && :")
    words = [dict(replaced).get(word, word) for word in shlex.split(command)]
    at = words.index("-o")
    words[at + 1] = str(made)
    return [*words[:at], *map(str, objects), *words[at:]]


def linked(program, folder, made):
    """A program of checks with an object before the library that holds the original, in this
    folder; or None."""
    out = pathlib.Path(folder, "linked")
    told = subprocess.run(link(program, out, [made]), cwd=BUILD, capture_output=True)
    return str(out) if told.returncode == 0 else None


def main_of_parts():
    """[(doctest's usual main, the one for programs in which a reader's part is linked)]"""
    return [tuple(objects_of_checks(main)[0] for main in ("doctest_main", "doctest_main_of_parts"))]
