#!/usr/bin/env python3
"""Wrong versions of a part that are compiled together.

Most patches change nothing but bodies of functions. From such patches of one part a single source is made, in which a
function with mistakes begins with the question which of them this run is to make (tests/support/wrong_version.hpp):

    switches.py write PART OUT PATCH ...   writes that source
    switches.py plan                       prints, as CMake, the parts and mistakes of every folder of patches: those
                                           to be compiled together, and those that need a program of their own
"""
import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "commands/lib/workbook"))

import source  # noqa: E402


@dataclasses.dataclass
class Split:
    """A source cut into the bodies of its functions, and what stands between them."""
    between: list
    bodies: list

    def heads(self):
        """What stands between the bodies, without comments and line ends."""
        return [" ".join(_without_comments(text).split()) for text in self.between]


def split(text):
    between, bodies, at = [], [], 0
    for _, brace, end in source._spans(source.without_comments(text)):
        between.append(text[at:brace])
        bodies.append(text[brace:end])
        at = end
    return Split([*between, text[at:]], bodies)


def _without_comments(text):
    return re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*', lambda m: m.group(1) or "", text)


def changed(right, wrong):
    """The numbers of the functions whose bodies differ; None where more differs, or where the compiler may run one."""
    if right.heads() != wrong.heads():
        return None
    numbers = [i for i, (a, b) in enumerate(zip(right.bodies, wrong.bodies)) if a != b]
    if any(re.search(r"\bconst(expr|eval)\b", right.between[i].rpartition("}")[2]) for i in numbers):
        return None
    return numbers


def part_of(patch):
    return re.search(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.M).group(1)


def patched(part, patch):
    made = subprocess.run(["patch", "--quiet", "--fuzz=0", "--output=-", "--reject-file=/dev/null", part, str(patch)],
                          cwd=ROOT, capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"{patch.relative_to(ROOT)} does not apply to {part}: {made.stdout}{made.stderr}")
    return made.stdout


def write(part, out, patches):
    right = split((ROOT / part).read_text())
    pathlib.Path(out).write_text(switched(right, wrong_bodies(part, right, patches)))


def wrong_bodies(part, right, patches):
    """[(number of the function, name of the mistake, its body), ...]"""
    found = []
    for patch in patches:
        wrong = split(patched(part, patch))
        for i in changed(right, wrong) or sys.exit(f"{patch}: changes more than bodies of functions now; configure anew"):
            found.append((i, patch.stem, wrong.bodies[i]))
    return found


def switched(right, wrong, turned=()):
    """A source in which each function with wrong bodies asks which of them it is to take. A compiler's errors are in
    the file "wrong NAME". Turned, [(number of the function, form, body), ...], are bodies for other_form.hpp."""
    bodies = [[] for _ in right.bodies]
    for i, form, body in turned:
        bodies[i].append(f'if (t2t::turned_form == t2t::mistake("{form}") && t2t::turned_calls == 0) {{ const t2t::Turned turned; {body} }} else ')
    for i, name, body in wrong:
        bodies[i].append(f'if (t2t::makes(t2t::mistake("{name}")))\n#line 1 "wrong {name}"\n{body} else ')
    text = f'#include "support/{"other_form" if turned else "wrong_version"}.hpp"\n'
    for between, mistakes, body in zip(right.between, bodies, right.bodies):
        if mistakes and re.search(r"= \[[^]]*\]\([^()]*\)\s*$", between):  # a lambda's type is that of its first return
            mistakes.insert(0, f"if (t2t::wrong_version == 0) {body} else ")
        text += between + ("{ " + "".join(mistakes) + '\n#line 1 "right"\n' + body + " }" if mistakes else body)
    return text + right.between[-1]


def plan():
    for folder in sorted(one for one in (ROOT / "tests/wrong").iterdir() if one.is_dir()):
        together, alone = {}, []
        for patch in sorted(folder.glob("*.patch")):
            part = part_of(patch)
            is_alone = part.endswith(".cu") or changed(split((ROOT / part).read_text()), split(patched(part, patch))) is None
            (alone if is_alone else together.setdefault(part, [])).append(patch.stem)
        print(f"set(T2T_PARTS_{folder.name} {' '.join(together)})")
        print(f"set(T2T_ALONE_{folder.name} {' '.join(alone)})")
        for part, names in together.items():
            print(f"set(T2T_MISTAKES_{folder.name}_{part.replace('/', '_')} {' '.join(names)})")


if __name__ == "__main__":
    if sys.argv[1] == "plan":
        plan()
    else:
        write(sys.argv[2], sys.argv[3], [pathlib.Path(name) for name in sys.argv[4:]])
