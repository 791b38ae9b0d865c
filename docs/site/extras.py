"""What each page gets besides its text.

The scripts of its interactive pieces: a page asks for the piece NAME by the comment <!-- piece: NAME -->, which shows nothing
on a code host; stage.py makes a place of it; the script is static/pieces/NAME.js.

Fewer bytes: names, punctuation and spaces have the listing's own colour, which a third of a page would say again and again; and
the classes of rows, links and words in code, for which the book's style has no rule.

The list of pages: the pages in depth of this page's chapter alone, which keeps a tenth of all bytes away; and levels of its
headings, which Furo leaves out.

The switch of languages, if the book has more than one: a link to the same page in each other language, or to that language's
first page if this one is not translated.
"""
import re

import stage
from babel import Locale
from furo.navigation import get_navigation_tree

FEWER_BYTES = [(r'<span class="[nwp]">([^<]*)</span>', r"\1"), (r'<span class="pre">([^<]*)</span>', r"\1"),
               (r'<code class="docutils literal notranslate">', '<code class="literal">'), (r' class="row-(odd|even)"', ""), (r'"reference internal"', '"reference"')]


def add_scripts(app, body):
    names = dict.fromkeys(re.findall(r'data-piece="([a-z_]+)"', body))
    if names:
        app.add_css_file("pieces/pieces.css")
        app.add_js_file("pieces/pieces.js", loading_method="defer")
    for name in names:
        app.add_js_file(f"pieces/{name}.js", loading_method="defer")


def add_languages(app, pagename, context):
    here, all_editions = app.config.language, stage.editions()
    if len(all_editions) == 1:
        return
    up, links = stage.Edition(here).up, []
    for edition in all_editions:
        if edition.language != here:
            to = up + edition.folder + (pagename if pagename in edition.pages else "index") + ".html"
            tag = edition.language.replace("_", "-")
            links.append(f'<a href="{to}" lang="{tag}" hreflang="{tag}">{Locale.parse(edition.language).get_language_name()}</a>')
            if pagename in edition.pages:
                context["metatags"] += f'<link rel="alternate" hreflang="{tag}" href="{to}">\n'
    context["body"] = f'<p class="languages">{" · ".join(links)}</p>\n{context["body"]}'


def improve(app, pagename, templatename, context, doctree):
    if "body" in context:
        add_scripts(app, context["body"])
        for said, shorter in FEWER_BYTES:
            context["body"] = re.sub(said, shorter, context["body"])
        add_languages(app, pagename, context)
    list_of_pages = context["toctree"](collapse=True, titles_only=True, maxdepth=-1, includehidden=True) if "toctree" in context else ""
    tree = get_navigation_tree(list_of_pages)
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"').replace("reference internal", "reference")


def setup(app):
    app.connect("html-page-context", improve, priority=900)  # after Furo's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
