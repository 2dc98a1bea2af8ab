"""Data-dependent sizes, such as the number of elements that a mask selects, in functions that are being recorded.

Such a size is a symbol that a `tensor.bind_size` binds, with an upper bound. Tensors of that size are used like any
other in the function. Results are padded to the bound and returned with the true size, to which the caller unpads them.
So compiled code has no data-dependent sizes at its interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mlc.dialects import func
from mlc.dialects import tensor as T
from mlc.dialects.tensor.bounded import first_of, named, to_bounds
from mlc.frontend.devices import BackingArray
from mlc.ir import sizes
from mlc.ir.bounds import most
from mlc.ir.core import Block, Value
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64

if TYPE_CHECKING:
    from mlc.frontend.trace import Trace

R = TypeVar("R")
Unpadding = tuple[tuple[int, int], ...]
"""(axis, position of the result that holds the true size of that axis)."""


class DataDependentSizes:
    """The data-dependent sizes of one recorded function: the operation that binds each, by name."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.bindings: dict[str, T.BindSize] = {}
        self._made: dict[Any, tuple[Block, Any]] = {}

    def new(self, n: Value, bound: Dim, name: str = "rows") -> sizes.Size:
        """A size whose value is `n`, at most `bound`."""
        root = self.trace.root
        given = {s for arg in root.block.args for d in arg.type.shape for s in sizes.symbols(d)}
        name = func.free_name(name, given | root.named)
        root.named.add(name)
        size = sizes.sym(name)
        self.bindings[name] = T.BindSize(n, size, bound)
        return size

    def once(self, key: Any, make: Callable[[], R]) -> R:
        """The result of `make`, which is called once per key: sizes that are known to be equal have one name."""
        trace = self.trace
        block, found = self._made.get(key, (None, None))
        if block not in (trace.block, *trace.regions):
            found = make()
            self._made[key] = trace.regions[-1] if trace.regions else trace.block, found
        return found  # type: ignore[return-value]

    @property
    def bounds(self) -> dict[str, Dim]:
        return {name: w.bound for name, w in self.bindings.items() if w.bound is not None}

    # -- leaving the function -----------------------------------------------------------------------------------------
    def padded(self, values: Sequence[Value]) -> tuple[list[Value], dict[str, Value]]:
        """Values padded to their bounds, and their true sizes by name."""
        bounds = self.bounds
        names = dict.fromkeys(n for v in values for n in named(v.type, bounds))
        return [to_bounds(v, bounds) for v in values], {n: T.Size(sizes.sym(n), i64).result for n in names}

    def results(self, values: Sequence[Value]) -> tuple[list[Value], dict[int, Unpadding]]:
        """Values padded to their bounds, followed by their true sizes; and how to unpad them."""
        bounds = self.bounds
        found: dict[Dim, int] = {}
        unpadding: dict[int, Unpadding] = {}
        for i, v in enumerate(values):
            which = [(axis, d) for axis, d in enumerate(v.type.shape) if any(n in bounds for n in sizes.symbols(d))]
            if which:
                unpadding[i] = tuple((axis, found.setdefault(d, len(values) + len(found))) for axis, d in which)
        return [*(to_bounds(v, bounds) for v in values), *(T.Size(d, i64).result for d in found)], unpadding


def refuse(values: Sequence[Value], sizes_of: DataDependentSizes, name: str, loc: Loc) -> None:
    """UserError if values that a function returns to a transformation have data-dependent sizes."""
    for v in values:
        for size in named(v.type, sizes_of.bounds):
            raise UserError(f"{name} returns a {v.type}, whose size {size} is data-dependent", code="MLC0614",
                            loc=loc, notes=(f"the size comes from {sizes_of.bindings[size].loc}",),
                            hint="reduce it there, or choose by the mask with mlc.where, which keeps the size")


def unpadded(outer: DataDependentSizes, inner: DataDependentSizes, numbers: Mapping[str, Value],
             values: Sequence[Value], shapes: Sequence[Sequence[Dim]]) -> list[Value]:
    """The results of a call, unpadded to their true sizes: `shapes`, in size symbols of the callee."""
    if not numbers:
        return list(values)
    names: dict[str, Dim] = {}
    for name, n in numbers.items():
        bound = most(sizes.sym(name), inner.bounds)
        assert bound is not None, "a size is at most its bound"
        names[name] = outer.new(n, bound)
    return [first_of(v, [sizes.substitute(d, names) for d in shape]) for v, shape in zip(values, shapes)]


def unpad(results: Sequence[BackingArray], number: int, unpadding: Unpadding) -> BackingArray:
    """A result of a compiled function, unpadded to its true size."""
    array = results[number]
    shape = list(array.shape)
    for axis, count in unpadding:
        known = results[count]
        shape[axis] = int(known if isinstance(known, np.ndarray) else known.numpy())
    if not isinstance(array, np.ndarray):
        return array.first(tuple(shape))
    return np.ascontiguousarray(array[tuple(map(slice, shape))])
