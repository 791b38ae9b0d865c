"""The same change at several places of a function: neighbours taken for halves, or one change wherever the text is
of the same form (changes.py). Each is a list of edits, which are made together."""
import re

MOST = 4  # places at which a form is changed together


def neighbours(code):
    """x[i] and x[i + n] become x[2 * i] and x[2 * i + 1], and back: in what is named x, in a statement, or throughout."""
    for some in _places_of_arguments(code):
        texts = {one: code.cut(*one) for one in some}
        for name in {text for text in texts.values() if code.kinds.get(text) == "whole"}:
            alone = [one for one in some if texts[one] == name]
            shifted = [one for one in some if re.fullmatch(rf"[\w/ ]+ \+ {name}|{name} \+ (?!1$)[\w/ ]+", texts[one])]
            if shifted:
                yield [(a, b, f"2 * {name}") for a, b in alone] + [(a, b, f"2 * {name} + 1") for a, b in shifted]
        for name in {text[4:] for text in texts.values() if re.fullmatch(r"2 \* \w+", text)}:
            even = [one for one in some if texts[one] == f"2 * {name}"]
            odd = [one for one in some if texts[one] == f"2 * {name} + 1"]
            for size in [one for one, kind in code.kinds.items() if kind == "whole" and one != name][-3:] if odd else ():
                yield [(a, b, name) for a, b in even] + [(a, b, f"{name} + {size}") for a, b in odd]


def _places_of_arguments(code):
    """Lists of arguments that may belong together."""
    every, of_name = [], {}
    for opening, token in enumerate(code.tokens):
        if token.text in ("(", "["):
            found = code.arguments(opening)
            every += found
            of_name.setdefault(code.text(opening - 1), []).extend(found)
    statements = [statement for block in code.blocks() for statement in block]
    in_statements = [[one for one in every if first <= one[0] and one[1] <= after] for first, after in statements]
    return [every, *of_name.values(), *in_statements]


def of_one_form(code, edits):
    """Edits of texts that are the same but for their names, as norm_1(x) and norm_2(y)."""
    forms = {}
    for first, after, now in edits:
        if after > first + 2:
            forms.setdefault(_form(code.cut(first, after), now), []).append((first, after, now))
    return [some for some in forms.values() if 1 < len({first for first, _, _ in some}) <= MOST]


def _form(was, now):
    """Both texts with numbers in the place of their names, so that the same name has the same number."""
    names = {}
    return tuple(re.sub(r"[A-Za-z_][\w:.]*", lambda m: f"#{names.setdefault(m.group(), len(names))}", text) for text in (was, now))
