"""Why a function is compiled again: the first thing that differs from what it was compiled for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlc.call import Call
from mlc.dispatch_cache import DispatchCache, State
from mlc.frontend.script.report import Report
from mlc.ir import logs

if TYPE_CHECKING:
    from mlc.compiled import CompiledFunction


_SIZE = re.compile(r"\\\(\w+\\\)")
"""A size that stands for any, in the escaped text of a type."""


def log(function: CompiledFunction, report: Report) -> None:
    """Write the logs of a compilation that has been made; `report` is not yet among the function's."""
    name = function.signature.name
    logs.write("compiles", f"{name} for ({', '.join(report.types)})", function=name, types=report.types)
    if not report.reason:
        return
    reason, count = report.reason, len(function.reports) + 1
    code = getattr(function.signature.f, "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    logs.write("recompiles", f"{name}{f' ({file}:{line})' if file else ''} is compiled again, for the "
               f"{_ordinal(count)} time: {reason}", function=name, file=file, line=line, count=count, reason=reason)


def reason_of(function: CompiledFunction, cache: DispatchCache, state: State, call: Call, report: Report) -> str:
    """The difference from the most similar of the earlier compilations."""
    if not state.known and (changed := cache.changed(state)):
        return f"{changed} has changed, which the function reaches; as an argument it would be no part of the code"
    paths = call.paths()
    best = min((_differences(earlier, report, paths) for earlier in function.reports), key=len)
    if not best:
        return "arguments differ in their device, in whether they require gradients, or autocast or no_grad does"
    symbolic = any("(" in t.split("<")[1] for t in report.types if "<" in t) and not any(
        "(" in t.split("<")[1] for t in function.reports[-1].types if "<" in t)
    return best[0] + (f", and {len(best) - 1} more" if len(best) > 1 else "") + (
        "; the new code is for all sizes" if symbolic else "")


def _differences(before: Report, now: Report, paths: Sequence[str]) -> list[str]:
    """Sentences about what differs between two compilations."""
    if len(before.types) != len(now.types):
        return [f"it is called with {len(now.types)} arrays, before with {len(before.types)}"]
    out = [f"{path} is {new}, before {old}" for path, new, old in zip(paths, now.types, before.types)
           if not re.fullmatch(_SIZE.sub(r"[^x<>]+", re.escape(old)), new)]
    old_values, new_values = dict(before.values), dict(now.values)
    for path in dict.fromkeys([*new_values, *old_values]):
        new, old = (repr(values[path])[:80] if path in values else "left out" for values in (new_values, old_values))
        if new != old:
            out.append(f"{path} is {new}, before {old}")
    return out


def _ordinal(n: int) -> str:
    return f"{n}{'th' if n // 10 % 10 == 1 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
