"""The meaning of the intrinsics of AMX. A tile is its bytes: up to 16 rows of up to 64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlc.dialects.amx import multiply_bf16, multiply_bytes
from mlc.ir.interp import Pointer
from mlc.ir.types import bf16, to_numpy

Array = np.ndarray[Any, Any]

ZERO, LOAD, STORE = (f"llvm.x86.{name}.internal" for name in ("tilezero", "tileloadd64", "tilestored64"))
MULTIPLY_BF16 = "llvm.x86.tdpbf16ps.internal"
MULTIPLY_BYTES = {(left, right): f"llvm.x86.tdpb{'u' if left else 's'}{'u' if right else 's'}d.internal"
                  for left in (False, True) for right in (False, True)}
"""By whether the bytes of each factor have no sign."""


def _zero(rows: int, width: int) -> Array:
    return np.zeros((rows, width), np.uint8)


def _load(rows: int, width: int, address: Pointer, stride: int) -> Array:
    return np.stack([(address + i * int(stride)).bytes(int(width)) for i in range(rows)])


def _store(rows: int, width: int, address: Pointer, stride: int, tile: Array) -> None:
    for i in range(rows):
        (address + i * int(stride)).bytes(int(width))[...] = tile[i]


def _multiply_bf16(rows: int, columns: int, terms: int, c: Array, a: Array, b: Array) -> Array:
    left, right = (x.view(to_numpy(bf16)) for x in (a, b))
    return np.ascontiguousarray(multiply_bf16(left, right, c.view(np.float32))).view(np.uint8)


def _multiply_bytes(unsigned: tuple[bool, bool]) -> Callable[..., Any]:
    def multiply(rows: int, columns: int, terms: int, c: Array, a: Array, b: Array) -> Array:
        left, right = (x.view(np.uint8 if zext else np.int8) for x, zext in zip((a, b), unsigned))
        return np.ascontiguousarray(multiply_bytes(left, right, c.view(np.int32))).view(np.uint8)

    return multiply


INTRINSICS: Mapping[str, Callable[..., Any]] = {
    ZERO: _zero, LOAD: _load, STORE: _store, MULTIPLY_BF16: _multiply_bf16,
    **{name: _multiply_bytes(unsigned) for unsigned, name in MULTIPLY_BYTES.items()}}
