"""Small changes of a function, as someone makes them who is mistaken: an operand forgotten, another index, a sum that is
not set back for each row.

They are made on tokens, without types: many of them don't compile, and variants.py leaves those out.
"""
import dataclasses
import functools
import re

import source

TOKEN = re.compile(r'"[^"]*"|'r"\d[\w.']*(?:e[-+]?\d+)?f?|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:<[\w:, ]+>(?=[\s(>&*{]))?|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|"
                   r"\|\||[-+*/%&|^]=|\S")
SUMS, PRODUCTS = {"+", "-"}, {"*", "/", "%"}
OTHERWISE = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="],
             "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"], "+=": ["=", "-="], "-=": ["=", "+="], "*=": ["=", "/="],
             "/=": ["=", "*="], "true": ["false"], "false": ["true"], "double": ["float"], "continue": ["break"], "break": ["continue"],
             "rows": ["cols"], "cols": ["rows"], "min": ["max"], "max": ["min"], "amin": ["amax"], "amax": ["amin"],
             "mean": ["sum"], "sum": ["mean"], "sin": ["cos"], "cos": ["sin"], "exp": ["exp2"], "floor": ["ceil", "round"],
             "ceil": ["floor"], "round": ["floor"], "nearbyint": ["trunc"], "lround": ["lrint"], "++": ["--"], "<<": [">>"], ">>": ["<<"]}
KINDS = [("whole", r"std::size_t|(std::)?u?int\w*|unsigned|long|std::ptrdiff_t"), ("real", r"float|double"), ("row", r"ConstRow|Row"),
         ("matrix", r"ConstMatrix|Matrix")]
NEAREST = 4  # so many names are tried in the place of another, those that are declared next to it
NO_TYPE = {"return", "else", "case", "new", "throw", "const", "goto", "operator"}


@dataclasses.dataclass(frozen=True)
class Change:
    begin: int  # in the body
    end: int
    now: str
    was: str  # as it is told: the expression around the change, before and after
    then: str

    def of(self, body):
        return body[:self.begin] + self.now + body[self.end:]


@dataclasses.dataclass
class Token:
    text: str
    begin: int
    end: int


def of(head, body):
    """Every change of a function that has this head before its body, without those that come to the same text."""
    return _Body(head, body).changes()


class _Body:
    def __init__(self, head, body):
        self.body = body
        self.tokens = _tokens(body)
        self.partner = self._partners()
        self.given = _declared(_tokens(head))
        self.kinds = self.given | _declared(self.tokens)
        self.silent = self._messages()
        self.divisors = sorted({self._cut(i + 1, self._unit_after(i + 1)) for i, token in enumerate(self.tokens)
                                if token.text == "/" and self._is_binary(i) and self._unit_after(i + 1)})
        self.found = {}

    def changes(self):
        for i, token in enumerate(self.tokens):
            if i in self.silent:
                continue
            self._other_word(i, token)
            self._other_number(i, token)
            self._other_name(i, token)
            self._operands(i, token)
            self._call(i, token)
            self._argument(i, token)
            self._member(i, token)
            self._last_call(i, token)
            self._comparison(i, token)
            self._condition(i, token)
            self._initial(i, token)
        self._statements()
        self._everywhere()
        return list(self.found.values())

    # What a token is.

    def _partners(self):
        open_ones, partner = [], {}
        for i, token in enumerate(self.tokens):
            if token.text in "([{":
                open_ones.append(i)
            elif token.text in ")]}" and open_ones:
                partner[i] = open_ones.pop()
                partner[partner[i]] = i
        return partner

    def _messages(self):
        """The tokens that say what is refused: all but the condition of an expect, and what is thrown."""
        silent = set()
        for i, token in enumerate(self.tokens):
            if token.text.startswith("expect_") and self._text(i + 1) == "(":
                silent |= set(range(i, self.partner.get(i + 1, i)))
            if token.text == "expect" and self._text(i + 1) == "(":
                comma = next((j for j in self._inside(i + 1) if self._text(j) == ","), i)
                silent |= {i, *range(comma, self.partner.get(i + 1, i))}
            if token.text == "throw":
                silent |= set(range(i, next((j for j in range(i, len(self.tokens)) if self._text(j) == ";"), i)))
        return silent

    def _text(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def _ends_operand(self, i):
        return bool(re.match(r"[\w)\]]", self._text(i))) and self._text(i) not in ("return", "case", "else", "const")

    def _is_binary(self, i):
        return self._ends_operand(i - 1)

    def _unit_after(self, i):
        """The index after the operand that begins at i: prefixes, a name, number or bracket, and what follows it."""
        while self._text(i) in ("-", "!", "*", "&", "~", "+"):
            i += 1
        if not re.match(r"[\w(\[]", self._text(i)):
            return None
        i = self.partner.get(i, i) + 1
        while True:
            if self._text(i) in ("(", "[") or (self._text(i) == "{" and self._text(i - 1).isidentifier()):
                i = self.partner.get(i, i) + 1
            elif self._text(i) in (".", "->"):
                i += 2
            else:
                return i

    def _unit_before(self, i):
        """The index of the first token of the operand that ends at i."""
        while True:
            while self._text(i) in (")", "]"):
                i = self.partner.get(i, 0) - 1
                if not self._ends_operand(i):
                    return i + 1
            if self._text(i - 1) in (".", "->"):
                i -= 2
            else:
                return i

    def _right_of(self, i):
        """The index after the right operand of the operator at i."""
        end = self._unit_after(i + 1)
        while end is not None and self._text(i) in SUMS and self._text(end) in PRODUCTS:
            end = self._unit_after(end + 1)
        return end

    def _left_of(self, i):
        """The index of the first token of the left operand of the operator at i."""
        join = PRODUCTS if self._text(i) in PRODUCTS else SUMS | PRODUCTS
        begin = self._unit_before(i - 1)
        while self._text(begin - 1) in join and self._is_binary(begin - 1):
            begin = self._unit_before(begin - 2)
        return begin

    # Which changes there are.

    def _add(self, first, last, now):
        """Replaces the tokens first to last - 1 by a text."""
        begin, end = self.tokens[first].begin, self.tokens[last - 1].end
        left, right = self._around(first, last)
        was, then = self.body[left:right], self.body[left:begin] + now + self.body[end:right]
        key = re.sub(r"\s", "", self.body[:begin] + now + self.body[end:])
        self.found.setdefault(key, Change(begin, end, now, _short(was), _short(then)))

    def _around(self, first, last):
        """Where the expression around these tokens begins and ends, if it isn't long."""
        left, right = first, last
        while left > 0 and not re.fullmatch(r"[;,{}(\[=?:]|[-+*/]?=", self._text(left - 1)):
            left = self.partner.get(left - 1, left - 1) if self._text(left - 1) in (")", "]") else left - 1
        while right < len(self.tokens) and not re.fullmatch(r"[;,{})\]?:]", self._text(right)):
            right = self.partner.get(right, right) + 1 if self._text(right) in ("(", "[") else right + 1
        begin, end = self.tokens[left].begin, self.tokens[right - 1].end
        if end - begin > 60:
            left, right = (self._unit_before(first) if self._ends_operand(first) else first), max(last, self._unit_after(first) or last)
            begin, end = self.tokens[left].begin, self.tokens[right - 1].end
        return min(begin, self.tokens[first].begin), max(end, self.tokens[last - 1].end)

    def _other_word(self, i, token):
        if token.text in ("+", "-", "*") and not self._is_binary(i):
            if token.text == "-":
                self._add(i, i + 1, "")
            return
        space, _, word = token.text.rpartition("::")
        for other in OTHERWISE.get(word, []):
            self._add(i, i + 1, f"{space}::{other}" if space else other)
        if token.text == "!":
            self._add(i, i + 1, "")

    def _other_number(self, i, token):
        if re.fullmatch(r"\d+", token.text):
            n = int(token.text)
            for other in sorted({n + 1, abs(n - 1), 0}):
                self._add(i, i + 1, str(other))
        elif re.match(r"\d", token.text):
            for other in ("0", "1", f"(2 * {token.text})", f"({token.text} / 2)"):
                self._add(i, i + 1, other)

    def _other_name(self, i, token):
        kind = self.kinds.get(token.text)
        if kind is None or self._text(i - 1) in (".", "->") or self._is_declaration(i):
            return
        alike = [name for name, its in self.kinds.items() if its == kind]
        at = alike.index(token.text)
        for other in sorted(alike, key=lambda name: abs(alike.index(name) - at))[1:NEAREST + 1]:
            self._add(i, i + 1, other)
        if kind == "whole" and self._text(i + 1) not in ("=", "++", "+=", "-=") and self._text(i - 1) != "++":
            beside = PRODUCTS & {self._text(i - 1), self._text(i + 1)}
            sizes = [f"{name}.{size}" for name, of in self.kinds.items() if of == "matrix" for size in ("rows", "cols")]
            alone = re.fullmatch(r"[\[(,<>=?:{]|[<>]=", self._text(i - 1)) and re.fullmatch(r"[\]),;?:}<>]|[<>]=", self._text(i + 1))
            more = ("0", f"({token.text} + 1)", f"({token.text} - 1)") if alone else ()
            for other in (*more, *(sizes if beside else ())):
                self._add(i, i + 1, other)
        if kind == "real" and self._text(i - 1) in ("(", ",") and self._text(i + 1) in (")", ","):
            for other in ("0", "1"):
                self._add(i, i + 1, other)
        if kind != "whole" and (self._text(i - 1) in SUMS | PRODUCTS | {"return"} or self._text(i + 1) in SUMS | PRODUCTS):
            for divisor in self.divisors if {self._text(i - 1), self._text(i + 1)} & SUMS else ():
                self._add(i, i + 1, f"{token.text} / {divisor}")
            for other in (f"(1 + {token.text})", f"(1 - {token.text})", f"(-{token.text})", f"({token.text} * {token.text})"):
                self._add(i, i + 1, other)

    def _is_declaration(self, i):
        return bool(re.fullmatch(r"[A-Za-z_][\w:<>, ]*|[&*]", self._text(i - 1))) and self._text(i - 1) not in NO_TYPE and (
            self._text(i - 1) not in ("*", "&") or not self._ends_operand(i - 2) or self._text(i + 1) in ("=", ";"))

    def _operands(self, i, token):
        """a + b becomes a, b or b + a."""
        if token.text not in SUMS | PRODUCTS or not self._is_binary(i):
            return
        left, right = self._left_of(i), self._right_of(i)
        if right is None or left < 0:
            return
        a = self.body[self.tokens[left].begin:self.tokens[i - 1].end]
        b = self.body[self.tokens[i + 1].begin:self.tokens[right - 1].end]
        self._add(left, right, a)
        self._add(left, right, b)
        if token.text in ("-", "/", "%"):
            self._add(left, right, f"{b} {token.text} ({a})")
        if token.text in SUMS:
            self._regroup(i, left, right)
            self._add(i + 1, right, "1")
            self._keep_first(i, left, a)
        elif b.startswith("(") and self.partner.get(i + 1) == right - 1:
            self._ungroup(left, right, i + 1, lambda one: f"{a} {token.text} {one}")
        if token.text in PRODUCTS and a.startswith("(") and self.partner.get(left) == i - 1:
            self._ungroup(left, right, left, lambda one: f"{one} {token.text} {b}")

    def _keep_first(self, i, left, a):
        """a + b - c becomes a."""
        end = self._right_of(i)
        while end is not None and self._text(end) in SUMS:
            end = self._right_of(end)
            if end is not None:
                self._add(left, end, a)

    def _ungroup(self, left, right, bracket, times):
        """(a + b) * c becomes a * c + b or a + b * c, and so on the other side."""
        for j in self._inside(bracket):
            if self._text(j) in SUMS and self._is_binary(j):
                a, b = self._cut(bracket + 1, j), self._cut(j + 1, self.partner[bracket])
                self._add(left, right, f"{times(a)} {self._text(j)} {b}")
                self._add(left, right, f"{a} {self._text(j)} {times(b)}")

    def _regroup(self, i, left, right):
        """a * b + c becomes a * (b + c) or (a + c) * b, and so on the other side."""
        op = self._text(i)
        def text(first, after):
            return self.body[self.tokens[first].begin:self.tokens[after - 1].end]
        for j in range(left, i):
            if self._text(j) in PRODUCTS and self._is_binary(j) and self._depth(left - 1, j) == 0:
                a, b, c = text(left, j), text(j + 1, i), text(i + 1, right)
                self._add(left, right, f"{a} {self._text(j)} ({b} {op} {c})")
                self._add(left, right, f"({a} {op} {c}) {self._text(j)} {b}")
        for j in range(i + 1, right):
            if self._text(j) in PRODUCTS and self._is_binary(j) and self._depth(i, j) == 0:
                a, b, c = text(left, i), text(i + 1, j), text(j + 1, right)
                self._add(left, right, f"({a} {op} {b}) {self._text(j)} {c}")

    def _call(self, i, token):
        """f(a, b) becomes a, f(a) or f(b, a)."""
        if not re.match(r"[A-Za-z_]", token.text) or self._text(i + 1) != "(" or token.text in ("if", "for", "while", "return", "switch"):
            return
        close, given = self.partner.get(i + 1), self._arguments(i + 1)
        if close is None or not given:
            return
        texts = [self._cut(*one) for one in given]
        for j in self._inside(i + 1) if len(given) == 1 else ():
            if self._text(j) in SUMS and self._is_binary(j):
                a, b = self._cut(i + 2, j), self._cut(j + 1, close)
                self._add(i, close + 1, f"({token.text}({a}) {self._text(j)} {b})")
        if self._text(i - 1) not in (".", "->"):
            self._add(i, close + 1, f"({texts[0]})")
        if len(texts) > 1:
            self._add(i + 2, close, texts[0])
            if token.text.startswith("xt::"):
                self._add(i, close + 1, f"{token.text}({texts[0]})()")
        for n in range(len(texts) - 1):
            self._add(i + 2, close, ", ".join([*texts[:n], texts[n + 1], texts[n], *texts[n + 2:]]))

    def _last_call(self, i, token):
        """a.b(c) becomes a."""
        if token.text == "." and self._text(i + 2) == "(":
            self._add(i, self.partner.get(i + 2, i + 2) + 1, "")

    def _argument(self, i, token):
        """An expression that is an argument or an element of a list, as 0, and one more or less."""
        if token.text in ("(", "{", "[") and not (token.text == "{" and self._is_block(i)):
            for first, after in self._arguments(i):
                if after > first + 1 and not self._text(first).startswith('"') and self._text(i - 1) not in ("for", "if", "while"):
                    for other in ("0", f"{self._cut(first, after)} + 1", f"{self._cut(first, after)} - 1"):
                        self._add(first, after, other)

    def _member(self, i, token):
        """a.b becomes a.c, of the members of a that the function uses."""
        if self._text(i + 1) == "." and re.fullmatch(r"[A-Za-z_]\w*", token.text) and self._text(i + 3) != "(":
            for j in range(len(self.tokens) - 3):
                if self._text(j) == token.text and self._text(j + 1) == "." and self._text(j + 3) != "(":
                    if self._text(j + 2) != self._text(i + 2):
                        self._add(i + 2, i + 3, self._text(j + 2))

    def _comparison(self, i, token):
        """a != B::c becomes a == B::d, of the B that the function uses."""
        if token.text in ("==", "!=") and "::" in self._text(i + 1):
            space = self._text(i + 1).rpartition("::")[0]
            for other in sorted({t.text for t in self.tokens if t.text.startswith(space + "::")} - {self._text(i + 1)}):
                for operator in ("==", "!="):
                    self._add(i, i + 2, f"{operator} {other}")

    def _inside(self, opening):
        """The tokens directly inside of a bracket."""
        i, close = opening + 1, self.partner.get(opening, opening)
        while i < close:
            yield i
            i = self.partner[i] + 1 if self._text(i) in "([{" and i in self.partner else i + 1

    def _condition(self, i, token):
        if token.text == "if" and self._text(i + 1) == "(":
            for other in ("true", "false"):
                self._add(i + 2, self.partner[i + 1], other)
        if token.text == "?":
            begin = self._left_edge(i)
            for other in ("true", "false"):
                self._add(begin, i, other)
            colon = next((j for j in range(i, len(self.tokens)) if self._text(j) == ":" and self._depth(i, j) == 0), None)
            end = next((j for j in range(colon or i, len(self.tokens)) if self._text(j) in ",;)}" and self._depth(colon or i, j) <= 0), None)
            for first, after in ((i + 1, colon), (colon and colon + 1, end)) if colon and end else ():
                for other in (f"{self._cut(first, after)} + 1", f"{self._cut(first, after)} - 1"):
                    self._add(first, after, other)

    def _left_edge(self, i):
        while i > 0 and not re.fullmatch(r"[;,{}(\[=]|return|[-+*/]=", self._text(i - 1)):
            i = self.partner.get(i - 1, i - 1) if self._text(i - 1) in (")", "]") else i - 1
        return i

    def _initial(self, i, token):
        """x = …; becomes 0 or 1, or gets one of the function's real numbers as well."""
        if token.text != "=" or self._in_header(i):
            return
        end = next((j for j in range(i + 1, len(self.tokens)) if self._text(j) in (";", ",") and self._depth(i, j) == 0), None)
        if not end or end <= i + 2:
            return
        text = self.body[self.tokens[i + 1].begin:self.tokens[end - 1].end]
        kind = self.kinds.get(self._text(i - 1))
        if kind == "real":
            for other in ("0", "1"):
                self._add(i + 1, end, other)
        if kind == "whole":
            names = list(self.kinds)
            before = [name for name in names[:names.index(self._text(i - 1))] if self.kinds[name] == kind]
            for other in before[-3:]:
                self._add(i + 1, end, other)
        for j in self._equals_beside(i):
            other = next(n for n in range(j + 1, len(self.tokens)) if self._text(n) in (";", ",") and self._depth(j, n) == 0)
            self._add(i + 1, end, self._cut(j + 1, other))
        for name, kind in self.given.items():
            if kind == "real":
                for operator in "+-*/":
                    self._add(i + 1, end, f"({text}) {operator} {name}")

    def _equals_beside(self, i):
        """The other = of the same declaration."""
        begin = next((j + 1 for j in range(i, -1, -1) if self._text(j) in (";", "{", "}") and self._depth(j, i) == 0), 0)
        end = next((j for j in range(i, len(self.tokens)) if self._text(j) == ";"), i)
        return [j for j in range(begin, end) if self._text(j) == "=" and j != i and self._depth(begin - 1, j) == 0]

    def _depth(self, i, j):
        return sum((self._text(n) in "([{") - (self._text(n) in ")]}") for n in range(i + 1, j))

    def _statements(self):
        """A statement left out, moved behind one of the next, or a number that is set once and not in each turn of a loop."""
        for some in self._blocks():
            for n, (first, after) in enumerate(some):
                is_declaration = self._declares(first)
                if not is_declaration and self._text(first) != "return":
                    self._add(first, after, ";")
                    self._other_assignment(first, after)
                for _, end in some[n + 1:n + 4]:
                    if self._text(first) != "return":
                        self._add(first, end, f"{self._cut(after, end)} {self._cut(first, after)}")
                if is_declaration and self._text(first) != "const":
                    self._set_once(first, after)
                self._exchange_arguments(first, after)

    def _declares(self, first):
        return self._text(first) in ("const", "auto", "Lanes", "constexpr", "static") or (
            bool(re.fullmatch(r"[A-Za-z_]\w*", self._text(first + 1))) and self._is_declaration(first + 1))

    def _cut(self, first, after):
        return self.body[self.tokens[first].begin:self.tokens[after - 1].end] if after > first else ""

    def _other_assignment(self, first, after):
        equals = next((j for j in range(first, after) if self._text(j) == "="), None)
        if equals and self._text(first) not in ("for", "if", "while"):
            self._add(equals, equals + 1, "+=")

    def _blocks(self):
        """The statements of each block: [[(first token, the one after it), ...], ...]."""
        blocks = []
        for i in [-1, *(i for i, token in enumerate(self.tokens) if token.text == "{" and self._is_block(i))]:
            at, end, some = (0, len(self.tokens), []) if i < 0 else (i + 1, self.partner.get(i, i), [])
            while at < end:
                after = min(self._statement_end(at), end)
                if after <= at:
                    break
                some.append((at, after))
                at = after
            blocks.append(some if i >= 0 else [])
        return blocks + [[(begin, self._statement_end(begin))] for begin in self._without_block()]

    def _without_block(self):
        """The first token of each statement that a loop or a condition has without brackets."""
        for i, token in enumerate(self.tokens):
            bracket = i + 2 if self._text(i + 1) == "constexpr" else i + 1
            begin = self.partner.get(bracket, bracket) + 1 if token.text in ("for", "if", "while") else i + 1
            if token.text in ("for", "if", "while", "else") and self._text(begin) not in ("{", "for", "if", "while"):
                yield begin

    def _statement_end(self, i):
        """The token after the statement that begins at i."""
        if self._text(i) in ("for", "if", "while", "switch"):
            bracket = i + 2 if self._text(i + 1) == "constexpr" else i + 1
            end = self._statement_end(self.partner.get(bracket, bracket) + 1)
            return self._statement_end(end + 1) if self._text(end) == "else" else end
        if self._text(i) == "{":
            return self.partner.get(i, i) + 1
        while i < len(self.tokens) and self._text(i) not in (";", "}"):
            i = self.partner.get(i, i) + 1 if self._text(i) in "([{" else i + 1
        return i + 1

    def _is_block(self, i):
        opening = min(i, self.partner.get(i, i))
        return opening == 0 or self._text(opening - 1) in (")", "else", ";", "{", "}", "do", "mutable")

    def _in_header(self, i):
        return any(self._text(j) == "(" and j < i < close for j, close in self.partner.items() if self._text(j - 1) == "for")

    def _set_once(self, first, after):
        loops = [j for j in range(first) if self._text(j) == "for" and self._statement_end(j) > first]
        if loops:
            end = self._statement_end(loops[-1])
            self._add(loops[-1], end, f"{{ {self._cut(first, after)} {self._cut(loops[-1], first)} {self._cut(after, end)} }}")

    def _exchange_arguments(self, first, after):
        """f(a) = g(b) becomes f(b) = g(a)."""
        if self._text(first) in ("for", "if", "while", "{") or after - first > 60:
            return
        given = [one for j in range(first, after) if self._text(j) in ("(", "[") for one in self._arguments(j)
                 if re.match(r"[\w]", self._text(one[0]))]
        for n, (a, b) in enumerate(given):
            for c, d in given[n + 1:]:
                if c >= b and self._cut(a, b) != self._cut(c, d) and len(given) <= 8:
                    self._add(a, d, f"{self._cut(c, d)}{self.body[self.tokens[b - 1].end:self.tokens[c].begin]}{self._cut(a, b)}")

    def _arguments(self, opening):
        """(first token, the one after) of each argument in a bracket."""
        close = self.partner.get(opening)
        if close is None or close == opening + 1:
            return []
        begins = [opening + 1] + [j + 1 for j in self._inside(opening) if self._text(j) == ","]
        return [(a, b) for a, b in zip(begins, [j - 1 for j in begins[1:]] + [close]) if b > a]

    def _everywhere(self):
        """A name with another sign, two names exchanged, or float for double, wherever they are used."""
        uses = {}
        for i, token in enumerate(self.tokens):
            if (token.text in self.kinds and i not in self.silent and self._text(i - 1) not in (".", "->")
                    and not self._is_declaration(i)):
                uses.setdefault(token.text, []).append(i)
        for name, some in uses.items():
            if len(some) > 1 and all(self._text(i + 1) == "[" for i in some):
                self._replace([(i, self._unit_after(i), f"(-{self._cut(i, self._unit_after(i))})") for i in some])
        doubles = [(i, i + 1, "float") for i, token in enumerate(self.tokens) if token.text == "double"]
        if len(doubles) > 1:
            self._replace(doubles)
        names = [name for name in self.kinds if name in uses]
        for n, one in enumerate(names):
            for other in names[n + 1:n + 3]:
                if self.kinds[one] == self.kinds[other] and len(uses[one]) + len(uses[other]) > 2:
                    self._replace([(i, i + 1, other) for i in uses[one]] + [(i, i + 1, one) for i in uses[other]])

    def _replace(self, edits):
        """Several changes as one: the text between the first and the last is changed as a whole."""
        edits.sort()
        if any(a[1] > b[0] for a, b in zip(edits, edits[1:])):
            return
        text, at = "", self.tokens[edits[0][0]].begin
        for first, after, now in edits:
            text += self.body[at:self.tokens[first].begin] + now
            at = self.tokens[after - 1].end
        self._add(edits[0][0], edits[-1][1], text)


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


def _short(text):
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "…"
