"""Functions that move elements and compute nothing: shapes, order, joining, cutting."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.operands import (
    axes,
    axis,
    broadcast_shapes,
    full,
    is_tensor,
    number,
    plain_int,
    resolved,
    shape_of,
    size,
    together,
    tracer,
)
from mlc.frontend.operands import broadcast_to as to_size
from mlc.frontend.operands import (
    reshape as to_shape,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64


def sliced(x: Tracer, at: int, start: Any, stop: Any, step: int = 1) -> Tracer:
    """x[start:stop:step] along one axis; the bounds are within the axis."""
    starts: list[Any] = [0] * x.ndim
    stops, steps = list(x.shape), [1] * x.ndim
    starts[at], stops[at], steps[at] = start, stop, step
    return emit(T.Slice, x, tuple(starts), tuple(stops), tuple(steps), weak=x.weak)  # type: ignore[no-any-return]


@operation()
def reshape(input: Operand, shape: Sequence[Dim]) -> Tensor:
    """The same elements in row-major order under another shape; one size may be -1."""
    x = tracer(input)
    wanted = resolved(shape_of(shape), sizes.product(x.shape))
    if sizes.product(wanted) != sizes.product(x.shape):
        raise UserError(f"{sizes.product(x.shape)} elements do not fit shape [{', '.join(map(str, wanted))}]",
                        code="MLC0358", symbols=sizes.symbols(sizes.product(wanted) - sizes.product(x.shape)))
    return to_shape(x, wanted)


@operation()
def permute(input: Operand, dims: Sequence[int]) -> Tensor:
    """result[i_dims[0], i_dims[1], ...] = input[i_0, i_1, ...]"""
    x = tracer(input)
    order = tuple(axis(d, x.ndim, "dims") for d in dims)
    if sorted(order) != list(range(x.ndim)):
        raise UserError(f"dims = {tuple(dims)} is no order of {x.ndim} dimensions", code="MLC0357")
    return x if order == tuple(range(x.ndim)) else emit(T.Transpose, x, order, weak=x.weak)


@operation()
def transpose(input: Operand, dim0: int, dim1: int) -> Tensor:
    """Two dimensions swapped."""
    x = tracer(input)
    order = list(range(x.ndim))
    a, b = axis(dim0, x.ndim, "dim0"), axis(dim1, x.ndim, "dim1")
    if x.ndim:
        order[a], order[b] = order[b], order[a]
    return permute(x, order)


@operation()
def t(input: Operand) -> Tensor:
    """result[i, j] = input[j, i]; a vector or number as it is"""
    x = tracer(input)
    if x.ndim > 2:
        raise UserError(f"t needs at most 2 dimensions, found {x.ndim}", code="MLC0364", hint="use x.mT")
    return permute(x, range(x.ndim - 1, -1, -1))


@operation()
def movedim(input: Operand, source: Dims, destination: Dims) -> Tensor:
    """Dimensions moved to other places; the rest keep their order."""
    x = tracer(input)
    a = [axis(d, x.ndim, "source") for d in (source if isinstance(source, tuple | list) else (source,))]
    b = [axis(d, x.ndim, "destination") for d in
         (destination if isinstance(destination, tuple | list) else (destination,))]
    if len(a) != len(b) or len(set(a)) != len(a) or len(set(b)) != len(b):
        raise UserError(f"source = {source} and destination = {destination} do not name as many dimensions, each once",
                        code="MLC0357")
    rest = iter([d for d in range(x.ndim) if d not in a])
    return permute(x, [a[b.index(i)] if i in b else next(rest) for i in range(x.ndim)])


@operation()
def squeeze(input: Operand, dim: Dims = None) -> Tensor:
    """Without the dimensions of size 1, or those among `dim`."""
    x = tracer(input)
    chosen = range(x.ndim) if dim is None else [
        axis(d, x.ndim) for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    return to_shape(x, [d for i, d in enumerate(x.shape) if i not in chosen or not sizes.is_equal(d, 1)])


@operation()
def unsqueeze(input: Operand, dim: int) -> Tensor:
    """With a dimension of size 1 before `dim`."""
    x = tracer(input)
    shape = list(x.shape)
    shape.insert(axis(dim, x.ndim + 1), 1)
    return to_shape(x, shape)


@operation()
def flatten(input: Operand, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim made one: (a, b, c) becomes (a * b, c) for 0 and 1."""
    x = tracer(input)
    a, b = axis(start_dim, x.ndim, "start_dim"), axis(end_dim, x.ndim, "end_dim")
    if a > b:
        raise UserError(f"start_dim = {start_dim} comes after end_dim = {end_dim}", code="MLC0356")
    return to_shape(x, [*x.shape[:a], sizes.product(x.shape[a: b + 1]), *x.shape[b + 1:]])


@operation()
def unflatten(input: Operand, dim: int, sizes: Sequence[Dim]) -> Tensor:
    """One dimension made several; one size may be -1."""
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    return reshape(x, [*x.shape[:at], *resolved(shape_of(sizes), x.shape[at]), *x.shape[at + 1:]])


@operation()
def broadcast_to(input: Operand, size: Sequence[Dim]) -> Tensor:
    """input repeated to the shape `size`"""
    x, wanted = tracer(input), shape_of(size)
    if len(wanted) < x.ndim or broadcast_shapes(x.shape, wanted) != wanted:
        raise UserError(f"shape [{', '.join(map(str, x.shape))}] does not broadcast to "
                        f"[{', '.join(map(str, wanted))}]", code="MLC0111",
                        symbols=sizes.differing(x.shape, wanted, stretch=True))
    return to_size(x, wanted)


@operation()
def expand(input: Operand, sizes: Sequence[Dim]) -> Tensor:
    """input repeated to the shape `sizes`, where -1 keeps a size"""
    x, wanted = tracer(input), shape_of(sizes)
    lead = len(wanted) - x.ndim
    kept = tuple(x.shape[i - lead] if d == -1 and i >= lead else d for i, d in enumerate(wanted))
    return broadcast_to(x, kept)


@operation()
def broadcast_tensors(*tensors: Operand) -> tuple[Tensor, ...]:
    """Tensors repeated to the shape they share."""
    xs = [tracer(x) for x in tensors]
    shape = broadcast_shapes(*(x.shape for x in xs))
    return tuple(to_size(x, shape) for x in xs)


@operation()
def cat(tensors: Sequence[Operand], dim: int = 0) -> Tensor:
    """Tensors one after the other along `dim`: their sizes there add up, all others are equal."""
    xs = _several(tensors, "cat")
    if any(x.ndim == 0 for x in xs):
        raise UserError("0-d tensors cannot be joined", code="MLC0364", hint="use mlc.stack")
    return emit(T.Concat, tuple(xs), axis(dim, xs[0].ndim))  # type: ignore[no-any-return]


@operation()
def stack(tensors: Sequence[Operand], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension."""
    xs = _several(tensors, "stack")
    at = axis(dim, xs[0].ndim + 1)
    for x in xs:
        if x.shape != xs[0].shape:
            raise UserError(f"shapes [{', '.join(map(str, xs[0].shape))}] and [{', '.join(map(str, x.shape))}] differ",
                            code="MLC0111", symbols=sizes.differing(xs[0].shape, x.shape))
    return emit(T.Concat, tuple(tracer(unsqueeze(x, at)) for x in xs), at)  # type: ignore[no-any-return]


def _several(tensors: Any, name: str) -> list[Tracer]:
    if not isinstance(tensors, tuple | list) or not tensors:
        raise UserError(f"{name} needs a list of at least one tensor", code="MLC0353")
    return together(*tensors)


@operation()
def hstack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors side by side: along dimension 1, vectors along 0."""
    xs = [tracer(x) for x in tensors]
    xs = [to_shape(x, [1]) if not x.ndim else x for x in xs]
    return cat(xs, 0 if xs and xs[0].ndim == 1 else 1)


@operation()
def vstack(tensors: Sequence[Operand]) -> Tensor:
    """Tensors one above the other: along dimension 0, vectors as rows."""
    xs = [tracer(x) for x in tensors]
    return cat([to_shape(x, [1, *(x.shape or (1,))]) if x.ndim < 2 else x for x in xs], 0)


def _cut(x: Tracer, at: int, bounds: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(sliced(x, at, a, b) for a, b in zip(bounds, bounds[1:]))


def _known(x: Tracer, at: int, name: str) -> int:
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"{name} needs a size that is known, found {n}: it decides how many tensors there are",
                        code="MLC0365", symbols=sizes.symbols(n))
    return n


@operation()
def split(tensor: Operand, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces along `dim`, result[k][i] = input[k * size + i]: of one size but for the last, or of those in a list."""
    x = tracer(tensor)
    at = axis(dim, x.ndim, scalar=False)
    if isinstance(split_size_or_sections, tuple | list):
        bounds: list[Any] = [0]
        for length in split_size_or_sections:
            bounds.append(bounds[-1] + size(length))
        if bounds[-1] != x.shape[at]:
            raise UserError(f"the pieces add up to {bounds[-1]}, the dimension has {x.shape[at]}", code="MLC0358",
                            symbols=sizes.symbols(bounds[-1], x.shape[at]))
        return _cut(x, at, bounds)
    n, length = _known(x, at, "split"), plain_int(split_size_or_sections, "split_size")
    if length <= 0 and (length or n):
        raise UserError(f"pieces of {length} elements", code="MLC0358")
    return _cut(x, at, [*range(0, n, length), n] if n else [0, 0])


@operation()
def chunk(input: Operand, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces along `dim`, equal but for the last."""
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    if plain_int(chunks, "chunks") <= 0:
        raise UserError(f"chunks = {chunks}, expected at least 1", code="MLC0358")
    n = _known(x, at, "chunk")
    return split(x, -(-n // chunks), at) if n else (x,) * chunks


@operation()
def unbind(input: Operand, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, without it: n tensors, result[k][i] = input[k, i]."""
    x = tracer(input)
    if not x.ndim:
        raise UserError("a 0-d tensor has no slices", code="MLC0364")
    at = axis(dim, x.ndim)
    return tuple(select(x, at, i) for i in range(_known(x, at, "unbind")))


@operation()
def select(input: Operand, dim: int, index: int) -> Tensor:
    """The slice at one index of a dimension, without it: result[i] = input[index, i]."""
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    n, i = x.shape[at], size(index, "index")
    if isinstance(i, int) and i < 0:
        i = n + i
    if isinstance(i, int) and isinstance(n, int) and not 0 <= i < n:
        from mlc.ir.diag import UserIndexError
        raise UserIndexError(f"index {index} is out of range for a dimension of {n}", code="MLC0366")
    return to_shape(sliced(x, at, i, i + 1), [d for k, d in enumerate(x.shape) if k != at])


@operation()
def narrow(input: Operand, dim: int, start: int, length: int) -> Tensor:
    """input[start : start + length] along `dim`"""
    x = tracer(input)
    at = axis(dim, x.ndim, scalar=False)
    n, first, count = x.shape[at], size(start, "start"), size(length, "length")
    if isinstance(first, int) and first < 0:
        first = n + first
    if isinstance(n, int) and isinstance(first, int) and isinstance(count, int) and not (
            0 <= first and 0 <= count and first + count <= n):
        raise UserError(f"{start} to {start + length} is not within a dimension of {n}", code="MLC0366")
    return sliced(x, at, first, first + count)


@operation()
def flip(input: Operand, dims: Dims) -> Tensor:
    """The order along `dims` reversed: result[i] = input[n - 1 - i]."""
    x = tracer(input)
    over = () if isinstance(dims, tuple | list) and not dims else axes(dims, x.ndim)
    return emit(T.Reverse, x, over) if over else x


@operation()
def roll(input: Operand, shifts: int | Sequence[int], dims: Dims = None) -> Tensor:
    """result[i] = input[(i - shifts) mod n] along `dims`; without `dims`, in the flattened tensor."""
    x = tracer(input)
    if dims is None:
        return to_shape(tracer(roll(to_shape(x, [sizes.product(x.shape)]), shifts, 0)), x.shape)
    by = shifts if isinstance(shifts, tuple | list) else (shifts,)
    over = dims if isinstance(dims, tuple | list) else (dims,)
    if len(by) != len(over):
        raise UserError(f"shifts = {shifts} and dims = {dims} differ in length", code="MLC0357")
    for shift, dim in zip([plain_int(s, "shifts") for s in by], over):
        at = axis(dim, x.ndim)
        n = x.shape[at] if x.ndim else 1                   # a 0-d tensor is taken for one of one element
        if not isinstance(n, int) or n > 1:
            start = n - shift % n if shift > 0 else -shift % n      # what a modulo is taken of is not negative
            if start != 0:
                x = emit(T.Concat, (sliced(x, at, start, n), sliced(x, at, 0, start)), at)
    return x


@operation()
def tile(input: Operand, dims: Sequence[int]) -> Tensor:
    """input repeated dims[i] times along each dimension"""
    x = tracer(input)
    times = [plain_int(d, "dims") for d in dims]
    times = [1] * (x.ndim - len(times)) + times
    shape = [1] * (len(times) - x.ndim) + list(x.shape)
    spread = [d for pair in zip([1] * len(times), shape) for d in pair]
    wide = [d for pair in zip(times, shape) for d in pair]
    return to_shape(to_size(to_shape(x, spread), wide), [r * d for r, d in zip(times, shape)])


@operation()
def repeat_interleave(input: Operand, repeats: Any, dim: int | None = None) -> Tensor:
    """Each element `repeats` times in a row along `dim`, or in the flattened tensor: result[i] = input[i // repeats]"""
    if is_tensor(repeats) and repeats.ndim:
        raise UserError("repeats is a tensor: how long the result is would depend on its elements", code="MLC0365",
                        hint="use mlc.index_select with an index that names each element as often as it occurs")
    x = tracer(input)
    if dim is None:
        x, dim = to_shape(x, [sizes.product(x.shape)]), 0
    at, n = axis(dim, x.ndim, scalar=False), plain_int(repeats, "repeats")
    if n < 0:
        raise UserError(f"repeats = {n}, expected at least 0", code="MLC0360")
    spread = [*x.shape[: at + 1], 1, *x.shape[at + 1:]]
    wide = [*x.shape[: at + 1], n, *x.shape[at + 1:]]
    return to_shape(to_size(to_shape(x, spread), wide), [*x.shape[:at], x.shape[at] * n, *x.shape[at + 1:]])


def coordinates(x: Tracer, at: int) -> Tracer:
    """The index along one axis, in the shape of x."""
    return emit(T.Iota, x.shape, axis(at, x.ndim), i64)  # type: ignore[no-any-return]


def _triangle(input: Operand, diagonal: int, lower: bool, name: str) -> Tensor:
    x = tracer(input)
    if x.ndim < 2:
        raise UserError(f"{name} needs a matrix, found {x.ndim} dimensions", code="MLC0364")
    row, column = coordinates(x, -2), coordinates(x, -1)
    offset = column - row
    keep = E.le(offset, diagonal) if lower else E.ge(offset, diagonal)
    return E.where(keep, x, full(0, x))


@operation()
def tril(input: Operand, diagonal: int = 0) -> Tensor:
    """input on and below a diagonal, 0 above it"""
    return _triangle(input, diagonal, True, "tril")


@operation()
def triu(input: Operand, diagonal: int = 0) -> Tensor:
    """input on and above a diagonal, 0 below it"""
    return _triangle(input, diagonal, False, "triu")


PLACES: dict[str, Callable[[Any, Any], tuple[Tensor, int]]] = {
    "reflect": lambda i, n: (n - 1 - E.abs(n - 1 - E.abs(i)), n - 1),
    "replicate": lambda i, n: (E.minimum(E.maximum(i, 0), n - 1), sys.maxsize),
    "circular": lambda i, n: (E.remainder(i, n), n),
}
"""Where to find what stands at place i beside n elements, by the mode of `pad`, and how far out at most."""


def _extended(x: Tracer, at: int, low: int, high: int, mode: str) -> Tracer:
    """x with `low` and `high` more along one axis."""
    if mode == "circular" and min(low, high) < 0:          # PyTorch goes round what is left
        x = sliced(x, at, max(0, -low), x.shape[at] - max(0, -high))
        low, high = max(0, low), max(0, high)
    n = x.shape[at]
    if not isinstance(n, int):
        raise UserError(f"mode = {mode!r} needs a size that is known, found {n}", code="MLC0365",
                        symbols=sizes.symbols(n))
    place: Tracer = emit(T.Iota, (max(0, low + n + high),), 0, i64)
    source, most = PLACES[mode](place - low, n)
    if max(low, high) > most or low + n + high < 1 or not n:
        raise UserError(f"pad = ({low}, {high}) for {n} elements in mode {mode!r}", code="MLC0360",
                        hint=f"at most {most} fit there" if n and max(low, high) > most else None)
    return emit(T.Take, x, source, at)  # type: ignore[no-any-return]


@operation(literal=("value",), stored={"value": "input"})
def pad(input: Operand, pad: Sequence[int], mode: str = "constant", value: Operand = None) -> Tensor:
    """input with more around it; (left, right) of the last dimension first, negative amounts cut off

    mode   what stands there: "constant" is `value`, "replicate" the elements at the edge, "reflect" those inside it in
           reverse order, "circular" those at the other end
    """
    x = tracer(input)
    if mode not in ("constant", *PLACES):
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint='use "constant", ' + ", ".join(
            f'"{name}"' for name in PLACES))
    amounts = [plain_int(p, "pad") for p in pad]
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise UserError(f"pad = {tuple(pad)} is not one pair for each of at most {x.ndim} dimensions", code="MLC0357")
    if mode != "constant":
        for i in range(len(amounts) // 2):
            x = _extended(x, x.ndim - 1 - i, amounts[2 * i], amounts[2 * i + 1], mode)
        return x
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(amounts) // 2):
        low[-1 - i], high[-1 - i] = amounts[2 * i], amounts[2 * i + 1]
    for at in range(x.ndim):
        if low[at] < 0 or high[at] < 0:
            x = sliced(x, at, max(0, -low[at]), x.shape[at] - max(0, -high[at]))
    fill = number(0 if value is None else value, x.type.dtype) if not isinstance(value, Tensor) else tracer(value)
    return emit(T.Pad, x, fill, tuple(max(0, n) for n in low),  # type: ignore[no-any-return]
                tuple(max(0, n) for n in high), (0,) * x.ndim)
