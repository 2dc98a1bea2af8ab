"""An explanation as JSON: for people and programs, as schema.json describes it, and compactly for the page."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from mlc.ir.affine_syntax import parse_size
from mlc.ir.diag import ParseError
from mlc.ir.sizes import evaluate, symbols
from mlc.roofline import Limits
from mlc.tools.explain.explanation import Explanation, Hunk, Kernel, Line, MemoryPlan, Operation, Pass

VERSION = 3
"""Version of both forms."""


def document(found: Explanation) -> dict[str, Any]:
    """The form of schema.json: an operation is named by its index in `ops`."""
    return {
        "version": VERSION, "title": found.title, "target": found.target, "mlc": found.version, "sizes": found.sizes,
        "seconds": found.seconds, "files": [asdict(f) for f in found.files],
        "ops": [_operation(op) for op in found.ops],
        "levels": [{"name": level.name, "lines": _lines(level.lines)} for level in found.levels],
        "passes": [_pass(p) for p in found.passes],
        "kernels": [_kernel(k, found.sizes, found.limits) for k in found.kernels],
        "memory": [_plan(plan, found.sizes) for plan in found.memory],
        "specialisations": [asdict(s) for s in found.specialisations],
        "limits": _limits(found.limits) if found.limits is not None else None,
    }


def text(found: Explanation) -> str:
    """The JSON text of `document`."""
    return json.dumps(document(found), ensure_ascii=False, indent=None, separators=(",", ":")) + "\n"


def _operation(op: Operation) -> dict[str, Any]:
    return {"name": op.name, "parents": op.parents, "places": [list(p) for p in op.places], "made": op.made,
            "by": op.by, "gone": op.gone, "removed": op.removed, "instead": op.instead}


def _lines(lines: list[Line]) -> list[dict[str, Any]]:
    return [{"text": line.text, "op": line.op} for line in lines]


def _pass(p: Pass) -> dict[str, Any]:
    return {"number": p.number, "name": p.name, "level": p.level, "why": p.why, "seconds": round(p.seconds, 6),
            "ops": p.ops, "added": p.added, "removed": p.removed, "rules": [asdict(r) for r in p.rules],
            "hunks": [{part: _lines(getattr(h, part)) for part in PARTS} for h in p.hunks]}


PARTS = ("before", "removed", "added", "after")
"""The fields of a `Hunk`."""


def _kernel(k: Kernel, sizes: dict[str, int], limits: Limits | None) -> dict[str, Any]:
    flops, moved = quantity(k.flops, sizes), quantity(k.bytes, sizes)
    return {**asdict(k), "flops": flops, "bytes": moved, "bound": _bound(flops, moved, k.threads, limits)}


def _bound(flops: dict[str, Any] | None, moved: dict[str, Any] | None, threads: bool,
           limits: Limits | None) -> dict[str, Any] | None:
    """The level that a kernel is compared with, and its least time with the threads that may share it, where known."""
    if limits is None or flops is None or moved is None or None in (flops["value"], moved["value"]):
        return None
    return {"level": limits.level(moved["value"], threads).name,
            "seconds": limits.seconds(flops["value"], moved["value"], threads)}


def _limits(limits: Limits) -> dict[str, Any]:
    """The limits of one thread and of all threads together."""
    return {"flops": list(limits.operations["f32"]), "threads": limits.threads, "levels": [
        {"name": level.name, "size": level.size, "bytes": list(level.rates)} for level in limits.levels]}


def _plan(plan: MemoryPlan, sizes: dict[str, int]) -> dict[str, Any]:
    buffers = [{**asdict(b), "offset": quantity(b.offset, sizes), "size": quantity(b.size, sizes)}
               for b in plan.buffers]
    return {**asdict(plan), "total": quantity(plan.total, sizes), "buffers": buffers}


def quantity(expression: str, sizes: dict[str, int]) -> dict[str, Any] | None:
    """An expression in the symbolic sizes, and its value for the numbers that they have here."""
    if not expression:
        return None
    try:
        size = parse_size(expression)
    except ParseError:                                     # "?"
        return {"expression": expression, "value": None}
    known = symbols(size) <= sizes.keys()                  # others are decided by the data
    return {"expression": expression, "value": evaluate(size, sizes) if known else None}


# -- for the page -----------------------------------------------------------------------------------------------------
def compact(found: Explanation) -> str:
    """The same without repetitions: texts by their numbers, lines and operations as lists of numbers.

    A line is two numbers, of its text and of its operation; the fields of operations are lists of their own, since
    most of them are equal from one operation to the next.
    """
    table = _Texts()
    ops = found.ops
    out = document(_without_bulk(found)) | {
        "ops": {
            "name": [table.number(op.name) for op in ops],
            "parents": [op.parents[0] if len(op.parents) == 1 else op.parents for op in ops],
            "places": [table.number(";".join(",".join(map(str, p)) for p in op.places)) for op in ops],
            "made": [op.made for op in ops],
            "gone": [op.gone for op in ops],
            "by": {i: table.number(op.by) for i, op in enumerate(ops) if op.by},
            "removed": {i: table.number(op.removed) for i, op in enumerate(ops) if op.removed},
            "instead": {i: op.instead for i, op in enumerate(ops) if op.instead},
        },
        "levels": [{"name": level.name, "lines": table.lines(level.lines)} for level in found.levels],
        "hunks": [[table.hunk(h) for h in p.hunks] for p in found.passes],
    }
    out["texts"] = table.texts
    return json.dumps(out, ensure_ascii=False, separators=(",", ":"))


def _without_bulk(found: Explanation) -> Explanation:
    """An explanation without what `compact` writes in another form."""
    from dataclasses import replace
    return replace(found, ops=[], levels=[], passes=[replace(p, hunks=[]) for p in found.passes])


class _Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found

    def lines(self, lines: list[Line]) -> list[int]:
        out = list[int]()
        for text, op in lines:
            out.append(self.number(text))
            out.append(op)
        return out

    def hunk(self, hunk: Hunk) -> list[list[int]]:
        return [self.lines(getattr(hunk, part)) for part in PARTS]
