"""./learn list: what is written, what passes, where hints were taken, and what is still to come."""
import argparse

from workbook import book, estimates, progress


def main(*words) -> None:
    argparse.ArgumentParser(prog="./learn list").parse_args(words)
    show()


def show() -> None:
    print(book.bold("Your parts, in work/") + "\n")
    done = of = 0
    for chapter in book.chapters():
        for i, part in enumerate(book.parts_to_write(chapter)):
            done, of = done + progress.passes(chapter, part), of + 1
            show_part(chapter.replace("_", " ", 1) if i == 0 else "", chapter, part)
    print()
    chat = estimates.to_chat()
    book.say(f"* A chat runs through these {len(chat)} parts, which take about {estimates.hours(chat)} hours. Minutes are estimated from the "
              "lines of our parts; nobody was timed.", 2)
    book.say(f"{done} of {of} parts pass. "
              + ("Next: ./learn graduate" if done == of else "./learn start NN begins, ./learn check NN judges."), 2)


def show_part(title, chapter: str, part: str):
    """A line for each part, with its state on the next if that is long; or on a narrow terminal all in words."""
    says, minutes, difficulty = state(chapter, part), estimates.minutes(chapter, part), estimates.difficulty(chapter, part)
    mark = "*" if estimates.in_chat(chapter, part) else " "
    line = f"  {title:<19} {mark} {part:<23} {minutes:3} min {difficulty:<8} "
    if len(line) + len(says) <= book.width():
        return print(f"{line}{says}".rstrip())
    if len(line) + 8 <= book.width():
        print(line.rstrip())
        return book.say(says, 24)
    if title:
        book.say(title, 2)
    book.say(f"{mark} {part}: {minutes} minutes, {difficulty}{'' if says == '.' else f'; {says}'}".lstrip(), 4)


def state(chapter: str, part: str):
    known = progress.of(chapter, part)
    examples = "examples {} of {}".format(*known["examples"]) if "examples" in known else ""
    if not book.begun(chapter, part):
        return examples or "."
    hints = sum(known.get("hints", {}).values())
    said = (f", {hints} hint{'s' * (hints > 1)}" if hints else "") + (examples and f", {examples}")
    if "checks" not in known:
        return "begun" + said
    passed, of = known["checks"]
    current = progress.is_as_checked(chapter, part)
    word = ("passes" if current else "passed") if known.get("passes") else f"{passed} of {of} checks"
    return word + ("" if current else ", edited since") + said
