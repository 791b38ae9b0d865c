"""./learn check: what is right and what is wrong with the reader's parts."""
import argparse
import dataclasses
import json
import pathlib
import sys

from workbook import book, checks, progress
from workbook.commands import parts_list, start
from workbook.programs import callers
from workbook.source import cpp
from workbook.verdict import diagnosis, judge, one_function, telling


def main(*words) -> None:
    parser = argparse.ArgumentParser(prog="./learn check")
    parser.add_argument("what", nargs="*", metavar="NN [part ...] | NN part function")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--next", action="store_true", help="when all pass, begin the next part")
    flags = parser.parse_args(words)
    if names_function(flags.what):
        if flags.json or flags.next:
            book.die("--json and --next are for parts, not for one function")
        (name, part), = parts(flags.what[:2])
        one = one_function.of(name, part, flags.what[2])
        telling.tell_function(one, flags.what[2])
        sys.exit(one.word != "passes")
    if flags.json:  # before all is graded: whether it can be written
        is_new = not flags.json.exists()
        write(flags.json, "", "a")
        if is_new:
            flags.json.unlink()
    chosen, verdicts = parts(flags.what), []
    for pair in chosen:
        verdicts.append(judge.judge(*pair) if flags.json else judged(*pair))
        if not flags.json:
            telling.tell(verdicts[-1])
            if verdicts[-1].word != "passes":
                break
    passed = sum(v.word == "passes" for v in verdicts)
    if flags.json:
        write(flags.json, record(verdicts))
        print(f"{passed} of {len(verdicts)} parts pass; {flags.json} has each check")
    elif passed == len(verdicts):
        suggest_next(chosen[-1], flags.next)
    sys.exit(passed != len(verdicts))


def names_function(what) -> bool:
    """Whether the third word is a function of the part that the second names."""
    if len(what) != 3 or what[1] not in book.parts_to_write(chapter := book.chapter(what[0])):
        return False
    return what[2] in {f.name for f in cpp.to_write(book.ours(chapter, what[1]).read_text())}


def parts(what):
    """The parts to check: those that are named, or else all that are begun."""
    chosen = book.chapters_and_parts(what or [c for c in book.chapters() if book.written(c)],
                                     book.written)
    pairs = [(name, part) for name, some in chosen for part in some]
    for name, part in pairs:
        if not book.begun(name, part):
            book.die(f"{book.shown(book.theirs(name, part))} is not begun. "
                     f"Begin with: ./learn start {name[:2]} {part}")
        if not callers.of(name, part):
            book.die(f"tests/workbook/calls.json does not say which checks call {part}. "
                     f"./learn test {name[:2]} --record finds them")
    if not what:  # a chapter's parts are begun together, and some may wait
        pairs = [pair for pair in pairs if not start.is_untouched(*pair)] or pairs[:1]
    if not pairs:
        book.die(f"no part of {what[0]} is begun. Begin with: ./learn start "
                 f"{book.chapter(what[0])[:2]}" if what else
                 "no part is begun. Begin with: ./learn start 02")
    return pairs


def judged(chapter: str, part: str):
    """The verdict. While races are looked for, it says what the checks have found."""
    verdict = judge.judge(chapter, part, lambda verdict: book.at_work(
        f"all {verdict.counts[1]} checks pass; running them once more to look for races between "
        "threads"))
    if verdict.watched:
        book.at_work("")
    return verdict


def suggest_next(last, begin):
    """Names the part that comes next, of an earlier chapter if none is left in later ones, and
    begins it if that is asked for."""
    chapters = book.chapters()
    at = chapters.index(last[0])
    rest = [(chapter, one) for chapter in chapters[at:] + chapters[:at]
            for one in book.parts_to_write(chapter) if not progress.passes(chapter, one)]
    if not rest:
        return book.say("\nAll parts pass: ./learn graduate")
    chapter, following = rest[0]
    if begin and not book.theirs(chapter, following).is_file():
        return start.begin([rest[0]])
    book.say(f"\nNext: {command_for(chapter, following)}. "
             f"Ours of this part is {book.shown(book.ours(*last))}")
    needed = [pair for pair in parts_list.to_chat() if pair in rest]
    if not needed:
        book.say("All parts that the chat needs pass: ./learn graduate lets the real model talk "
                 "through them.")
    elif rest[0] not in needed:
        towards = next((pair for pair in needed if pair[0] >= chapter), needed[0])
        book.say(f"The chat can do without that part: {command_for(*towards)} goes on towards it.")


def command_for(chapter: str, part: str):
    return f"./learn {'check' if book.begun(chapter, part) else 'start'} {chapter[:2]} {part}"


def record(verdicts):
    """The text of --json: a verdict for each part and each of its checks."""
    found = []
    for v in verdicts:
        one = {"chapter": v.chapter, "part": v.part, "verdict": v.word, "why": v.why}
        if v.said:
            one["compiler"] = v.said
        if "examples" in (known := progress.of(v.chapter, v.part)):
            one["examples"] = dict(zip(("caught", "of"), known["examples"]))
        if v.result:
            one["seconds"] = round(v.result.seconds, 3)
            one["checks"] = [{"name": c, "kind": checks.kind_of(c), "passes": c in v.passed}
                             for c in v.counted]
            one["left_out"] = sorted(v.left_out)
            one["mistakes"] = [{"name": a.name, "says": a.says} for a in v.alike]
            if v.text and not v.alike:
                one["exchanges"] = [[dataclasses.asdict(lines) for lines in exchange]
                                    for exchange in diagnosis.look(v)]
        if v.watched:
            one["races"] = [dataclasses.asdict(access) for access in v.watched.race]
        found.append(one)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def write(path, text, mode="w") -> None:
    try:
        with path.open(mode) as file:
            file.write(text)
    except OSError as error:
        book.die(f"{path} can't be written: {error.strerror}")
