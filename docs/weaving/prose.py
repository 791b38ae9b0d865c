"""Counts in the pages what can be counted in prose: words that join everything or stand for everything, and words of
our own where the field has one. docs/README.md, "How to write a page", says what to write instead.

python3 docs/weaving/prose.py          all pages, each by itself and together
python3 docs/weaving/prose.py PAGE...  only these, each by itself

Prints each count above its limit, and ends with status 1. It is a help for who writes next, not a judge of style: a page
below every limit may still read badly. Listings, tables, headings and woven text do not count.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# (word, pattern, most per 1,000 words of a page, most per 1,000 words of all pages, what to do)
FREQUENT = [
    (", so", r", so\b(?! that\b)", 7, 3.5, "put the cause first with because or since, or use a which-clause or a participle"),
    ("So", r"\bSo\b", 1.5, 0.5, "join the sentence to the one before, or begin with its subject"),
    ("has", r"\bhas\b(?! \S+ = )", 8, 5, "say what the subject does: a page explains, a table shows, a folder contains, a buffer holds"),
    ("numbers", r"\bnumbers\b", 6, 2, "say which: channels, elements, parameters, weights, inputs, integers"),
]
# (our own word, pattern, the field's)
PRIVATE = [
    ("by heart", r"\bby heart\b", "memorized"),
    ("computed again", r"\bcomputed again\b", "recomputed"),
    ("deviation", r"(?<!standard )\bdeviations?\b", "standard deviation"),
    ("first weights", r"\bfirst weights\b", "initial weights"),
    ("head of its own", r"\bhead of its own\b", "separate head"),
    ("hidden key", r"\bhidden (?:key|score)s?\b", "masked key"),
    ("matrix of derivatives", r"\bmatrix of derivatives\b", "Jacobian"),
    ("nats a byte", r"\bnats a (?:byte|token)\b", "nats per byte"),
    ("powers", r"\bpowers\b(?! of)", "exponentials"),
    ("turned by", r"\bturned by\b", "rotated by"),
    ("whole number", r"\bwhole numbers?\b(?! of)", "integer"),
]
SHORT = 1000  # a page with fewer words may use a frequent word as often as one with this many


def prose(text):
    """A page's own sentences, with one space between words."""
    text = re.sub(r"<!-- \[\[\[cog way\(\).*", "", text, flags=re.S)
    text = re.sub(r"<!-- \[\[\[cog.*?\[\[\[end\]\]\] -->", "", text, flags=re.S)
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    text = "\n".join(line for line in text.splitlines() if not re.match(r"\s*\||#|<!-- ", line))
    text = re.sub(r"\]\([^)]*\)|</?[a-z][^<>]*>", " ", text)  # where links lead to, and HTML
    text = re.sub(r"`[^`]*`", "`", text)  # code counts as a word
    return " ".join(text.split())


def above(where, texts, column):
    """A line for each frequent word that the texts use more often than its limit, in the given column, allows."""
    words = sum(len(text.split()) for text in texts)
    for row in FREQUENT:
        count, limit = sum(len(re.findall(row[1], text)) for text in texts), int(row[column] * max(words, SHORT) / 1000)
        if count > limit:
            yield f'{where}: "{row[0]}" {count} times in {words:,} words of prose, at most {limit}: {row[4]}'


def faults(pages, together):
    texts = {page: prose(pathlib.Path(page).read_text()) for page in pages}
    for page, text in texts.items():
        where = os.path.relpath(page, ROOT)
        yield from above(where, [text], 2)
        for word, pattern, usual in PRIVATE:
            count = len(re.findall(pattern, text, re.I))
            if count:
                yield f'{where}: "{word}" {count} time{"s" * (count > 1)}, at most 0: the field says "{usual}"'
    if together:
        yield from above("all pages", list(texts.values()), 3)


if __name__ == "__main__":
    found = list(faults(sys.argv[1:] or [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"], together=not sys.argv[1:]))
    if found:
        print(*found, "These counts are a help for who writes next, not a judge of style: docs/README.md says what to write.", sep="\n")
    sys.exit(bool(found))
