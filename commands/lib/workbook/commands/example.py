"""./learn example: cases of the reader's own that say what a part must do, tried on ours and on its
wrong versions."""
import argparse
import concurrent.futures
import os
import string
import sys

from workbook import book, checks, progress, written
from workbook.commands import check, start
from workbook.source import cpp, skeleton
from workbook.verdict import telling
from workbook.wrong_versions import wrong

SHORT = 6  # so many mistakes are named in a line

UNTOUCHED = string.Template("""\
// What $part must do, in cases of your own: an input with what must come, or a property.
// Write them before the code. ./learn example $number $part tries them on the book's part,
// which they must accept, and on wrong versions of it, which they should catch.
#include <doctest/doctest.h>

#include "$header"
#include "support/all_close.hpp"

using namespace t2t;

// chapters/$header says what you may call,
// what each function promises, and what its types are.
//
$calls//
// all_close(got, want, bound) compares two tensors number by number. A Tensor<2> is taken for a
// Matrix too, row(x) makes a Row of a Tensor<1>, and empty(2, 3) a tensor of this shape, whose
// numbers are not set. CHECK_THROWS(call) wants a refusal.

TEST_CASE("by hand: say here which case it is") {
  // const Tensor<2> x = {{1, 2}}, want = {{3, 4}};
  // CHECK(all_close(what_you_call(x), want, 1e-5));
}
""")


def main(*words):
    parser = argparse.ArgumentParser(prog="./learn example")
    parser.add_argument("what", nargs="+", metavar="NN [part]")
    chapter, part = choose(parser.parse_args(words).what)
    if not book.begun(chapter, cases_of(part)):
        return begin(chapter, part)
    text = read(chapter, part)
    ours = tried_on_ours(text, part)
    if not ours.good:
        tell_untrue(chapter, part, ours)
        sys.exit(1)
    results = tried_on_mistakes(text, part)
    progress.note(chapter, part, examples=[len(caught(results)), len(results)])
    tell(chapter, part, ours.checks, results)
    tell_next(chapter, part, text.own, len(caught(results)) == len(results))


def choose(what):
    """The one part that is named, or the only one of the chapter."""
    pairs = [(name, part) for name, parts in book.chapters_and_parts(what) for part in parts]
    if len(pairs) != 1:
        names = ", ".join(f"{name[:2]} {part}" for name, part in pairs)
        book.die(f"wanted one part, got {len(pairs)}: {names}")
    if book.is_kernel(*pairs[0]):
        book.die(f"{pairs[0][1]} is a CUDA kernel, for which this command has no cases")
    return pairs[0]


def cases_of(part: str):
    """The name of the reader's cases of a part: their file lies beside the part's."""
    return f"{part}_examples"


def begin(chapter: str, part: str) -> None:
    """Writes the file of cases, and shows that it builds."""
    file = book.theirs(chapter, cases_of(part))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x") as new:
            new.write(untouched(chapter, part))
    except OSError as error:
        book.die(f"{book.shown(file)} can't be written: {error.strerror}")
    start.tell_assistants()
    with written.built([written.read(chapter, cases_of(part))], program_of(chapter, part)) as build:
        if not build.good:
            book.die(f"{book.shown(file)} does not build as it was written. That is a fault of the "
                     "book.")
    start.export_compile_commands()
    book.say(f"Write cases in {book.shown(file)} with {start.pages_of(chapter, part)} beside it. "
             f"Then, to try them: ./learn example {chapter[:2]} {part}")


def untouched(chapter: str, part: str):
    """The file as it is before the reader writes in it."""
    header = book.header(chapter, part)
    calls = "".join(f"//   {line}\n" for one in skeleton.declarations(header.read_text())
                    for line in one.splitlines())
    return UNTOUCHED.substitute(part=part, number=chapter[:2], calls=calls,
                                header=header.relative_to(book.ROOT / "chapters"))


def read(chapter: str, part: str):
    """The reader's cases, in which something must have been written."""
    try:
        text = written.read(chapter, cases_of(part))
    except written.Unreadable as error:
        book.die(str(error))
    if text.own == untouched(chapter, part):
        book.die(f"{book.shown(book.theirs(chapter, text.part))} is as it was written: it has no "
                 "case of yours yet")
    return text


def tried_on_ours(text, part: str):
    """What the cases say of our part."""
    file = book.shown(book.theirs(text.chapter, text.part))
    with written.built([text], program_of(text.chapter, part)) as build:
        if not build.good:
            book.die(build.limit or f"{file} does not build; its first error is above")
        result = tried(build.program)
    if not result.checks and not result.ended:
        book.die(f"{file} has no TEST_CASE")
    return result


def tried_on_mistakes(text, part: str):
    """Mistake -> what the cases say of our part when it makes that mistake."""
    programs = {name: program_of(text.chapter, part, name)
                for name in mistakes_of(text.chapter, part)}
    results: dict[str, checks.Result] = {}
    for program in dict.fromkeys(programs.values()):
        with written.built([text], program, *programs.values()) as build:
            if not build.good:
                book.die("the wrong versions do not build")
            results |= tried_on_each({name: build.program for name, of in programs.items()
                                      if of == program})
    return {name: results[name] for name in programs}


def program_of(chapter: str, part: str, mistake: str = ""):
    """The program of the reader's cases that makes this mistake when T2T_WRONG names it, and none
    when it is empty."""
    program = f"mine_{chapter}_{cases_of(part)}"
    alone = mistake and wrong.program(chapter, mistake, part) == f"{chapter}_{mistake}"
    return f"{program}_{mistake}" if alone else program


def mistakes_of(chapter: str, part: str):
    """Mistake -> its one line."""
    return {name: says for name, of, says in wrong.patches(chapter) if of == part}


def tried_on_each(programs):
    """Mistake -> what the cases say, of mistake -> the program that makes it."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(programs, pool.map(tried, programs.values(), programs)))


def tried(program, mistake: str = ""):
    return checks.run(program, os.environ | {"T2T_WRONG": mistake})


def caught(results):
    return [mistake for mistake, result in results.items() if not result.good]


def failed(result):
    """The cases that fail, and one that crashes or never ends."""
    return set(result.failed) | {f.check for f in result.failures} | {result.running} - {""}


def tell_untrue(chapter: str, part: str, result):
    count = len(failed(result))
    untrue = ("a case of yours is not true, since the book's part fails it" if count == 1 else
              f"{count} cases of yours are not true, since the book's part fails them")
    print(book.bold(f"{chapter[:2]} {part}: {untrue}."))
    if result.failures:
        return telling.tell_failure(result.failures[0])
    book.say(f'\nIn the case "{result.running}" it {result.ended}.')
    if result.begins:
        telling.tell_lines(*result.begins)


def tell(chapter: str, part: str, cases, results) -> None:
    """Which mistakes the cases catch and which they don't, and what each case catches."""
    found, says = caught(results), mistakes_of(chapter, part)
    yours = ("your case accepts the right part and catches" if len(cases) == 1 else
             f"your {len(cases)} cases accept the right part and catch")
    count = f"all {len(says)}" if len(found) == len(says) else f"{len(found)} of {len(says)}"
    print(book.bold(f"{chapter[:2]} {part}: {yours} {count} mistakes.") + "\n")
    for case in cases:
        catches = told([name for name in found if case in failed(results[name])])
        book.say(f'"{case}" catches {catches or "none"}.', 2)
    if len(found) < len(says):
        book.say("\nThese are not caught:")
    for name, what in says.items():
        if name not in found:
            book.say(f"{told([name])}: {what}", 2)


def tell_next(chapter: str, part: str, text, good) -> None:
    """What to do after this: more cases, or the part itself."""
    functions = cpp.functions(book.ours(chapter, part).read_text())
    names = dict.fromkeys(f.name.split("::")[-1] for f in functions)
    uncalled = [name for name in names if name not in cpp.calls(text)]
    if good:
        book.say(f"\nNext: {check.command_for(chapter, part)}")
    elif uncalled:
        book.say(f"\nYour cases do not call {', '.join(uncalled)}.")


def told(mistakes):
    names = ", ".join(name.replace("_", " ") for name in mistakes)
    return names if len(mistakes) <= SHORT else f"{len(mistakes)} mistakes"
