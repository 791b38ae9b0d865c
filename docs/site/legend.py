"""Each letter of the legend tells its meaning when it is pointed at: in prose, in tables, in shapes like [T, H, D], and
in the comments of listings. The letters and their meanings are the table in docs/README.md, or in the README.md of another
language's folder; without such a table, the letters of that language's pages tell nothing.
"""
import html
import os
import re

from docutils import nodes

import stage

EDITION = stage.Edition(os.environ.get("T2T_SITE_LANGUAGE", stage.FIRST))
README = EDITION.pages["README"].read_text() if "README" in EDITION.pages else ""
NUMBER_OF = "the number of " if EDITION.is_first else ""
LEGEND = {letter: NUMBER_OF + meaning.strip() for letter, meaning in re.findall(r"\| ([A-Z]) \| ([^|]+)", README)}
# A letter by itself. Other pages' matrices are called B, too: of that letter only what is plainly the batch counts.
ALONE = re.compile(r"(?<![\w.+'’^{\\-])(?:B(?=·[TGHL]|, [THGS]| = \d|=\d| sequences)|[TCHGDFVLS])(?![\w+'’]|\.\d)")
SHAPE = re.compile(r"\[[TBCHGDFVLSNEP0-9 ,·/()+−-]+\]")
# What else a letter stands for on a page.
OTHERS = {"15_gpu": "BC", "13_flash_backward": "LD", "17_fine_tuning": "B", "17_rewards": "C", "coming_from": "BTCHGDFVLS", "11_bulk_copies": "B",
          "11_row_kernels": "TC", "11_shared_tiles": "TC", "12_quantize_file": "D", "24_delta_rule": "SVG"}


def meanings(formula):
    """ "D: channels of a head, …" for the letters of a formula. """
    letters = dict.fromkeys(re.findall(r"(?<![\\A-Za-z_^{])([TCHGDFVLS])(?![A-Za-z}])", formula))
    return html.escape("; ".join(f"{letter}: {LEGEND[letter]}" for letter in letters if letter in LEGEND))


def _marked(text, pattern, skip):
    """The text as nodes, with the letters that the pattern finds as abbreviations."""
    at, made = 0, []
    for match in pattern.finditer(text):
        if match[0] in skip or match[0] not in LEGEND:
            continue
        made += [nodes.Text(text[at:match.start()])] if match.start() > at else []
        made.append(nodes.abbreviation(match[0], match[0], explanation=LEGEND[match[0]]))
        at = match.end()
    return made + [nodes.Text(text[at:])] if made else None


def _in_shape(text):
    return re.compile("|".join(re.escape(m[0]) for m in SHAPE.finditer(text)) or r"(?!)")


def mark(app, doctree, docname):
    skip = OTHERS.get(docname, "")
    for text in list(doctree.findall(nodes.Text)):
        ancestors, node = set(), text.parent
        while node is not None:
            ancestors.add(type(node))
            node = node.parent
        if ancestors & {nodes.literal_block, nodes.title, nodes.math, nodes.math_block, nodes.raw, nodes.comment, nodes.abbreviation, nodes.reference}:
            continue
        if nodes.literal in ancestors and not SHAPE.fullmatch(text.astext()):
            continue
        made = _marked(text.astext(), ALONE, skip)
        if made:
            text.parent.replace(text, made)


def _comment(match):
    def shape(found):
        return re.sub(r"(?<![A-Za-z])[BTCHGDFVLS](?![A-Za-z])",
                      lambda m: f'<abbr title="{html.escape(LEGEND[m[0]])}">{m[0]}</abbr>' if m[0] in LEGEND else m[0], found[0])
    return SHAPE.sub(shape, match[0])


def mark_listings(app, pagename, templatename, context, doctree):
    if "body" in context:
        context["body"] = re.sub(r'<span class="c1">[^<]*</span>', _comment, context["body"])


def setup(app):
    app.connect("doctree-resolved", mark)
    app.connect("html-page-context", mark_listings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
