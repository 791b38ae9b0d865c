// Masks and softmax: one query's scores become its weights.
"use strict";

Pieces.define("attention", {
  title: "Try it: from scores to weights",
  about: "Move the scores of one query, choose what the mask hides, and watch softmax: weight = e^(s / temperature) / Σ e^(s / temperature). "
    + "A dot product q·k sums D products and is about √D times as large as one of them; dividing by √D undoes this.",

  // Which keys query t sees, of S keys, when the queries are the last T of S positions: [begin, end).
  keysSeen(t, T, S, mask, window) {
    if (mask === "none") return [0, S];
    const end = S - T + t + 1;
    return [mask === "sliding" ? Math.max(0, end - window) : 0, end];
  },

  // e^(s − highest) / Σ e^(s − highest); a score of −∞ gets weight 0.
  softmax(scores, temperature = 1) {
    const highest = Math.max(...scores), exponentials = scores.map((s) => Math.exp((s - highest) / temperature));
    const sum = exponentials.reduce((a, b) => a + b, 0);
    return exponentials.map((e) => e / sum);
  },

  // Softmax of a whole [T, S] matrix of masked scores, row by row, for comparison with the program's.
  rows(scores) {
    return scores.map((row) => this.softmax(row));
  },

  grid(t, S, mask, window) {
    const { make } = Pieces, cells = [];
    for (let row = 0; row < S; ++row) {
      const [begin, end] = this.keysSeen(row, S, S, mask, window);
      for (let key = 0; key < S; ++key) cells.push(make("i", { class: key >= begin && key < end ? (row === t ? "now" : "on") : "" }));
    }
    const [begin, end] = this.keysSeen(t, S, S, mask, window);
    return make("div", { class: "grid", role: "img", style: `grid-template-columns: repeat(${S}, auto)`, "aria-label": `The mask of ${S} queries and ${S} keys: query ${t} sees keys ${begin} to ${end - 1}.` }, ...cells);
  },

  show(place) {
    const { make, slider, choice, check, table, fixed, bar } = Pieces, S = 6, start = [0.5, -1, 2, 1, 0, 1.5];
    const left = make("div", {}), right = make("div", {}), result = make("p", { role: "status", class: "result" });
    const update = () => {
      const at = { t: t.value(), mask: mask.value(), window: window_.value(), D: Number(width.value()), temperature: temperature.value() };
      const [begin, end] = this.keysSeen(at.t, S, S, at.mask, at.window), grows = divided.value() ? 1 : Math.sqrt(at.D);
      const shown = scores.map((one, s) => (s >= begin && s < end ? one.value() * grows : -Infinity));
      const weights = this.softmax(shown, at.temperature);
      left.replaceChildren(make("p", { class: "piece-about" }, "The mask, a row for each query: "), this.grid(at.t, S, at.mask, at.window));
      right.replaceChildren(table(`Query ${at.t}: scores and weights`, ["key", "score", "e^(score − highest)", "weight"], shown.map((s, i) => [
        i, s === -Infinity ? "−∞ (masked)" : fixed(s, 2), s === -Infinity ? "0" : fixed(Math.exp((s - Math.max(...shown)) / at.temperature), 4), ""])));
      right.querySelectorAll("tbody tr").forEach((row, i) => row.lastChild.append(bar(weights[i], fixed(weights[i], 4))));
      const largest = Math.max(...weights), change = 1 - weights.reduce((sum, w) => sum + w * w, 0);
      result.textContent = `Query ${at.t} sees keys ${begin} to ${end - 1}. The largest weight is ${fixed(largest, 4)}; the weights sum to ${fixed(weights.reduce((a, b) => a + b), 4)}. `
        + `1 − Σ weight² = ${fixed(change, 4)}: near 0, softmax hardly passes on a gradient.`;
    };
    const scores = start.map((value, s) => slider(`score of key ${s}`, { min: -4, max: 4, step: 0.1, value, written: (x) => fixed(x, 1) }, update));
    const t = slider("t, the query", { min: 0, max: S - 1, value: S - 1 }, update);
    const mask = choice("mask", [["causal", "causal"], ["sliding", "sliding window of W keys"], ["none", "bidirectional (none)"]], update);
    const window_ = slider("W, the window", { min: 1, max: S, value: 3 }, update);
    const temperature = slider("temperature", { min: 0.1, max: 4, step: 0.1, value: 1, written: (x) => fixed(x, 1) }, update);
    const width = choice("D, the width of q and k", [["64", "64"], ["16", "16"], ["256", "256"], ["1", "1"]], update);
    const divided = check("divide q·k by √D", true, update);
    place.append(make("div", { class: "controls" }, ...scores.map((s) => s.element)),
      make("div", { class: "controls" }, t.element, mask.element, window_.element, temperature.element, width.element, divided.element),
      make("div", { class: "side-by-side" }, left, right), result);
    update();
  },
});
