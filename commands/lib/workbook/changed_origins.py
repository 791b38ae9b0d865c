"""Changes that mistake a name for what it was made of, or for what is made of it (changes.py)."""
import functools
import re

from tokens import LEVEL, PRODUCTS, SUMS

LONG = 16  # tokens of what a name is given, above which it is left as it is


def origin(code, i):
    """After const float a = b * c; a use of a becomes b * c, computed there, or b or c."""
    made = _made(code).get(code.text(i))
    if made and i > made[1] and not _is_part(code, i):
        first, after = made
        yield i, i + 1, f"({code.cut(first, after)})"
        for j in range(first + 1, after):
            if code.text(j) in SUMS | PRODUCTS and code.is_binary(j) and code.depth(first - 1, j) == 0:
                left, right = code.left_of(j), code.right_of(j)
                if right and first <= left and right <= after:
                    yield i, i + 1, f"({code.cut(left, j)})"
                    yield i, i + 1, f"({code.cut(j + 1, right)})"


def call_of_it(code, i):
    """x + f(x) becomes f(x) + f(x), of the calls that are given x alone."""
    name = code.text(i)
    if code.kinds.get(name, "whole") in ("whole", "row", "auto") or _is_part(code, i) or code.is_declaration(i):
        return
    if not (code.text(i - 1) in ("=", "return", "(", ",") or code.text(i - 1) in LEVEL or code.text(i + 1) in LEVEL):
        return
    calls = {code.cut(code.unit_before(j - 2), j + 2) for j in range(2, len(code.tokens) - 1)
             if code.text(j) == name and j != i and code.text(j - 1) == "(" and code.text(j + 1) == ")"
             and re.match(r"[A-Za-z_]", code.text(j - 2)) and code.text(j - 2) not in ("if", "for", "while", "return", "switch")}
    for text in sorted(calls)[:3]:
        yield i, i + 1, text


def _is_part(code, i):
    return code.text(i - 1) in (".", "->") or code.text(i + 1) in (".", "->", "=", "(", "[", "+=", "-=", "++")


@functools.lru_cache(maxsize=1)
def _made(code):
    """{name: (first token, the one after)} of what each constant is given."""
    made = {}
    for i, token in enumerate(code.tokens):
        if token.text == "=" and code.kinds.get(code.text(i - 1)) not in (None, "whole") and not code.in_header(i):
            end = next((j for j in range(i, len(code.tokens)) if code.text(j) in (";", ",") and code.depth(i, j) == 0), i)
            if i + 1 < end <= i + 1 + LONG and code.text(i + 1) not in ("[", "{"):
                made.setdefault(code.text(i - 1), (i + 1, end))
    return made
