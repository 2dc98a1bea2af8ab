"""The checks of one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from mlc.dialects import amx, arith, func, memref, scf, vector
from mlc.dialects.func import Func
from mlc.ir.core import Block, Op, Region, Value, after, at_end, before
from mlc.ir.types import FloatType, MemRefType, Type, VectorType, element, i1
from mlc.passes.insert_checks import bounds, shadow
from mlc.passes.insert_checks.entry import Entry
from mlc.passes.insert_checks.numbers import Condition, every, opposite, truth, value
from mlc.passes.insert_checks.overflow import check_overflow
from mlc.passes.insert_checks.shadow import UNWRITTEN, WRITTEN
from mlc.passes.insert_checks.traps import Traps

MASKED = (vector.MaskedLoad, vector.MaskedStore, vector.Gather)
TILES = (amx.TileLoad, amx.TileStore)
WHOLE = (memref.Load, memref.Store, memref.AtomicRMW, vector.Load, vector.Store, *TILES)
STORES = (memref.Store, vector.Store, vector.MaskedStore)


class Checker:
    """One function with an error record.

    shadows  the shadow of every memref; None for constants, which are initialised
    valid    for each view, whether it lies within its source, if that is not static
    """

    def __init__(self, function: Func, extended: Mapping[str, Value], traps: Traps) -> None:
        self.function = function
        self.ops = list(function.walk())
        self.extended = extended
        self.traps = traps
        self.shadows: dict[Value, Value | None] = {}
        self.valid: dict[Value, Condition] = {}
        self.entry = Entry(function, traps) if function.is_public else None
        if self.entry is not None:
            self.errors, shadows = self.entry.open()
            self.shadows.update(shadows)
        else:
            self.errors = extended[function.sym_name]
            memories = [a for a in function.args if isinstance(a.type, MemRefType) and a is not self.errors]
            half = len(memories) // 2
            self.shadows.update(zip(memories[:half], memories[half:]))

    def places(self) -> None:
        """Insert the checks of accesses, views and index arithmetic."""
        original = frozenset(self.ops)
        for block in [b for op in self.ops for r in op.regions for b in r.blocks]:
            check_overflow(block, original, self.traps, self.errors)
        for op in self.ops[1:]:
            self._check(op)

    def values(self) -> None:
        """Insert the checks that elements are initialised before they are read."""
        for op in self.ops:
            if isinstance(op, (*WHOLE, *MASKED)) and (marks := self.shadows[_memory(op)]) is not None:
                with after(op):
                    self._elements(op, marks)

    def results(self) -> None:
        """Insert the checks that results are initialised."""
        if self.entry is not None:
            self.entry.close()

    def _check(self, op: Op) -> None:
        if isinstance(op, WHOLE):
            self._whole(op)
        elif isinstance(op, MASKED):
            self._masked(op)
        elif isinstance(op, memref.ViewLike):
            self._view(op)
        elif isinstance(op, memref.Allocate):
            with after(op):
                marks = shadow.like(op, list(op.operands)).results[0]
                shadow.fill(marks, UNWRITTEN)
                self.shadows[op.result] = marks
        elif isinstance(op, memref.Dealloc):
            with after(op):
                if (found := self.shadows[op.memref]) is not None:
                    memref.Dealloc(found)
        elif isinstance(op, memref.GetGlobal):
            self.shadows[op.result] = None
        elif isinstance(op, func.Call):
            self._call(op)
        else:
            carried = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)]
            if any(isinstance(v.type, MemRefType) for v in carried):
                op.fail("a memref that control flow selects cannot be checked", code="MLC0481",
                        hint="use the same memref on all paths")

    # -- accesses -------------------------------------------------------------------------------------------------
    def _whole(self, op: Any) -> None:
        """Guard an unmasked access by its bounds check."""
        memory = _memory(op)
        with before(op):
            inside, at = bounds.of_access(op, memory)
            safe = every([self.valid.get(memory, True), *inside])
            wrong = bounds.first_wrong(inside, at)
            aligned = bounds.aligned(op, memory)
            if aligned is not True:
                self._report_if(opposite(truth(aligned)), op, f"{op.name} of {memory.type} not aligned to "
                                f"{op.alignment} bytes, at index", at[-1])
                safe = every([safe, aligned])
        place = self.traps.place(op, f"{_access(op)} outside of {memory.type}, at index") if safe is not True else 0
        self._where(op, safe, lambda: self.traps.report(self.errors, place, wrong))

    def _masked(self, op: Any) -> None:
        """Restrict the mask of an access to the lanes within bounds."""
        at = next(i for i, v in enumerate(op.operands) if v is op.mask)
        with before(op):
            inside = bounds.of_lanes(op, self.valid.get(op.base, True))
            bad = arith.AndI(op.mask, opposite(inside)).result
            self._report_if(vector.Reduction("or", bad).result, op,
                            f"{_access(op)} outside of {op.base.type}, at index", op.indices[-1])
            op.set_operand(at, arith.AndI(op.mask, inside).result)

    def _elements(self, op: Any, marks: Value) -> None:
        """Effect of an access on the shadow: a load reports uninitialised elements, a store marks them initialised."""
        indices = op.indices
        if isinstance(op, TILES):
            if isinstance(op, amx.TileStore):            # what a tile has beyond the domain is loaded, and not used
                shadow.mark_tile(op, marks)
            return
        if isinstance(op, STORES):
            kind = shadow.mark_type(op.value.type)
            zero = arith.constant(WRITTEN, kind)
            if isinstance(op, memref.Store):
                memref.Store(zero, marks, indices)
            elif isinstance(op, vector.Store):
                vector.Store(zero, marks, indices)
            else:
                vector.MaskedStore(marks, indices, op.mask, zero)
            return
        kind = shadow.mark_type(op.result.type)
        if isinstance(kind, VectorType):
            zero = arith.constant(WRITTEN, kind)
            if isinstance(op, vector.Load):
                marked = vector.Load(marks, indices, kind).result
            elif isinstance(op, vector.MaskedLoad):
                marked = vector.MaskedLoad(marks, indices, op.mask, zero).result
            else:
                marked = vector.Gather(marks, indices, op.lanes_at, op.mask, zero).result
            marked = vector.Reduction("or", marked).result
        else:
            marked = memref.Load(marks, indices).result
        unwritten = arith.CmpI("ne", marked, arith.constant(WRITTEN, marked.type)).result
        at = indices[-1] if indices else value(0)
        self._report_if(unwritten, op, f"{op.name} of {_memory(op).type} reads uninitialised memory, at index", at)

    def _report_if(self, condition: Value, op: Op, message: str, at: Value) -> None:
        branch = scf.branch(condition, otherwise=False)
        with at_end(branch.then_body.block):
            self.traps.report(self.errors, self.traps.place(op, message), at)
            scf.Yield(())

    def _where(self, op: Op, safe: Condition, otherwise: Callable[[], None]) -> None:
        """Execute an operation only if it is safe; otherwise its results are 0."""
        if safe is True:
            return
        with before(op):
            types = tuple(r.type for r in op.results)
            branch = scf.If(truth(safe), Region(Block()), Region(Block()), types)
        with at_end(branch.else_body.block, op.loc):
            otherwise()
            scf.Yield(tuple(zero(t) for t in types))
        for old, new in zip(op.results, branch.results):
            new.name = old.name
            old.replace_by(new)
        op.detach()
        with at_end(branch.then_body.block, op.loc):
            branch.then_body.block.insert(op)
            scf.Yield(tuple(op.results))

    # -- views and calls ------------------------------------------------------------------------------------------
    def _view(self, op: Any) -> None:
        with before(op):
            within = every([self.valid.get(op.source, True), *bounds.of_view(op)])
            if within is not True:
                self.valid[op.result] = within
                at = op.byte_shift if isinstance(op, memref.View) else value(0)
                self._report_if(opposite(truth(within)), op, f"{op.name} outside of {op.source.type}, at", at)
        with after(op):
            marks = self.shadows[op.source]
            self.shadows[op.result] = None if marks is None else shadow.like(op, [marks, *op.operands[1:]]).results[0]

    def _call(self, op: func.Call) -> None:
        """Pass shadows to a function of this module; memory passed to an external one counts as initialised."""
        memories = [v for v in op.args if isinstance(v.type, MemRefType)]
        constants: list[Value] = []
        if str(op.callee) in self.extended:
            with before(op):
                marks = []
                for v in memories:
                    found = self.shadows[v]
                    if found is None:
                        found = shadow.allocate(v, WRITTEN)
                        constants.append(found)
                    marks.append(found)
            op.set_operands([*op.operands, *marks, self.errors])
            with after(op):
                for v in constants:
                    memref.Dealloc(v)
        else:
            with after(op):
                for v in memories:
                    if (found := self.shadows[v]) is not None:
                        shadow.fill(found, WRITTEN)
        with before(op):
            safe = every(self.valid.get(v, True) for v in memories)
        self._where(op, safe, lambda: None)


def _access(op: Any) -> str:
    """An access for messages: the operation, and of a vector the number of elements."""
    type = (op.result if op.results else op.value).type
    return f"{op.name} of {prod(type.shape)} elements" if isinstance(type, VectorType) else str(op.name)


def _memory(op: Any) -> Value:
    """The memref that an operation accesses."""
    found: Value = op.base if isinstance(op, vector.Access | amx.Access) else op.memref
    return found


def zero(type: Type) -> Value:
    """0 of an element type, or a vector or tile of them."""
    if isinstance(type, amx.TileType):
        return amx.TileZero(type).result
    kind = element(type)
    return arith.constant(0.0 if isinstance(kind, FloatType) else False if kind == i1 else 0, type)
