"""An explanation as text on the terminal: a summary, or one line of the source through all levels."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from mlc.profile_kernels import time_text
from mlc.tools import layout, report
from mlc.tools.explain.as_json import quantity
from mlc.tools.explain.explanation import Explanation, Kernel, Level

MOST_LINES = 16
"""Lines of a level that are shown of one line of the source, unless all are asked for."""
MOST_ROWS = 12
NAMES = 5
"""Kinds of operations that a pass removed or made, of those that are listed."""


# -- a summary --------------------------------------------------------------------------------------------------------
def summary(found: Explanation) -> str:
    """The levels, the passes with their time, and the kernels that do the most work."""
    out = [f"{found.title} for {found.target}", ""]
    out += _table(("level", "lines"), [(level.name, f"{len(level.lines):,}") for level in found.levels])
    out += ["", *_table(("pass", "time", "made", "removed", "rules"), [
        (f"{p.number:2} {p.name.partition('{')[0]}", _seconds(p.seconds), f"{p.added:,}", f"{p.removed:,}",
         ", ".join(f"{r.name} {r.fired}x" for r in p.rules[:4]) + (", ..." if len(p.rules) > 4 else ""))
        for p in found.passes])]
    out += [f"code generation: {_seconds(found.seconds['code generation'])}"]
    kernels = sorted((k for k in found.kernels if not k.callee), key=lambda k: (
        -(k.measured or 0), -(_value(k.flops, found) or 0)))
    if kernels:
        times = [("time", "runs")] * any(k.measured is not None for k in kernels)
        least = ["least"] * (found.limits is not None)
        out += ["", *_table((*itertools.chain(*times), *least, "kernel", "function", "domain", "flops", "bytes"), [
            (*((time_text(k.measured or 0), str(k.runs)) if times else ()), *([_least(k, found)] if least else ()),
             k.label or "copy", "@" + k.function, " x ".join(k.domain) or "one point", k.flops, k.bytes)
            for k in kernels[:MOST_ROWS]])]
        if len(kernels) > MOST_ROWS:
            out.append(f"... {len(kernels) - MOST_ROWS} more kernels")
    for plan in found.memory:
        out.append(f"@{plan.function}: {len(plan.buffers)} buffers in an arena of {plan.total or '?'} bytes")
    return _fitted(out) + "\n" + "".join(f"{row}\n" for row in layout.wrapped(
        "-o report.html writes the page, --line LINE shows one line of the source at every level", layout.page_width()))


def _least(k: Kernel, found: Explanation) -> str:
    """The least time of a run by the roofline; "" where the work is not known."""
    flops, moved = _value(k.flops, found), _value(k.bytes, found)
    if found.limits is None or flops is None or moved is None:
        return ""
    return time_text(found.limits.seconds(flops, moved, k.threads))


def _value(expression: str, found: Explanation) -> int | None:
    known = quantity(expression, found.sizes)
    return known["value"] if known is not None else None


# -- a line -----------------------------------------------------------------------------------------------------------
def line(found: Explanation, wanted: str, everything: bool = False) -> str:
    """One line of the source at every level: what it is there, and which passes made it so."""
    file, number = _position(found, wanted)
    chosen = {i for i, op in enumerate(found.ops) if any(p.file == file and p.line == number for p in op.places)}
    source = found.files[file]
    out = [f"{source.path}:{number}", f"    {source.lines[number - 1].strip()}"]
    for level in found.levels:
        out += ["", *_at_level(level, chosen, everything)]
    out += ["", "passes", *_passes(found, chosen)]
    if kernels := [k for k in found.kernels if chosen & {k.op, *k.ops}]:
        out += ["", "kernels", *(text for k in kernels[:MOST_ROWS] for text in _kernel(k, found))]
        if len(kernels) > MOST_ROWS:
            out.append(f"  ... {len(kernels) - MOST_ROWS} more")
    return _fitted(out)


def parse_line(wanted: str) -> tuple[str, int]:
    """The file (or "") and the line that `[FILE:]LINE` names."""
    name, _, text = wanted.rpartition(":")
    if not text.isdecimal():
        raise report.usage_error(f"--line: {wanted!r} is no line", "write 12 or model.py:12", "MLC0391")
    return name, int(text)


def _position(found: Explanation, wanted: str) -> tuple[int, int]:
    """The number of the file and the line that `[FILE:]LINE` names."""
    name, number = parse_line(wanted)
    fitting = [i for i, f in enumerate(found.files) if not name or Path(f.path).parts[-len(Path(name).parts):] == Path(
        name).parts]
    if not fitting:
        raise report.usage_error(f"--line: no operation comes from {name}", "operations come from " + (
            ", ".join(f.path for f in found.files) or "no file"), "MLC0391")
    lines = {(p.file, p.line) for op in found.ops for p in op.places if p.file in fitting}
    chosen = next(((file, number) for file in fitting if (file, number) in lines), None)
    if chosen is None:
        near = sorted(lines, key=lambda place: (abs(place[1] - number), place))[:5]
        raise report.usage_error(f"--line: no operation comes from line {number} of {found.files[fitting[0]].path}",
                                 "some come from " + ", ".join(f"{found.files[f].path}:{n}" for f, n in sorted(near)),
                                 "MLC0391")
    return chosen


def _at_level(level: Level, chosen: Collection[int], everything: bool) -> list[str]:
    lines = [text for text, op in level.lines if op in chosen]
    shown = lines if everything or len(lines) <= MOST_LINES else lines[:MOST_LINES]
    indent = min((len(text) - len(text.lstrip()) for text in shown), default=0)
    out = [f"{level.name}: {len(lines)} of {len(level.lines):,} lines", *(f"  {text[indent:]}" for text in shown)]
    return out + ([f"  ... {len(lines) - len(shown)} more; --all shows them"] if len(shown) < len(lines) else [])


def _passes(found: Explanation, chosen: Collection[int]) -> list[str]:
    """A line for each pass that made something else of the operations."""
    out = []
    for p in found.passes[1:]:
        gone = [i for i in chosen if found.ops[i].gone == p.number]
        made = [i for i in chosen if found.ops[i].made == p.number]
        if not gone and not made:
            continue
        rules = {found.ops[i].removed for i in gone} | {found.ops[i].by for i in made} - {""}
        known = [r.name for r in p.rules if r.name in rules]
        by = f" ({', '.join(known)})" if known else ""
        out.append(f"  {p.name.partition('{')[0]}{by}: {_counted(found, gone)} -> {_counted(found, made)}")
    return out


def _counted(found: Explanation, numbers: Iterable[int]) -> str:
    counts = Counter(found.ops[i].name for i in numbers).most_common()
    texts = [f"{n} {name}" if n > 1 else name for name, n in counts[:NAMES]]
    return ", ".join(texts) + (f" and {sum(n for _, n in counts[NAMES:])} more" if len(counts) > NAMES else "") \
        if counts else "nothing"


def _kernel(k: Kernel, found: Explanation) -> list[str]:
    work = f": {k.flops} flops, {k.bytes} bytes" if k.flops else ""
    if k.measured is not None:
        work += f", {time_text(k.measured)} in {k.runs} run{'s' * (k.runs != 1)}"
    if found.limits is not None and (least := _least(k, found)):
        work += f", {least} at least by " + (f"{found.limits.threads} threads" if k.threads else "one thread")
    return [f"  {k.label or 'copy'} in @{k.function}{work}", *(f"    together: {why}" for why in k.fused),
            *(f"    apart from {why}" for why in k.unfused)]


# -- layout -----------------------------------------------------------------------------------------------------------
def _seconds(s: float) -> str:
    return f"{s:.2f} s" if s >= 1 else f"{s * 1e3:.1f} ms"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(str(row[i])) for row in (head, *rows)) for i in range(len(head))]
    return ["  ".join(str(x).ljust(w) for x, w in zip(row, widths)).rstrip() for row in (head, *rows)]


def _fitted(lines: Sequence[str]) -> str:
    width = layout.terminal_width()
    return "".join((x if not width or len(x) <= width else x[:width - 3] + "...") + "\n" for x in lines)
