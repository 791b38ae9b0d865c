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

from workbook import book

LARGEST = 1 << 20  # bytes of a file


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
        """The part's own file, as text, with plain ends of lines."""
        return next(iter(self.files.values())).decode(errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")


class Unreadable(Exception):
    """A sentence that says why a part can't be read."""


def _bytes_of(name):
    """What a file in work/ holds, if it is the text of a part."""
    path = book.WORK / name
    try:
        kind = ("a link to a file that is not there" if not path.exists() else "a folder" if path.is_dir() else
                "" if path.is_file() else "a pipe or a device")
        if kind:
            raise Unreadable(f"{book.shown(path)} is {kind}, and a part is a file. Move it away, and begin again.")
        if path.stat().st_size > LARGEST:
            raise Unreadable(f"{book.shown(path)} has {path.stat().st_size:,} bytes; a part may have up to {LARGEST:,}.")
        text = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{book.shown(path)} can't be read: {error.strerror}.") from error
    if b"\0" in text:
        wide = text.startswith((b"\xff\xfe", b"\xfe\xff")) or text.count(b"\0") > len(text) // 3
        raise Unreadable(f"{book.shown(path)} is in UTF-16, and the compiler wants UTF-8. Save it in that encoding." if wide else
                         f"{book.shown(path)} is not text: it holds bytes of value 0.")
    return text


def read(chapter: str, part: str):
    """The part as it is now, or Unreadable."""
    files, waiting = {}, [f"{chapter}/{book.theirs(chapter, part).name}"]
    while waiting:
        name = waiting.pop()
        files[name] = _bytes_of(name)
        for included in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', files[name].decode(errors="replace"), re.M):
            if included.endswith((".cpp", ".cu")) and (book.ROOT / "chapters" / included).is_file():
                raise Unreadable(f"{book.shown(book.WORK / name)} includes our chapters/{included}, so ours would be judged.")
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), included))
            if not beside.startswith(("../", "/")) and beside not in files and (book.WORK / beside).is_file():
                waiting.append(beside)
    text = Text(chapter, part, files)
    if not text.own.strip():
        raise Unreadable(f"{book.shown(book.theirs(chapter, part))} is empty. Remove it, and begin again.")
    return text


@dataclasses.dataclass
class Build:
    good: bool
    program: pathlib.Path  # a copy of the first target, which no other build changes
    log: str
    said: str  # the first error
    limit: str  # a sentence, if the compiler was stopped because of its limits


@contextlib.contextmanager
def built(texts, *targets, listed=None):
    """Builds the targets with these texts as the reader's parts. What is listed goes into the programs of --mine."""
    folder = book.ROOT / "build"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mine-", dir=folder) as made:
        made = pathlib.Path(made)
        (made / "texts").mkdir()
        for name, content in {name: content for text in texts for name, content in text.files.items()}.items():
            copy = made / "texts" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(_named(book.WORK / name) + content.removeprefix(b"\xef\xbb\xbf"))
        if listed is not None:
            (made / "mine.json").write_text(listed)
        good = book.bash('in_turn compile_written "$@"', made, *targets).returncode == 0
        log, said = (f.read_text(errors="replace") if f.exists() else "" for f in (made / "log", made / "error"))
        yield Build(good, made / "program", log, said, "" if good else limit_in(log))


def limit_in(log):
    """What to say of a compiler that was stopped by the limits of commands/lib/written.sh, or ""."""
    if re.search(r"CPU time limit exceeded", log):
        return "The compiler was stopped, since it had computed for 60 seconds: something in the file makes it work without end, like a template."
    if re.search(r"out of memory allocating|virtual memory exhausted|Cannot allocate memory|memory exhausted", log):
        return "The compiler was stopped, since it wanted more than 4 GiB of memory: something in the file makes it work without end, like a template."
    return ""


def keep_warnings(text, build) -> None:
    """Keeps what the compiler said of a text beside its copy: the next build does not compile it again."""
    if "Building" in build.log and build.good:
        _kept(text).write_text(f"{text.digest}\n{build.log}")


def warnings(text):
    """[("file:line", what), ...]: the compiler's warnings of the reader's files in this text."""
    kept = _kept(text)
    digest, _, log = kept.read_text(errors="replace").partition("\n") if kept.exists() else ("", "", "")
    pattern = rf"^{re.escape(str(book.WORK))}/.*?([^/\n]+:\d+):\d+: warning: (.*)$"
    return re.findall(pattern, log, re.M) if digest == text.digest else []


def _kept(text):
    return book.BUILD / "mine" / text.chapter / f"{text.part}.said"


def _named(path):
    """A line after which the compiler names the reader's file and its lines, not the copy."""
    path = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{path}"\n'.encode()
