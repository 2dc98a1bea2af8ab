"""tensor, random: counter-based random bits, by the cipher Threefry-2x32 with 20 rounds.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. Threefry needs only addition, rotation
and xor of 32-bit words, which every vector unit supports; Philox, the alternative, needs the high half of products of
32-bit words, for which vector units have half as many lanes. Positions are mapped to counters and words to results as
in JAX (`jax_threefry_partitionable`), so equal keys give equal bits in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, SizedOp, TypedOp, cast, full, reshape
from mlc.dialects.tensor.composite import Composite
from mlc.dialects.tensor.source import Iota, check_shape
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import IntType, ScalarType, TensorType, to_numpy, ui32, ui64

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
"""Threefry's constant for 32-bit words: the third word of the key schedule is this xor the other two."""


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any], xor: Callable[[Any, Any], Any],
             rotate: Callable[[Any, int], Any]) -> tuple[Any, Any]:
    """The cipher on any type with addition modulo 2^32: arrays or tensor values."""
    schedule = (*key, xor(xor(*key), PARITY))
    x, y = counter[0] + key[0], counter[1] + key[1]
    for block in range(5):
        for distance in ROTATIONS[block % 2]:
            x = x + y
            y = xor(x, rotate(y, distance))
        x = x + schedule[(block + 1) % 3]
        y = y + (schedule[(block + 2) % 3] + (block + 1))
    return x, y


def words_of(key: Value) -> tuple[Value, Value]:
    """The two words of a key tensor<2xui32>, or of a batch of keys."""
    lanes = key.type.shape[:-1]
    high, low = (tensor.Slice(key, (*[0] * len(lanes), i), (*lanes, i + 1), (1,) * key.type.rank).result
                 for i in range(2))
    return (high, low) if lanes else (reshape(high, ()), reshape(low, ()))


def threefry_values(key: Value, high: Value, low: Value) -> tuple[Value, Value]:
    """The two words of the cipher for counters (high, low) under a key tensor<2xui32>."""
    return threefry_of_words(words_of(key), high, low)


def threefry_of_words(key: tuple[Value, Value], high: Value, low: Value) -> tuple[Value, Value]:
    """`threefry_values` with the key as two words."""
    def xor(a: Value, b: Value | int) -> Value:
        return tensor.Xor(a, b if isinstance(b, Value) else full(b, a)).result

    def rotate(x: Value, distance: int) -> Value:
        up, down = tensor.Shl(x, full(distance, x)).result, tensor.Shr(x, full(32 - distance, x)).result
        return tensor.Or(up, down).result

    return threefry(key, (high, low), xor, rotate)


def threefry_arrays(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """`threefry_values` in numpy."""
    word = np.uint32

    def rotate(x: Array, distance: int) -> Array:
        return np.asarray(x << word(distance) | x >> word(32 - distance))

    with np.errstate(over="ignore"):
        return threefry((key[0], key[1]), (high, low), lambda a, b: a ^ word(b), rotate)


class RandomBits(TypedOp, SizedOp, Composite, name="tensor.random_bits"):
    """result[i] = a ^ b, where a, b = threefry(key, i as two words), with i in row-major order

    Results of 8 and 16 bits are the low bits of a ^ b; those of 64 bits are a * 2^32 + b.

        %r = tensor.random_bits %key : tensor<2xui32> to tensor<Bx3xui32>
    """

    key: Value
    shape: tuple[Dim, ...]
    dtype: ScalarType
    spelled = ("shape", "dtype")

    def infer(self) -> TensorType:
        key, = self.tensors()
        if key != TensorType((2,), ui32):
            self.refuse(f"the key is {key}, not tensor<2xui32>", "MLC0117")
        check_shape(self, self.shape)
        if not (isinstance(self.dtype, IntType) and self.dtype.unsigned):
            self.refuse(f"gives unsigned integers, not {self.dtype}", "MLC0113")
        return TensorType(self.shape, self.dtype)

    def compute(self, size: Any, key: Array) -> Array:
        shape = [size(d) for d in self.shape]
        at = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint64)
        a, b = threefry_arrays(key, (at >> np.uint64(32)).astype(np.uint32), at.astype(np.uint32))
        if self.dtype == ui64:
            return (a.astype(np.uint64) << np.uint64(32) | b).reshape(shape)
        return (a ^ b).astype(to_numpy(self.dtype)).reshape(shape)

    def decompose(self) -> Value:
        return reshape(self._in_a_row(words_of(self.key), ()), self.shape)

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """Each batch element counts from 0, with its own key."""
        return reshape(self._in_a_row(words_of(operands[0]), (1,)), (batch_size, *self.shape))

    def _in_a_row(self, key: tuple[Value, Value], lead: tuple[int, ...]) -> Value:
        """The bits in a flat last axis, after `lead` axes for the words of keys."""
        count, axis = sizes.product(self.shape), len(lead)
        low = Iota((*lead, count), axis, ui32).result
        if isinstance(count, int) and count <= 1 << 32:
            high = full(0, low)
        else:
            position = Iota((*lead, count), axis, ui64).result
            high = cast(tensor.Shr(position, full(32, position)).result, ui32)
        a, b = threefry_of_words(key, high, low)
        if self.dtype == ui64:
            wide = cast(a, ui64)
            return tensor.Or(tensor.Shl(wide, full(32, wide)).result, cast(b, ui64)).result
        return cast(tensor.Xor(a, b).result, self.dtype)
