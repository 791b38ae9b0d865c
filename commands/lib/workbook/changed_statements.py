"""Changes of whole statements: one left out, moved, done twice, done once and not in each turn of a loop, or with arguments of its calls
exchanged; and of the cases of a switch (changes.py)."""
import re


def statements(code):
    """The edits of each statement of each block."""
    for some in code.blocks():
        for n, (first, after) in enumerate(some):
            if not code.declares(first) and code.text(first) != "return":
                yield first, after, ";"
                yield first, after, f"{code.cut(first, after)} {code.cut(first, after)}"
                yield from _added_up(code, first, after)
            if code.text(first) != "return":
                yield from _moved(code, first, after, [end for _, end in some[n + 1:n + 4]])
            if code.declares(first):
                yield from _declared_later(code, first, after, [end for _, end in some[n + 1:n + 3]])
            if code.declares(first) and code.text(first) != "const":
                yield from _set_once(code, first, after)
            yield from _exchanged_arguments(code, first, after)


def _added_up(code, first, after):
    """a = b becomes a += b."""
    equals = next((j for j in range(first, after) if code.text(j) == "="), None)
    if equals and code.text(first) not in ("for", "if", "while"):
        yield equals, equals + 1, "+="


def _moved(code, first, after, ends):
    """The statement is moved behind those that end there."""
    for end in ends:
        yield first, end, f"{code.cut(after, end)} {code.cut(first, after)}"


def _set_once(code, first, after):
    """What is declared in a loop is declared before it."""
    loops = [j for j in range(first) if code.text(j) == "for" and code.statement_end(j) > first]
    if loops:
        end = code.statement_end(loops[-1])
        yield loops[-1], end, f"{{ {code.cut(first, after)} {code.cut(loops[-1], first)} {code.cut(after, end)} }}"


def _exchanged_arguments(code, first, after):
    """f(a) = g(b) becomes f(b) = g(a)."""
    if code.text(first) in ("for", "if", "while", "{") or after - first > 60:
        return
    given = [one for j in range(first, after) if code.text(j) in ("(", "[") for one in code.arguments(j)
             if re.match(r"[\w]", code.text(one[0]))]
    for n, (a, b) in enumerate(given):
        for c, d in given[n + 1:]:
            if c >= b and code.cut(a, b) != code.cut(c, d) and len(given) <= 8:
                between = code.body[code.tokens[b - 1].end:code.tokens[c].begin]
                yield a, d, f"{code.cut(c, d)}{between}{code.cut(a, b)}"


def _declared_later(code, first, after, ends):
    """const float a = b, c = d; becomes const float a = b; and c is declared behind the statements that end there."""
    equals = [j for j in range(first, after) if code.text(j) == "=" and code.depth(first - 1, j) == 0]
    if len(equals) < 2:
        return
    of = code.cut(first, equals[0] - 1)
    values = [code.cut(a - 1, b) for a, b in zip(equals, [*(j - 2 for j in equals[1:]), after - 1])]
    for n, value in enumerate(values):
        others = ", ".join(values[:n] + values[n + 1:])
        for end in ends:
            yield first, end, f"{of} {others}; {code.cut(after, end)} {of} {value};"


def cases(code):
    """The edits that leave out a case of a switch, or move it to others."""
    labels = [i for i, token in enumerate(code.tokens) if token.text == "case" and code.text(i + 2) == ":"]
    firsts = [i for i in labels if i - 3 not in labels]
    for i in labels:
        left_out = (i, i + 3, "")
        yield [left_out]
        own = max(first for first in firsts if first <= i)
        for other in firsts:
            if other != own:
                yield [left_out, (other, other + 1, f"{code.cut(i, i + 3)} case")]
