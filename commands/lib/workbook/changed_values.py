"""Changes of a condition, which then always or never holds or is turned round, and of the value that a variable is given
(changes.py)."""


def condition(code, i):
    """if (a) becomes if (true), if (false) or if (!(a))."""
    if code.text(i) == "if" and code.text(i + 1) == "(":
        for other in ("true", "false", f"!({code.cut(i + 2, code.partner[i + 1])})"):
            yield i + 2, code.partner[i + 1], other


def choice(code, i):
    """a ? b : c becomes true ? b : c, false ? b : c or !(a) ? b : c, or b or c becomes one more or less."""
    if code.text(i) != "?":
        return
    left = code.left_edge(i)
    for other in ("true", "false", f"!({code.cut(left, i)})"):
        yield left, i, other
    colon = _next(code, i, i, ":")
    end = next((j for j in range(colon or i, len(code.tokens)) if code.text(j) in ",;)}" and code.depth(colon or i, j) <= 0), None)
    for first, after in ((i + 1, colon), (colon + 1, end)) if colon and end else ():
        for other in (f"{code.cut(first, after)} + 1", f"{code.cut(first, after)} - 1"):
            yield first, after, other


def given_value(code, i):
    """x = …; becomes a constant, another variable or what another is given, or gets one of the function's real numbers as well,
    which x += …; does too."""
    if code.text(i) not in ("=", "+=", "-=") or code.in_header(i):
        return
    end = _next(code, i, i + 1, ";", ",")
    if end and code.text(i) != "=":
        yield i + 1, end, "1"
    if not end or end <= i + 2:
        return
    others = [*_of_its_kind(code, code.text(i - 1)), *_values_beside(code, i)] if code.text(i) == "=" else []
    for other in others + _with_a_number(code, i, code.cut(i + 1, end)):
        yield i + 1, end, other


def _of_its_kind(code, name):
    kind = code.kinds.get(name)
    if kind == "whole":
        names = list(code.kinds)
        members = [f"{one}.{member}" for one in code.given for member in code.names.members.get(one, ())]
        return [one for one in names[:names.index(name)] if code.kinds[one] == kind][-3:] + members
    return ["0", "1"] if kind == "real" else []


def _values_beside(code, i):
    """What the other variables of the same declaration are given."""
    for j in code.equals_beside(i):
        end = _next(code, j, j + 1, ";", ",")
        if end:
            yield code.cut(j + 1, end)


def _with_a_number(code, i, text):
    """Times or divided by one of the real numbers, and more or less by one that the function is given."""
    declared = [name for name, kind in code.kinds.items() if kind == "real" and name not in code.given and name != code.text(i - 1)]
    return ([f"({text}) {operator} {name}" for name, kind in code.given.items() if kind == "real" for operator in "+-*/"]
            + [f"({text}) {operator} {name}" for name in declared[-3:] for operator in "*/"])


def _next(code, i, first, *texts):
    """The first token from there on that has one of these texts and is in no bracket that opens behind i, or None."""
    return next((j for j in range(first, len(code.tokens)) if code.text(j) in texts and code.depth(i, j) == 0), None)


def returned(code, i):
    """return a; becomes return b + a; or return b * a; of a parameter b."""
    end = _next(code, i, i + 1, ";") if code.text(i) == "return" else None
    if end and end > i + 1:
        for name, kind in code.given.items():
            for operator in "+*" if kind not in ("whole", "row") else "":
                yield i + 1, end, f"{name} {operator} ({code.cut(i + 1, end)})"
