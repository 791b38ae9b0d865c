"""Which parts of the reader's go into the programs of --mine."""
import json
import sys

from workbook import book, judge, progress, start, written


def main(*programs) -> None:
    """Builds these programs with the parts up to the last of their chapters."""
    named = [c for c in book.chapters() if any(program.startswith(c) for program in programs)]
    if not named:
        book.die(f"{' '.join(programs)} has no parts of yours: give a chapter")
    pairs = parts_that_pass(named[-1])
    book.say(whose(named[-1], pairs), file=sys.stderr)
    build(pairs, *programs)


def parts_that_pass(last):
    """The reader's parts up to this chapter that pass; those edited since their check are checked first."""
    passing = []
    for name in chapters_to(last):
        for part in book.written(name):
            if start.is_untouched(name, part):
                continue
            if progress.passes(name, part) or judge.judge(name, part).word == "passes":
                passing.append((name, part))
            else:
                print(f"learn: {name[:2]} {part} does not pass its checks, so ours is used", file=sys.stderr)
    if not passing:
        book.die(f"no part of yours up to chapter {last[:2]} passes its checks yet. ./learn list shows them")
    return passing


def whose(last, pairs):
    """Which parts of the ladder up to this chapter are the reader's, and which are ours."""
    rest = [(name, part) for name in chapters_to(last) for part in book.parts_to_write(name) if (name, part) not in pairs]
    return f"Yours: {told(pairs)}. Ours: {told(rest) or 'no part that the ladder has'}."


def chapters_to(last):
    return book.chapters()[:book.chapters().index(last) + 1]


def told(pairs):
    chapters = list(dict.fromkeys(name for name, _ in pairs))
    return "; ".join(f"{c[:2]} {', '.join(part for name, part in pairs if name == c)}" for c in chapters)


def build(pairs, *programs) -> None:
    """Builds programs of --mine from the texts that passed."""
    try:
        texts = [written.read(*pair) for pair in pairs]
    except written.Unreadable as error:
        book.die(str(error))
    for text in texts:
        if progress.of(text.chapter, text.part).get("digest") != text.digest:
            book.die(f"{text.chapter[:2]} {text.part} was saved again after its check. Run this once more")
    with written.built(texts, *programs, listed=listed(pairs)) as made:
        if not made.good:
            book.die("the programs with your parts do not build")


def listed(pairs):
    """The parts that go into the programs of --mine, for programs.py."""
    return json.dumps(pairs) + "\n"
