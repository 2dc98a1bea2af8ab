"""Random keys, and the bits generated from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mlc.dialects import tensor as T
from mlc.dialects.tensor.random import threefry_values
from mlc.frontend.axes import any_int, plain_int
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.shape import stack
from mlc.frontend.operands import cast, shape_of, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor, wrap
from mlc.frontend.trace import emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Value
from mlc.ir.diag import UserTypeError
from mlc.ir.types import IntType, ScalarType, ui32, ui64

Shape = Sequence[Any] | int


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
    number = any_int(seed, "seed") & ((1 << 64) - 1)
    words = wrap(np.array([number >> 32, number & 0xFFFFFFFF], np.uint32))
    return tracer(words) if state.trace is not None else words


def _key(x: Operand) -> Tracer:
    out = tracer(x)
    if out.shape != (2,) or out.type.dtype != ui32:
        raise UserTypeError(f"a {out.type} is no random key, which is tensor<2xui32>", code="MLC0370",
                            hint="make one with mlc.random.key(seed), or take a row of mlc.random.split(key, n)")
    return out


def bits_from(key: Operand, shape: Shape, dtype: ScalarType) -> Tracer:
    return emit(T.RandomBits, _key(key), shape_of(shape), dtype)  # type: ignore[no-any-return]


def high_and_low(bits: Tracer) -> list[Tracer]:
    """The high and the low half of 64-bit integers."""
    return [cast(tracer(E.bitwise_right_shift(bits, constant_like(32, bits))), ui32), cast(bits, ui32)]


def constant_like(value: int, x: Tracer) -> Tracer:
    return emit(T.Full, value, (), x.type.dtype)  # type: ignore[no-any-return]


@operation(name="random.split", static=("key",))
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
    return stack(high_and_low(bits_from(key, (plain_int(num, "num"),), ui64)), -1)


@operation(name="random.fold_in", static=("key",))
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

    name = "fold_in"
    attrs: ClassVar[dict[str, Any]] = {}

    def __init__(self, results: Sequence[Value]) -> None:
        self.results = results


def _folded(key: Value, word: Value) -> _Pair:
    return _Pair(threefry_values(key, T.Full(0, (), ui32).result, word))


@operation(name="random.bits", static=("key",))
def bits(key: Operand, shape: Shape = (), dtype: DTypeLike = "uint32") -> Tensor:
    """Unsigned integers of which all bits are random.

    Args:
        key: Random key, a tensor of two uint32.
        shape: Sizes of the result.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        Tensor of shape `shape`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no unsigned integer (MLC0354), a size is negative
            (MLC0116), or `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.random.bits(mlc.random.key(0), (2, 3)).shape
        (2, 3)
    """
    wanted = as_ir(dtype)
    if not (isinstance(wanted, IntType) and wanted.unsigned):
        raise UserTypeError(f"random bits are unsigned integers, not {wanted}", code="MLC0354")
    return bits_from(key, shape, wanted)


@operation(name="random.bits_like", static=("key",))
def bits_like(key: Operand, input: Operand, *, dtype: DTypeLike = "uint32") -> Tensor:
    """Unsigned integers of which all bits are random, in the shape of a tensor.

    Args:
        key: Random key, a tensor of two uint32.
        input: Tensor that tells the shape.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `key` is no random key (MLC0370), `dtype` is no unsigned integer (MLC0354), or `dtype` is no dtype
            (MLC0342).

    Example:
        >>> mlc.random.bits_like(mlc.random.key(0), mlc.ones(2, 3)).shape
        (2, 3)
    """
    return bits(key, tracer(input).shape, dtype)
