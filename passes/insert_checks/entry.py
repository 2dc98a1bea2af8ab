"""Instrumentation of an entry function: shadows of the caller's memory, and the report of errors."""

from __future__ import annotations

from mlc.dialects import arith, memref, scf
from mlc.dialects.func import Func
from mlc.ir.core import Value, at_end, before
from mlc.ir.types import MemRefType, i64
from mlc.passes.insert_checks import shadow
from mlc.passes.insert_checks.numbers import product, sizes, value
from mlc.passes.insert_checks.shadow import UNWRITTEN, WRITTEN
from mlc.passes.insert_checks.traps import RECORD, Traps

NOTHING = -1
"""Initial value of an error record, before anything is reported."""


class Entry:
    """An entry function. Its last memrefs are the results, the arena and the error record, in this order."""

    def __init__(self, function: Func, traps: Traps) -> None:
        self.function = function
        self.traps = traps
        memories = [a for a in function.args if isinstance(a.type, MemRefType)]
        count = sum(a < 0 for a in function.attrs.get("aliases", ()))
        *memories, self.arena, self.errors = memories
        self.results = memories[len(memories) - count:]
        self.inputs = memories[:len(memories) - count]
        self.shadows: dict[Value, Value] = {}

    def open(self) -> tuple[Value, dict[Value, Value]]:
        """The record that checks report to, and shadows: arguments are initialised, results and the arena are not.

        Checks have a record of their own, so that their report overrides an error that is a consequence.
        """
        assert self.function.block.first is not None
        with before(self.function.block.first, self.function.loc):
            self.record = memref.Alloca(RECORD).result
            memref.Store(arith.constant(NOTHING, i64), self.record, (value(0),))
            for memory in (*self.inputs, self.errors):
                self.shadows[memory] = shadow.allocate(memory, WRITTEN)
            for memory in (*self.results, self.arena):
                self.shadows[memory] = shadow.allocate(memory, UNWRITTEN)
        return self.record, self.shadows

    def close(self) -> None:
        """Before the return: check that results are initialised, unless the program has failed and need not write them,
        free the shadows, and report what is recorded."""
        with before(self.function.block.terminator, self.function.loc):
            failed = memref.Load(self.errors, (value(0),)).result
            branch = scf.branch(arith.CmpI("eq", failed, arith.constant(NOTHING, i64)).result, otherwise=False)
            with at_end(branch.then_body.block):
                for memory in self.results:
                    self._whole(memory)
                scf.Yield(())
            for marks in self.shadows.values():
                memref.Dealloc(marks)
            recorded = memref.Load(self.record, (value(0),)).result
            branch = scf.branch(arith.CmpI("ne", recorded, arith.constant(NOTHING, i64)).result, otherwise=False)
            with at_end(branch.then_body.block):
                memref.Store(recorded, self.errors, (value(0),))
                scf.Yield(())

    def _whole(self, memory: Value) -> None:
        """Report the first uninitialised element of a result."""
        marks = self.shadows[memory]
        place = self.traps.place(self.function, f"a result {memory.type} is not written at element")
        count = product(sizes(marks))
        row = memref.reinterpret(marks, 0, [count], [1])
        loop = scf.loop(value(0), value(count), value(1), (), "element")
        with at_end(loop.block):
            mark = memref.Load(row, (loop.counter,)).result
            branch = scf.branch(arith.CmpI("ne", mark, arith.constant(WRITTEN, mark.type)).result, otherwise=False)
            with at_end(branch.then_body.block):
                self.traps.report(self.record, place, loop.counter)
                scf.Yield(())
            scf.Yield(())
