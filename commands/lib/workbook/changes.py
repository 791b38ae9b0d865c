"""Small changes of a function, as someone makes them who is mistaken: an operand forgotten, another index, a sum that is
not set back for each row.

They are made on tokens, without types: many of them don't compile, and variants.py leaves those out. Each changed_*.py has
some kinds of changes.
"""
import dataclasses
import re

import changed_arithmetic
import changed_calls
import changed_names
import changed_origins
import changed_statements
import changed_together
import changed_values
import changed_words
from changeable import Changeable, Names

# What is tried at each token. Of edits that come to the same text the first is told.
KINDS = [changed_words.word, changed_words.number, changed_names.variable, changed_names.function, changed_arithmetic.operands,
         changed_calls.call, changed_calls.argument, changed_names.member, changed_names.bound, changed_calls.last_call,
         changed_words.enumerator, changed_values.condition, changed_values.choice, changed_values.given_value,
         changed_values.returned, changed_origins.origin, changed_origins.call_of_it]
LONG = 60  # characters of an expression, above which a part of it is told


@dataclasses.dataclass(frozen=True)
class Change:
    begin: int  # in the body
    end: int
    now: str
    was: str  # as it is told: the expression around the change, before and after
    then: str

    def of(self, body):
        return body[:self.begin] + self.now + body[self.end:]


def of(head, body, names=Names()):
    """Every change of a function that has this head before its body, without those that come to the same text."""
    code = Changeable(head, body, names)
    found = {}
    for edits in _edits(code):
        if change := _change(code, sorted(edits)):
            found.setdefault(re.sub(r"\s", "", change.of(body)), change)
    return list(found.values())


def _edits(code):
    """Lists of edits, which are made together: (first token, the one after the last, the text in their place)."""
    single = [edit for i in range(len(code.tokens)) if i not in code.silent for kind in KINDS for edit in kind(code, i)]
    single += changed_statements.statements(code)
    yield from ([edit] for edit in single)
    yield from changed_names.everywhere(code, changed_names.uses(code))
    yield from changed_together.neighbours(code)
    yield from changed_together.of_one_form(code, single)
    yield from changed_statements.cases(code)
    yield from changed_words.throughout(code)


def _change(code, edits):
    """The change that makes these edits, told by the first of them; None if there are none, or if two overlap."""
    if not edits or any(a[1] > b[0] for a, b in zip(edits, edits[1:])):
        return None
    now, begin = "", code.tokens[edits[0][0]].begin
    at = begin
    for first, after, text in edits:
        now += code.body[at:code.tokens[first].begin] + text
        at = code.tokens[after - 1].end
    first, after, text = edits[0]
    left, right = _around(code, first, after)
    was = code.body[left:right]
    then = code.body[left:code.tokens[first].begin] + text + code.body[code.tokens[after - 1].end:right]
    others = f", and the same in {len(edits) - 1} more" * (len(edits) > 1)
    return Change(begin, at, now, _short(was), _short(then) + others)


def _around(code, first, after):
    """Where the expression around these tokens begins and ends in the body, or its operand if the expression is long."""
    left, right = first, after
    while left > 0 and not re.fullmatch(r"[;,{}(\[=?:]|[-+*/]?=", code.text(left - 1)):
        left = code.partner.get(left - 1, left - 1) if code.text(left - 1) in (")", "]") else left - 1
    while right < len(code.tokens) and not re.fullmatch(r"[;,{})\]?:]", code.text(right)):
        right = code.partner.get(right, right) + 1 if code.text(right) in ("(", "[") else right + 1
    if code.tokens[right - 1].end - code.tokens[left].begin > LONG:
        left = code.unit_before(first) if code.ends_operand(first) else first
        right = max(after, code.unit_after(first) or after)
    begin, end = code.tokens[left].begin, code.tokens[right - 1].end
    return min(begin, code.tokens[first].begin), max(end, code.tokens[after - 1].end)


def _short(text):
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "…"
