"""Which parts of the reader's go into the programs of --mine."""
import json
import sys

from workbook import book, progress, written
from workbook.commands import start
from workbook.verdict import judge


def main(*programs) -> None:
    """Builds these programs with the parts up to the last of their chapters."""
    named = [c for c in book.chapters() if any(program.startswith(c) for program in programs)]
    if not named:
        book.die(f"{' '.join(programs)} has no parts of yours: give a chapter")
    pairs = parts_that_pass(named[-1])
    book.say(whose(named[-1], pairs), file=sys.stderr)
    build(pairs, *programs)


def parts_that_pass(last):
    """The reader's parts up to this chapter that pass; those edited since their check are checked
    first."""
    passing = []
    for pair in pairs_to(last):
        if not book.begun(*pair) or start.is_untouched(*pair):
            continue
        if progress.passes(*pair) or judge.judge(*pair).word == "passes":
            passing.append(pair)
        else:
            print(f"learn: {pair[0][:2]} {pair[1]} does not pass its checks, so ours is used",
                  file=sys.stderr)
    if not passing:
        book.die(f"no part of yours up to chapter {last[:2]} passes its checks yet. ./learn list "
                 "shows them")
    return passing


def pairs_to(last):
    """All parts up to this chapter."""
    return [(name, part) for name in book.chapters() if name <= last
            for part in book.parts_to_write(name)]


def whose(last, pairs):
    """Which parts of the ladder up to this chapter are the reader's, and which are ours."""
    rest = told([pair for pair in pairs_to(last) if pair not in pairs])
    return f"Yours: {told(pairs)}. Ours: {rest or 'no part that the ladder has'}."


def told(pairs):
    chapters = dict.fromkeys(name for name, _ in pairs)
    return "; ".join(f"{c[:2]} {', '.join(part for name, part in pairs if name == c)}"
                     for c in chapters)


def build(pairs, *programs) -> None:
    """Builds programs of --mine from the texts that passed."""
    try:
        texts = [written.read(*pair) for pair in pairs]
    except written.Unreadable as error:
        book.die(str(error))
    for text in texts:
        if progress.of(text.chapter, text.part).get("digest") != text.digest:
            book.die(f"{text.chapter[:2]} {text.part} was saved again after its check. Run this "
                     "once more")
    with written.built(texts, *programs, listed=listed(pairs)) as made:
        if not made.good:
            book.die("the programs with your parts do not build")


def listed(pairs):
    """The parts that go into the programs of --mine, for programs.py."""
    return json.dumps(pairs) + "\n"
