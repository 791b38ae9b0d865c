"""Changes of one word or sign of the language, of a number, or of an enumerator: another one in its place (changes.py)."""
import re

MOST = 4  # places at which a word is changed together
OTHERWISE = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*", "%"], "%": ["/"], "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="],
             "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"], "+=": ["=", "-="], "-=": ["=", "+="], "*=": ["=", "/="],
             "/=": ["=", "*="], "true": ["false"], "false": ["true"], "double": ["float"], "continue": ["break"], "break": ["continue"],
             "rows": ["cols"], "cols": ["rows"], "min": ["max"], "max": ["min"], "amin": ["amax"], "amax": ["amin"],
             "mean": ["sum"], "sum": ["mean"], "sin": ["cos"], "cos": ["sin"], "exp": ["exp2"], "log": ["log2"], "sqrt": ["square"],
             "square": ["sqrt"], "row_means": ["row_sums"], "row_sums": ["row_means"], "matmul": ["matmul_bt", "matmul_at"],
             "matmul_bt": ["matmul", "matmul_at"], "matmul_at": ["matmul", "matmul_bt"], "first": ["last"], "last": ["first"],
             "front": ["back"], "back": ["front"], "floor": ["ceil", "round"],
             "ceil": ["floor"], "round": ["floor"], "nearbyint": ["trunc"], "lround": ["lrint"], "++": ["--"], "<<": [">>"], ">>": ["<<"],
             "int8_t": ["uint8_t"], "uint8_t": ["int8_t"]}
EXCHANGED = [("sin", "cos"), ("min", "max"), ("rows", "cols"), ("first", "second"), ("<<", ">>"), ("+", "-")]


def word(code, i):
    """A word or a sign becomes one that is easily taken for it; a minus or a not is forgotten."""
    text = code.text(i)
    if text in ("+", "-", "*") and not code.is_binary(i):
        if text == "-":
            yield i, i + 1, ""
        return
    for other in OTHERWISE.get(text.rpartition("::")[2], []):
        yield _reworded(code, i, other)
    if text == "!":
        yield i, i + 1, ""


def throughout(code):
    """A word becomes another wherever it stands, or two words are exchanged: lists of edits."""
    places = {}
    for i, token in enumerate(code.tokens):
        if i not in code.silent and (token.text not in ("+", "-", "*") or code.is_binary(i)):
            places.setdefault(token.text.rpartition("::")[2], []).append(i)
    for last, others in OTHERWISE.items():
        if 1 < len(places.get(last, ())) <= MOST:
            yield from ([_reworded(code, i, other) for i in places[last]] for other in others)
    for a, b in EXCHANGED:
        if a in places and b in places:
            yield [_reworded(code, i, b) for i in places[a]] + [_reworded(code, i, a) for i in places[b]]


def _reworded(code, i, other):
    space = code.text(i).rpartition("::")[0]
    return i, i + 1, f"{space}::{other}" if space else other


def number(code, i):
    """A number becomes one beside it, or twice or half of it."""
    text = code.text(i)
    if re.fullmatch(r"\d+", text):
        n = int(text)
        for other in sorted({n + 1, abs(n - 1), 0, 2 * n, n // 2} - {n}):
            yield i, i + 1, str(other)
    elif re.match(r"\d", text):
        for other in ("0", "1", f"(2 * {text})", f"({text} / 2)"):
            yield i, i + 1, other


def enumerator(code, i):
    """a != B::c becomes a == B::d, of the B that the file uses."""
    compared = code.text(i + 1)
    if code.text(i) in ("==", "!=") and "::" in compared:
        space = compared.rpartition("::")[0]
        for other in sorted({name for name in code.names.enumerators if name.startswith(space + "::")} - {compared}):
            for operator in ("==", "!="):
                yield i, i + 2, f"{operator} {other}"
