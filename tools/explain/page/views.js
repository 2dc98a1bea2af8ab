// The views of passes, kernels, memory and specialisations.
"use strict";

const table = (head, rows, onrow) => element("table", {}, element("thead", {}, element("tr", {},
  ...head.map(([title, kind]) => element("th", {class: kind || "", scope: "col"}, title)))),
  element("tbody", {}, ...rows.map((cells, i) => {
    const row = element("tr", onrow ? {tabindex: 0, class: "link", onclick: () => onrow(i),
      onkeydown: e => { if (e.key === "Enter") onrow(i); }} : {}, ...cells.map((c, j) => element("td", {class: head[j][1] || ""}, c)));
    return row;
  })));
const valueOf = q => q === null || q === undefined ? null : q.value;
const quantity = (q, unit, base) => q === null || q === undefined ? "" :
  element("span", {title: q.expression}, q.value === null ? q.expression : short(q.value, unit, base));

// -- passes -----------------------------------------------------------------------------------------------------------
class PassesView {
  constructor() {
    this.chosen = -1;
    const longest = Math.max(...data.passes.slice(1).map(p => p.seconds), 1e-9);
    this.items = data.passes.map((p, i) => element("button", {type: "button", class: "pass", onclick: () => this.choose(i)},
      element("span", {class: "ordinal"}, String(p.number)), element("span", {class: "pass-name", title: p.name}, p.name.split("{")[0]),
      element("span", {class: "bar", style: `--part:${Math.min(1, p.seconds / longest)}`}), element("span", {class: "time"}, seconds(p.seconds)),
      element("span", {class: "delta"}, p.number === 0 ? "" : p.added || p.removed
        ? `+${p.added.toLocaleString("en")} −${p.removed.toLocaleString("en")}`
        : data.hunks[i].length ? "changed" : "no change")));
    this.detail = element("div", {class: "detail"});
    const side = element("div", {class: "passes", role: "group", "aria-label": "Passes"});
    let level = "";
    data.passes.forEach((p, i) => {
      if (p.level !== level) side.append(element("h3", {}, level = p.level));
      side.append(this.items[i]);
    });
    const total = Object.values(data.seconds).reduce((a, b) => a + b, 0);
    side.prepend(element("p", {class: "total"}, ...Object.entries(data.seconds).map(([what, s]) => element("span", {class: "fact"},
      element("b", {}, seconds(s)), ` ${what}`)), element("span", {class: "fact"}, element("b", {}, seconds(total)), " in all")));
    this.root = element("div", {class: "split"}, side, this.detail);
    side.addEventListener("keydown", e => {
      const d = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1}[e.key];
      if (d) { this.choose(Math.max(0, Math.min(data.passes.length - 1, this.chosen + d))); this.items[this.chosen].focus(); e.preventDefault(); }
    });
  }
  opened() { if (this.chosen < 0) this.choose(this.interesting()); }
  interesting() {
    const i = data.passes.findIndex((p, i) => p.name.startsWith("fuse") && data.hunks[i].length);
    return i < 0 ? 0 : i;
  }
  choose(i) {
    this.chosen = i;
    const p = data.passes[i];
    this.items.forEach((b, j) => b.setAttribute("aria-current", String(i === j)));
    const rows = [];
    data.hunks[i].forEach((hunk, h) => {
      if (h) rows.push(["gap", "", -1]);
      [" ", "-", "+", " "].forEach((sign, part) => {
        for (let k = 0; k < hunk[part].length; k += 2) rows.push([sign, texts[hunk[part][k]], hunk[part][k + 1]]);
      });
    });
    const list = new List(`changes of ${p.name}`, r => {
      const [sign, text, op] = rows[r];
      const kind = {"-": "removed", "+": "added", gap: "gap"}[sign] || "";
      const row = element("div", {class: `row diff ${kind} ${state.related.has(op) ? "related" : ""}`, "data-op": op},
        element("span", {class: "sign"}, sign === "gap" ? "⋯" : sign), element("code", {}, colored(text, IR, IR_CLASSES)));
      return row;
    });
    list.root.addEventListener("click", e => {
      const row = e.target.closest("[data-op]");
      if (row && +row.dataset.op >= 0) { choose({op: +row.dataset.op}); list.update(); }
    });
    this.detail.replaceChildren(
      element("h2", {}, p.name.split("{")[0], p.name.includes("{") ? element("code", {class: "hint"}, " {" + p.name.split("{")[1]) : ""),
      element("p", {class: "why"}, p.why),
      element("p", {class: "facts"}, element("span", {class: "fact"}, element("b", {}, seconds(p.seconds)), " time"),
        element("span", {class: "fact"}, element("b", {}, p.ops.toLocaleString("en")), " operations after it"),
        element("span", {class: "fact"}, element("b", {}, p.added.toLocaleString("en")), " made"),
        element("span", {class: "fact"}, element("b", {}, p.removed.toLocaleString("en")), " removed")),
      p.rules.length ? table([["rule"], ["equation"], ["fired", "n"]],
        p.rules.map(r => [element("code", {}, r.name), r.equation, r.fired.toLocaleString("en")])) : "",
      rows.length ? list.root : element("p", {class: "empty"}, p.number === 0 ? "This is where the compilation begins."
        : "It changed nothing here."));
    list.resize(rows.length);
  }
}

// -- kernels ----------------------------------------------------------------------------------------------------------
const WIDTH = 200, HEIGHT = 44, ACROSS = 24, DOWN = 44, BETWEEN = 14, BESIDE = 5;

/** Positions of nodes in layers: below all that they read, in the order that crosses the fewest edges by barycentres. */
function layered(nodes) {
  const at = new Map(nodes.map((k, i) => [k.op, i]));
  const sources = nodes.map(k => [...new Set(k.inputs.map(x => at.get(x.source)).filter(i => i !== undefined))]);
  const layer = nodes.map(() => 0);
  nodes.forEach((_, i) => { for (const s of sources[i]) layer[i] = Math.max(layer[i], layer[s] + 1); });
  const users = nodes.map(() => []);
  sources.forEach((from, i) => from.forEach(s => users[s].push(i)));
  for (let i = nodes.length - 1; i >= 0; i--)             // what has no sources of its own comes just before its reader
    if (!sources[i].length && users[i].length) layer[i] = Math.max(0, Math.min(...users[i].map(u => layer[u])) - 1);
  const layers = [];
  layer.forEach((l, i) => (layers[l] = layers[l] || []).push(i));
  const x = nodes.map(() => 0);
  layers.forEach(row => row.forEach((i, k) => { x[i] = k; }));
  const mean = (list, fallback) => list.length ? list.reduce((a, j) => a + x[j], 0) / list.length : fallback;
  for (let round = 0; round < 6; round++)
    layers.forEach(row => {
      row.sort((a, b) => mean(round % 2 ? users[a] : sources[a], x[a]) - mean(round % 2 ? users[b] : sources[b], x[b]));
      row.forEach((i, k) => { x[i] = k - (row.length - 1) / 2; });
    });
  const spots = [], widest = Math.min(BESIDE, Math.max(1, ...layers.map(row => row.length)));
  let y = 20;
  for (const row of layers) {
    for (let from = 0; from < row.length; from += BESIDE) {
      const part = row.slice(from, from + BESIDE);
      part.forEach((i, k) => {
        spots[i] = {x: (k + (widest - part.length) / 2) * (WIDTH + ACROSS) + 20, y, sources: sources[i]};
      });
      y += HEIGHT + (from + BESIDE < row.length ? BETWEEN : DOWN);
    }
  }
  return spots;
}

class KernelsView {
  constructor() {
    this.functions = [...new Set(data.kernels.map(k => k.function))];
    this.work = Object.fromEntries(this.functions.map(f => [f, data.kernels.filter(k => k.function === f)
      .reduce((a, k) => a + (valueOf(k.flops) || 0), 0)]));
    this.chosenFunction = this.functions.includes("main") ? "main" : this.functions[0];
    this.asTable = false;
    this.sort = "flops";
    this.bar = element("div", {class: "choices"});
    this.main = element("div", {class: "canvas"});
    this.side = element("aside", {class: "side"});
    this.root = element("div", {class: "kernels-view"}, this.bar, element("div", {class: "split wide"}, this.main, this.side));
    this.chosen = null;
  }
  opened() { if (!this.main.firstChild) { this.draw(); this.describe(); } }
  select(kernel) {
    this.chosen = kernel;
    if (kernel.function !== this.chosenFunction) this.chosenFunction = kernel.function;
    this.draw();
    this.describe();
    choose({op: kernel.op});
  }
  draw() {
    const pick = element("select", {"aria-label": "function", onchange: e => { this.chosenFunction = e.target.value; this.draw(); }},
      ...this.functions.map(f => element("option", {value: f, selected: f === this.chosenFunction},
        `@${f} — ${plural(data.kernels.filter(k => k.function === f).length, "step")}`)));
    const tab = (text, on, act) => element("button", {type: "button", class: "chip", "aria-pressed": String(on), onclick: act}, text);
    this.bar.replaceChildren(tab("graph", !this.asTable, () => { this.asTable = false; this.draw(); }),
      tab("table", this.asTable, () => { this.asTable = true; this.draw(); }), this.asTable ? "" : pick,
      element("span", {class: "hint"}, sizesText()));
    this.main.replaceChildren(data.kernels.length ? this.asTable ? this.table() : this.graph()
      : element("p", {class: "empty"}, "There are no kernels: the module was given below the level loop."));
  }
  graph() {
    const nodes = data.kernels.filter(k => k.function === this.chosenFunction);
    const spots = layered(nodes);
    const width = Math.max(...spots.map(s => s.x), 0) + WIDTH + 20, height = Math.max(...spots.map(s => s.y), 0) + HEIGHT + 20;
    const most = Math.max(...nodes.map(k => valueOf(k.flops) || 0), 1);
    const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `kernels of ${this.chosenFunction}`});
    spots.forEach((s, i) => s.sources.forEach(j => {
      const a = spots[j], on = this.chosen && (nodes[i].op === this.chosen.op || nodes[j].op === this.chosen.op);
      const x1 = a.x + WIDTH / 2, y1 = a.y + HEIGHT, x2 = s.x + WIDTH / 2, y2 = s.y, bend = Math.max(20, (y2 - y1) / 2);
      const aside = y2 - y1 > HEIGHT + 2 * DOWN && Math.abs(x1 - x2) < WIDTH ? WIDTH * 0.75 : 0;     // around what is between
      svg.append(element("path", {class: on ? "edge on" : "edge",
        d: `M${x1},${y1} C${x1 + aside},${y1 + bend} ${x2 + aside},${y2 - bend} ${x2},${y2}`}));
    }));
    nodes.forEach((k, i) => {
      const {x, y} = spots[i], flops = valueOf(k.flops) || 0;
      const label = k.label || "copy";
      const group = element("g", {class: `node ${k.callee ? "call" : ""} ${this.chosen && this.chosen.op === k.op ? "on" : ""}`,
        transform: `translate(${x},${y})`, tabindex: 0, role: "button", "aria-label": label,
        onclick: () => this.select(k), onkeydown: e => { if (e.key === "Enter") this.select(k); }},
        element("title", {}, label), element("rect", {width: WIDTH, height: HEIGHT, rx: 6}),
        element("rect", {class: "work", y: HEIGHT - 3, height: 3, rx: 1, width: Math.max(0, WIDTH * Math.sqrt(flops / most))}),
        element("text", {x: 10, y: 18}, fitted(label, 24)),
        element("text", {class: "small", x: 10, y: 33}, k.callee ? "function" : fitted([k.domain.join(" × "),
          k.flops && k.flops.value ? short(k.flops.value, "flop") : ""].filter(Boolean).join("   "), 32)));
      svg.append(group);
    });
    return svg;
  }
  table() {
    const timed = data.kernels.some(k => k.measured !== null);
    const keys = {measured: k => k.measured || 0, flops: k => valueOf(k.flops) || 0, bytes: k => valueOf(k.bytes) || 0, intensity: k => intensity(k) || 0};
    const rows = data.kernels.filter(k => !k.callee).sort((a, b) => keys[this.sort](b) - keys[this.sort](a));
    const made = table([["kernel"], ["function"], ["domain"], ["flops", "n"], ["bytes", "n"], ["flops/byte", "n"], ...(timed ? [["time", "n"]] : []), ["code"]],
      rows.map(k => [element("code", {}, k.label || "copy"), "@" + k.function, k.domain.join(" × "), quantity(k.flops, ""),
        quantity(k.bytes, "B"), intensity(k) === null ? "" : short(intensity(k)), ...(timed ? [time(k)] : []), element("code", {}, k.code)]), i => this.select(rows[i]));
    made.querySelectorAll("th").forEach((th, i) => {
      const key = [null, null, null, "flops", "bytes", "intensity", timed ? "measured" : null][i];
      if (key) { th.classList.add("sortable"); th.addEventListener("click", () => { this.sort = key; this.draw(); }); }
    });
    return made;
  }
  describe() {
    const k = this.chosen;
    if (!k) {
      this.side.replaceChildren(element("h2", {}, "Kernels"), element("p", {}, "What fuse joined into one loop nest each, and what they read from one another. The line at the bottom of a kernel is its share of the work."),
        ...roofline(null), element("p", {class: "hint"}, "Choose a kernel to see why it is as it is."));
      return;
    }
    const operand = x => [element("code", {}, x.name), element("code", {}, x.type), element("code", {}, x.map.replace(/^affine_map<|>$/g, "") || "—")];
    this.side.replaceChildren(element("h2", {}, k.label || "copy"),
      element("p", {class: "facts"}, k.callee ? element("button", {type: "button", class: "chip", onclick: () => { this.chosenFunction = k.callee; this.chosen = null; this.draw(); this.describe(); }}, `open @${k.callee}`)
        : element("span", {class: "fact"}, element("b", {}, k.domain.join(" × ")), " ", [...new Set(k.iterators)].join(", ")),
      k.flops ? element("span", {class: "fact"}, element("b", {}, quantity(k.flops, "")), " flops") : "",
      k.bytes ? element("span", {class: "fact"}, element("b", {}, quantity(k.bytes, "B")), " moved at least") : "",
      intensity(k) !== null ? element("span", {class: "fact"}, element("b", {}, short(intensity(k))), " flops/byte") : "",
      k.measured !== null ? element("span", {class: "fact"}, element("b", {}, time(k)), ` in ${plural(k.runs, "run")}` + (valueOf(k.flops) && k.runs ? `, ${short(valueOf(k.flops) * k.runs / k.measured, "flop/s")}` : "")) : ""),
      element("p", {}, element("button", {type: "button", class: "chip", onclick: () => showOp(k.op)}, "show its code at every level")),
      ...(k.unfused.length ? [element("h3", {}, "Why it is a kernel of its own"), element("ul", {class: "reasons"}, ...k.unfused.map(r => {
        const [who, ...why] = r.split(": ");
        return element("li", {}, element("code", {}, who || "copy"), " ", why.join(": "));
      }))] : []),
      ...(k.ops.length ? [element("h3", {}, "What it fuses"), k.fused.length ? element("ul", {class: "reasons"}, ...k.fused.map(r => element("li", {}, r))) : "", element("ol", {class: "ops"}, ...k.ops.map(o => element("li", {},
        element("button", {type: "button", class: "text", onclick: () => showOp(o)}, element("code", {}, name(o)),
          element("span", {class: "hint"}, " " + place(places(o)[0]))))))] : []),
      element("h3", {}, "Operands and their layouts"), table([["value"], ["type"], ["element at a point"]], k.inputs.map(operand)),
      ...(k.outputs.length ? [element("h3", {}, "Results"), table([["value"], ["type"], ["element at a point"]], k.outputs.map(operand))] : []),
      ...(k.schedule ? [element("h3", {}, "Schedule"), schedule(k.schedule), element("p", {class: "hint"}, "code: ", element("code", {}, "@" + k.code))] : []),
      ...roofline(k));
  }
}
const fitted = (text, n) => text.length > n ? text.slice(0, n - 1) + "…" : text;
const time = k => k.measured === null ? "" : k.measured < 1e-3 ? `${(k.measured * 1e6).toPrecision(3)}\u202fµs` : `${(k.measured * 1e3).toPrecision(3)}\u202fms`;
const intensity = k => valueOf(k.flops) && valueOf(k.bytes) ? valueOf(k.flops) / valueOf(k.bytes) : null;
const sizesText = () => Object.keys(data.sizes).length ? "with " + Object.entries(data.sizes).map(([n, v]) => `${n} = ${v}`).join(", ") : "";

/** A schedule as a table of its parts, and the steps that led to it. */
function schedule(text) {
  const inside = text.replace(/^#[\w.]+<|>$/g, "");
  const parts = [...inside.matchAll(/(\w+) = (\[[^\]]*\]|[^,]+)/g)].filter(m => m[1] !== "steps" && !/^"/.test(m[2]));
  const steps = [...(inside.match(/steps = \[(.*)\]/) || ["", ""])[1].matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(m => m[1]);
  const plain = parts.filter(m => inside.indexOf("steps") < 0 || m.index < inside.indexOf("steps"));
  return element("div", {}, table([["part"], ["value"]], plain.map(m => [m[1], element("code", {}, m[2])])),
    steps.length ? element("ol", {class: "ops"}, ...steps.map(s => element("li", {}, element("code", {}, s)))) : "");
}

const decades = (from, to) => Array.from({length: Math.max(0, Math.floor(to) - Math.ceil(from) + 1)}, (_, i) => 10 ** (Math.ceil(from) + i));

/** What the kernels could attain on this machine, by their flops per byte: under the roof of all threads, or of one if the chosen kernel runs on one. */
function roofline(chosen) {
  const limits = data.limits, many = !chosen || !chosen.bound || chosen.threads ? 1 : 0;
  const shown = data.kernels.filter(k => intensity(k));
  if (!limits || !shown.length) return limits ? [] : [element("p", {class: "hint"}, "mlc explain --roofline measures what this machine can do, and relates the kernels to it.")];
  const far = limits.levels[limits.levels.length - 1], named = Object.fromEntries(limits.levels.map(l => [l.name, l]));
  const w = 330, h = 190, left = 46, bottom = 26, flops = limits.flops[many], ridge = level => flops / level.bytes[many];
  const xs = shown.map(intensity), x0 = Math.log10(Math.min(...xs, ridge(limits.levels[0]) / 10)), x1 = Math.log10(Math.max(...xs, ridge(far) * 10));
  const top = Math.log10(limits.flops[1]), y0 = Math.min(top - 1, x0 + Math.log10(far.bytes[0]));
  const X = v => left + (Math.log10(v) - x0) / (x1 - x0) * (w - left - 10), Y = v => 10 + (top - Math.log10(v)) / (top - y0) * (h - 20 - bottom);
  const attainable = (v, level) => Math.min(flops, v * level.bytes[many]);
  const most = k => k.bound ? valueOf(k.flops) / k.bound.seconds : attainable(intensity(k), far);
  const levelOf = k => k.bound ? named[k.bound.level] : far;
  const roof = l => element("path", {class: l === far ? "roof" : "roof cache", d: `M${X(10 ** x0)},${Y(attainable(10 ** x0, l))} L${X(ridge(l))},${Y(flops)} L${w - 10},${Y(flops)}`},
    element("title", {}, `${l.name}: ${short(l.bytes[many], "B/s")}`));
  const svg = element("svg", {viewBox: `0 0 ${w} ${h}`, class: "roofline", role: "img", "aria-label": "roofline"},
    ...limits.levels.map(roof),
    ...decades(x0, x1).flatMap(d => [element("line", {class: "grid", x1: X(d), x2: X(d), y1: 10, y2: h - 10 - bottom}),
      element("text", {class: "small", x: X(d), y: h - bottom + 6, "text-anchor": "middle"}, d < 1 ? String(+d.toPrecision(1)) : short(d))]),
    element("text", {class: "small", x: w - 10, y: h - 4, "text-anchor": "end"}, "flops per byte"),
    ...decades(y0, top).map(d => element("text", {class: "small", x: left - 6, y: Y(d) + 4, "text-anchor": "end"}, short(d))),
    ...shown.map(k => element("circle", {class: chosen && chosen.op === k.op ? "on" : "", cx: X(intensity(k)), cy: Y(most(k)),
      r: chosen && chosen.op === k.op ? 6 : 3.5, onclick: () => views.kernels.select(k)},
      element("title", {}, `${k.label}: ${short(intensity(k))} flops/byte in ${levelOf(k).name}, at most ${short(most(k), "flop/s")}${k.threads ? "" : " on one thread"}`))));
  const bound = chosen && chosen.bound && intensity(chosen) ? [element("p", {}, intensity(chosen) < ridge(levelOf(chosen)) ? `The bandwidth of ${chosen.bound.level} bounds it: ` : "Arithmetic bounds it: ",
    element("b", {}, seconds(chosen.bound.seconds)), ` at ${short(valueOf(chosen.flops) / chosen.bound.seconds, "flop/s")} is the least that ${chosen.threads ? plural(limits.threads, "thread") : "one thread"} of this machine ${chosen.threads && limits.threads > 1 ? "need" : "needs"}.`)] : [];
  const rates = limits.levels.map(l => `${short(l.bytes[many], "B/s")} in ${l.name}`).join(", ");
  return [element("h3", {}, "Roofline"), svg, ...bound, element("p", {class: "hint"},
    `${short(flops, "flop/s")}, ${rates} were measured with ${plural(many ? limits.threads : 1, "thread")}. A kernel is under the line of the nearest level that has room for its bytes.`)];
}

// -- memory -----------------------------------------------------------------------------------------------------------
class MemoryView {
  constructor() {
    this.chosen = Math.max(0, data.memory.findIndex(m => m.function === "main"));
    this.bar = element("div", {class: "choices"});
    this.main = element("div", {class: "canvas"});
    this.side = element("aside", {class: "side"});
    this.root = element("div", {class: "kernels-view"}, this.bar, element("div", {class: "split wide"}, this.main, this.side));
  }
  opened() { if (!this.main.firstChild) this.draw(); }
  draw() {
    const plan = data.memory[this.chosen];
    if (!plan) {
      this.main.replaceChildren(element("p", {class: "empty"}, "No value lives between two kernels: there is no arena."));
      return;
    }
    this.bar.replaceChildren(element("select", {"aria-label": "function", onchange: e => { this.chosen = +e.target.value; this.draw(); }},
      ...data.memory.map((m, i) => element("option", {value: i, selected: i === this.chosen}, `@${m.function}${m.total && m.total.value !== null ? " — " + short(m.total.value, "B") : ""}`))),
      element("span", {class: "hint"}, "Buffers by the steps that use them and by their place in the arena. ", sizesText()));
    const drawn = plan.buffers.filter(b => b.offset && b.offset.value !== null && b.size && b.size.value !== null);
    const end = Math.max(1, plan.total && plan.total.value || 0, ...drawn.map(b => b.offset.value + b.size.value));
    const steps = Math.max(1, plan.steps.length), left = 76, w = Math.max(700, Math.min(2400, steps * 12)), h = 460;
    const X = s => left + s / steps * (w - left - 10), Y = v => h - 30 - v / end * (h - 50);
    const svg = element("svg", {viewBox: `0 0 ${w} ${h}`, width: w, height: h, class: "memory", role: "group", "aria-label": "memory plan"});
    for (let i = 0; i <= 4; i++) {
      svg.append(element("line", {class: "grid", x1: left, x2: w - 10, y1: Y(end * i / 4), y2: Y(end * i / 4)}),
        element("text", {class: "small", x: 6, y: Y(end * i / 4) + 4}, short(end * i / 4, "B")));
    }
    drawn.forEach((b, i) => svg.append(element("rect", {class: `buffer hue${i % 6}`, x: X(b.first), width: Math.max(2, X(b.last + 1) - X(b.first) - 1),
      y: Y(b.offset.value + b.size.value), height: Math.max(1.5, Y(b.offset.value) - Y(b.offset.value + b.size.value) - 0.5), tabindex: 0, role: "button",
      "aria-label": `${b.name} ${b.type}`, onclick: () => this.describe(plan, b), onkeydown: e => { if (e.key === "Enter") this.describe(plan, b); }},
      element("title", {}, `${b.name} : ${b.type}\n${short(b.size.value, "B")} at ${b.offset.value}\nsteps ${b.first} to ${b.last}`))));
    svg.append(element("text", {class: "small", x: left, y: h - 8}, `step 0 … ${steps - 1}`));
    this.main.replaceChildren(svg, ...(drawn.length < plan.buffers.length ? [element("p", {class: "hint"}, `${plan.buffers.length - drawn.length} buffers of sizes that only the data decide are not drawn.`)] : []));
    const big = [...plan.buffers].sort((a, b) => (valueOf(b.size) || 0) - (valueOf(a.size) || 0)).slice(0, 12);
    this.side.replaceChildren(element("h2", {}, `@${plan.function}`), element("p", {class: "facts"},
      plan.total ? element("span", {class: "fact"}, element("b", {}, quantity(plan.total, "B")), " arena") : "",
      element("span", {class: "fact"}, element("b", {}, String(plan.buffers.length)), " buffers"),
      element("span", {class: "fact"}, element("b", {}, short(drawn.reduce((a, b) => a + b.size.value, 0), "B")), " without sharing")),
      element("h3", {}, "The largest"), table([["buffer"], ["type"], ["bytes", "n"]], big.map(b => [element("code", {}, b.name), element("code", {}, b.type), quantity(b.size, "B")]), i => this.describe(plan, big[i])));
  }
  describe(plan, b) {
    this.side.replaceChildren(element("h2", {}, b.name), element("p", {}, element("code", {}, b.type)),
      table([["", ""], ["", ""]], [["bytes", quantity(b.size, "B")], ["offset", b.offset.expression], ["written or first used in", `${b.first}: ${plan.steps[b.first] || "copy"}`],
        ["last used in", `${b.last}: ${plan.steps[b.last] || "copy"}`]]),
      element("p", {}, element("button", {type: "button", class: "chip", onclick: () => showOp(b.op)}, "show it at every level")),
      element("p", {}, element("button", {type: "button", class: "chip", onclick: () => this.draw()}, "all buffers")));
    choose({op: b.op});
  }
}

// -- specialisations --------------------------------------------------------------------------------------------------
class SpecialisationsView {
  constructor() {
    this.root = element("div", {class: "prose"}, element("h2", {}, plural(data.specialisations.length, "specialisation")),
      element("p", {class: "hint"}, "Code that was made for the types and values of a call, what it depends on, and the lines that became loops and branches."),
      ...data.specialisations.map((s, i) => element("article", {}, element("h3", {}, `${i + 1}. ${plural(s.types.length, "argument")}`),
        element("p", {}, ...s.types.slice(0, 40).map(t => element("code", {class: "tag"}, t)), s.types.length > 40 ? ` and ${s.types.length - 40} more` : ""),
        s.notes.length > 0 ? element("ul", {class: "reasons"}, ...s.notes.map(n => element("li", {}, n)))
          : element("p", {class: "hint"}, "It depends on nothing but these types."))));
  }
  opened() {}
}
