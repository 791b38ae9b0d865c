"""./learn list: what is written, what passes, and where hints were taken."""
import argparse

import house
import progress


def main():
    argparse.ArgumentParser(prog="./learn list").parse_args()
    show()


def show():
    print(house.bold("Your parts, in work/") + "\n")
    done = of = 0
    for chapter in house.chapters():
        for i, part in enumerate(house.parts_to_write(chapter)):
            done, of = done + progress.passes(chapter, part), of + 1
            title = chapter.replace("_", " ", 1) if i == 0 else ""
            print(f"  {title:<21} {part:<24} {state(chapter, part)}".rstrip())
    print(f"\n  {done} of {of} parts pass. "
          + ("Next: ./learn graduate" if done == of else "./learn start NN begins, ./learn check NN judges."))


def state(chapter, part):
    known = progress.of(chapter, part)
    if not house.theirs(chapter, part).is_file():
        return "."
    hints = sum(known.get("hints", {}).values())
    said = f", {hints} hint{'s' * (hints > 1)}" if hints else ""
    if "checks" not in known:
        return "begun" + said
    passed, of = known["checks"]
    edited = known.get("digest") != progress.digest(chapter, part)
    word = "passes" if known.get("passes") else f"{passed} of {of} checks"
    return word + (", edited since" if edited else "") + said


if __name__ == "__main__":
    main()
