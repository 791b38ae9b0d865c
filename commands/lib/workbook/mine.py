"""Which parts of the reader's go into the programs of --mine, and the names of these parts for CMake."""
import sys

import house
import judge
import progress


def main(chapters):
    """The parts up to the last of these chapters."""
    use(parts_that_pass(max(chapters)))


def parts_that_pass(last):
    """The reader's parts up to this chapter that pass; those edited since their check are checked first."""
    passing = []
    for name in house.chapters()[:house.chapters().index(last) + 1]:
        for part in house.written(name):
            if progress.passes(name, part) or judge.judge(name, part).word == "passes":
                passing.append((name, part))
            else:
                print(f"learn: {name[:2]} {part} does not pass its checks, so ours is used", file=sys.stderr)
    if not passing:
        house.die(f"no part of yours up to chapter {last[:2]} passes its checks yet. ./learn list shows them")
    print(f"Yours: {told(passing)}. All others are the book's.", file=sys.stderr)
    return passing


def told(pairs):
    chapters = list(dict.fromkeys(name for name, _ in pairs))
    return "; ".join(f"{c[:2]} {', '.join(part for name, part in pairs if name == c)}" for c in chapters)


def use(pairs):
    """CMake reads the file, and is run again when it has changed."""
    listed = house.BUILD / "mine.cmake"
    text = "set(T2T_MINE\n" + "".join(f"  {name}/{part}\n" for name, part in pairs) + ")\n"
    if not listed.exists() or listed.read_text() != text:
        listed.write_text(text)
        if not house.configure():
            house.die("the build could not be made to use them")


if __name__ == "__main__":
    main(sys.argv[1:])
