"""Formulas become MathML when the site is built: the browser sets them without a script or a font from elsewhere."""
from docutils import nodes
from latex2mathml.converter import convert

from legend import meanings


def _set(self, node, display):
    formula = node.astext().replace(r"\_", "_") # inside of \text, latex2mathml would show the backslash
    known = meanings(node.astext())
    title = f' title="{known}"' if known else ""
    tag = "div" if display == "block" else "span"
    self.body.append(f'<{tag} class="formula"{title}>{convert(formula, display=display)}</{tag}>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml",
                               inline_renderers=(lambda self, node: _set(self, node, "inline"), None),
                               block_renderers=(lambda self, node: _set(self, node, "block"), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
