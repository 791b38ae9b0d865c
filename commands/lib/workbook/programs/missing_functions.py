"""Which functions a compiled part defines for others. What it lacks would be taken from our part,
which is linked behind it, and so ours would be judged."""
import collections
import re
import subprocess

from workbook import book
from workbook.source import cpp

Symbol = collections.namedtuple("Symbol", "linked name")  # the linker's name, and "t2t::rms_norm"


def lacking(text, theirs, ours):
    """What to tell of the first function that our object defines for others and the reader's does
    not, or ""."""
    has = {symbol.linked for symbol in _defined(theirs, "TWi")}
    calls = {symbol for kind, symbol in named(theirs) if kind == "U"}
    header = book.header(text.chapter, text.part).read_text()
    for function, symbol in promised(text.chapter, text.part, ours):
        can_do_without = is_private(function.name, header) and symbol.linked not in calls
        if symbol.linked not in has and not can_do_without:
            return _told(text, function, symbol, _defined(theirs, "TtWi"))
    return ""


def is_private(name, header) -> bool:
    """Whether it is a member that its class alone can call: then a part may do without it."""
    of, _, short = name.rpartition("::")
    for node in cpp.nodes(cpp.parsed(header), "class_specifier", "struct_specifier"):
        body = node.child_by_field_name("body")
        if body is not None and node.child_by_field_name("name").text.decode() == of:
            access, found = "private" if node.type == "class_specifier" else "public", set()
            for member in body.children:
                if member.type == "access_specifier":
                    access = member.text.decode()
                if cpp.declared_name(member) == short:
                    found.add(access)
            return found == {"private"}
    return False


def promised(chapter: str, part: str, ours):
    """[(function, symbol), ...]: what our object defines of the functions that the part is to
    define."""
    functions, defined = cpp.functions(book.ours(chapter, part).read_text()), _defined(ours, "T")
    return [(function, symbol) for function in functions for symbol in defined
            if symbol.name.endswith(f"::{function.name}")]


def _defined(file, kinds):
    """The functions that an object file defines; kinds are letters of nm: T for all, t for the file
    alone, W for one of several."""
    def short(name):
        name = name.replace("(anonymous namespace)", "{unnamed}")
        return re.sub(r"\[abi:\w+\]", "", name).split("(")[0]
    return [Symbol(symbol, short(name))
            for (kind, symbol), (_, name) in zip(named(file), named(file, "-C")) if kind in kinds]


def named(file, *flags):
    """[(letter of nm, name), ...] of all that an object file or a program defines or takes from
    others."""
    told = subprocess.run(["nm", "-p", *flags, file], capture_output=True, text=True,
                          errors="replace")
    if told.returncode != 0:
        book.die(f"nm, which comes with the compiler, can't read {file}: {told.stderr.strip()}")
    return re.findall(r"^[0-9a-fA-F ]+ (\w) (.*)$", told.stdout, re.M)


def _told(text, function, symbol, theirs):
    short = function.name.split("::")[-1]
    signatures = [f.signature for f in cpp.functions(book.ours(text.chapter, text.part).read_text())
                  if f.name == function.name]
    declared = re.sub(r"//.*", "", "\n".join(signatures)).replace("\n", "\n  ")
    says = f"{function.name} is missing. Other parts call it:\n  {declared}\n"
    # Without templates, which a part's lambda may have become an argument of.
    names = [one.name for one in theirs
             if "<" not in one.name and one.name.split("::")[-1] == short]
    if symbol.name in names:
        return says + (f"The file defines {symbol.name} with other arguments, which is another "
                       "function.")
    if names:
        return says + (f"The file defines {names[0].replace('{unnamed}', '(unnamed namespace)')}, "
                       f"which is another function: this one is {symbol.name}.")
    if re.search(rf"\b{short}\s*\(", text.own):
        return says + ("Its name stands in the file, but what the compiler made of the file has no "
                       "such function. Is it between #if and #endif, static, or in an unnamed "
                       "namespace?")
    return says.rstrip()
