"""./learn watch: a verdict at each save."""
import argparse
import sys
import time

from workbook import book
from workbook.commands import check
from workbook.verdict import telling


def main(*words) -> None:
    parser = argparse.ArgumentParser(prog="./learn watch")
    parser.add_argument("what", nargs="*", metavar="NN [part ...]")
    pairs = check.parts(parser.parse_args(words).what)
    names = ", ".join(book.shown(book.theirs(*pair)) for pair in pairs)
    print(f"Watching {names}. Ctrl-C ends it.")
    seen: dict = {}
    try:
        while True:
            tell([pair for pair in pairs if is_saved(pair, seen)])
            time.sleep(0.2)
    except KeyboardInterrupt:
        print()


def is_saved(pair, seen) -> bool:
    """Whether the part was saved since it was last seen."""
    try:
        now = book.theirs(*pair).stat()
    except OSError:
        return False  # an editor may be just replacing it
    before, seen[pair] = seen.get(pair), (now.st_mtime_ns, now.st_size, now.st_ino)
    return before != seen[pair]


def tell(pairs) -> None:
    """Checks these parts. The verdict comes last, so that it stays in sight."""
    if pairs and sys.stdout.isatty():
        print("\033[H\033[2J", end="")
    for pair in pairs:
        began = time.monotonic()
        print("\n" + "-" * min(book.width(), 60))
        verdict = check.judged(*pair)
        print(f"{time.monotonic() - began:.1f} s after the save was seen; Ctrl-C ends")
        telling.tell_help(verdict)
        print()
        telling.tell_verdict(verdict)
        sys.stdout.flush()
