"""Formulas become MathML when the site is built: the browser sets them without a script or a font from elsewhere."""
import re

from docutils import nodes
from latex2mathml.converter import convert

from legend import meanings


def _mathml(formula, display):
    """A prime is already raised in its font: as a superscript, it would be small and too high."""
    made = convert(formula.replace(r"\_", "_"), display=display)  # inside of \text, latex2mathml would show the backslash
    return re.sub(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>", r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', made)


def _set(self, node, display):
    known = meanings(node.astext())
    title = f' title="{known}"' if known else ""
    tag = "div" if display == "block" else "span"
    self.body.append(f'<{tag} class="formula"{title}>{_mathml(node.astext(), display)}</{tag}>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml",
                               inline_renderers=(lambda self, node: _set(self, node, "inline"), None),
                               block_renderers=(lambda self, node: _set(self, node, "block"), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
