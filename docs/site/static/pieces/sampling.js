// Sampling: what a temperature and three filters do to the probabilities of the next token.
"use strict";

Pieces.define("sampling", {
  title: "Try it: choose the next token",
  about: "The settings apply in this order: temperature, top-k, top-p, min-p. Each filter drops tokens, and the rest share the whole probability: p = e^(z/τ) / Σ e^(z/τ).",

  words: ["the", "a", "his", "her", "this", "no", "seven", "of"],
  probabilities: [0.4, 0.22, 0.14, 0.09, 0.06, 0.05, 0.03, 0.01],

  // Softmax of the tokens that are kept; a dropped one has probability 0.
  softmax(logits) {
    const highest = Math.max(...logits), e = logits.map((z) => Math.exp(z - highest)), sum = e.reduce((a, b) => a + b, 0);
    return e.map((x) => x / sum);
  },

  // The ids, the likeliest first; of equal ones the lower id.
  order(logits) {
    return logits.map((_, v) => v).sort((a, b) => logits[b] - logits[a] || a - b);
  },

  // The probabilities after all settings; at temperature 0 the likeliest token has them all.
  settled(probabilities, { temperature = 1, topK = 0, topP = 1, minP = 0 }) {
    let logits = probabilities.map(Math.log);
    if (temperature === 0) return logits.map((_, v) => (v === this.order(logits)[0] ? 1 : 0));
    logits = logits.map((z) => z / temperature);
    const keep = (kept) => { logits = logits.map((z, v) => (kept.includes(v) ? z : -Infinity)); };
    if (topK > 0) keep(this.order(logits).slice(0, topK));
    if (topP < 1) {
      const p = this.softmax(logits), kept = [];
      for (let sum = 0, order = this.order(logits); sum < topP && order.length;) { kept.push(order.shift()); sum += p[kept.at(-1)]; }
      keep(kept);
    }
    const lowest = Math.max(...logits) + Math.log(minP);
    return this.softmax(logits.map((z) => (z < lowest ? -Infinity : z)));
  },

  // The token at which the sum of the probabilities exceeds u.
  tokenAt(probabilities, u) {
    let left = u, last = 0;
    for (const [v, p] of probabilities.entries()) {
      if (p === 0) continue;
      last = v;
      left -= p;
      if (left < 0) break;
    }
    return last;
  },

  show(place) {
    const { make, slider, button, table, bar, fixed } = Pieces, numbers = make("div", {}), result = make("p", { role: "status", class: "result" });
    let settled = [], drawn = [];
    const update = () => {
      settled = this.settled(this.probabilities, { temperature: temperature.value(), topK: topK.value() === 8 ? 0 : topK.value(), topP: topP.value(), minP: minP.value() });
      const counts = this.words.map((_, v) => drawn.filter((one) => one === v).length);
      numbers.replaceChildren(table("Eight words with given probabilities", ["token", "probability", "after the settings", "drawn"], this.words.map((word, v) => [word, `${fixed(100 * this.probabilities[v], 0)} %`, "", counts[v] || ""])));
      numbers.querySelectorAll("tbody tr").forEach((row, v) => row.children[2].append(bar(settled[v], settled[v] ? `${fixed(100 * settled[v], 1)} %` : "dropped")));
      const kept = settled.filter((p) => p > 0), surprise = kept.reduce((sum, p) => sum - p * Math.log(p), 0);
      result.textContent = `${kept.length} of 8 tokens are kept; their entropy is ${fixed(surprise, 3)} nats. ${drawn.length ? `Drawn: ${drawn.slice(-12).map((v) => this.words[v]).join(" ")}.` : ""}`;
    };
    const changed = () => { drawn = []; update(); };
    const temperature = slider("temperature τ (0: greedy)", { min: 0, max: 3, step: 0.1, value: 1, written: (x) => fixed(x, 1) }, changed);
    const topK = slider("top-k", { min: 1, max: 8, value: 8, written: (k) => (k === 8 ? "off" : String(k)) }, changed);
    const topP = slider("top-p", { min: 0.05, max: 1, step: 0.05, value: 0.8, written: (p) => (p === 1 ? "off" : fixed(p, 2)) }, changed);
    const minP = slider("min-p", { min: 0, max: 1, step: 0.05, value: 0, written: (p) => (p === 0 ? "off" : fixed(p, 2)) }, changed);
    const draw = button("Draw ten tokens", () => { for (let i = 0; i < 10; ++i) drawn.push(this.tokenAt(settled, Math.random())); update(); });
    place.append(make("div", { class: "controls" }, temperature.element, topK.element, topP.element, minP.element, make("div", { class: "buttons" }, draw)), numbers, result);
    update();
  },
});
