// The KV cache: what a step computes, what is kept, and what G heads of keys and values save against H.
"use strict";

Pieces.define("cache", {
  title: "Try it: a cache that fills",
  about: "A prompt is read, then tokens are written, one per step. Without a cache, each step computes the keys and values of the whole text again; with it, only those of the new tokens. "
    + "A layer keeps 2·G·D elements for each token.",

  // How many rows of keys and values each step computes, for a prompt of T tokens: {without, with}.
  rows(prompt, step) {
    return { without: prompt + step - 1, with: step === 1 ? prompt : 1 };
  },

  sums(prompt, steps) {
    let without = 0, kept = 0;
    for (let step = 1; step <= steps; ++step) {
      const rows = this.rows(prompt, step);
      without += rows.without;
      kept += rows.with;
    }
    return { without, with: kept };
  },

  // Bytes of the keys and values of S tokens in all L layers.
  bytes(L, G, D, S, bits) {
    return 2 * L * G * D * S * bits / 8;
  },

  // Parameters of w_q, w_k, w_v and w_o in all L layers.
  parameters(L, C, H, G, D) {
    return L * (2 * C * H * D + 2 * C * G * D);
  },

  // The head of keys and values that query head h reads.
  groupOf(h, H, G) {
    return Math.floor(h / (H / G));
  },

  show(place) {
    const { make, slider, choice, table } = Pieces, H = 12, D = 64, L = 32, most = 36;
    const picture = make("div", {}), numbers = make("div", {}), heads = make("div", {}), result = make("p", { role: "status", class: "result" });
    const size = (bytes) => (bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`);

    const strip = (name, tokens, computed) => make("p", { class: "piece-about" }, `${name}: `,
      make("span", { class: "grid", role: "img", style: "grid-template-columns: repeat(12, auto)", "aria-label": `${tokens} tokens, ${computed} of them computed in this step` },
        ...Array.from({ length: tokens }, (_, t) => make("i", { class: t >= tokens - computed ? "now" : "on" }))));

    const update = () => {
      const T = prompt.value(), now = step.value(), G = Number(groups.value()), S = length.value() * 1024;
      const rows = this.rows(T, now), sums = this.sums(T, now), tokens = T + now - 1;
      picture.replaceChildren(strip("without a cache", tokens, rows.without), strip("with a cache", tokens, rows.with));
      numbers.replaceChildren(table("Rows of keys and values that are computed, in each layer", ["", "in this step", "in all steps so far"],
        [["without a cache", rows.without, sums.without], ["with a cache", rows.with, sums.with]]));
      heads.replaceChildren(table(`A cache of ${S.toLocaleString("en")} tokens: L = ${L}, D = ${D}, 16 bits`, ["", "heads of keys and values", "elements per token and layer", "bytes of all layers"],
        [[`G = H = ${H}`, H, (2 * H * D).toLocaleString("en"), size(this.bytes(L, H, D, S, 16))], { class: "chosen", cells: [`G = ${G}`, G, (2 * G * D).toLocaleString("en"), size(this.bytes(L, G, D, S, 16))] }]));
      const readers = Array.from({ length: G }, (_, g) => `${g * H / G} to ${(g + 1) * H / G - 1}`).join("; ");
      result.textContent = `Step ${now}: ${rows.without} rows without the cache, ${rows.with} with it. With G = ${G}, the cache takes ${G}/${H} of the memory; `
        + `the query heads that share a head of keys are ${readers}.`;
    };
    const prompt = slider("T, the prompt's tokens", { min: 1, max: 24, value: 8 }, update);
    const step = slider("the step", { min: 1, max: most - 24, value: 4 }, update);
    const groups = choice("G, heads of keys and values (H = 12)", [[3, "3"], [1, "1: multi-query"], [2, "2"], [4, "4"], [6, "6"], [12, "12: multi-head"]], update);
    const length = slider("S, the cache's tokens", { min: 1, max: 128, value: 8, written: (x) => `${x} × 1024` }, update);
    place.append(make("div", { class: "controls" }, prompt.element, step.element), make("div", { class: "side-by-side" }, picture, numbers),
      make("div", { class: "controls" }, groups.element, length.element), heads, result);
    update();
  },
});
