"""./learn start: writes what a reader is to fill in."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from workbook import book
from workbook.source import cpp, pages, skeleton


def main(*words) -> None:
    parser = argparse.ArgumentParser(prog="./learn start")
    parser.add_argument("what", nargs="+", metavar="NN [part ...]")
    parser.add_argument("--again", action="store_true",
                        help="put what is written aside, and begin anew")
    flags = parser.parse_args(words)
    chosen = [(name, part) for name, parts in book.chapters_and_parts(flags.what) for part in parts]
    if flags.again:
        for name, part in chosen:
            put_aside(name, part)
    begin(chosen)


def begin(chosen) -> None:
    """Writes the files of these parts that are not there yet. Their checks are built in the
    background, which takes longer."""
    book.WORK.mkdir(parents=True, exist_ok=True)
    begun = [pair for pair in chosen if start(*pair)]
    tell_assistants()
    export_compile_commands()
    if not begun:
        return
    name, part = begun[0]
    subprocess.Popen([sys.executable, "-c", "import sys; from workbook import book; "
                      "book.build(sys.argv[1])", book.checks_of(name, part)],
                     cwd=pathlib.Path(__file__).parents[2], stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    book.say(f"\nWrite {book.shown(book.theirs(name, part))} with {pages_of(name, part)} beside "
             f"it. Then: ./learn check {name[:2]} {part}")
    if not book.is_kernel(name, part):
        book.say(f"Or write what it must do first: ./learn example {name[:2]} {part}")


def pages_of(name, part: str):
    """The pages that explain the part: those that quote its functions."""
    functions = cpp.to_write(book.ours(name, part).read_text())
    found = [pages.section_of_function(name, part, function.name) for function in functions]
    names = dict.fromkeys(page.name for page, *_ in filter(None, found)) or [f"{name}.md"]
    return " and ".join(f"docs/{page}" for page in names)


def put_aside(name, part: str) -> None:
    """Gives what is written another name: rope.cpp.1, or the first number that is free."""
    theirs = book.theirs(name, part)
    if theirs.is_file():
        names = (theirs.with_name(f"{theirs.name}.{n}") for n in range(1, 1000))
        aside = theirs.rename(next(path for path in names if not path.exists()))
        print(f"{book.shown(theirs)} is now {book.shown(aside)}")


def tell_assistants() -> None:
    """Says in work/AGENTS.md, where an assistant in an editor looks, how it should help. The
    reader may change it."""
    told = book.WORK / "AGENTS.md"
    if not told.exists():
        told.write_text(pathlib.Path(__file__).with_name("assistants.md").read_text())


def is_untouched(name, part: str) -> bool:
    """Whether the file is as it was begun: nothing is written in it yet."""
    theirs = book.theirs(name, part)
    return theirs.is_file() and theirs.read_text(errors="replace") == skeleton.of(name, part)


def start(name, part: str) -> bool:
    """Whether the part is new; what the reader has written stays as it is."""
    theirs, text = book.theirs(name, part), skeleton.of(name, part)
    try:
        theirs.parent.mkdir(parents=True, exist_ok=True)
        with theirs.open("x") as file:
            file.write(text)
    except FileExistsError:
        if not theirs.is_file():
            book.die(f"{book.shown(theirs)} is there already and is no file. Move it away, and "
                     "start again")
        print(f"{book.shown(theirs)} is there already and stays as it is")
        return False
    except OSError as error:
        book.die(f"{book.shown(theirs)} can't be written: {error.strerror}")
    count = text.count('"not written yet: ')
    print(f"{book.shown(theirs)}: {count} function{'s' * (count > 1)} to write")
    return True


def export_compile_commands() -> None:
    """An editor finds in work/ and build/ how each file is compiled: the reader's as if they were
    built where they lie, and those that were not built yet as ours are."""
    commands = book.BUILD / "compile_commands.json"
    link, own = book.ROOT / "build" / commands.name, book.WORK / commands.name
    if book.bash('[[ -z $(built_otherwise) && -f $build/compile_commands.json ]] || configure'):
        sys.exit(1)
    if not link.exists() and not link.is_symlink():
        link.symlink_to(os.path.relpath(commands, link.parent))
    every = json.loads(commands.read_text().replace(f"{book.BUILD}/mine/", f"{book.WORK}/"))
    of = {one["file"]: one for one in every}
    for name in book.chapters():
        for part in book.written(name):
            ours, theirs = str(book.ours(name, part)), str(book.theirs(name, part))
            if theirs not in of and ours in of:
                every.append({key: text.replace(ours, theirs) for key, text in of[ours].items()})
    own.unlink(missing_ok=True)
    own.write_text(json.dumps(every, indent=1))
