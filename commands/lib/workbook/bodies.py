"""A source cut into the bodies of its functions and what stands between them, as commands/lib/workbook/switches.py cuts it, so that a body
can be exchanged or can note that it is called."""
import re

import house
import source
import switches


def of_part(chapter, part):
    """Our source of a part."""
    return cut(house.ours(chapter, part).read_text())


def cut(text):
    """Functions that the compiler may run can't ask which body they are to take, so a constant function of the file becomes one
    that isn't."""
    return switches.split(re.sub(r"^static constexpr auto (\w+ = \[)", r"static const auto \1", text, flags=re.M))


def function_after(between):
    """The name of the function whose body follows, or None if it can't ask or note anything since the compiler may run it."""
    head = head_of(between)
    if re.search(r"\bconst(expr|eval)\b", head):
        return None
    return source._name(head) or (re.search(r"(\w+) =", head) or [0, "the file"])[1]


def head_of(between):
    """What stands directly before a body."""
    code = source.without_comments(between) + "{}"
    begin, brace, _ = ([(0, 0, 0)] + list(source._spans(code)))[-1]
    return code[begin:brace]


def noting_calls(split):
    """The source, in which each function notes that it is called."""
    text = '#include "support/wrong_version.hpp"\n'
    for between, body in zip(split.between, split.bodies):
        name = function_after(between)
        text += between + (f'{{ t2t::note_call("{name}"); {body} }}' if name else body)
    return text + split.between[-1]
