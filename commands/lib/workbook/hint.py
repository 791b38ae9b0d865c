"""./learn hint: a question, then what the page says, and at last the lines of our part."""
import argparse
import collections
import re

from workbook import book, cpp, pages, progress, sentences, skeleton, wrong

LONG = 25  # lines: of a longer function one group of lines is shown before the whole
THEN = ["what the page says", "lines of our part", "the whole function"]


def main(*words) -> None:
    parser = argparse.ArgumentParser(prog="./learn hint")
    parser.add_argument("what", nargs="*", metavar="NN [part [function]]")
    chapter, part, wanted = choose(parser.parse_args(words).what)
    ours = {f.name: f for f in reversed(cpp.to_write(book.ours(chapter, part).read_text()))}
    name = wanted or progress.of(chapter, part).get("next") or next(reversed(ours))
    if name not in ours:
        book.die(f"{chapter} {part} has no function '{name}' to write; it has: {', '.join(reversed(ours))}")
    steps = steps_for(chapter, part, ours[name])
    step = take_step(chapter, part, name, steps)
    print(book.bold(f"{chapter[:2]} {part}: hint {step} of {steps} for {name}"))
    paragraphs, ending = text(chapter, part, ours[name], step)
    for paragraph in paragraphs:
        book.say("\n" + paragraph, 2)
    for i, line in enumerate(code(chapter, part, ours[name], step)):
        print("\n" * (i == 0) + f"    {line}".rstrip())
    book.say(ending and "\n" + ending, 2)
    if progress.passes(chapter, part):
        book.say("The part passes its checks, so this hint is not counted.", 2)


def choose(words):
    """The chapter, part and function that are named, or else the first part that is begun and does not pass."""
    if len(words) == 3:
        name = book.chapter(words[0])
        if words[1] not in book.parts_to_write(name):
            book.die(f"chapter {name} has no part '{words[1]}' to write; it has: {', '.join(book.parts_to_write(name))}")
        return name, words[1], words[2]
    if words:
        chosen = book.chapters_and_parts(words)
    else:
        chosen = [(c, book.written(c)) for c in book.chapters()]
    pairs = [(name, part) for name, parts in chosen for part in parts]
    if not pairs:
        book.die("no part is begun. Begin with: ./learn start 02")
    open_ones = [pair for pair in pairs if not progress.passes(*pair)]
    return *(open_ones or pairs)[0], None


def take_step(chapter: str, part: str, name, steps):
    """The step to show now. Those of a part that passes are kept apart, so that nobody counts them."""
    known = progress.of(chapter, part)
    kind = "later" if progress.passes(chapter, part) else "hints"
    step = sum(known.get(one, {}).get(name, 0) for one in ("hints", "later")) + 1
    if step <= steps:
        given = known.get(kind, {})
        progress.note(chapter, part, **{kind: given | {name: given.get(name, 0) + 1}})
    return min(step, steps)


def steps_for(chapter: str, part: str, function):
    return 3 + (len(listing(chapter, part, function)) > LONG)


def text(chapter: str, part: str, function, step):
    """The hint in words, as paragraphs of whole sentences, and what comes next. First stands what belongs to the step, and
    then other things until there are enough words."""
    page = (pages.section_of_function(chapter, part, function.name) or
            pages.section_that_names(chapter, part, function.name))
    near = sentences.last_of(pages.prose_before(page[0], page[2]))
    section = [one for one in sentences.of(pages.prose_after(*page[:2])) if one not in near]
    last = step == steps_for(chapter, part, function)
    comments = [line for f in in_source(chapter, part, function) for line in cpp.outline(f)]
    ending = "" if last else f"The next hint shows {THEN[step - 1]}: ./learn hint {chapter[:2]} {part} {function.name}"
    said = {
        "question": [questions(chapter)[function.name]],
        "contract": sentences.of(contract(chapter, part, function), "Its contract: "),
        "failed": [told_failure(chapter, part, function)],
        "where": [f'It is on docs/{page[0].name} at line {page[2] + 1}, in the section "{page[1]}".'],
        "page": sentences.headed("The page says: ", near if step == 2 else near[-2:]),
        "lines": [told_lines(chapter, part, function, last)],
        "outline": sentences.of(" ".join(comments), "Its comments say: "),
        "section": sentences.headed(f'The section "{page[1]}" begins so: ', section),
        "chapter": sentences.of(beginning(chapter), "The chapter begins so: "),
    }
    wanted = [("question", "contract", "failed"), ("where", "page"), ("lines", "outline")][min(step, 3) - 1]
    more = ("contract", "page", "section", "question", "failed", "outline", "where", "chapter")
    paragraphs = sentences.shortened([said[name] for name in wanted], [said[name] for name in more if name not in wanted],
                                     sentences.words_of(ending))
    return paragraphs, ending


def questions(chapter: str):
    """What the chapter's file questions asks of each function, to lead to its idea."""
    lines = (book.ROOT / "chapters" / chapter / "questions").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def contract(chapter: str, part: str, function):
    says = skeleton.contract(book.header(chapter, part).read_text(), function) or function.comment
    return " ".join(line.lstrip("/ ") for line in says.splitlines())


def told_failure(chapter: str, part: str, function):
    known = progress.of(chapter, part)
    if known.get("failed") and known.get("next") == function.name:
        return f"The last check that failed is {known['failed']}."
    return f"To see what its checks say, run ./learn check {chapter[:2]} {part}."


def beginning(chapter: str):
    page = pages.pages_of(chapter)[0]
    return pages.prose_after(page, pages.lines_of(page)[0].lstrip("# ")).partition("\n")[2]  # after the line of links


def told_lines(chapter: str, part: str, function, last):
    count, path = len(listing(chapter, part, function)), book.ours(chapter, part).relative_to(book.ROOT)
    helpers = [f.name for f in in_source(chapter, part, function) if f != function]
    place = f"It is in {path}, line {function.line}, and has {count} line{'s' * (count > 1)}."
    if helpers:
        place = place[:-1] + f" together with its helper{'s' * (len(helpers) > 1)} {', '.join(helpers)}."
    if not last:
        return place + " Here are those that most of its known mistakes change. One more call shows the whole."
    return place


def code(chapter: str, part: str, function, step):
    """The lines of our part that the step shows."""
    lines = listing(chapter, part, function) if step >= 3 else []
    return lines if step < 3 or step == steps_for(chapter, part, function) else most_often_changed(chapter, lines)


def listing(chapter: str, part: str, function):
    """The function, after the helpers that it calls."""
    texts = ["\n".join([*f.comment.splitlines(), f"{f.signature} {f.body}"]) for f in in_source(chapter, part, function)]
    return "\n\n".join(texts).splitlines()


def in_source(chapter: str, part: str, function):
    return cpp.with_helpers(book.ours(chapter, part).read_text(), function)


def most_often_changed(chapter: str, lines):
    """The group of lines, with the comment above it, that the chapter's wrong versions change most."""
    changed = collections.Counter(line for name, _, _ in wrong.patches(chapter) for line in wrong.lines_changed(chapter, name))
    groups = re.findall(r"(?:^ *//.*\n)*(?:^(?! *//).*\S.*\n)+", "\n".join([*lines, ""]), re.M)
    return max(groups, key=lambda group: sum(changed[line] for line in group.splitlines())).splitlines()
