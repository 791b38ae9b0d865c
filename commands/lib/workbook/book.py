"""Where the book's folders and the reader's are, chapters and parts, messages, and the build."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from typing import NoReturn

ROOT = pathlib.Path(os.path.abspath(__file__)).parents[3]
WORK = pathlib.Path(os.environ.get("T2T_WORK", ROOT / "work"))
BUILD = pathlib.Path(os.environ.get("T2T_BUILD", ROOT / "build/release"))


signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ./learn list | head
signal.signal(signal.SIGINT, signal.default_int_handler)  # building.sh starts it without Ctrl-C
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends what was started
for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
    stream.reconfigure(errors="replace")  # a name or a text may hold bytes that are not UTF-8
_hook = sys.excepthook
sys.excepthook = lambda kind, *more: None if kind is KeyboardInterrupt else _hook(kind, *more)


def die(*words: str) -> NoReturn:
    print(f"learn: {' '.join(words)}", file=sys.stderr)
    sys.exit(1)


def width():
    return min(shutil.get_terminal_size((80, 24)).columns, 100)


def bold(text):
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return f"\033[1m{text}\033[0m" if colours else text


def say(text, indent=0, file=None) -> None:
    """Prints a paragraph, wrapped to the terminal; lines of their own stay so."""
    for line in text.splitlines():
        lead = " " * (indent + len(line) - len(line.lstrip()))
        print("\n".join(textwrap.wrap(line.strip(), width(), initial_indent=lead,
                                      subsequent_indent=lead, break_long_words=False,
                                      break_on_hyphens=False)), file=file)


def at_work(what) -> None:
    """A line for whoever waits at a terminal; "" ends it."""
    if sys.stderr.isatty():
        print(f"\r\033[K{'  ' * bool(what)}{what}", end="", file=sys.stderr, flush=True)


def chapters():
    return sorted(folder.name for folder in (ROOT / "chapters").glob("[0-9][0-9]_*"))


def chapter(word):
    """03_rope, from "3", "03", "rope" or "03_rope"."""
    for name in chapters():
        number, _, short = name.partition("_")
        if word in (name, short) or re.fullmatch(rf"0{{0,3}}{int(number)}", word, re.A):
            return name
    die(f"there is no chapter '{word}'; the chapters are: {' '.join(chapters())}")


def parts_named(name, key):
    """The parts that a line of the chapter's file about lists."""
    about = (ROOT / "chapters" / name / "about").read_text()
    line = re.search(rf"^{key}: (.*)$", about, re.M)
    return line.group(1).split() if line else []


def parts_to_write(name):
    """What the chapter asks its reader to write, in this order."""
    return parts_named(name, "write")


def chapters_and_parts(words, of_all=parts_to_write):
    """[(chapter, [part, ...]), ...] from "3", "3 rope" or "2 rms_norm 3"; without a part, all of
    the chapter's."""
    chosen = []
    names = {name.partition("_")[2] for name in chapters()}
    for word in words:
        if chosen and word in parts_to_write(chosen[-1][0]):
            chosen[-1][1].append(word)
        elif chosen and word not in names and not re.fullmatch(r"[0-9]+|[0-9][0-9]_\w+", word):
            refuse_part(chosen[-1][0], word)
        else:
            chosen.append((chapter(word), []))
    return [(name, parts or of_all(name)) for name, parts in chosen]


def refuse_part(name, word) -> NoReturn:
    die(f"chapter {name} has no part '{word}' to write; it has: {', '.join(parts_to_write(name))}")


def ours(name, part: str):
    """The book's own source of a part: C++, or a CUDA kernel."""
    folder = ROOT / "chapters" / name
    found = [file for ending in ("cpp", "cu") for file in folder.rglob(f"{part}.{ending}")]
    return found[0] if found else folder / f"{part}.cpp"


def is_kernel(name, part: str):
    return ours(name, part).suffix == ".cu"


def header(name, part: str):
    """What declares the part's functions. All kernels of a chapter share a header."""
    own = ours(name, part).with_suffix(".hpp")
    return own if own.exists() else next(shared for above in own.parents
                                         if (shared := above / "kernels.hpp").exists())


def checks_of(name, part: str):
    """The program that runs the part's checks on ours."""
    return f"{name}_kernels_test" if is_kernel(name, part) else f"{name}_test"


def theirs(name, part: str):
    """The reader's source of a part."""
    return WORK / name / ours(name, part).name


def begun(name, part: str) -> bool:
    """Whether anything stands where the reader writes the part, a broken link included."""
    return os.path.lexists(theirs(name, part))


def written(name):
    """The chapter's parts that the reader has begun."""
    return [part for part in parts_to_write(name) if begun(name, part)]


def shown(path):
    """A path as short as it can be said here."""
    here = pathlib.Path.cwd()
    for base, prefix in ((here, ""), (ROOT, "" if here == ROOT else f"{ROOT}/")):
        if path.is_relative_to(base):
            return prefix + str(path.relative_to(base))
    return str(path)


def bash(script, *words):
    """Runs a function of commands/lib/building.sh or written.sh; its exit status."""
    sys.stdout.flush()
    script = f'source "{ROOT}/commands/lib/written.sh"; {script}'
    return subprocess.call(["bash", "-euo", "pipefail", "-c", script, "learn", *words], cwd=ROOT)


def build(*targets) -> None:
    """Builds these targets as the other commands do, or ends."""
    if bash('compile "$@"', *targets):
        sys.exit(1)
