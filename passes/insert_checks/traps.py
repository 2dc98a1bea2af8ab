"""Reports of checks: a trap id among the error sites of the module, and a number, such as the index out of bounds."""

from __future__ import annotations

from mlc.dialects import arith, func, memref
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir import abi
from mlc.ir.core import Op, Symbol, Value, at_end
from mlc.ir.interp import ELEMENTS, TRAP
from mlc.ir.types import MemRefType, i64, index
from mlc.passes.insert_checks.numbers import Number, value

RECORD = MemRefType((1,), i64)
"""The type of an error record."""


class Traps:
    """The trap ids of checked code, numbered after the error sites of the program."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.entries = [f for f in func.functions(module) if abi.is_entry(f)]
        self.names: list[str] = list(max((f.attrs.get("error_sites", ()) for f in self.entries), key=len, default=()))
        self.recorder: Func | None = None

    def place(self, op: Op, message: str) -> int:
        """Allocate a trap at `op` with a message that a number completes; returns its first record."""
        self.names.append(f"{op.loc}: {TRAP}{message}")
        return (len(self.names) - 1) * ELEMENTS

    def report(self, errors: Value, first: Number, at: Value) -> None:
        """Record the trap whose first record is `first`, with a number; the minimum of all reports is kept."""
        if self.recorder is None:
            self.recorder = _recorder(self.module)
        func.Call(Symbol(self.recorder.sym_name), (errors, value(first), at), ())

    def describe(self) -> None:
        """Attach the table of traps to the entries, for their callers."""
        for entry in self.entries:
            entry.attrs["error_sites"] = tuple(self.names)


def _recorder(module: Module) -> Func:
    """@record_trap: errors[0] = min(errors[0], first + number), with the number clamped to what a record can hold."""
    block = module.body.block
    made = func.function(func.free_symbol(block, "record_trap"), [RECORD, index, index],
                         ("errors", "first", "number"), private=True)
    block.insert(made)
    errors, first, at = made.args
    half = ELEMENTS // 2
    with at_end(made.block, made.loc):
        held = arith.MaxSI(arith.MinSI(at, value(half - 1)).result, value(-half)).result
        record = arith.AddI(first, arith.AddI(held, value(half)).result).result
        memref.AtomicRMW(arith.IndexCast(record, i64).result, errors, (value(0),), kind="minu")
        func.Return(())
    made.update_type()
    return made
