"""Which wrong versions of a folder of tests/wrong are compiled together, which need a source each,
and which can't be made: those that no longer fit, since a source was changed, and those of
instructions that this processor lacks. The plan is made when it is asked for, and kept in the build
folder until a patch or a source changes."""
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess

from workbook import book
from workbook.programs import switches

FOLDERS = book.ROOT / "tests/wrong"


@dataclasses.dataclass
class Plan:
    together: dict  # part -> names of mistakes that one source can hold
    alone: dict  # name of a mistake -> its part
    skipped: dict  # name of a mistake -> the part, which its patch does not fit
    elsewhere: dict  # name of a mistake -> the instructions that the programs are not built with


def folders():
    """Every folder of wrong versions: the chapters', and those of the CUDA stand-in."""
    return sorted({patch.parent.name for patch in FOLDERS.glob("*/*.patch")})


def patches_in(folder):
    return sorted((FOLDERS / folder).glob("*.patch"))


def source_of(folder, name):
    """Where the source with wrong versions lies: NAME is a part's, or that of a mistake that needs
    one of its own."""
    return book.BUILD / "wrong" / folder / f"{name}.cpp"


@functools.cache
def of(folder):
    kept, key = book.BUILD / "wrong" / folder / "plan.json", _key(folder)
    if kept.exists() and (known := json.loads(kept.read_text())).pop("key") == key:
        return Plan(**known)
    made = _made(folder)
    write(kept, json.dumps({"key": key, **dataclasses.asdict(made)}))
    return made


def _key(folder):
    patches, files = patches_in(folder), (switches.part_of, switches.file_of)
    parts = sorted({book.ROOT / of_patch(patch) for patch in patches for of_patch in files})
    tools = map(pathlib.Path, (switches.__file__, switches.cpp.__file__, __file__))
    made = hashlib.sha256(" ".join(_cached().values()).encode())
    for file in [*patches, *filter(pathlib.Path.exists, parts), *tools]:
        made.update(b"\0".join([str(file).encode(), file.read_bytes(), b""]))
    return made.hexdigest()


def _made(folder):
    made, found = Plan({}, {}, {}, {}), {}
    patches = patches_in(folder)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = dict(zip(patches, pool.map(_patched, patches)))
    for patch, text in texts.items():
        part = switches.part_of(patch)
        needed = re.search(r"^Only with (.*)\.$", patch.read_text(), re.M)
        if needed and not _instructions() & set(needed.group(1).split(" or ")):
            made.elsewhere[patch.stem] = needed.group(1)
        elif text is None:
            made.skipped[patch.stem] = part
        elif switches.is_alone(part, text):
            made.alone[patch.stem] = part
            write(source_of(folder, patch.stem), text)
        else:
            found.setdefault(part, {})[patch] = text
    for part, some in found.items():
        made.together[part] = [patch.stem for patch in some]
        write(source_of(folder, pathlib.Path(part).stem), switches.together(part, some))
    return made


def _cached():
    """The compiler and the processor that the programs are built for."""
    cache = (book.BUILD / "CMakeCache.txt").read_text()
    return {name: re.search(rf"^{name}:\w+=(.*)$", cache, re.M).group(1)
            for name in ("CMAKE_CXX_COMPILER", "T2T_ARCH")}


@functools.cache
def _instructions():
    """__AVX2__ and so on: what the compiler may use, by the macros that it defines."""
    compiler, arch = _cached().values()
    command = [compiler, f"-march={arch}", "-dM", "-E", "-x", "c++", "/dev/null"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^#define (\w+) 1$", told, re.M))


def _patched(patch: pathlib.Path):
    try:
        return switches.patched(switches.part_of(patch), patch)
    except switches.DoesNotFit:
        return None


def write(path, text) -> None:
    """Writes a file if it is another, so that what was built of it stays current."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
