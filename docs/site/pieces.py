"""Gives the scripts of the interactive pieces to the pages that have one. A page asks for the piece NAME by the comment
<!-- piece: NAME -->, which shows nothing on a code host; stage.py makes a place of it; the script is static/pieces/NAME.js.
"""
import re


def add_scripts(app, pagename, templatename, context, doctree):
    names = dict.fromkeys(re.findall(r'data-piece="([a-z_]+)"', context.get("body", "")))
    if names:
        app.add_css_file("pieces/pieces.css")
        app.add_js_file("pieces/pieces.js", loading_method="defer")
    for name in names:
        app.add_js_file(f"pieces/{name}.js", loading_method="defer")


def setup(app):
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
