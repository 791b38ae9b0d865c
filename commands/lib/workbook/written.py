"""The reader's parts as texts: read once, and built from what was read, so that a verdict is about
these bytes.

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
    may_race: bool = False  # whether what the compiler made of it could have races between threads

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
        text = next(iter(self.files.values())).decode(errors="replace")
        return text.removeprefix("\ufeff").replace("\r\n", "\n")


class Unreadable(Exception):
    """A sentence that says why a part can't be read."""


def _bytes_of(name):
    """What a file in work/ holds, if it is the text of a part."""
    path = book.WORK / name
    shown = book.shown(path)
    try:
        if not path.is_file():
            kind = ("a link to a file that is not there" if not path.exists() else
                    "a folder" if path.is_dir() else "a pipe or a device")
            raise Unreadable(f"{shown} is {kind}, and a part is a file. Move it away, and begin "
                             "again.")
        if (size := path.stat().st_size) > LARGEST:
            raise Unreadable(f"{shown} has {size:,} bytes; a part may have up to {LARGEST:,}.")
        text = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{shown} can't be read: {error.strerror}.") from error
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or text.count(b"\0") > len(text) // 3:
        raise Unreadable(f"{shown} is in UTF-16, and the compiler wants UTF-8. Save it in that "
                         "encoding.")
    if b"\0" in text:
        raise Unreadable(f"{shown} is not text: it holds bytes of value 0.")
    return text


def read(chapter: str, part: str):
    """The part as it is now, or Unreadable."""
    files, waiting = {}, [f"{chapter}/{book.theirs(chapter, part).name}"]
    while waiting:
        name = waiting.pop()
        files[name] = _bytes_of(name)
        text = files[name].decode(errors="replace")
        for included in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', text, re.M):
            if (included.endswith((".cpp", ".cu")) and
                    (book.ROOT / "chapters" / included).is_file()):
                raise Unreadable(f"{book.shown(book.WORK / name)} includes our "
                                 f"chapters/{included}, so ours would be judged.")
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), included))
            if (not beside.startswith(("../", "/")) and beside not in files and
                    (book.WORK / beside).is_file()):
                waiting.append(beside)
    whole = Text(chapter, part, files)
    if not whole.own.strip():
        raise Unreadable(f"{book.shown(book.theirs(chapter, part))} is empty. Remove it, and begin "
                         "again.")
    return whole


@dataclasses.dataclass
class Build:
    good: bool
    program: pathlib.Path  # a copy of the first target, which no other build changes
    log: str
    said: str  # the first error
    limit: str  # a sentence, if the compiler was stopped because of its limits


@contextlib.contextmanager
def built(texts, *targets, listed=None):
    """Builds the targets with these texts as the reader's parts. What is listed goes into the
    programs of --mine."""
    folder = book.ROOT / "build"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mine-", dir=folder) as room:
        made = pathlib.Path(room)
        (made / "texts").mkdir()
        for name, content in (one for text in texts for one in text.files.items()):
            copy = made / "texts" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            # The compiler names the reader's file and its lines, not the copy.
            path = str(book.WORK / name).replace("\\", "\\\\").replace('"', '\\"')
            copy.write_bytes(f'#line 1 "{path}"\n'.encode() + content.removeprefix(b"\xef\xbb\xbf"))
        if listed is not None:
            (made / "mine.json").write_text(listed)
        good = book.bash('in_turn compile_written "$@"', room, *targets) == 0
        log, said = (f.read_text(errors="replace") if f.exists() else ""
                     for f in (made / "log", made / "error"))
        yield Build(good, made / "program", log, said, "" if good else limit_in(log))


def limit_in(log):
    """What to say of a compiler that was stopped by the limits of commands/lib/written.sh, or
    ""."""
    for words, why in ((r"CPU time limit exceeded", "it had computed for 60 seconds"),
                       (r"out of memory allocating|virtual memory exhausted|memory exhausted|"
                        r"Cannot allocate memory", "it wanted more than 4 GiB of memory")):
        if re.search(words, log):
            return (f"The compiler was stopped, since {why}: something in the file makes it work "
                    "without end, like a template.")
    return ""


def keep_warnings(text, build) -> None:
    """Keeps what the compiler said of a text beside its copy: the next build does not compile it
    again."""
    if "Building" in build.log:
        _kept(text).write_text(f"{text.digest}\n{build.log}")


def warnings(text):
    """[("file:line", what), ...]: the compiler's warnings of the reader's files in this text."""
    kept = _kept(text)
    digest, _, log = (kept.read_text(errors="replace") if kept.exists() else "").partition("\n")
    pattern = rf"^{re.escape(str(book.WORK))}/.*?([^/\n]+:\d+):\d+: warning: (.*)$"
    return re.findall(pattern, log, re.M) if digest == text.digest else []


def _kept(text):
    return book.BUILD / "mine" / text.chapter / f"{text.part}.said"
