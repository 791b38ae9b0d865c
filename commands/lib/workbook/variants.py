"""Our part as it would be with one mistake: the recorded ones, and small changes of our own (changes.py). All are compiled
as one program, in which the environment says which it makes.
"""
import dataclasses
import pathlib
import re
import resource
import subprocess

import changeable
import changes
import graph
import house
import plan
import source
from plan import switches

MOST = 300_000  # characters of bodies that are compiled at a time
ROUNDS = 12
SECONDS = 180  # for a compiler


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str  # a mistake's, or "change 17"

    @property
    def environment(self):
        return {"T2T_WRONG": self.name}


@dataclasses.dataclass(frozen=True)
class Changed:
    """What a change is, for words."""
    function: str
    line: int
    was: str
    then: str
    now: str  # what was written


def exist(chapter, part):
    """Kernels have no variants: their checks take the stand-in's time."""
    return not house.is_kernel(chapter, part)


def split_of(chapter, part):
    """Our source, cut into bodies."""
    return cut(house.ours(chapter, part).read_text())


def cut(text):
    """A source, cut into bodies. Functions that the compiler may run can't ask which mistake they make, so a constant
    function of the file becomes one that isn't."""
    return switches.split(re.sub(r"^static constexpr auto (\w+ = \[)", r"static const auto \1", text, flags=re.M))


def recorded(chapter, part, right):
    """The bodies with the recorded mistakes of this part."""
    path, found = house.ours(chapter, part), []
    plain, where = switches.split(path.read_text()), str(path.relative_to(house.ROOT))
    for name in plan.of(chapter).together.get(where, []):
        patch = house.ROOT / "tests/wrong" / chapter / f"{name}.patch"
        found += switches.wrong_bodies(plain, {patch: switches.patched(where, patch)})
    return found


def changed_bodies(right):
    """The bodies with small changes, and what each change is: [(number of the function, name, body), ...], {name: Changed}."""
    bodies, told, line = [], {}, 1
    text = "".join(a + b for a, b in zip(right.between, [*right.bodies, ""]))
    names = changeable.Names.of(text, dict.fromkeys(filter(None, map(_function, right.between))))
    for i, (between, body) in enumerate(zip(right.between, right.bodies)):
        line += between.count("\n")
        if function := _function(between):
            for change in changes.of(_head(between), body, names):
                name = f"change {len(told)}"
                bodies.append((i, name, change.of(body)))
                told[name] = Changed(function, line + body.count("\n", 0, change.begin), change.was, change.then, change.now)
        line += body.count("\n")
    return bodies, told


def noting_calls(right):
    """Our source, in which each function notes that it is called."""
    text = '#include "support/wrong_version.hpp"\n'
    for between, body in zip(right.between, right.bodies):
        name = _function(between)
        text += between + (f'{{ t2t::note_call("{name}"); {body} }}' if name else body)
    return text + right.between[-1]


def _function(between):
    """The name of the function whose body follows, or None if it can't ask or note anything since the compiler may run it."""
    head = _head(between)
    if re.search(r"\bconst(expr|eval)\b", head):
        return None
    return source._name(head) or (re.search(r"(\w+) =", head) or [0, "the file"])[1]


def _head(between):
    """What stands directly before a body."""
    code = source.without_comments(between) + "{}"
    begin, brace, _ = ([(0, 0, 0)] + list(source._spans(code)))[-1]
    return code[begin:brace]


def build_noting_calls(chapter, part, folder):
    """The chapter's checks with our part, which notes its calls; or None."""
    made = pathlib.Path(folder, f"{part}.cpp")
    made.write_text(noting_calls(split_of(chapter, part)))
    return linked(chapter, command(chapter, part, made), made)


def build(chapter, part, right, bodies, told, folder):
    """Compiles those bodies that compile, MOST characters of them at a time, and links each with the chapter's checks:
    {name of a variant: program}."""
    programs, some, size = {}, [], 0
    for i, one in enumerate(bodies):
        some, size = [*some, one], size + len(one[2])
        if size > MOST or i + 1 == len(bodies):
            made = pathlib.Path(folder, str(i), f"{part}.cpp")
            made.parent.mkdir()
            words = command(chapter, part, made)
            names = _those_that_compile(words, made, right, some, told)
            program = linked(chapter, words, made) if names else None
            programs |= dict.fromkeys(names, program) if program else {}
            some, size = [], 0
    return programs


def _those_that_compile(words, made, right, bodies, told):
    """Writes a source with these bodies, without those that do not compile: the names of the others. A template is told of
    once, whatever else uses it: so in later rounds all that write the same go with one that is told of."""
    for turn in range(ROUNDS):
        made.write_text(switches.switched(right, bodies))
        said = run(words, "-fsyntax-only")
        if said.returncode == 0:
            return list(dict.fromkeys(name for _, name, _ in bodies))
        bad = told_of(said.stderr)
        now = {told[name].now for name in bad if name in told and turn > 0}
        functions = {i for i, name, _ in bodies if name in bad and turn == ROUNDS - 2}
        bodies = [(i, name, body) for i, name, body in bodies
                  if name not in bad and (name not in told or (told[name].now not in now and i not in functions))]
        if not bad:
            break
    return []


def told_of(errors):
    """The variants of which a compiler's errors tell. After a bracket too few it takes for wrong what is right."""
    understood = re.split(r"error: expected (?:unqualified-id before \W+else|\W+}\W+before|declaration)", errors)[0]
    return set(re.findall(r"^(?:In file included from )?wrong ([\w ]+):\d+", understood, re.M))


def run(words, *more, running=None):
    """Runs a compiler, which may take much time and memory for so many bodies. Its process is added to the running ones, if
    they are given: it can be ended as a group."""
    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    process = subprocess.Popen([*words, *more], cwd=house.BUILD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=limits, start_new_session=running is not None)
    if running is not None:
        running.append(process)
    try:
        said = process.communicate()
    finally:
        process.kill()  # if this is interrupted
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def linked(chapter, words, made):
    """Compiles a source and links it with the chapter's checks: the program, or None."""
    if run(words).returncode != 0:
        return None
    return graph.linked(f"{chapter}_test", made.parent, made.with_suffix(".o"))


def command(chapter, part, made):
    """How the chapter's checks are compiled, for this file."""
    checks = next(output for output in graph.commands() if f"/{chapter}_test.dir/" in output and output.endswith(".o"))
    folder = house.ours(chapter, part).parent
    return graph.compilation(checks, made, made.with_suffix(".o"), "-w", "-fmax-errors=0", f"-I{folder}")
