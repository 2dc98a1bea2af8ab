"""Products on tiles, as AMX has: of bf16, whose terms are added in pairs, and of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.loop.access import ScratchBuffer, as_scratch, as_tile, position
from mlc.dialects.loop.compute import Combining
from mlc.dialects.loop.interleaved import Words, interleaved, words_of_runs
from mlc.dialects.loop.kernel import For, InKernel, Kernel
from mlc.dialects.loop.types import ScratchType
from mlc.dialects.tensor.orders import pairs
from mlc.ir.affine import AffineMap, step_along
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import ScalarType, Type, bf16, f32, i8, i32

if TYPE_CHECKING:
    from mlc.ir.interp import Frame

SIDE = 16
"""The rows and columns of a tile of sums, and the words of a row of terms."""


def terms_of_block(dtype: ScalarType) -> int:
    """The terms of a row of a tile, 64 bytes."""
    return int(SIDE * i32.width // dtype.width)


def distance_of_rows(map: AffineMap, buffer: Value, m: int, k: int, terms: Dim) -> int | None:
    """The elements between neighbouring rows, those along m, of tiles that are loaded from a buffer, with a block of
    terms along k in each of their rows; None if there is no such distance."""
    place = position(map, buffer)
    step = step_along(place, m)
    dtype = buffer.type.dtype
    found = words_of_runs(place, k, terms, dtype) if isinstance(terms, int) else None
    in_rows = found is not None and found[0] % terms_of_block(dtype) == 0 and found[1] == i32.width // dtype.width
    return step if in_rows and isinstance(step, int) and step > 0 else None


class ContractPairs(Combining, name="loop.contract_pairs"):
    """result[p] = acc[p] + (the sum of lhs * rhs at even places of the block of dimension dim + that at odd places)

    Each of the two sums is a chain of fused multiply-adds. Subnormal numbers count as zeros with their signs: those of
    factors, of every step, and of the total. A processor with AMX does so for a block of 32 terms.
    """

    acc: Value
    lhs: Value
    rhs: Value
    dim: int

    def infer(self) -> Type:
        acc, lhs, rhs = as_tile(self, self.acc, f32), as_tile(self, self.lhs, bf16), as_tile(self, self.rhs, bf16)
        if not {*lhs.dims, *rhs.dims} <= {*acc.dims, self.dim} or self.dim in acc.dims:
            self.fail(f"{acc} does not span the dimensions of its factors", code="MLC0151")
        return acc

    def used_dims(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        acc, factors = self.terms(frame)
        return np.expand_dims(pairs(acc, *factors), self.dim)


class ContractPanels(InKernel, name="loop.contract_panels", pure=False):
    """sums[p] = sums[p] + the sum over dimension dim of the panels, in blocks of 32, as contract_pairs adds each

    Panels may also have bytes, in blocks of 64, with signs but for those that are `unsigned`; sums wrap as i32 does.

    It is done for all points of both panels, and `from_zero` without what sums has before. The panels are interleaved
    along dim: `rows` has the terms of a row one after the other, `columns` words of neighbouring columns side by side.

    Rows may be read where they are, in `loop.words`. Then the last tile of them overlaps the one before, so that the
    sum is from zero. With `pitch` = p, the last two dimensions of rows are one: a point of the first of these is p
    points of the second away from the next one, and the points between them are multiplied as well.

    With `prefetch`, what follows the columns in memory, which are read where they are, is prefetched meanwhile.
    """

    sums: Value
    rows: Value
    columns: Value
    dim: int
    from_zero: bool = False
    pitch: int = 0
    prefetch: bool = False
    unsigned: str = "none"
    enums = {"unsigned": ("none", "rows", "columns", "both")}

    @property
    def block(self) -> int:
        """The terms of a block."""
        return terms_of_block(self.rows.type.dtype)

    def is_unsigned(self, panel: str) -> bool:
        """Whether the bytes of a panel, `rows` or `columns`, have no sign."""
        return self.unsigned in (panel, "both")

    def infer(self) -> tuple[Type, ...]:
        sums = as_scratch(self, self.sums)
        rows, columns = (self.panel(v) for v in (self.rows, self.columns))
        column = columns.dims[-1]
        if rows.dims[-1] != self.dim or column == self.dim or column in rows.dims:
            self.fail(f"{rows} and {columns} are not rows of terms and columns side by side", code="MLC0151")
        dtype = f32 if rows.dtype == bf16 else i32
        if (sums.dtype, columns.dtype) != (dtype, rows.dtype) or sums.dims[-1] != column or (
                {*sums.dims} != {*rows.dims, *columns.dims} - {self.dim}):
            self.fail(f"{sums} is no memory for the sums of {rows} and {columns}", code="MLC0151")
        if self.unsigned != "none" and dtype != i32:
            self.fail(f"the {self.unsigned} of {rows} and {columns} have signs", code="MLC0151")
        return ()

    def whole_points(self, d: int) -> int:
        if d == self.rows.type.dims[-2]:
            return self.pitch or (1 if isinstance(self.rows.op, Words) else SIDE)
        return SIDE if d == self.columns.type.dims[-1] else 1

    def panel(self, v: Value) -> ScratchType:
        """The type of a panel, an operand."""
        if interleaved(self, v, reversed=False) != self.dim or v.type.dtype not in (bf16, i8):
            self.fail(f"{v.type} is no panel of bf16 or bytes that is interleaved along d{self.dim}", code="MLC0151")
        return as_scratch(self, v)

    def verify_op(self) -> None:
        super().verify_op()
        kernel = self.enclosing(Kernel)
        sizes = [kernel.domain[self.dim]]
        around = self.parent_op
        while isinstance(around, For):
            sizes += [around.step] if around.dim == self.dim else []
            around = around.parent_op
        if self.dim < kernel.parallel or any(not isinstance(n, int) or n % self.block for n in sizes):
            self.fail(f"slices of {sizes[-1]} terms along d{self.dim} are no whole blocks of {self.block}",
                      code="MLC0151")
        if self.prefetch and not isinstance(self.columns.op, Words):
            self.fail(f"prefetches what follows {self.columns.type}, which is not read where it is", code="MLC0151")
        self.verify_rows(kernel)

    def verify_rows(self, kernel: Kernel) -> None:
        """Check that tiles of rows that are read where they are can be loaded from there."""
        words = self.rows.op
        if not isinstance(words, Words):
            if self.pitch:
                self.fail(f"pitch = {self.pitch} of rows that are not read where they are", code="MLC0151")
            return
        lead, m = self.rows.type.dims[-3:-1] if self.pitch else (-1, self.rows.type.dims[-2])
        distance = distance_of_rows(words.map, words.buffer, m, self.dim, kernel.domain[self.dim])
        if distance is None:
            self.fail(f"rows along d{m} of {words.buffer.type} are not read where they are", code="MLC0151")
        if not self.from_zero:
            self.fail("adds rows that are read where they are, some of them twice: it begins from zero", code="MLC0151")
        if self.pitch and (step_along(position(words.map, words.buffer), lead) != distance * self.pitch
                           or not self.is_whole(m, self.pitch) or self.sums.type.dims[-3:-1] != (lead, m)):
            self.fail(f"pitch = {self.pitch} is not the distance along d{lead} in points of d{m}", code="MLC0151")

    def is_whole(self, d: int, most: int) -> bool:
        """Whether a block has all points of a dimension, which are so many at most."""
        kernel = self.enclosing(Kernel)
        extent = kernel.domain[d]
        return isinstance(extent, int) and extent <= min(most, kernel.schedule.tile[d])

    def interpret(self, frame: Frame) -> list[Any]:
        sums, rows, columns = frame.all(self.operands)
        place = []
        for d, first, size in zip(sums.dims, sums.first, sums.elements.shape):
            panel = rows if d in rows.dims else columns
            i = panel.dims.index(d)
            start = panel.first[i] - first
            place.append(slice(start, min(size, start + panel.elements.shape[i])))
        here = tuple(place)
        total = np.zeros_like(sums.elements[here]) if self.from_zero else sums.elements[here]
        lhs, rhs = (self.aligned(panel, sums.dims, total.shape) for panel in (rows, columns))
        for k in range(0, lhs.shape[-1], self.block):
            total = self.added(total, lhs[..., k: k + self.block], rhs[..., k: k + self.block])
        sums.elements[here] = total
        return []

    def added(self, total: Any, lhs: Any, rhs: Any) -> Any:
        """Sums with those of a block of terms, which lie along the last axis."""
        if self.rows.type.dtype == bf16:
            return pairs(total, lhs, rhs)
        lhs, rhs = (x.view(np.uint8 if self.is_unsigned(panel) else np.int8).astype(np.int32)
                    for panel, x in (("rows", lhs), ("columns", rhs)))
        return total + (lhs * rhs).sum(-1, dtype=np.int32)

    def aligned(self, panel: ScratchBuffer, dims: Sequence[int], shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """The elements of a panel along the dimensions of the sums, of which it may lack some, and then its terms."""
        own = [d for d in dims if d in panel.dims]
        x = panel.elements.transpose(*(panel.dims.index(d) for d in (*own, self.dim)))
        x = x[tuple(slice(n) for d, n in zip(dims, shape) if d in own)]
        return np.expand_dims(x, [i for i, d in enumerate(dims) if d not in own])
