"""A part as ./learn start writes it: every function with what the header says of it, and without a
body."""
import functools
import pathlib
import re
from collections.abc import Iterable

from workbook import book
from workbook.source import cpp
from workbook.source.cpp import Item, Node

Contracts = dict[str, list[tuple[list[str], str]]]  # name -> [(parameters, comment), ...]


@functools.cache
def contracts(header: str) -> Contracts:
    """What the header says of each function: name -> [(its parameters, comment), ...], in the order
    of the declarations. A comment is about all of those that follow each other."""
    found: Contracts = {}
    _read(header, cpp.outermost(cpp.parsed(header)), "", found)
    return found


def _read(header: str, nodes: Iterable[Node], inside: str, found: Contracts) -> None:
    comment, before = "", None
    for node in nodes:
        row = node.start_point.row
        above = cpp.comment_above(header, row) if node.type != "comment" else ""
        if (above or before is None or row > before.end_point.row + 1 or
                before.type == "access_specifier"):
            comment = "\n".join(line for line in above.split("\n") if line.startswith("///"))
        before, body = node, node.child_by_field_name("body")
        if node.type in ("struct_specifier", "class_specifier") and body:
            name = node.child_by_field_name("name").text.decode()
            _read(header, body.children[1:-1], f"{name}::", found)
        elif parameters := next(cpp.nodes(node, "parameter_list"), None):
            name = inside + cpp.declared_name(cpp.inside_template(node))
            found.setdefault(name, []).append((_parameters(parameters), comment))


def contract(header: str, function: Item) -> str:
    """What the header says of a function: of several with its name, of the one that has the same
    parameters."""
    some = contracts(header).get(function.name, [])
    own = _parameters(next(cpp.nodes(cpp.parsed(f"{function.signature};"), "parameter_list"), None))
    alike = [comment for parameters, comment in some if parameters == own]
    return (alike or [comment for _, comment in some] or [""])[0]


def _parameters(node: Node) -> list[str]:
    """The parameters of a function, without default values and blanks."""
    def text(one: Node) -> str:
        value = one.child_by_field_name("default_value")
        words = [token.text.decode() for token in cpp.tokens(one)
                 if not value or token.start_byte < value.start_byte]
        return "".join(words).removesuffix("=")
    return [text(one) for one in node.named_children if one.type != "comment"] if node else []


def declarations(header: str) -> list[str]:
    """The functions that a header declares, as they stand there, without those of classes and
    without contracts."""
    return [header[one.begin:header.index("\n", one.end)] for one in cpp.items(header)
            if one.kind == "declared"]


def of(chapter: str, part: str) -> str:
    ours = book.ours(chapter, part)
    return made_of(ours.name, ours.read_text(), book.header(chapter, part))


def made_of(name: str, text: str, header: pathlib.Path) -> str:
    """The part with every body replaced by "not written yet". Constructors are plumbing: they are
    given, with the helpers that they call."""
    declared = header.read_text()
    given = cpp.given(text)
    own, *rest = re.findall(r"^#include .*$", text, re.M)
    quoted = [i for i in rest if '"' in i]
    lines = [f"// {name}: what {header.name} promises, to be written.", own, "",
             *sorted({"#include <stdexcept>", *(i for i in rest if "<" in i)}), "",
             *quoted, *([""] if quoted else []), "namespace t2t {", ""]
    lines += [line for line in _constants(text) if _uses(given.values(), line)]
    lines += [""] if lines[-1] else []
    names = [f.name for f in cpp.functions(text)]
    seen: dict[str, int] = {}
    for function in cpp.definitions(text):
        if function.line in given:
            lines += [given[function.line], ""]
        elif not function.local:
            own = function.comment if function.comment.startswith("///") else ""
            name = which = function.name
            seen[name] = seen.get(name, 0) + 1
            if names.count(name) > 1:
                which += f" ({seen[name]} of {names.count(name)})"
            lines += [contract(declared, function) or own or f"// See {header.name}.",
                      f"{function.signature} {{",
                      f'  throw std::logic_error("not written yet: {which}");', "}", ""]
    return "\n".join([*lines, "}  // namespace t2t", ""])


def _constants(text: str) -> list[str]:
    """The lines with which constants and other names of types are declared."""
    return [text.split("\n")[one.line - 1] for one in cpp.items(text)
            if one.kind in ("type", "value") and "\n" not in text[one.begin:one.end] and
            re.match(r"(static )?constexpr |using ", one.signature)]


def _uses(texts: Iterable[str], line: str) -> bool:
    name = re.search(r"(\w+) =", line)
    return any(name and re.search(rf"\b{name[1]}\b", text) for text in texts)
