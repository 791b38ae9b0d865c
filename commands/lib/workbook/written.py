"""The reader's parts as texts: read once, and built from what was read, so that a verdict is about these bytes.

commands/lib/written.sh tells why they are not built where they lie.
"""
import contextlib
import dataclasses
import functools
import hashlib
import pathlib
import posixpath
import re
import tempfile

import house


@dataclasses.dataclass
class Text:
    """What a part is made of: its file, and those of the reader's files that it includes."""
    chapter: str
    part: str
    files: dict  # the name in work/ -> its bytes; the part's own file is the first

    @functools.cached_property
    def digest(self):
        """What the part was when it was checked: a later edit has another."""
        own, *included = self.files.items()
        made = hashlib.sha256(own[1])
        for name, text in sorted(included):
            made.update(f"\n{name} {len(text)}\n".encode() + text)
        return made.hexdigest()[:16]

    @property
    def own(self):
        """The part's own file, as text."""
        return next(iter(self.files.values())).decode(errors="replace")


def read(chapter, part):
    """The part as it is now."""
    files, waiting = {}, [f"{chapter}/{house.theirs(chapter, part).name}"]
    while waiting:
        name = waiting.pop()
        files[name] = (house.WORK / name).read_bytes()
        for included in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', files[name].decode(errors="replace"), re.M):
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), included))
            if not beside.startswith(("../", "/")) and beside not in files and (house.WORK / beside).is_file():
                waiting.append(beside)
    return Text(chapter, part, files)


@dataclasses.dataclass
class Build:
    good: bool
    program: pathlib.Path  # a copy of the first target, which no other build changes
    said: str  # by the compiler and the linker


@contextlib.contextmanager
def built(texts, *targets, listed=None):
    """Builds the targets with these texts as the reader's parts. What is listed goes into the programs of --mine."""
    folder = house.ROOT / "build"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mine-", dir=folder) as made:
        made = pathlib.Path(made)
        (made / "texts").mkdir()
        for name, content in {name: content for text in texts for name, content in text.files.items()}.items():
            copy = made / "texts" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(_named(house.WORK / name) + content.removeprefix(b"\xef\xbb\xbf"))
        if listed is not None:
            (made / "mine.cmake").write_text(listed)
        good = house.bash('in_turn compile_written "$@"', made, *targets).returncode == 0
        log = made / "log"
        yield Build(good, made / "program", log.read_text(errors="replace") if log.exists() else "")


def _named(path):
    """A line after which the compiler names the reader's file and its lines, not the copy."""
    path = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{path}"\n'.encode()
