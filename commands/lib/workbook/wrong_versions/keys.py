"""When a wrong version is known to be rejected: its key.

tests/wrong/NN_name/failing_checks.json holds a key for each wrong version that was shown to be
rejected: a hash of all that decides it, namely the patch, what is recorded of it, the chapter's
checks with their fixtures, and the sources of the chapter, of the chapters that these include and
of common. Comments and line ends don't count, nor do programs, benches and the pages' figures,
which no check is linked with; kernels count only for folders that test kernels, and common/figure
only where a part draws. If any of these has changed since, the key is stale, and the wrong version
must be shown to be rejected again. """
import functools
import hashlib
import json
import random
import re

from workbook.book import BUILD, ROOT
from workbook.wrong_versions import wrong

LONG = 16  # hexadecimal digits of a key
DRAWN = 5  # wrong versions that are tried in each run of all tests, whatever their keys say
CODE = (".cpp", ".hpp", ".cu")
NOT_LINKED = r"(main|solutions|bench|gpu_bench|figure\w*)\.[ch]pp"


def key(folder, mistake: str, recorded):
    fails = [[recorded["checks"][int(site)], numbers]
             for site, numbers in recorded["mistakes"].get(mistake, {}).items()]
    patch = (ROOT / "tests/wrong" / folder / f"{mistake}.patch").read_text()
    return _hash(ground(folder), patch, json.dumps(fails))


def stale(folder):
    """The wrong versions whose key isn't current."""
    recorded = wrong.record(folder)
    return [name for name, _, _ in wrong.patches(folder)
            if recorded["keys"].get(name) != key(folder, name, recorded)]


def renew(folder, recorded) -> None:
    """Writes a record with the keys that are current now, without wrong versions that are gone."""
    there = {name for name, _, _ in wrong.patches(folder)}
    fails = {name: found for name, found in recorded["mistakes"].items() if name in there}
    current = {name: key(folder, name, recorded) for name in fails}
    wrong.write(folder, dict(recorded, mistakes=fails, keys=current))


def of_checks(folder):
    """Of the chapter's checks alone: if they change, wrong versions may fail others, or with other
    numbers."""
    return _hash_of(_checks(folder))


def drawn(folders, count):
    """{folder: [a wrong version]}, of so many folders: these are shown to be rejected whatever
    their keys say. They stay the same while nothing changes here, so that a second run has nothing
    to do."""
    kept = BUILD / "drawn.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    which, grounds = " ".join(folders), _hash(*map(ground, folders))
    if known.get(which, ["", {}])[0] != grounds:
        known[which] = [grounds, {folder: [random.choice(wrong.patches(folder))[0]]
                                  for folder in random.sample(folders, count)}]
        kept.write_text(json.dumps(known))
    return known[which][1]


def of_folder(folder):
    """Of all files in a folder, as they are."""
    return _hash_of(_all(folder))


@functools.cache
def ground(folder):
    """Of all that the wrong versions of a folder have in common."""
    files = [*_code("common"), *_checks(folder)]
    for chapter in _chapters(folder):
        files += [file for file in _code(f"chapters/{chapter}")
                  if not re.match(NOT_LINKED, file.name)]
    tests_kernels = any(file.suffix == ".cu" for place in ("tests", "chapters")
                        for file in _code(f"{place}/{folder}"))
    draws = any(b'#include "figure/' in file.read_bytes() for file in files
                if not _is_of_figures(file))
    return _hash_of(file for file in files if (tests_kernels or not _is_of_kernels(file)) and
                    (draws or not _is_of_figures(file)))


def _chapters(folder):
    """The chapter of a folder, and those that its code and its checks include, directly or through
    others."""
    if not folder[0].isdigit():
        return set()
    found, to_read = {folder}, _included(_checks(folder)) | {folder}
    while to_read:
        found |= to_read
        included = (_included(_code(f"chapters/{chapter}")) for chapter in to_read)
        to_read = set().union(*included) - found
    # A header for several chapters' checks may include later ones.
    return {chapter for chapter in found if chapter <= folder}


def _included(files):
    return {chapter for file in files if file.suffix in CODE for chapter in _named_in(file)}


@functools.cache
def _named_in(file):
    return set(re.findall(r'#include "(\d\d_\w+)/', file.read_text()))


def _is_of_figures(file):
    return file.is_relative_to(ROOT / "common/figure")


def _is_of_kernels(file):
    folders = {"kernels", "on_gpu", "gpu_bench", "cuda", "cuda_on_cpu"}
    return not folders.isdisjoint(file.relative_to(ROOT).parts)


def _checks(folder):
    return [*_code("tests/support"), *_code(f"tests/{folder}"),
            *(ROOT / "tests").glob(f"{folder}*_test.cpp"), *_all(f"tests/fixtures/{folder}")]


def _hash_of(files):
    return _hash(*(f"{file.relative_to(ROOT)} {_digest(file)}" for file in sorted(files)))


def _code(folder):
    return [file for file in _all(folder) if file.suffix in CODE]


def _all(folder):
    return [file for file in (ROOT / folder).rglob("*") if file.is_file()]


@functools.cache
def _digest(file):
    if file.suffix not in CODE:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    words = r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')|//[^\n]*'
    bare = re.sub(words, lambda m: m.group(1) or "", file.read_text())
    return _hash(" ".join(bare.split()))


def _hash(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:LONG]
