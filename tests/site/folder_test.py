"""The folder of the site: its size, what each page says of itself, and what is published and served besides."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import browser


TRANSLATED = {
    "zh_CN/index.md": "# 从张量到词元\n\n从 [嵌入](01_embedding.md)开始，或者读 [英文版](../../README.md)。\n",
    "zh_CN/01_embedding.md": "# 嵌入\n\n见 [源代码](../../learn#L3)、[掩码](../04_mask.md#write-it) 和 <a href=\"../04_mask.md\">它</a>。\n\n![图](../table.svg)\n",
}
ENGLISH = {
    "01_embedding.md": "# 01 Embedding\n\n![table](table.svg)\n\nAlso [in Chinese](zh_CN/01_embedding.md). Next: [04](04_mask.md).\n",
    "04_mask.md": "# 04 Mask\n\n## Write it\n\n`[T]` in [`learn`](../learn)\n",
    "README.md": "# How to read\n\n| letter | meaning |\n| --- | --- |\n| T | tokens |\n",
    "weaving/way.txt": "01_embedding\n04_mask\n",
    "table.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "../README.md": "# A book\n\nWhat it is.\n\nThis is part of what `./learn run 01` prints:\n\n```text\n1 2\n```\n\nThe end: [01](docs/01_embedding.md).\n",
    "../learn": "#!/usr/bin/env bash\n\necho\n",
}


class Languages(unittest.TestCase):
    """A book of two pages, one of which is translated."""

    def build(self, pages):
        book = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for kept in ("site", "weaving"):
            shutil.copytree(browser.HOME / "docs" / kept, book / "docs" / kept)
        (book / "docs/site/replay.md").write_text("# Replay\n")
        for name, text in pages.items():
            path = book / "docs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        made = subprocess.run([sys.executable, book / "docs/site/build.py", book / "site"], capture_output=True, text=True,
                              env=os.environ | {"T2T_SITE_ADDRESS": "https://example.org/book/"})
        return book / "site", made

    def test_switch(self):
        site, made = self.build(ENGLISH | TRANSLATED)
        self.assertEqual(made.returncode, 0, made.stderr)

        def page(name):
            return (site / name).read_text()
        self.assertIn('<html class="no-js" lang="zh-CN"', page("zh_CN/01_embedding.html"))
        # The switch leads to the same page, and from one that is not translated to the other language's first page.
        for name, to in {"01_embedding.html": "zh_CN/01_embedding.html", "zh_CN/01_embedding.html": "../01_embedding.html", "04_mask.html": "zh_CN/index.html",
                         "index.html": "zh_CN/index.html", "zh_CN/index.html": "../index.html"}.items():
            tag, said = ("en", "English") if name.startswith("zh") else ("zh-CN", "中文")
            with self.subTest(page=name):
                self.assertIn(f'<p class="languages"><a href="{to}" lang="{tag}" hreflang="{tag}">{said}</a></p>', page(name))
                self.assertEqual(f'<link rel="alternate" hreflang="{tag}" href="{to}">' in page(name), name != "04_mask.html")
        # Links to pages of the same language, of the other one, and to sources.
        self.assertIn('href="01_embedding.html">嵌入<', page("zh_CN/index.html"))
        self.assertIn('href="../index.html">英文版<', page("zh_CN/index.html"))
        for to in ("../source/learn.html#L3", "../04_mask.html#write-it", "../04_mask.html"):
            self.assertIn(f'href="{to}"', page("zh_CN/01_embedding.html"))
        self.assertIn('href="zh_CN/01_embedding.html">in Chinese<', page("01_embedding.html"))
        self.assertIn("id=L3>", page("source/learn.html"))
        self.assertTrue((site / "zh_CN/_images/table.svg").exists())
        self.assertIn("<loc>https://example.org/book/zh_CN/01_embedding.html</loc>", page("sitemap.xml"))

    def test_one_language(self):
        """Without a second language there is no switch; a folder that is no language's is refused."""
        site, made = self.build(ENGLISH | {"01_embedding.md": "# 01 Embedding\n"})
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertNotIn('class="languages"', (site / "01_embedding.html").read_text())
        site, made = self.build(ENGLISH | {"xx_XX/index.md": "# ?\n"})
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("such as zh_CN, got xx_XX", made.stderr)


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
            build.write_sitemap(folder, "https://example.org/book/", [build.stage.Edition(build.stage.FIRST)])
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
