"""Lowering of tiles to the intrinsics of AMX, which LLVM allocates registers for and configures them."""

from __future__ import annotations

from mlc.dialects import amx, llvm
from mlc.dialects.llvm.tiles import LOAD, MULTIPLY_BF16, MULTIPLY_BYTES, STORE, ZERO
from mlc.ir.core import Value
from mlc.ir.types import i16
from mlc.passes.lower_to_llvm.lowering import Lowering, rule
from mlc.passes.lower_to_llvm.memory import address_of


def _sizes(type: amx.TileType) -> tuple[Value, Value]:
    """The rows of a tile, and the bytes of a row."""
    rows, columns = type.shape
    return llvm.constant(rows, i16), llvm.constant(columns * type.dtype.itemsize, i16)


def _place(low: Lowering, op: amx.TileLoad | amx.TileStore) -> tuple[Value, Value]:
    """The address of the first row, and the bytes from one to the next."""
    held = low.memory(op.base)
    return address_of(low, op, op.base, op.indices), low.value(low.times(held.strides[-2], held.dtype.itemsize))


@rule(amx.TileZero)
def _zero(low: Lowering, op: amx.TileZero) -> list[Value]:
    return [llvm.CallIntrinsic(ZERO, _sizes(op.result.type), types=(llvm.x86_amx,)).result]


@rule(amx.TileLoad)
def _load(low: Lowering, op: amx.TileLoad) -> list[Value]:
    args = (*_sizes(op.result.type), *_place(low, op))
    return [llvm.CallIntrinsic(LOAD, args, types=(llvm.x86_amx,)).result]


@rule(amx.TileStore)
def _store(low: Lowering, op: amx.TileStore) -> None:
    llvm.CallIntrinsic(STORE, (*_sizes(op.value.type), *_place(low, op), low.one(op.value)))


@rule(amx.TileMulF)
def _multiply(low: Lowering, op: amx.TileMulF) -> list[Value]:
    return [_product(low, op, MULTIPLY_BF16)]


@rule(amx.TileMulI)
def _multiply_bytes(low: Lowering, op: amx.TileMulI) -> list[Value]:
    return [_product(low, op, MULTIPLY_BYTES[bool(op.isZextLhs), bool(op.isZextRhs)])]


def _product(low: Lowering, op: amx.TileMulF | amx.TileMulI, name: str) -> Value:
    rows, width = _sizes(op.c.type)
    _, terms = _sizes(op.a.type)
    args = (rows, width, terms, *map(low.one, (op.c, op.a, op.b)))
    return llvm.CallIntrinsic(name, args, types=(llvm.x86_amx,)).result
