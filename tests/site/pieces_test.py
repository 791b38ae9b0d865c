"""The interactive pieces: their numbers are those of the chapters' programs, and the keyboard moves them."""
import math
import re
import unittest

import browser
import programs

PLACES = {"rope": "03_rope.html", "attention": "04_causal_attention.html", "online": "11_flash_attention.html", "cache": "05_kv_cache.html",
          "quantize": "12_quantization.html", "sampling": "09_generation.html", "scheduler": "15_serving.html"}


class Numbers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reader = browser.browser().reader()

    def ask(self, piece, call, argument=None):
        """What a function of the piece returns: call is JavaScript in which `p` is the piece and `x` the argument."""
        if not self.reader.page.url.endswith(PLACES[piece]):
            self.reader.open(PLACES[piece])
        return self.reader.page.evaluate(f"(x) => {{ const p = Pieces.known['{piece}']; return {call}; }}", argument)

    def test_rope_scores(self):
        """The table of scores by distance, from the q and k that the program saves."""
        printed, saved = programs.run("03_rope")
        rows = re.findall(r"^ +(\d+) +(-?\d\.\d\d) +(-?\d\.\d\d) +(-?\d\.\d\d) +\d", printed.split("A score depends only on the distance")[1], re.M)[:5]
        self.assertEqual(len(rows), 5)
        for distance, *scores in rows:
            for n, score in zip((0, 10, 1000), scores):
                ours = self.ask("rope", "p.score(x.q, x.k, x.m, x.n, 10000, 'halves')", {"q": saved["q"][1], "k": saved["k"][1], "m": n + int(distance), "n": n})
                self.assertAlmostEqual(ours, float(score), delta=0.0051)

    def test_rope_of_a_layer(self):
        """The scores of a head, from the x and the matrices that the program saves. Its sums of 256 floats are off by at most
        256 roundings of numbers below 8: 2^-24 * 256 * 8 = 0.0001; three such sums make a score."""
        _, saved = programs.run("03_rope")
        (T, C), x = saved["x"]
        H, D = saved["scores"][0][0], C // saved["scores"][0][0]
        project = lambda w, t: [sum(a * b for a, b in zip(x[t * C:(t + 1) * C], saved[w][1][c * C:(c + 1) * C])) for c in range(D)]
        for t, s in ((0, 0), (5, 2), (T - 1, 1), (T - 1, T - 1)):
            ours = self.ask("rope", "p.score(x.q, x.k, x.m, x.n, 10000, 'halves')", {"q": project("wq", t), "k": project("wk", s), "m": t, "n": s})
            self.assertAlmostEqual(ours, saved["scores"][1][t * T + s], delta=5e-4)

    def test_rope_pairings(self):
        """Neighbours are halves whose elements stand in another order."""
        x = [0.5, -1, 2, 3, 1.5, -2, 0.25, 1]
        neighbours = self.ask("rope", "p.rotated(x, 7, 10000, 'neighbours')", x)
        halves = self.ask("rope", "p.rotated(x, 7, 10000, 'halves')", x[0::2] + x[1::2])
        for i in range(4):
            self.assertAlmostEqual(neighbours[2 * i], halves[i], places=12)
            self.assertAlmostEqual(neighbours[2 * i + 1], halves[i + 4], places=12)

    def test_softmax(self):
        _, saved = programs.run("04_causal_attention")
        (T, S), scores = saved["scores"]
        rows = [[str(s) for s in scores[t * S:(t + 1) * S]] for t in range(T)]  # JSON has no infinity
        ours = self.ask("attention", "p.rows(x.map((row) => row.map((s) => Number(s.replace('inf', 'Infinity')))))", rows)
        for t in range(T):
            for s in range(S):
                self.assertAlmostEqual(ours[t][s], saved["weights"][1][t * S + s], delta=1e-6)  # S + 2 roundings of floats below 1
                self.assertEqual(scores[t * S + s] == -math.inf, not (lambda seen: seen[0] <= s < seen[1])(self.seen(t, T, S)))

    def seen(self, t, T, S, mask="causal", window=0):
        return self.ask("attention", "p.keysSeen(x[0], x[1], x[2], x[3], x[4])", [t, T, S, mask, window])

    def test_masks(self):
        """The four masks that the page shows."""
        text = (browser.HOME / "docs/04_causal_attention.md").read_text().split("Four masks: a query's row shows the keys it sees\n\n")[1]
        for t, line in enumerate(text.splitlines()[1:6]):
            shown = [(part.find("█") // 2, (part.rfind("█") + 1) // 2) for part in line.split()]
            ours = [self.seen(t, 5, 5, "none"), self.seen(t, 5, 5), self.seen(t, 5, 5, "sliding", 2), self.seen(t, 5, 7, "none")]
            self.assertEqual([tuple(one) for one in ours], shown)

    def test_online(self):
        """Four keys, one after the other, as the page shows them; then in blocks of two, which give the same mean."""
        ours = self.ask("online", "p.states([Math.log(1), Math.log(2), Math.log(4), Math.log(1)], [8, 4, 2, 16], 1)")
        for row, state in zip(programs.table("11_flash_attention", "Four keys, one after the other"), ours, strict=True):
            _, _, _, m, kept, weight, l, o, mean = map(float, row)
            for name, wanted in (("m", m), ("kept", kept), ("l", l), ("o", o)):
                self.assertAlmostEqual(state[name], wanted, delta=0.00051)
            self.assertAlmostEqual(state["weights"][0], weight, delta=0.00051)
            self.assertAlmostEqual(state["o"] / state["l"], mean, delta=0.00051)
        masked = self.ask("online", "p.states([-Infinity, -Infinity, 0, -Infinity, 1], [9, 9, 2, 9, 4], 2).at(-1)")
        self.assertAlmostEqual(masked["o"] / masked["l"], (2 + 4 * math.e) / (1 + math.e), places=12)

    def test_cache(self):
        rows = programs.table("05_kv_cache", "Side by side")
        for row in rows:
            numbers = [int(cell) for cell in row if cell.isdigit()]
            self.assertEqual(self.ask("cache", f"p.rows(24, {numbers[0]})"), {"without": numbers[1], "with": numbers[2]})
        text = (browser.HOME / "docs/05_kv_cache.md").read_text()
        sums = list(map(int, re.search(r"^ +sum +(\d+) +(\d+)$", text, re.M).groups()))
        self.assertEqual(self.ask("cache", "p.sums(24, 12)"), {"without": sums[0], "with": sums[1]})
        for G, parameters, size, *_ in programs.table("06_gqa", "What is stored"):
            self.assertEqual(self.ask("cache", f"p.bytes(30, {G}, 64, 8192, 16)"), int(size) * 2**20)
            self.assertEqual(self.ask("cache", f"p.parameters(30, 576, 9, {G}, 64)"), int(parameters.replace(",", "")))

    def test_quantize(self):
        rows = programs.table("12_quantization", "Eight weights of a block of 32, rounded and back")
        self.assertEqual(len(rows), 8)
        for column, name in ((1, "q8_0"), (2, "q4_1"), (3, "q4_0")):
            back = self.ask("quantize", f"p.rounded(p.block(), '{name}').back")
            for i, row in enumerate(rows):
                self.assertAlmostEqual(back[i], float(row[column]), delta=0.00051)

    def test_sampling(self):
        settings = [{"temperature": 0.5}, {"temperature": 2}, {"topK": 3}, {"topP": 0.8}, {"minP": 0.2}]
        for v, row in enumerate(programs.rows("09_generation", "What each filter keeps", r"\d %  +\d")):
            shown = [0 if cell == "·" else int(cell) for cell in row[1:] if cell != "%"]
            for setting, wanted in zip(settings, shown[1:], strict=True):
                ours = self.ask("sampling", "p.settled(p.probabilities, x)", setting)[v]
                self.assertAlmostEqual(100 * ours, wanted, delta=0.51)
                self.assertEqual(ours == 0, wanted == 0 and "temperature" not in setting)
        by_hand = [1 / 8, 1 / 2, 1 / 8, 1 / 4]
        for setting, kept in (({"topK": 3}, [0, 1, 3]), ({"topP": 0.6}, [1, 3]), ({"minP": 0.3}, [1, 3]), ({"temperature": 0}, [1])):
            ours = self.ask("sampling", "p.settled(x[0], x[1])", [by_hand, setting])
            self.assertEqual([v for v, p in enumerate(ours) if p > 0], kept)

    def test_sampling_of_the_model(self):
        """The recorded logits are the model's: other processors add in other orders, which moves a logit by less than 0.02."""
        model = self.ask("sampling", "p.model")
        self.assertEqual(len(model["likeliest"]), 50)
        self.assertEqual(self.ask("sampling", "p.tokens('model').probabilities.length"), 50)
        self.assertAlmostEqual(sum(self.ask("sampling", "p.tokens('model').probabilities")), 1, places=12)
        logits = programs.logits(model["prompt"])
        if logits is None:
            self.skipTest("the real model's weights are not here: ./learn weights")
        self.assertEqual(len(logits), model["V"])
        for (_, recorded), z in zip(model["likeliest"], sorted(logits, reverse=True)):
            self.assertAlmostEqual(recorded, z, delta=0.02)
        self.assertAlmostEqual(model["logSum"], math.log(sum(math.exp(z) for z in logits)), delta=0.02)

    def test_scheduler(self):
        """The waits of a long prompt and of eight answers, which the page's table shows for four budgets."""
        texts = [{"arrives": 0, "prompt": 2, "most": 250}] * 8 + [{"arrives": 10, "prompt": 1500, "most": 1}]
        rows = programs.rows("15_serving", "A prompt of 1,500 tokens while eight sequences answer", r"ms +\d+ ms$")
        self.assertEqual(len(rows), 4)
        for row in rows:
            budget, *shown = [int(cell.replace(",", "")) for cell in row if cell != "ms"]
            first, between = self.ask("scheduler", "(({first, between}) => [first, between])(p.waits(x.texts, p.simulate(x.texts, x.limits, 256), 8, [0, 1, 2, 3, 4, 5, 6, 7]))",
                                      {"texts": texts, "limits": {"budget": budget, "sequences": 9, "pageSize": 16}})
            for ours, wanted in zip([between[int(share * (len(between) - 1))] for share in (0.5, 0.99, 1)] + [first], shown, strict=True):
                self.assertAlmostEqual(ours, wanted, delta=0.51)

    def test_scheduler_preempts(self):
        """By the rules: the oldest never is, all end, and pages and budget suffice in each step."""
        for pages in (8, 16, 20):
            texts = [{"arrives": 0, "prompt": 11, "most": 11}, {"arrives": 2, "prompt": 13, "most": 14}, {"arrives": 3, "prompt": 25, "most": 6}]
            steps = self.ask("scheduler", "p.simulate(x.texts, {budget: 12, sequences: 3, pageSize: 4}, x.pages)", {"texts": texts, "pages": pages})
            self.assertLess(len(steps), 200)
            self.assertTrue(all(step["used"] <= pages and step["tokens"] <= 12 and step["cells"][0] != "p" for step in steps))
            self.assertEqual([sum(id in step["answered"] for step in steps) for id in range(3)], [11, 14, 6])
            self.assertEqual(any("p" in step["cells"] for step in steps), pages < 20)


class Keys(unittest.TestCase):
    """Each piece answers to the keyboard, in both widths, and says its result in words."""

    def test_sliders(self):
        for width in (1400, 360):
            for name, place in PLACES.items():
                with self.subTest(piece=name, width=width):
                    reader = browser.browser().reader(width=width)
                    page = reader.open(place)
                    piece = page.locator(f'[data-piece="{name}"]')
                    result = piece.locator("[role=status]")
                    for slider in piece.locator("input[type=range]").all():
                        before = piece.inner_text()
                        slider.focus()
                        page.keyboard.press("ArrowLeft")
                        if piece.inner_text() == before:
                            page.keyboard.press("ArrowRight")
                        self.assertNotEqual(piece.inner_text(), before, slider.get_attribute("aria-valuetext"))
                    self.assertNotRegex(result.inner_text(), r"NaN|undefined|Infinity")
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0)
                    self.assertEqual(reader.take(), {})
