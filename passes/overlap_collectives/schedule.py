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
from mlc.dialects.tensor.traits import is_free
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

    def segment(self, ops: Sequence[Op]) -> float:
        """The time of a segment, with that of writing and reading what others use of it."""
        inside = set(ops)
        given = sum(bytes_of(r) for op in ops if not is_free(op) for r in op.results
                    if any(user not in inside and not user.terminator for user in r.users))
        return self.call + sum(map(self.seconds, ops)) + 2 * given / self.memory

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


@dataclass(frozen=True)
class Part:
    """Items of which all are computed, or none is: a segment and its time, or what is between two."""

    items: tuple[Item, ...]
    seconds: float = 0.0

    @staticmethod
    def of(items: Sequence[Item], model: Model) -> Part:
        """The part of some items."""
        ops = [item for item in items if isinstance(item, Op)]
        return Part(tuple(items), model.segment(ops) if items and _computes(items[0]) else 0.0)


def parts_of(items: Sequence[Item], model: Model) -> list[Part]:
    """The items in parts: segments, and what is between them."""
    return [Part.of(list(part), model) for _, part in groupby(items, _computes)]


def with_readers(parts: Sequence[Part], model: Model) -> list[Part]:
    """The parts in which operations of later segments have moved to one that computes what they read, where that takes
    less time than to write it for them."""
    runs = [list(part.items) for part in parts]
    place = {item.op if isinstance(item, Await) else item: i for i, run in enumerate(runs) for item in run
             if not isinstance(item, Begin)}
    for i, run in enumerate(runs):
        for op in run if run and _computes(run[0]) else ():   # those that are added are looked at, too
            assert isinstance(op, Op)
            for user in dict.fromkeys(user for r in op.results for user in r.users if place.get(user, i) > i):
                values = free_values(user)
                there = all(place.get(v.op, i) <= i for v in values if v.op is not None)
                read = sum(bytes_of(v) for v in values if v.op is not None and place.get(v.op) == i
                           and not is_free(v.op) and all(place.get(u) == i or u is user for u in v.users))
                if there and user.pure and _computes(user) and (
                        2 * read / model.memory > model.seconds(user) + 2 * bytes_of(user.results[0]) / model.memory):
                    runs[place[user]].remove(user)
                    run.append(user)
                    place[user] = i
    return parts_of([item for run in runs for item in run], model)


def with_longer_runs(parts: Sequence[Part], model: Model) -> list[Part]:
    """The parts with fewer segments: one is joined with that before, by later starts, or with the next, by earlier
    waits, where that is possible and takes no longer."""
    out, now = list(parts), seconds(parts, model)
    at = 1
    while at < len(out):
        joined = next((new for new in _joined(out, at, model) if seconds(new, model) <= now), None)
        if joined is None:
            at += 1
        else:
            out, now, at = joined, seconds(joined, model), max(1, at - 2)
    return out


def _joined(parts: list[Part], at: int, model: Model) -> Iterator[list[Part]]:
    """The parts where the segment at an index, if there is one, is joined with that before, or with the next."""
    if not _computes(parts[at].items[0]):
        return
    run, gap, after = parts[at].items, parts[at - 1].items, parts[at + 1].items if at + 1 < len(parts) else ()
    if _awaits(after, gap):
        return
    if all(isinstance(item, Begin) for item in gap):
        earlier = parts[at - 2].items if at > 1 else ()
        yield [*parts[:max(0, at - 2)], Part.of((*earlier, *run), model), Part((*gap, *after)), *parts[at + 2:]]
    if after and all(isinstance(item, Await) for item in after):
        later = parts[at + 2].items if at + 2 < len(parts) else ()
        yield [*parts[:at - 1], Part((*gap, *after)), Part.of((*run, *later), model), *parts[at + 3:]]


def _awaits(items: Sequence[Item], begun: Sequence[Item]) -> bool:
    """Whether some of the items wait for what others begin."""
    ops = {item.op for item in begun if isinstance(item, Begin)}
    return any(item.op in ops for item in items if isinstance(item, Await))


def seconds(parts: Sequence[Part], model: Model) -> float:
    """The time of the parts in their order."""
    now = link = 0.0
    done: dict[Op, float] = {}
    for part in parts:
        now += part.seconds
        for item in () if part.items and _computes(part.items[0]) else part.items:
            op = item if isinstance(item, Op) else item.op
            if isinstance(item, Await):
                now = max(now, done[op])
            elif model.is_begun(op):
                link = done[op] = max(link, now) + model.transfer(op)
                now = now if isinstance(item, Begin) else link
    return now


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
