// Shows the tensors of a folder that --save or --trace has written, and where two folders part. Nothing is uploaded.
"use strict";

Pieces.define("replay", {
  title: "A folder of tensors",
  about: "Choose a folder of .npy files. A second folder is optional.",
  most: 1 << 29,  // bytes of a file that is read
  parts: ["attention_norm", "q", "k", "v", "q_rotated", "k_rotated", "heads", "attention", "post_attention_norm", "x_plus_attention", "feed_forward_norm", "gate", "up", "hidden",
    "feed_forward", "post_feed_forward_norm", "x_plus_feed_forward"],

  // The header of a .npy file: {type, shape, begin}. `size` is that of the whole file. Throws an Error that says what is wrong.
  header(bytes, size) {
    const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0];
    if (bytes.length < 8 || magic.some((byte, i) => bytes[i] !== byte)) throw new Error("not a .npy file of version 1.0");
    if (bytes.length < 10) throw new Error("ends before its header");
    const length = bytes[8] + 256 * bytes[9], begin = 10 + length;
    if (length > 1024) throw new Error(`has a header of ${length} bytes, wanted at most 1024`);
    if (size < begin) throw new Error("ends inside its header");
    const text = String.fromCharCode(...bytes.slice(10, begin));
    const fields = /^\{'descr': '([<>|=\w]+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\),? *\}[ \n]*$/.exec(text);
    if (!fields) throw new Error("has a header that can't be read");
    const [, type, columnMajor, sizes] = fields, shape = sizes.split(",").map((s) => s.trim()).filter((s) => s !== "").map(Number);
    if (type !== "<f4" && type !== "<i4") throw new Error(`holds ${type}, wanted <f4 or <i4`);
    if (columnMajor === "True") throw new Error("is in column-major order");
    const count = shape.reduce((product, n) => product * n, 1);
    if (!(count <= size)) throw new Error(`shape (${sizes}) is larger than the file`);
    if (size - begin !== 4 * count) throw new Error(`holds ${size - begin} bytes of values, its shape needs ${4 * count}`);
    return { type, shape, begin };
  },

  // {shape, values} of a whole file.
  parse(buffer) {
    const { type, shape, begin } = this.header(new Uint8Array(buffer, 0, Math.min(buffer.byteLength, 1034)), buffer.byteLength);
    const data = buffer.slice(begin);
    return { shape, values: type === "<f4" ? new Float32Array(data) : new Int32Array(data) };
  },

  // The place of a name in a forward pass, by which names are sorted; other names come last.
  place(name) {
    const of = /^layer_(\d+)_(\w+)$/.exec(name), part = of ? this.parts.indexOf(of[2]) : -1;
    if (part >= 0) return [2, Number(of[1]), part];
    return [{ ids: 0, embedding: 1, final_norm: 3, logits: 3.5 }[name] ?? 4, 0, 0];
  },

  sorted(names) {
    const compare = (a, b) => {
      const [x, y] = [this.place(a), this.place(b)], at = x.findIndex((n, i) => n !== y[i]);
      return at >= 0 ? x[at] - y[at] : a < b ? -1 : 1;
    };
    return [...names].sort(compare);
  },

  // The first token whose distance |a − b| / |a| is above the tolerance, as ./learn run 10 --compare has it; null if there is none.
  parting(a, b, tolerance = 1e-3) {
    if (a.shape.join() !== b.shape.join()) return { why: `shapes [${a.shape.join(", ")}] and [${b.shape.join(", ")}]` };
    const cols = a.shape.at(-1) ?? 1;
    for (let t = 0; cols > 0 && t < a.values.length / cols; ++t) {
      let apart = 0, size = 0, furthest = 0;
      for (let c = 0; c < cols; ++c) {
        const x = a.values[t * cols + c], difference = x - b.values[t * cols + c], most = Math.abs(a.values[t * cols + furthest] - b.values[t * cols + furthest]);
        apart += difference * difference;
        size += x * x;
        if (!Number.isNaN(most) && !(Math.abs(difference) <= most)) furthest = c;
      }
      const distance = apart === 0 ? 0 : Math.sqrt(apart / size);
      if (!(distance <= tolerance)) return { token: t, channel: furthest, distance, a: a.values[t * cols + furthest], b: b.values[t * cols + furthest] };
    }
    return null;
  },

  statistics(values) {
    let low = Infinity, high = -Infinity, squares = 0, broken = 0;
    for (const x of values) {
      if (!Number.isFinite(x)) { broken += 1; continue; }
      low = Math.min(low, x);
      high = Math.max(high, x);
      squares += x * x;
    }
    return { low, high, rms: Math.sqrt(squares / Math.max(1, values.length - broken)), broken };
  },

  // Reads the headers of a folder's files: {files: {name: {file, shape}}, refused: [lines]}.
  async folder(list) {
    const files = {}, refused = [];
    for (const file of list) {
      if (!file.name.endsWith(".npy")) continue;
      try {
        if (file.size > this.most) throw new Error(`is larger than ${this.most >> 20} MiB`);
        const { shape } = this.header(new Uint8Array(await file.slice(0, 1034).arrayBuffer()), file.size);
        files[file.name.slice(0, -4)] = { file, shape };
      } catch (error) {
        refused.push(`${file.name}: ${error.message}`);
      }
    }
    if (Object.keys(files).length === 0 && refused.length === 0) refused.push("the folder contains no .npy file");
    return { files, refused };
  },

  async tensor(entry) {
    return this.parse(await entry.file.arrayBuffer());
  },

  // Where two folders first differ: a sentence.
  async compare(a, b) {
    const common = this.sorted(Object.keys(a.files).filter((name) => name in b.files && name !== "ids"));
    if (common.length === 0) return "The folders have no tensor of the same name.";
    for (const [i, name] of common.entries()) {
      const found = this.parting(await this.tensor(a.files[name]), await this.tensor(b.files[name]));
      if (found?.why) return `They first differ at ${name}: ${found.why}.`;
      if (found) return `They first differ at ${name}: for token ${found.token} by ${found.distance.toPrecision(2)} of its length, most in channel ${found.channel}: ${found.a} and ${found.b}. ${i} tensors before it agree.`;
    }
    return `All ${common.length} tensors of the same name agree: in each token, they differ by at most 0.001 of its length.`;
  },

  // A heat map of rows × cols, and a reading of the element under a cursor that the arrow keys move.
  heatMap(name, rows, cols, at, most) {
    const { make } = Pieces, wide = Math.min(cols, 720), high = Math.min(rows, 400), scale = Math.max(1, Math.floor(Math.min(720 / wide, 16)));
    const tall = Math.max(1, Math.min(16, Math.floor(320 / high)));
    const canvas = make("canvas", { width: wide, height: high, style: `width:${wide * scale}px;height:${high * tall}px`, tabindex: 0, role: "img" });
    const context = canvas.getContext("2d"), image = context.createImageData(wide, high), reading = make("p", { role: "status", class: "reading" });
    for (let y = 0; y < high; ++y) for (let x = 0; x < wide; ++x) {
      const value = at(Math.floor(y * rows / high), Math.floor(x * cols / wide)), share = Number.isFinite(value) ? Math.max(-1, Math.min(1, value / (most || 1))) : 0;
      const rest = 255 * (1 - Math.abs(share)), colour = share > 0 ? [255 - 205 * share, 255 - 135 * share, 255 - 20 * share] : [255 + 0 * share, 255 + 120 * share, rest];
      image.data.set(Number.isFinite(value) ? [...colour, 255] : [128, 128, 128, 255], 4 * (y * wide + x));
    }
    context.putImageData(image, 0, 0);
    let row = 0, col = 0;
    const read = () => { reading.textContent = `${name}[${row}, ${col}] = ${at(row, col)}`; };
    canvas.setAttribute("aria-label", `Heat map of ${name}: ${rows} rows and ${cols} columns; blue is above 0, orange below, white is 0, grey is not finite. The arrow keys move from element to element.`);
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!step) return;
      event.preventDefault();
      row = Math.max(0, Math.min(rows - 1, row + step[0]));
      col = Math.max(0, Math.min(cols - 1, col + step[1]));
      read();
    });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      row = Math.max(0, Math.min(rows - 1, Math.floor((event.clientY - box.top) / box.height * rows)));
      col = Math.max(0, Math.min(cols - 1, Math.floor((event.clientX - box.left) / box.width * cols)));
      read();
    });
    read();
    return make("div", {}, make("div", { class: "piece-table" }, canvas), reading);
  },

  async showTensor(place, name, entry) {
    const { make, slider, table } = Pieces;
    const { shape, values } = await this.tensor(entry), cols = shape.at(-1) ?? 1, rows = shape.length > 1 ? shape.at(-2) : 1, planes = Math.max(1, values.length / (rows * cols || 1));
    const { low, high, rms, broken } = this.statistics(values), picture = make("div", {}), digits = (x) => Number(x.toPrecision(4));
    const draw = (plane) => {
      const at = (row, col) => values[(plane * rows + row) * cols + col], shown = (n) => Array.from({ length: n }, (_, i) => i);
      picture.replaceChildren(...(values.length ? [this.heatMap(planes > 1 ? `${name}[${plane}]` : name, rows, cols, at, Math.max(Math.abs(low), Math.abs(high)))] : []),
        table("The first elements", ["", ...shown(Math.min(8, cols)).map(String)], shown(Math.min(8, rows)).map((row) => [row, ...shown(Math.min(8, cols)).map((col) => digits(at(row, col)))])));
    };
    place.replaceChildren(make("p", { class: "piece-title" }, `${name}, [${shape.join(", ")}]`),
      make("p", { class: "piece-about" }, `From ${digits(low)} to ${digits(high)}; root mean square ${digits(rms)}${broken ? `; ${broken} elements are not finite` : ""}.`));
    if (planes > 1) place.append(slider(`index 0 of ${planes}`, { min: 0, max: planes - 1, value: 0 }, draw).element);
    place.append(picture);
    draw(0);
  },

  show(place) {
    const { make } = Pieces, folders = [null, null], list = make("div", { class: "tensors", tabindex: 0, role: "region", "aria-label": "the tensors" });
    const refused = make("div", { role: "alert" }), tensor = make("div", {}), result = make("p", { role: "status", class: "result" });
    const fill = () => {
      const files = folders[0]?.files ?? {};
      refused.replaceChildren(...folders.flatMap((one) => one?.refused ?? []).map((line) => make("p", { class: "refused" }, `Refused: ${line}`)));
      list.replaceChildren(...this.sorted(Object.keys(files)).map((name) => make("span", {},
        Pieces.button(name, () => this.showTensor(tensor, name, files[name]).catch((error) => { result.textContent = `${name}: ${error.message}`; })), ` [${files[name].shape.join(", ")}]`)));
    };
    const chooser = (index, label) => make("label", { class: "choice" }, make("span", {}, label), make("input", { type: "file", webkitdirectory: "", multiple: "", onchange: async (event) => {
      folders[index] = await this.folder(event.target.files);
      tensor.replaceChildren();
      fill();
      result.textContent = folders[0] && folders[1] ? await this.compare(folders[0], folders[1]) : folders[0] ? `Tensors: ${Object.keys(folders[0].files).length}. Choose one.` : "Choose the first folder, too.";
    } }));
    place.append(make("div", { class: "controls" }, chooser(0, "a folder"), chooser(1, "a second folder, to compare")), refused, result, list, tensor);
  },
});
