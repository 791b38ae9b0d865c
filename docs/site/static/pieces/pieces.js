// What the interactive pieces share. A piece is a script that calls Pieces.define(name, {title, about, show, …}): it is
// put in each <div class="piece" data-piece="name"> of a page. Its other functions compute the numbers that it shows;
// tests/site compares them with the numbers of the chapters' programs.
"use strict";

const Pieces = {
  known: {},

  define(name, piece) {
    Pieces.known[name] = piece;
  },

  // An element with attributes and children; an attribute "on…" is a listener.
  make(tag, attributes = {}, ...children) {
    const svg = ["svg", "circle", "line", "text", "rect", "path", "g"].includes(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  },

  // A labelled slider. `written` turns its value into what stands beside it. Returns {element, value(), set(v)}.
  slider(label, { min, max, step = 1, value, written = String }, changed) {
    const output = Pieces.make("output", {}, written(value));
    const input = Pieces.make("input", { type: "range", min, max, step, value, "aria-valuetext": written(value) });
    const update = () => {
      output.textContent = written(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => { update(); changed(Number(input.value)); });
    return {
      element: Pieces.make("label", { class: "slider" }, Pieces.make("span", {}, label), output, input),
      value: () => Number(input.value),
      set(v) { input.value = v; update(); },
      limit(most) { input.max = most; update(); },
    };
  },

  // A labelled list of choices: options is [[value, what it is called], …].
  choice(label, options, changed) {
    const select = Pieces.make("select", { onchange: () => changed(select.value) },
      ...options.map(([value, name]) => Pieces.make("option", { value }, name)));
    return { element: Pieces.make("label", { class: "choice" }, Pieces.make("span", {}, label), select), value: () => select.value };
  },

  check(label, checked, changed) {
    const box = Pieces.make("input", { type: "checkbox", onchange: () => changed(box.checked) });
    box.checked = checked;
    return { element: Pieces.make("label", { class: "check" }, box, " " + label), value: () => box.checked };
  },

  button(label, pressed) {
    return Pieces.make("button", { type: "button", onclick: pressed }, label);
  },

  // A table whose first row is its head. A row may carry a class: {class, cells}.
  table(caption, head, rows) {
    const line = (row) => Pieces.make("tr", row.class ? { class: row.class } : {}, ...(row.cells ?? row).map((cell) => Pieces.make("td", {}, String(cell))));
    return Pieces.make("div", { class: "piece-table", tabindex: 0, role: "region", "aria-label": caption }, Pieces.make("table", {}, Pieces.make("caption", {}, caption),
      Pieces.make("thead", {}, Pieces.make("tr", {}, ...head.map((cell) => Pieces.make("th", { scope: "col" }, cell)))),
      Pieces.make("tbody", {}, ...rows.map(line))));
  },

  // A bar from 0 to `share`, with its number: the number is the text, and the bar only shows it.
  bar(share, text) {
    return Pieces.make("div", { class: "bar" }, Pieces.make("span", { style: `width:${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%` }), Pieces.make("em", {}, text));
  },

  // A number as the book's tables print it: with a true minus sign only in running text.
  fixed(x, digits) {
    const text = x.toFixed(digits);
    return Number(text) === 0 ? text.replace("-", "") : text;
  },

  start() {
    for (const place of document.querySelectorAll(".piece[data-piece]")) {
      const piece = Pieces.known[place.dataset.piece];
      if (!piece) continue;
      place.setAttribute("role", "group");
      place.setAttribute("aria-label", piece.title);
      place.append(Pieces.make("p", { class: "piece-title" }, piece.title), Pieces.make("p", { class: "piece-about" }, piece.about));
      piece.show(place);
    }
  },
};

addEventListener("DOMContentLoaded", Pieces.start);
