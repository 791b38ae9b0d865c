"""Where a part is wrong, if it makes no recorded mistake: the lines of the reader's own text, or
the functions, after whose exchange for ours no check fails but those that wait for something
unwritten. Lines are found as far as a function is written like ours; the names may be others."""
import concurrent.futures
import contextlib
import dataclasses
import itertools
import os
import pathlib
import signal
import tempfile
import time

from workbook import book
from workbook.programs import callers, switches, trial
from workbook.verdict import aligned

SCREENED = 4  # failing checks that are run first
SECONDS = 10  # of processor time for them
WHOLE_SECONDS = 60  # for all checks
EXCHANGES = 60  # that are compiled at a time
ROUNDS = 4  # in which those are left out that do not compile
PATIENCE = 30  # seconds after which no more are tried
PAIRED = 16  # exchanges of two functions' places, of each size, that are tried


@dataclasses.dataclass(frozen=True)
class Lines:
    """What is to be exchanged: lines of the reader's file."""
    file: str  # in the reader's folder
    function: str
    first: int
    last: int
    kind: str  # "lines"; "surplus" ones; a missing "place" before the first; a "function"
    text: str
    uses: tuple  # their names here that ours lacks: the mistake may be in what they stand for


def look(text, failing, waiting=()):
    """The exchanges by which the part passes, each as a list of Lines: of single places, if any of
    them suffices; else of two places; else of whole functions. Failing are the checks that fail,
    waiting those that call what isn't written yet."""
    theirs, ours = switches.cut(text.own), switches.of_part(text.chapter, text.part)
    functions = aligned.differing(theirs, ours)
    trial = _Trial(text, theirs, aligned.lacking(theirs, ours), failing, waiting)
    found = trial.passing(_single(functions), _double(functions))
    if len(found) == 1:
        found = _needed(trial, found[0])
    return [[line for function, places in exchange
             for line in _lines(text, theirs, function, places)] for exchange in found]


def _single(functions):
    """Exchanges in one function: ((function, places),); no places mean all of it."""
    yield from (((one, ()),) for one in functions)
    some = [((one, places),) for one in functions for places in _places(one)]
    yield from sorted(some, key=_size)


def _places(function):
    """One or two places of a function."""
    return [some for n in (1, 2) for some in itertools.combinations(function.places, n)]


def _double(functions):
    """Exchanges in two functions at once."""
    two = list(itertools.combinations(functions, 2))
    yield from (((one, ()), (other, ())) for one, other in two)
    for one, other in two:
        both = [((one, some), (other, others))
                for some, others in itertools.product(_places(one), _places(other))]
        for n in (1, 2):
            of_size = [exchange for exchange in both if _size(exchange) == (False, n)]
            yield from of_size if len(of_size) <= PAIRED else []


def _size(exchange):
    """How much is exchanged: whole functions are more than any places."""
    return max((not places, len(places)) for _, places in exchange)


def _needed(trial, exchange):
    """An exchange of whole functions, with those places alone that it needs, if that is enough."""
    everything = [(function, place) for function, _ in exchange for place in function.places]
    if (any(places for _, places in exchange) or
            not all(function.places for function, _ in exchange)):
        return [exchange]

    def with_all(wanted):
        return tuple((function, tuple(place for one, place in wanted if one is function))
                     for function, _ in exchange)
    less = [with_all([one for one in everything if one is not left_out]) for left_out in everything]
    enough = trial.passing((one for one in less if all(places for _, places in one)),
                           size=lambda exchange: 0)
    needed = with_all([one for one, others in zip(everything, less) if others not in enough])
    return all(places for _, places in needed) and trial.passing([needed]) or [exchange]


class _Trial:
    """Programs with exchanges, and the checks that they must pass."""

    def __init__(self, text, theirs, declarations, failing, waiting) -> None:
        self.text, self.theirs, self.declarations = text, theirs, declarations
        self.until = time.monotonic() + PATIENCE
        checks = dict.fromkeys([*callers.of(text.chapter, text.part), *failing])
        self.checks = [check for check in checks if check not in waiting]
        self.failing = [check for check in self.checks if check in failing]

    def passing(self, *lists, size=_size):
        """Of the first list that has any: those of its exchanges with which all checks pass, of the
        least size. The program of a later list is built meanwhile, since it is often needed."""
        some = [{f"exchange {n}": exchange
                 for n, exchange in enumerate(itertools.islice(one, EXCHANGES))} for one in lists]
        some = [one for one in some if one and time.monotonic() < self.until]
        with (tempfile.TemporaryDirectory(prefix="exchanged-", dir=book.BUILD) as folder,
              concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool,
              self._compilers_ended()):
            built = [pool.submit(self._built, one, pathlib.Path(folder, str(n)))
                     for n, one in enumerate(some)]
            for exchanges, program_and_names in zip(some, built):
                if found := self._found(exchanges, *program_and_names.result(), size):
                    return found
        return []

    @contextlib.contextmanager
    def _compilers_ended(self):
        """Ends the compilers that nobody waits for any more."""
        self.compilers, self.ended = [], False
        try:
            yield
        finally:
            self.ended = True
            for process in self.compilers:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def _found(self, some, program, tried, size):
        tried = self._that_pass(program, tried, self.failing[:SCREENED], SECONDS)
        tried = self._that_pass(program, tried, self.failing, WHOLE_SECONDS)
        for least in sorted({size(some[name]) for name in tried}):
            names = [name for name in tried if size(some[name]) == least]
            if found := self._that_pass(program, names, self.checks, WHOLE_SECONDS):
                return [some[name] for name in found]
        return []

    def _that_pass(self, program, names, checks, seconds):
        """Of these exchanges those with which the checks pass; each processor takes some of the
        checks."""
        cores = os.cpu_count()
        shares = [checks[n::cores] for n in range(min(cores, len(checks)))]
        with concurrent.futures.ThreadPoolExecutor(cores) as pool:
            tried = {name: [pool.submit(trial.passes, program, name, share, seconds)
                            for share in shares] for name in names}
            return [name for name, some in tried.items() if all(one.result() for one in some)]

    def _built(self, some, folder):
        """A program with those of these exchanges that compile, and their names."""
        for name, content in self.text.files.items():
            copy = pathlib.Path(folder, name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        made = pathlib.Path(folder, next(iter(self.text.files)))
        words = trial.command(self.text.chapter, self.text.part, made)
        other = [(function.number, name, function.exchanged(places) if places else function.ours)
                 for name, exchange in some.items() for function, places in exchange]
        for _ in range(ROUNDS):
            if self.ended:
                return None, []
            made.write_text(self.declarations + switches.switched(self.theirs, other))
            said = trial.compiled(words, started=self.compilers)
            bad = trial.bodies_named_in(said.stderr)
            if said.returncode == 0 or not bad:
                break
            other = [one for one in other if one[1] not in bad]
        program = trial.linked(self.text.chapter, made) if said.returncode == 0 else None
        return program, list(dict.fromkeys(name for _, name, _ in other)) if program else []


def _lines(text, theirs, function, places):
    """The lines of the reader's file that an exchange takes out, or between which it puts
    something."""
    begin_of_body = theirs.text.count("\n", 0, theirs.functions[function.number].brace) + 1
    spans = [(place.begin, place.end, "place" if place.end == place.begin else
              "lines" if place.ours else "surplus", place.uses) for place in places]
    for begin, end, kind, uses in spans or [(0, len(function.body), "function", function.uses)]:
        first, last = (begin_of_body + function.body.count("\n", 0, at) for at in (begin, end))
        yield Lines(next(iter(text.files)), function.name, first, last, kind,
                    "\n".join(text.own.split("\n")[first - 1:last]), uses)
