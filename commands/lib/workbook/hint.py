"""./learn hint: where the page says it, what it says, and at last the listing."""
import argparse

import house
import pages
import progress
import source

STEPS = 3


def main():
    parser = argparse.ArgumentParser(prog="./learn hint")
    parser.add_argument("what", nargs="*", metavar="NN [part [function]]")
    words = parser.parse_args().what
    chapter, part, wanted = choose(words)
    ours = {f.name: f for f in reversed(source.to_write(house.ours(chapter, part).read_text()))}
    name = wanted or progress.of(chapter, part).get("next") or next(reversed(ours))
    if name not in ours:
        house.die(f"{chapter} {part} has no function '{name}'; it has: {', '.join(reversed(ours))}")
    given = progress.of(chapter, part).get("hints", {})
    step = min(given.get(name, 0) + 1, STEPS)
    progress.note(chapter, part, hints=dict(given, **{name: step}))
    print(house.bold(f"{chapter[:2]} {part}: hint {step} of {STEPS} for {name}") + "\n")
    where = pages.section_of_function(chapter, part, name)
    (tell_where, tell_outline, tell_listing)[step - 1](ours[name], where, house.ours(chapter, part))
    if step < STEPS:
        then = ("what it says, in words", "the listing")[step - 1]
        house.say(f"\nThe next hint is {then}: ./learn hint {chapter[:2]} {part} {name}")


def choose(words):
    """The chapter, part and function that are named, or else the first part that is begun and does not pass."""
    if len(words) == 3:
        name = house.chapter(words[0])
        if words[1] not in house.parts_to_write(name):
            house.die(f"chapter {name} has no part '{words[1]}' to write; it has: {', '.join(house.parts_to_write(name))}")
        return name, words[1], words[2]
    if words:
        chosen = house.chapters_and_parts(words)
    else:
        chosen = [(c, house.written(c)) for c in house.chapters()]
    pairs = [(name, part) for name, parts in chosen for part in parts]
    if not pairs:
        house.die("no part is begun. Begin with: ./learn start 02")
    open_ones = [pair for pair in pairs if not progress.passes(*pair)]
    return *(open_ones or pairs)[0], None


def tell_where(function, where, path):
    if where:
        page, heading, line = where
        house.say(f'It is on docs/{page.name} in the section "{heading}", above line {line + 1}.', 2)
    house.say("It promises:", 2)
    chapter = path.relative_to(house.ROOT / "chapters").parts[0]
    promised = source.contracts(house.header(chapter, path.stem).read_text()).get(function.name, [""])[0] or function.comment
    for line in [*promised.splitlines(), *function.signature.splitlines()]:
        print(f"    {line}")


def tell_outline(function, where, path):
    said = pages.prose_before(where[0], where[2]) if where else ""
    steps = source.outline(function)
    if said:
        house.say(said, 2)
    if steps:
        house.say("\nIts comments say:" if said else "Its comments say:", 2)
        house.say(" ".join(steps), 4)
    if not said and not steps:
        house.say("The page has no words on it, and it has few lines of its own. It calls:", 2)
        house.say(", ".join(source.calls(function.body)), 4)


def tell_listing(function, _, path):
    house.say(f"{house.shown(path)}, line {function.line}:\n", 2)
    for line in [*function.comment.splitlines(), *f"{function.signature} {function.body}".splitlines()]:
        print(f"  {line}")


if __name__ == "__main__":
    main()
