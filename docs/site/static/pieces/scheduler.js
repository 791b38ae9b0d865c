// The scheduler: which sequences advance in a step, and by how many tokens. Pages are not shared here.
"use strict";

Pieces.define("scheduler", {
  title: "Try it: texts arrive, and share steps and pages",
  about: "A step reads at most as many tokens as its budget: first the last token of each answer (g), then parts of prompts (r), then waiting sequences (w) are admitted, if there are free pages for all their tokens. "
    + "When an answer needs a page and none is free, the youngest sequence is preempted (p). Unlike the run above, no sequence shares a page here.",

  // The rules of scheduler.hpp. A sequence is {id, arrival, known, computed, pages}; limits are {budget, sequences, pageSize}.
  planStep(running, waiting, free, limits) {
    const sorted = (list) => list.map((s) => ({ ...s, tokens: 0, newPages: 0 })).sort((a, b) => a.arrival - b.arrival);
    const run = sorted(running), preempted = [], admitted = [], left = (s) => s.known - s.computed;
    const pagesFor = (s, tokens) => Math.max(0, Math.ceil((s.computed + tokens) / limits.pageSize) - s.pages);
    let budget = limits.budget;
    const read = (s, tokens) => { s.tokens = tokens; s.newPages = pagesFor(s, tokens); budget -= tokens; free -= s.newPages; };
    const preemptYoungest = () => { const s = run.pop(); budget += s.tokens; free += s.newPages + s.pages; preempted.push(s.id); };
    const withPages = (s) => (s.pages + free) * limits.pageSize - s.computed;

    for (let i = 0; i < run.length; ++i) {
      if (left(run[i]) !== 1) continue;
      while (pagesFor(run[i], 1) > free && run.length > i + 1) preemptYoungest();
      if (pagesFor(run[i], 1) <= free) read(run[i], 1);
      else if (i > 0) preemptYoungest();
    }
    for (let i = 0; i < run.length; ++i) {
      if (left(run[i]) === 1) continue;
      while (i === 0 && withPages(run[i]) === 0 && run.length > 1) preemptYoungest();
      const tokens = Math.min(left(run[i]), budget, withPages(run[i]));
      if (tokens > 0) read(run[i], tokens);
    }
    if (preempted.length === 0) {
      for (const s of sorted(waiting)) {
        if (run.length === limits.sequences || budget === 0 || pagesFor(s, left(s)) > free) break;
        read(s, Math.min(left(s), budget));
        admitted.push(s.id);
        run.push(s);
      }
    }
    return { preempted, admitted, parts: run.filter((s) => s.tokens > 0).map((s) => ({ id: s.id, tokens: s.tokens })) };
  },

  // Steps until all have ended. texts are [{arrives, prompt, most}]. Each step is {cells: [what each text does], used: pages, tokens,
  // answered: [ids that got a token]}.
  simulate(texts, limits, pages) {
    const all = texts.map((text, id) => ({ id, arrival: id, known: text.prompt, computed: 0, pages: 0, state: "away", generating: false, answers: 0 })), steps = [];
    const used = () => all.reduce((sum, s) => sum + s.pages, 0);
    while (all.some((s) => s.state !== "ended") && steps.length < 3000) {
      all.forEach((s) => { if (s.state === "away" && texts[s.id].arrives <= steps.length) s.state = "waiting"; });
      const plan = this.planStep(all.filter((s) => s.state === "running"), all.filter((s) => s.state === "waiting"), pages - used(), limits);
      for (const id of plan.preempted) Object.assign(all[id], { state: "waiting", computed: 0, pages: 0, generating: false });
      for (const id of plan.admitted) all[id].state = "running";
      const cells = all.map((s) => (plan.preempted.includes(s.id) ? "p" : s.state === "waiting" ? "w" : "")), answered = [];
      for (const { id, tokens } of plan.parts) {
        const s = all[id];
        cells[id] = s.generating ? "g" : `r${tokens}`;
        s.computed += tokens;
        s.pages = Math.max(s.pages, Math.ceil(s.computed / limits.pageSize));
        if (s.computed < s.known) continue;
        Object.assign(s, { known: s.known + 1, answers: s.answers + 1, generating: true });
        answered.push(id);
      }
      steps.push({ cells, used: used(), tokens: plan.parts.reduce((sum, part) => sum + part.tokens, 0), answered });
      for (const id of answered) if (all[id].answers === texts[id].most) Object.assign(all[id], { state: "ended", pages: 0 });
    }
    return steps;
  },

  // On a clock on which a step of n tokens takes 8 + 1.5·n milliseconds: the times between two tokens of a text, sorted, and the
  // time from a text's arrival to its first token.
  waits(texts, steps, of, between) {
    const last = {}, times = [];
    let now = 0, arrived = 0, first = 0;
    steps.forEach((step, number) => {
      if (texts[of].arrives === number) arrived = now;
      now += 8 + 1.5 * step.tokens;
      for (const id of step.answered) {
        if (id === of && !(id in last)) first = now - arrived;
        if (between.includes(id) && id in last) times.push(now - last[id]);
        last[id] = now;
      }
    });
    return { first, between: times.sort((a, b) => a - b) };
  },

  show(place) {
    const { make, slider, table, fixed } = Pieces, numbers = make("div", {}), result = make("p", { role: "status", class: "result" });
    const update = () => {
      const texts = [{ arrives: 0, prompt: 11, most: 11 }, { arrives: 2, prompt: 13, most: 14 }, { arrives: arrives.value(), prompt: prompt.value(), most: 6 }];
      const steps = this.simulate(texts, { budget: budget.value(), sequences: 3, pageSize: 4 }, pages.value());
      const names = ["sequence 0: 11 + 11 tokens", "sequence 1: 13 + 14 tokens", `sequence 2: ${prompt.value()} + 6 tokens`];
      numbers.replaceChildren(table("A column for each step", ["step", ...steps.map((_, i) => i)], [
        ...names.map((name, id) => [name, ...steps.map((step) => step.cells[id])]),
        ["tokens read", ...steps.map((step) => step.tokens)], ["pages used", ...steps.map((step) => step.used)]].map((cells) => cells)));
      const wait = this.waits(texts, steps, 2, [0, 1]), preempted = steps.reduce((sum, step) => sum + step.cells.filter((cell) => cell === "p").length, 0);
      result.textContent = `${steps.length} steps, ${preempted} preemption${preempted === 1 ? "" : "s"}. If a step of n tokens takes 8 + 1.5·n milliseconds, sequence 2 waits ${fixed(wait.first, 1)} ms for its first token, `
        + `and the longest time between two tokens of the others is ${fixed(wait.between.at(-1) ?? 0, 1)} ms.`;
    };
    const budget = slider("budget, tokens of a step", { min: 3, max: 48, value: 12 }, update);
    const pages = slider("pages of 4 tokens", { min: 8, max: 28, value: 16 }, update);
    const prompt = slider("sequence 2's prompt", { min: 1, max: 40, value: 25 }, update);
    const arrives = slider("the step in which sequence 2 arrives", { min: 0, max: 12, value: 3 }, update);
    place.append(make("div", { class: "controls" }, budget.element, pages.element, prompt.element, arrives.element), numbers, result);
    update();
  },
});
