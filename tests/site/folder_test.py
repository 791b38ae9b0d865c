"""The folder of the site: its size, what each page says of itself, and what is published and served besides."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import browser


class Folder(unittest.TestCase):
    def test_size(self):
        size = sum(one.stat().st_size for one in browser.SITE.rglob("*") if one.is_file())
        self.assertLess(size, 15e6)

    def test_heads(self):
        """Each page of a chapter names its sources, its checks and its commands, and says for other sites what it is."""
        for name in browser.pages():
            text = (browser.SITE / name).read_text()
            if re.match(r"\d\d_", name):
                with self.subTest(page=name):
                    head = re.search(r'<p class="beside">(.*?)</p>', text, re.S)
                    self.assertTrue(head, "no line of links")
                    self.assertIn("./learn", head[1])
                    self.assertRegex(head[1], r'href="source/tests/\d\d_')
            if name not in ("search.html", "genindex.html"):
                self.assertIn('property="og:title"', text, name)

    def test_published(self):
        """What a host gets besides: a page for what is not there, which brings its own style, and a list of pages."""
        sys.path.insert(0, str(browser.HOME / "docs/site"))
        import build
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for page in ("index.html", "03_rope.html", "search.html"):
                (folder / page).touch()
            build.write_404(folder, "https://example.org/book/")
            build.write_sitemap(folder, "https://example.org/book/")
            self.assertEqual(re.findall("<loc>(.*?)</loc>", (folder / "sitemap.xml").read_text()), ["https://example.org/book/03_rope.html", "https://example.org/book/"])
            self.assertIn("https://example.org/book/sitemap.xml", (folder / "robots.txt").read_text())
            page = browser.browser().reader().page
            page.set_content((folder / "404.html").read_text())
            self.assertEqual(page.locator("main a").first.get_attribute("href"), "https://example.org/book/index.html")
            self.assertNotIn("_static", (folder / "404.html").read_text())

    def test_served(self):
        """./learn site --serve answers what is not there with that page, and shows nothing outside of the folder."""
        server = subprocess.Popen([sys.executable, browser.HOME / "docs/site/serve.py", browser.SITE, "0"], stdout=subprocess.PIPE, text=True)
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
            self.assertIn(b"Tensor to Token", urllib.request.urlopen(address).read())
            for path in ("no/such/page", "../../README.md", "%2e%2e/%2e%2e/README.md"):
                with self.assertRaises(urllib.error.HTTPError) as raised:
                    urllib.request.urlopen(address + path)
                self.assertEqual(raised.exception.code, 404)
                self.assertIn(b"There is no such page here", raised.exception.read())
        finally:
            server.kill()
            server.communicate()

    def test_no_address_in_a_page(self):
        """Nothing is fetched from elsewhere: no script, style, picture or font has an address."""
        for path in browser.SITE.rglob("*.html"):
            for what in re.findall(r'<(?:script|link|img|iframe|source)[^>]*(?:src|href)="(https?:[^"]*)"', path.read_text()):
                self.fail(f"{path.name} fetches {what}")
        for path in list(browser.SITE.rglob("*.css")):
            self.assertNotRegex(path.read_text(), r"url\([\"']?(https?:)?//", path.name)
