"""Every page, opened once: its console, its requests, its formulas, and its width on a phone and on a desk."""
import re
import unittest

import browser

# What a page is asked: how far it is wider than the window, whether text shows a raw $ or other Markdown.
ASK = """() => {
  const wide = document.documentElement.scrollWidth - innerWidth;
  const raw = [], walk = document.createTreeWalker(document.querySelector('article') || document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    if (!parent.closest('pre, code, script, style') && /\\$[^ ]|`|\\]\\(|\\*\\*/.test(walk.currentNode.data)) raw.push(walk.currentNode.data.trim().slice(0, 60));
  }
  return {wide, raw, formulas: document.querySelectorAll('math').length, background: getComputedStyle(document.body).backgroundColor,
          cut: [...document.querySelectorAll('math')].filter((m) => !m.getClientRects().length && !m.closest('details:not([open])')).length};
}"""
WIDEST = """() => [...document.querySelectorAll('article *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
  && !e.closest('pre, .table-wrapper, .formula, .piece-table')).slice(0, 3).map((e) => e.outerHTML.slice(0, 90))"""


class EveryPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reader = browser.browser().reader()

    def test_all(self):
        """Each page is opened in one width and scheme, and changed to the other; the next page begins where this one ended."""
        formulas, settings = 0, [(1400, "light"), (360, "dark")]
        for name in browser.pages():
            with self.subTest(page=name):
                page, seen = self.reader.open(name), {settings[0][0]: self.reader.page.evaluate(ASK)}
                settings.reverse()
                page.emulate_media(color_scheme=settings[0][1])
                page.set_viewport_size({"width": settings[0][0], "height": 400})
                seen[settings[0][0]] = page.evaluate(ASK)
                desk, phone = seen[1400], seen[360]
                self.assertEqual(self.reader.take(), {})
                self.assertEqual((desk["raw"], desk["cut"]), ([], 0), "formulas that are not set")
                self.assertLessEqual(desk["wide"], 0, "wider than 1400 pixels")
                self.assertLessEqual(phone["wide"], 0, f"wider than 360 pixels: {page.evaluate(WIDEST)}")
                self.assertNotEqual(desk["background"], phone["background"], "light and dark look the same")
                formulas += desk["formulas"]
        written = sum(len(re.findall(r"^\$\$|(?<![\$\\])\$[^$\n]+\$", re.sub(r"^ *```.*?^ *```|`[^`\n]+`", "", one.read_text(), flags=re.S | re.M), flags=re.M))
                      for one in (browser.HOME / "docs").glob("*.md"))
        self.assertGreater(formulas, 0.9 * written, "formulas are missing")

    def test_sources(self):
        sources = sorted((browser.SITE / "source").rglob("*.html"))
        for path in sources[::97]:
            with self.subTest(page=str(path)):
                page = self.reader.open(str(path.relative_to(browser.SITE)))
                page.set_viewport_size({"width": 360, "height": 740})
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)
                self.assertEqual(self.reader.take(), {})

    def test_every_link_leads_somewhere(self):
        """Links to other pages and to lines, on all pages, without opening them."""
        anchors, broken = {}, []
        for path in browser.SITE.rglob("*.html"):
            text = path.read_text()
            if path.name == "404.html":
                continue
            for link in set(re.findall(r'<a [^>]*?href="([^"]+)"', text)):
                if re.match(r"[a-z]+:|#$", link):
                    continue
                target, _, anchor = link.partition("#")
                to = (path.parent / target).resolve() if target else path
                if to not in anchors:
                    anchors[to] = set(re.findall(r'\bid="?([^" >]+)', to.read_text())) if to.is_file() else None
                if anchors[to] is None or anchor and anchor not in anchors[to]:
                    broken.append(f"{path.name}: {link}")
        self.assertEqual(broken[:5], [])
