"""One function of a part alone, judged by the checks that call it, while others of the part are
still to be written.

Which checks call it is read from their text: they name it, or something of their own files that
does. Of a function that none names calls.json knows which checks come to it.
"""
import dataclasses
import functools
import re

from workbook import book, checks
from workbook.programs import callers
from workbook.source import cpp
from workbook.verdict import judge


@dataclasses.dataclass
class Alone:
    """The verdict on the part, with what is told of the function alone."""
    verdict: judge.Verdict  # with the failures of this function
    whole: list  # checks that call it, and no function that is not written or fails
    partly: list  # that also call such a function: what asks for this one is judged
    waiting: list  # that can't judge it before the others are right
    others: list  # the functions that these two call, and that are not written or fail

    @property
    def word(self):
        """As a verdict's, or "waits" where no check can judge it yet: of those that are worked by
        hand, one must."""
        result = self.verdict.result
        if result is None or result.ended or self.verdict.word == "races":
            return self.verdict.word
        if result.failures:
            return "fails" if self.verdict.wrong else "is not written"
        judged = self.whole + self.partly
        by_hand = {check for check in judged + self.waiting if checks.kind_of(check) == "by hand"}
        return "passes" if set(judged) & (by_hand or set(judged)) else "waits"


def of(chapter: str, part: str, function):
    """What the checks that call the function say of it; the whole verdict if it ended in one of
    them, or does not build."""
    calling = calls_of(chapter, part, function) or {  # or other functions call it for the checks
        check: Calling(frozenset(), []) for check, functions in callers.of(chapter, part).items()
        if function in functions}
    if not calling:
        book.die(f"no check calls {function}; it is judged with the part: ./learn check "
                 f"{chapter[:2]} {part}")
    verdict = judge.judge(chapter, part)
    if verdict.result is None:
        return Alone(verdict, [], [], [], [])
    failures = blamed(chapter, part, function,
                      [f for f in verdict.result.failures if f.check in calling])
    of_others = [(f, other) for f, other in failures if other]
    mixed = {f.check for f, _ in of_others}
    if verdict.result.ended and verdict.result.running in calling.keys() - mixed:
        return Alone(verdict, [], [], [], [])
    # What is not written and throws outside of an assertion ends its check: what comes after it did
    # not run.
    ended = {f.check for f, _ in of_others if not f.asked}
    own = [f for f, other in failures
           if not other and (f.check not in mixed or f.not_written or
                             _mentions(calling[f.check].names, f.asked))]
    whole = [check for check in verdict.result.checks if check in calling and check not in mixed]
    partly = [check for check in mixed if check not in ended and calling[check].asked]
    result = dataclasses.replace(verdict.result, failures=own, ended="")
    return Alone(dataclasses.replace(verdict, result=result), whole, partly,
                 [check for check in calling if check not in whole + partly],
                 list(dict.fromkeys(other for _, other in of_others)))


def blamed(chapter: str, part: str, function, failures):
    """[(failure, the other function that it is about, or ""), ...]: one that is not written, one
    that the assertion names and not this one, or one that fails in such an assertion."""
    others = {one.name: _names_of(chapter, part, one.name)
              for one in cpp.to_write(book.ours(chapter, part).read_text())}
    own = others.pop(function)

    def named(failure: checks.Failure, some):
        if failure.not_written:
            return failure.not_written[0] if failure.not_written[0] != function else ""
        return next((other for other in some if _mentions(others[other], failure.asked)), "")
    fails = {named(f, others) for f in failures
             if not f.not_written and not _mentions(own, f.asked)} - {""}
    return [(f, named(f, fails)) for f in failures]


@dataclasses.dataclass
class Calling:
    """A check that calls the function."""
    names: frozenset  # of the function, and of what calls it in the checks' files
    asked: list  # the assertions that name one of these


def calls_of(chapter: str, part: str, function):
    """Check -> Calling."""
    names = _names_of(chapter, part, function)
    return {piece.name: Calling(names, [text for text in piece.asked if _mentions(names, text)])
            for piece in pieces(book.checks_of(chapter, part).removesuffix("_test"))
            if piece.is_check and _mentions(names, piece.code)}


@functools.cache
def _names_of(chapter: str, part: str, function):
    """Patterns of the function's name, and of the names of what calls it in the checks' files."""
    word = re.escape(function.split("::")[-1])
    some = pieces(book.checks_of(chapter, part).removesuffix("_test"))
    names, grown = {rf"(?:\.|->){word}\(" if "::" in function else rf"\b{word}\b"}, True
    while grown:
        found = {rf"\b{piece.name}\b" for piece in some
                 if not piece.is_check and _mentions(names, piece.code)}
        names, grown = names | found, not found <= names
    return frozenset(names)


def _mentions(names, code):
    return any(re.search(name, code) for name in names)


@dataclasses.dataclass
class Piece:
    """What stands outside of functions in a file of checks: a check, or something that checks
    use."""
    name: str
    is_check: bool
    code: str  # without comments and strings
    asked: list  # its assertions


@functools.cache
def pieces(name):
    """The pieces of the files of checks of a chapter, or of its kernels."""
    tests = book.ROOT / "tests"
    files = [tests / f"{name}_test.cpp", *sorted((tests / name).glob("*.?pp"))]
    return [Piece(item.name, item.kind == "check", cpp.bare(text, item.node),
                  [cpp.bare(text, one) for one in _assertions(item.node)])
            for text in (file.read_text() for file in files) for item in cpp.items(text)]


def _assertions(node):
    for call in cpp.nodes(node, "call_expression"):
        is_one = re.match(rb"(CHECK|REQUIRE|REFUSES)\w*\(", call.text)
        yield from [call] if is_one else _assertions(call)
