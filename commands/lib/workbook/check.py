"""./learn check: what is right and what is wrong with the reader's parts."""
import argparse
import pathlib
import sys

from workbook import book, cpp, estimates, judge, one_function, progress, report, start, telling


def main(*words) -> None:
    parser = argparse.ArgumentParser(prog="./learn check")
    parser.add_argument("what", nargs="*", metavar="NN [part ...] | NN part function")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--next", action="store_true", help="when all pass, begin the next part")
    flags = parser.parse_args(words)
    if names_function(flags.what):
        if flags.json or flags.next:
            book.die("--json and --next are for parts, not for one function")
        sys.exit(check_function(*flags.what))
    if flags.json:
        report.expect_writable(flags.json)
    chosen = parts(flags.what)
    if flags.json:
        verdicts = [judge.judge(name, part) for name, part in chosen]
        report.write(flags.json, verdicts)
    else:
        verdicts = []
        for name, part in chosen:
            verdicts.append(judged(name, part))
            telling.tell(verdicts[-1])
            if verdicts[-1].word != "passes":
                break
        if all(v.word == "passes" for v in verdicts):
            suggest_next(chosen, flags.next)
    sys.exit(any(v.word != "passes" for v in verdicts))


def names_function(what) -> bool:
    """Whether the third word is a function of the part that the second names."""
    if len(what) != 3 or what[1] not in book.parts_to_write(chapter := book.chapter(what[0])):
        return False
    return what[2] in {f.name for f in cpp.to_write(book.ours(chapter, what[1]).read_text())}


def check_function(word, part: str, function):
    """Tells what the checks that call a function say of it; whether they find anything."""
    (chapter, part), = parts([word, part])
    one = one_function.of(chapter, part, function)
    telling.tell_function(one, function)
    return one.word != "passes"


def parts(what):
    """The parts to check: those that are named, or else all that are begun."""
    chosen = book.chapters_and_parts(what or [c for c in book.chapters() if book.written(c)], book.written)
    pairs = [(name, part) for name, some in chosen for part in some]
    for name, part in pairs:
        if not book.begun(name, part):
            book.die(f"{book.shown(book.theirs(name, part))} is not begun. Begin with: ./learn start {name[:2]} {part}")
    if not what:  # a chapter's parts are begun together, and some may wait
        pairs = [pair for pair in pairs if not start.is_untouched(*pair)] or pairs[:1]
    if not pairs:
        where = f" of {what[0]}" if what else ""
        book.die(f"no part{where} is begun. Begin with: ./learn start {book.chapter(what[0])[:2] if what else '02'}")
    return pairs


def judged(chapter: str, part: str):
    """The verdict. While races are looked for, it says what the checks have found."""
    def say_so_far(verdict: judge.Verdict) -> None:
        book.at_work(f"all {verdict.counts[1]} checks pass; running them once more to look for races between threads")
    verdict = judge.judge(chapter, part, say_so_far)
    if verdict.watched:
        book.at_work("")
    return verdict


def suggest_next(chosen, begin):
    """Names the part that comes next, of an earlier chapter if none is left in later ones, and begins it if that is asked for."""
    name, part = chosen[-1]
    chapters = book.chapters()
    at = chapters.index(name)
    for chapter in chapters[at:] + chapters[:at]:
        rest = [p for p in book.parts_to_write(chapter) if not progress.passes(chapter, p)]
        if rest:
            is_begun = book.theirs(chapter, rest[0]).is_file()
            if begin and not is_begun:
                return start.begin([(chapter, rest[0])])
            command = "check" if is_begun else "start"
            book.say(f"\nNext: ./learn {command} {chapter[:2]} {rest[0]}. Ours of this part is {book.shown(book.ours(name, part))}")
            return tell_shorter_way(chapter, rest[0])
    book.say("\nAll parts pass: ./learn graduate")


def tell_shorter_way(chapter: str, part: str) -> None:
    """Says what the chat still needs, if it can do without this part."""
    needed = [pair for pair in estimates.to_chat() if not progress.passes(*pair)]
    if not needed:
        book.say("All parts that the chat needs pass: ./learn graduate lets the real model talk through them.")
    elif not estimates.in_chat(chapter, part):
        name, next_one = next((pair for pair in needed if pair[0] >= chapter), needed[0])
        command = "check" if book.begun(name, next_one) else "start"
        book.say(f"The chat can do without that part: ./learn {command} {name[:2]} {next_one} goes on towards it.")
