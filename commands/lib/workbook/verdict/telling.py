"""A verdict in words, for a person at a terminal: the check that fails, the mistake, and what else
happened."""
import pathlib
import re
import sys

from workbook import book, checks, edited
from workbook.source import cpp, pages
from workbook.verdict import diagnosis, judge

MPIRUN = r"^-{60,}$"  # below such a line, mpirun says that a program ended with an error


def tell(verdict: judge.Verdict) -> None:
    """Prints a verdict for a person."""
    tell_verdict(verdict)
    tell_help(verdict)
    if verdict.word in ("fails", "ended"):
        book.say(f"\nMore help: ./learn hint {verdict.chapter[:2]} {verdict.part}")


def tell_verdict(verdict: judge.Verdict):
    """What it is, and the first check that fails."""
    title = f"{verdict.chapter[:2]} {verdict.part}"
    if verdict.word == "does not build":
        says = verdict.word if verdict.said else "can't take the place of ours"
        print(book.bold(f"{title} {says}."))
        return book.say(verdict.why, 2)
    tell_warnings(verdict)
    passed, of = verdict.counts
    if verdict.word == "passes":
        print(book.bold(f"{title}: all {of} checks pass") + f" ({verdict.result.seconds:.1f} s)")
        tell_left_out(verdict)
        if verdict.watched and verdict.watched.unwatched:
            book.say("Races between its threads were not looked for: "
                     f"{verdict.watched.unwatched}.", 2)
    elif verdict.word == "races":
        print(book.bold(f"{title}: all {of} checks pass, but its threads race."))
        tell_race(verdict.watched.race)
    elif verdict.word == "ended":
        print(book.bold(f"{title} did not end well."))
        tell_the_end(verdict.result, verdict.why)
    else:
        print(book.bold(f"{title}: {passed} of {of} checks pass."))
        tell_left_out(verdict)
        tell_next(verdict) if verdict.word == "is not written" else tell_failure(verdict.first)


def tell_left_out(verdict: judge.Verdict) -> None:
    """Which checks do not count, since our own parts fail them here."""
    if count := len(verdict.left_out):
        some, them = ("1 check is", "it") if count == 1 else (f"{count} checks are", "them")
        book.say(f"{some} left out, since our own parts fail {them} here, too. " + (
            edited.note() or
            "No source is edited, so that is a fault of the book on this machine."), 2)


def tell_help(verdict: judge.Verdict) -> None:
    """What helps with a verdict of checks: the mistake, what else happened, and what the part
    printed."""
    result = verdict.result
    if verdict.word in ("fails", "ended"):
        tell_mistake(verdict)
        if verdict.word == "fails" and result.ended and not verdict.unwritten:
            book.say(f'\nLater, in the check "{result.running}", it {result.ended}.')
    printed = result and re.split(MPIRUN, result.printed, maxsplit=1, flags=re.M)[0].strip()
    if printed and verdict.word != "is not written":
        print("\n  In all checks together the part printed, at the end:")
        for line in printed.splitlines()[-5:]:
            print(f"    {re.sub(r'[^ -~]', '?', line)[:74]}")


def tell_function(one, function):
    """Prints what is said of one function, and of which checks nothing is said."""
    verdict, title = one.verdict, f"{one.verdict.chapter[:2]} {one.verdict.part}: {function}"
    if one.word in ("does not build", "ended", "races"):
        return tell(verdict)
    if one.word == "is not written":
        print(book.bold(f"{title} is not written yet."))
        return tell_next(verdict)
    tell_warnings(verdict)
    judged, others = len(one.whole + one.partly), ", ".join(one.others)
    if one.word == "waits":
        print(book.bold(f"{title} can't be judged alone yet."))
    elif one.word == "passes":
        print(book.bold(f"{title} passes the {judged} checks that can judge it."))
    else:
        fails = len({f.check for f in verdict.result.failures})
        print(book.bold(f"{title} fails {fails} of the {judged} checks that can judge it."))
        tell_failure(verdict.first)
        tell_mistake(verdict)
        print()
    if one.partly:
        book.say(f"In {len(one.partly)} of them only what asks for {function} counts. They also "
                 f"call what is not right or not written yet: {others}.")
    if one.waiting:
        book.say(f"{len(one.waiting)} more that call it say nothing yet, because of " +
                 (f"{others}." if others else "what ended before."))
    book.say(f"The whole part: ./learn check {verdict.chapter[:2]} {verdict.part}")


def tell_warnings(verdict: judge.Verdict) -> None:
    for where, says in verdict.warnings[:3]:
        book.say(f"The compiler warns, {where}: {says}")
    if len(verdict.warnings) > 3:
        book.say(f"It has {len(verdict.warnings) - 3} more warnings.")


def tell_next(verdict: judge.Verdict) -> None:
    first = verdict.unwritten
    function = judge.numbered(verdict.chapter, verdict.part)[first.not_written]
    book.say("\nNext: write")
    for line in function.signature.splitlines():
        print(f"  {line}")
    book.say(f'\nThe first check that calls it: "{first.check}".')
    tell_source(first)
    if verdict.result.ended:
        book.say("\nNothing could catch what it threw, since it was called in a thread or by a "
                 "function that may not throw. That ended the program, and the checks after it did "
                 "not run.")


def tell_the_end(result: checks.Result, why) -> None:
    book.say(f"It {why}.", 2)
    if result.running:
        book.say(f'\nIt happened in the check "{result.running}".')
        if result.begins:
            tell_lines(*result.begins)
    elif not result.unreached:
        book.say("\nIt happened after the last check.")


def tell_race(race) -> None:
    book.say("\nTwo threads use the same memory at the same time, and at least one of them writes. "
             "What comes of it depends on which is first:")
    for one in race:
        if one.file:
            path = pathlib.Path(one.file)
            print(f"\n  {book.shown(path)}:{one.line}, one {one.what}:")
            lines = path.read_text(errors="replace").splitlines()
            print("".join(f"  > {line}" for line in lines[one.line - 1:one.line]))
        else:
            print(f"\n  one {one.what} in {one.function}")
    book.say("\nA function that for_each_row or for_each_task calls must write only what belongs "
             "to its own call. What several calls need for themselves is a variable inside of it, "
             "and not static or shared.")


def tell_failure(failure: checks.Failure) -> None:
    book.say(f'\nThe first that fails: "{failure.check}"')
    tell_source(failure)
    for told in failure.told:
        book.say(f"where {told}", 4)
    # "where weight := 0.25" says more than "false".
    if failure.got and not (failure.told and failure.got in ("false", "true")):
        print()
        book.say(failure.got[:1000], 2)


def tell_source(failure: checks.Failure):
    """The check's own lines, down to the one that fails: they say what was asked, with which
    input."""
    if not failure.file:
        return
    if failure.line <= failure.begins:
        return tell_lines(failure.file, failure.begins)
    lines = pathlib.Path(failure.file).read_text().splitlines()
    last = next((i for i in range(failure.line - 1, len(lines))
                 if re.search(r"[;{}]\s*(//.*)?$", lines[i])), len(lines) - 1)
    print(f"\n  {book.shown(pathlib.Path(failure.file))}:{failure.line}")
    for i in range(max(failure.begins, failure.line - 9), last + 1):
        if lines[i].strip() and not cpp.is_mark(lines[i]):
            print(f"  {'>' if i >= failure.line - 1 else ' '} {lines[i]}")


def tell_lines(file, begins) -> None:
    """The first lines of a check that did not come to its end; which of them it reached is not
    known."""
    print(f"\n  {book.shown(pathlib.Path(file))}:{begins}")
    for line in pathlib.Path(file).read_text().splitlines()[begins:begins + 12]:
        if line.startswith("}"):
            break
        if line.strip() and not cpp.is_mark(line):
            print(f"    {line}")


def tell_mistake(verdict: judge.Verdict):
    """The mistake that the part makes, if one is known that computes the same."""
    if verdict.alike:
        return tell_recorded([(verdict.chapter, m.name, m.says) for m in verdict.alike])
    if verdict.text is None:
        return
    sys.stdout.flush()
    if exchanges := diagnosis.look(verdict):
        return tell_exchanges(exchanges)
    book.say("\nWhich mistake it is can't be told: no known mistake fails the same checks with the "
             "same numbers, and no line or function of ours that was tried in the place of yours "
             "makes the failing checks pass.")
    if line := cpp.unread(verdict.text.own):
        file = book.shown(book.theirs(verdict.chapter, verdict.part))
        book.say(f"Lines were compared as far as they could be read: {file}:{line} is written in a "
                 "way that is not understood here.")


def tell_recorded(alike, does="fails the same checks with the same numbers") -> None:
    """Known mistakes, [(chapter, name, what it does), ...], and where to read of them."""
    book.say(f"\nA known mistake {does}, so it is probably " +
             ("this:" if len(alike) == 1 else "one of these:"))
    for chapter, name, says in alike:
        book.say(f"{name.replace('_', ' ')}: {says}", 2)
        book.say(f"Read {pages.section_of_mistake(chapter, name)}", 2)


def tell_exchanges(exchanges):
    """Which lines of the reader's are wrong: those for which ours can stand."""
    passes = "every check that failed passes"
    if len(exchanges) > diagnosis.TOLD:
        return book.say(f"\nWith ours in the place of any of {len(exchanges)} pieces of yours, "
                        f"{passes}, so it can't be told which of them is wrong.")
    if exchanges[0][0].kind == "function":
        places = "their places" if sum(map(len, exchanges)) > 1 else "its place"
        some = " or in ".join(" and ".join(f"your {lines.function}" for lines in exchange)
                              for exchange in exchanges)
        book.say(f"\nThe mistake is in {some}: with ours in {places}, {passes}. Which line it is "
                 "can't be told.")
    else:
        says = {"place": "Something is missing here: with ours put in",
                "surplus": "Something is too much here: without it",
                "lines": "The mistake is here: with ours in its place"}[exchanges[0][0].kind]
        if len(exchanges[0]) > 1:
            says = "The mistake is in these places together: with ours in all of them"
        book.say(f"\n{says}, {passes}.")
        for n, exchange in enumerate(exchanges):
            if n > 0:
                book.say("\nOr it is here:")
            for lines in exchange:
                tell_their_lines(lines)
    uses = dict.fromkeys(name for exchange in exchanges for lines in exchange
                         for name in lines.uses)
    if uses:
        book.say(f"\nIt may also be in what is used there: {', '.join(uses)}.")


def tell_their_lines(lines) -> None:
    where = f"{book.shown(book.WORK / lines.file)}:{lines.first}, in {lines.function}"
    print(f"\n  {where}{', before this line' if lines.kind == 'place' else ''}:")
    for line in lines.text.splitlines():
        print(f"  > {line}")
