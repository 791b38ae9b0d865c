"""./learn test NN: the chapter's checks on our own parts. If a source was edited and they fail,
this says what they say of it, in the words of ./learn check.

    our_checks.py NN_name      runs the chapter's checks, and those of its kernels
"""
import os
import sys

from workbook import book, checks, edited
from workbook.verdict import telling
from workbook.wrong_versions import mistakes

TOLD = 8  # failing checks that are named


def main(chapter: str) -> None:
    programs = [f"{name}_test" for name in (chapter, f"{chapter}_kernels")
                if (book.ROOT / f"tests/{name}_test.cpp").exists()]
    book.build(*programs)
    results = [tell(chapter, program) for program in programs]
    if not all(results):
        book.say(f"\n{edited.note()}".rstrip())
        sys.exit(1)


def tell(chapter: str, program):
    """Runs a program of checks and says what came of it; whether all is well."""
    path, name = book.BUILD / program, program.removesuffix("_test")
    book.at_work(f"{name}: its checks run")
    result = checks.run(path, os.environ, names=checks.names(path))
    book.at_work("")
    if result.good:
        print(f"{name}: all {len(result.checks)} checks pass ({result.seconds:.1f} s)")
        return True
    every = [*(f.check for f in result.failures), *result.failed, result.running]
    failed = [check for check in dict.fromkeys(every) if check]
    book.say(book.bold(f"{name}: {len(failed)} of {len(result.checks)} checks fail."))
    if result.ended:
        book.say(f'\nIn the check "{result.running}" it {result.ended}.')
    if result.failures:
        telling.tell_failure(result.failures[0])
    fails = mistakes.fails_of(result.failures)
    if alike := [(chapter, m.name, m.says) for m in mistakes.known(chapter)
                 if mistakes.same_fails(fails, m.fails)]:
        telling.tell_recorded(alike)
    if len(failed) > 1:
        print("\nThese fail, too:")
        for check in failed[1:TOLD]:
            book.say(check, 2)
        if len(failed) > TOLD:
            print(f"  and {len(failed) - TOLD} more")
    book.say(f"\nAll that they say: {book.shown(path)} prints it.")
    return False
