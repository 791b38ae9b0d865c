"""Small changes of a function, as someone makes them who is mistaken: an operand forgotten, another index, a sum that is
not set back for each row.

They are made on tokens, without types: many of them don't compile, and variants.py leaves those out.
"""
import dataclasses
import re

import source
from tokens import PRODUCTS, SUMS, Code

OTHERWISE = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="],
             "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"], "+=": ["=", "-="], "-=": ["=", "+="], "*=": ["=", "/="],
             "/=": ["=", "*="], "true": ["false"], "false": ["true"], "double": ["float"], "continue": ["break"], "break": ["continue"],
             "rows": ["cols"], "cols": ["rows"], "min": ["max"], "max": ["min"], "amin": ["amax"], "amax": ["amin"],
             "mean": ["sum"], "sum": ["mean"], "sin": ["cos"], "cos": ["sin"], "exp": ["exp2"], "floor": ["ceil", "round"],
             "ceil": ["floor"], "round": ["floor"], "nearbyint": ["trunc"], "lround": ["lrint"], "++": ["--"], "<<": [">>"], ">>": ["<<"]}
NEAREST = 4  # so many names are tried in the place of another, those that are declared next to it


@dataclasses.dataclass(frozen=True)
class Change:
    begin: int  # in the body
    end: int
    now: str
    was: str  # as it is told: the expression around the change, before and after
    then: str

    def of(self, body):
        return body[:self.begin] + self.now + body[self.end:]


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


def of(head, body, names=Names()):
    """Every change of a function that has this head before its body, without those that come to the same text."""
    return _Changes(head, body, names).changes()


class _Changes(Code):
    def __init__(self, head, body, names):
        super().__init__(head, body)
        self.names = names
        self.silent = self._messages()
        self.divisors = sorted({self.cut(i + 1, self.unit_after(i + 1)) for i, token in enumerate(self.tokens)
                                if token.text == "/" and self.is_binary(i) and self.unit_after(i + 1)})
        self.found = {}

    def changes(self):
        for i, token in enumerate(self.tokens):
            if i in self.silent:
                continue
            self._other_word(i, token)
            self._other_number(i, token)
            self._other_name(i, token)
            self._other_function(i, token)
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
        while left > 0 and not re.fullmatch(r"[;,{}(\[=?:]|[-+*/]?=", self.text(left - 1)):
            left = self.partner.get(left - 1, left - 1) if self.text(left - 1) in (")", "]") else left - 1
        while right < len(self.tokens) and not re.fullmatch(r"[;,{})\]?:]", self.text(right)):
            right = self.partner.get(right, right) + 1 if self.text(right) in ("(", "[") else right + 1
        begin, end = self.tokens[left].begin, self.tokens[right - 1].end
        if end - begin > 60:
            left, right = (self.unit_before(first) if self.ends_operand(first) else first), max(last, self.unit_after(first) or last)
            begin, end = self.tokens[left].begin, self.tokens[right - 1].end
        return min(begin, self.tokens[first].begin), max(end, self.tokens[last - 1].end)

    def _other_word(self, i, token):
        if token.text in ("+", "-", "*") and not self.is_binary(i):
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
        if kind is None or self.text(i - 1) in (".", "->") or self.is_declaration(i):
            return
        alike = [name for name, its in self.kinds.items() if its == kind]
        at = alike.index(token.text)
        for other in sorted(alike, key=lambda name: abs(alike.index(name) - at))[1:NEAREST + 1]:
            self._add(i, i + 1, other)
        if kind == "whole" and self.text(i + 1) not in ("=", "++", "+=", "-=") and self.text(i - 1) != "++":
            beside = PRODUCTS & {self.text(i - 1), self.text(i + 1)}
            sizes = [f"{name}.{size}" for name, of in self.kinds.items() if of == "matrix" for size in ("rows", "cols")]
            alone = re.fullmatch(r"[\[(,<>=?:{]|[<>]=", self.text(i - 1)) and re.fullmatch(r"[\]),;?:}<>]|[<>]=", self.text(i + 1))
            more = ("0", f"({token.text} + 1)", f"({token.text} - 1)") if alone else ()
            for other in (*more, *(sizes if beside else ())):
                self._add(i, i + 1, other)
        if kind == "real" and self.text(i - 1) in ("(", ",") and self.text(i + 1) in (")", ","):
            for other in ("0", "1"):
                self._add(i, i + 1, other)
        if kind != "whole" and (self.text(i - 1) in SUMS | PRODUCTS | {"return"} or self.text(i + 1) in SUMS | PRODUCTS):
            for divisor in self.divisors if {self.text(i - 1), self.text(i + 1)} & SUMS else ():
                self._add(i, i + 1, f"{token.text} / {divisor}")
            for other in (f"(1 + {token.text})", f"(1 - {token.text})", f"(-{token.text})", f"({token.text} * {token.text})"):
                self._add(i, i + 1, other)

    def _other_function(self, i, token):
        """f(a) becomes g(a), of the functions of the file that are defined next to f."""
        some = self.names.functions
        if token.text in some and self.text(i + 1) == "(" and self.text(i - 1) not in (".", "->"):
            at = some.index(token.text)
            for other in sorted(some, key=lambda name: abs(some.index(name) - at))[1:NEAREST + 1]:
                self._add(i, i + 1, other)

    def _operands(self, i, token):
        """a + b becomes a, b or b + a."""
        if token.text not in SUMS | PRODUCTS or not self.is_binary(i):
            return
        left, right = self.left_of(i), self.right_of(i)
        if right is None or left < 0:
            return
        a, b = self.cut(left, i), self.cut(i + 1, right)
        self._add(left, right, a)
        self._add(left, right, b)
        if token.text in ("-", "/", "%"):
            self._add(left, right, f"{b} {token.text} ({a})")
        if token.text == "/" and self.text(self.unit_before(i - 1) - 1) == "*" and self.unit_before(i - 1) - 1 > left:
            times = self.unit_before(i - 1) - 1
            self._add(left, right, f"{self.cut(left, times)} * ({self.cut(times + 1, right)})")
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
        end = self.right_of(i)
        while end is not None and self.text(end) in SUMS:
            end = self.right_of(end)
            if end is not None:
                self._add(left, end, a)

    def _ungroup(self, left, right, bracket, times):
        """(a + b) * c becomes a * c + b or a + b * c, and so on the other side."""
        for j in self.inside(bracket):
            if self.text(j) in SUMS and self.is_binary(j):
                a, b = self.cut(bracket + 1, j), self.cut(j + 1, self.partner[bracket])
                self._add(left, right, f"{times(a)} {self.text(j)} {b}")
                self._add(left, right, f"{a} {self.text(j)} {times(b)}")

    def _regroup(self, i, left, right):
        """a * b + c becomes a * (b + c) or (a + c) * b, and so on the other side."""
        op, text = self.text(i), self.cut
        for j in range(left, i):
            if self.text(j) in PRODUCTS and self.is_binary(j) and self.depth(left - 1, j) == 0:
                a, b, c = text(left, j), text(j + 1, i), text(i + 1, right)
                self._add(left, right, f"{a} {self.text(j)} ({b} {op} {c})")
                self._add(left, right, f"({a} {op} {c}) {self.text(j)} {b}")
        for j in range(i + 1, right):
            if self.text(j) in PRODUCTS and self.is_binary(j) and self.depth(i, j) == 0:
                a, b, c = text(left, i), text(i + 1, j), text(j + 1, right)
                self._add(left, right, f"({a} {op} {b}) {self.text(j)} {c}")

    def _call(self, i, token):
        """f(a, b) becomes a, f(a) or f(b, a)."""
        if not re.match(r"[A-Za-z_]", token.text) or self.text(i + 1) != "(" or token.text in ("if", "for", "while", "return", "switch"):
            return
        close, given = self.partner.get(i + 1), self.arguments(i + 1)
        if close is None or not given:
            return
        texts = [self.cut(*one) for one in given]
        for j in self.inside(i + 1) if len(given) == 1 else ():
            if self.text(j) in SUMS and self.is_binary(j):
                a, b = self.cut(i + 2, j), self.cut(j + 1, close)
                first = self.unit_before(i)
                called = self.cut(first, i + 1)
                for now in (f"{called}({a}) {self.text(j)} {b}", f"{a} {self.text(j)} {called}({b})"):
                    self._add(first, close + 1, f"({now})")
        if self.text(i - 1) not in (".", "->"):
            self._add(i, close + 1, f"({texts[0]})")
        if len(texts) > 1:
            self._add(i + 2, close, texts[0])
            if token.text.startswith("xt::"):
                self._add(i, close + 1, f"{token.text}({texts[0]})()")
        for n in range(len(texts) - 1):
            self._add(i + 2, close, ", ".join([*texts[:n], texts[n + 1], texts[n], *texts[n + 2:]]))

    def _last_call(self, i, token):
        """a.b(c) becomes a."""
        if token.text == "." and self.text(i + 2) == "(":
            self._add(i, self.partner.get(i + 2, i + 2) + 1, "")

    def _argument(self, i, token):
        """An expression that is an argument or an element of a list, as 0, and one more or less."""
        if token.text in ("(", "{", "[") and not (token.text == "{" and self.is_block(i)):
            for first, after in self.arguments(i):
                if after > first + 1 and not self.text(first).startswith('"') and self.text(i - 1) not in ("for", "if", "while"):
                    for other in ("0", f"{self.cut(first, after)} + 1", f"{self.cut(first, after)} - 1"):
                        self._add(first, after, other)
                if after == first + 1 and self.text(first) in self.given:
                    for member in self.names.members.get(self.text(first), ()):
                        self._add(first, after, f"{self.text(first)}.{member}")

    def _member(self, i, token):
        """a.b becomes a.c, and the bound of a loop a.c, of the members of a that the file uses."""
        if self.text(i + 1) == "." and re.fullmatch(r"[A-Za-z_]\w*", token.text) and self.text(i + 3) != "(":
            for member in self.names.members.get(token.text, ()):
                if member != self.text(i + 2):
                    self._add(i + 2, i + 3, member)
        if token.text == "<" and self.in_header(i) and self.right_of(i):
            for name in self.given:
                for member in self.names.members.get(name, ()) if self.given[name] not in ("row", "matrix") else ():
                    self._add(i + 1, self.right_of(i), f"{name}.{member}")

    def _comparison(self, i, token):
        """a != B::c becomes a == B::d, of the B that the file uses."""
        if token.text in ("==", "!=") and "::" in self.text(i + 1):
            space = self.text(i + 1).rpartition("::")[0]
            for other in sorted({name for name in self.names.enumerators if name.startswith(space + "::")} - {self.text(i + 1)}):
                for operator in ("==", "!="):
                    self._add(i, i + 2, f"{operator} {other}")

    def _condition(self, i, token):
        if token.text == "if" and self.text(i + 1) == "(":
            for other in ("true", "false"):
                self._add(i + 2, self.partner[i + 1], other)
        if token.text == "?":
            begin = self.left_edge(i)
            for other in ("true", "false"):
                self._add(begin, i, other)
            colon = next((j for j in range(i, len(self.tokens)) if self.text(j) == ":" and self.depth(i, j) == 0), None)
            end = next((j for j in range(colon or i, len(self.tokens)) if self.text(j) in ",;)}" and self.depth(colon or i, j) <= 0), None)
            for first, after in ((i + 1, colon), (colon and colon + 1, end)) if colon and end else ():
                for other in (f"{self.cut(first, after)} + 1", f"{self.cut(first, after)} - 1"):
                    self._add(first, after, other)

    def _initial(self, i, token):
        """x = …; becomes 0 or 1, or gets one of the function's real numbers as well."""
        if token.text != "=" or self.in_header(i):
            return
        end = next((j for j in range(i + 1, len(self.tokens)) if self.text(j) in (";", ",") and self.depth(i, j) == 0), None)
        if not end or end <= i + 2:
            return
        text = self.cut(i + 1, end)
        kind = self.kinds.get(self.text(i - 1))
        if kind == "real":
            for other in ("0", "1"):
                self._add(i + 1, end, other)
        if kind == "whole":
            names = list(self.kinds)
            before = [name for name in names[:names.index(self.text(i - 1))] if self.kinds[name] == kind]
            for other in before[-3:]:
                self._add(i + 1, end, other)
        for j in self.equals_beside(i):
            other = next((n for n in range(j + 1, len(self.tokens)) if self.text(n) in (";", ",") and self.depth(j, n) == 0), None)
            if other:
                self._add(i + 1, end, self.cut(j + 1, other))
        for name, kind in self.given.items():
            if kind == "real":
                for operator in "+-*/":
                    self._add(i + 1, end, f"({text}) {operator} {name}")

    def _statements(self):
        """A statement left out, moved behind one of the next, or a number that is set once and not in each turn of a loop."""
        for some in self.blocks():
            for n, (first, after) in enumerate(some):
                is_declaration = self.declares(first)
                if not is_declaration and self.text(first) != "return":
                    self._add(first, after, ";")
                    self._other_assignment(first, after)
                for _, end in some[n + 1:n + 4]:
                    if self.text(first) != "return":
                        self._add(first, end, f"{self.cut(after, end)} {self.cut(first, after)}")
                if is_declaration and self.text(first) != "const":
                    self._set_once(first, after)
                self._exchange_arguments(first, after)

    def _other_assignment(self, first, after):
        equals = next((j for j in range(first, after) if self.text(j) == "="), None)
        if equals and self.text(first) not in ("for", "if", "while"):
            self._add(equals, equals + 1, "+=")

    def _set_once(self, first, after):
        loops = [j for j in range(first) if self.text(j) == "for" and self.statement_end(j) > first]
        if loops:
            end = self.statement_end(loops[-1])
            self._add(loops[-1], end, f"{{ {self.cut(first, after)} {self.cut(loops[-1], first)} {self.cut(after, end)} }}")

    def _exchange_arguments(self, first, after):
        """f(a) = g(b) becomes f(b) = g(a)."""
        if self.text(first) in ("for", "if", "while", "{") or after - first > 60:
            return
        given = [one for j in range(first, after) if self.text(j) in ("(", "[") for one in self.arguments(j)
                 if re.match(r"[\w]", self.text(one[0]))]
        for n, (a, b) in enumerate(given):
            for c, d in given[n + 1:]:
                if c >= b and self.cut(a, b) != self.cut(c, d) and len(given) <= 8:
                    self._add(a, d, f"{self.cut(c, d)}{self.body[self.tokens[b - 1].end:self.tokens[c].begin]}{self.cut(a, b)}")

    def _everywhere(self):
        """A name with another sign, two names exchanged, or float for double, wherever they are used."""
        uses = {}
        for i, token in enumerate(self.tokens):
            if (token.text in self.kinds and i not in self.silent and self.text(i - 1) not in (".", "->")
                    and not self.is_declaration(i)):
                uses.setdefault(token.text, []).append(i)
        for name, some in uses.items():
            if len(some) > 1 and all(self.text(i + 1) == "[" for i in some):
                self._replace([(i, self.unit_after(i), f"(-{self.cut(i, self.unit_after(i))})") for i in some])
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


def _short(text):
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "…"
