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
import changed_statements
import changed_values
import changed_words
from changeable import Changeable, Names

# What is tried at each token. Of edits that come to the same text the first is told.
KINDS = [changed_words.word, changed_words.number, changed_names.variable, changed_names.function, changed_arithmetic.operands,
         changed_calls.call, changed_calls.argument, changed_names.member, changed_names.bound, changed_calls.last_call,
         changed_words.enumerator, changed_values.condition, changed_values.choice, changed_values.given_value]
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
    for edit in _edits(code):
        change = _change(code, *edit)
        found.setdefault(re.sub(r"\s", "", change.of(body)), change)
    return list(found.values())


def _edits(code):
    for i in range(len(code.tokens)):
        for kind in KINDS if i not in code.silent else ():
            yield from kind(code, i)
    yield from changed_statements.statements(code)
    yield from changed_names.everywhere(code)


def _change(code, first, after, now):
    """The change that puts a text in the place of the tokens first to after - 1."""
    begin, end = code.tokens[first].begin, code.tokens[after - 1].end
    left, right = _around(code, first, after)
    was, then = code.body[left:right], code.body[left:begin] + now + code.body[end:right]
    return Change(begin, end, now, _short(was), _short(then))


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
