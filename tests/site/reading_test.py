"""What a reader does with the site: search, copy, choose light or dark, print, reach all by keyboard, go without scripts."""
import re
import unittest

from axe_playwright_python.sync_playwright import Axe

import browser

# Words, and a page that must be among the first that the search finds.
WORDS = {"sinusoids": "positions.html", "perplexity": "09_language_model.html", "tokenizer": "10_tokenizer.html", "swizzle": "11_asynchronous.html",
         "adapter": "17_fine_tuning.html", "router": "14_mixture_of_experts.html", "preempted": "15_serving.html", "outlier": "12_quantization.html",
         "dropout": "18_experiments_more.html", "mpirun": "19_ranks.html"}
FIRST = 5

# What a reader wants to know: the words of a search, and the answer that must be on one of the first pages.
QUESTIONS = {
    "why v is not rotated": ("v rotated", "A score depends only on the distance because both of its factors, q and k, are rotated."),
    "which command shows the cache's size": ("cache bytes run", "./learn run 05"),
    "the mistake of a mask off by one": ("mask off by one", "The mask covers one key too few"),
    "which processor the recorded run was made on": ("recorded run", "on AMD EPYC"),
    "how fast rung 4 is": ("rung 4 TFLOP", "rung 4, swizzle, async 279 336 362"),
}

# Pages that together hold every kind of thing that a page holds.
KINDS = ["index.html", "README.html", "03_rope.html", "07_swiglu.html", "11_flash_attention.html", "12_quantization.html", "glossary.html", "on_paper.html", "search.html",
         "source/chapters/03_rope/rope.hpp.html", "source/chapters/03_rope/index.html"]


def found(reader, words):
    """The first pages that a search finds."""
    page = reader.open(f"search.html?q={words.replace(' ', '+')}")
    page.wait_for_selector("#search-results ul.search li a")
    page.wait_for_function("document.querySelector('#search-progress')?.textContent === '' || /finished|found/i.test(document.querySelector('.search-summary')?.textContent || '')")
    links = page.eval_on_selector_all("#search-results ul.search li > a", "all => all.map((a) => a.getAttribute('href').split(/[?#]/)[0])")
    return list(dict.fromkeys(links))[:FIRST]


class Search(unittest.TestCase):
    def test_ten_words(self):
        reader = browser.browser().reader()
        for word, wanted in WORDS.items():
            with self.subTest(word=word):
                self.assertIn(wanted, found(reader, word))
                self.assertEqual(reader.take(), {})

    def test_questions(self):
        """A question is answered by a page that a search finds at once."""
        reader = browser.browser().reader()
        for question, (words, answer) in QUESTIONS.items():
            with self.subTest(question=question):
                texts = [reader.open(name).inner_text("article") for name in found(reader, words)]
                self.assertTrue(any(answer in " ".join(text.split()) for text in texts), f"{words}: not found on the first {FIRST} pages")


    def test_how_to_read(self):
        """The first page leads to the meaning of each letter."""
        page = browser.browser().reader().open("index.html")
        page.locator(".begin a", has_text="How to read").click()
        page.wait_for_load_state()
        self.assertIn("S positions of keys and values", " ".join(page.inner_text("article").split()))


class Listings(unittest.TestCase):
    NAME = "03_rope"

    def listings(self):
        text = (browser.HOME / f"docs/{self.NAME}.md").read_text()
        return re.findall(r"^```\w*\n(.*?)^```$", text, re.S | re.M)

    def test_text(self):
        page = browser.browser().reader().open(f"{self.NAME}.html")
        shown = page.eval_on_selector_all("article .highlight pre", "all => all.map((one) => one.textContent)")
        self.assertEqual(shown, self.listings())

    def test_copy_button(self):
        page = browser.browser().reader().open(f"{self.NAME}.html")
        for i in (0, len(self.listings()) - 1):
            page.wait_for_selector("button.copybtn", state="attached")
            page.locator("button.copybtn").nth(i).focus()
            page.keyboard.press("Enter")
            page.evaluate("const field = document.createElement('textarea'); document.body.append(field); field.focus(); field.id = 'pasted'")
            page.keyboard.press("Control+V")
            pasted = page.evaluate("() => { const field = document.querySelector('#pasted'), text = field.value; field.remove(); return text; }")
            self.assertEqual(pasted.rstrip("\n"), self.listings()[i].rstrip("\n"))


class Everyone(unittest.TestCase):
    def test_contrast_and_alternatives(self):
        """axe-core's rules for WCAG 2, A and AA, in light and in dark."""
        axe = Axe()
        for scheme in ("light", "dark"):
            reader = browser.browser().reader(scheme=scheme)
            for name in KINDS:
                with self.subTest(page=name, scheme=scheme):
                    page = reader.open(name)
                    rules = ["wcag2a", "wcag2aa"] if scheme == "light" else {"type": "rule", "values": ["color-contrast"]}  # the rest is the same
                    found = axe.run(page, options={"runOnly": rules, "resultTypes": ["violations"]}).response["violations"]
                    told = [f"{one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}" for one in found for node in one["nodes"][:2]]
                    self.assertEqual(told, [])

    def test_figures(self):
        """Each figure is on a page, says what it shows, and has the colours of the scheme that a reader chooses there, whatever
        the system's is."""
        pages = {}
        for name in browser.pages():
            for file in re.findall(r'<img[^>]* src="_images/([^"]+[.]svg)"', (browser.SITE / name).read_text()):
                pages[file] = name
        self.assertEqual(sorted(pages), sorted(one.name for one in (browser.HOME / "docs").glob("*.svg")))
        reader = browser.browser().reader()
        for file, name in pages.items():
            with self.subTest(figure=file):
                image = reader.open(name).locator(f'img[src$="{file}"]')
                self.assertGreater(len(image.get_attribute("alt").split()), 20)
                self.assertGreater(image.evaluate("async (one) => { await one.decode(); return one.naturalWidth; }"), 0)
                for theme, scheme in (("light", "light"), ("dark", "dark"), ("auto", "light dark")):
                    self.assertEqual(image.evaluate("(one, theme) => { document.body.dataset.theme = theme; return getComputedStyle(one).colorScheme; }", theme), scheme)
                self.assertEqual(reader.take(), {})

    def test_keyboard(self):
        """Tab reaches every link, button, field and fold of a page, and shows where it is."""
        for width, name in ((1400, "03_rope.html"), (360, "05_kv_cache.html")):
            with self.subTest(page=name, width=width):
                page = browser.browser().reader(width=width).open(name)
                page.wait_for_selector("button.copybtn", state="attached")
                wanted = page.evaluate("""() => { window.reached = new Set(); window.hidden = [];
                  const all = [...document.querySelectorAll('a[href], button, input, select, summary')].filter((e) => !e.disabled && e.checkVisibility({visibilityProperty: true}));
                  window.wanted = new Set(all);
                  addEventListener('focusin', (e) => { reached.add(e.target); const box = e.target.getBoundingClientRect(), style = getComputedStyle(e.target);
                    if (style.outlineStyle === 'none' && style.boxShadow === 'none' && !e.target.matches('input')) hidden.push(e.target.outerHTML.slice(0, 90)); });
                  return wanted.size; }""")
                for _ in range(wanted + 150):
                    page.keyboard.press("Tab")
                missed = page.evaluate("[...wanted].filter((e) => !reached.has(e) && e.checkVisibility({visibilityProperty: true})).map((e) => e.outerHTML.slice(0, 100)).slice(0, 5)")
                self.assertEqual(missed, [])
                self.assertEqual(page.evaluate("hidden.slice(0, 3)"), [], "the place of the focus is not shown")

    def test_phone_menu(self):
        """On a phone the list of pages opens from the keyboard."""
        page = browser.browser().reader(width=360).open("03_rope.html")
        page.focus("#__navigation")
        page.keyboard.press("Space")
        page.wait_for_function("document.querySelector('.sidebar-drawer').getBoundingClientRect().left >= 0")

    def test_theme_button(self):
        page = browser.browser().reader().open("README.html")
        ask = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ask)
        page.locator(".theme-toggle-content button").focus()
        page.keyboard.press("Enter")
        if page.evaluate(ask) == before:
            page.keyboard.press("Enter")
        self.assertNotEqual(page.evaluate(ask), before)

    def test_without_scripts(self):
        page = browser.browser().reader(java_script_enabled=False).open("03_rope.html")
        self.assertGreater(len(page.inner_text("article")), 5000)
        self.assertGreater(page.locator("math").count(), 10)
        self.assertTrue(page.locator(".sidebar-tree a", has_text="04 Causal attention").first.is_visible())
        page.locator("details summary").first.click()
        self.assertTrue(page.locator("details code").first.is_visible())

    def test_legend(self):
        page = browser.browser().reader().open("04_causal_attention.html")
        titles = page.eval_on_selector_all("article abbr", "all => Object.fromEntries(all.map((a) => [a.textContent, a.title]))")
        self.assertEqual(titles["T"], "the number of tokens in a call")
        self.assertIn("S", titles)
        in_listing = page.eval_on_selector_all("pre .c1 abbr", "all => all.length")
        self.assertGreater(in_listing, 10)

    def test_print(self):
        page = browser.browser().reader().open("03_rope.html")
        page.emulate_media(media="print")
        self.assertFalse(page.locator(".sidebar-drawer").is_visible())
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(page.evaluate("document.querySelectorAll('details:not([open])').length"), 0)
