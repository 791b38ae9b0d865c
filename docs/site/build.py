"""Builds the site: build.py INTO. Prints a line with the number of pages, their size, and the seconds it took.

INTO holds the site, in which each language but English has a folder; beside it, INTO.work holds the pages that Sphinx reads
and what it remembers of them.
"""
import os
import pathlib
import subprocess
import sys
import time

from babel import Locale, UnknownLocaleError

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


def pages_of(into, edition):
    """The pages that are there to be read, without those that Sphinx adds."""
    return sorted(page.name for page in (into / edition.folder).glob("*.html") if page.name not in ("404.html", "search.html", "genindex.html"))


def write_sitemap(into, address, editions):
    """What a search engine may read. Its addresses must be whole, so that there is none without an address."""
    pages = [edition.folder + ("" if page == "index.html" else page) for edition in editions for page in pages_of(into, edition)]
    urls = "".join(f"<url><loc>{address}{page}</loc></url>\n" for page in pages)
    (into / "sitemap.xml").write_text('<?xml version="1.0" encoding="utf-8"?>\n'
                                      f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n')
    (into / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {address}sitemap.xml\n")


def build_edition(edition, work, into, seen):
    """Writes the pages of one language. Its own process reads conf.py and the extensions anew."""
    stage.stage(edition, work / "pages", seen)
    jobs = str(min(4, os.cpu_count() or 1))
    sphinx = ["-q", "-W", "--keep-going", "-j", jobs, "-c", str(HERE), "-d", str(work / "read"), str(work / "pages"), str(into / edition.folder)]
    status = subprocess.run([sys.executable, "-m", "sphinx", *sphinx], env=os.environ | {"T2T_SITE_LANGUAGE": edition.language}).returncode
    if status:
        sys.exit(status)


def refuse_unknown(language):
    try:
        Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        sys.exit(f"docs/{language}/index.md: a folder with such a file holds another language's pages; wanted the name of a language, such as zh_CN, got {language}")


def main(into):
    start, into = time.monotonic(), into.resolve()
    work, address = into.with_name(into.name + ".work"), os.environ.get("T2T_SITE_ADDRESS", "")
    if address and not (address.startswith("https://") or address.startswith("http://")) or address and not address.endswith("/"):
        sys.exit(f"T2T_SITE_ADDRESS: wanted an address that begins with https:// and ends with /, got {address}")
    editions, linked = stage.editions(), {}
    for edition in editions:
        refuse_unknown(edition.language)
    for edition in editions:
        build_edition(edition, work / edition.language, into, linked)
    count = sources.Sources(stage.HOME, into, linked).all()
    write_404(into, address)
    if address:
        write_sitemap(into, address, editions)
    size = sum(one.stat().st_size for one in into.rglob("*") if one.is_file())
    pages = sum(len(pages_of(into, edition)) for edition in editions)
    print(f"{pages} pages and {count:,} of sources, {size / 1e6:.1f} MB, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
