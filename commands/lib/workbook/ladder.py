"""./learn list: what is written, what passes, where hints were taken, and what is still to come."""
import argparse

from workbook import house, progress, way


def main(*words) -> None:
    argparse.ArgumentParser(prog="./learn list").parse_args(words)
    show()


def show() -> None:
    print(house.bold("Your parts, in work/") + "\n")
    done = of = 0
    for chapter in house.chapters():
        for i, part in enumerate(house.parts_to_write(chapter)):
            done, of = done + progress.passes(chapter, part), of + 1
            show_part(chapter.replace("_", " ", 1) if i == 0 else "", chapter, part)
    print()
    chat = way.to_chat()
    house.say(f"* A chat runs through these {len(chat)} parts, which take about {way.hours(chat)} hours. Minutes are estimated from the "
              "lines of our parts; nobody was timed.", 2)
    house.say(f"{done} of {of} parts pass. "
              + ("Next: ./learn graduate" if done == of else "./learn start NN begins, ./learn check NN judges."), 2)


def show_part(title, chapter: str, part: str):
    """A line for each part, with its state on the next if that is long; or on a narrow terminal all in words."""
    says, minutes, difficulty = state(chapter, part), way.minutes(chapter, part), way.difficulty(chapter, part)
    mark = "*" if way.in_chat(chapter, part) else " "
    line = f"  {title:<19} {mark} {part:<23} {minutes:3} min {difficulty:<8} "
    if len(line) + len(says) <= house.width():
        return print(f"{line}{says}".rstrip())
    if len(line) + 8 <= house.width():
        print(line.rstrip())
        return house.say(says, 24)
    if title:
        house.say(title, 2)
    house.say(f"{mark} {part}: {minutes} minutes, {difficulty}{'' if says == '.' else f'; {says}'}".lstrip(), 4)


def state(chapter: str, part: str):
    known = progress.of(chapter, part)
    examples = "examples {} of {}".format(*known["examples"]) if "examples" in known else ""
    if not house.begun(chapter, part):
        return examples or "."
    hints = sum(known.get("hints", {}).values())
    said = (f", {hints} hint{'s' * (hints > 1)}" if hints else "") + (examples and f", {examples}")
    if "checks" not in known:
        return "begun" + said
    passed, of = known["checks"]
    current = progress.is_as_checked(chapter, part)
    word = ("passes" if current else "passed") if known.get("passes") else f"{passed} of {of} checks"
    return word + ("" if current else ", edited since") + said
