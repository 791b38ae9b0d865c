"""Changes of one word or sign of the language, of a number, or of an enumerator: another one in its place (changes.py)."""
import re

OTHERWISE = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="],
             "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"], "+=": ["=", "-="], "-=": ["=", "+="], "*=": ["=", "/="],
             "/=": ["=", "*="], "true": ["false"], "false": ["true"], "double": ["float"], "continue": ["break"], "break": ["continue"],
             "rows": ["cols"], "cols": ["rows"], "min": ["max"], "max": ["min"], "amin": ["amax"], "amax": ["amin"],
             "mean": ["sum"], "sum": ["mean"], "sin": ["cos"], "cos": ["sin"], "exp": ["exp2"], "floor": ["ceil", "round"],
             "ceil": ["floor"], "round": ["floor"], "nearbyint": ["trunc"], "lround": ["lrint"], "++": ["--"], "<<": [">>"], ">>": ["<<"]}


def word(code, i):
    """A word or a sign becomes one that is easily taken for it; a minus or a not is forgotten."""
    text = code.text(i)
    if text in ("+", "-", "*") and not code.is_binary(i):
        if text == "-":
            yield i, i + 1, ""
        return
    space, _, last = text.rpartition("::")
    for other in OTHERWISE.get(last, []):
        yield i, i + 1, f"{space}::{other}" if space else other
    if text == "!":
        yield i, i + 1, ""


def number(code, i):
    """A number becomes one beside it, or twice or half of it."""
    text = code.text(i)
    if re.fullmatch(r"\d+", text):
        n = int(text)
        for other in sorted({n + 1, abs(n - 1), 0}):
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
