"""Lowering of scf.parallel to a function of an iteration range, which the runtime hook @mlc_parallel may multithread.

    NAME_part(env, begin, end)     runs iterations begin to end - 1, numbered in row-major order
    @mlc_parallel                  the address of `void parallel(part, env, count)`, which calls `part` on ranges that
                                   make up [0, count) and returns when all are done; if null, one call runs all

`env` points to the captured values, stored in memory of the caller; constants are cloned instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.dialects import llvm, scf
from mlc.dialects.builtin import Module
from mlc.ir.abi import HOOK
from mlc.ir.core import Region, Symbol, Value, at_end
from mlc.ir.diag import Loc
from mlc.ir.types import i64
from mlc.passes.analysis.free_values import free_values
from mlc.passes.lower_to_llvm.lowering import Lowering, Number, known, pool_constants, rule


@rule(scf.Parallel)
def _parallel(low: Lowering, op: scf.Parallel) -> None:
    """if mlc_parallel: mlc_parallel(part, env, count) else: part(env, 0, count)"""
    trips = [_trips(low, *(low.number(v) for v in bounds)) for bounds in zip(op.lower, op.upper, op.step)]
    count: Number = 1
    for n in trips:
        count = low.times(count, n)
    outside = free_values(op)
    env = _Environment([*low.all(outside), *low.all(op.operands), *map(low.value, trips)])
    packed, number, zero = env.store(low), low.value(count), llvm.constant(0, i64)
    part = _part(low, op, outside, env)

    alone, shared, after = low.new_block(), low.new_block(), low.new_block()
    hook = llvm.AddressOf(_hook(low.module, low.loc), llvm.ptr).result
    llvm.CondBr(llvm.ICmp("eq", llvm.Load(hook, i64, 8).result, zero).result, (), (), alone, shared)
    with at_end(alone, low.loc):
        llvm.call(part, [packed, zero, number])
        llvm.Br((), after)
    with at_end(shared, low.loc):
        share, address = llvm.Load(hook, llvm.ptr, 8).result, llvm.AddressOf(Symbol(part.sym_name), llvm.ptr).result
        llvm.Call(None, (share, address, packed, number), (), ())
        llvm.Br((), after)
    low.block = after


def _trips(low: Lowering, lower: Number, upper: Number, step: Number) -> Number:
    """max(0, ceil((upper - lower) / step))"""
    if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
        return len(range(lower, upper, step))
    distance = upper if lower == 0 else llvm.Sub(low.value(upper), low.value(lower)).result
    if step != 1:
        distance = low.plus(distance, low.plus(step, -1))
        distance = llvm.SDiv(low.value(distance), low.value(step)).result
    return llvm.SMax(low.value(distance), llvm.constant(0, i64)).result


class _Environment:
    """Captured values of a part: constants and addresses of globals are cloned, others are passed in memory."""

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.members = list(dict.fromkeys(v for v in values if not isinstance(v.op, llvm.Constant | llvm.AddressOf)))
        self.type = llvm.StructType(tuple(v.type for v in self.members))

    def _address(self, memory: Value, i: int) -> Value:
        return llvm.GetElementPtr(memory, (), llvm.ptr, self.type, (0, i)).result

    def store(self, low: Lowering) -> Value:
        """The address of the values, stored on the stack of the function."""
        if not self.members:
            return llvm.Zero(llvm.ptr).result
        with low.in_entry():
            memory = llvm.Alloca(llvm.constant(1, i64), llvm.ptr, self.type, 64).result
        for i, value in enumerate(self.members):
            llvm.Store(value, self._address(memory, i))
        return memory

    def load(self, memory: Value) -> list[Value]:
        """Load the values in a part, which gets this address."""
        held = {v: llvm.Load(self._address(memory, i), v.type).result for i, v in enumerate(self.members)}
        return [held[v] if v in held else _copy(v) for v in self.values]


def _copy(value: Value) -> Value:
    """Clone a constant."""
    assert value.op is not None
    return value.op.insert_clone({}).results[0]


def _part(low: Lowering, op: scf.Parallel, outside: Sequence[Value], env: _Environment) -> llvm.Func:
    """entry: the counters of iteration `begin`; head(n, counters): the body, then the next iteration, until n = end."""
    part = llvm.function(_fresh(low.module, f"{low.function.sym_name}_part"), [llvm.ptr, i64, i64],
                         names=("env", "begin", "end"), linkage="internal")
    part.loc, part.passthrough = op.loc, ("noinline",)
    low.module.body.block.insert(part, low.function)
    memory, begin, end = part.args
    inner = Lowering(low.module, part, part.body.blocks[0], low.functions, low.loc)
    rank = len(op.lower)
    with inner.at(op):
        values = env.load(memory)
    loaded, bounds = values[: -4 * rank], values[-4 * rank:]
    inner.bind(outside, loaded)
    lower, upper, step, trips = (bounds[i * rank: (i + 1) * rank] for i in range(4))
    first, head, done = inner.new_block(), inner.new_block([i64] * (rank + 1)), inner.new_block()
    with inner.at(op):
        llvm.CondBr(llvm.ICmp("slt", begin, end).result, (), (), first, done)
    inner.block = first
    with inner.at(op):
        llvm.Br((begin, *_counters(inner, begin, lower, step, trips)), head)
    inner.block = head
    n, *counters = head.args
    inner.region(op.body, counters)
    with inner.at(op):
        following = llvm.Add(n, llvm.constant(1, i64)).result
        more = llvm.ICmp("slt", following, end).result
        llvm.CondBr(more, (following, *_next(counters, lower, upper, step)), (), head, done)
    blocks = part.body.blocks
    blocks.append(blocks.pop(next(i for i, b in enumerate(blocks) if b is done)))
    with at_end(done, op.loc):
        llvm.Return(None)
    pool_constants(part)
    return part


def _counters(low: Lowering, n: Value, lower: Sequence[Value], step: Sequence[Value],
              trips: Sequence[Value]) -> list[Value]:
    """The counters of iteration `n`."""
    positions: list[Value] = []
    for count in reversed(trips[1:]):
        positions.append(llvm.URem(n, count).result)
        n = llvm.UDiv(n, count).result
    positions.append(n)
    return [low.value(low.plus(known(a), low.times(p, known(s)))) for a, p, s in zip(lower, reversed(positions), step)]


def _next(counters: Sequence[Value], lower: Sequence[Value], upper: Sequence[Value],
          step: Sequence[Value]) -> list[Value]:
    """The counters of the next iteration: a counter that reaches its bound wraps, and carries into the one before."""
    out: list[Value] = []
    moves: Value | None = None
    for d in reversed(range(len(counters))):
        moved = llvm.Add(counters[d], step[d]).result
        if moves is not None:
            moved = llvm.Select(moves, moved, counters[d]).result
        if d == 0:
            return [moved, *out]
        over = llvm.ICmp("sge", moved, upper[d]).result
        out.insert(0, llvm.Select(over, lower[d], moved).result)
        moves = over
    raise AssertionError("scf.parallel has no dimensions")


def _hook(module: Module, loc: Loc) -> Symbol:
    """The name of @mlc_parallel, which is declared in the module if it is not yet."""
    block = module.body.block
    if not any(isinstance(op, llvm.Global) and op.sym_name == HOOK for op in block):
        block.insert(llvm.Global.make([], {
            "sym_name": Symbol(HOOK), "global_type": i64, "linkage": "external", "value": np.zeros((), np.int64),
            "constant": None, "alignment": 8, "addr_space": 0}, [], [Region()], loc=loc), block.first)
    return Symbol(HOOK)


def _fresh(module: Module, name: str) -> str:
    """`name`, with a number appended if a symbol of the module has that name."""
    taken = {op.attrs.get("sym_name") for op in module.body.block}
    return name if name not in taken else next(n for i in range(1, len(taken) + 1) if (n := f"{name}_{i}") not in taken)
