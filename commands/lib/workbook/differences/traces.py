"""Traces of texts through the model of chapter 10: made with the reader's parts or with ours, and
compared."""
import array
import dataclasses
import math
import os
import pathlib
import re
import subprocess
import time

from workbook import book, running
from workbook.differences import operations

PROGRAM = "trace_texts"
COMPARE = "10_pretrained"  # whose --compare says whether two traces agree
TOLERANCE = 1e-3  # of a token's length, as --compare has it


@dataclasses.dataclass
class Text:
    folder: str  # of its traces
    says: str
    words: str
    steps: object = 0  # as trace_texts.cpp has it


@dataclasses.dataclass
class Traces:
    """What a program made of texts: a folder for each of them."""
    room: pathlib.Path
    end: running.End
    seconds: float

    @property
    def ended(self):
        """How it ended, if not well."""
        said = re.sub(r"[^ -~]", "?", " ".join(self.end.printed.splitlines()[-2:]))[-300:]
        if self.end.stopped or self.end.code < 0:
            why = self.end.stopped or running.how_it_ended(self.end.code)
            return why + (f": {said}" if said else "")
        return f"ended with the error: {said}" if self.end.code else ""

    def calls(self, text):
        """The folders of the calls in which a text went through the model, in order."""
        return sorted((self.room / text.folder).glob("at_*"), key=first_token)

    def tokens(self, text):
        """["28 ,", ...]: each token's id, and its text as far as that can be shown."""
        path = self.room / text.folder / "tokens"
        return path.read_text(errors="replace").split("\n")[:-1] if path.is_file() else []


def first_token(call):
    return int(call.name.removeprefix("at_"))


def make(program, texts, folder, ours=None, wrong=""):
    """Runs the program. With the reader's parts it may compute twenty times as long as with
    ours."""
    room = folder / "room"
    room.mkdir(parents=True)
    words = [word for text in texts for word in (text.folder, str(text.steps), text.words)]
    times = max(1, math.ceil(20 * ours.seconds / (4 * running.WHOLE_SECONDS))) if ours else 6
    command = [program, pathlib.Path(os.environ["T2T_WEIGHTS"]).resolve(), *words]
    began = time.monotonic()
    end = running.run(command, os.environ | {"T2T_WRONG": wrong}, room, room / "told", times)
    return Traces(room, end, time.monotonic() - began)


@dataclasses.dataclass
class Parting:
    """Where two models part first."""
    text: Text
    at: int  # the call's first token
    name: str  # the operation's
    token: int  # of the text
    says: str  # how they differ there
    causes: str = ""
    ended: bool = False  # theirs did not come so far

    @property
    def place(self):
        return self.text, self.at, self.name

    def file(self, traces):
        return traces.room / self.text.folder / f"at_{self.at}" / f"{self.name}.npy"


def parting(texts, ours, theirs):
    """The first place in the order of texts, or None."""
    for text in texts:
        if found := _in_tokens(text, ours, theirs):
            return found
        for call in ours.calls(text):
            if found := _in_call(text, call, theirs):
                return found


def _in_tokens(text, ours, theirs):
    want, got = ours.tokens(text), theirs.tokens(text)
    if want == got:
        return None
    if not got:
        return _not_reached(text, 0, "tokens", theirs)
    short = min(len(want), len(got))
    t = next((i for i in range(short) if want[i] != got[i]), short)
    here = f"Token {t} is {got[t]!r}, want {want[t]!r}. " if t < short else ""
    return Parting(text, 0, "tokens", min(t, len(want) - 1),
                   f"{here}There are {len(got)} tokens, want {len(want)}.")


def names_in(call):
    """The operations of which a folder has results, in the order of computation."""
    return sorted((file.stem for file in call.glob("*.npy")), key=operations.place_of)


def _in_call(text, call, theirs):
    """The first operation that differs, or else the first that theirs did not come to."""
    other, names = theirs.room / text.folder / call.name, names_in(call)
    missing = [name for name in names if not (other / f"{name}.npy").is_file()]
    found = in_folders(text, call, other) if len(missing) < len(names) else None
    if not found and missing:
        found = _not_reached(text, first_token(call), missing[0], theirs)
    return found


def _not_reached(text, at, name, theirs):
    return Parting(text, at, name, at, ended=True, says="Yours did not come so far: it "
                   f"{theirs.ended or 'ended without it'}.")


def in_folders(text, want, got):
    """Where chapter 10's --compare finds that two folders part first."""
    run = subprocess.run([book.BUILD / COMPARE, "--compare", want, got], capture_output=True,
                         text=True, errors="replace")
    told = " ".join(run.stdout.split())
    if "common parts agree" in told:
        return None
    found = re.search(r"first differ at (\S+): (.*)\. Usual causes: (.*)\.$", told)
    if not found:
        book.die(run.stderr.strip().removeprefix(f"{COMPARE}: ") or
                 f"the traces in {got} can't be compared")
    name, says, causes = found.groups()
    at = first_token(want)
    numbers = re.match(r"for token (\d+) by (\S+) of its length, and most in channel (\d+), which "
                       r"has (\S+) in one and (\S+) in the other$", says)
    if not numbers:
        return Parting(text, at, name, at, f"The {says}: ours is the first.", causes)
    row, distance, channel, ours, theirs = numbers.groups()
    if name in ("final_norm", "logits"):
        row = _numbers_and_rows(want / "embedding.npy")[1] - 1
    return Parting(text, at, name, at + int(row), f"It differs by {distance} of the token's "
                   f"length, most in channel {channel}: got {theirs}, want {ours}.", causes)


def picture(want, got, parting):
    """Lines of a map for the token at which they part: . is agreement, x difference, X the first.
    Operations go down, layers across; what a trace lacks is blank."""
    marks = dict.fromkeys(operations.ORDER, "")
    for name in names_in(want):
        mark = _mark(want / f"{name}.npy", got / f"{name}.npy", parting.token - parting.at)
        marks[operations.split(name)[1]] += "X" if name == parting.name else mark
    return [f"{operation:<22} {of_layers[:book.width() - 26]}"
            for operation, of_layers in marks.items() if of_layers]


def _mark(want, got, t):
    if not got.is_file():
        return " "
    try:
        ours, theirs = _row(want, t), _row(got, t)
        return "." if math.dist(ours, theirs) <= TOLERANCE * math.hypot(*ours) else "x"
    except (ArithmeticError, AttributeError, ValueError):
        return "x"  # other sizes, or not as NumPy writes it


def numbers_of(file):
    """The numbers of an .npy file, one after the other."""
    content = file.read_bytes()
    begin = 10 + int.from_bytes(content[8:10], "little")
    return array.array("i" if b"'<i4'" in content[:begin] else "f", content[begin:])


def _numbers_and_rows(file):
    """The numbers of an .npy file, and how many rows they have."""
    with file.open("rb") as content:
        shape = re.search(rb"'<f4'.*'shape': \((\d+),", content.read(1024), re.S)
    return numbers_of(file), int(shape.group(1))


def _row(file, t):
    """A row of an .npy file; of one that has fewer, the last."""
    numbers, rows = _numbers_and_rows(file)
    width, t = len(numbers) // rows, min(t, rows - 1)
    return numbers[t * width:(t + 1) * width]
