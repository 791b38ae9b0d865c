"""What Sphinx is told: build.py runs it on the pages that stage.py has written."""
import hashlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import stage  # noqa: E402

project = "Tensor to Token"
author = "Tensor to Token"
root_doc = "index"
extensions = ["myst_parser", "sphinx_copybutton", "sphinxext.opengraph", "mathml", "legend", "extras"]
language = os.environ.get("T2T_SITE_LANGUAGE", stage.FIRST)
edition = stage.Edition(language)
address = os.environ.get("T2T_SITE_ADDRESS", "")  # where the site will be published, if anywhere
address += edition.folder if address else ""

myst_enable_extensions = ["dollarmath", "amsmath", "attrs_block"]
myst_heading_anchors = 4
myst_heading_slug_func = "stage.slug"
myst_url_schemes = {
    "http": None, "https": None, "mailto": None,
    "source": {"url": edition.up + "source/{{path}}", "classes": ["source"]},
    "source-line": {"url": edition.up + "source/{{path}}#{{fragment}}", "classes": ["source"]},
    "page": {"url": "{{path}}"},
    "page-line": {"url": "{{path}}#{{fragment}}"},
}
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
# Pages are written anew when what writes them has changed, of which Sphinx would not know.
html_context = {"written_by": hashlib.sha256(b"".join(one.read_bytes() for one in sorted(pathlib.Path(__file__).parent.glob("*.py")))).hexdigest()}
html_title = project
html_baseurl = address
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_use_index = False
html_show_copyright = False
html_show_search_summary = True
html_math_renderer = "mathml"
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"color-code-background": "#f4f5f7"},
    "dark_css_variables": {"color-code-background": "#202225"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

ogp_site_url = address
ogp_site_name = project
ogp_social_cards = {"enable": False}
