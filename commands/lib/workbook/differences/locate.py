"""./learn locate: the first text, token, layer and operation at which the reader's model leaves
ours, and why."""
import argparse
import contextlib
import os
import pathlib
import sys
import tempfile

from workbook import book, written
from workbook.commands import check, passing_parts
from workbook.differences import answers, blame, operations, show_parting, traces
from workbook.differences.traces import Text
from workbook.verdict import judge

CHAT = answers.CHAT.format(answers.QUESTIONS[0])
IDS_OF_PAGE = book.ROOT / "tests/fixtures/10_pretrained/trace/ids.npy"
MOST_IDS = 1024  # of another engine's trace


COUNT = [str(n) for n in range(1, 129)]

# In this order: the shortest text that shows a difference is told. The long ones are longer than a
# block of queries (64) and a stretch of keys (512), which the kernels take at once.
TEXTS = [Text("0", "one token", "Once"),
         Text("1", "a few words", "The capital of France is"),
         Text("2", "the chat's prompt", CHAT),
         Text("3", "a long text", f"Count with me: {', '.join(COUNT[:36])}"),
         Text("4", "the end of the chat's prompt, token by token", CHAT, 4),
         Text("5", "the end of a longer text, token by token",
              f"Count with me: {', '.join(COUNT)}", 4)]


def main(*words) -> None:
    parser = argparse.ArgumentParser(prog="./learn locate")
    parser.add_argument("what", nargs="*", metavar="NN [part ...]")
    parser.add_argument("--trace", type=pathlib.Path, metavar="DIR",
                        help="compare another engine's trace with ours")
    parser.add_argument("--answers", action="store_true",
                        help="first let the model answer through all parts that pass")
    flags = parser.parse_args(words)
    if flags.trace and flags.what:
        book.die("--trace compares another engine, so it takes no parts of yours")
    if not pathlib.Path(os.environ["T2T_WEIGHTS"]).is_file():
        book.die("the real model's file is missing. ./learn weights fetches it")
    good, parts = True, []
    if flags.answers:
        passing, good = answers.compare()
        parts = that_build([pair for pair in passing if pair in operations.seen()])
    elif not flags.trace:
        parts = that_build(chosen(flags.what))
    book.build(traces.PROGRAM, traces.COMPARE)
    with tempfile.TemporaryDirectory(prefix="locate-", dir=book.ROOT / "build") as made:
        folder = pathlib.Path(made)
        agree = compare_engine(flags.trace, folder) if flags.trace else compare_parts(parts, folder)
    if agree and good and not flags.trace:
        book.say("\nTalk to it yourself: ./learn run 10 --mine --chat" if flags.answers else
                 "\nHow a token is chosen is no part of a trace: ./learn check 09 and ./learn "
                 "graduate look at it.")
    sys.exit(not (agree and good))


def note(text) -> None:
    print(f"learn: {text}", file=sys.stderr)


def chosen(what):
    """The reader's parts of which a trace shows something: those that are named, or all."""
    pairs = check.parts(what)
    seen = operations.seen()
    for name, part in pairs:
        if what and (name, part) not in seen:
            note(f"{name[:2]} {part} makes nothing that a trace shows. "
                 f"./learn check {name[:2]} {part} judges it")
    pairs = [pair for pair in pairs if pair in seen]
    return pairs or book.die("none of these parts makes anything that a trace shows")


def that_build(pairs):
    parts = []
    for name, part in pairs:
        try:
            text = written.read(name, part)
            why = judge.unbuilt(text)
        except written.Unreadable as error:
            why = str(error)
        if why:
            note(f"{name[:2]} {part} does not build, so ours is used. "
                 f"./learn check {name[:2]} {part} says why")
        else:
            parts.append(text)
    if not parts:
        book.die("there is nothing of yours to compare")
    told = passing_parts.told([(one.chapter, one.part) for one in parts])
    print(f"Yours: {told}. All others are the book's.", file=sys.stderr)
    return parts


def compare_parts(parts, folder):
    ours = made_with_ours(TEXTS, folder)
    with blame.program_of(parts) as program:
        book.at_work("the texts, with your parts")
        theirs = traces.make(program, TEXTS, folder / "theirs", ours)
    book.at_work("comparing")
    parting = traces.parting(TEXTS, ours, theirs)
    book.at_work("")
    show_parting.tell_texts(TEXTS, parting, ours)
    if not parting:
        if theirs.ended:
            book.say(f"\nAll results agree, but then yours {theirs.ended}.")
        return not theirs.ended
    show_parting.tell(parting, ours, parting.file(theirs).parent)
    if unwritten := blame.still_to_write(parts, parting):
        book.say(f"\nNext: write it. ./learn check {unwritten.chapter[:2]} {unwritten.part}")
        return False
    suspect, alike = blame.responsible(parts, parting, ours, theirs, folder)
    book.at_work("")
    show_parting.tell_responsible(parts, suspect, alike, parting)
    return False


def made_with_ours(texts, folder):
    book.at_work("the texts, with our parts")
    ours = traces.make(book.BUILD / traces.PROGRAM, texts, folder / "ours")
    book.at_work("")
    if ours.ended:
        book.die(f"with our own parts, {os.environ['T2T_WEIGHTS']} {ours.ended}")
    return ours


def compare_engine(trace, folder):
    """Another engine's trace beside ours of the same ids."""
    if not trace.is_dir():
        book.die(f"{trace} is no folder of .npy files")
    trace = trace.resolve()
    text = Text("0", "the text of its trace", ",".join(map(str, ids_of(trace))), "ids")
    ours = made_with_ours([text], folder)
    want = ours.calls(text)[0]
    parting = traces.in_folders(text, want, trace)
    if not parting:
        common = {*traces.names_in(trace)} & {*traces.names_in(want)}
        book.say(f"All {len(common)} results that both have agree, for {len(ours.tokens(text))} "
                 "tokens.")
        return True
    show_parting.tell(parting, ours, trace)
    book.say(f"\nUsual causes: {parting.causes}.")
    for chapter, part, function in operations.makers(parting.name)[:1]:
        book.say(f"Ours is {function}, chapter {chapter[:2]}. "
                 f"Read {show_parting.page_of(chapter, part, function)}")
    return False


def ids_of(trace):
    """The ids that it was made for: its ids.npy, or else those that chapter 10's page tells."""
    file = trace / "ids.npy"
    if not file.exists():
        note(f"{trace} has no ids.npy, so it is taken for a trace of the ids in "
             f"{book.shown(IDS_OF_PAGE)}")
        file = IDS_OF_PAGE
    with contextlib.suppress(OSError, ValueError):
        if file.stat().st_size <= 4 * MOST_IDS + 256 and b"'<i4'" in file.read_bytes()[:256]:
            return traces.numbers_of(file)
    book.die(f"{file}: wanted up to {MOST_IDS} ids as int32, as numpy.save writes them")
