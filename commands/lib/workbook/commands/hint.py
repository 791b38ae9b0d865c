"""./learn hint: a question, then what the page says, and at last the lines of our part."""
import argparse
import collections
import re

from workbook import book, progress
from workbook.source import cpp, pages, skeleton
from workbook.wrong_versions import wrong

LONG = 25  # lines: of a longer function one group of lines is shown before the whole
LEAST, MOST = 80, 160  # words of a hint, lines of code not counted
THEN = ["what the page says", "lines of our part", "the whole function"]


def main(*words) -> None:
    parser = argparse.ArgumentParser(prog="./learn hint")
    parser.add_argument("what", nargs="*", metavar="NN [part [function]]")
    chapter, part, wanted = choose(parser.parse_args(words).what)
    ours = {f.name: f for f in reversed(cpp.to_write(book.ours(chapter, part).read_text()))}
    name = wanted or progress.of(chapter, part).get("next") or next(reversed(ours))
    if name not in ours:
        book.die(f"{chapter} {part} has no function '{name}' to write; it has: "
                 f"{', '.join(reversed(ours))}")
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
    """The chapter, part and function that are named, or else the first part that is begun and does
    not pass."""
    if len(words) == 3:
        name = book.chapter(words[0])
        if words[1] not in book.parts_to_write(name):
            book.refuse_part(name, words[1])
        return name, words[1], words[2]
    chosen = (book.chapters_and_parts(words) if words else
              [(name, book.written(name)) for name in book.chapters()])
    pairs = [(name, part) for name, parts in chosen for part in parts]
    if not pairs:
        book.die("no part is begun. Begin with: ./learn start 02")
    return *next((pair for pair in pairs if not progress.passes(*pair)), pairs[0]), None


def take_step(chapter: str, part: str, name, steps):
    """The step to show now. Those of a part that passes are kept apart, so that nobody counts
    them."""
    known = progress.of(chapter, part)
    step = sum(known.get(one, {}).get(name, 0) for one in ("hints", "later")) + 1
    if step <= steps:
        kind = "later" if progress.passes(chapter, part) else "hints"
        given = known.get(kind, {})
        progress.note(chapter, part, **{kind: given | {name: given.get(name, 0) + 1}})
    return min(step, steps)


def steps_for(chapter: str, part: str, function):
    return 3 + (len(listing(chapter, part, function)) > LONG)


def text(chapter: str, part: str, function, step):
    """The hint in words, as paragraphs of whole sentences, and what comes next. First stands what
    belongs to the step, and then other things until there are enough words."""
    page = (pages.section_of_function(chapter, part, function.name) or
            pages.section_that_names(chapter, part, function.name))
    near = last_sentences(pages.prose_before(page[0], page[2]))
    section = [one for one in sentences(pages.prose_after(*page[:2])) if one not in near]
    last = step == steps_for(chapter, part, function)
    comments = [line for f in in_source(chapter, part, function) for line in cpp.outline(f)]
    first = pages.pages_of(chapter)[0]
    beginning = pages.prose_after(first, pages.lines_of(first)[0].lstrip("# "))
    known, failed = progress.of(chapter, part), ""
    if known.get("failed") and known.get("next") == function.name:
        failed = f"The last check that failed is {known['failed']}."
    ending = "" if last else (f"The next hint shows {THEN[step - 1]}: "
                              f"./learn hint {chapter[:2]} {part} {function.name}")
    contract = (skeleton.contract(book.header(chapter, part).read_text(), function) or
                function.comment)
    said = {
        "question": [questions(chapter)[function.name]],
        "contract": sentences(" ".join(line.lstrip("/ ") for line in contract.splitlines()),
                              "Its contract: "),
        "failed": [failed or ("To see what its checks say, run "
                              f"./learn check {chapter[:2]} {part}.")],
        "where": [f'It is on docs/{page[0].name} at line {page[2] + 1}, '
                  f'in the section "{page[1]}".'],
        "page": headed("The page says: ", near if step == 2 else near[-2:]),
        "lines": [told_lines(chapter, part, function, last)],
        "outline": sentences(" ".join(comments), "Its comments say: "),
        "section": headed(f'The section "{page[1]}" begins so: ', section),
        "chapter": sentences(beginning.partition("\n")[2],  # after the line of links
                             "The chapter begins so: "),
    }
    wanted = [("question", "contract", "failed"), ("where", "page"),
              ("lines", "outline")][min(step, 3) - 1]
    more = ("contract", "page", "section", "question", "failed", "outline", "where", "chapter")
    paragraphs, count = [], words_of(ending)
    for name in dict.fromkeys(wanted + more):
        taken = []
        for sentence in said[name]:
            if count + words_of(sentence) > MOST or (name not in wanted and count >= LEAST):
                break
            taken.append(sentence)
            count += words_of(sentence)
        paragraphs += [" ".join(taken)] if taken else []
    return paragraphs, ending


def questions(chapter: str):
    """What the chapter's file questions asks of each function, to lead to its idea."""
    lines = (book.ROOT / "chapters" / chapter / "questions").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def told_lines(chapter: str, part: str, function, last):
    count = len(listing(chapter, part, function))
    path = book.ours(chapter, part).relative_to(book.ROOT)
    helpers = [f.name for f in in_source(chapter, part, function) if f != function]
    place = f"It is in {path}, line {function.line}, and has {count} line{'s' * (count > 1)}"
    if helpers:
        place += f" together with its helper{'s' * (len(helpers) > 1)} {', '.join(helpers)}"
    return f"{place}." if last else (f"{place}. Here are those that most of its known mistakes "
                                     "change. One more call shows the whole.")


def code(chapter: str, part: str, function, step):
    """The lines of our part that the step shows: of a long function first the group of lines, with
    the comment above it, that the chapter's wrong versions change most."""
    lines = listing(chapter, part, function) if step >= 3 else []
    if step < 3 or step == steps_for(chapter, part, function):
        return lines
    changed = collections.Counter(line for name, _, _ in wrong.patches(chapter)
                                  for line in wrong.lines_changed(chapter, name))
    groups = re.findall(r"(?:^ *//.*\n)*(?:^(?! *//).*\S.*\n)+", "\n".join([*lines, ""]), re.M)
    return max((group.splitlines() for group in groups),
               key=lambda group: sum(changed[line] for line in group))


def listing(chapter: str, part: str, function):
    """The function, after the helpers that it calls."""
    texts = ["\n".join([*f.comment.splitlines(), f"{f.signature} {f.body}"])
             for f in in_source(chapter, part, function)]
    return [line for line in "\n\n".join(texts).splitlines() if not cpp.is_mark(line)]


def in_source(chapter: str, part: str, function):
    return cpp.with_helpers(book.ours(chapter, part).read_text(), function)


def words_of(text):
    return len(text.split())


def sentences(said, heading=""):
    """The sentences of a text, without tables and formulas on lines of their own."""
    lines = (one for one in said.splitlines() if not one.startswith(("|", "$$", "<")))
    said = re.sub(r":$", ".", " ".join(lines).strip())
    return headed(heading, re.split(r"(?<=[.?!])\s+(?=[A-Z`*(\[$])", said) if said else [])


def last_sentences(said):
    """Those at the end for which a hint has room."""
    taken = []
    for one in reversed(sentences(said)):
        if words_of(" ".join([one, *taken])) > MOST - LEAST // 2:
            break
        taken.insert(0, one)
    return taken


def headed(heading, some):
    return [heading + some[0], *some[1:]] if some else []
