"""The way along the parts: the time that each takes, how hard it is, and which of them a chat runs through.

A chapter's file about lists those that are easy, those that are hard, and those through which its chat runs.
"""
import functools
import math

from workbook import book, cpp


@functools.cache
def minutes(chapter: str, part: str):
    """An estimate, which is not measured with people: five minutes for a function, and one for each line of ours."""
    ours = book.ours(chapter, part).read_text()
    return 5 * math.ceil((5 * len(cpp.to_write(ours)) + cpp.lines_to_write(ours)) / 5)


def difficulty(chapter: str, part: str):
    """Our judgement of it."""
    return next((word for word in ("easy", "hard") if part in book.parts_named(chapter, word)), "middling")


def in_chat(chapter: str, part: str) -> bool:
    """Whether ./learn run 10 --mine --chat runs through the part: tests/workbook/way_test.py takes it away."""
    return part in book.parts_named(chapter, "chat")


def to_chat():
    """The parts of the shortest way to a chat."""
    return [(chapter, part) for chapter in book.chapters() for part in book.parts_named(chapter, "chat")]


def hours(pairs):
    return round(sum(minutes(*pair) for pair in pairs) / 60)
