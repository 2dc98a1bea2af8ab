"""x86vector: vector instructions of x86 that no other dialect has; upstream's names, syntax and semantics, where
upstream has them.

`INTRINSICS` has the meaning of the LLVM intrinsics that they become.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlc.ir.core import Op, Value
from mlc.ir.exact import flushed, fma
from mlc.ir.types import Type, VectorType, bf16, f32, i8, i16, i32

Array = np.ndarray[Any, Any]

DOT = "llvm.x86.avx512bf16.dpbf16ps.512"
"""The intrinsic of `Dot`."""
DOT_BYTES = {16 << i: f"llvm.x86.avx512.vpdpbusd.{128 << i}" for i in range(3)}
"""The intrinsics of `DotBytes`, by the number of bytes."""
PAIRS_OF_BYTES = {16: "llvm.x86.ssse3.pmadd.ub.sw.128", 32: "llvm.x86.avx2.pmadd.ub.sw",
                  64: "llvm.x86.avx512.pmaddubs.w.512"}
"""The intrinsics of `PairsOfBytes`, by the number of bytes."""


def dot_bf16(src: Array, a: Array, b: Array) -> Array:
    """The meaning of `Dot`."""
    with np.errstate(invalid="ignore"):
        left, right = (flushed(np.asarray(x).astype(np.float32)) for x in (a, b))
        total = flushed(np.asarray(src))
    for first in (1, 0):
        total = flushed(fma(left[first::2], right[first::2], total))
    return total


class Dot(Op, name="x86vector.avx512.dot", pure=True):
    """result[i] = (src[i] + a[2i+1] * b[2i+1]) + a[2i] * b[2i], each sum rounded once, to nearest even

    Operands and sums that are subnormal count as zeros.
    """

    src: Value
    a: Value
    b: Value
    format = "$src `,` $a `,` $b attr-dict `:` type($a) `->` type($src)"

    def infer(self) -> Type:
        src, a = self.src.type, self.a.type
        if src != VectorType((16,), f32) or a != VectorType((32,), bf16) or self.b.type != a:
            self.fail(f"{a} and {self.b.type} on {src}: two vectors of 32xbf16 have sums in one of 16xf32",
                      code="MLC0164")
        return src  # type: ignore[no-any-return]

    def ref(self, src: Any, a: Any, b: Any) -> Any:
        return dot_bf16(src, a, b)


def _products(a: Array, b: Array) -> Array:
    out: Array = np.asarray(a).view(np.uint8).astype(np.int32) * np.asarray(b).view(np.int8).astype(np.int32)
    return out


def dot_bytes(src: Array, a: Array, b: Array) -> Array:
    """The meaning of `DotBytes`."""
    return np.asarray(src + _products(a, b).reshape(-1, 4).sum(1, dtype=np.int32))


def pairs_of_bytes(a: Array, b: Array) -> Array:
    """The meaning of `PairsOfBytes`."""
    sums = _products(a, b).reshape(-1, 2).sum(1, dtype=np.int32)
    return np.asarray(np.clip(sums, -1 << 15, (1 << 15) - 1), np.int16)


class DotBytes(Op, name="x86vector.avx512.dot_bytes", pure=True):
    """result[i] = src[i] + the sum of the products of the bytes 4i .. 4i + 3 of a, without sign, and b, with sign

    It is vpdpbusd, of AVX512_VNNI.
    """

    src: Value
    a: Value
    b: Value
    format = "$src `,` $a `,` $b attr-dict `:` type($a) `->` type($src)"

    def infer(self) -> Type:
        count = _bytes(self, self.a, self.b)
        if self.src.type != (sums := VectorType((count // 4,), i32)):
            self.fail(f"{count} bytes have sums of {sums}, not {self.src.type}", code="MLC0164")
        return sums

    def ref(self, src: Any, a: Any, b: Any) -> Any:
        return dot_bytes(src, a, b)


class PairsOfBytes(Op, name="x86vector.pairs_of_bytes", pure=True):
    """result[i] = a[2i] * b[2i] + a[2i+1] * b[2i+1], a without sign and b with sign, clamped to 16 bits

    It is vpmaddubsw, of SSSE3, AVX2 and AVX512BW.
    """

    a: Value
    b: Value
    format = "$a `,` $b attr-dict `:` type($a)"

    def infer(self) -> Type:
        return VectorType((_bytes(self, self.a, self.b) // 2,), i16)

    def ref(self, a: Any, b: Any) -> Any:
        return pairs_of_bytes(a, b)


def _bytes(op: Op, a: Value, b: Value) -> int:
    """How many bytes each of two vectors has."""
    if a.type != b.type or a.type not in [VectorType((count,), i8) for count in DOT_BYTES]:
        op.fail(f"{a.type} and {b.type}: multiplies two vectors of 16, 32 or 64 bytes", code="MLC0164")
    return int(a.type.shape[0])


INTRINSICS: Mapping[str, Callable[..., Any]] = {
    DOT: dot_bf16, **dict.fromkeys(DOT_BYTES.values(), dot_bytes),
    **dict.fromkeys(PAIRS_OF_BYTES.values(), pairs_of_bytes)}
