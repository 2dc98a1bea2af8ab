"""The order of the operations of a rank in which collectives overlap with computation.

It is a list schedule on two resources, the processor and the network. Of the operations whose operands are there, the
next is one that a collective needs, in the order of the collectives; what no collective needs is computed while one is
awaited, or at the end. The network carries one collective after the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from mlc.dialects.shard.collectives import Collective
from mlc.dialects.shard.requests import STARTS
from mlc.dialects.shard.shift import After
from mlc.dialects.tensor.base import TensorOp
from mlc.ir.core import Block, Op, Value
from mlc.passes.analysis.free_values import free_values
from mlc.passes.analysis.segment_cost import bytes_of, operations


@dataclass(frozen=True)
class Begin:
    """The start of a collective."""

    op: Op


@dataclass(frozen=True)
class Await:
    """The place where a collective is waited for."""

    op: Op


Item = Op | Begin | Await


@dataclass(frozen=True)
class Model:
    """The speed of a rank and of its network, as the options of the pass say."""

    flops: float
    memory: float
    network: float
    latency: float
    call: float
    ahead: int

    def is_begun(self, op: Op) -> bool:
        """Whether an operation is a collective that can be on its way while others run."""
        return type(op) in STARTS

    def seconds(self, op: Op) -> float:
        """The time that a processor takes for an operation."""
        if isinstance(op, Collective):
            return 0.0
        parts = [o for o in op.walk() if isinstance(o, TensorOp)]
        moved = sum(bytes_of(r) for o in parts for r in o.results if o.iteration.has_own_loops)
        return sum(map(operations, parts)) / self.flops + 2 * moved / self.memory

    def transfer(self, op: Op) -> float:
        """The time that a network takes for a collective."""
        assert isinstance(op, Collective)
        return op.messages_sent() * self.latency + op.bytes_sent() / self.network


@dataclass
class Scheduler:
    """A block, and how far its schedule is.

    urgency   for each operation, the number of the first collective that needs it
    missing   for each operation, the number of those that it waits for
    ready     operations that can run, the most urgent one first
    queue     collectives that can begin
    on_way    those that have begun: when they are done, in order
    """

    block: Block
    model: Model
    urgency: dict[Op, int] = field(default_factory=dict)
    missing: dict[Op, int] = field(default_factory=dict)
    users: dict[Op, list[Op]] = field(default_factory=dict)
    ready: list[tuple[int, int, Op]] = field(default_factory=list)
    queue: list[tuple[int, Op]] = field(default_factory=list)
    on_way: list[tuple[float, Op]] = field(default_factory=list)
    now: float = 0.0
    link: float = 0.0

    def run(self) -> list[Item]:
        """The items of the block in order; waits are where results are used first."""
        ops = [op for op in self.block if not op.terminator]
        self._prepare(ops)
        index = {op: i for i, op in enumerate(ops)}
        out: list[Item] = []
        self._release([op for op in ops if not self.missing[op]], index)
        while self.ready or self.queue or self.on_way:
            out += self._begun()
            if not self.ready:
                self.now = max(self.now, self.on_way[0][0])
            else:
                op = heapq.heappop(self.ready)[-1]
                out.append(op)
                self.now += self.model.seconds(op)
                self._finish(op, index)
            while self.on_way and self.on_way[0][0] <= self.now:
                self._finish(self.on_way.pop(0)[1], index)
        return _with_waits(out, self.block)

    def _prepare(self, ops: Sequence[Op]) -> None:
        """Find what each operation needs; those with effects also need the one before."""
        there, effect = set(ops), None
        self.users = {op: [] for op in ops}
        for op in ops:
            needed = dict.fromkeys(v.op for v in free_values(op) if v.op in there)
            if not op.pure:
                needed |= {} if effect is None else {effect: None}
                effect = op
            self.missing[op] = len(needed)
            for other in needed:
                assert other is not None
                self.users[other].append(op)
        number = {op: i for i, op in enumerate(op for op in ops if self.model.is_begun(op))}
        for op in reversed(ops):
            self.urgency[op] = min((number.get(user, self.urgency[user]) for user in self.users[op]),
                                   default=len(number))

    def _begun(self) -> Iterator[Item]:
        """Begin collectives, as many as may be awaited at once."""
        while self.queue:
            op = self.queue[0][1]
            held = sum(_result_bytes(other) for _, other in self.on_way)
            if self.on_way and held + _result_bytes(op) > self.model.ahead:
                return
            heapq.heappop(self.queue)
            self.link = max(self.link, self.now) + self.model.transfer(op)
            self.on_way.append((self.link, op))
            yield Begin(op)

    def _finish(self, op: Op, index: dict[Op, int]) -> None:
        for user in self.users[op]:
            self.missing[user] -= 1
        self._release([user for user in self.users[op] if not self.missing[user]], index)

    def _release(self, ops: Sequence[Op], index: dict[Op, int]) -> None:
        for op in ops:
            if self.model.is_begun(op):
                heapq.heappush(self.queue, (index[op], op))
            else:
                heapq.heappush(self.ready, (self.urgency[op], index[op], op))


def _result_bytes(op: Op) -> int:
    assert isinstance(op, Collective)
    return op.result_bytes()


def _with_waits(items: Sequence[Item], block: Block) -> list[Item]:
    """The items with a wait for each collective, where its result is first used."""
    out: list[Item] = []
    waiting: dict[Value, Op] = {}
    for item in items:
        op = item.op if isinstance(item, Begin) else item
        assert isinstance(op, Op)
        out += [Await(waiting.pop(v)) for v in free_values(op) if v in waiting]
        out.append(item)
        if isinstance(item, Begin):
            waiting[op.results[0]] = op
    return [*out, *map(Await, waiting.values())]


def _computes(item: Item) -> bool:
    return isinstance(item, Op) and not isinstance(item, Collective | After)


def with_longer_runs(items: Sequence[Item], model: Model) -> list[Item]:
    """The items with fewer segments: one that takes less time than its call is joined with the one before, by later
    starts, or with the next, by earlier waits, where that is possible."""
    parts = [list(part) for _, part in groupby(items, _computes)]
    at = 0
    while at < len(parts):
        run = parts[at]
        if at == 0 or not _computes(run[0]) or sum(model.seconds(op) for op in run if isinstance(op, Op)) >= model.call:
            at += 1
            continue
        gap, after = parts[at - 1], parts[at + 1] if at + 1 < len(parts) else []
        if all(isinstance(item, Begin) for item in gap) and not _awaits(after, gap):
            earlier = parts[at - 2] if at > 1 else []
            parts[max(0, at - 2):at + 2] = [[*earlier, *run], [*gap, *after]]
            at = max(0, at - 2)
        elif after and all(isinstance(item, Await) for item in after) and not _awaits(after, gap):
            later = parts[at + 2] if at + 2 < len(parts) else []
            parts[at - 1:at + 3] = [[*gap, *after], [*run, *later]]
        else:
            at += 1
    return [item for part in parts for item in part]


def _awaits(items: Sequence[Item], begun: Sequence[Item]) -> bool:
    """Whether some of the items wait for what others begin."""
    ops = {item.op for item in begun if isinstance(item, Begin)}
    return any(item.op in ops for item in items if isinstance(item, Await))


def awaited(items: Sequence[Item]) -> list[Item]:
    """The items in which a collective is one operation again if nothing is computed until it is waited for."""
    out: list[Item] = []
    overlapped, since = set[Op](), set[Op]()
    for item in items:
        if isinstance(item, Begin):
            since.add(item.op)
        elif isinstance(item, Await):
            since.discard(item.op)
        elif _computes(item):
            overlapped |= since
    for item in items:
        if isinstance(item, Op) or item.op in overlapped:
            out.append(item)
        elif isinstance(item, Begin):
            out.append(item.op)
    return out


def seconds(items: Sequence[Item], model: Model) -> float:
    """The time of the items in their order."""
    now = link = 0.0
    done: dict[Op, float] = {}
    for computes, part in groupby(items, _computes):
        now += model.call if computes else 0.0
        for item in part:
            if isinstance(item, Await):
                now = max(now, done[item.op])
                continue
            op = item if isinstance(item, Op) else item.op
            if not model.is_begun(op):
                now += model.seconds(op)
                continue
            link = done[op] = max(link, now) + model.transfer(op)
            now = now if isinstance(item, Begin) else link
    return now
