"""What the reader has done so far: work/progress.json. It is written as a whole or not at all."""
import contextlib
import datetime
import fcntl
import json
import os

import written
from house import WORK, theirs

FILE = WORK / "progress.json"


def read():
    try:
        return json.loads(FILE.read_text())
    except (OSError, ValueError):
        return {}


def of(chapter, part):
    return read().get(f"{chapter}/{part}", {})


def note(chapter, part, **what):
    """Adds to what is known of a part. A folder that can't be written costs the progress, not the check."""
    with contextlib.suppress(OSError), _alone():
        everything = read()
        everything.setdefault(f"{chapter}/{part}", {}).update(what, when=now())
        fresh = FILE.with_suffix(".fresh")
        fresh.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
        os.replace(fresh, FILE)


@contextlib.contextmanager
def _alone():
    with open(WORK / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def now():
    return datetime.datetime.now().strftime("%Y-%m-%d %H:%M")


def digest(chapter, part):
    """That of the part as it is now."""
    return written.read(chapter, part).digest


def passes(chapter, part):
    """Whether the part as it is now passed its checks."""
    known = of(chapter, part)
    return bool(known.get("passes")) and theirs(chapter, part).is_file() and known.get("digest") == digest(chapter, part)
