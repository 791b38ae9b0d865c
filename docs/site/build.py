"""Builds the site: build.py INTO. Prints a line with the number of pages, their size, and the seconds it took.

INTO holds the site; beside it, INTO.work holds the pages that Sphinx reads and what it remembers of them.
"""
import os
import pathlib
import shutil
import sys
import time

from sphinx.cmd.build import main as sphinx

import sources
import stage

HERE = pathlib.Path(__file__).resolve().parent
NOT_FOUND = """<p>There is no such page here. <a href="{root}index.html">The first page</a> lists the chapters, and
<a href="{root}search.html">the search</a> finds words in all pages.</p>"""


def write_404(into, address):
    """A host shows it for any path that it does not have, so that it takes its style along."""
    style = (HERE / "static/source.css").read_text().replace('@import "numbers.css";\n', "")
    root = address or "/"
    page = sources.PAGE.format(title="No such page", root=root, path="no such page", pages="", main=NOT_FOUND.format(root=root))
    page = page.replace(f'<link rel="stylesheet" href="{root}_static/source.css">', f"<style>{style}</style>")
    (into / "404.html").write_text(page.replace(f'<script src="{root}_static/source.js"></script>', ""))


def write_sitemap(into, address):
    """What a search engine may read. Its addresses must be whole, so that there is none without an address."""
    pages = sorted(page.name for page in into.glob("*.html") if page.name not in ("404.html", "search.html", "genindex.html"))
    urls = "".join(f"<url><loc>{address}{'' if page == 'index.html' else page}</loc></url>\n" for page in pages)
    (into / "sitemap.xml").write_text('<?xml version="1.0" encoding="utf-8"?>\n'
                                      f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n')
    (into / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {address}sitemap.xml\n")


def main(into):
    start, into = time.monotonic(), into.resolve()
    work, address = into.with_name(into.name + ".work"), os.environ.get("T2T_SITE_ADDRESS", "")
    if address and not (address.startswith("https://") or address.startswith("http://")) or address and not address.endswith("/"):
        sys.exit(f"T2T_SITE_ADDRESS: wanted an address that begins with https:// and ends with /, got {address}")
    linked = stage.stage(work / "pages")
    jobs = str(min(4, os.cpu_count() or 1))
    status = sphinx(["-q", "-W", "--keep-going", "-j", jobs, "-c", str(HERE), "-d", str(work / "read"), str(work / "pages"), str(into)])
    if status:
        sys.exit(status)
    count = sources.Sources(stage.HOME, into, linked).all()
    write_404(into, address)
    if address:
        write_sitemap(into, address)
    shutil.rmtree(into / "_sources", ignore_errors=True)
    size = sum(one.stat().st_size for one in into.rglob("*") if one.is_file())
    print(f"{len(list(into.glob('*.html')))} pages and {count:,} of sources, {size / 1e6:.1f} MB, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
