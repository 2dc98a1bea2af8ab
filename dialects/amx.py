"""amx: products of tiles, by the Advanced Matrix Extensions of x86; upstream's names, syntax and semantics.

A tile is a matrix in a register, of up to 16 rows of 64 bytes. dialects/llvm/tiles.py has the meaning of the LLVM
intrinsics that the operations become.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects.memref import check_indices, strides_of
from mlc.dialects.tensor.orders import pairs
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import TYPE_READERS, MemRefType, ScalarType, Type, bf16, f32, i8, i32, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser

Array = np.ndarray[Any, Any]

ROWS, ROW_BYTES = 16, 64
"""Most rows of a tile, and bytes of each."""


@dataclass(frozen=True, slots=True)
class TileType(Type):
    """`!amx.tile<16x32xbf16>`: a matrix in a register."""

    shape: tuple[int, int]
    dtype: ScalarType
    dialect: ClassVar[str] = "amx"

    def text(self, generic: bool = False) -> str:
        return f"!amx.tile<{self.shape[0]}x{self.shape[1]}x{self.dtype}>"


def _read_tile(parser: Parser) -> Type:
    parser.expect("<")
    shape, dtype = parser.shape()
    parser.expect(">")
    if len(shape) != 2 or not all(isinstance(n, int) for n in shape):
        parser.fail("a tile has rows and columns, such as 16x32xbf16", "MLC0206")
    return TileType((shape[0], shape[1]), dtype)


TYPE_READERS["amx.tile"] = _read_tile

FACTOR, SUMS = TileType((ROWS, 32), bf16), TileType((ROWS, 16), f32)
"""Tiles of terms, in rows or in words of two for each column, and of their sums."""
BYTES, SUMS_OF_BYTES = TileType((ROWS, 64), i8), TileType((ROWS, 16), i32)
"""The same of bytes, of which a word has four."""


def multiply_bf16(a: Array, b: Array, c: Array) -> Array:
    """The meaning of `TileMulF`: c + a x b, of rows a of terms and rows b of words for each column."""
    return pairs(c, a[:, None, :], _columns(b, 2)[None])


def multiply_bytes(a: Array, b: Array, c: Array) -> Array:
    """The meaning of `TileMulI`: c + a x b of bytes that are extended already, modulo 2^32."""
    products = a[:, None, :].astype(np.int32) * _columns(b, 4)[None].astype(np.int32)
    return np.asarray(c + products.sum(-1, dtype=np.int32))


def _columns(b: Array, word: int) -> Array:
    """The terms of each column, of rows of words of so many."""
    return b.reshape(b.shape[0], -1, word).transpose(1, 0, 2).reshape(-1, word * b.shape[0])


def _tile(op: Op, type: Type) -> TileType:
    if not isinstance(type, TileType) or not 0 < type.shape[0] <= ROWS or (
            not 0 < type.shape[1] * type.dtype.width <= 8 * ROW_BYTES):
        op.fail(f"{type} is no tile of up to {ROWS} rows of {ROW_BYTES} bytes", code="MLC0164")
    return type


class TileZero(Op, name="amx.tile_zero", pure=True):
    """result[i, j] = 0"""

    type: ResultType
    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        return _tile(self, self.results[0].type)

    def ref(self) -> Any:
        type = self.result.type
        return np.zeros(type.shape, to_numpy(type.dtype))


class Access(Op):
    """An access of the rows of a tile, which lie along the last dimension of memory, one for each index before it.

    Elements of memory may be wider than those of the tile, such as words of two bf16.
    """

    pure = False
    if TYPE_CHECKING:                                    # each class declares them, in its own order
        @property
        def base(self) -> Value: ...
        @property
        def indices(self) -> tuple[Value, ...]: ...

    def check_access(self, type: Type) -> TileType:
        """The type of the tile that is moved, `type`; IRError if memory has none there."""
        tile = _tile(self, type)
        memory: MemRefType = check_indices(self, self.base, self.indices)
        if memory.rank < 2 or strides_of(memory)[-1] != 1 or tile.shape[1] * tile.dtype.width % memory.dtype.width:
            self.fail(f"{memory} has no rows of {tile}", code="MLC0164")
        return tile

    def rows(self, frame: Frame, type: TileType) -> Array:
        """The elements in memory, a view of it."""
        array, (*leading, row, column) = frame[self.base], frame.all(self.indices)
        width = type.shape[1] * type.dtype.width // (8 * array.itemsize)
        matrix = array[tuple(leading)]
        if not (0 <= row <= matrix.shape[0] - type.shape[0] and 0 <= column <= matrix.shape[1] - width):
            self.fail(f"rows from [{row}, {column}] on, of memory of {list(matrix.shape)}", code="MLC0163")
        return np.asarray(matrix[row: row + type.shape[0], column: column + width])


class TileLoad(Access, name="amx.tile_load", reads=True):
    """result[i, j] = base[indices + (i, j)], in the last two dimensions"""

    base: Value
    indices: tuple[Value, ...]
    type: ResultType
    format = "$base `[` $indices `]` attr-dict `:` type($base) `into` type(result)"

    def infer(self) -> Type:
        return self.check_access(self.results[0].type)

    def interpret(self, frame: Frame) -> Any:
        type = self.result.type
        return np.array(self.rows(frame, type), order="C").view(to_numpy(type.dtype))        # a copy: memory may change


class TileStore(Access, name="amx.tile_store"):
    """base[indices + (i, j)] = value[i, j], in the last two dimensions"""

    base: Value
    indices: tuple[Value, ...]
    value: Value
    format = "$base `[` $indices `]` `,` $value attr-dict `:` type($base) `,` type($value)"

    def infer(self) -> tuple[Type, ...]:
        self.check_access(self.value.type)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        rows = self.rows(frame, self.value.type)
        rows[...] = np.ascontiguousarray(frame[self.value]).view(rows.dtype)
        return []


def _sums(op: TileMulF | TileMulI, factor: TileType, sums: TileType) -> TileType:
    """The type of the sums of a product of two tiles of a type; IRError for other operands."""
    if (op.a.type, op.b.type, op.c.type) != (factor, factor, sums):
        op.fail(f"multiplies {factor} and {factor} into {sums}, not {op.a.type} and {op.b.type} into {op.c.type}",
                code="MLC0164")
    if op.a is op.b:
        op.fail("multiplies two tiles, not one by itself: load it twice", code="MLC0164")
    return sums


class TileMulF(Op, name="amx.tile_mulf", pure=True):
    """result[i, j] = c[i, j] + (sum over k of a[i, 2k] * b[k, 2j] + sum over k of a[i, 2k+1] * b[k, 2j+1])

    Each of the sums is a chain of fused multiply-adds from 0 in ascending order. Numbers that are subnormal count as
    zeros with their signs, those of a, b and c and of every step. The factors are two values, since the instruction
    may not be given one register twice.
    """

    a: Value
    b: Value
    c: Value
    format = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)"

    def infer(self) -> Type:
        return _sums(self, FACTOR, SUMS)

    def ref(self, a: Any, b: Any, c: Any) -> Any:
        return multiply_bf16(a, b, c)


class TileMulI(Op, name="amx.tile_muli", pure=True):
    """result[i, j] = c[i, j] + the sum over k and 0 <= q < 4 of a[i, 4k+q] * b[k, 4j+q], modulo 2^32

    The bytes have signs, but those of a with `isZextLhs` and those of b with `isZextRhs`. The factors are two values,
    since the instruction may not be given one register twice.
    """

    a: Value
    b: Value
    c: Value
    isZextLhs: bool | None = None
    isZextRhs: bool | None = None
    format = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)"

    def infer(self) -> Type:
        self.isZextLhs, self.isZextRhs = self.isZextLhs or None, self.isZextRhs or None    # upstream's unit attributes
        return _sums(self, BYTES, SUMS_OF_BYTES)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return "unit" if generic else super().attr_text(name, value, generic)

    def ref(self, a: Any, b: Any, c: Any) -> Any:
        left, right = (x.view(np.uint8 if zext else np.int8) for x, zext in ((a, self.isZextLhs), (b, self.isZextRhs)))
        return multiply_bytes(left, right, c)
