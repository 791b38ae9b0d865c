"""A function that is to be changed by a mistake: its tokens, what may be taken in the place of something else, and what stays.

The kinds of changes (changed_*.py) look at it, and yield edits of it: (first token, the one after the last, the text in their
place). changes.py collects them.
"""
import dataclasses
import re

import source
from tokens import Code


@dataclasses.dataclass(frozen=True)
class Names:
    """What a whole file names, from which something may be taken in the place of something else."""
    functions: tuple = ()
    enumerators: tuple = ()  # "Mask::causal"
    members: dict = dataclasses.field(default_factory=dict)  # of each name: {"s": ["C", "D"]}

    @staticmethod
    def of(text, functions):
        code = source.without_comments(text)
        members = {}
        for name, member in re.findall(r"\b([a-z]\w*)\.([a-z_A-Z]\w*)\b(?!\s*[(<])", code):
            members.setdefault(name, []).append(member)
        return Names(tuple(functions), tuple(sorted(set(re.findall(r"\b[A-Z]\w*::[a-z]\w*\b(?!\()", code)))),
                     {name: sorted(set(some)) for name, some in members.items()})


class Changeable(Code):
    def __init__(self, head, body, names):
        super().__init__(head, body)
        self.names = names
        self.silent = self._messages()  # tokens that stay
        self.divisors = self._divisors()

    def _messages(self):
        """The tokens that say what is refused: all but the condition of an expect, and what is thrown."""
        silent = set()
        for i, token in enumerate(self.tokens):
            if token.text.startswith("expect_") and self.text(i + 1) == "(":
                silent |= set(range(i, self.partner.get(i + 1, i)))
            if token.text == "expect" and self.text(i + 1) == "(":
                comma = next((j for j in self.inside(i + 1) if self.text(j) == ","), i)
                silent |= {i, *range(comma, self.partner.get(i + 1, i))}
            if token.text == "throw":
                silent |= set(range(i, next((j for j in range(i, len(self.tokens)) if self.text(j) == ";"), i)))
        return silent

    def _divisors(self):
        """By what the function divides, as texts."""
        return sorted({self.cut(i + 1, self.unit_after(i + 1)) for i, token in enumerate(self.tokens)
                       if token.text == "/" and self.is_binary(i) and self.unit_after(i + 1)})
