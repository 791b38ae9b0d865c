"""A verdict in words, for a person at a terminal: the check that fails, the mistake, and what else happened."""
import pathlib
import re
import sys

from workbook import book, checks, cpp, diagnosis, edited, judge, pages


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
            book.say(f"Races between its threads were not looked for: {verdict.watched.unwatched}.", 2)
    elif verdict.word == "races":
        tell_race(title, verdict)
    elif verdict.word == "ended":
        tell_the_end(title, verdict)
    else:
        print(book.bold(f"{title}: {passed} of {of} checks pass."))
        tell_left_out(verdict)
        tell_next(verdict) if verdict.word == "is not written" else tell_failure(verdict.first)


def tell_left_out(verdict: judge.Verdict) -> None:
    """Which checks do not count, since our own parts fail them here."""
    if verdict.left_out:
        count = len(verdict.left_out)
        some = "1 check is" if count == 1 else f"{count} checks are"
        book.say(f"{some} left out, since our own parts fail {'it' if count == 1 else 'them'} here, too. "
                  + (edited.note() or "No source is edited, so that is a fault of the book on this machine."), 2)


def tell_help(verdict: judge.Verdict) -> None:
    """What helps with a verdict of checks: the mistake, what else happened, and what the part printed."""
    if verdict.word in ("fails", "ended"):
        tell_mistake(verdict)
        if verdict.word == "fails" and verdict.result.ended and not verdict.unwritten:
            book.say(f'\nLater, in the check "{verdict.result.running}", it {verdict.result.ended}.')
    if verdict.result and verdict.word != "is not written":
        tell_printed(verdict)


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
        print(book.bold(f"{title} fails {len({f.check for f in verdict.result.failures})} of the {judged} checks that can judge it."))
        tell_failure(verdict.first)
        tell_mistake(verdict)
        print()
    if one.partly:
        book.say(f"In {len(one.partly)} of them only what asks for {function} counts. They also call what is not right or not written "
                  f"yet: {others}.")
    if one.waiting:
        book.say(f"{len(one.waiting)} more that call it say nothing yet, because of " + (f"{others}." if others else "what ended before."))
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
        book.say("\nNothing could catch what it threw, since it was called in a thread or by a function that may not throw. "
                  "That ended the program, and the checks after it did not run.")


def tell_the_end(title, verdict: judge.Verdict) -> None:
    print(book.bold(f"{title} did not end well."))
    book.say(f"It {verdict.why}.", 2)
    if not verdict.result.running and not verdict.result.unreached:
        book.say("\nIt happened after the last check.")
    if verdict.result.running:
        book.say(f'\nIt happened in the check "{verdict.result.running}".')
        if verdict.result.begins:
            tell_lines(*verdict.result.begins)


def tell_race(title, verdict: judge.Verdict) -> None:
    print(book.bold(f"{title}: all {verdict.counts[1]} checks pass, but its threads race."))
    book.say("\nTwo threads use the same memory at the same time, and at least one of them writes. What comes of it depends on which "
              "is first:")
    for one in verdict.watched.race:
        if one.file:
            path, lines = pathlib.Path(one.file), pathlib.Path(one.file).read_text(errors="replace").splitlines()
            print(f"\n  {book.shown(path)}:{one.line}, one {one.what}:")
            print("".join(f"  > {line}" for line in lines[one.line - 1:one.line]))
        else:
            print(f"\n  one {one.what} in {one.function}")
    book.say("\nA function that for_each_row or for_each_task calls must write only what belongs to its own call. What several calls "
              "need for themselves is a variable inside of it, and not static or shared.")


def tell_failure(failure: checks.Failure) -> None:
    book.say(f'\nThe first that fails: "{failure.check}"')
    tell_source(failure)
    for told in failure.told:
        book.say(f"where {told}", 4)
    got = "" if failure.told and failure.got in ("false", "true") else failure.got  # "where weight := 0.25" says more
    if got:
        print()
    book.say(got[:1000], 2)


def tell_source(failure: checks.Failure):
    """The check's own lines, down to the one that fails: they say what was asked, with which input."""
    if not failure.file:
        return
    if failure.line <= failure.begins:
        return tell_lines(failure.file, failure.begins)
    lines = pathlib.Path(failure.file).read_text().splitlines()
    last = next((i for i in range(failure.line - 1, len(lines)) if re.search(r"[;{}]\s*(//.*)?$", lines[i])), len(lines) - 1)
    first = max(failure.begins, failure.line - 9)
    print(f"\n  {book.shown(pathlib.Path(failure.file))}:{failure.line}")
    for i in range(first, last + 1):
        if lines[i].strip():
            print(f"  {'>' if i >= failure.line - 1 else ' '} {lines[i]}")


def tell_lines(file, begins) -> None:
    """The first lines of a check that did not come to its end; which of them it reached is not known."""
    print(f"\n  {book.shown(pathlib.Path(file))}:{begins}")
    for line in pathlib.Path(file).read_text().splitlines()[begins:begins + 12]:
        if line.startswith("}"):
            break
        if line.strip():
            print(f"    {line}")


def tell_mistake(verdict: judge.Verdict):
    """The mistake that the part makes, if one is known that computes the same."""
    if verdict.alike:
        return tell_recorded(verdict.chapter, verdict.alike)
    if verdict.text is None:
        return None
    sys.stdout.flush()
    if exchanges := diagnosis.look(verdict):
        tell_exchanges(exchanges)
    else:
        book.say("\nWhich mistake it is can't be told: no known mistake fails the same checks with the same numbers, and no line or "
                  "function of ours that was tried in the place of yours makes the failing checks pass.")
        if line := cpp.unread(verdict.text.own):
            file = book.shown(book.theirs(verdict.chapter, verdict.part))
            book.say(f"Lines were compared as far as they could be read: {file}:{line} is written in a way that is not understood here.")


def tell_recorded(chapter: str, alike) -> None:
    book.say("\nA known mistake fails the same checks with the same numbers, so it is probably "
              + ("this:" if len(alike) == 1 else "one of these:"))
    tell_known(chapter, [(one.name, one.says) for one in alike])


def tell_known(chapter: str, some: list[tuple[str, str]]) -> None:
    """Known mistakes with what they do, and where to read of them."""
    for name, says in some:
        book.say(f"{name.replace('_', ' ')}: {says}", 2)
        book.say(f"Read {pages.section_of_mistake(chapter, name)}", 2)


def tell_exchanges(exchanges):
    """Which lines of the reader's are wrong: those for which ours can stand."""
    passes = "every check that failed passes"
    if len(exchanges) > diagnosis.TOLD:
        return book.say(f"\nWith ours in the place of any of {len(exchanges)} pieces of yours, {passes}, so it can't be told which of them is wrong.")
    if exchanges[0][0].kind == "function":
        some = " or in ".join(" and ".join(f"your {lines.function}" for lines in exchange) for exchange in exchanges)
        book.say(f"\nThe mistake is in {some}: with ours in {'their places' if ' your' in some[4:] else 'its place'}, {passes}. "
                  "Which line it is can't be told.")
    else:
        for n, exchange in enumerate(exchanges):
            book.say(f"\n{_exchanged(exchange)}, {passes}." if n == 0 else "\nOr it is here:")
            for lines in exchange:
                tell_their_lines(lines)
    uses = list(dict.fromkeys(name for exchange in exchanges for lines in exchange for name in lines.uses))
    if uses:
        book.say(f"\nIt may also be in what is used there: {', '.join(uses)}.")


def _exchanged(exchange):
    if len(exchange) > 1:
        return "The mistake is in these places together: with ours in all of them"
    return {"place": "Something is missing here: with ours put in", "surplus": "Something is too much here: without it",
            "lines": "The mistake is here: with ours in its place"}[exchange[0].kind]


def tell_their_lines(lines) -> None:
    where = f"{book.shown(book.WORK / lines.file)}:{lines.first}, in {lines.function}"
    print(f"\n  {where}{', before this line' if lines.kind == 'place' else ''}:")
    for line in lines.text.splitlines():
        print(f"  > {line}")


def tell_printed(verdict: judge.Verdict) -> None:
    if verdict.result.printed:
        print("\n  In all checks together the part printed, at the end:")
        for line in verdict.result.printed.splitlines()[-5:]:
            print(f"    {re.sub(r'[^ -~]', '?', line)[:74]}")
