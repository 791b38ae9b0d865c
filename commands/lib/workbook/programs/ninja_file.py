"""The file that ninja reads beside CMake's own: it takes in all that CMake builds, and adds to
it."""
import os
import re
import shlex

from workbook.book import BUILD
from workbook.programs import plan
from workbook.programs.cmake_commands import commands

RULES = """include build.ninja
pool runs
  depth = {}
rule compile
  command = $words
  depfile = $out.d
  description = Building $out
rule link
  command = $words
  description = Linking $out
rule run
  command = $words
  pool = runs
  description = Running $what
"""


class Writer:
    """Collects edges: what is built by a rule from what."""

    def __init__(self) -> None:
        self.lines = [RULES.format(os.cpu_count())]
        self.known: set[str] = set()

    def edge(self, rule, out, words, needs, **variables) -> None:
        if out in self.known:
            return
        self.known.add(out)
        names = " ".join(_escaped(need) for need in dict.fromkeys(map(str, needs)))
        self.lines.append(f"build {_escaped(out)}: {rule} {names}".rstrip())
        if words:
            self.lines.append(f"  words = {shlex.join(map(str, words)).replace('$', '$$')}")
        self.lines += [f"  {name} = {value}" for name, value in variables.items()]

    def phony(self, name, needs) -> None:
        if name not in commands():
            self.edge("phony", name, [], needs)

    def compile(self, out, source, words) -> None:
        headers = [output for output in commands() if output.endswith(("gch", "pch")) and
                   {f"{BUILD}/{output}", f"{BUILD}/{output}".removesuffix(".gch")} & set(words)]
        at = words.index("-o")
        notes_needs = ["-MD", "-MT", str(out), "-MF", f"{out}.d"]
        self.edge("compile", str(out), [*words[:at], *notes_needs, *words[at:]], [source, *headers])

    def link(self, out, words) -> None:
        needs = [word for word in words if word in commands() or word in self.known]
        self.edge("link", out, words, needs)

    def run(self, out, what, words, needs) -> None:
        self.edge("run", out, words, needs, what=what)

    def write(self) -> None:
        plan.write(BUILD / "programs.ninja", "\n".join(self.lines) + "\n")


def _escaped(name):
    return re.sub(r"([$ :])", r"$\1", str(name))
