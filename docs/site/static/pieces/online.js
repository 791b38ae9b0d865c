// Online softmax: the keys come one block after the other, and three running values suffice.
"use strict";

Pieces.define("online", {
  title: "Try it: one block of keys at a time",
  about: "For each block of keys: m′ = max(m, scores), kept = e^(m − m′), l′ = kept·l + Σ e^(s − m′), o′ = kept·o + Σ e^(s − m′)·v. "
    + "After each block, o / l is the mean over the keys so far. A score may be −inf, for a key that is masked.",

  // The state after one block: {m, kept, weights, l, o}.
  take(state, scores, values) {
    const m = Math.max(state.m, ...scores);
    if (m === -Infinity) return { ...state, kept: 1, weights: scores.map(() => 0) };  // −∞ minus −∞ would be no number
    const kept = Math.exp(state.m - m), weights = scores.map((s) => Math.exp(s - m));
    return {
      m, kept, weights,
      l: kept * state.l + weights.reduce((sum, w) => sum + w, 0),
      o: kept * state.o + weights.reduce((sum, w, i) => sum + w * values[i], 0),
    };
  },

  // All states, one for each block.
  states(scores, values, size) {
    const all = [];
    let state = { m: -Infinity, l: 0, o: 0 };
    for (let at = 0; at < scores.length; at += size) {
      state = this.take(state, scores.slice(at, at + size), values.slice(at, at + size));
      all.push({ ...state, first: at, last: Math.min(at + size, scores.length) - 1 });
    }
    return all;
  },

  // The same mean, computed with all scores at once.
  softmaxMean(scores, values) {
    const highest = Math.max(...scores), weights = scores.map((s) => Math.exp(s - highest));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.reduce((mean, w, i) => mean + w * values[i], 0) / sum;
  },

  show(place) {
    const { make, slider, button, table, fixed } = Pieces;
    const scores = [Math.log(1), Math.log(2), Math.log(4), Math.log(1), 1, -2], values = [8, 4, 2, 16, 3, 12];
    const sign = (x) => (x === -Infinity ? "−∞" : fixed(x, 3)), numbers = make("div", {}), result = make("p", { role: "status", class: "result" });
    let done = 1;

    const field = (list, i, name) => {
      const input = make("input", { type: "text", inputmode: "decimal", size: 6, value: fixed(list[i], 3), "aria-label": `${name} of key ${i}`, oninput: () => {
        const text = input.value.trim().replace("−", "-"), number = /^-inf/i.test(text) ? -Infinity : Number(text);
        const good = text !== "" && !Number.isNaN(number) && number !== Infinity && (number !== -Infinity || list === scores);
        input.setAttribute("aria-invalid", String(!good));
        if (good) { list[i] = number; update(); }
      } });
      return input;
    };
    const keys = make("div", { class: "piece-table", tabindex: 0, role: "region", "aria-label": "the keys" }, make("table", {}, make("caption", {}, "The keys: write other numbers"),
      make("tbody", {}, make("tr", {}, make("th", { scope: "row" }, "score s"), ...scores.map((_, i) => make("td", {}, field(scores, i, "score")))),
        make("tr", {}, make("th", { scope: "row" }, "value v"), ...values.map((_, i) => make("td", {}, field(values, i, "value")))))));
    const size = slider("keys in a block", { min: 1, max: 6, value: 1 }, () => { done = 1; update(); });
    const next = button("Next block", () => { done += 1; update(); });
    const back = button("Back", () => { done -= 1; update(); });

    const update = () => {
      const all = this.states(scores, values, size.value());
      done = Math.max(1, Math.min(done, all.length));
      next.disabled = done === all.length;
      back.disabled = done === 1;
      numbers.replaceChildren(table("What is kept after each block", ["keys", "m", "kept", "weights", "l", "o", "o / l"], all.slice(0, done).map((s, i) => ({
        class: i === done - 1 ? "chosen" : "",
        cells: [s.first === s.last ? s.first : `${s.first} to ${s.last}`, sign(s.m), fixed(s.kept, 3), s.weights.map((w) => fixed(w, 3)).join(", "), fixed(s.l, 3), fixed(s.o, 3), s.l ? fixed(s.o / s.l, 3) : "none"],
      }))));
      const seen = all[done - 1].last + 1, now = all[done - 1];
      result.textContent = now.l
        ? `After ${seen} of ${scores.length} keys: o / l = ${fixed(now.o / now.l, 6)}. Softmax over these keys at once gives ${fixed(this.softmaxMean(scores.slice(0, seen), values.slice(0, seen)), 6)}.`
        : `After ${seen} of ${scores.length} keys, all of them masked: there is no mean yet.`;
    };
    place.append(keys, make("div", { class: "controls" }, size.element, make("div", { class: "buttons" }, next, back)), numbers, result);
    update();
  },
});
