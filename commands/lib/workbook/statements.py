"""A function's body as tokens: where statements and blocks begin and end, and what is declared."""
import dataclasses
import functools
import re

import source

TOKEN = re.compile(r'"[^"]*"|'r"\d[\w.']*(?:e[-+]?\d+)?f?|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:<[\w:, ]+>(?=[\s(>&*{]))?|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|"
                   r"\|\||[-+*/%&|^]=|\S")
KINDS = [("whole", r"std::size_t|(std::)?u?int\w*|unsigned|long|std::ptrdiff_t"), ("real", r"float|double"), ("row", r"ConstRow|Row"),
         ("matrix", r"ConstMatrix|Matrix")]
NO_TYPE = {"return", "else", "case", "new", "throw", "const", "goto", "operator"}


@dataclasses.dataclass
class Token:
    text: str
    begin: int
    end: int


class Code:
    """The tokens of a body; places in it are numbers of tokens."""

    def __init__(self, head, body):
        self.body = body
        self.tokens = _tokens(body)
        self.partner = self._partners()  # of each bracket
        self.given = _declared(_tokens(head.partition("(")[2]))  # name -> kind, of the parameters
        self.kinds = self.given | _declared(self.tokens)

    def _partners(self):
        open_ones, partner = [], {}
        for i, token in enumerate(self.tokens):
            if token.text in "([{":
                open_ones.append(i)
            elif token.text in ")]}" and open_ones:
                partner[i] = open_ones.pop()
                partner[partner[i]] = i
        return partner

    def text(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def cut(self, first, after):
        return self.body[self.tokens[first].begin:self.tokens[after - 1].end] if after > first else ""

    def statement_end(self, i):
        """The token after the statement that begins at i."""
        if self.text(i) in ("for", "if", "while", "switch"):
            bracket = i + 2 if self.text(i + 1) == "constexpr" else i + 1
            end = self.statement_end(self.partner.get(bracket, bracket) + 1)
            return self.statement_end(end + 1) if self.text(end) == "else" else end
        if self.text(i) == "{":
            return self.partner.get(i, i) + 1
        while i < len(self.tokens) and self.text(i) not in (";", "}"):
            i = self.partner.get(i, i) + 1 if self.text(i) in "([{" else i + 1
        return i + 1

    def is_block(self, i):
        opening = min(i, self.partner.get(i, i))
        return opening == 0 or self.text(opening - 1) in (")", "else", ";", "{", "}", "do", "mutable")


def _tokens(text):
    """The tokens of a text, a string as one."""
    strings = [m.span() for m in re.finditer(r'"(?:\\.|[^"\\\n])*"|//[^\n]*', text) if m.group().startswith('"')]
    code = source.without_comments(text)
    for begin, end in strings:
        code = f'{code[:begin]}"{"_" * (end - begin - 2)}"{code[end:]}'
    return [Token(m.group(), *m.span()) for m in TOKEN.finditer(code)]


def _declared(tokens):
    """name -> kind of what is declared: a word before a name, and after a comma of the same declaration."""
    kinds, kind, depth, at = {}, None, 0, 0
    texts = ["", "", *(token.text for token in tokens), ""]
    for of, before, name, after in zip(texts, texts[1:], texts[2:], texts[3:]):
        depth += (name in ("(", "[")) - (name in (")", "]"))
        if re.fullmatch(r"[A-Za-z_]\w*", name) and re.fullmatch(r"[=;,:)(\[{]", after):
            word = of if before in ("&", "*") else before
            if re.fullmatch(r"[A-Za-z_][\w:<>, ]*", word) and word not in NO_TYPE and (before == word or after != "("):
                kind, at = _kind(word), depth
                kinds.setdefault(name, kind)
            elif before == "," and kind and depth == at and after in ("=", ",", ";"):
                kinds.setdefault(name, kind)
        if name in (";", "{", "}") or depth < at:
            kind = None
    return kinds


@functools.cache
def _kind(word):
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, word)), word)
