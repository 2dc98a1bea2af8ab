"""Elements reversed, shifted, repeated and padded; triangles of matrices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axes, axis, plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.shape.joining import sliced
from mlc.frontend.operands import broadcast_to as to_size
from mlc.frontend.operands import full, number, tracer
from mlc.frontend.operands import reshape as to_shape
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64


@operation()
def flip(input: Operand, dims: Dims) -> Tensor:
    """The order along dimensions reversed: result[i] = input[n - 1 - i].

    Args:
        input: Tensor.
        dims: A dimension, or several; negative ones count from the last.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356) or named twice (MLC0357).

    Example:
        >>> mlc.flip(mlc.arange(3), 0)
        tensor([2, 1, 0], dtype=mlc.int64)
    """
    x = tracer(input)
    over = () if isinstance(dims, tuple | list) and not dims else axes(dims, x.ndim)
    return emit(T.Reverse, x, over) if over else x


@operation()
def roll(input: Operand, shifts: int | Sequence[int], dims: Dims = None) -> Tensor:
    """Elements shifted along dimensions, cyclically: result[i] = input[(i - shifts) mod n].

    Args:
        input: Tensor.
        shifts: How far elements move, an integer for each dimension; negative ones move to the front.
        dims: The dimensions; None to shift the flattened tensor.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `shifts` and `dims` differ in length (MLC0357), or a dimension is out of range (MLC0356), as all of a
            0-d tensor are (MLC0364).

    Example:
        >>> mlc.roll(mlc.arange(5), 2)
        tensor([3, 4, 0, 1, 2], dtype=mlc.int64)
    """
    x = tracer(input)
    if dims is None:
        return to_shape(tracer(roll(to_shape(x, [sizes.product(x.shape)]), shifts, 0)), x.shape)
    by = shifts if isinstance(shifts, tuple | list) else (shifts,)
    over = dims if isinstance(dims, tuple | list) else (dims,)
    if len(by) != len(over):
        raise UserError(f"shifts = {shifts} and dims = {dims} differ in length", code="MLC0357")
    for shift, dim in zip([plain_int(s, "shifts") for s in by], over):
        at = axis(dim, x.ndim, scalar=False)
        n = x.shape[at]
        if not isinstance(n, int) or n > 1:
            start = n - shift % n if shift > 0 else -shift % n      # the operand of a modulo must not be negative
            if start != 0:
                x = emit(T.Concat, (sliced(x, at, start, n), sliced(x, at, 0, start)), at)
    return x


@operation()
def tile(input: Operand, dims: Sequence[int]) -> Tensor:
    """The tensor repeated as a whole along its dimensions.

    Args:
        input: Tensor.
        dims: How often it is repeated along each dimension; they are aligned from the last.

    Returns:
        Tensor of the dtype of `input`, with sizes dims[i] times as great.

    Raises:
        UserError: a number of repetitions is no integer (MLC0355) or negative (MLC0116).

    Example:
        >>> mlc.tile(mlc.tensor([1, 2]), (2, 2))
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]], dtype=mlc.int64)
    """
    x = tracer(input)
    times = [plain_int(d, "dims") for d in dims]
    times = [1] * (x.ndim - len(times)) + times
    shape = [1] * (len(times) - x.ndim) + list(x.shape)
    spread = [d for pair in zip([1] * len(times), shape) for d in pair]
    wide = [d for pair in zip(times, shape) for d in pair]
    return to_shape(to_size(to_shape(x, spread), wide), [r * d for r, d in zip(times, shape)])


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
    """The lower triangle of matrices: elements on and below a diagonal, 0 above it.

    Args:
        input: Tensor of shape (..., m, n).
        diagonal: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: there are fewer than 2 dimensions (MLC0364).

    Example:
        >>> mlc.tril(mlc.ones(3, 3))
        tensor([[1., 0., 0.],
                [1., 1., 0.],
                [1., 1., 1.]], dtype=mlc.float32)
    """
    return _triangle(input, diagonal, True, "tril")


@operation()
def triu(input: Operand, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices: elements on and above a diagonal, 0 below it.

    Args:
        input: Tensor of shape (..., m, n).
        diagonal: The diagonal: 0 for the main one, positive above it, negative below it.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: there are fewer than 2 dimensions (MLC0364).

    Example:
        >>> mlc.triu(mlc.ones(3, 3))
        tensor([[1., 1., 1.],
                [0., 1., 1.],
                [0., 0., 1.]], dtype=mlc.float32)
    """
    return _triangle(input, diagonal, False, "triu")


PLACES: dict[str, Callable[[Any, Any], tuple[Tensor, int]]] = {
    "reflect": lambda i, n: (n - 1 - E.abs(n - 1 - E.abs(i)), n - 1),
    "replicate": lambda i, n: (E.minimum(E.maximum(i, 0), n - 1), sys.maxsize),
    "circular": lambda i, n: (E.remainder(i, n), n),
}
"""By mode of `pad`: the source index of position i outside of n elements, and the largest padding."""


def _extended(x: Tracer, at: int, low: int, high: int, mode: str) -> Tracer:
    """Pad x by `low` and `high` elements along one axis."""
    if mode == "circular" and min(low, high) < 0:          # PyTorch wraps around the cropped tensor
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


def _autocast_of_pad(input: Operand, pad: Sequence[int], mode: str = "constant", value: Operand = None) -> str:
    """How `autocast` treats a padding: those that copy elements are computed in float32."""
    return "fp32" if mode in ("reflect", "replicate") else "none"


def _check_cut(x: Tracer, amounts: Sequence[int]) -> None:
    """UserError if negative amounts cut off more elements than a dimension has."""
    for i in range(len(amounts) // 2):
        n, cut = x.shape[x.ndim - 1 - i], -sum(min(0, a) for a in amounts[2 * i: 2 * i + 2])
        if isinstance(n, int) and cut > n:
            raise UserError(f"pad = {tuple(amounts)} cuts {cut} elements off dimension {x.ndim - 1 - i}, which has {n}",
                            code="MLC0360", hint="negative amounts cut off at most what is there")


@operation(literal=("value",), stored={"value": "input"}, autocast=_autocast_of_pad)
def pad(input: Operand, pad: Sequence[int], mode: str = "constant", value: Operand = None) -> Tensor:
    """The tensor with more elements around it.

    The size of a dimension becomes before + size + after. Two numbers pad the last dimension, four the last two (left,
    right, top, bottom for images), and so on.

    Args:
        input: Tensor.
        pad: Pairs (before, after), of the last dimension first; negative amounts cut off.
        mode: What is added: "constant" adds `value`, "replicate" the elements at the edge, "reflect" those inside it in
            reverse order, and "circular" those of the other end.
        value: Number or 0-d tensor of mode "constant"; 0 by default.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `mode` is another string, or more is asked for than the mode has, or cut off than there is (MLC0360),
            `pad` is not in pairs or too long (MLC0357), or an integer `value` is beyond the dtype (MLC0348).

    Example:
        >>> nn.functional.pad(mlc.tensor([1.0, 2.0, 3.0]), (1, 2))
        tensor([0., 1., 2., 3., 0., 0.], dtype=mlc.float32)
        >>> nn.functional.pad(mlc.tensor([1.0, 2.0, 3.0]), (2, 1), mode="reflect")
        tensor([3., 2., 1., 2., 3., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    if mode not in ("constant", *PLACES):
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint='use "constant", ' + ", ".join(
            f'"{name}"' for name in PLACES))
    amounts = [plain_int(p, "pad") for p in pad]
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise UserError(f"pad = {tuple(pad)} is not one pair for each of at most {x.ndim} dimensions", code="MLC0357")
    _check_cut(x, amounts)
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
    typed = isinstance(value, Tensor) and not (isinstance(value, Tracer) and value.weak)
    fill = tracer(value) if typed else number(0 if value is None else value, x.type.dtype)
    return emit(T.Pad, x, fill, tuple(max(0, n) for n in low),  # type: ignore[no-any-return]
                tuple(max(0, n) for n in high), (0,) * x.ndim)
