"""Random numbers as functions of a key: equal keys give equal numbers, eager and compiled, on every machine.

    key = mlc.random.key(0)
    key, sub = mlc.random.split(key)
    x = mlc.random.normal(sub, (3, 4))

A key is a tensor of two uint32. Element i of a result depends on the key and on i alone, not on the shape or the
number of threads. Two draws with one key are the same numbers: split it first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.dialects.tensor.random import threefry_values
from mlc.frontend.dtypes import as_ir, float32, int64
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.shape import stack
from mlc.frontend.functions.trigonometry import tan
from mlc.frontend.methods import listed
from mlc.frontend.operands import axis, broadcast_shapes, cast, floating, plain_int, shape_of, size, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor, wrap
from mlc.frontend.trace import Tracer, emit, state
from mlc.ir.core import Value
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import FloatType, IntType, ScalarType, bf16, f16, f32, f64, i32, i64, ui32, ui64

Shape = Sequence[Any] | int
DIGITS = {f16: 11, bf16: 8, f32: 24, f64: 53}
"""Binary digits of the floats in [0, 1) that are drawn: as many as the type has."""


@creation
def key(seed: int) -> Tensor:
    """The random key of a seed.

    Args:
        seed: Python integer, of which the low 64 bits count.

    Returns:
        Tensor of two uint32.

    Raises:
        UserError: `seed` is no integer (MLC0355).

    Example:
        >>> mlc.random.key(7)
        tensor([0, 7], dtype=mlc.uint32)
    """
    number = plain_int(seed, "seed") & ((1 << 64) - 1)
    words = wrap(np.array([number >> 32, number & 0xFFFFFFFF], np.uint32))
    return tracer(words) if state.trace is not None else words


def _key(x: Operand) -> Tracer:
    out = tracer(x)
    if out.shape != (2,) or out.type.dtype != ui32:
        raise UserTypeError(f"a {out.type} is no random key, which is tensor<2xui32>", code="MLC0370",
                            hint="make one with mlc.random.key(seed), or take a row of mlc.random.split(key, n)")
    return out


def _bits(key: Operand, shape: Shape, dtype: ScalarType) -> Tracer:
    return emit(T.RandomBits, _key(key), shape_of(shape), dtype)  # type: ignore[no-any-return]


def _words(bits: Tracer) -> list[Tracer]:
    """The high and the low half of integers of 64 bits."""
    return [cast(tracer(E.bitwise_right_shift(bits, _like(32, bits))), ui32), cast(bits, ui32)]


def _like(value: int, x: Tracer) -> Tracer:
    return emit(T.Full, value, (), x.type.dtype)  # type: ignore[no-any-return]


@operation(name="random.split")
def split(key: Operand, num: int = 2) -> Tensor:
    """Keys that are independent of each other and of everything drawn with other keys.

    Args:
        key: Random key, a tensor of two uint32.
        num: Number of keys.

    Returns:
        Tensor of uint32 of shape (num, 2): a key a row.

    Raises:
        UserError: `key` is no random key (MLC0370), or `num` is negative (MLC0116).

    Example:
        >>> mlc.random.split(mlc.random.key(0)).shape
        (2, 2)
    """
    return stack(_words(_bits(key, (plain_int(num, "num"),), ui64)), -1)


@operation(name="random.fold_in")
def fold_in(key: Operand, data: Operand) -> Tensor:
    """A key made of a key and an integer, such as the number of a step or a layer.

    It is a block of Threefry-2x32 (Salmon et al. 2011).

    Args:
        key: Random key, a tensor of two uint32.
        data: Integer or 0-d tensor of integers, of which the low 32 bits count.

    Returns:
        Tensor of two uint32.

    Raises:
        UserError: `key` is no random key (MLC0370), or `data` is no integer (MLC0354).

    Example:
        >>> mlc.random.fold_in(mlc.random.key(0), 3).shape
        (2,)
    """
    number = tracer(data)
    if number.shape or not isinstance(number.type.dtype, IntType) or number.type.dtype.is_bool:
        raise UserTypeError(f"a {number.type} cannot be folded into a key, only one integer", code="MLC0354")
    word = cast(number, ui32)
    return stack(list(emit(_folded, _key(key), word)), 0)


class _Pair:
    """Results of a builder, as `emit` reads those of an operation."""

    def __init__(self, results: Sequence[Value]) -> None:
        self.results = results


def _folded(key: Value, word: Value) -> _Pair:
    return _Pair(threefry_values(key, T.Full(0, (), ui32).result, word))


@operation(name="random.bits")
def bits(key: Operand, shape: Shape = (), dtype: DTypeLike = "uint32") -> Tensor:
    """Unsigned integers of which all bits are random.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no unsigned integer (MLC0354), or a size is negative
            (MLC0116).

    Example:
        >>> mlc.random.bits(mlc.random.key(0), (2, 3)).shape
        (2, 3)
    """
    wanted = as_ir(dtype)
    if not (isinstance(wanted, IntType) and wanted.unsigned):
        raise UserTypeError(f"random bits are unsigned integers, not {wanted}", code="MLC0354")
    return _bits(key, shape, wanted)


def _float(dtype: DTypeLike) -> FloatType:
    wanted = as_ir(dtype)
    if not isinstance(wanted, FloatType):
        raise UserTypeError(f"random numbers of {wanted} are not floats", code="MLC0359", hint="use randint")
    return wanted


def _unit(key: Operand, shape: Shape, dtype: FloatType) -> Tracer:
    """Multiples of 2^-digits in [0, 1)."""
    digits = DIGITS[dtype]
    wide, word = (64, ui64) if dtype == f64 else (32, ui32)
    drawn = _bits(key, shape, word)
    whole = cast(tracer(E.bitwise_right_shift(drawn, _like(wide - digits, drawn))), i64 if wide == 64 else i32)
    return tracer(E.mul(cast(whole, dtype), 2.0 ** -digits))


@operation(name="random.uniform")
def uniform(key: Operand, shape: Shape = (), low: Operand = 0.0, high: Operand = 1.0,
            dtype: DTypeLike = float32) -> Tensor:
    """Numbers uniformly distributed in [low, high).

    In [0, 1) they are multiples of 2^-24 in float32 and of 2^-53 in float64. Rounding may give `high` in other
    intervals.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        low: Lower end, a number or a tensor that broadcasts.
        high: Upper end, likewise.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with the ends.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.uniform(mlc.random.key(0), (2,)).shape
        (2,)
    """
    unit = _unit(key, shape, _float(dtype))
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return unit
    scaled = E.add(E.mul(unit, E.sub(high, low)), low)
    return cast(tracer(scaled), unit.type.dtype)


@operation(name="random.normal")
def normal(key: Operand, shape: Shape = (), mean: Operand = 0.0, std: Operand = 1.0,
           dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the normal distribution: mean + std * sqrt(2) * erfinv(u), for u uniform in (-1, 1).

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        mean: Mean, a number or a tensor that broadcasts.
        std: Standard deviation, likewise.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with mean and deviation.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.normal(mlc.random.key(0), (2, 3)).shape
        (2, 3)
    """
    wanted = _float(dtype)
    wide = f64 if wanted == f64 else f32
    digits = DIGITS[wide]
    # The middles of 2^digits intervals would need a digit more: of the lower half they are exact, and so mirrored.
    unit = _unit(key, shape, wide)
    low = unit < 0.5
    half = E.where(low, unit, unit - 0.5) + 2.0 ** -(digits + 1)          # in (0, 0.5)
    size = emit(T.ErfInv, 1 - 2 * half) * math.sqrt(2)
    drawn = E.where(low, E.neg(size), size)
    return cast(tracer(E.add(E.mul(drawn, std), mean)), wanted)


@operation(name="random.rand")
def rand(key: Operand, *size: Any, dtype: DTypeLike = float32) -> Tensor:
    """Numbers uniformly distributed in [0, 1), as `uniform(key, size)`.

    Args:
        key: Random key, a tensor of two uint32.
        size: Sizes, as separate arguments or as one sequence.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.rand(mlc.random.key(0), 2, 3).shape
        (2, 3)
    """
    return uniform(key, listed(size), dtype=dtype)


@operation(name="random.randn")
def randn(key: Operand, *size: Any, dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the standard normal distribution, as `normal(key, size)`.

    Args:
        key: Random key, a tensor of two uint32.
        size: Sizes, as separate arguments or as one sequence.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `size`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.randn(mlc.random.key(0), 2, 3).shape
        (2, 3)
    """
    return normal(key, listed(size), dtype=dtype)


@operation(name="random.rand_like")
def rand_like(key: Operand, input: Operand, *, dtype: DTypeLike = None) -> Tensor:
    """Numbers uniformly distributed in [0, 1), in the shape of a tensor.

    Args:
        key: Random key, a tensor of two uint32.
        input: Tensor that tells the shape.
        dtype: Float dtype of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `key` is no random key (MLC0370), or the dtype is no float (MLC0359).

    Example:
        >>> mlc.random.rand_like(mlc.random.key(0), mlc.ones(2, 3)).shape
        (2, 3)
    """
    x = tracer(input)
    return uniform(key, x.shape, dtype=x.dtype if dtype is None else dtype)


@operation(name="random.randn_like")
def randn_like(key: Operand, input: Operand, *, dtype: DTypeLike = None) -> Tensor:
    """Numbers of the standard normal distribution, in the shape of a tensor.

    Args:
        key: Random key, a tensor of two uint32.
        input: Tensor that tells the shape.
        dtype: Float dtype of the result; that of `input` by default.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `key` is no random key (MLC0370), or the dtype is no float (MLC0359).

    Example:
        >>> mlc.random.randn_like(mlc.random.key(0), mlc.ones(2, 3)).shape
        (2, 3)
    """
    x = tracer(input)
    return normal(key, x.shape, dtype=x.dtype if dtype is None else dtype)


@operation(name="random.truncated_normal")
def truncated_normal(key: Operand, lower: Operand, upper: Operand, shape: Shape = (),
                     dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the standard normal distribution, given that they lie between two bounds.

    They are drawn by the inverse of the distribution function: sqrt(2) * erfinv(u), for u uniform in (erf(lower /
    sqrt(2)), erf(upper / sqrt(2))).

    Args:
        key: Random key, a tensor of two uint32.
        lower: Lower bound, a number or a tensor that broadcasts.
        upper: Upper bound, likewise.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with the bounds.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.truncated_normal(mlc.random.key(0), -2.0, 2.0, (3,)).shape
        (3,)
    """
    wanted = _float(dtype)
    wide = f64 if wanted == f64 else f32
    a, b = (cast(floating(x), wide) for x in (lower, upper))
    low, high = E.erf(a * math.sqrt(0.5)), E.erf(b * math.sqrt(0.5))
    drawn = emit(T.ErfInv, tracer(low + (high - low) * _unit(key, shape, wide))) * math.sqrt(2)
    return cast(tracer(E.minimum(E.maximum(drawn, a), b)), wanted)


@operation(name="random.exponential")
def exponential(key: Operand, shape: Shape = (), rate: Operand = 1.0, dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the exponential distribution, with density rate * e^(-rate x): -log1p(-u) / rate.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        rate: Rate, a number or a tensor that broadcasts.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`, broadcast with the rate.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.exponential(mlc.random.key(0), (2,)).shape
        (2,)
    """
    drawn = E.neg(E.log1p(E.neg(_unit(key, shape, _float(dtype)))))
    return cast(tracer(E.div(drawn, rate)), as_ir(dtype))


def _gumbel(key: Operand, shape: Shape, dtype: FloatType) -> Tensor:
    tiny = {f16: 2.0 ** -14, f64: 2.0 ** -1022}.get(dtype, 2.0 ** -126)
    return E.neg(E.log(E.neg(E.log(E.maximum(_unit(key, shape, dtype), tiny)))))


@operation(name="random.gumbel")
def gumbel(key: Operand, shape: Shape = (), dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the standard Gumbel distribution: -ln(-ln(u)), for u uniform in (0, 1).

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.gumbel(mlc.random.key(0), (2,)).shape
        (2,)
    """
    return _gumbel(key, shape, _float(dtype))


@operation(name="random.laplace")
def laplace(key: Operand, shape: Shape = (), dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the Laplace distribution, with density e^-|x| / 2.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.laplace(mlc.random.key(0), (2,)).shape
        (2,)
    """
    unit = _unit(key, shape, _float(dtype))
    low = unit < 0.5
    size = E.neg(E.log1p(E.neg(2 * E.where(low, unit, unit - 0.5))))
    return E.where(low, size, E.neg(size))


@operation(name="random.cauchy")
def cauchy(key: Operand, shape: Shape = (), dtype: DTypeLike = float32) -> Tensor:
    """Numbers of the Cauchy distribution, with density 1 / (pi (1 + x^2)): tan(pi (u - 1/2)), for u uniform.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: Float dtype of the result.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no float (MLC0359), or a size is negative (MLC0116).

    Example:
        >>> mlc.random.cauchy(mlc.random.key(0), (2,)).shape
        (2,)
    """
    return tan((_unit(key, shape, _float(dtype)) - 0.5) * math.pi)


@operation(name="random.bernoulli")
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
    return E.lt(_unit(key, chance.shape if shape is None else shape, dtype), cast(chance, dtype))


@operation(name="random.randint")
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
    words = [cast(w, ui64) for w in _words(_bits(key, shape, ui64))]
    carried = E.bitwise_right_shift(words[1] * _like(count, words[1]), _like(32, words[1]))
    drawn = E.bitwise_right_shift(words[0] * _like(count, words[0]) + carried, _like(32, words[0]))
    return cast(tracer(cast(tracer(drawn), i64) + first), as_ir(dtype))


@operation(name="random.rademacher")
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
    return cast(tracer(1 - 2 * cast(tracer(E.bitwise_and(_bits(key, shape, ui32), 1)), i32)), as_ir(dtype))


@operation(name="random.categorical")
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
        UserError: `key` is no random key (MLC0370), `dim` is out of range (MLC0356), or `shape` does not fit (MLC0111).

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
    return R.argmax(x + _gumbel(key, full, _float(x.dtype)), lead + at)


@operation(name="random.permutation", literal=("x",))
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


@operation(name="random.randperm")
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
    return emit(T.ArgSort, _bits(key, (n,), ui64), 0)  # type: ignore[no-any-return]


@operation(name="random.choice")
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


@operation(name="random.dropout")
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
    kept = E.ge(_unit(key, x.shape, f32), float(p))
    return E.where(kept, E.mul(x, 1 / (1 - p)), 0.0)


@operation()
def erfinv(input: Operand) -> Tensor:
    """The inverse error function: the y with erf(y) = x; infinite at 1 and -1, NaN beyond.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.erfinv(mlc.tensor([0.0, 0.5, 1.0]))
        tensor([0.        , 0.47693628,        inf], dtype=mlc.float32)
    """
    return emit(T.ErfInv, floating(input))  # type: ignore[no-any-return]
