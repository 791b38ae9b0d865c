#!/usr/bin/env python3
"""Wrong versions of a part that are compiled together.

Most patches change nothing but bodies of functions. From such patches of one part a single source
is made, in which a function with mistakes begins with the question which of them this run is to
make (tests/support/wrong_version.hpp).

    switches.py        fails if a patch does not fit the source that it is for
"""
import dataclasses
import pathlib
import re
import subprocess
import sys

from workbook import book
from workbook.book import ROOT
from workbook.source import cpp


@dataclasses.dataclass
class Split:
    """A source cut into the bodies of its functions, and what stands between them."""
    text: str
    functions: list[cpp.Item]

    @property
    def between(self) -> list[str]:
        ends = [0, *(function.end for function in self.functions)]
        braces = [*(function.brace for function in self.functions), len(self.text)]
        return [self.text[end:brace] for end, brace in zip(ends, braces)]

    def heads(self) -> list[str]:
        """What stands between the bodies, without comments and line ends."""
        bare = (re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*', lambda m: m.group(1) or "", text)
                for text in self.between)
        return [" ".join(text.split()) for text in bare]


def split(text: str) -> Split:
    functions = [one for one in cpp.items(text) if one.kind in ("function", "lambda")]
    return Split(cpp.plain(text), functions)


def cut(text: str) -> Split:
    """The same, where a body may ask or note something. Functions that the compiler runs can't, so
    a constant function of the file becomes one that isn't."""
    pattern = r"^( *)static constexpr auto (\w+ = \[)"
    return split(re.sub(pattern, r"\1static const auto \2", text, flags=re.M))


def of_part(chapter: str, part: str) -> Split:
    """Our source of a part, cut like that."""
    return cut(book.ours(chapter, part).read_text())


def changed(right: Split, wrong: Split) -> list[cpp.Item] | None:
    """The functions whose bodies differ, as they are in the wrong source; None where more differs,
    or where the compiler may run one."""
    if right.heads() != wrong.heads():
        return None
    found = [b for a, b in zip(right.functions, wrong.functions) if a.body != b.body]
    return None if any(one.may_run_in_compiler for one in found) else found


def file_of(patch: pathlib.Path) -> str:
    """The source that a patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.M)[0]


def part_of(patch: pathlib.Path) -> str:
    """The source that is compiled with the mistake: the one that the patch changes; or, if that is
    a header of kernels, the kernel beside it that a line of the patch names: "In NAME.cu.\""""
    file = pathlib.Path(file_of(patch))
    inside = re.search(r"^In (\S+\.cu)\.$", patch.read_text(), re.M)
    return str(file.parent / inside.group(1) if inside else file)


class DoesNotFit(Exception):
    """A patch that no longer finds its lines, since the source was changed."""


def patched(part: str, patch: pathlib.Path) -> str:
    """A part with the mistake of a patch. A header that has the mistake stands in the place of its
    #include."""
    file = file_of(patch)
    command = ["patch", "--quiet", "--fuzz=0", "--output=-", "--reject-file=/dev/null"]
    made = subprocess.run([*command, file, str(patch)], cwd=ROOT, capture_output=True, text=True)
    if made.returncode != 0:
        raise DoesNotFit(f"{patch.relative_to(ROOT)} does not fit {file}")
    if file == part:
        return made.stdout
    text, include = (ROOT / part).read_text(), f'#include "{file.partition("/")[2]}"\n'
    if include not in text:
        raise DoesNotFit(f"{patch.relative_to(ROOT)}: {part} does not include {file}")
    return text.replace(include, made.stdout.replace("#pragma once\n", ""))


def is_alone(part: str, text: str) -> bool:
    """Whether a patched source can't share a program with others."""
    return part.endswith(".cu") or not changed(split((ROOT / part).read_text()), split(text))


def together(part: str, texts: dict[pathlib.Path, str]) -> str:
    """One source for several wrong versions: texts are {patch: the patched source}."""
    right = split((ROOT / part).read_text())
    wrong = []
    for patch, text in texts.items():
        bodies = split(text).functions
        wrong += [(bodies.index(one), patch.stem, one.body)
                  for one in changed(right, split(text)) or []]
    return switched(right, wrong)


def switched(right: Split, wrong: list[tuple[int, str, str]]) -> str:
    """A source in which each function with wrong bodies, [(its number, name, body), ...], asks
    which of them it is to take. A compiler's errors are in the file "wrong NAME"."""
    bodies: list[list[str]] = [[] for _ in right.functions]
    for i, name, body in wrong:
        bodies[i].append(f'if (t2t::wrong_version == t2t::mistake("{name}"))\n'
                         f'#line 1 "wrong {name}"\n{body} else ')
    text = '#include "support/wrong_version.hpp"\n'
    for between, mistakes, function in zip(right.between, bodies, right.functions):
        body = function.body
        if mistakes and function.kind == "lambda":  # a lambda's type is that of its first return
            mistakes.insert(0, f"if (t2t::wrong_version == 0) {body} else ")
        if mistakes:
            body = "{ " + "".join(mistakes) + '\n#line 1 "right"\n' + body + " }"
        text += between + body
    return text + right.between[-1]


def main() -> None:
    """Names the patches that do not fit."""
    bad = []
    for patch in sorted((ROOT / "tests/wrong").glob("*/**/*.patch")):
        try:
            patched(part_of(patch), patch)
        except DoesNotFit as error:
            bad.append(str(error))
    sys.exit("\n".join(bad) or 0)
