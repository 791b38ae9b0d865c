// RoPE: a query and a key are rotated by their positions, pair by pair, and their score depends on the distance alone.
"use strict";

Pieces.define("rope", {
  title: "Try it: rotate a query and a key",
  about: "Pair i of the query at position m rotates by the angle m·f, and pair i of the key at position n by n·f, where f = θ^(−2i/D). "
    + "Move both positions together: every angle changes, but the score does not.",

  // θ^(−2i/D) of each pair.
  frequencies(D, theta) {
    return Array.from({ length: D / 2 }, (_, i) => theta ** (-2 * i / D));
  },

  // The two elements of pair i.
  pair(i, D, pairing) {
    return pairing === "halves" ? [i, i + D / 2] : [2 * i, 2 * i + 1];
  },

  // (a, b) → (a·cos − b·sin, a·sin + b·cos) for each pair of x at a position.
  rotated(x, position, theta, pairing) {
    const D = x.length, y = Array.from(x);
    this.frequencies(D, theta).forEach((f, i) => {
      const [a, b] = this.pair(i, D, pairing), cos = Math.cos(position * f), sin = Math.sin(position * f);
      y[a] = x[a] * cos - x[b] * sin;
      y[b] = x[a] * sin + x[b] * cos;
    });
    return y;
  },

  // What each pair adds to q·k, before the division by √D.
  parts(q, k, m, n, theta, pairing) {
    const D = q.length, qm = this.rotated(q, m, theta, pairing), kn = this.rotated(k, n, theta, pairing);
    return this.frequencies(D, theta).map((_, i) => {
      const [a, b] = this.pair(i, D, pairing);
      return qm[a] * kn[a] + qm[b] * kn[b];
    });
  },

  score(q, k, m, n, theta, pairing) {
    return this.parts(q, k, m, n, theta, pairing).reduce((sum, part) => sum + part, 0) / Math.sqrt(q.length);
  },

  // Pair i as two points of a plane: where they were at position 0, and where they are now.
  drawing(q, k, at) {
    const { m, n, theta, pairing, i } = at, D = q.length, [a, b] = this.pair(i, D, pairing), scale = 48;
    const { make } = Pieces;
    const arrow = (x, kind, name) => {
      const px = x[a] * scale, py = -x[b] * scale;
      return make("g", { class: kind }, make("line", { x1: 0, y1: 0, x2: px, y2: py }), make("circle", { cx: px, cy: py, r: 4 }),
        make("text", { x: px * 1.12 - 4, y: py * 1.12 + 4 }, name));
    };
    const describes = `Pair ${i}: the query's point at position ${m} and the key's at position ${n}, with their points at position 0.`;
    return make("svg", { viewBox: "-110 -110 220 220", role: "img", "aria-label": describes },
      make("line", { class: "axis", x1: -105, y1: 0, x2: 105, y2: 0 }), make("line", { class: "axis", x1: 0, y1: -105, x2: 0, y2: 105 }),
      arrow(q, "q before", ""), arrow(k, "k before", ""),
      arrow(this.rotated(q, m, theta, pairing), "q", "q"), arrow(this.rotated(k, n, theta, pairing), "k", "k"));
  },

  show(place) {
    const q = [1.2, 0.4, -0.6, 1.1, 0.9, 1.3, 0.5, -0.8], k = [0.7, 1.0, 1.2, 0.3, -0.9, 0.6, 1.4, 0.8], D = q.length;
    const { make, slider, choice, check, table, fixed } = Pieces, degrees = (angle) => fixed(angle * 180 / Math.PI, 1) + "°";
    const picture = make("div", { class: "picture" }), numbers = make("div", {}), result = make("p", { role: "status", class: "result" });

    const m = slider("m, the query's position", { min: 0, max: 200, value: 9 }, (now) => { if (together.value()) n.set(Math.max(0, now - distance)); update(); });
    const n = slider("n, the key's position", { min: 0, max: 200, value: 4 }, (now) => { if (together.value()) m.set(Math.min(200, now + distance)); update(); });
    let distance = 5;
    const together = check("move both, and keep their distance", false, () => { distance = m.value() - n.value(); });
    const pair = slider("i, the pair that is drawn", { min: 0, max: D / 2 - 1, value: 1 }, () => update());
    const pairing = choice("pairing", [["neighbours", "neighbours: elements 2i and 2i + 1"], ["halves", "halves: elements i and i + D/2"]], () => update());
    const theta = choice("θ, the base", [["10000", "10,000"], ["500000", "500,000"], ["100", "100"]], () => update());

    const update = () => {
      const at = { m: m.value(), n: n.value(), theta: Number(theta.value()), pairing: pairing.value(), i: pair.value() };
      const parts = this.parts(q, k, at.m, at.n, at.theta, at.pairing), score = this.score(q, k, at.m, at.n, at.theta, at.pairing);
      picture.replaceChildren(this.drawing(q, k, at));
      numbers.replaceChildren(table("Each pair's angles, and what it adds to q·k",
        ["pair", "elements", "f, per position", "m·f", "n·f", "adds"],
        this.frequencies(D, at.theta).map((f, i) => ({
          class: i === at.i ? "chosen" : "",
          cells: [i, this.pair(i, D, at.pairing).join(", "), degrees(f), degrees(at.m * f % (2 * Math.PI)), degrees(at.n * f % (2 * Math.PI)), fixed(parts[i], 3)],
        }))));
      const far = this.score(q, k, at.m + 1000, at.n + 1000, at.theta, at.pairing);
      result.textContent = `Distance ${at.m - at.n}: the score q·k / √D is ${fixed(parts.reduce((x, y) => x + y), 3)} / √${D} = ${fixed(score, 3)}. `
        + `At positions ${at.m + 1000} and ${at.n + 1000}, it is ${fixed(far, 3)}.`;
    };
    place.append(make("div", { class: "controls" }, m.element, n.element, together.element, pair.element, pairing.element, theta.element),
      make("div", { class: "side-by-side" }, picture, numbers), result);
    update();
  },
});
