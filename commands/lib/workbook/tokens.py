"""A function's body as tokens: where operands, arguments and statements begin and end, and what is declared."""
import dataclasses
import functools
import re

import source

TOKEN = re.compile(r'"[^"]*"|'r"\d[\w.']*(?:e[-+]?\d+)?f?|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:<[\w:, ]+>(?=[\s(>&*{]))?|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|"
                   r"\|\||[-+*/%&|^]=|\S")
SUMS, PRODUCTS = {"+", "-"}, {"*", "/", "%"}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
LEVELS = [PRODUCTS, SUMS, {"<<", ">>"}, COMPARISONS, {"&"}, {"^"}, {"|"}, {"&&"}, {"||"}]  # the first binds most tightly
LEVEL = {operator: n for n, some in enumerate(LEVELS) for operator in some}
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

    def ends_operand(self, i):
        return bool(re.match(r"[\w)\]]", self.text(i))) and self.text(i) not in ("return", "case", "else", "const")

    def is_binary(self, i):
        return self.ends_operand(i - 1)

    def unit_after(self, i):
        """The index after the operand that begins at i: prefixes, a name, number or bracket, and what follows it."""
        while self.text(i) in ("-", "!", "*", "&", "~", "+"):
            i += 1
        if not re.match(r"[\w(\[]", self.text(i)):
            return None
        i = self.partner.get(i, i) + 1
        while True:
            if self.text(i) in ("(", "[") or (self.text(i) == "{" and self.text(i - 1).isidentifier()):
                i = self.partner.get(i, i) + 1
            elif self.text(i) in (".", "->"):
                i += 2
            else:
                return i

    def unit_before(self, i):
        """The index of the first token of the operand that ends at i."""
        while True:
            while self.text(i) in (")", "]"):
                i = self.partner.get(i, 0) - 1
                if not self.ends_operand(i):
                    return i + 1
            if self.text(i - 1) in (".", "->"):
                i -= 2
            else:
                return i

    def right_of(self, i):
        """The index after the right operand of the operator at i."""
        end = self.unit_after(i + 1)
        while end is not None and LEVEL.get(self.text(end), len(LEVELS)) < LEVEL[self.text(i)]:
            end = self.unit_after(end + 1)
        return end

    def left_of(self, i):
        """The index of the first token of the left operand of the operator at i."""
        begin = self.unit_before(i - 1)
        while LEVEL.get(self.text(begin - 1), len(LEVELS)) <= LEVEL[self.text(i)] and self.is_binary(begin - 1):
            begin = self.unit_before(begin - 2)
        return begin

    def left_edge(self, i):
        while i > 0 and not re.fullmatch(r"[;,{}(\[=]|return|[-+*/]=", self.text(i - 1)):
            i = self.partner.get(i - 1, i - 1) if self.text(i - 1) in (")", "]") else i - 1
        return i

    def inside(self, opening):
        """The tokens directly inside of a bracket."""
        i, close = opening + 1, self.partner.get(opening, opening)
        while i < close:
            yield i
            i = self.partner[i] + 1 if self.text(i) in "([{" and i in self.partner else i + 1

    def arguments(self, opening):
        """(first token, the one after) of each argument in a bracket."""
        close = self.partner.get(opening)
        if close is None or close == opening + 1:
            return []
        begins = [opening + 1] + [j + 1 for j in self.inside(opening) if self.text(j) == ","]
        return [(a, b) for a, b in zip(begins, [j - 1 for j in begins[1:]] + [close]) if b > a]

    def depth(self, i, j):
        return sum((self.text(n) in "([{") - (self.text(n) in ")]}") for n in range(i + 1, j))

    def is_declaration(self, i):
        return bool(re.fullmatch(r"[A-Za-z_][\w:<>, ]*|[&*]", self.text(i - 1))) and self.text(i - 1) not in NO_TYPE and (
            self.text(i - 1) not in ("*", "&") or not self.ends_operand(i - 2) or self.text(i + 1) in ("=", ";"))

    def declares(self, first):
        return self.text(first) in ("const", "auto", "Lanes", "constexpr", "static") or (
            bool(re.fullmatch(r"[A-Za-z_]\w*", self.text(first + 1))) and self.is_declaration(first + 1))

    def equals_beside(self, i):
        """The other = of the same declaration."""
        begin = next((j + 1 for j in range(i, -1, -1) if self.text(j) in (";", "{", "}") and self.depth(j, i) == 0), 0)
        end = next((j for j in range(i, len(self.tokens)) if self.text(j) == ";"), i)
        return [j for j in range(begin, end) if self.text(j) == "=" and j != i and self.depth(begin - 1, j) == 0]

    def blocks(self):
        """The statements of each block: [[(first token, the one after it), ...], ...]."""
        blocks = []
        for i in [-1, *(i for i, token in enumerate(self.tokens) if token.text == "{" and self.is_block(i))]:
            at, end, some = (0, len(self.tokens), []) if i < 0 else (i + 1, self.partner.get(i, i), [])
            while at < end:
                after = min(self.statement_end(at), end)
                if after <= at:
                    break
                some.append((at, after))
                at = after
            blocks.append(some if i >= 0 else [])
        return blocks + [[(begin, self.statement_end(begin))] for begin in self.without_block()]

    def without_block(self):
        """The first token of each statement that a loop or a condition has without brackets."""
        for i, token in enumerate(self.tokens):
            bracket = i + 2 if self.text(i + 1) == "constexpr" else i + 1
            begin = self.partner.get(bracket, bracket) + 1 if token.text in ("for", "if", "while") else i + 1
            if token.text in ("for", "if", "while", "else") and self.text(begin) not in ("{", "for", "if", "while"):
                yield begin

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

    def in_header(self, i):
        return any(self.text(j) == "(" and j < i < close for j, close in self.partner.items() if self.text(j - 1) == "for")


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
