"""Have functions that may fail do so before they write over an argument.

takes  LOOP
gives  LOOP: the same results; a public function runs what may write over an argument only if nothing has failed before
why    new elements of a tensor need no memory of their own, and yet a call that fails has changed nothing; as long as
       all functions are in one module, which tells what a call may write and whether it may fail

The attribute `updates` becomes `overwrites` (ir/abi.py), without the results that are written before the last operation
that may fail. In a training step that is a check of the targets, and no update comes before it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlc.dialects import arith, func, memref, scf
from mlc.dialects.builtin import Module
from mlc.dialects.func import UPDATES, Func
from mlc.dialects.memref.view import ViewLike
from mlc.ir.abi import OVERWRITES
from mlc.ir.core import Block, Op, Region, Value, at_end, before
from mlc.ir.passes import Pass
from mlc.ir.types import i64, index
from mlc.passes.forms import LOOP

NOTHING_FAILED = -1
"""The error record of a call as long as nothing has failed."""


def run(module: Module) -> None:
    """Guard the updates of the public functions of a module."""
    functions: dict[str, Func] = {f.sym_name: f for f in func.functions(module)}
    for function in functions.values():
        updates = function.attrs.pop(UPDATES, None)
        if updates is not None and function.is_public:
            over = _overwrites(function, updates, functions)
            if any(i != -1 for i in over):
                function.attrs[OVERWRITES] = over


def _overwrites(function: Func, updates: tuple[int, ...], functions: Mapping[str, Func]) -> tuple[int, ...]:
    """The results that may be written over arguments, once what writes them is guarded."""
    block, aliases = function.block, function.attrs["aliases"]
    ops = list(block)
    place = {op: n for n, op in enumerate(ops)}
    *rest, errors = function.args[:-2] if "kernels" in function.attrs else function.args
    own = [n for n, at in enumerate(aliases) if at < 0]
    buffers = dict(zip(own, rest[-1 - len(own):-1]))       # the last one is the arena
    checks = [place[block.ancestor_of(op)] for op in _recording(errors, functions)]
    first = {n: min((place[block.ancestor_of(op)] for op in _users(buffers[n])), default=len(ops))
             for n, at in enumerate(updates) if at != -1}
    kept = {n for n, at in first.items() if at > max(checks, default=-1)}
    if kept and checks:
        start = min(first[n] for n in kept)
        made = [op.memref.op for op in ops[start:-1] if isinstance(op, memref.Dealloc)]
        _guard(ops[min([start, *(place[op] for op in made if op is not None)]):-1], errors)
    return tuple(at if n in kept else -1 for n, at in enumerate(updates))


def _users(buffer: Value) -> list[Op]:
    """The operations that access a buffer."""
    return [user for op in buffer.users for user in (_users(op.results[0]) if isinstance(op, ViewLike) else [op])]


def _recording(errors: Value, functions: Mapping[str, Func]) -> list[Op]:
    """The operations that may record an error; calls of functions which do."""
    return [op for op in errors.users if not isinstance(op, func.Call) or any(
        v is errors and _records(functions[op.callee], n, functions) for n, v in enumerate(op.args))]


def _records(function: Func, number: int, functions: Mapping[str, Func]) -> bool:
    """Whether a function may record an error in an argument."""
    return function.is_declaration or bool(_recording(function.args[number], functions))


def _guard(ops: list[Op], errors: Value) -> None:
    """Have operations run only if no error is recorded."""
    with before(ops[0]):
        record = memref.Load(errors, (arith.constant(0, index),)).result
        body = Block()
        scf.If(arith.CmpI("eq", record, arith.constant(NOTHING_FAILED, i64)).result, Region(body), Region(), ())
    with at_end(body, ops[0].loc):
        end = scf.Yield(())
    for op in ops:
        op.move_before(end)


PASS = Pass(run, takes=LOOP, gives=LOOP)
