"""Which of the book's own sources the reader has edited, and how to get them back: what fails then
may fail because of that.

In a clone, git knows. Elsewhere the sources are compared with those that were there when the book
was first built, of which building.sh keeps a copy in build/as_it_was.

    edited.py   prints the note for a terminal, if there is anything to note
"""
import functools
import subprocess

from workbook import book

COPY = book.ROOT / "build/as_it_was"
TOLD = 3  # files that are named


@functools.cache
def files():
    """Their paths from the book's folder."""
    told = _git("diff", "--name-only", "HEAD", "--", "chapters", "common", "tests")
    if told is not None:
        return [name for name in told.splitlines()
                if name.endswith((".cpp", ".hpp", ".cu", ".npy"))]
    olds = sorted(old for old in COPY.rglob("*") if old.is_file())
    return [name for old in olds if _differs(old, name := str(old.relative_to(COPY)))]


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


def note():
    """A sentence that names the edited files and how to get them back, or ""."""
    some = files()
    if not some:
        return ""
    names = ", ".join(some[:TOLD]) + f" and {len(some) - TOLD} more" * (len(some) > TOLD)
    has_git = _git("rev-parse", "HEAD") is not None
    back = "git checkout --" if has_git else f"cp build/as_it_was/{some[0]}"
    return f"Edited: {names}. To undo it: {back} {some[0]}"


def main() -> None:
    if text := note():
        book.say(text)
