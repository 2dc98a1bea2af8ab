"""The functions of both frameworks for an entry of PyTorch's database, and its tolerances."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

import mlc
from tests.peers.opinfo_names import ELSEWHERE, REFERENCES, UNDETERMINED
from tests.peers.opinfo_values import shown


def attribute(owner: Any, path: str) -> Any:
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner


def ours(entry: Any) -> Callable[..., Any] | None:
    """The function of mlc that an entry is compared with: a public function, otherwise a method; None if missing."""
    for name in (entry.formatted_name, entry.name):
        if name in ELSEWHERE:
            return ELSEWHERE[name][0]
    name = entry.name.removeprefix("torch.")
    if inspect.isfunction(f := attribute(mlc, name)):
        return f
    method = attribute(mlc.Tensor, name)
    return method.fget if isinstance(method, property) else method if inspect.isfunction(method) else None


def takes_out(entry: Any, f: Callable[..., Any]) -> bool:
    """Whether `out` reaches mlc's function; not where signs of its results are changed afterwards."""
    kinds = {p.kind for p in inspect.signature(f).parameters.values()}
    return not {entry.formatted_name, entry.name} & set(ELSEWHERE) or inspect.Parameter.VAR_KEYWORD in kinds


def theirs(entry: Any) -> Callable[..., Any]:
    """PyTorch's function, with mlc's conventions: signs that are fixed."""
    if entry.formatted_name in REFERENCES:
        return REFERENCES[entry.formatted_name]
    own = REFERENCES.get(entry.name)
    return own if own is not None else lambda *args, **keywords: entry.op(*args, **keywords)


def tolerances(entry: Any) -> tuple[float, float] | None:
    """The greatest (rtol, atol) that the entry has for float32 on a CPU; None for the defaults."""
    found = [f.d[torch.float32] for info in entry.decorators for f in getattr(info, "decorators", [info])
             if torch.float32 in getattr(f, "d", {}) and getattr(info, "device_type", None) in (None, "cpu")]
    pairs = [(1.3e-6, t) if isinstance(t, float) else (t.rtol, t.atol) for t in found]    # a float is an atol
    return tuple(map(max, zip(*pairs))) if pairs else None


def is_determined(entry: Any, sample: Any) -> bool:
    """Whether the values of the results can be compared."""
    dropped = sample.args[9] if entry.name.endswith("multi_head_attention_forward") else sample.kwargs.get("dropout_p")
    return entry.name not in UNDETERMINED and not dropped


def call_text(entry: Any, sample: Any) -> str:
    given = [shown(x) for x in (sample.input, *sample.args)] + [f"{n}={shown(x)}" for n, x in sample.kwargs.items()]
    return f"{entry.name}({', '.join(given)})"


