// Lists of lines that are drawn where they are visible, and the view of the source beside the levels.
"use strict";

const ROW = 19;
const LONGEST = 600;

/** A list of rows of one height. `rows` is their number, `draw(i)` the element of one. */
class List {
  constructor(label, draw) {
    this.draw = draw;
    this.rows = 0;
    this.space = element("div", {class: "space"});
    this.root = element("div", {class: "list", tabindex: 0, role: "group", "aria-label": label}, this.space);
    this.root.addEventListener("scroll", () => this.update());
    new ResizeObserver(() => this.update()).observe(this.root);
  }
  resize(rows) {
    this.rows = rows;
    this.space.style.height = `${rows * ROW}px`;
    this.update();
  }
  update() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / ROW) - 8);
    const last = Math.min(this.rows, Math.ceil((this.root.scrollTop + this.root.clientHeight) / ROW) + 8);
    const block = element("div", {class: "rows", style: `top:${first * ROW}px`});
    for (let i = first; i < last; i++) block.append(this.draw(i));
    this.space.replaceChildren(block);
  }
  shows(row) {
    const y = row * ROW;
    return y >= this.root.scrollTop && y + ROW <= this.root.scrollTop + this.root.clientHeight;
  }
  show(row) {
    if (!this.shows(row)) this.root.scrollTop = Math.max(0, (row - 4) * ROW);
    this.update();
  }
}

const IR = /("(?:[^"\\]|\\.)*")|(%[\w$.]+(?:#\d+)?)|(@[\w$.:]+)|(\^bb\d+)|\b((?:tensor|memref|vector)(?=<)|[fi]\d+|bf16|index|!?llvm\.ptr)\b|\b([a-z_]\w*\.[\w.]+)|(-?\b\d[\w.+]*\b)|(\/\/.*$)/g;
const IR_CLASSES = ["string", "value", "symbol", "label", "type", "op", "number", "comment"];
const ASM = /(#.*$|\/\/.*$)|([%$][\w.]+)|(@\w+)|(-?\b\d\w*\b)|^\s+([a-z][\w.]*)|^([\w.$@]+:)/g;
const ASM_CLASSES = ["comment", "value", "symbol", "number", "op", "label"];
const WORDS = String.raw`\b(def|class|return|if|elif|else|for|while|in|import|from|as|with|lambda|not|and|or|is|None|True|False|yield|raise|try|except|finally|pass|break|continue|assert|let|model)\b|(@[\w.]+)|\b(\d[\w.]*)\b|\b(\w+)(?=\()`;
const PYTHON = new RegExp(String.raw`(#.*$)|([rbf]?"(?:[^"\\]|\\.)*"|[rbf]?'(?:[^'\\]|\\.)*')|` + WORDS.replace("|model", ""), "g");
const PROGRAM = new RegExp(String.raw`(#.*$)|("(?:[^"\\]|\\.)*")|` + WORDS, "g");                  // f'(x) is a derivative
const PYTHON_CLASSES = ["comment", "string", "keyword", "symbol", "number", "op"];

/** The parts of each line that are in a text in three quotes, as docstrings are: [start, end] of each. */
function docstrings(lines, path) {
  const token = path.endsWith(".mlc") ? /#.*$|"""|"(?:[^"\\]|\\.)*"/g : /#.*$|"""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g;
  let open = "";
  return lines.map(line => {
    const spans = [];
    let start = 0, at = 0;
    for (;;) {
      if (open) {
        const end = line.indexOf(open, at);
        spans.push([start, end < 0 ? line.length : end + open.length]);
        if (end < 0) return spans;
        at = end + open.length;
        open = "";
      }
      token.lastIndex = at;
      const m = token.exec(line);
      if (!m) return spans;
      if (m[0] === '"""' || m[0] === "'''") { open = m[0]; start = m.index; }
      at = token.lastIndex;
    }
  });
}
const docstringsOf = new Map();

/** A line of a source in its colours. */
function coloredSource(file, i) {
  const {path, lines} = data.files[file];
  if (path.endsWith(".mlir")) return colored(lines[i], IR, IR_CLASSES);
  if (!docstringsOf.has(file)) docstringsOf.set(file, docstrings(lines, path));
  const plain = text => colored(text, path.endsWith(".mlc") ? PROGRAM : PYTHON, PYTHON_CLASSES);
  if (lines[i].length > LONGEST) return plain(lines[i]);
  const out = document.createDocumentFragment();
  let at = 0;
  for (const [start, end] of docstringsOf.get(file)[i]) {
    out.append(plain(lines[i].slice(at, start)), element("span", {class: "c-string"}, lines[i].slice(start, end)));
    at = end;
  }
  out.append(plain(lines[i].slice(at)));
  return out;
}

/** The parts of a line of code, each in its colour. */
function colored(text, pattern, classes, marked) {
  const out = document.createDocumentFragment();
  const long = text.length > LONGEST;
  const shown = long ? text.slice(0, LONGEST) : text;
  let at = 0;
  pattern.lastIndex = 0;
  for (const m of shown.matchAll(pattern)) {
    const k = m.slice(1).findIndex(x => x !== undefined);
    const start = m.index + m[0].indexOf(m[k + 1]);
    if (start > at) out.append(shown.slice(at, start));
    const part = element("span", {class: "c-" + classes[k]}, m[k + 1]);
    if (marked && classes[k] === "value" && m[k + 1].split("#")[0] === marked) part.classList.add("marked");
    out.append(part);
    at = start + m[k + 1].length;
  }
  out.append(shown.slice(at));
  if (long) out.append(element("span", {class: "more"}, ` … ${(text.length - LONGEST).toLocaleString("en")} more`));
  return out;
}

const patternsOf = levelName => levelName === "asm" ? [ASM, ASM_CLASSES] : [IR, IR_CLASSES];

/** A column of the view: a level, or the source. */
class Column {
  constructor(kind, choose) {
    this.kind = kind;
    this.choose = choose;
    this.file = 0;
    this.level = kind === SOURCE ? null : levelNamed(kind);
    this.folded = new Set();
    this.selected = -1;
    this.related = [];
    this.isRelated = new Set();
    this.list = new List(kind === SOURCE ? "source" : `level ${kind}`, i => this.row(i));
    this.count = element("span", {class: "count"});
    this.head = element("div", {class: "column-head"});
    this.root = element("section", {class: "column " + (kind === SOURCE ? "source" : ""), "data-kind": kind},
      this.head, this.list.root);
    this.list.root.addEventListener("click", e => this.click(e));
    this.list.root.addEventListener("keydown", e => this.key(e));
    this.refold();
    this.drawHead();
  }
  get size() { return this.kind === SOURCE ? (data.files[this.file] || {lines: []}).lines.length : this.level.size; }
  text(i) { return this.kind === SOURCE ? data.files[this.file].lines[i] : this.level.text(i); }

  drawHead() {
    const step = d => element("button", {type: "button", title: d < 0 ? "previous related line" : "next related line",
      "aria-label": `${d < 0 ? "previous" : "next"} related line of ${this.kind}`, onclick: () => this.step(d)}, d < 0 ? "↑" : "↓");
    const files = this.kind === SOURCE && data.files.length > 1
      ? element("select", {"aria-label": "file", onchange: e => { this.file = +e.target.value; this.refold(); this.mark(); }},
        ...data.files.map((f, i) => element("option", {value: i, selected: i === this.file}, f.path)))
      : element("span", {class: "name"}, this.kind === SOURCE ? (data.files[0] || {path: "no source"}).path : this.kind === "asm" ? codeName : this.kind);
    this.head.replaceChildren(files, this.count, element("span", {class: "grow"}),
      ...(this.kind === SOURCE ? [] : [element("button", {type: "button", title: "fold or unfold functions (f)",
        "aria-label": `fold functions of ${this.kind}`, onclick: () => this.foldFunctions()}, "⊟")]),
      step(-1), step(1));
  }

  // -- folding
  refold() {
    this.visible = [];
    for (let i = 0; i < this.size; i++) {
      this.visible.push(i);
      if (this.folded.has(i)) i = this.end(i);
    }
    this.rowOf = null;
    this.list.resize(this.visible.length);
  }
  /** The last line of what begins at a line; the line itself where nothing does. */
  end(i) {
    if (this.kind === SOURCE) return i;
    const op = this.level.op(i);
    if (this.kind === "asm") {
      if (!this.begins(i)) return i;
      let j = i + 1;
      while (j < this.size && !this.begins(j)) j++;
      return j - 1;
    }
    if (op < 0 || !this.text(i).endsWith("{")) return i;
    const lines = this.level.linesOf(op);
    return lines[0] === i ? lines[lines.length - 1] : i;
  }
  /** Whether a function begins at a line of assembly. */
  begins(i) { return this.level.op(i) >= 0 && /^[\w$."]/.test(this.text(i)) && !/^[.$]L/.test(this.text(i)); }
  fold(i) {
    if (this.folded.has(i)) this.folded.delete(i);
    else if (this.end(i) > i) this.folded.add(i);
    else return;
    this.refold();
  }
  foldFunctions() {
    const found = [];
    for (let i = this.kind === "asm" ? 0 : 1; i < this.size; i = this.end(i) + 1) if (this.end(i) > i) found.push(i);
    if (found.every(i => this.folded.has(i))) this.folded.clear();
    else found.forEach(i => this.folded.add(i));
    this.refold();
  }
  /** The row in which a line is, after unfolding what hides it. */
  rowFor(line) {
    for (const i of [...this.folded]) if (i < line && line <= this.end(i)) { this.folded.delete(i); this.rowOf = undefined; }
    if (this.rowOf === undefined) this.refold();
    if (!this.rowOf) this.rowOf = new Map(this.visible.map((l, r) => [l, r]));
    return this.rowOf.get(line);
  }

  // -- drawing
  row(r) {
    const i = this.visible[r];
    const classes = ["row"];
    if (this.isRelated.has(i)) classes.push("related");
    if (i === this.selected) classes.push("selected");
    if (this.kind === SOURCE && linesWithOps[this.file] && !linesWithOps[this.file].has(i + 1)) classes.push("quiet");
    const fold = this.end(i) > i ? element("span", {class: "fold"}, this.folded.has(i) ? "▸" : "▾") : element("span", {class: "fold"});
    const marked = state.value && state.value.kind === this.kind && i >= state.value.first && i <= state.value.last
      ? state.value.name : null;
    const code = element("code", {}, this.kind === SOURCE ? coloredSource(this.file, i)
      : colored(this.text(i), ...patternsOf(this.kind), marked));
    if (this.folded.has(i)) code.append(element("span", {class: "more"}, ` … ${plural(this.end(i) - i, "line")}`));
    return element("div", {class: classes.join(" "), "data-row": r}, element("span", {class: "number"}, String(i + 1)), fold, code);
  }
  click(e) {
    const row = e.target.closest(".row");
    if (!row || String(getSelection())) return;
    const i = this.visible[+row.dataset.row];
    if (e.target.classList.contains("fold") && e.target.textContent) return this.fold(i);
    if (e.target.classList.contains("c-value") && this.kind !== "asm" && this.kind !== SOURCE)
      return this.chooseValue(i, e.target.textContent.split("#")[0]);
    this.pick(i);
  }
  pick(i) {
    state.value = null;
    if (this.kind === SOURCE) this.choose({source: [this.file, i + 1]});
    else if (this.level.op(i) >= 0) this.choose({level: this.kind, op: this.level.op(i), line: i});
    this.selected = i;
    this.list.update();
  }
  /** Choose the operation that defines a value, and mark where it is used. */
  chooseValue(i, value) {
    let first = i, last = i;
    while (first > 1 && !/^  \S/.test(this.text(first))) first--;
    while (last < this.size - 1 && !/^  \}/.test(this.text(last))) last++;
    let defined = first;
    const definition = new RegExp("^\\s*" + value.replace(/[$.]/g, "\\$&") + "(:\\d+)? = ");
    for (let j = first; j <= last; j++) if (definition.test(this.text(j))) { defined = j; break; }
    this.pick(defined);
    state.value = {kind: this.kind, name: value, first, last};
    this.list.show(this.rowFor(defined));
  }
  key(e) {
    const at = this.selected < 0 ? (this.visible[0] ?? 0) : this.selected;
    const row = this.rowFor(at) ?? 0;
    const move = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20}[e.key];
    if (move !== undefined && !e.ctrlKey && !e.metaKey) {
      let r = row;
      do r += Math.sign(move); while (r > 0 && r < this.visible.length - 1 && Math.abs(r - row) < Math.abs(move));
      r = Math.max(0, Math.min(this.visible.length - 1, r));
      this.pick(this.visible[r]);
      this.list.show(r);
      e.preventDefault();
    } else if (e.key === "Enter" || e.key === " ") { this.fold(at); e.preventDefault(); }
    else if (e.key === "n") this.step(1);
    else if (e.key === "p") this.step(-1);
    else if (e.key === "f") this.foldFunctions();
    else if (e.key === "ArrowRight" || e.key === "ArrowLeft" || e.key === "l" || e.key === "h") {
      const all = [...document.querySelectorAll(".column .list")];
      const next = all[all.indexOf(this.list.root) + (e.key === "ArrowRight" || e.key === "l" ? 1 : -1)];
      if (next) { next.focus(); e.preventDefault(); }
    }
  }

  // -- what belongs to the choice
  mark() {
    const chosen = state.related;
    this.related = [];
    if (this.kind === SOURCE) {
      for (let i = 0; i < this.size; i++) if (state.lines.has(`${this.file}:${i + 1}`)) this.related.push(i);
    } else for (let i = 0; i < this.size; i++) if (chosen.has(this.level.op(i))) this.related.push(i);
    this.isRelated = new Set(this.related);
    this.count.textContent = chosen.size || state.lines.size ? (this.related.length ? plural(this.related.length, "line") : "nothing left") : plural(this.size, "line");
    this.list.update();
  }
  reveal() {
    if (this.kind === SOURCE && state.first && state.first[0] >= 0 && state.first[0] !== this.file) {
      this.file = state.first[0];
      this.drawHead();
      this.refold();
      this.mark();
    }
    if (!this.related.length || this.related.some(i => this.rowOf && this.rowOf.has(i) && this.list.shows(this.rowOf.get(i)))) return;
    this.list.show(this.rowFor(this.related[0]));
  }
  step(d) {
    if (!this.related.length) return;
    const now = this.at === undefined || !this.isRelated.has(this.at) ? (d > 0 ? -1 : 0) : this.related.indexOf(this.at);
    this.at = this.related[(now + d + this.related.length) % this.related.length];
    this.list.show(this.rowFor(this.at));
    this.selected = this.at;
    this.list.update();
  }
}

/** The source beside the levels. */
class CodeView {
  constructor() {
    const wide = innerWidth;
    const shown = wide > 1900 ? ["tensor", "loop", "low", "llvm", "asm"] : wide > 1450 ? ["tensor", "loop", "llvm", "asm"]
      : wide > 1000 ? ["tensor", "loop", "asm"] : ["tensor", "asm"];
    this.shown = new Set([SOURCE, ...shown]);
    this.columns = new Map();
    this.choices = element("div", {class: "choices", role: "group", "aria-label": "Levels"});
    this.body = element("div", {class: "columns"});
    this.root = element("div", {class: "code-view"}, this.choices, this.body);
    this.layout();
  }
  layout() {
    const all = [SOURCE, ...levels.map(l => l.name)];
    this.choices.replaceChildren(...all.map(kind => element("button", {type: "button", class: "chip",
      "aria-pressed": String(this.shown.has(kind)), onclick: () => this.toggle(kind)}, kind === "asm" ? codeName : kind)),
      element("span", {class: "hint"}, "Click a line, an operation or a value: what belongs to it is marked at every level."));
    const kept = all.filter(kind => this.shown.has(kind)).map(kind => {
      if (!this.columns.has(kind)) this.columns.set(kind, new Column(kind, choose));
      return this.columns.get(kind);
    });
    this.body.replaceChildren(...kept.map(c => c.root));
    kept.forEach(c => c.mark());
  }
  toggle(kind) {
    if (!this.shown.delete(kind)) this.shown.add(kind);
    if (this.shown.size === 0) this.shown.add(SOURCE);
    this.layout();
    this.reveal(null);
  }
  visible() { return [...this.columns.entries()].filter(([kind]) => this.shown.has(kind)).map(([, c]) => c); }
  mark() { this.visible().forEach(c => { c.at = undefined; c.mark(); }); }
  reveal(but) { this.visible().forEach(c => { if (c.kind !== but) { c.selected = -1; c.reveal(); c.list.update(); } }); }
  /** Show a line of a level. */
  go(kind, line) {
    if (!this.shown.has(kind)) { this.shown.add(kind); this.layout(); }
    const column = this.columns.get(kind);
    column.pick(line);
    column.list.show(column.rowFor(line));
    column.list.root.focus({preventScroll: true});
  }
}
const codeName = data.target.startsWith("cuda") ? "ptx" : "asm";
