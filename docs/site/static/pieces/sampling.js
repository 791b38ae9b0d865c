// Sampling: what a temperature and three filters do to the probabilities of the next token.
"use strict";

Pieces.define("sampling", {
  title: "Try it: choose the next token",
  about: "The settings apply in this order: temperature, top-k, top-p, min-p. Each filter drops tokens, and the rest share the whole probability: p = e^(z/τ) / Σ e^(z/τ).",

  words: ["the", "a", "his", "her", "this", "no", "seven", "of"],
  probabilities: [0.4, 0.22, 0.14, 0.09, 0.06, 0.05, 0.03, 0.01],

  // Recorded: the 50 largest of the 49,152 logits of chapter 10's model, SmolLM2-135M-Instruct in Q4_1, after a prompt, and the
  // logarithm of the sum of all 49,152 e^z; each name without the space before it. ./learn run 10 --prompt "Once upon a time, there was a" --logits FILE writes them.
  model: {
    prompt: "Once upon a time, there was a", V: 49152, logSum: 15.928,
    likeliest: [
      ["small", 13.148], ["town", 12.983], ["woman", 12.732], ["young", 12.674], ["time", 12.496],
      ["place", 12.436], ["company", 12.379], ["great", 12.376], ["man", 12.220], ["group", 11.831],
      ["person", 11.827], ["world", 11.686], ["village", 11.577], ["local", 11.459], ["famous", 11.453],
      ["city", 11.336], ["magical", 11.289], ["law", 11.167], ["movie", 11.119], ["legendary", 11.097],
      ["medieval", 11.033], ["mysterious", 10.948], ["␣", 10.900], ["planet", 10.877], ["brilliant", 10.778],
      ["beautiful", 10.761], ["king", 10.736], ["film", 10.678], ["little", 10.673], ["game", 10.633],
      ["large", 10.621], ["blacksmith", 10.590], ["country", 10.477], ["female", 10.416], ["high", 10.414],
      ["renowned", 10.336], ["band", 10.333], ["powerful", 10.317], ["community", 10.293], ["wealthy", 10.227],
      ["wise", 10.199], ["girl", 10.197], ["very", 10.185], ["kingdom", 10.178], ["brave", 10.175],
      ["particular", 10.169], ["story", 10.155], ["ship", 10.149], ["business", 10.136], ["popular", 10.115],
    ],
  },

  // What the piece shows: tokens with their probabilities; of the model's, only the likeliest, with their share of all.
  tokens(which) {
    if (which === "words") return { names: this.words, probabilities: this.probabilities, share: 1 };
    const unscaled = this.model.likeliest.map(([, z]) => Math.exp(z - this.model.logSum)), share = unscaled.reduce((a, b) => a + b, 0);
    return { names: this.model.likeliest.map(([name]) => name), probabilities: unscaled.map((p) => p / share), share };
  },

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
    const { make, slider, choice, button, table, bar, fixed } = Pieces, rowsShown = 12;
    const numbers = make("div", {}), result = make("p", { role: "status", class: "result" });
    const percent = (p) => `${fixed(100 * p, tokens.share < 1 ? 1 : 0)} %`;
    let tokens = this.tokens("words"), settled = [], drawn = [];
    const told = (kept, entropy) => {
      const words = drawn.slice(-12).map((v) => tokens.names[v]).join(" ");
      const dropped = tokens.share === 1 ? "" : ` The model's other ${(this.model.V - tokens.names.length).toLocaleString("en")} tokens, which have ${percent(1 - tokens.share)} of the probability, are dropped first: top-k 50.`;
      return `${kept} of ${tokens.names.length} tokens are kept; their entropy is ${fixed(entropy, 3)} nats.${words ? ` Drawn: ${words}.` : ""}${dropped}`;
    };
    const update = () => {
      const N = tokens.names.length, size = Math.min(N, rowsShown), sum = (values) => values.reduce((a, b) => a + b, 0);
      settled = this.settled(tokens.probabilities, { temperature: temperature.value(), topK: topK.value() === N ? 0 : topK.value(), topP: topP.value(), minP: minP.value() });
      const counts = tokens.names.map((_, v) => drawn.filter((one) => one === v).length);
      const rows = tokens.names.slice(0, size).map((name, v) => [name, percent(tokens.probabilities[v]), "", counts[v] || ""]);
      if (size < N) rows.push([`${N - size} others`, percent(sum(tokens.probabilities.slice(size))), "", sum(counts.slice(size)) || ""]);
      const after = [...settled.slice(0, size), sum(settled.slice(size))];
      numbers.replaceChildren(table(source.value() === "words" ? "Eight words with given probabilities" : `After “${this.model.prompt}”`, ["token", "probability", "after the settings", "drawn"], rows));
      numbers.querySelectorAll("tbody tr").forEach((row, v) => row.children[2].append(bar(after[v], after[v] ? `${fixed(100 * after[v], 1)} %` : "dropped")));
      const kept = settled.filter((p) => p > 0);
      result.textContent = told(kept.length, kept.reduce((sum, p) => sum - p * Math.log(p), 0));
    };
    const changed = () => { drawn = []; update(); };
    const source = choice("tokens", [["words", "eight words"], ["model", "the real model's 50 likeliest"]], (which) => {
      tokens = this.tokens(which);
      topK.limit(tokens.names.length);
      topK.set(tokens.names.length);
      changed();
    });
    const temperature = slider("temperature τ (0: greedy)", { min: 0, max: 3, step: 0.1, value: 1, written: (x) => fixed(x, 1) }, changed);
    const topK = slider("top-k", { min: 1, max: 8, value: 8, written: (k) => (k === tokens.names.length ? "off" : String(k)) }, changed);
    const topP = slider("top-p", { min: 0.05, max: 1, step: 0.05, value: 0.8, written: (p) => (p === 1 ? "off" : fixed(p, 2)) }, changed);
    const minP = slider("min-p", { min: 0, max: 1, step: 0.05, value: 0, written: (p) => (p === 0 ? "off" : fixed(p, 2)) }, changed);
    const draw = button("Draw ten tokens", () => { for (let i = 0; i < 10; ++i) drawn.push(this.tokenAt(settled, Math.random())); update(); });
    place.append(make("div", { class: "controls" }, source.element, temperature.element, topK.element, topP.element, minP.element, make("div", { class: "buttons" }, draw)), numbers, result);
    update();
  },
});
