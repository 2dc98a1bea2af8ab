"""Integers, indices and elements drawn at random, permutations and dropout."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.dtypes import as_ir, float32, int64
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.random.distributions import float_type, gumbel_noise, unit_interval
from mlc.frontend.functions.random.keys import Shape, bits_from, constant_like, high_and_low
from mlc.frontend.operands import broadcast_shapes, cast, floating, shape_of, size, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.types import f32, f64, i32, i64, ui32, ui64


@operation(name="random.bernoulli", static=("key",))
def bernoulli(key: Operand, p: Operand = 0.5, shape: Shape | None = None) -> Tensor:
    """True with probability p, for each element.

    Args:
        key: Random key, a tensor of two uint32.
        p: Probability, a number or a tensor; up to 0 always False, from 1 on always True.
        shape: Sizes of the result; the shape of `p` by default.

    Returns:
        Tensor of bools.

    Raises:
        UserError: `key` is no random key (MLC0370), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.random.bernoulli(mlc.random.key(0), mlc.tensor([0.0, 1.0]))
        tensor([False,  True], dtype=mlc.bool)
    """
    chance = floating(p)
    dtype = f64 if chance.type.dtype == f64 and not chance.weak else f32
    return E.lt(unit_interval(key, chance.shape if shape is None else shape, dtype), cast(chance, dtype))


@operation(name="random.randint", static=("key",))
def randint(key: Operand, shape: Shape, low: int, high: int, dtype: DTypeLike = int64) -> Tensor:
    """Integers in [low, high), all equally likely up to a part of (high - low) / 2^64.

    They are low + floor(bits * (high - low) / 2^64), for 64 random bits.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        low: The least integer.
        high: The integer after the greatest, at most 2^32 above `low`.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), there is no integer or there are more than 2^32 (MLC0360), or a
            size is negative (MLC0116).

    Example:
        >>> mlc.random.randint(mlc.random.key(0), (3,), 5, 6)
        tensor([5, 5, 5], dtype=mlc.int64)
    """
    first, count = plain_int(low, "low"), plain_int(high, "high") - plain_int(low, "low")
    if count <= 0 or count > 1 << 32:
        raise UserError(f"{count} integers from {low} up to {high}, expected 1 to 2^32", code="MLC0360")
    words = [cast(w, ui64) for w in high_and_low(bits_from(key, shape, ui64))]
    carried = E.bitwise_right_shift(words[1] * constant_like(count, words[1]), constant_like(32, words[1]))
    drawn = E.bitwise_right_shift(words[0] * constant_like(count, words[0]) + carried, constant_like(32, words[0]))
    return cast(tracer(cast(tracer(drawn), i64) + first), as_ir(dtype))


@operation(name="random.rademacher", static=("key",))
def rademacher(key: Operand, shape: Shape = (), dtype: DTypeLike = float32) -> Tensor:
    """1 or -1 with equal probability, for each element.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: Dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), or a size is negative (MLC0116).

    Example:
        >>> mlc.abs(mlc.random.rademacher(mlc.random.key(0), (3,)))
        tensor([1., 1., 1.], dtype=mlc.float32)
    """
    return cast(tracer(1 - 2 * cast(tracer(E.bitwise_and(bits_from(key, shape, ui32), 1)), i32)), as_ir(dtype))


@operation(name="random.categorical", static=("key",))
def categorical(key: Operand, logits: Operand, dim: int = -1, shape: Shape | None = None) -> Tensor:
    """Indices drawn along a dimension with the probabilities softmax(logits), by the Gumbel-max trick.

    Args:
        key: Random key, a tensor of two uint32.
        logits: Tensor of floats, logarithms of probabilities up to a constant.
        dim: The dimension; negative ones count from the last.
        shape: Sizes of the result, which end with those of `logits` without `dim`; just these by default.

    Returns:
        Tensor of int64.

    Raises:
        UserError: `key` is no random key (MLC0370), `dim` is out of range (MLC0356), `shape` does not fit (MLC0111), or
            `logits` has no dimensions (MLC0364) or no elements (MLC0363).

    Example:
        >>> mlc.random.categorical(mlc.random.key(0), mlc.tensor([0.0, 100.0]), shape=(3,))
        tensor([1, 1, 1], dtype=mlc.int64)
    """
    x = floating(logits)
    at = axis(dim, x.ndim, scalar=False)
    rest = [d for i, d in enumerate(x.shape) if i != at]
    wanted = rest if shape is None else list(shape_of(shape))
    if shape is not None and broadcast_shapes(wanted, rest) != tuple(wanted):
        raise UserError(f"shape {wanted} does not end with that of the logits without dim, {rest}", code="MLC0111")
    lead = len(wanted) - len(rest)
    full = [*wanted[: lead + at], x.shape[at], *wanted[lead + at:]]
    return R.argmax(x + gumbel_noise(key, full, float_type(x.dtype)), lead + at)


@operation(name="random.permutation", literal=("x",), static=("key",))
def permutation(key: Operand, x: Operand, dim: int = 0) -> Tensor:
    """The slices of a tensor along a dimension in random order, or the integers below a number.

    Args:
        key: Random key, a tensor of two uint32.
        x: Tensor of at least one dimension, or a Python integer n for 0 to n - 1.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tensor of the shape and dtype of `x`, or of int64 and shape (n,).

    Raises:
        UserError: `key` is no random key (MLC0370), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.sort(mlc.random.permutation(mlc.random.key(0), 4)).values
        tensor([0, 1, 2, 3], dtype=mlc.int64)
    """
    from mlc.frontend.functions.index import index_select
    if isinstance(x, int):
        return _order(key, x)
    y = tracer(x)
    at = axis(dim, y.ndim, scalar=False)
    return index_select(y, at, _order(key, y.shape[at]))


@operation(name="random.randperm", static=("key",))
def randperm(key: Operand, n: int) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    Args:
        key: Random key, a tensor of two uint32.
        n: How many.

    Returns:
        Tensor of int64 of shape (n,).

    Raises:
        UserError: `key` is no random key (MLC0370), or `n` is negative (MLC0116).

    Example:
        >>> mlc.sort(mlc.random.randperm(mlc.random.key(0), 4)).values
        tensor([0, 1, 2, 3], dtype=mlc.int64)
    """
    return _order(key, size(n, "n"))


def _order(key: Operand, n: Any) -> Tracer:
    return emit(T.ArgSort, bits_from(key, (n,), ui64), 0)  # type: ignore[no-any-return]


@operation(name="random.choice", static=("key",))
def choice(key: Operand, x: Operand, shape: Shape = ()) -> Tensor:
    """Elements of a vector, each drawn from all of them with equal probability.

    Args:
        key: Random key, a tensor of two uint32.
        x: 1-D tensor of known size, not empty.
        shape: Sizes of the result.

    Returns:
        Tensor of shape `shape` and the dtype of `x`.

    Raises:
        UserError: `key` is no random key (MLC0370), `x` is no vector (MLC0364), or it is empty (MLC0360).

    Example:
        >>> mlc.random.choice(mlc.random.key(0), mlc.tensor([5.0, 5.0]), (3,))
        tensor([5., 5., 5.], dtype=mlc.float32)
    """
    from mlc.frontend.functions.index import take
    values = tracer(x)
    if values.ndim != 1 or not isinstance(values.shape[0], int):
        raise UserError(f"choice takes a vector of known size, found {values.type}", code="MLC0364")
    return take(values, randint(key, shape, 0, values.shape[0]), 0)


@operation(name="random.dropout", static=("key",))
def dropout(key: Operand, input: Operand, p: float = 0.5) -> Tensor:
    """Each element 0 with probability p, otherwise input / (1 - p), which keeps the mean (Srivastava et al. 2014).

    Args:
        key: Random key, a tensor of two uint32.
        input: Tensor; integers become float32.
        p: Probability, a Python number from 0 to 1.

    Returns:
        Tensor of floats of the shape of `input`.

    Raises:
        UserError: `key` is no random key (MLC0370), or `p` is no probability (MLC0360).

    Example:
        >>> mlc.random.dropout(mlc.random.key(0), mlc.ones(3), 0.0)
        tensor([1., 1., 1.], dtype=mlc.float32)
    """
    if not 0 <= p <= 1:
        raise UserError(f"p = {p} is no probability", code="MLC0360")
    x = floating(input)
    if p == 1:
        return E.mul(x, 0.0)
    kept = E.ge(unit_interval(key, x.shape, f32), float(p))
    return E.where(kept, E.mul(x, 1 / (1 - p)), 0.0)
