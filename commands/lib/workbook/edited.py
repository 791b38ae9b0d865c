"""Which of the book's own sources the reader has edited, and how to get them back: what fails then may fail because of that.

In a clone, git knows. Elsewhere the sources are compared with those that were there when the book was first built, of which
building.sh keeps a copy in build/as_it_was.

    edited.py   prints the note for a terminal, if there is anything to note
"""
import difflib
import functools
import subprocess

from workbook import book

FOLDERS = ("chapters", "common", "tests")
SOURCES = (".cpp", ".hpp", ".cu", ".npy")
COPY = book.ROOT / "build/as_it_was"
TOLD = 3  # files that are named


@functools.cache
def files():
    """Their paths from the book's folder."""
    told = _git("diff", "--name-only", "HEAD", "--", *FOLDERS)
    if told is not None:
        return [name for name in told.splitlines() if name.endswith(SOURCES)]
    return sorted(name for old in COPY.rglob("*") if old.is_file() and _differs(old, name := str(old.relative_to(COPY))))


def _git(*words):
    """What git says of the book's own repository, or None if there is none, or no git."""
    if not (book.ROOT / ".git").exists():
        return None
    try:
        told = subprocess.run(["git", *words], cwd=book.ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return told.stdout if told.returncode == 0 else None


def _differs(old, name):
    new = book.ROOT / name
    return not new.exists() or new.read_bytes() != old.read_bytes()


def original(name):
    """An edited file as it was."""
    told = _git("show", f"HEAD:{name}")
    return (COPY / name).read_text() if told is None else told


def changes(name):
    """[(line, lines that are gone, lines in their place), ...] of an edited file, without blanks at their ends and empty lines."""
    def lines(text):
        return [line.strip() for line in text.splitlines()]
    was, now = lines(original(name)), lines((book.ROOT / name).read_text())
    matched = difflib.SequenceMatcher(None, was, now, autojunk=False)
    return [(j + 1, tuple(filter(None, was[i:k])), tuple(filter(None, now[j:m])))
            for how, i, k, j, m in matched.get_opcodes() if how != "equal"]


def note():
    """A sentence that names the edited files and how to get them back, or ""."""
    some = files()
    if not some:
        return ""
    names = ", ".join(some[:TOLD]) + (f" and {len(some) - TOLD} more" if len(some) > TOLD else "")
    back = f"cp build/as_it_was/{some[0]} {some[0]}" if _git("rev-parse", "HEAD") is None else f"git checkout -- {some[0]}"
    return f"Edited: {names}. To undo it: {back}"


def main() -> None:
    if text := note():
        book.say(text)
