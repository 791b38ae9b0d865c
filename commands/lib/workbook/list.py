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
            show_part(chapter.replace("_", " ", 1) if i == 0 else "", part, state(chapter, part))
    print()
    house.say(f"{done} of {of} parts pass. "
              + ("Next: ./learn graduate" if done == of else "./learn start NN begins, ./learn check NN judges."), 2)


def show_part(title, part, says):
    """A line for each part, or on a narrow terminal the title and the part on lines of their own."""
    line = f"  {title:<21} {part:<24} {says}".rstrip()
    if len(line) <= house.width():
        print(line)
        return
    if title:
        house.say(title, 2)
    house.say(f"{part}: {says}", 4)


def state(chapter, part):
    known = progress.of(chapter, part)
    examples = "examples {} of {}".format(*known["examples"]) if "examples" in known else ""
    if not house.begun(chapter, part):
        return examples or "."
    hints = sum(known.get("hints", {}).values())
    said = (f", {hints} hint{'s' * (hints > 1)}" if hints else "") + (examples and f", {examples}")
    if "checks" not in known:
        return "begun" + said
    passed, of = known["checks"]
    word = "passes" if known.get("passes") else f"{passed} of {of} checks"
    return word + ("" if progress.is_as_checked(chapter, part) else ", edited since") + said


if __name__ == "__main__":
    main()
