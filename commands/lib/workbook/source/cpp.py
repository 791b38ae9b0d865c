"""C++ as tree-sitter reads it: what a source defines, where each begins and ends, and the tokens
of any piece of code."""
import dataclasses
import functools
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

Node = Any  # of tree-sitter, which what reads no C++ can do without

STRINGS = ("string_literal", "raw_string_literal", "char_literal")
TYPES = ("struct_specifier", "class_specifier", "enum_specifier", "alias_declaration")
STATIC = r"__(?:global|device|host|shared|forceinline)__"  # CUDA's words, which the grammar lacks
LEFT_OUT = r"^[ \t]*#(?:\\\n|[^\n])*|__launch_bounds__\([^()]*\)|__restrict__"


@dataclasses.dataclass
class Item:
    """What stands outside of functions and classes."""
    kind: str  # "function", "lambda" that a constant holds, "type", "value", "declared" or "check"
    name: str  # without its arguments: "rms_norm", "Bpe::encode"; a check's title
    signature: str  # all before the body, without the comment above and a constructor's list
    comment: str  # the comment lines directly above
    body: str  # with its brackets
    line: int  # of the signature, from 1
    local: bool  # whether no other file sees it
    begin: int  # of the signature in the text
    brace: int  # of the body, or the end where there is none
    end: int
    node: Node

    @property
    def may_run_in_compiler(self) -> bool:
        return bool(re.search(r"\bconst(expr|eval)\b", self.signature))

    @property
    def is_constructor(self) -> bool:
        words = self.name.split("::")
        return len(words) > 1 and words[0] == words[-1]


@functools.cache
def _parser() -> Any:
    """tree-sitter, which ./learn installs into a Python of its own."""
    own = pathlib.Path(__file__).resolve().parents[4] / "build/python/lib"
    sys.path.extend(map(str, own.glob(f"python3.{sys.version_info.minor}/site-packages")))
    import tree_sitter
    import tree_sitter_cpp
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def plain(text: str) -> str:
    """A text without the marks of other systems."""
    return text.replace("\r\n", "\n").removeprefix("\ufeff")


def is_mark(line: str) -> bool:
    """Whether it is "// [name]" or "// [/name]", between which a page quotes a source."""
    return bool(re.fullmatch(r"\s*// \[/?[\w ]+\]", line))


@functools.lru_cache(64)
def parsed(text: str) -> Node:
    """The tree of a text, whose places are those of the text: lines of the preprocessor are left
    out, and so are words that the grammar does not know."""
    text = re.sub(STATIC, lambda found: f"{'static':<{len(found.group())}}", text)
    text = re.sub(LEFT_OUT, _blank, re.sub(r"[^\0-\x7f]", "_", text), flags=re.M)
    return _parser().parse(text.encode()).root_node


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())


def nodes(node: Node, *types: str) -> Iterator[Node]:
    """Those of these types in a tree, the outer ones alone."""
    waiting = node.children[::-1]
    while waiting:
        one = waiting.pop()
        if one.type in types:
            yield one
        else:
            waiting += reversed(one.children)


def tokens(node: Node) -> Iterator[Node]:
    """The leaves of a tree, a string as one; without comments."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        inner = [] if one.type in STRINGS or one.type == "number_literal" else one.children
        if inner:
            waiting += reversed(inner)
        elif one.type != "comment" and one.end_byte > one.start_byte:
            yield one


def outermost(node: Node) -> Iterator[Node]:
    """What stands outside of functions and classes. Namespaces are looked into."""
    for child in node.children:
        if child.type in ("namespace_definition", "linkage_specification", "declaration_list",
                          "ERROR"):
            yield from outermost(child)
        else:
            yield child


def unread(text: str) -> int:
    """The first line that can't be read as C++, or 0. Some right code can't be read either."""
    waiting = [parsed(text)]
    while waiting:
        node = waiting.pop()
        # A type's name is missing in "Options options = {}".
        if node.is_error or node.is_missing and node.type != "type_identifier":
            return node.start_point.row + 1
        waiting += (child for child in reversed(node.children) if child.has_error)
    return 0


def bare(text: str, node: Node) -> str:
    """The text of a node, with blanks for comments and strings."""
    for one in nodes(node, "comment", *STRINGS):
        blank = re.sub(r"[^\n]", " ", text[one.start_byte:one.end_byte])
        text = text[:one.start_byte] + blank + text[one.end_byte:]
    return text[node.start_byte:node.end_byte]


@functools.cache
def items(text: str) -> list[Item]:
    """What a source defines or declares outside of functions and classes, in its order."""
    text, before = plain(text), None
    found: list[Item] = []
    for node in outermost(parsed(text)):
        if before is not None and node.type == "compound_statement":
            title = _title(text, before)
            found += [_item(text, before, "check", title, node)] if title else []
        inner = inside_template(node)
        field = inner.child_by_field_name
        if inner.type in TYPES and (field("body") or field("type")):
            found.append(_item(text, node, "type", field("name").text.decode(), None))
        elif (inner.type in ("function_definition", "declaration") and
              (name := declared_name(inner))):
            held = inner.type == "declaration" and next(nodes(inner, "lambda_expression"), None)
            body = (held or inner).child_by_field_name("body")
            kind = ("lambda" if held else "function" if body else
                    "value" if next(nodes(inner, "init_declarator"), None) else "declared")
            found.append(_item(text, node, kind, name, body))
        before = node
    return found


def inside_template(node: Node) -> Node:
    """What is declared, without the template's head."""
    return node.named_children[-1] if node.type == "template_declaration" else node


def _title(text: str, node: Node) -> str:
    """The name of the check whose body comes next, or "": TEST_CASE("name" *
    doctest::test_suite("slow"))."""
    call = next(nodes(node, "call_expression"), None)
    if call is None or not call.text.startswith(b"TEST_CASE"):
        return ""
    first = call.child_by_field_name("arguments").named_children[0]
    pieces = nodes(first.child_by_field_name("left") or first, "string_content", "escape_sequence")
    return "".join(text[one.start_byte:one.end_byte].replace('\\"', '"') for one in pieces)


def _item(text: str, node: Node, kind: str, name: str, body: Node | None) -> Item:
    begin, row, end = node.start_byte, node.start_point.row, (body or node).end_byte
    brace = body.start_byte if body else end
    setters = next(nodes(node, "field_initializer_list"), None) if kind == "function" else None
    signature = text[begin:setters.start_byte if setters else brace].rstrip()
    local = (bool(re.search(rf"^(inline|template)\b|\bstatic\b|{STATIC}", signature)) or
             _is_unnamed(node))
    return Item(kind, name, signature, comment_above(text, row), text[brace:end], row + 1, local,
                begin, brace, end, body if kind == "check" else node)


def declared_name(node: Node) -> str:
    """The name that a declaration or a declarator gives, or ""."""
    inner = innermost(node)
    name = inner.text.decode() if inner.type.endswith(("identifier", "_name")) else ""
    return name.partition("(")[0].strip()  # T::operator()


def innermost(node: Node) -> Node:
    """What is declared, without * and & and arguments around it."""
    # These two have no field for what is behind.
    refers = node.type in ("reference_declarator", "parenthesized_declarator")
    inner = node.child_by_field_name("declarator") or (node.children[-1] if refers else None)
    return innermost(inner) if inner else node


def _is_unnamed(node: Node) -> bool:
    """Whether a namespace without a name is around it."""
    while node := node.parent:
        if node.type == "namespace_definition" and node.child_by_field_name("name") is None:
            return True
    return False


def comment_above(text: str, row: int) -> str:
    """The lines of comments that end above a line."""
    lines, first = text.split("\n"), row
    while first > 0 and lines[first - 1].lstrip().startswith("//"):
        first -= 1
    return "\n".join(line.strip() for line in lines[first:row])


def definitions(text: str) -> list[Item]:
    """Every function that a file defines, but for those inside of a class."""
    return [one for one in items(text) if one.kind == "function"]


def functions(text: str) -> list[Item]:
    """Those that it defines for others."""
    return [f for f in definitions(text) if not f.local]


def to_write(text: str) -> list[Item]:
    """The functions of a part that its reader is to write."""
    return [f for f in functions(text) if not f.is_constructor]


def lines_to_write(text: str) -> int:
    """How many lines of ours the reader is to write anew: of code, and not of brackets alone."""
    def count(text: str) -> int:
        return len({one.start_point.row for one in tokens(parsed(text))
                    if one.type[0].isalpha() and one.type not in STRINGS})
    return count(text) - sum(map(count, given(text).values()))


def given(text: str) -> dict[int, str]:
    """The text of each constructor, and of the local functions that constructors call, by its
    line."""
    constructors = [f for f in functions(text) if f.is_constructor]
    return {f.line: "\n".join(filter(None, [f.comment, text[f.begin:f.end]]))
            for f in with_helpers(text, *constructors)}


def with_helpers(text: str, *some: Item) -> list[Item]:
    """These functions and the local ones that they call, in the order of the source."""
    wanted = list(some)
    for function in wanted:
        called = calls(text[function.begin:function.end])
        wanted += [f for f in definitions(text) if f.local and f.name in called and f not in wanted]
    return sorted(wanted, key=lambda f: f.line)


def outline(function: Item) -> list[str]:
    """The comments inside of a function, which say what it does step by step."""
    return [m.group(1).strip() for m in re.finditer(r"^\s*// ?(.*)$", function.body, re.M)]


@functools.cache
def calls(code: str) -> list[str]:
    """The functions that a piece of code calls, in the order of their first call."""
    words = [(one.type, one.text.decode()) for one in tokens(parsed(code))]
    return list(dict.fromkeys(name for (kind, name), (_, after) in zip(words, words[1:])
                              if after == "(" and kind.endswith("identifier")))
