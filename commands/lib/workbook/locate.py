"""./learn locate: the first text, token, layer and operation at which the reader's model leaves ours, and why."""
import argparse
import contextlib
import math
import os
import pathlib
import re
import struct
import sys
import tempfile

import check
import checks
import graduate
import house
import judge
import mine
import operations
import pages
import planted
import source
import traces
import written
from traces import Text

SAME = 1e-3  # how near two wrong results must be, of their difference from the right one
CHAT = graduate.CHAT.format(graduate.QUESTIONS[0])
IDS_OF_PAGE = house.ROOT / "tests/fixtures/10_pretrained/trace/ids.npy"
MOST_IDS = 1024  # of another engine's trace


def counting(last):
    return "Count with me: " + ", ".join(map(str, range(1, last + 1)))


# In this order: the shortest text that shows a difference is told. The long ones are longer than a block of queries (64)
# and a stretch of keys (512), which the kernels take at once.
TEXTS = [Text("0", "one token", "Once"),
         Text("1", "a few words", "The capital of France is"),
         Text("2", "the chat's prompt", CHAT),
         Text("3", "a long text", counting(36)),
         Text("4", "the end of the chat's prompt, token by token", CHAT, 4),
         Text("5", "the end of a longer text, token by token", counting(128), 4)]


def main():
    parser = argparse.ArgumentParser(prog="./learn locate")
    parser.add_argument("what", nargs="*", metavar="NN [part ...]")
    parser.add_argument("--trace", type=pathlib.Path, metavar="DIR", help="compare another engine's trace with ours")
    flags = parser.parse_args()
    if flags.trace and flags.what:
        house.die("--trace compares another engine, so it takes no parts of yours")
    if not pathlib.Path(os.environ["T2T_WEIGHTS"]).is_file():
        house.die("the real model's file is missing. ./learn weights fetches it")
    parts = [] if flags.trace else that_build(chosen(flags.what))
    if not house.build(traces.PROGRAM, traces.COMPARE):
        sys.exit(1)
    with tempfile.TemporaryDirectory(prefix="locate-", dir=house.ROOT / "build") as folder:
        folder = pathlib.Path(folder)
        agree = compare_engine(flags.trace, folder) if flags.trace else compare_parts(parts, folder)
    sys.exit(not agree)


def chosen(what):
    """The reader's parts of which a trace shows something: those that are named, or all."""
    pairs = check.parts(what)
    seen = operations.seen()
    for name, part in pairs:
        if what and (name, part) not in seen:
            print(f"learn: {name[:2]} {part} makes nothing that a trace shows. ./learn check {name[:2]} {part} judges it", file=sys.stderr)
    pairs = [pair for pair in pairs if pair in seen]
    return pairs or house.die("none of these parts makes anything that a trace shows")


def that_build(pairs):
    parts = []
    for name, part in pairs:
        try:
            text = written.read(name, part)
            why = judge.unbuilt(text)
        except written.Unreadable as error:
            why = str(error)
        if why:
            print(f"learn: {name[:2]} {part} does not build, so ours is used. ./learn check {name[:2]} {part} says why", file=sys.stderr)
        else:
            parts.append(text)
    if not parts:
        house.die("there is nothing of yours to compare")
    print(f"Yours: {mine.told([(one.chapter, one.part) for one in parts])}. All others are the book's.", file=sys.stderr)
    return parts


def compare_parts(parts, folder):
    ours = made_with_ours(TEXTS, folder)
    with program_of(parts) as program:
        at_work("the texts, with your parts")
        theirs = traces.make(program, TEXTS, folder / "theirs", ours)
        at_work("comparing")
        parting = traces.parting(TEXTS, ours, theirs)
        at_work("")
    tell_texts(parting, ours)
    if not parting:
        house.say("How a token is chosen is no part of a trace: ./learn check 09 and ./learn graduate look at it.")
        return True
    tell(parting, ours, theirs.room / parting.text.folder / f"at_{parting.at}")
    if unwritten := still_to_write(parts, parting):
        house.say(f"\nNext: write it. ./learn check {unwritten}")
        return False
    suspect, alike = responsible(parts, parting, ours, theirs, folder)
    at_work("")
    then = tell_responsible(parts, suspect, parting)
    tell_mistakes(alike)
    house.say(f"\nNext: {', '.join(then) or './learn check'}")
    return False


def made_with_ours(texts, folder):
    at_work("the texts, with our parts")
    ours = traces.make(house.BUILD / traces.PROGRAM, texts, folder / "ours")
    at_work("")
    if ours.ended:
        house.die(f"with our own parts, {os.environ['T2T_WEIGHTS']} {ours.ended}")
    return ours


def at_work(what):
    """A line for whoever waits at a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K  {what}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def program_of(parts):
    listed = mine.listed([(one.chapter, one.part) for one in parts])
    with written.built(parts, f"{traces.PROGRAM}_mine", listed=listed) as made:
        if not made.good:
            house.die("the program with your parts does not build")
        yield made.program


def tell_texts(parting, ours):
    """Each text up to the first in which they part."""
    house.say(f"Every result of every layer, yours beside ours. They agree within {traces.TOLERANCE} of a token's length:")
    for text in TEXTS:
        calls = ours.calls(text)
        count = len(ours.tokens(text)) - traces.first_token(calls[0])
        what = f"{text.says}: {count} token{'s' * (count > 1)}, {len(calls) * len(list(calls[0].glob('*.npy'))):,} results"
        if parting and parting.text == text:
            return house.say(f"DIFFER  {what}", 2)
        house.say(f"agree   {what}", 2)


def tell(parting, ours, got):
    """Where they part: the text, the operation, and a map of what comes after."""
    tokens = ours.tokens(parting.text)
    print(house.bold(f"\nThe first difference is in {parting.text.says}, at token {parting.token} of {len(tokens)} (from 0)\n"))
    if not parting.ended:
        tell_text([line.partition(" ")[2] for line in tokens], parting.token)
    house.say(f"\nAt {operations.in_words(parting.name)}. {parting.says}\n")
    if parting.name in operations.BEFORE_LAYERS[:1]:
        return
    want = ours.room / parting.text.folder / f"at_{parting.at}"
    for line in traces.picture(want, got, parting):
        print(f"  {line}")
    house.say("\nEach column is a layer. For this token . agrees, x differs, and X is the first; the last two are the last token's.")


def tell_text(pieces, t):
    """The token in its text, with a mark below."""
    room = (house.width() - 4 - len(pieces[t])) // 2
    before, after = "".join(pieces[:t])[-room:], "".join(pieces[t + 1:])[:room]
    print(f"  {before}{house.bold(pieces[t])}{after}\n  {' ' * len(before)}{'^' * max(1, len(pieces[t]))}")


def still_to_write(parts, parting):
    """The chapter and part with a function that was called and is not written yet."""
    found = re.search(checks.NOT_WRITTEN, parting.says) if parting.ended else None
    of = [part for part in parts if found and found.group(1) in
          {f.name for f in source.functions(house.ours(part.chapter, part.part).read_text())}]
    return f"{of[0].chapter[:2]} {of[0].part}" if of else ""


def responsible(parts, parting, ours, theirs, folder):
    """Their part that is at fault: with ours in its place they do not part there. And the wrong versions that do the same."""
    makers = [maker[:2] for maker in operations.makers(parting.name)]
    for suspect in sorted(parts, key=lambda part: (part.chapter, part.part) not in makers):
        with_wrong = planted.together(suspect.chapter, suspect.part)
        at_work(f"ours in the place of {suspect.part}")
        others = [part for part in parts if part is not suspect]
        with program_of([*others, with_wrong.text]) as program:
            again = traces.make(program, [parting.text], folder / suspect.part, ours)
            still = traces.parting([parting.text], ours, again)
            if still and still.place == parting.place:
                continue
            alike = [patch for patch in with_wrong.patches if is_alike(program, patch, parting, ours, theirs)]
        for one in planted.alone(suspect.chapter, suspect.part):
            with program_of([*others, one.text]) as program:
                alike += [patch for patch in one.patches if is_alike(program, patch, parting, ours, theirs)]
        return suspect, alike
    return None, []


def is_alike(program, patch, parting, ours, theirs):
    """Whether a wrong version gives the numbers of theirs where theirs part from ours."""
    if not parting.file(theirs).is_file():
        return False
    at_work(f"is it {patch.stem.replace('_', ' ')}?")
    with tempfile.TemporaryDirectory(prefix="locate-", dir=house.ROOT / "build") as folder:
        wrong = traces.make(program, [parting.text], pathlib.Path(folder), ours, patch.stem)
        if not parting.file(wrong).is_file():
            return False
        got, want, same = (graduate.numbers_of(parting.file(one)) for one in (theirs, ours, wrong))
    return len(got) == len(want) == len(same) and math.dist(got, same) <= SAME * math.dist(got, want)


def tell_responsible(parts, suspect, parting):
    """Which part makes the difference, where a page tells it, and what to do next."""
    makers = operations.makers(parting.name)
    if suspect:
        at_fault = [(suspect.chapter, suspect.part)]
        house.say(f"\nYour {suspect.chapter[:2]} {suspect.part} makes it: with ours in its place this difference is gone.")
    else:
        at_fault = [(part.chapter, part.part) for part in parts if (part.chapter, part.part) in {maker[:2] for maker in makers}]
        house.say("\nMore than one of your parts makes it: with ours in the place of any one it stays.")
    for chapter, part, function in makers:
        if (chapter, part) in at_fault:
            house.say(f"{function}: {page_of(chapter, part, function)}", 2)
    if parting.causes:
        house.say(f"Usual causes: {parting.causes}.", 2)
    return [f"./learn check {chapter[:2]} {part}" for chapter, part in at_fault]


def page_of(chapter, part, function):
    where = pages.section_of_function(chapter, part, function)
    return f'docs/{where[0].name}, line {where[2] + 1}: "{where[1]}"' if where else f"docs/{chapter}.md"


def tell_mistakes(patches):
    if not patches:
        return
    house.say("\nA known mistake gives the same numbers, so it is probably " + ("this:" if len(patches) == 1 else "one of these:"))
    for patch in patches:
        house.say(f"{patch.stem.replace('_', ' ')}: {patch.read_text().splitlines()[0]}", 2)
        house.say(f"Read {pages.section_of_mistake(patch.parent.name, patch.stem)}", 2)


def compare_engine(trace, folder):
    """Another engine's trace beside ours of the same ids."""
    if not trace.is_dir():
        house.die(f"{trace} is no folder of .npy files")
    text = Text("0", "the text of its trace", ",".join(map(str, ids_of(trace))), "ids")
    ours = made_with_ours([text], folder)
    want = ours.calls(text)[0]
    parting = traces.in_folders(text, want, trace)
    if not parting:
        common = {file.name for file in trace.glob("*.npy")} & {file.name for file in want.glob("*.npy")}
        house.say(f"All {len(common)} results that both have agree, for {len(ours.tokens(text))} tokens.")
        return True
    tell(parting, ours, trace)
    house.say(f"\nUsual causes: {parting.causes}.")
    for chapter, part, function in operations.makers(parting.name)[:1]:
        house.say(f"Ours is {function}, chapter {chapter[:2]}. Read {page_of(chapter, part, function)}")
    return False


def ids_of(trace):
    """The ids that it was made for: its ids.npy, or else those that chapter 10's page tells."""
    file = trace / "ids.npy"
    if not file.exists():
        print(f"learn: {trace} has no ids.npy, so it is taken for a trace of the ids in {house.shown(IDS_OF_PAGE)}", file=sys.stderr)
        file = IDS_OF_PAGE
    with contextlib.suppress(OSError, struct.error):
        if file.stat().st_size <= 4 * MOST_IDS + 256 and b"'<i4'" in file.read_bytes()[:256]:
            return graduate.numbers_of(file)
    house.die(f"{file}: wanted up to {MOST_IDS} ids as int32, as numpy.save writes them")


if __name__ == "__main__":
    main()
