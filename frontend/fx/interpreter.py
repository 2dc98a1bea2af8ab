"""Runs a graph of ATen operators on mlc's tensors.

Recorded as any other function, the run is the import: what the IR means is what mlc's public functions mean.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.frontend.dtypes import as_dtype
from mlc.frontend.fx import symbolic
from mlc.frontend.fx.refusing import CODE
from mlc.frontend.fx.support import NUMBERS, SIZES, hint, unsupported
from mlc.frontend.fx.table import find, is_random, takes_contiguity, takes_strides
from mlc.frontend.location import text
from mlc.frontend.tensor import OPERATIONS, Tensor, wrap
from mlc.ir.diag import UNKNOWN, Loc, UserError

DROPPED = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking", "sparse_grad", "generator"})
"""Arguments by keyword that say where and how elements are in memory, which is settled where the graph is called."""
_FRAME = re.compile(r'File "([^"]*)", line (\d+)')


@dataclass(frozen=True)
class Refusal:
    """A node that mlc does not run.

    node      name of the node
    operator  name of the operator, `aten.add.Tensor`
    reason    why
    line      `file:line` of the program; empty if it is not known
    """

    node: str
    operator: str
    reason: str
    line: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.reason}" + (f" ({self.line})" if self.line else "")


def location(node: Any) -> Loc:
    """The line of the program that a node was traced from."""
    found = _FRAME.findall(node.meta.get("stack_trace") or "")
    return Loc(found[-1][0], int(found[-1][1])) if found else UNKNOWN


def refusal_of(node: Any, reason: str) -> Refusal:
    """The refusal of a node."""
    loc = location(node)
    return Refusal(node.name, str(node.target), reason, "" if loc is UNKNOWN else f"{loc.file}:{loc.line}")


class Interpreter:
    """One run of a graph.

    module     the graph and its constants (`torch.fx.GraphModule`)
    tolerant   whether a node that is refused gets zeros for a result, so that the run finds all refusals
    refusals   what was refused
    values     the values of the nodes, after a run
    """

    def __init__(self, module: Any, tolerant: bool = False) -> None:
        self.module, self.tolerant = module, tolerant
        self.refusals: list[Refusal] = []
        self.values: dict[Any, Any] = {}

    def run(self, inputs: Sequence[Any], key: Any = None) -> list[Any]:
        """The results of the graph for tensors and numbers; `key` is a random key, for graphs that draw numbers."""
        values = self.values = dict[Any, Any]()
        given, draws = iter(inputs), 0
        around = text.loc
        try:
            for node in self.module.graph.nodes:
                text.loc = _known(location(node), around)
                if node.op == "placeholder":
                    values[node] = next(given)
                elif node.op == "get_attr":
                    values[node] = constant(_attribute(self.module, node.target))
                elif node.op == "output":
                    out = translated(node.args[0], values)
                    return list(out) if isinstance(out, tuple) else [out]
                else:
                    key_of_node = None
                    if is_random(node.target):
                        key_of_node, draws = OPERATIONS["random.fold_in"](key, draws), draws + 1
                    values[node] = self._value(node, values, key_of_node)
        finally:
            text.loc = around
        return []

    def _value(self, node: Any, values: Mapping[Any, Any], key: Any) -> Any:
        if node.target is operator.getitem and values.get(node.args[0]) is None:
            return _zeros(node.meta.get("val"))            # of an operator that was refused, whose types are not known
        try:
            out = _called(node, values, key)
            check(node, out)
            return out
        except UserError as error:
            reason = error.message
            if not self.tolerant:
                raise
        self.refusals.append(refusal_of(node, reason))
        return _zeros(node.meta.get("val"))


def _known(loc: Loc, otherwise: Loc | None) -> Loc | None:
    return otherwise if loc is UNKNOWN else loc


def _called(node: Any, values: Mapping[Any, Any], key: Any) -> Any:
    """The result of a node."""
    args = translated(node.args, values)
    keywords = {n: translated(x, values) for n, x in node.kwargs.items() if n not in DROPPED}
    if node.target in NUMBERS:
        return symbolic.called(node.target, args)
    if (size := SIZES.get(str(node.target))) is not None:
        return size(*args)
    if (reason := unsupported(node)) is not None:
        raise UserError(reason, code=CODE)
    found: Callable[..., Any] | None = find(node.target)
    assert found is not None
    if takes_contiguity(node.target):
        args = (node.args[0].meta["val"].is_contiguous(), *args)
    if takes_strides(node.target):
        args = (node.args[0].meta["val"].stride(), *args)
    return found(*args, **keywords) if key is None else found(key, *args, **keywords)


def translated(x: Any, values: Mapping[Any, Any]) -> Any:
    """An argument of a node as mlc's functions take it."""
    if x is None or isinstance(x, bool | int | float | complex | str):
        return x
    if x in values if _hashable_node(x) else False:
        return values[x]
    if isinstance(x, tuple | list):
        return tuple(translated(v, values) for v in x)
    if isinstance(x, slice):
        return slice(*(translated(v, values) for v in (x.start, x.stop, x.step)))
    if type(x).__name__ == "dtype":
        return as_dtype(x)
    return None if type(x).__name__ in ("device", "layout", "memory_format") else x


def _hashable_node(x: Any) -> bool:
    return type(x).__name__ == "Node"


def constant(x: Any) -> Any:
    """A tensor of the graph as one of mlc; it may not be a fake one."""
    return wrap(array_of(x))


def array_of(x: Any) -> np.ndarray[Any, Any]:
    """The elements of a tensor of PyTorch's as an array, of the same memory where that is possible."""
    import torch
    x = x.detach().resolve_conj().resolve_neg()
    if x.dtype is torch.bfloat16:
        found: np.ndarray[Any, Any] = x.contiguous().view(torch.int16).numpy().view(as_dtype("bfloat16").dtype)
        return found
    return x.numpy()  # type: ignore[no-any-return]


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _zeros(value: Any) -> Any:
    """Zeros of the types of the result of a node."""
    if isinstance(value, tuple | list):
        return tuple(_zeros(v) for v in value)
    if hasattr(value, "dtype"):
        return OPERATIONS["zeros"](tuple(map(hint, value.shape)), dtype=as_dtype(value.dtype))
    return value if value is None else hint(value)


def check(node: Any, out: Any) -> None:
    """Refuse a node whose result has another type than PyTorch's: that would be a wrong answer later on."""
    expected = node.meta.get("val")
    pairs = zip(out, expected) if isinstance(expected, tuple | list) else ((out, expected),)
    for ours, theirs in pairs:
        if not hasattr(theirs, "dtype") or ours is None:
            continue
        if not isinstance(ours, Tensor):
            raise UserError(f"mlc gives a {type(ours).__name__}, PyTorch a tensor", code=CODE)
        if as_dtype(theirs.dtype) is not ours.dtype:
            raise UserError(f"mlc gives {ours.dtype.name}, PyTorch {theirs.dtype}", code=CODE)
        same = len(ours.shape) == len(theirs.shape) and all(
            not isinstance(n, int) or not isinstance(m, int) or n == m for n, m in zip(ours.shape, theirs.shape))
        if not same:
            raise UserError(f"mlc gives the shape {list(ours.shape)}, PyTorch {list(theirs.shape)}", code=CODE)
