"""Flame graphs of profiles: one SVG file that any browser shows, and that asks for nothing else.

Each row of boxes is a level: the compiled function, the modules around a kernel, its line, the kernel. The width of a
box is its time. A click on a box makes it as wide as the picture; a word in the field at the top marks what has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr
from zlib import crc32

from mlc.profile_kernels import KernelRow, time_text

WIDTH, ROW, TOP, MARGIN = 1200, 19, 64, 8
CHARACTER = 6.6
"""Width of a character of the font in the boxes."""
NARROWEST = 0.2
"""Boxes that are narrower are left out."""
HUES = {"root": (0, 0), "function": (210, 30), "module": (205, 55), "line": (135, 40), "kernel": (28, 85)}
"""Hue and saturation of the boxes of a level."""


@dataclass
class Box:
    """A box: what it stands for, its seconds, how often it ran, and the boxes on it."""

    name: str
    kind: str
    seconds: float = 0.0
    calls: int = 0
    inside: dict[tuple[str, str], Box] = field(default_factory=dict)

    def child(self, name: str, kind: str) -> Box:
        """The box of this name on it, made if it is missing."""
        return self.inside.setdefault((kind, name), Box(name, kind))

    @property
    def depth(self) -> int:
        """The number of rows that it and the boxes on it take."""
        return 1 + max((box.depth for box in self.inside.values()), default=0)


def tree(rows: Iterable[KernelRow]) -> Box:
    """The boxes of the kernels of a profile."""
    root = Box("all", "root")
    for row in rows:
        path = [(row.function, "function"), *((name, "module") for name in row.module.split(".") if name),
                (row.line, "line"), (row.kernel, "kernel")]
        box = root
        for step in (None, *path):
            box = box if step is None else box.child(*step)
            box.seconds += row.seconds
            box.calls += row.calls
    return root


def flame_graph(rows: Iterable[KernelRow], title: str) -> str:
    """The SVG text of the kernels of a profile.

    Args:
        rows: The kernels, with one row for each module.
        title: What was profiled.

    Returns:
        The text.
    """
    root = tree(rows)
    height = TOP + root.depth * ROW + MARGIN
    scale = (WIDTH - 2 * MARGIN) / (root.seconds or 1.0)
    boxes = "\n".join(_boxes(root, MARGIN, 0, scale, root.seconds))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">
<style>
svg {{ background: #fdfdfd; font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
text {{ font-size: 11px; fill: #1a1a1a; pointer-events: none; }}
h1, .title {{ font-size: 15px; }}
rect {{ stroke: #fdfdfd; stroke-width: 0.7; cursor: pointer; }}
rect:hover {{ stroke: #000; }}
.found rect {{ fill: #d63fd6; }}
#find {{ cursor: pointer; pointer-events: auto; fill: #0645ad; }}
</style>
<text class="title" x="{MARGIN}" y="22">{escape(title)}</text>
<text x="{MARGIN}" y="40">{time_text(root.seconds)} in kernels; width is time; click to zoom, on the lowest row to go \
back</text>
<text id="find" x="{WIDTH - MARGIN}" y="22" text-anchor="end">search</text>
<text id="said" x="{MARGIN}" y="56"></text>
<g id="boxes">
{boxes}
</g>
<script><![CDATA[
{_SCRIPT}
]]></script>
</svg>
"""


def _boxes(box: Box, x: float, level: int, scale: float, total: float) -> Iterator[str]:
    """The elements of a box and of those on it."""
    width = box.seconds * scale
    if width < NARROWEST:
        return
    y = TOP + level * ROW
    label = _fitting(box.name, width)
    said = (f"{box.name}: {time_text(box.seconds)}, {100 * box.seconds / (total or 1):.2f}%"
            + (f", {box.calls} calls" if box.kind == "kernel" else ""))
    yield (f'<g data-x="{x - MARGIN:.2f}" data-w="{width:.2f}" data-l="{level}" data-n={quoteattr(box.name)}>'
           f"<title>{escape(said)}</title>"
           f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 1}" rx="1.5" fill="{_colour(box)}"/>'
           f'<text x="{x + 3:.2f}" y="{y + 13}">{escape(label)}</text></g>')
    for inner in sorted(box.inside.values(), key=lambda b: -b.seconds):
        yield from _boxes(inner, x, level + 1, scale, total)
        x += inner.seconds * scale


def _fitting(name: str, width: float) -> str:
    count = int((width - 6) / CHARACTER)
    return name if len(name) <= count else name[:count - 1] + "…" if count > 2 else ""


def _colour(box: Box) -> str:
    hue, saturation = HUES[box.kind]
    shade = crc32(box.name.encode()) % 13
    return f"hsl({hue + shade - 6},{saturation}%,{72 + shade}%)" if saturation else "#dddddd"


_SCRIPT = f"""const boxes = [...document.querySelectorAll('#boxes > g')], W = {WIDTH - 2 * MARGIN}, M = {MARGIN};
const of = (g, k) => Number(g.dataset[k]);
function zoom(to) {{
  const x0 = of(to, 'x'), w0 = of(to, 'w'), l0 = of(to, 'l'), scale = W / w0;
  for (const g of boxes) {{
    const above = of(g, 'l') < l0, x = (of(g, 'x') - x0) * scale, w = of(g, 'w') * scale;
    const holds = above && of(g, 'x') <= x0 + 1e-3 && of(g, 'x') + of(g, 'w') >= x0 + w0 - 1e-3;
    const shown = above ? holds : x >= -0.05 && x + w <= W + 0.05 && w > 0.1;
    g.style.display = shown ? '' : 'none';
    const [rect, text] = [g.querySelector('rect'), g.querySelector('text')];
    const left = holds ? 0 : x, width = holds ? W : w, room = Math.floor((width - 6) / {CHARACTER});
    rect.setAttribute('x', M + left); rect.setAttribute('width', Math.max(width, 0));
    rect.style.opacity = holds ? 0.55 : 1;
    text.setAttribute('x', M + left + 3);
    const name = g.dataset.n;
    text.textContent = name.length <= room ? name : room > 2 ? name.slice(0, room - 1) + '\\u2026' : '';
  }}
}}
for (const g of boxes) g.addEventListener('click', () => zoom(g));
document.getElementById('find').addEventListener('click', () => {{
  const word = prompt('module, line or kernel') || '';
  let sum = 0;
  for (const g of boxes) {{
    const hit = word !== '' && g.dataset.n.includes(word);
    g.classList.toggle('found', hit);
    const around = p => of(p, 'l') < of(g, 'l') && p.classList.contains('found') && of(p, 'x') <= of(g, 'x') + 1e-3 &&
      of(p, 'x') + of(p, 'w') >= of(g, 'x') + of(g, 'w') - 1e-3;
    if (hit && !boxes.some(around)) sum += of(g, 'w');
  }}
  document.getElementById('said').textContent = word && word + ': ' + (100 * sum / W).toFixed(1) + '% of the time';
}});"""
