"""Have collectives be on their way while a rank computes.

takes  PARTITIONED
gives  PARTITIONED, where collectives may be pairs of a start and a `shard.wait`, and the operations of a function that
       has any are in the order in which they run: what is computed between two of these is a segment
why    a network carries messages while processors compute, so that a step takes the longer of the two and not the sum

A start is as soon as its operand is there, a wait where its result is first used, and operations that do not need it
come in between (schedule.py). All ranks have the same program, so that their collectives stay in one order. An order
is taken only if a model of the machine says that it saves time: `flops` operations, and bytes of `memory` and of the
`network`, in a second, nanoseconds of `latency` for each message and of the `call` of a segment. What one segment
computes for another is written and read: short segments are joined, and what reads much of one is part of it. At most
`ahead` bytes of results are awaited at once, unless one of them is longer: all gathered weights would not fit.

Where processors copy what is sent, as within a host, there is nothing to hide: the pass is for ranks on several hosts,
or for those who ask (`mlc.distributed.mesh`). tools/bench/results/overlap.md has figures of both.
"""

from __future__ import annotations

from mlc.dialects import shard
from mlc.dialects.func import Func
from mlc.dialects.shard.requests import STARTS
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.passes.analysis.segments import Segments, is_ordered
from mlc.passes.forms import PARTITIONED
from mlc.passes.overlap_collectives.schedule import (
    Begin,
    Item,
    Model,
    Scheduler,
    awaited,
    parts_of,
    seconds,
    with_longer_runs,
    with_readers,
)


def run(module: Op, flops: int = 50 * 10**9, memory: int = 20 * 10**9, network: int = 10**9, latency: int = 20_000,
        call: int = 20_000, ahead: int = 64 << 20) -> None:
    """Overlap the collectives of every function of a rank in which that saves time."""
    model = Model(flops, memory, network, latency * 1e-9, call * 1e-9, ahead)
    for function in list(module.inside(Func)):
        if "partitioned" in function.attrs and "position" not in function.attrs and not is_ordered(function):
            parts = parts_of(Scheduler(function.block, model).run(), model)
            parts = with_longer_runs(with_readers(parts, model), model)
            items = awaited([item for part in parts for item in part.items])
            if any(isinstance(item, Begin) for item in items) and seconds(parts, model) < _unordered(function, model):
                _write(function, items)


def _unordered(function: Func, model: Model) -> float:
    """The seconds of a function whose collectives are carried out one after the other."""
    segments: dict[int, list[Op]] = {}
    for op, number in Segments.of(function).number.items():
        segments.setdefault(number, []).append(op)
    collectives = [op for op in function.block if model.is_begun(op)]
    return sum(map(model.segment, segments.values())) + sum(map(model.transfer, collectives))


def _write(function: Func, items: list[Item]) -> None:
    """Put the operations of a function in an order, with the starts and waits of collectives."""
    end = function.block.terminator
    started: dict[Op, Value] = {}
    for item in items:
        if isinstance(item, Op):
            item.move_before(end)
            continue
        op = item.op
        with before(end, op.loc):
            if isinstance(item, Begin):
                start = STARTS[type(op)].make([op.operands[0]], dict(op.attrs), None, loc=op.loc)
                function.block.insert(start, end)
                started[op] = start.result
            else:
                op.replace_by(shard.Wait(started[op]).result)


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED)
