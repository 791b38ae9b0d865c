"""A function's body as tokens: its statements and blocks, and which names it declares."""
import dataclasses
import re
from collections.abc import Iterator

from workbook.source import cpp
from workbook.source.cpp import Item, Node

KINDS = [("whole", r"std::size_t|(std::)?u?int\w*|unsigned|long|std::ptrdiff_t"),
         ("real", r"float|double"), ("row", r"ConstRow|Row"), ("matrix", r"ConstMatrix|Matrix")]
DECLARES = ("parameter_declaration", "optional_parameter_declaration", "declaration",
            "init_declarator", "for_range_loop")
# Behind these may be a statement without brackets.
LOOSE = ("for_statement", "for_range_loop", "while_statement", "do_statement", "if_statement")


@dataclasses.dataclass
class Token:
    text: str
    begin: int
    end: int
    may_be_local: bool  # not a member's name, nor one of another namespace


class Code:
    """The tokens of a function; places in it are numbers of tokens."""

    def __init__(self, function: Item) -> None:
        self.body, text = function.body, f"{function.signature} {function.body}"
        self.offset = len(function.signature) + 1
        root = cpp.parsed(text)
        body = next(node for node in _below(root) if node.start_byte >= self.offset)
        self.tokens = [Token(text[one.start_byte:one.end_byte], one.start_byte - self.offset,
                             one.end_byte - self.offset, _may_be_local(one))
                       for one in cpp.tokens(body)]
        self._number = {token.begin: i for i, token in enumerate(self.tokens)}
        declared = _declared(root)
        self.given = {name: kind for name, kind, at in declared if at < self.offset}
        self.names = {name for name, *_ in declared}
        # (first token, the one after) of each statement, head and bracket
        self.units: list[tuple[int, int]] = []
        self._add_block(body)

    def text(self, i: int) -> str:
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def is_local(self, i: int) -> bool:
        return self.tokens[i].may_be_local and self.text(i) in self.names

    def _add_block(self, node: Node) -> None:
        """Brackets around a single statement of a loop or a condition are no units."""
        if node.type != "compound_statement":
            return self._add_statement(node)
        inner = [one for one in node.named_children if one.type != "comment"]
        is_around_one = len(inner) == 1 and node.start_byte > self.offset
        if not is_around_one:
            self._add(node.start_byte, node.start_byte + 1)
        for one in inner:
            self._add_statement(one)
        if not is_around_one:
            self._add(node.end_byte - 1, node.end_byte)

    def _add_statement(self, node: Node) -> None:
        begin = node.start_byte
        for inner in _inner_statements(node):
            self._add(begin, inner.start_byte)
            self._add_block(inner)
            begin = inner.end_byte
        self._add(begin, node.end_byte)

    def _add(self, begin: int, end: int) -> None:
        places = range(begin - self.offset, end - self.offset)
        if some := [self._number[at] for at in places if at in self._number]:
            self.units.append((some[0], some[-1] + 1))


def _below(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        yield (one := waiting.pop())
        waiting += reversed(one.children)


def _inner_statements(node: Node) -> Iterator[Node]:
    """The blocks in a statement, those of lambdas too, and what stands behind a head without
    brackets."""
    waiting = node.children[::-1]
    while waiting:
        one = waiting.pop()
        if (one.type == "compound_statement" or
                one.type.endswith("statement") and _is_behind_a_head(one)):
            yield one
        else:
            waiting += reversed(one.children)


def _is_behind_a_head(node: Node) -> bool:
    head = node.parent
    fields = [head.child_by_field_name(name) for name in ("body", "consequence")]
    return head.type in ("else_clause", "case_statement") or head.type in LOOSE and node in fields


def _may_be_local(leaf: Node) -> bool:
    parent = leaf.parent.type if leaf.parent else ""
    return leaf.type in ("identifier", "type_identifier") and parent != "qualified_identifier"


def _declared(root: Node) -> list[tuple[str, str, int]]:
    """[(name, kind, where), ...] of all that is declared in a function and its head."""
    found: list[tuple[str, str, int]] = []
    for node in _below(root):
        if node.type not in DECLARES:
            continue
        kind = _kind(node.child_by_field_name("type"))
        for declarator in map(cpp.innermost, node.children_by_field_name("declarator")):
            is_some = declarator.type == "structured_binding_declarator"
            found += [(one.text.decode(), kind, one.start_byte)
                      for one in (declarator.named_children if is_some else [declarator])
                      if one.type == "identifier"]
    return found


def _kind(node: Node) -> str:
    word = "".join(node.text.decode().split()) if node else ""
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, word)), word)
