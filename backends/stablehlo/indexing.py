"""Elements at indices that are computed: gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.backends.stablehlo.operations import initial, listed, result
from mlc.backends.stablehlo.writer import Writer, refused, row
from mlc.ir.types import TensorType, i64

COMBINED = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum", "set": ""}


def column(w: Writer, x: str, shape: Sequence[Any], axes: Sequence[Any]) -> str:
    """An array of indices, whose axes are those of a shape, as one column of an array of positions."""
    return w.spread(w.cast(x, i64), axes, (*shape, 1))


def positions(w: Writer, columns: Sequence[str], shape: Sequence[Any]) -> str:
    """Columns beside each other."""
    type = TensorType((*shape, len(columns)), i64)
    return columns[0] if len(columns) == 1 else w.op("concatenate", columns, type, {"dimension": f"{len(shape)} : i64"})


def counted(w: Writer, n: Any) -> str:
    """0, 1, ... n - 1"""
    return w.iota(0, TensorType((n,), i64))


@row("tensor.take")
def take(w: Writer, op: Any) -> str:
    """Slices along an axis."""
    return taken(w, w.of(op.x), w.of(op.indices), op.axis, result(op))


def taken(w: Writer, x: str, indices: str, axis: int, type: TensorType) -> str:
    """Slices of an array at indices along an axis."""
    shape, count = w.types[x].shape, w.types[indices].shape
    if shape[axis] == 0 or 0 in type.shape:
        return w.constant(0, type)
    offsets = [a for a in range(type.rank) if not axis <= a < axis + len(count)]
    at = w.reshape(w.cast(indices, i64), (*count, 1))
    dims = (f"#stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = [{axis}], start_index_map = [{axis}], "
            f"index_vector_dim = {len(count)}>")
    sizes = [1 if a == axis else n for a, n in enumerate(shape)]
    if not all(isinstance(n, int) for n in sizes):
        return w.op("dynamic_gather", [x, at, w.shape(sizes)], type, {
            "dimension_numbers": dims, "indices_are_sorted": "false"})
    return w.op("gather", [x, at], type, {"dimension_numbers": dims, "slice_sizes": listed(sizes),
                                          "indices_are_sorted": "false"})


def each(w: Writer, x: str, at: str, type: TensorType) -> str:
    """One element for each position."""
    axes, rank = list(range(w.types[x].rank)), type.rank
    dims = (f"#stablehlo.gather<collapsed_slice_dims = {axes}, start_index_map = {axes}, index_vector_dim = {rank}>")
    return w.op("gather", [x, at], type, {"dimension_numbers": dims, "slice_sizes": listed([1] * len(axes)),
                                          "indices_are_sorted": "false"})


def put(w: Writer, x: str, at: str, updates: str, kind: str) -> str:
    """An array combined with an update at each position."""
    axes, rank = list(range(w.types[x].rank)), w.types[updates].rank
    dims = (f"#stablehlo.scatter<inserted_window_dims = {axes}, scatter_dims_to_operand_dims = {axes}, "
            f"index_vector_dim = {rank}>")
    return w.combined("scatter", [x, at, updates], w.types[x], {
        "scatter_dimension_numbers": dims, "indices_are_sorted": "false", "unique_indices": "false"}, kind)


def everywhere(w: Writer, indices: str, axis: int, shape: Sequence[Any]) -> str:
    """The positions of elements: the indices along an axis, and along the others where they are."""
    columns = [column(w, indices, shape, range(len(shape))) if a == axis else column(w, counted(w, n), shape, [a])
               for a, n in enumerate(shape)]
    return positions(w, columns, shape)


@row("tensor.take_along")
def take_along(w: Writer, op: Any) -> str:
    """An element for each index."""
    x, indices = w.of(op.x), w.of(op.indices)
    if 0 in result(op).shape:
        return w.constant(0, result(op))
    return each(w, x, everywhere(w, indices, op.axis, w.types[indices].shape), result(op))


@row("tensor.scatter_along")
def scatter_along(w: Writer, op: Any) -> str:
    """An update for each index."""
    x, indices, updates = (w.of(v) for v in op.operands)
    if 0 in w.types[updates].shape:
        return x
    return put(w, x, everywhere(w, indices, op.axis, w.types[indices].shape), updates, _kind(op))


def _kind(op: Any) -> str:
    if op.kind not in COMBINED:
        raise refused(op, f"updates of the kind {op.kind}")
    return COMBINED[op.kind]


@row("tensor.scatter")
def scatter(w: Writer, op: Any) -> str:
    """Write a scatter whose indices select slices of x along one axis."""
    x, indices, updates = (w.of(v) for v in op.operands)
    count, axis = w.types[indices].shape, op.axis
    if 0 in w.types[updates].shape:
        return x
    windows = [a for a in range(w.types[updates].rank) if not axis <= a < axis + len(count)]
    at = w.reshape(w.cast(indices, i64), (*count, 1))
    dims = (f"#stablehlo.scatter<update_window_dims = {windows}, inserted_window_dims = [{axis}], "
            f"scatter_dims_to_operand_dims = [{axis}], index_vector_dim = {len(count)}>")
    return w.combined("scatter", [x, at, updates], w.types[x], {
        "scatter_dimension_numbers": dims, "indices_are_sorted": "false", "unique_indices": "false"}, _kind(op))


def in_windows(w: Writer, windows: Any, size: Any, stride: int, dilation: Any) -> str:
    """i * stride + j * dilation for windows i and their elements j"""
    type = TensorType((windows, size), i64)
    found = []
    for axis, factor in ((0, stride), (1, dilation)):
        i = w.iota(axis, type)
        found.append(w.op("multiply", [i, w.full(factor, i)], type))
    return w.op("add", found, type)


@row("tensor.windows")
def windows(w: Writer, op: Any) -> str:
    """The elements of each window."""
    n, size = result(op).shape[op.axis: op.axis + 2]
    return taken(w, w.of(op.x), in_windows(w, n, size, op.stride, op.dilation), op.axis, result(op))


@row("tensor.pick", "tensor.place")
def diagonal(w: Writer, op: Any) -> str:
    """The element j of what belongs to element j of the windows, and the reverse of it."""
    x, axis = w.of(op.x), op.axis
    spread = op.name == "tensor.pick"
    shape = result(op).shape if spread else w.types[x].shape
    n, size = shape[axis: axis + 2]
    if 0 in shape:
        return w.constant(0, result(op))
    columns = []
    for a, m in enumerate(shape):
        if a == axis:
            columns.append(column(w, in_windows(w, n, size, op.stride, op.dilation), shape, [axis, axis + 1]))
        else:
            columns.append(column(w, counted(w, m), shape, [a]))
    at = positions(w, columns, shape)
    if spread:
        return each(w, x, at, result(op))
    return put(w, w.constant(initial("add", result(op).dtype), result(op)), at, x, "")
