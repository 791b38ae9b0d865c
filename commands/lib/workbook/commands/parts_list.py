"""./learn list: what is written, what passes, where hints were taken, and what is still to come.

A chapter's file about lists the parts that are easy, those that are hard, and those through which
its chat runs (tests/workbook/way_test.py takes them away, one at a time).
"""
import argparse
import functools
import math

from workbook import book, progress
from workbook.source import cpp


def main(*words) -> None:
    argparse.ArgumentParser(prog="./learn list").parse_args(words)
    show()


def show() -> None:
    print(book.bold("Your parts, in work/") + "\n")
    pairs = [(name, part) for name in book.chapters() for part in book.parts_to_write(name)]
    done, before = sum(progress.passes(*pair) for pair in pairs), ""
    for chapter, part in pairs:
        show_part(chapter.replace("_", " ", 1) if chapter != before else "", chapter, part)
        before = chapter
    chat = to_chat()
    print()
    book.say(f"* A chat runs through these {len(chat)} parts, which take about "
             f"{round(sum(minutes(*pair) for pair in chat) / 60)} hours. Minutes are estimated "
             "from the lines of our parts; nobody was timed.", 2)
    book.say(f"{done} of {len(pairs)} parts pass. " + (
        "Next: ./learn graduate" if done == len(pairs) else
        "./learn start NN begins, ./learn check NN judges."), 2)


def show_part(title, chapter: str, part: str) -> None:
    """A line for each part, with its state on the next if that is long."""
    mark = "*" if in_chat(chapter, part) else " "
    hard = next((word for word in ("easy", "hard") if part in book.parts_named(chapter, word)),
                "middling")
    line = f"  {title:<19} {mark} {part:<23} {minutes(chapter, part):3} min {hard:<8} "
    says = state(chapter, part)
    if len(line) + len(says) <= book.width():
        return print(f"{line}{says}".rstrip())
    print(line.rstrip())
    book.say(says, 24)


def state(chapter: str, part: str):
    known = progress.of(chapter, part)
    examples = "examples {} of {}".format(*known["examples"]) if "examples" in known else ""
    if not book.begun(chapter, part):
        return examples or "."
    hints = sum(known.get("hints", {}).values())
    said = f", {hints} hint{'s' * (hints > 1)}" * bool(hints) + (examples and f", {examples}")
    if "checks" not in known:
        return "begun" + said
    current = progress.is_as_checked(chapter, part)
    word = "{} of {} checks".format(*known["checks"])
    if known.get("passes"):
        word = "passes" if current else "passed"
    return word + ("" if current else ", edited since") + said


@functools.cache
def minutes(chapter: str, part: str):
    """An estimate, which is not measured with people: five for a function, and one for a line."""
    ours = book.ours(chapter, part).read_text()
    return 5 * math.ceil((5 * len(cpp.to_write(ours)) + cpp.lines_to_write(ours)) / 5)


def in_chat(chapter: str, part: str) -> bool:
    """Whether ./learn run 10 --mine --chat runs through the part."""
    return part in book.parts_named(chapter, "chat")


def to_chat():
    """The parts of the shortest way to a chat."""
    return [(chapter, part) for chapter in book.chapters()
            for part in book.parts_named(chapter, "chat")]
