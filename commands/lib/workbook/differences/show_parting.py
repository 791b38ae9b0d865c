"""Tells where two models part: in the text, as a map of operations and layers, and what to read and
do next."""
from workbook import book
from workbook.differences import operations, traces
from workbook.source import pages
from workbook.verdict import telling


def tell_texts(texts, parting, ours) -> None:
    """Each text up to the first in which they part."""
    book.say("Every result of every layer, yours beside ours. They agree within "
             f"{traces.TOLERANCE} of a token's length:")
    for text in texts:
        calls = ours.calls(text)
        count = len(ours.tokens(text)) - traces.first_token(calls[0])
        results = len(calls) * len(list(calls[0].glob("*.npy")))
        differs = parting is not None and parting.text == text
        book.say(f"{'DIFFER' if differs else 'agree '}  {text.says}: "
                 f"{count} token{'s' * (count > 1)}, {results:,} results", 2)
        if differs:
            return


def tell(parting, ours, got) -> None:
    """The place in the text, the operation, and a map of what comes after. got is the folder of the
    other's trace."""
    tokens, t = ours.tokens(parting.text), parting.token
    print(book.bold(f"\nThe first difference is in {parting.text.says}, at token {t} of "
                    f"{len(tokens)} (from 0)\n"))
    if not parting.ended:  # the token in its text, with a mark below
        pieces = [line.partition(" ")[2] for line in tokens]
        room = (book.width() - 4 - len(pieces[t])) // 2
        before, after = "".join(pieces[:t])[-room:], "".join(pieces[t + 1:])[:room]
        print(f"  {before}{book.bold(pieces[t])}{after}")
        print(f"  {' ' * len(before)}{'^' * max(1, len(pieces[t]))}\n")
    book.say(f"At {operations.in_words(parting.name)}. {parting.says}")
    if parting.name == "tokens":
        return
    print()
    for line in traces.picture(parting.file(ours).parent, got, parting):
        print(f"  {line}")
    book.say("\nEach column is a layer. For this token . agrees, x differs, and X is the first. "
             "final_norm and logits are the last token's.")


def tell_responsible(parts, suspect, alike, parting) -> None:
    """Whose fault it is, where a page tells of it, which known mistake it may be, and what to do
    next."""
    makers = operations.makers(parting.name)
    if suspect:
        at_fault = [(suspect.chapter, suspect.part)]
        book.say(f"\nYour {suspect.chapter[:2]} {suspect.part} makes it: with ours in its place "
                 "this difference is gone.")
    else:
        begun = {(part.chapter, part.part) for part in parts}
        at_fault = [maker[:2] for maker in makers if maker[:2] in begun]
        book.say("\nMore than one of your parts makes it: with ours in the place of any one it "
                 "stays.")
    for chapter, part, function in makers:
        if (chapter, part) in at_fault:
            book.say(f"{function}: {page_of(chapter, part, function)}", 2)
    if parting.causes:
        book.say(f"Usual causes: {parting.causes}.", 2)
    if alike:
        telling.tell_recorded([
            (patch.parent.name, patch.stem, patch.read_text().splitlines()[0]) for patch in alike],
            "gives the same numbers there")
    checks = ", ".join(f"./learn check {chapter[:2]} {part}" for chapter, part in at_fault)
    book.say(f"\nNext: {checks or './learn check'}")


def page_of(chapter: str, part: str, function):
    where = pages.section_of_function(chapter, part, function)
    if not where:
        return f"docs/{chapter}.md"
    return f'docs/{where[0].name}, line {where[2] + 1}: "{where[1]}"'
