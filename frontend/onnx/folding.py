"""Arithmetic on what is known while recording: constants and sizes, which decide about shapes.

A fold is the numpy function of an operator. Arrays of sizes have the dtype object; their elements are integers and
symbolic sizes, whose arithmetic gives sizes again. A fold takes all inputs as arrays; where one is not known, or is
large, the operator's row computes it when the model runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.frontend.dtypes import as_dtype
from mlc.frontend.onnx.values import MOST_FOLDED, TYPES, Array, Sizes, axis_of, foldable, ints, settled
from mlc.frontend.operands import need
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim, Size, is_equal, is_natural, product

Fold = Callable[..., Any]
FOLDS: dict[str, list[tuple[int, Fold]]] = {}
COUNTING = frozenset({"Split"})
"""Operators whose folds take the number of outputs, too."""
ON_SHAPES = frozenset({"Shape", "Size"})
"""Operators of which only the type of the input has to be known."""


def fold(*names: str, since: int = 1) -> Callable[[Fold], Fold]:
    """Make a function the fold of these operators since a version."""
    def register(f: Fold) -> Fold:
        for name in names:
            FOLDS.setdefault(name, []).append((since, f))
            FOLDS[name].sort(key=lambda x: -x[0])
        return f
    return register


def find(domain: str, name: str, version: int, inputs: list[Any]) -> Fold | None:
    """The fold of a node; None if it has none or not all of its inputs are known."""
    if domain or name not in FOLDS:
        return None
    if name not in ON_SHAPES and (not inputs or not all(x is None or foldable(x) for x in inputs)):
        return None
    found = next((f for since, f in FOLDS[name] if since <= version), None)
    if found is None:
        return None

    def run(*xs: Any, **attributes: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                out = found(*xs, **attributes)
        except UserError as error:
            if error.code == UNDECIDED:
                raise Unfolded from None
            raise
        element = next((x.element for x in xs if isinstance(x, Sizes)), np.dtype(np.int64))
        return tuple(settled(x, element) for x in out) if isinstance(out, tuple) else settled(out, element)
    return run


class Unfolded(Exception):
    """An array would be too large, or depends on what symbolic sizes are: the row computes it."""


UNDECIDED = "MLC0408"
"""The code of the error of a choice that depends on the values of symbols."""


@fold("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Array:
    sizes = list(x.shape)[start:end]
    return np.array(sizes, object if any(isinstance(n, Size) for n in sizes) else np.int64)


@fold("Size")
def size(x: Any) -> Array:
    out: Any = 1
    for n in x.shape:
        out = out * n
    return np.array(out, np.int64 if isinstance(out, int) else object)


@fold("Identity")
def identity(x: Array) -> Array:
    return x


def _is_sizes(*xs: Array) -> bool:
    return any(x.dtype == object for x in xs)


def _of_pairs(f: Callable[[Dim, Dim], Any], x: Array, y: Array, dtype: Any) -> Array:
    """A function of each pair of sizes."""
    pairs = np.broadcast(x, y)
    return np.array([f(*ints(np.array(pair, object))) for pair in pairs], dtype).reshape(pairs.shape)


def _binary(name: str, f: Callable[[Any, Any], Any], since: int = 7) -> None:
    @fold(name, since=since)
    def binary(x: Array, y: Array) -> Array:
        return np.asarray(f(x, y))


for _name, _f in {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Less": np.less, "Greater": np.greater,
                  "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "And": np.logical_and,
                  "Or": np.logical_or, "Xor": np.logical_xor}.items():
    _binary(_name, _f)


@fold("Equal", since=7)
def equal(x: Array, y: Array) -> Array:
    return _of_pairs(is_equal, x, y, bool) if _is_sizes(x, y) else np.asarray(x == y)


@fold("Div", since=7)
def div(x: Array, y: Array) -> Array:
    """Of integers, rounded toward zero."""
    if _is_sizes(x, y):
        return _of_pairs(_quotient, x, y, object)
    if x.dtype.kind in "iu":
        if not np.all(y):
            raise ValueError("division by zero")
        quotient = x // y                                  # rounded down
        return np.asarray(quotient + ((x % y != 0) & ((x < 0) != (y < 0))).astype(x.dtype))
    return np.asarray(x / y)


def _quotient(n: Dim, by: Dim) -> Dim:
    """A size divided by another, rounded toward zero.

    Quotients of sizes are rounded down, which is the same where neither is negative: a call has to see to that.
    """
    if isinstance(by, int) and by < 0:
        return -_quotient(n, -by)
    if by == 0:
        raise ValueError("division by zero")
    if is_natural(-n):
        return -(-n // by)
    if not is_natural(by - 1):
        need(by - 1, f"Div by {by}, which has to be at least 1")
    if not is_natural(n):
        need(n, f"Div of {n} by {by}, which mlc divides only where it is not negative")
    return n // by


@fold("Mod", since=10)
def mod(x: Array, y: Array, *, fmod: int = 0) -> Array:
    if _is_sizes(x, y) and not fmod:
        return _of_pairs(_remainder, x, y, object)
    if x.dtype.kind in "iu" and not np.all(y):
        raise ValueError("division by zero")
    return np.asarray(np.fmod(x, y) if fmod else x % y)


def _remainder(n: Dim, by: Dim) -> Dim:
    """The remainder of a size, which has the sign of the divisor."""
    if isinstance(by, int) and by < 0:
        return -_remainder(-n, -by)
    if by == 0:
        raise ValueError("division by zero")
    if not is_natural(by - 1):
        need(by - 1, f"Mod by {by}, which has to be at least 1")
    return n % by


@fold("Max", since=8)
def maximum(*xs: Array) -> Array:
    return np.asarray(xs[0] if len(xs) == 1 else np.maximum(xs[0], maximum(*xs[1:])))


@fold("Min", since=8)
def minimum(*xs: Array) -> Array:
    return np.asarray(xs[0] if len(xs) == 1 else np.minimum(xs[0], minimum(*xs[1:])))


def _unary(name: str, f: Callable[[Any], Any]) -> None:
    @fold(name)
    def unary(x: Array) -> Array:
        return np.asarray(f(x), x.dtype)


UNARY: dict[str, Callable[[Any], Any]] = {
    "Neg": np.negative, "Abs": np.abs, "Floor": np.floor, "Ceil": np.ceil, "Sqrt": np.sqrt, "Exp": np.exp,
    "Log": np.log, "Relu": lambda x: np.maximum(x, 0), "Reciprocal": np.reciprocal, "Not": np.logical_not}
for _name, _one in UNARY.items():
    _unary(_name, _one)


@fold("Cast", since=6)
def cast(x: Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    if to not in TYPES:
        raise TypeError(f"constants are cast to the type {to}, which mlc does not have")
    return _as(x, as_dtype(TYPES[to]).dtype)


@fold("CastLike", since=15)
def cast_like(x: Array, like: Array, *, saturate: int = 1, round_mode: str = "up") -> Array:
    return _as(x, like.element if isinstance(like, Sizes) else like.dtype)


def _as(x: Array, dtype: np.dtype[Any]) -> Array:
    """An array in a type. Sizes that are symbols stay so where the type is of integers that have all their values."""
    if x.dtype != object:
        return x.astype(dtype)
    if dtype.kind not in "iu" or dtype.itemsize < 4 or (dtype.kind == "u" and not all(map(is_natural, ints(x)))):
        raise Unfolded
    return settled(np.asarray(x), dtype)


@fold("Where", since=9)
def where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


@fold("Pow", since=7)
def power(x: Array, y: Array) -> Array:
    return np.asarray(np.power(x, y)).astype(x.dtype)


@fold("Gather")
def gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    return np.asarray(np.take(x, indices.astype(np.int64), axis))


@fold("Concat", since=4)
def concat(*xs: Array, axis: int) -> Array:
    return np.concatenate(xs, axis)


@fold("Split", since=13)
def split(x: Array, sizes: Array | None = None, *, axis: int = 0, num_outputs: int | None = None,
          outputs: int) -> tuple[Array, ...]:
    if sizes is None:
        count = num_outputs or outputs
        each = -(-x.shape[axis] // count)
        sizes = np.array([max(0, min(each, x.shape[axis] - k * each)) for k in range(count)])
    ends = np.cumsum(ints(sizes))
    if (ends[-1] if len(ends) else 0) != x.shape[axis]:
        raise ValueError(f"the sizes {ints(sizes)} of parts of {x.shape[axis]}")
    return tuple(np.split(x, ends[:-1], axis))


@fold("Slice", since=10)
def piece(x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    found = [slice(None)] * x.ndim
    for k, axis in enumerate(range(starts.size) if axes is None else ints(axes)):
        step = 1 if steps is None else int(steps[k])
        found[axis] = slice(int(starts[k]), None if step < 0 and int(ends[k]) < -x.shape[axis] else int(ends[k]), step)
    return np.asarray(x[tuple(found)])


@fold("Slice")
def piece_before_10(x: Array, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Array:
    return np.asarray(piece(x, np.array(starts), np.array(ends), None if axes is None else np.array(axes)))


@fold("Squeeze", since=13)
def squeeze(x: Array, axes: Array | None = None) -> Array:
    return np.squeeze(x, None if axes is None else tuple(ints(axes)))


@fold("Squeeze")
def squeeze_before_13(x: Array, *, axes: list[int] | None = None) -> Array:
    return np.squeeze(x, None if axes is None else tuple(axes))


@fold("Unsqueeze", since=13)
def unsqueeze(x: Array, axes: Array) -> Array:
    return np.expand_dims(x, tuple(ints(axes)))


@fold("Unsqueeze")
def unsqueeze_before_13(x: Array, *, axes: list[int]) -> Array:
    return np.expand_dims(x, tuple(axes))


@fold("Reshape", since=5)
def reshape(x: Array, shape: Array, *, allowzero: int = 0) -> Array:
    wanted = ints(shape)
    return x.reshape([x.shape[k] if n == 0 and not allowzero else n for k, n in enumerate(wanted)])


@fold("Flatten")
def flatten(x: Array, *, axis: int = 1) -> Array:
    at = x.ndim if axis == x.ndim else axis_of(axis, x.ndim)
    return x.reshape(product(x.shape[:at]), product(x.shape[at:]))


@fold("Transpose")
def transpose(x: Array, *, perm: list[int] | None = None) -> Array:
    return np.transpose(x, perm)


@fold("Range", since=11)
def span(start: Array, limit: Array, delta: Array) -> Array:
    if _is_sizes(start, limit, delta):
        raise TypeError("a range of a symbolic size")
    start, limit, delta = (x.reshape(()) for x in (start, limit, delta))
    count = count_of_range(start, limit, delta)
    if count > MOST_FOLDED * 256:
        raise ValueError(f"a range of {count} numbers")
    return np.asarray(start + np.arange(count).astype(start.dtype) * delta).astype(start.dtype)


def count_of_range(start: Array, limit: Array, delta: Array) -> int:
    """How many numbers a range has. The difference of two integers may be none of their type."""
    if not delta:
        raise ValueError("a range by steps of zero")
    if start.dtype.kind in "iu":
        return len(range(int(start), int(limit), int(delta)))
    return max(0, int(np.ceil((limit - start) / delta)))


@fold("ConstantOfShape", since=9)
def constant_of_shape(shape: Array, *, value: Array | None = None) -> Array:
    if _is_sizes(shape) or np.prod(ints(shape), dtype=float) > MOST_FOLDED:
        raise Unfolded
    return np.full(ints(shape), 0 if value is None else value.ravel()[0], np.float32 if value is None else value.dtype)


@fold("Expand", since=8)
def expand(x: Array, shape: Array) -> Array:
    if _is_sizes(shape) or np.prod(ints(shape), dtype=float) > MOST_FOLDED:
        raise Unfolded
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(ints(shape))))


@fold("Tile", since=6)
def tile(x: Array, repeats: Array) -> Array:
    if _is_sizes(repeats) or np.prod(ints(repeats), dtype=float) * x.size > MOST_FOLDED:
        raise Unfolded
    return np.asarray(np.tile(x, ints(repeats)))


def _reduction(name: str, f: Any, since: int) -> None:
    @fold(name, since=since)
    def reduced(x: Array, axes: Array | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
        if (axes is None or not axes.size) and noop_with_empty_axes:
            raise Unfolded                                 # the row knows what each reduction is of no axes
        over = None if axes is None or not axes.size else tuple(ints(axes))
        return np.asarray(f(x, axis=over, keepdims=bool(keepdims)),
                          None if x.dtype == object else x.dtype)

    @fold(name)
    def before(x: Array, *, axes: list[int] | None = None, keepdims: int = 1) -> Array:
        return np.asarray(reduced(x, None if axes is None else np.array(axes), keepdims=keepdims))


_reduction("ReduceSum", np.sum, 13)
for _name, _g in {"ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min}.items():
    _reduction(_name, _g, 18)
