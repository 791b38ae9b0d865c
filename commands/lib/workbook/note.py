"""./learn note: a line in the reader's log, with the date and the last result."""
import argparse

import house
import progress


def main():
    parser = argparse.ArgumentParser(prog="./learn note")
    parser.add_argument("chapter", metavar="NN")
    parser.add_argument("text", nargs="+", metavar="TEXT")
    flags = parser.parse_args()
    chapter = house.chapter(flags.chapter)
    results = [f"{part} {'passes' if progress.passes(chapter, part) else '{} of {} checks'.format(*known['checks'])}"
               for part in house.parts_to_write(chapter) if "checks" in (known := progress.of(chapter, part))]
    log = house.WORK / "notes.md"
    try:
        house.WORK.mkdir(parents=True, exist_ok=True)
        with log.open("a", errors="surrogateescape") as file:
            file.write(f"- {progress.now()}, {chapter[:2]} ({', '.join(results) or 'nothing checked'}): {' '.join(flags.text)}\n")
    except OSError as error:
        house.die(f"{house.shown(log)} can't be written: {error.strerror}")
    print(f"added to {house.shown(log)}")


if __name__ == "__main__":
    main()
