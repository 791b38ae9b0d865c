"""What the reader has done so far: work/progress.json. It is written as a whole or not at all."""
import contextlib
import fcntl
import functools
import json
import os
import sys

from workbook import book, written

FILE = book.WORK / "progress.json"


def read():
    """What is known of each part, "NN_name/PART" -> facts. A file that is something else is told
    and counts as empty."""
    try:
        everything = json.loads(FILE.read_text())
        if all(isinstance(known, dict) for known in everything.values()):
            return everything
    except FileNotFoundError:
        return {}
    except OSError as error:
        tell_once(f"can't be read ({error.strerror}), so nothing counts as done")
        return {}
    except (ValueError, AttributeError, RecursionError):
        pass
    kept = FILE.with_suffix(".damaged")
    with contextlib.suppress(OSError):
        os.replace(FILE, kept)
    tell_once(f"is not as ./learn writes it. It is now {book.shown(kept)}, and nothing counts as "
              "done: ./learn check finds it out again")
    return {}


@functools.cache
def tell_once(what) -> None:
    print(f"learn: {book.shown(FILE)} {what}", file=sys.stderr)


def of(chapter: str, part: str):
    return read().get(f"{chapter}/{part}", {})


def note(chapter: str, part: str, **what) -> None:
    """Adds to what is known of a part. A folder that can't be written costs the progress, not the
    check."""
    try:
        book.WORK.mkdir(parents=True, exist_ok=True)
        with open(book.WORK / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            everything, fresh = read(), FILE.with_suffix(".fresh")
            everything.setdefault(f"{chapter}/{part}", {}).update(what)
            fresh.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
            os.replace(fresh, FILE)
    except OSError as error:
        tell_once(f"can't be written ({error.strerror}), so results and hints are not counted")


def is_as_checked(chapter: str, part: str) -> bool:
    """Whether the part is the one that was checked last: a later edit has another digest."""
    try:
        return of(chapter, part).get("digest") == written.read(chapter, part).digest
    except written.Unreadable:
        return False


def passes(chapter: str, part: str) -> bool:
    """Whether the part as it is now passed its checks."""
    return bool(of(chapter, part).get("passes")) and is_as_checked(chapter, part)
