"""Changes of a call and of what it is given: the call forgotten, arguments left out, exchanged or off by one (changes.py)."""
import itertools
import re

from tokens import PRODUCTS, SUMS


def call(code, i):
    """f(a, b) becomes a, b, f(a) or f(b, a), f(a) becomes f(f(a)), and beside an operator 1 + f(a, b) or 1 - f(a, b)."""
    if not re.match(r"[A-Za-z_]", code.text(i)) or code.text(i + 1) != "(" or code.text(i) in ("if", "for", "while", "return", "switch"):
        return
    close, given = code.partner.get(i + 1), code.arguments(i + 1)
    if close is None or not given:
        return
    texts = [code.cut(*one) for one in given]
    if len(texts) == 1:
        yield i + 2, close, code.cut(code.unit_before(i), close + 1)
        yield from _call_of_one_term(code, i, close)
    if code.text(i - 1) not in (".", "->"):
        for text in texts:
            yield i, close + 1, f"({text})"
        yield from _of_integers(code, i, close, texts)
    yield from _one_more(code, i, close)
    if len(texts) > 1:
        yield i + 2, close, texts[0]
        if code.text(i).startswith("xt::"):
            yield i, close + 1, f"{code.text(i)}({texts[0]})()"
    for n in range(len(texts) - 1):
        yield i + 2, close, ", ".join([*texts[:n], texts[n + 1], texts[n], *texts[n + 2:]])


def _call_of_one_term(code, i, close):
    """f(a + b) becomes f(a) + b or a + f(b)."""
    first = code.unit_before(i)
    called = code.cut(first, i + 1)
    for j in code.inside(i + 1):
        if code.text(j) in SUMS and code.is_binary(j):
            a, b = code.cut(i + 2, j), code.cut(j + 1, close)
            for now in (f"({called}({a}) {code.text(j)} {b})", f"({a} {code.text(j)} {called}({b}))",
                        f"{called}({a}) {code.text(j)} {called}({b})"):
                yield first, close + 1, now


def _of_integers(code, i, close, texts):
    """f(a, b) becomes a / b or a % b."""
    if len(texts) > 1 and all(code.kinds.get(text) == "whole" for text in texts):
        for a, b in itertools.permutations(texts, 2):
            for operator in "/%":
                yield i, close + 1, f"({a} {operator} {b})"


def _one_more(code, i, close):
    """a / f(b) becomes a / (1 + f(b)) or a / (1 - f(b))."""
    first, after = code.unit_before(i), code.unit_after(close)
    if after and {code.text(first - 1), code.text(after)} & (SUMS | PRODUCTS):
        for sign in "+-":
            yield first, after, f"(1 {sign} {code.cut(first, after)})"


def argument(code, i):
    """An expression that is an argument or an element of a list becomes 0, or one more or less; a parameter, its member."""
    if code.text(i) not in ("(", "{", "[") or (code.text(i) == "{" and code.is_block(i)):
        return
    for first, after in code.arguments(i):
        if after > first + 1 and code.text(first)[0] not in '"{' and code.text(first)[-1] != ">" and code.text(i - 1) not in ("for", "if", "while"):
            for other in ("0", f"{code.cut(first, after)} + 1", f"{code.cut(first, after)} - 1"):
                yield first, after, other
        if after == first + 1 and code.text(first) in code.given:
            for member in code.names.members.get(code.text(first), ()):
                yield first, after, f"{code.text(first)}.{member}"


def last_call(code, i):
    """a.b(c) becomes a."""
    if code.text(i) == "." and code.text(i + 2) == "(":
        yield i, code.partner.get(i + 2, i + 2) + 1, ""
