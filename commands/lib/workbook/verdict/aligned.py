"""A reader's source beside ours: the same functions, the same names, and the places where they
differ, so that exchanged.py can put ours in the place of theirs."""
import collections
import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator

from workbook.programs.switches import Split
from workbook.source import cpp
from workbook.source.cpp import Item
from workbook.source.statements import Code

Words = tuple[str, ...]
Opcode = tuple[str, int, int, int, int]
PLACES = 6  # of a function: beyond them it is written otherwise as a whole


@dataclasses.dataclass(frozen=True)
class Place:
    begin: int  # in the reader's body
    end: int
    ours: str  # what stands here in ours, in their names
    uses: tuple[str, ...]  # names of theirs from elsewhere that stand here, and not in ours


@dataclasses.dataclass
class Aligned:
    number: int  # of the function, in their file
    name: str
    body: str  # theirs
    ours: str  # in the names of their parameters
    places: list[Place]
    uses: tuple[str, ...]  # their functions that it calls and that ours has not

    def exchanged(self, places: Iterable[Place]) -> str:
        """Their body with ours at these places."""
        text, at = "", 0
        for place in sorted(places, key=lambda place: place.begin):
            text, at = text + self.body[at:place.begin] + place.ours, place.end
        return text + self.body[at:]


def differing(theirs: Split, ours: Split) -> list[Aligned]:
    """The functions of two sources, cut into bodies, that both have and that differ."""
    names, of_ours, found = _names(theirs), _names(ours), []
    own = {f.name for f in names} - {f.name for f in of_ours}
    for number, function, right in _pairs(theirs, names, of_ours):
        one, other = Code(function), Code(right)
        parameters = dict(zip(other.given, one.given)) if len(one.given) == len(other.given) else {}
        places = _places(one, other, parameters, own)
        if places:
            text = _renamed(other, parameters, 0, len(other.tokens))
            calls = tuple(sorted(own & {token.text for token in one.tokens}))
            few = places if len(places) <= PLACES else []
            found.append(Aligned(number, function.name, function.body, text, few, calls))
    return found


def lacking(theirs: Split, ours: Split) -> str:
    """What ours declares for itself, in a namespace of its own, with the names in it that theirs
    does not declare."""
    includes, declared = re.findall(r"^#include .*$", ours.text, re.M), _declarations(ours)
    names = declared.keys() - _declarations(theirs).keys() - {f.name for f in _names(theirs)}
    texts = [text for some in declared.values() for text in some]
    using = [f"using of_ours::{name};" for name in declared if name in names]
    return "\n".join([*includes, "namespace t2t {", "namespace of_ours {", *texts, "}", *using, "}",
                      ""])


def _declarations(split: Split) -> dict[str, list[str]]:
    """{name: [text, ...]} of what a source declares for itself: constants, types and helpers."""
    found: dict[str, list[str]] = {}
    for item in cpp.items(split.text):
        if item.kind in ("type", "value") or item.local and item.kind in ("function", "lambda"):
            text = split.text[item.begin:item.end].removesuffix(";")
            end = "" if item.kind == "function" else ";"
            found.setdefault(item.name, []).append(text + end)
    return found


def _names(split: Split) -> list[Item]:
    """The functions of which a body can be exchanged."""
    return [f for f in split.functions if not f.may_run_in_compiler]


def _pairs(split: Split, theirs: list[Item], ours: list[Item]) -> Iterator[tuple[int, Item, Item]]:
    """Each function of theirs with its number and ours: of several with the same name, the one with
    parameters of the same kinds."""
    for one in theirs:
        some, others = ([f for f in every if f.name == one.name] for every in (theirs, ours))
        alike = others
        if len(others) != 1 or len(some) != 1:
            alike = [f for f in others if _kinds(f) == _kinds(one)]
        if len(alike) == 1:
            yield split.functions.index(one), one, alike[0]


def _kinds(function: Item) -> list[str]:
    return list(Code(function).given.values())


def _renamed(code: Code, names: dict[str, str], first: int, after: int) -> str:
    """The text of these tokens, in other names."""
    changed, at = "", code.tokens[first].begin
    for i in range(first, after):
        token = code.tokens[i]
        if token.may_be_local and token.text in names:
            changed, at = changed + code.body[at:token.begin] + names[token.text], token.end
    return changed + code.body[at:code.tokens[after - 1].end]


def _places(theirs: Code, ours: Code, parameters: dict[str, str], own: set[str]) -> list[Place]:
    """The places where theirs differs from ours; own are functions of theirs that ours has not."""
    a, b = theirs.units, ours.units
    names = parameters | _same_locals(theirs, ours)
    names |= {name: f"{name}_" for name in ours.names - names.keys() if name in names.values()}
    words_of_theirs = [_words(theirs, unit, {}) for unit in a]
    words_of_ours = [_words(ours, unit, names) for unit in b]
    found = []
    matched = difflib.SequenceMatcher(None, words_of_theirs, words_of_ours, autojunk=False)
    opcodes = matched.get_opcodes()
    for i, j, k, m in _balanced(opcodes, words_of_theirs, words_of_ours):
        begin = theirs.tokens[a[i][0]].begin if i < len(a) else len(theirs.body) - 1
        end = theirs.tokens[_closed(theirs, a[i][0], a[j - 1][1]) - 1].end if j > i else begin
        text = _renamed(ours, names, b[k][0], _closed(ours, b[k][0], b[m - 1][1])) if m > k else ""
        before = {token.text for token in theirs.tokens if token.begin < begin}
        known = before & theirs.names - theirs.given.keys() | own
        uses = known & set().union(*words_of_theirs[i:j]) - set().union(*words_of_ours[k:m])
        found.append(Place(begin, end, text if j > i else f"{text} ", tuple(sorted(uses))))
    return found


def _closed(code: Code, first: int, after: int) -> int:
    """The token after a range and after the brackets that it leaves open around single
    statements."""
    while code.text(after) == "}" and _open([_words(code, (first, after), {})]) > 0:
        after += 1
    return after


def _balanced(opcodes: Iterable[Opcode], theirs: list[Words],
              ours: list[Words]) -> Iterator[tuple[int, int, int, int]]:
    """The ranges of units that differ, so that each takes out and puts in whole blocks."""
    opened = 0
    start: tuple[int, int] | None = None
    for differ, i, j, k, m in _steps(opcodes):
        if differ or start:
            start = start or (i, k)
            opened += _open(theirs[i:j]) - _open(ours[k:m])
            if opened == 0:
                while j > start[0] and m > start[1] and theirs[j - 1] == ours[m - 1]:
                    j, m = j - 1, m - 1
                yield start[0], j, start[1], m
                start = None


def _steps(opcodes: Iterable[Opcode]) -> Iterator[tuple[bool, int, int, int, int]]:
    """(whether they differ, range of theirs, range of ours): of as many units one by one."""
    for tag, i, j, k, m in opcodes:
        if tag == "replace" and j - i == m - k:
            yield from ((True, i + n, i + n + 1, k + n, k + n + 1) for n in range(j - i))
        else:
            yield tag != "equal", i, j, k, m


def _open(units: list[Words]) -> int:
    return sum(words.count("{") - words.count("}") for words in units)


def _same_locals(theirs: Code, ours: Code) -> dict[str, str]:
    """Our name -> theirs, of what functions declare for themselves: the name that stands most often
    where ours stands."""
    def shapes(code: Code) -> list[Words]:
        return [tuple("$" if code.is_local(i) else code.text(i) for i in range(*unit))
                for unit in code.units]
    votes: collections.Counter[tuple[str, str]] = collections.Counter()
    matched = difflib.SequenceMatcher(None, shapes(theirs), shapes(ours), autojunk=False)
    for i, k, size in matched.get_matching_blocks():
        for one, other in zip(theirs.units[i:i + size], ours.units[k:k + size]):
            votes.update((ours.text(y), theirs.text(x)) for x, y in zip(range(*one), range(*other))
                         if theirs.is_local(x) and ours.is_local(y))
    names: dict[str, str] = {}
    for (our, their), _ in votes.most_common():
        if our not in ours.given and our not in names and their not in names.values():
            names[our] = their
    return names


def _words(code: Code, unit: tuple[int, int], names: dict[str, str]) -> Words:
    """The tokens of a unit, in other names."""
    return tuple(names.get(one.text, one.text) if one.may_be_local else one.text
                 for one in code.tokens[slice(*unit)])
