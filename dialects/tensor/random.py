"""tensor, random: bits that depend on a key and a position alone, by the cipher Threefry-2x32 with 20 rounds.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. Threefry adds, rotates and xors words
of 32 bits, which every vector unit does lane by lane; Philox, the other choice, needs the high half of products of
32-bit words, for which vector units have half as many lanes. The layout of positions in counters and of words in
results is JAX's (`jax_threefry_partitionable`), so equal keys give equal bits there and here.
"""

from __future__ import annotations

from collections.abc import Callable
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
"""The third word of the key schedule is this xor the other two: Threefry's constant for words of 32 bits."""


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any], xor: Callable[[Any, Any], Any],
             rotate: Callable[[Any, int], Any]) -> tuple[Any, Any]:
    """The cipher on anything that adds modulo 2^32: arrays or tensor values."""
    schedule = (*key, xor(xor(*key), PARITY))
    x, y = counter[0] + key[0], counter[1] + key[1]
    for block in range(5):
        for distance in ROTATIONS[block % 2]:
            x = x + y
            y = xor(x, rotate(y, distance))
        x = x + schedule[(block + 1) % 3]
        y = y + (schedule[(block + 2) % 3] + (block + 1))
    return x, y


def threefry_values(key: Value, high: Value, low: Value) -> tuple[Value, Value]:
    """The two words of the cipher for counters (high, low) under a key tensor<2xui32>."""
    words = tuple(reshape(tensor.Slice(key, (i,), (i + 1,), (1,)).result, ()) for i in range(2))

    def xor(a: Value, b: Value | int) -> Value:
        return tensor.Xor(a, b if isinstance(b, Value) else full(b, a)).result

    def rotate(x: Value, distance: int) -> Value:
        up, down = tensor.Shl(x, full(distance, x)).result, tensor.Shr(x, full(32 - distance, x)).result
        return tensor.Or(up, down).result

    return threefry((words[0], words[1]), (high, low), xor, rotate)


def threefry_arrays(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """The same in numpy."""
    word = np.uint32

    def rotate(x: Array, distance: int) -> Array:
        return np.asarray(x << word(distance) | x >> word(32 - distance))

    with np.errstate(over="ignore"):
        return threefry((key[0], key[1]), (high, low), lambda a, b: a ^ word(b), rotate)


class RandomBits(TypedOp, SizedOp, Composite, name="tensor.random_bits"):
    """result[i] = a ^ b, where a, b = threefry(key, i as two words), i counting the elements in row-major order

    Results of 8 and 16 bits are the low bits of that; one of 64 bits is a * 2^32 + b.

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
        count = sizes.product(self.shape)
        low = Iota((count,), 0, ui32).result
        if isinstance(count, int) and count <= 1 << 32:
            high = full(0, low)
        else:
            position = Iota((count,), 0, ui64).result
            high = cast(tensor.Shr(position, full(32, position)).result, ui32)
        a, b = threefry_values(self.key, high, low)
        if self.dtype == ui64:
            wide = cast(a, ui64)
            bits: Value = tensor.Or(tensor.Shl(wide, full(32, wide)).result, cast(b, ui64)).result
        else:
            bits = cast(tensor.Xor(a, b).result, self.dtype)
        return reshape(bits, self.shape)
