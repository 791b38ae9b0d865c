"""./learn watch: a verdict at each save."""
import argparse
import time

import check
import house
import judge


def main():
    parser = argparse.ArgumentParser(prog="./learn watch")
    parser.add_argument("what", nargs="*", metavar="NN [part ...]")
    pairs = check.parts(parser.parse_args().what)
    print(f"Watching {', '.join(house.shown(house.theirs(*pair)) for pair in pairs)}. Ctrl-C ends it.")
    seen = {}
    try:
        while True:
            for pair in pairs:
                look(pair, seen)
            time.sleep(0.2)
    except KeyboardInterrupt:
        print()


def look(pair, seen):
    """Checks the part if it was saved since it was last seen."""
    try:
        now = house.theirs(*pair).stat()
        saved = now.st_mtime_ns, now.st_size, now.st_ino
    except OSError:
        return  # an editor may be just replacing it
    if seen.get(pair) == saved:
        return
    seen[pair] = saved
    began = time.monotonic()
    print("\n" + "-" * min(house.width(), 60))
    check.tell(judge.judge(*pair))
    print(f"({time.monotonic() - began:.1f} s after the save was seen; Ctrl-C ends)", flush=True)


if __name__ == "__main__":
    main()
