// The state of the page, the details of a choice, search, keys and tabs.
"use strict";

/** What is chosen: `related` are operations, `lines` are "file:line" of the source. */
const state = {related: new Set(), lines: new Set(), first: null, op: -1, value: null, view: "code"};
const byId = id => document.getElementById(id);

/** Choose an operation, or a line of the source, and mark what belongs to it everywhere. */
function choose({op = -1, level = null, source = null}) {
  const from = source ? opsOfSource(...source) : level ? within(levelNamed(level), op) : new Set([op]);
  state.op = op;
  state.related = source ? from : relatives(from);
  state.lines = new Set(source ? [source.join(":")] : [...from].slice(0, 2000).flatMap(n => places(n)).filter(p => p[0] >= 0).map(p => `${p[0]}:${p[1]}`));
  state.first = source || (op >= 0 ? places(op)[0] : null);
  views.code.mark();
  views.code.reveal(level || (source ? SOURCE : null));
  describe(source);
  history.replaceState(null, "", op >= 0 ? `#op${op}` : source ? `#line${source[0]}:${source[1]}` : "#");
}

function clear() {
  Object.assign(state, {related: new Set(), lines: new Set(), first: null, op: -1, value: null});
  views.code.visible().forEach(c => { c.selected = -1; });
  views.code.mark();
  byId("details").replaceChildren();
  history.replaceState(null, "", "#");
}

/** Show an operation at the levels. */
function showOp(op) { show("code"); choose({op}); }

function describe(source) {
  const counts = levels.map(level => {
    let n = 0, first = -1;
    for (let i = 0; i < level.size; i++) if (state.related.has(level.op(i))) { n++; if (first < 0) first = i; }
    return element("button", {type: "button", class: "chip", disabled: n === 0, onclick: () => { show("code"); const c = views.code; if (!c.shown.has(level.name)) c.toggle(level.name); const column = c.columns.get(level.name); column.list.show(column.rowFor(first)); }},
      `${level.name === "asm" ? codeName : level.name} `, element("b", {}, n.toLocaleString("en")));
  });
  const parts = [];
  const op = state.op;
  if (source) {
    parts.push(element("p", {class: "what"}, element("b", {}, `${data.files[source[0]].path}:${source[1]}`), " ",
      element("code", {}, (data.files[source[0]].lines[source[1] - 1] || "").trim()), state.related.size ? "" : element("span", {class: "hint"}, " became no operation of its own")));
  } else if (op >= 0) {
    const own = places(op), made = passNamed(ops.made[op]), gone = ops.gone[op];
    const rule = ops.by[op] !== undefined ? texts[ops.by[op]] : "";
    parts.push(element("p", {class: "what"}, element("b", {}, name(op)), " ", element("span", {}, [...new Set(own.map(place))].filter(Boolean).slice(0, 4).join(", ")),
      element("span", {class: "hint"}, ` made by ${made.name}${rule ? " (" + rule + ")" : ""}`, gone >= 0 ? `, replaced or removed by ${passNamed(gone).name}` : ""),
      ...(ops.removed[op] !== undefined ? [element("span", {class: "hint"}, ` — rule ${texts[ops.removed[op]]}`), ...(ops.instead[op] || []).map(o => element("button", {type: "button", class: "text", onclick: () => showOp(o)}, ` → ${name(o)}`))] : []),
      ...(own.length > 1 ? [element("span", {class: "hint"}, ` stands for ${own.length} equal operations`)] : [])));
    const kernel = data.kernels.find(k => state.related.has(k.op));
    if (kernel && kernel.op !== op) parts[0].append(" ", element("button", {type: "button", class: "text", onclick: () => { show("kernels"); views.kernels.select(kernel); }}, `kernel ${kernel.label}`));
  }
  byId("details").replaceChildren(...parts, element("p", {class: "counts"}, ...counts));
}

// -- views ------------------------------------------------------------------------------------------------------------
const TABS = {code: "Code", passes: "Passes", kernels: "Kernels", memory: "Memory", specialisations: "Specialisations"};
const views = {};
function show(view) {
  state.view = view;
  if (!views[view]) views[view] = {passes: () => new PassesView(), kernels: () => new KernelsView(), memory: () => new MemoryView(),
    specialisations: () => new SpecialisationsView()}[view]();
  byId("view").replaceChildren(views[view].root);
  document.body.dataset.view = view;
  for (const tab of byId("tabs").children) tab.setAttribute("aria-selected", String(tab.dataset.view === view));
  if (views[view].opened) views[view].opened();
}

// -- search -----------------------------------------------------------------------------------------------------------
let hits = [], at = -1;
function search(query) {
  hits = [];
  at = -1;
  const list = byId("hits");
  if (query.length < 2) { list.hidden = true; return; }
  const wanted = query.toLowerCase(), fits = new Uint8Array(texts.length);
  texts.forEach((t, i) => { fits[i] = t.toLowerCase().includes(wanted) ? 1 : 0; });
  const rows = [], add = (kind, total, found) => {
    if (!total) return;
    rows.push(element("li", {class: "group", role: "presentation"}, `${kind === "asm" ? codeName : kind} — ${plural(total, "line")}`));
    found.forEach(([text, go]) => {
      const n = hits.length;
      hits.push(go);
      rows.push(element("li", {role: "option", id: `hit${n}`, onclick: () => { go(); list.hidden = true; }}, element("code", {}, text.trim().slice(0, 140))));
    });
  };
  data.files.forEach((file, f) => {
    const found = file.lines.map((text, i) => [text, i]).filter(([text]) => text.toLowerCase().includes(wanted));
    add(file.path, found.length, found.slice(0, 8).map(([text, i]) => [text, () => {
      show("code");
      const column = views.code.columns.get(SOURCE);
      if (column.file !== f) { column.file = f; column.drawHead(); column.refold(); }
      views.code.go(SOURCE, i);
    }]));
  });
  levels.forEach(level => {
    const found = [];
    let total = 0;
    for (let i = 0; i < level.size; i++) if (fits[level.textNumber(i)]) { total++; if (found.length < 8) found.push(i); }
    add(level.name, total, found.map(i => [level.text(i), () => { show("code"); views.code.go(level.name, i); }]));
  });
  list.replaceChildren(...(rows.length ? rows : [element("li", {class: "group"}, "nothing has this text")]));
  list.hidden = false;
}
function move(d) {
  if (!hits.length) return;
  if (at >= 0) byId(`hit${at}`).removeAttribute("aria-selected");
  at = (at + d + hits.length) % hits.length;
  byId(`hit${at}`).setAttribute("aria-selected", "true");
  byId(`hit${at}`).scrollIntoView({block: "nearest"});
}

// -- keys -------------------------------------------------------------------------------------------------------------
const KEYS = [["/", "search all levels; ↑ ↓ and Enter choose a result"], ["1 … 5", Object.values(TABS).join(", ")],
  ["↑ ↓  or  j k", "the line above or below, and what belongs to it"], ["← →  or  h l", "the column beside"],
  ["n p", "the next or previous line that belongs to the choice"], ["Enter", "fold or unfold a function, loop or kernel"],
  ["f", "fold or unfold all functions of the column"], ["Esc", "clear the choice"], ["?", "these keys"]];
document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target.matches("input, select");
  if (e.key === "Escape") {
    if (byId("keys").open) return;
    if (typing) { byId("query").blur(); byId("hits").hidden = true; } else clear();
  } else if (typing) return;
  else if (e.key === "/") { byId("query").focus(); byId("query").select(); e.preventDefault(); }
  else if (e.key === "?") byId("keys").showModal();
  else if (e.key >= "1" && e.key <= "5") show(Object.keys(TABS)[+e.key - 1]);
});

// -- start ------------------------------------------------------------------------------------------------------------
function begin() {
  byId("facts").append(...[data.target, plural(data.ops.name.length, "operation"), plural(data.kernels.filter(k => !k.callee).length, "kernel"),
    `mlc ${data.mlc}`].map(t => element("span", {class: "fact"}, t)));
  byId("tabs").append(...Object.entries(TABS).map(([view, title], i) => element("button", {type: "button", role: "tab", "data-view": view,
    title: `${title} (${i + 1})`, onclick: () => show(view)}, title)));
  byId("keys").append(element("h2", {}, "Keys"), table([["", ""], ["", ""]], KEYS.map(([k, what]) => [element("kbd", {}, k), what])),
    element("form", {method: "dialog"}, element("button", {class: "chip"}, "close")));
  byId("help").addEventListener("click", () => byId("keys").showModal());
  const query = byId("query");
  let waiting = 0;
  query.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => search(query.value), 60); });
  query.addEventListener("focus", () => { if (hits.length) byId("hits").hidden = false; });
  query.addEventListener("keydown", e => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { move(e.key === "ArrowDown" ? 1 : -1); e.preventDefault(); }
    else if (e.key === "Enter" && hits.length) { hits[Math.max(at, 0)](); byId("hits").hidden = true; e.preventDefault(); }
  });
  document.addEventListener("click", e => { if (!e.target.closest("#find")) byId("hits").hidden = true; });
  views.code = new CodeView();
  show("code");
  const [, view] = location.hash.match(/^#(\w+)$/) || [];
  const [, op] = location.hash.match(/^#op(\d+)$/) || [];
  const line = location.hash.match(/^#line(\d+):(\d+)$/);
  if (op !== undefined && +op < count) showOp(+op);
  else if (line && data.files[+line[1]]) views.code.go(SOURCE, +line[2] - 1);
  else if (view in TABS) show(view);
  document.body.dataset.ready = "true";
}
begin();
