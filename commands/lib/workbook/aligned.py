"""A reader's source beside ours: the same functions, the same names, and the places where they differ, so that exchanged.py can put
ours in the place of theirs."""
import collections
import dataclasses
import difflib
import re

import bodies
import source
from statements import Code

PLACES = 6  # of a function: beyond them it is written otherwise as a whole


@dataclasses.dataclass(frozen=True)
class Place:
    begin: int  # in the reader's body
    end: int
    ours: str  # what stands here in ours, in their names
    uses: tuple  # names of theirs from before or from elsewhere that stand here, and not in ours


@dataclasses.dataclass
class Aligned:
    number: int  # of the function, in their file
    name: str
    body: str  # theirs
    ours: str  # in the names of their parameters
    places: list
    uses: tuple  # their functions that it calls and that ours has not

    def exchanged(self, places):
        """Their body with ours at these places."""
        text, at = "", 0
        for place in sorted(places, key=lambda place: place.begin):
            text, at = text + self.body[at:place.begin] + place.ours, place.end
        return text + self.body[at:]


def differing(theirs, ours):
    """The functions of two sources, cut into bodies (switches.Split), that both have and that differ."""
    theirs, ours, found = _by_name(theirs), _by_name(ours), []
    own = theirs.keys() - ours.keys()
    for (number, head, body), right in _pairs(theirs, ours):
        one, other = Code(head, body), Code(*right[1:])
        parameters = dict(zip(other.given, one.given)) if len(one.given) == len(other.given) else {}
        places = _places(one, other, parameters, own)
        if places:
            text = _renamed(other, parameters, 0, len(other.tokens))
            calls = tuple(sorted(own & {token.text for token in one.tokens}))
            found.append(Aligned(number, bodies.function_after(head), body, text, places if len(places) <= PLACES else [], calls))
    return found


def lacking(theirs, ours):
    """What ours declares for itself, in a namespace of its own, with the names in it that theirs does not declare."""
    includes = [line for line in "".join(ours.between).splitlines() if line.startswith("#include")]
    declared = _declarations(ours)
    names = declared.keys() - _declarations(theirs).keys() - _by_name(theirs).keys()
    return "\n".join([*includes, "namespace t2t {", "namespace of_ours {", *(text for some in declared.values() for text in some), "}",
                      *(f"using of_ours::{name};" for name in declared if name in names), "}", ""])


def _declarations(split):
    """{name: [text, ...]} of what a source declares for itself: constants, structures and helpers."""
    found = {}
    for between, body in zip(split.between, [*split.bodies, ""]):
        code = re.sub(r"\bnamespace\s*\w*\s*\{", lambda m: " " * len(m.group()), source.without_comments(between))
        *statements, head = _statements(code)
        for one in statements:
            name = re.search(r"\b(?:struct|enum class|enum|using)\s+(\w+)|(\w+)\s*(?:\[[^]]*\]\s*)?[={]", one)
            if name and not one.startswith("static_assert"):
                found.setdefault(name[1] or name[2], []).append(one)
        if body and re.search(r"\bstatic\b|\binline\b|\btemplate\b", head):
            end = ";" if re.search(r"= *\[", head) else ""
            found.setdefault(bodies.function_after(between), []).append(f"{head} {body}{end}")
    return found


def _statements(code):
    """The statements of what stands between two bodies, and the head that follows them."""
    begin, depth, found = 0, 0, []
    for i, c in enumerate(code):
        depth += (c in "({[") - (c in ")}]" and depth > 0)
        if c == ";" and depth == 0:
            found.append(code[begin:i + 1])
            begin = i + 1
    return [one.strip().lstrip("} \n;") for one in [*found, code[begin:]]]


def _by_name(split):
    """name -> [(number, head, body), ...]"""
    found = {}
    for number, (between, body) in enumerate(zip(split.between, split.bodies)):
        if (name := bodies.function_after(between)) and name != "the file":
            found.setdefault(name, []).append((number, bodies.head_of(between), body))
    return found


def _pairs(theirs, ours):
    """Each function of theirs with ours: of several with the same name, the one with parameters of the same kinds."""
    for name, some in theirs.items():
        others = ours.get(name, [])
        for one in some:
            alike = others if len(others) == len(some) == 1 else [other for other in others if _kinds(other) == _kinds(one)]
            if len(alike) == 1:
                yield one, alike[0]


def _kinds(function):
    return list(Code(function[1], "").given.values())


def _renamed(code, names, first, after):
    """The text of these tokens, in other names."""
    changed, at = "", code.tokens[first].begin
    for i in range(first, after):
        token = code.tokens[i]
        if token.text in names and not _is_member(code, i):
            changed, at = changed + code.body[at:token.begin] + names[token.text], token.end
    return changed + code.body[at:code.tokens[after - 1].end]


def _is_member(code, i):
    return code.text(i - 1) in (".", "->", "::")


def _places(theirs, ours, parameters, own):
    """The places where theirs differs from ours; own are functions of theirs that ours has not."""
    a, b = _units(theirs), _units(ours)
    names = parameters | _same_locals(theirs, ours, a, b)
    names |= {name: f"{name}_" for name in ours.kinds if name not in names and name in names.values()}
    words_of_theirs, words_of_ours = [_words(theirs, unit, {}) for unit in a], [_words(ours, unit, names) for unit in b]
    found = []
    for i, j, k, m in _balanced(difflib.SequenceMatcher(None, words_of_theirs, words_of_ours, autojunk=False).get_opcodes(), words_of_theirs, words_of_ours):
        begin = theirs.tokens[a[i][0]].begin if i < len(a) else len(theirs.body) - 1
        end = theirs.tokens[_closed(theirs, a[i][0], a[j - 1][1]) - 1].end if j > i else begin
        text = _renamed(ours, names, b[k][0], _closed(ours, b[k][0], b[m - 1][1])) if m > k else ""
        known = {token.text for token in theirs.tokens if token.begin < begin} & theirs.kinds.keys() - theirs.given.keys() | own
        uses = known & set().union(*words_of_theirs[i:j]) - set().union(*words_of_ours[k:m])
        found.append(Place(begin, end, text if j > i else f"{text} ", tuple(sorted(uses))))
    return found


def _closed(code, first, after):
    """The token after a range and after the brackets that it leaves open around single statements."""
    while code.text(after) == "}" and sum((code.text(i) == "{") - (code.text(i) == "}") for i in range(first, after)) > 0:
        after += 1
    return after


def _balanced(opcodes, theirs, ours):
    """The ranges of units that differ, so that each takes out and puts in whole blocks."""
    opened, start = 0, None
    for differ, i, j, k, m in _steps(opcodes):
        if differ or start:
            start = start or (i, k)
            opened += _open(theirs[i:j]) - _open(ours[k:m])
            if opened == 0:
                while j > start[0] and m > start[1] and theirs[j - 1] == ours[m - 1]:
                    j, m = j - 1, m - 1
                yield start[0], j, start[1], m
                start = None


def _steps(opcodes):
    """(whether they differ, range of theirs, range of ours): of as many units one by one."""
    for tag, i, j, k, m in opcodes:
        if tag == "replace" and j - i == m - k:
            yield from ((True, i + n, i + n + 1, k + n, k + n + 1) for n in range(j - i))
        else:
            yield tag != "equal", i, j, k, m


def _open(units):
    return sum(words.count("{") - words.count("}") for words in units)


def _same_locals(theirs, ours, a, b):
    """Our name -> theirs, of what functions declare for themselves: the name that stands most often where ours stands."""
    def shape(code, unit):
        return tuple("$" if _is_local(code, i) else code.text(i) for i in range(*unit))
    votes = collections.Counter()
    shapes = [shape(theirs, unit) for unit in a], [shape(ours, unit) for unit in b]
    for i, k, size in difflib.SequenceMatcher(None, *shapes, autojunk=False).get_matching_blocks():
        for one, other in zip(a[i:i + size], b[k:k + size]):
            votes.update((ours.text(y), theirs.text(x)) for x, y in zip(range(*one), range(*other)) if _is_local(theirs, x) and _is_local(ours, y))
    names = {}
    for our, their in sorted(votes, key=votes.get, reverse=True):
        if our not in ours.given and our not in names and their not in names.values():
            names[our] = their
    return names


def _is_local(code, i):
    return code.text(i) in code.kinds and not _is_member(code, i)


def _words(code, unit, names):
    """The tokens of a unit, in other names; strings and characters as they stand."""
    return tuple(_characters(code, i) + (code.cut(i, i + 1) if code.text(i).startswith('"') else
                                         code.text(i) if _is_member(code, i) else names.get(code.text(i), code.text(i))) for i in range(*unit))


def _characters(code, i):
    """The constants of a character before a token; they are no tokens."""
    between = code.body[code.tokens[i - 1].end if i else 0:code.tokens[i].begin]
    return "".join(re.findall(r"'(?:\\.|[^'\\\n])+'", re.sub(r"//[^\n]*|/\*.*?\*/", "", between, flags=re.S)))


def _units(code):
    """(first token, the one after) of each statement, head of a loop or condition, and bracket of a block of several statements."""
    found, first, i, count = [], 0, 0, len(code.tokens)
    while i < count:
        if code.text(i) in ("for", "if", "while") and i == first:
            bracket = i + 2 if code.text(i + 1) == "constexpr" else i + 1
            i = max(i, code.partner.get(bracket, bracket)) + 1
        elif code.text(i) in ("{", "}") and code.is_block(i):
            found += [(first, i)] if i > first else []
            first, i = (i + 1 if _is_around_one(code, i) else i), i + 1
        elif code.text(i) == ";":
            i += 1
        else:
            i = max(i, code.partner.get(i, i)) + 1 if code.text(i) == "{" else i + 1
            continue
        found += [(first, min(i, count))] if i > first else []
        first = i
    return found + ([(first, count)] if count > first else [])


def _is_around_one(code, i):
    """Whether the bracket at i is around a single statement of a loop or a condition."""
    opening = min(i, code.partner.get(i, i))
    return opening > 0 and code.statement_end(opening + 1) == code.partner.get(opening)
