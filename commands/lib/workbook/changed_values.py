"""Changes of a condition, which then always or never holds, and of the value that a variable is given (changes.py)."""


def condition(code, i):
    """if (a) becomes if (true) or if (false)."""
    if code.text(i) == "if" and code.text(i + 1) == "(":
        for other in ("true", "false"):
            yield i + 2, code.partner[i + 1], other


def choice(code, i):
    """a ? b : c becomes true ? b : c or false ? b : c, or b or c becomes one more or less."""
    if code.text(i) != "?":
        return
    for other in ("true", "false"):
        yield code.left_edge(i), i, other
    colon = _next(code, i, i, ":")
    end = next((j for j in range(colon or i, len(code.tokens)) if code.text(j) in ",;)}" and code.depth(colon or i, j) <= 0), None)
    for first, after in ((i + 1, colon), (colon + 1, end)) if colon and end else ():
        for other in (f"{code.cut(first, after)} + 1", f"{code.cut(first, after)} - 1"):
            yield first, after, other


def given_value(code, i):
    """x = …; becomes a constant, another variable or what another is given, or gets one of the function's real numbers as well."""
    if code.text(i) != "=" or code.in_header(i):
        return
    end = _next(code, i, i + 1, ";", ",")
    if not end or end <= i + 2:
        return
    for other in (*_of_its_kind(code, code.text(i - 1)), *_values_beside(code, i), *_with_a_number(code, code.cut(i + 1, end))):
        yield i + 1, end, other


def _of_its_kind(code, name):
    kind = code.kinds.get(name)
    if kind == "whole":
        names = list(code.kinds)
        return [one for one in names[:names.index(name)] if code.kinds[one] == kind][-3:]
    return ["0", "1"] if kind == "real" else []


def _values_beside(code, i):
    """What the other variables of the same declaration are given."""
    for j in code.equals_beside(i):
        end = _next(code, j, j + 1, ";", ",")
        if end:
            yield code.cut(j + 1, end)


def _with_a_number(code, text):
    return [f"({text}) {operator} {name}" for name, kind in code.given.items() if kind == "real" for operator in "+-*/"]


def _next(code, i, first, *texts):
    """The first token from there on that has one of these texts and is in no bracket that opens behind i, or None."""
    return next((j for j in range(first, len(code.tokens)) if code.text(j) in texts and code.depth(i, j) == 0), None)
