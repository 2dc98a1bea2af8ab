// The data of the page: lines and operations as lists of numbers, and the lineage of operations.
"use strict";

const data = window.found;
const texts = data.texts, ops = data.ops, count = ops.name.length;
const SOURCE = "source";

const parents = n => { const p = ops.parents[n]; return typeof p === "number" ? [p] : p; };

// Children of each operation: those of n are list[start[n]] to list[start[n + 1]].
const children = (() => {
  const start = new Int32Array(count + 1);
  for (let n = 0; n < count; n++) for (const p of parents(n)) start[p + 1]++;
  for (let n = 0; n < count; n++) start[n + 1] += start[n];
  const list = new Int32Array(start[count]), at = start.slice();
  for (let n = 0; n < count; n++) for (const p of parents(n)) list[at[p]++] = n;
  return {start, list};
})();

/** The levels, with the text and the operation of each line. */
const levels = data.levels.map(level => {
  const n = level.lines.length / 2;
  let byOp = null;
  return {
    name: level.name, size: n,
    text: i => texts[level.lines[2 * i]], textNumber: i => level.lines[2 * i], op: i => level.lines[2 * i + 1],
    /** The lines of an operation. */
    linesOf(op) {
      if (byOp === null) {
        byOp = new Map();
        for (let i = 0; i < n; i++) {
          const o = level.lines[2 * i + 1];
          if (byOp.has(o)) byOp.get(o).push(i); else byOp.set(o, [i]);
        }
      }
      return byOp.get(op) || [];
    },
  };
});
const levelNamed = name => levels.find(level => level.name === name);

const placesByText = new Map();
/** Positions of an operation in the source: [file, line, column]. */
function places(op) {
  const t = ops.places[op];
  if (!placesByText.has(t)) placesByText.set(t, texts[t].split(";").map(p => p.split(",").map(Number)));
  return placesByText.get(t);
}

/** All operations that come from a line of the source. */
function opsOfSource(file, line) {
  const fitting = new Map(), out = new Set();
  for (let n = 0; n < count; n++) {
    const t = ops.places[n];
    let fits = fitting.get(t);
    if (fits === undefined) fitting.set(t, fits = places(n).some(p => p[0] === file && p[1] === line));
    if (fits) out.add(n);
  }
  return out;
}

/** The lines of the source that operations come from, per file. */
const linesWithOps = data.files.map(() => new Set());
for (const t of new Set(ops.places))
  for (const p of texts[t].split(";")) {
    const [file, line] = p.split(",").map(Number);
    if (file >= 0) linesWithOps[file].add(line);
  }

/** Operations, all that they come from and all that they became. */
function relatives(from) {
  const out = new Set(from);
  let work = [...from];
  while (work.length) for (const p of parents(work.pop())) if (!out.has(p)) { out.add(p); work.push(p); }
  work = [...from];
  const down = new Set(from);
  while (work.length) {
    const n = work.pop();
    for (let i = children.start[n]; i < children.start[n + 1]; i++) {
      const c = children.list[i];
      if (!down.has(c)) { down.add(c); out.add(c); work.push(c); }
    }
  }
  return out;
}

/** The operations within the regions of one, at a level. */
function within(level, op) {
  const lines = level.linesOf(op), out = new Set([op]);
  if (lines.length > 1 && op !== level.op(0))
    for (let i = lines[0]; i <= lines[lines.length - 1]; i++) if (level.op(i) >= 0) out.add(level.op(i));
  return out;
}

const name = op => texts[ops.name[op]];
const passNamed = n => data.passes[n];
const place = p => p[0] < 0 ? "" : `${data.files[p[0]].path}:${p[1]}`;

const element = (tag, attributes = {}, ...content) => {
  const svg = ["svg", "g", "rect", "path", "text", "line", "circle", "title"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== false && v !== null && v !== undefined) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...content.filter(c => c !== null && c !== undefined && c !== ""));
  return e;
};

const UNITS = ["", "k", "M", "G", "T", "P"];
/** A number with three digits and a unit: 12.3 M. */
function short(x, unit = "", base = 1000) {
  if (x === null || x === undefined) return "";
  let k = 0;
  while (Math.abs(x) >= base && k < UNITS.length - 1) { x /= base; k++; }
  const digits = k === 0 && Number.isInteger(x) ? 0 : x < 10 ? 2 : x < 100 ? 1 : 0;
  return `${x.toFixed(digits)}${k || unit ? "\u202f" : ""}${UNITS[k]}${unit}`;
}
const seconds = s => s >= 1 ? `${s.toFixed(2)}\u202fs` : s >= 1e-3 ? `${(s * 1e3).toFixed(s < 0.01 ? 1 : 0)}\u202fms`
  : `${(s * 1e6).toFixed(0)}\u202fµs`;
const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
