"""./learn test NN: the chapter's checks on our own parts. If a source was edited and they fail, this says what they say of it, in
the words of ./learn check.

    our_checks.py NN_name      runs the chapter's checks, and those of its kernels
"""
import os
import sys

from workbook import book, checks, edited, mistakes, telling, wrong

TOLD = 8  # failing checks that are named
FEW = 3  # edits that are shown, and lines of each


def main(chapter: str) -> None:
    programs = [f"{name}_test" for name in (chapter, f"{chapter}_kernels") if (book.ROOT / f"tests/{name}_test.cpp").exists()]
    if not book.build(*programs):
        sys.exit(1)
    results = [tell(chapter, program) for program in programs]
    if not all(results):
        if text := edited.note():
            book.say("\n" + text)
        sys.exit(1)


def tell(chapter: str, program):
    """Runs a program of checks and says what came of it; whether all is well."""
    path = book.BUILD / program
    book.at_work(f"{program.removesuffix('_test')}: its checks run")
    result = checks.run(path, os.environ, names=checks.names(path))
    book.at_work("")
    name = program.removesuffix("_test")
    if result.good:
        print(f"{name}: all {len(result.checks)} checks pass ({result.seconds:.1f} s)")
        return True
    failed = list(dict.fromkeys([*(f.check for f in result.failures), *result.failed, result.running]))
    failed = [check for check in failed if check]
    book.say(book.bold(f"{name}: {len(failed)} of {len(result.checks)} checks fail."))
    if result.ended:
        book.say(f'\nIn the check "{result.running}" it {result.ended}.')
    if result.failures:
        telling.tell_failure(result.failures[0])
    if alike := known(chapter, result.failures):
        telling.tell_recorded(chapter, alike)
    elif named := made_by_an_edit(chapter):
        book.say("\nAn edit of yours is that of a known mistake, or a part of it:")
        telling.tell_known(chapter, named)
    tell_edits()
    if len(failed) > 1:
        print("\nThese fail, too:")
        for check in failed[1:TOLD]:
            book.say(check, 2)
        if len(failed) > TOLD:
            print(f"  and {len(failed) - TOLD} more")
    book.say(f"\nAll that they say: {book.shown(path)} prints it.")
    return False


def known(chapter: str, failures):
    """The known mistakes that fail the same checks with the same numbers, of any part of the chapter."""
    fails = mistakes.fails_of(failures)
    return [one for one in mistakes.known(chapter) if mistakes.same_fails(fails, one.fails)]


def made_by_an_edit(chapter: str):
    """The known mistakes of the chapter of which some lines are changed just so: [(name, what it says), ...]"""
    edits = {(name, was, now) for name in edited.files() for _, was, now in edited.changes(name) if name.endswith((".cpp", ".hpp", ".cu"))}
    found = []
    for mistake, _, says in wrong.patches(chapter):
        part, some = wrong.edits(chapter, mistake)
        if any((part, *one) in edits for one in some):
            found.append((mistake, says))
    return found


def tell_edits() -> None:
    """The lines that were changed, as far as they are few."""
    some = [(name, *one) for name in edited.files() if name.endswith((".cpp", ".hpp", ".cu")) for one in edited.changes(name)]
    for name, line, was, now in some[:FEW]:
        print(f"\n  {name}:{line}")
        for sign, lines in (("-", was), ("+", now)):
            print("".join(f"  {sign} {one}\n" for one in lines[:FEW]), end="")
