"""Texts of a hint, shortened to whole sentences."""
import re

LEAST, MOST = 80, 160  # words of a hint, lines of code not counted


def shortened(wanted, more, count):
    """Of the paragraphs as many whole sentences as there is room for beside `count` words; of those that are not wanted
    only as many as it takes to have enough words."""
    paragraphs = []
    for i, paragraph in enumerate(wanted + more):
        taken = []
        for sentence in paragraph:
            if count + words_of(sentence) > MOST or (i >= len(wanted) and count >= LEAST):
                break
            taken.append(sentence)
            count += words_of(sentence)
        paragraphs += [" ".join(taken)] if taken else []
    return paragraphs


def words_of(text):
    return len(text.split())


def of(said, heading=""):
    """The sentences of a text, without tables and formulas on lines of their own."""
    said = " ".join(one for one in said.splitlines() if not one.startswith(("|", "$$", "<"))).strip()
    return headed(heading, re.split(r"(?<=[.?!])\s+(?=[A-Z`*(\[$])", re.sub(r":$", ".", said)) if said else [])


def last_of(said):
    """Those at the end for which a hint has room."""
    taken = []
    for one in reversed(of(said)):
        if words_of(" ".join([one, *taken])) > MOST - LEAST // 2:
            break
        taken.insert(0, one)
    return taken


def headed(heading, some):
    return [heading + some[0], *some[1:]] if some else []
