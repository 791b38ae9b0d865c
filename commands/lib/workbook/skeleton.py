"""A part as ./learn start writes it: every function with what the header says of it, and without a body."""
import functools
import re

import house
import source


@functools.cache
def contracts(header):
    """What the header says of each function: name -> [(its parameters, comment), ...], in the order of the declarations."""
    found, comment, inside, before, code, at = {}, [], [], "", source.without_comments(header), 0
    for line in header.splitlines():
        begin, at = at, at + len(line) + 1
        stripped = line.strip()
        if not stripped or stripped.endswith(":") or (stripped.startswith("///") and not before.startswith("///")):
            comment = []  # until then it is about all declarations that follow each other
        before = stripped
        if stripped.startswith("///"):
            comment.append(stripped)
            continue
        kind = re.match(r"(?:struct|class) (\w+)", line)
        if kind and not stripped.endswith(";"):
            inside = [kind.group(1)]
        elif line.startswith("}"):
            inside = []
        name = re.search(r"(~?\w+)\(", stripped)
        if name and not stripped.startswith("//"):
            known = "::".join([*inside, name.group(1)])
            found.setdefault(known, []).append((_parameters(code[begin:]), "\n".join(comment)))
    return found


def contract(header, function):
    """What the header says of a function: of several with its name, of the one that has the same parameters."""
    some = contracts(header).get(function.name, [])
    own = _parameters(source.without_comments(function.signature))
    return next((comment for parameters, comment in some if parameters == own), some[0][1] if some else "")


def _parameters(code):
    """The parameters of the first function declared there, without default values and blanks."""
    opening = code.find("(")
    inside = "".join(code[opening + 1:source._closing(code, opening, "()") - 1].split())
    return re.sub(r"=[^,]*(\{\}|(?=,)|$)", "", inside)


def declarations(header):
    """The functions that a header declares, as they stand there, without those of classes and without contracts."""
    found = re.finditer(r"^(?!using\b)\w([^;{}]|\{\})*\)[^;{}()]*;", source.without_comments(header), re.M)
    return [header[one.start():header.index("\n", one.end())] for one in found]


def of(chapter, part):
    ours = house.ours(chapter, part)
    return made_of(ours.name, ours.read_text(), house.header(chapter, part))


def made_of(name, text, header):
    """The part with every body replaced by "not written yet". Constructors are plumbing: they are given, with the helpers that
    they call."""
    declared = header.read_text()
    given = source._given(text)
    own, *rest = re.findall(r"^#include .*$", text, re.M)
    quoted = [i for i in rest if '"' in i]
    lines = [f"// {name}: what {header.name} promises, to be written.", own, "",
             *sorted({"#include <stdexcept>", *(i for i in rest if "<" in i)}), "",
             *quoted, *([""] if quoted else []), "namespace t2t {", ""]
    lines += [line for line in _constants(text) if _uses(given.values(), line)]
    lines += [""] if lines[-1] else []
    names = [f.name for f in source.functions(text)]
    seen = {}
    for function in source.definitions(text):
        if function.line in given:
            lines += [given[function.line], ""]
        elif not function.local:
            own = function.comment if function.comment.startswith("///") else ""
            lines += [contract(declared, function) or own or f"// See {header.name}."]
            seen[function.name] = seen.get(function.name, 0) + 1
            of = f" ({seen[function.name]} of {names.count(function.name)})" if names.count(function.name) > 1 else ""
            lines += [f"{function.signature} {{", f'  throw std::logic_error("not written yet: {function.name}{of}");', "}", ""]
    return "\n".join([*lines, "}  // namespace t2t", ""])


def _constants(text):
    return re.findall(r"^(?:static )?(?:constexpr|using) .*;.*$", text, re.M)


def _uses(texts, line):
    name = re.search(r"(\w+) =", line)
    return bool(name) and any(re.search(rf"\b{name.group(1)}\b", text) for text in texts)
