"""Which nodes of a graph mlc may run, as far as their operators, element types and devices tell."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from mlc.frontend.dtypes import ALL
from mlc.frontend.fx.table import find

DTYPES = frozenset(d.name for d in ALL)
NUMBERS: frozenset[Any] = frozenset({
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.pow,
    operator.neg, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.and_,
    operator.or_, operator.not_, operator.getitem, math.ceil, math.floor, math.trunc, math.sqrt, builtins.round,
    builtins.max, builtins.min, builtins.abs, builtins.int, builtins.float})
"""Functions of Python numbers, which graphs of symbolic sizes compute with."""
SIZES: dict[str, Callable[..., Any]] = {"aten.sym_size.int": lambda x, dim: x.shape[dim],
                                        "aten.sym_numel.default": lambda x: math.prod(x.shape)}
"""Operators whose results are sizes of tensors."""


def unsupported(node: Any) -> str | None:
    """The reason why a node (`torch.fx.Node`) cannot run in mlc, from what is known without translating it."""
    if node.op in ("placeholder", "get_attr"):
        return next(unfit(node), None)
    if node.op != "call_function":
        return f"a node {node.op}"
    if node.target is operator.getitem:
        return unsupported(node.args[0])
    if node.target in NUMBERS or str(node.target) in SIZES:
        return next(unfit(node), None)
    if find(node.target) is None:
        return "mlc has no such operator"
    if node.kwargs.get("generator") is not None:
        return "it draws from a generator of its own"
    return next((reason for n in (node, *node.all_input_nodes) for reason in unfit(n)), None)


def supports(node: Any) -> bool:
    """Whether the operator, the element types and the devices of a node are mlc's."""
    return unsupported(node) is None


def unfit(node: Any) -> Iterator[str]:
    """The reasons why the values of a node are none of mlc's."""
    from torch import SymBool, SymFloat, SymInt, Tensor, strided
    value = node.meta.get("val")
    for x in value if isinstance(value, tuple | list) else (value,):
        if isinstance(x, Tensor):
            if str(x.dtype).removeprefix("torch.") not in DTYPES:
                yield f"tensors of {x.dtype}"
            elif x.layout is not strided:
                yield f"tensors of the layout {x.layout}"
            elif x.device.type != "cpu":
                yield f"tensors on {x.device.type}"
            elif any(_unbacked(n) for n in x.shape):
                yield "a size that depends on elements"
        elif isinstance(x, SymInt | SymFloat | SymBool) and _unbacked(x):
            yield "a number that depends on elements"


def _unbacked(x: Any) -> bool:
    """Whether a symbolic number is not a function of the sizes of inputs."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
    return not isinstance(x, int | float | bool) and bool(free_unbacked_symbols(x))


def depends_on_elements(node: Any) -> bool:
    """Whether the value of a node has a size, or is a number, that depends on the elements of tensors."""
    value = node.meta.get("val")
    every = value if isinstance(value, tuple | list) else (value,)
    return any(_unbacked(n) for x in every for n in (x.shape if hasattr(x, "dtype") else (x,))
               if type(n).__name__ in ("SymInt", "SymFloat", "SymBool"))


def hint(n: Any) -> Any:
    """A number, or that of the example, if it is symbolic; no guard is made."""
    return n if isinstance(n, int | float | bool) else n.node.hint
