// Quantization: one block of 32 weights, rounded to a format and read back.
"use strict";

Pieces.define("quantize", {
  title: "Try it: one block of 32 weights",
  about: "A weight is stored as an integer q, and read back as s·(q − offset) + m. The scale s comes from the whole block: "
    + "make one weight an outlier, and watch the steps grow for all the others.",

  formats: { q4_0: "Q4_0, 4.5 bits per weight", q4_1: "Q4_1, 5 bits per weight", q8_0: "Q8_0, 8.5 bits per weight" },

  // The block of the program's table: 32 weights from −1 to 0.86.
  block() {
    return Array.from({ length: 32 }, (_, i) => Math.fround(-1 + Math.fround(Math.fround(0.06) * (i * 7 % 32))));
  },

  // A float rounded to the nearest F16, ties to even, as a float.
  half(value) {
    if (!Number.isFinite(value) || value === 0) return value;
    const exponent = Math.max(-14, Math.floor(Math.log2(Math.abs(value)))), step = 2 ** (exponent - 10), units = value / step;
    let whole = Math.floor(units);
    if (units - whole > 0.5 || (units - whole === 0.5 && whole % 2 !== 0)) whole += 1;
    const rounded = whole * step;
    return Math.abs(rounded) >= 65520 ? Math.sign(value) * Infinity : rounded;
  },

  inverse(x) {
    return Math.abs(x) < 1e-30 ? 0 : Math.fround(1 / x);
  },

  // {s, m, offset, q, back}: in floats, as the program computes them.
  rounded(w, format) {
    const f = Math.fround, fourBits = (x) => Math.min(15, Math.trunc(f(x + 0.5)));
    if (format === "q8_0") {
      const scale = f(Math.max(...w.map(Math.abs)) / 127), per = this.inverse(scale), s = this.half(scale);
      const q = w.map((x) => { const y = f(x * per); return Math.sign(y) * Math.floor(Math.abs(y) + 0.5); });
      return { s, m: 0, offset: 0, q, back: q.map((one) => f(s * one)) };
    }
    if (format === "q4_0") {
      const largest = w.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a)), scale = f(largest / -8), per = this.inverse(scale), s = this.half(scale);
      const q = w.map((x) => fourBits(f(f(x * per) + 8)));
      return { s, m: 0, offset: 8, q, back: q.map((one) => f(s * (one - 8))) };
    }
    const lowest = Math.min(...w), scale = f(f(Math.max(...w) - lowest) / 15), per = this.inverse(scale), s = this.half(scale), m = this.half(lowest);
    const q = w.map((x) => fourBits(f(f(x - lowest) * per)));
    return { s, m, offset: 0, q, back: q.map((one) => f(f(s * one) + m)) };
  },

  // The root mean square of the differences, and the same divided by that of the weights.
  error(w, back) {
    const square = (list) => Math.sqrt(list.reduce((sum, x) => sum + x * x, 0) / list.length);
    const absolute = square(w.map((x, i) => back[i] - x)), size = square(w);
    return { absolute, relative: size ? absolute / size : 0 };
  },

  // The weights above a line, and below it the values that the format can store, each joined to its own.
  drawing(w, made, format) {
    const { make } = Pieces, all = [...w, ...made.back], low = Math.min(...all), high = Math.max(...all), at = (x) => 10 + 300 * (x - low) / (high - low || 1);
    const steps = format === "q8_0" ? [] : Array.from({ length: 16 }, (_, q) => made.s * (q - made.offset) + made.m).filter((x) => x >= low - 1e-6 && x <= high + 1e-6);
    return make("svg", { viewBox: "0 0 320 74", class: "wide", role: "img", "aria-label": `32 weights from ${low.toFixed(2)} to ${high.toFixed(2)}, and the values to which they are rounded.` },
      ...steps.map((x) => make("line", { class: "axis", x1: at(x), x2: at(x), y1: 46, y2: 66 })),
      ...w.map((x, i) => make("line", { class: "axis", x1: at(x), y1: 16, x2: at(made.back[i]), y2: 52 })),
      make("g", { class: "q" }, ...w.map((x) => make("circle", { cx: at(x), cy: 14, r: 2 }))),
      make("g", { class: "k" }, ...made.back.map((x) => make("circle", { cx: at(x), cy: 54, r: 2 }))));
  },

  show(place) {
    const { make, slider, choice, table, fixed } = Pieces, numbers = make("div", {}), picture = make("div", {}), result = make("p", { role: "status", class: "result" });
    const start = this.block();
    const update = () => {
      const w = [...start], which = index.value();
      w[which] = Math.fround(value.value());
      const made = this.rounded(w, format.value()), all = this.error(w, made.back), others = this.error(w.filter((_, i) => i !== which), made.back.filter((_, i) => i !== which));
      picture.replaceChildren(this.drawing(w, made, format.value()));
      numbers.replaceChildren(table("The first eight weights, and the one you move", ["i", "weight", "q", "read back as", "error"],
        [...new Set([0, 1, 2, 3, 4, 5, 6, 7, which])].map((i) => ({ class: i === which ? "chosen" : "", cells: [i, fixed(w[i], 3), made.q[i], fixed(made.back[i], 3), fixed(made.back[i] - w[i], 3)] }))));
      result.textContent = `s = ${made.s.toPrecision(4)}${format.value() === "q4_1" ? `, m = ${fixed(made.m, 4)}` : ""}: neighbouring values are ${Math.abs(made.s).toPrecision(4)} apart. `
        + `The error is ${fixed(100 * all.relative, 2)} % of the block's weights, and ${fixed(100 * others.relative, 2)} % of the other 31.`;
    };
    const format = choice("format", Object.entries(this.formats), update);
    const index = slider("the weight that you move", { min: 0, max: 31, value: 3 }, (now) => { value.set(start[now]); update(); });
    const value = slider("its value", { min: -20, max: 20, step: 0.02, value: start[3], written: (x) => fixed(x, 2) }, update);
    place.append(make("div", { class: "controls" }, format.element, index.element, value.element), picture, numbers, result);
    update();
  },
});
