"""Changes of the name of a variable, a function or a member: another one or a value in its place, where it stands or wherever
the function uses it (changes.py)."""
import re

from tokens import PRODUCTS, SUMS

NEAREST = 4  # so many names are tried in the place of another, those that are declared next to it


def variable(code, i):
    """A variable becomes another of its kind, or a value that someone would write there."""
    name = code.text(i)
    kind = code.kinds.get(name)
    if kind is None or code.text(i - 1) in (".", "->") or code.is_declaration(i):
        return
    others = _nearest(name, [one for one, its in code.kinds.items() if its == kind])
    if kind == "whole":
        others += _integers(code, i)
    if kind == "real" and code.text(i - 1) in ("(", ",") and code.text(i + 1) in (")", ","):
        others += ["0", "1"]
    if kind != "whole":
        others += _other_terms(code, i)
    for other in others:
        yield i, i + 1, other


def _nearest(name, some):
    at = some.index(name)
    return sorted(some, key=lambda one: abs(some.index(one) - at))[1:NEAREST + 1]


def _integers(code, i):
    """What someone may count or index by in the place of an integer: 0, one more or less, or the size of a matrix."""
    name, before, after = (code.text(j) for j in (i, i - 1, i + 1))
    if after in ("=", "++", "+=", "-=") or before == "++":
        return []
    alone = re.fullmatch(r"[\[(,<>=?:{]|[<>]=", before) and re.fullmatch(r"[\]),;?:}<>]|[<>]=", after)
    beside = PRODUCTS & {before, after}
    sizes = [f"{one}.{size}" for one, of in code.kinds.items() if of == "matrix" for size in ("rows", "cols")]
    given = [one for one, kind in code.given.items() if kind == "whole" and one != name][:2]
    return ((["0", f"({name} + 1)", f"({name} - 1)", *(f"({one} + {name})" for one in given)] if alone else [])
            + (sizes if beside else []))


def _other_terms(code, i):
    """What may stand in the place of a term or a factor: it divided, one more or less, with another sign, squared, or its root."""
    name, beside = code.text(i), {code.text(i - 1), code.text(i + 1)}
    if not beside & (SUMS | PRODUCTS) and code.text(i - 1) != "return":
        return []
    divided = [f"{name} / {divisor}" for divisor in code.divisors] if beside & SUMS else []
    space = "std" if code.kinds[name] == "real" else "xt"
    return divided + [f"(1 + {name})", f"(1 - {name})", f"(-{name})", f"({name} * {name})", f"{space}::sqrt({name})", f"{space}::abs({name})"]


def function(code, i):
    """f(a) becomes g(a), of the functions of the file that are defined next to f."""
    if code.text(i) in code.names.functions and code.text(i + 1) == "(" and code.text(i - 1) not in (".", "->"):
        for other in _nearest(code.text(i), code.names.functions):
            yield i, i + 1, other


def member(code, i):
    """a.b becomes a.c, of the members of a that the file uses."""
    if code.text(i + 1) == "." and re.fullmatch(r"[A-Za-z_]\w*", code.text(i)) and code.text(i + 3) != "(":
        for other in code.names.members.get(code.text(i), ()):
            if other != code.text(i + 2):
                yield i + 2, i + 3, other


def bound(code, i):
    """The bound of a loop becomes a.b, of the members of a parameter a that the file uses."""
    if code.text(i) == "<" and code.in_header(i) and code.right_of(i):
        for name, kind in code.given.items():
            for other in code.names.members.get(name, ()) if kind not in ("row", "matrix") else ():
                yield i + 1, code.right_of(i), f"{name}.{other}"


def everywhere(code, uses):
    """A name with another sign, two names exchanged, one for another, or float for double, wherever they are used: lists of
    edits."""
    return [*_with_another_sign(code, uses), _floats(code), *_exchanged(code, uses), *_renamed(code, uses)]


def uses(code):
    """Where each name is used: {name: [token, ...]}."""
    uses = {}
    for i, token in enumerate(code.tokens):
        if (token.text in code.kinds and i not in code.silent and code.text(i - 1) not in (".", "->")
                and not code.is_declaration(i)):
            uses.setdefault(token.text, []).append(i)
    return uses


def _with_another_sign(code, uses):
    for some in uses.values():
        if len(some) > 1 and all(code.text(i + 1) == "[" for i in some):
            yield [(i, code.unit_after(i), f"(-{code.cut(i, code.unit_after(i))})") for i in some]


def _floats(code):
    doubles = [(i, i + 1, "float") for i, token in enumerate(code.tokens) if token.text == "double"]
    return doubles if len(doubles) > 1 else []


def _exchanged(code, uses):
    names = [name for name in code.kinds if name in uses]
    for n, one in enumerate(names):
        for other in names[n + 1:n + 3]:
            if code.kinds[one] == code.kinds[other] and len(uses[one]) + len(uses[other]) > 2:
                yield [(i, i + 1, other) for i in uses[one]] + [(i, i + 1, one) for i in uses[other]]



def _renamed(code, uses):
    for name, places in uses.items():
        for other in _nearest(name, [one for one, kind in code.kinds.items() if kind == code.kinds[name]])[:2]:
            if 1 < len(places) <= 6:
                yield [(i, i + 1, other) for i in places]
