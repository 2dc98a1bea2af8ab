"""The tasks of each rank of a pipeline: which operations they have, and which messages go between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlc.dialects import shard
from mlc.dialects.func import Func
from mlc.dialects.shard.stages import NOWHERE
from mlc.ir.core import BlockArg, Op, Value
from mlc.ir.diag import IRError
from mlc.ir.types import TensorType
from mlc.passes.analysis.free_values import free_values
from mlc.passes.split_stages.placement import Place, Placement
from mlc.passes.split_stages.schedules import Task, order

START = 0
"""The number of what is computed before all tasks of a rank: of arguments, for all microbatches."""


@dataclass(frozen=True, eq=False)
class Transfer:
    """A value that goes from one rank to another, after a task there and before a task here."""

    value: Value
    source: int
    destination: int
    sent: int
    received: int


@dataclass
class Tasks:
    """The work of all ranks along the axis of stages.

    orders     the tasks of each rank; number i + 1 is the i-th
    numbers    for each rank the number of the task of each operation that it computes
    transfers  the messages, in the order of the program
    repeated   the answers of `is_repeated` so far
    taken      those of `operands`
    """

    function: Func
    placement: Placement
    ranks: int
    orders: list[list[Task]] = field(default_factory=list)
    numbers: list[dict[Op, int]] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    repeated: dict[Op, bool] = field(default_factory=dict)
    taken: dict[Op, tuple[Value, ...]] = field(default_factory=dict)

    @staticmethod
    def of(function: Func, placement: Placement, schedule: str, ranks: int) -> Tasks:
        """The tasks of a function under a schedule."""
        out = Tasks(function, placement, ranks)
        out.orders = [order(schedule, r, ranks, placement.stages, placement.microbatches, placement.backward)
                      if placement.stages else [] for r in range(ranks)]
        out.numbers = [{} for _ in range(ranks)]
        _Assignment(out).run()
        out._number_ends()
        out._find_transfers()
        out._check_order()
        return out

    def end(self, rank: int) -> int:
        """The number of what a rank computes after all of its tasks; further ones follow messages between these."""
        return len(self.orders[rank]) + 1

    # -- values ----------------------------------------------------------------------------------------------------
    def root(self, value: Value) -> Value:
        """The value that one is, without what is said of it."""
        while isinstance(value.op, shard.PipelineMark):
            value = value.op.x
        return value

    def is_repeated(self, op: Op) -> bool:
        """Whether each task has an operation for itself: a constant, or one that gives a scalar."""
        if op not in self.repeated:
            self.repeated[op] = any(not isinstance(r.type, TensorType) for r in op.results) or (
                op.pure and not free_values(op) and not any(user.terminator for r in op.results for user in r.users))
        return self.repeated[op]

    def operands(self, op: Op) -> tuple[Value, ...]:
        """The values that a task needs for an operation, without those that it repeats."""
        if op not in self.taken:
            self.taken[op] = tuple(v for value in free_values(op) for v in self.needed_for(value))
        return self.taken[op]

    def needed_for(self, value: Value) -> Iterator[Value]:
        """The values that a task needs for a value: itself, or what it is repeated from."""
        root = self.root(value)
        if root.op is not None and self.is_repeated(root.op):
            yield from self.operands(root.op)
        else:
            yield root

    def homes(self, root: Value) -> list[int]:
        """The ranks that have a value without a message; [] if each computes it."""
        if isinstance(root, BlockArg):
            stage = self.function.attrs["arg_shardings"][root.index].stage
        else:
            assert root.op is not None
            stage = self.placement.at(root).stage
            if stage == NOWHERE:
                return []
            stage %= self.ranks
        return list(range(self.ranks)) if stage < 0 else [stage]

    def wanted_on(self, result: int) -> list[int]:
        """The ranks that a result of the function is on."""
        stage = self.function.attrs["result_shardings"][result].stage
        return list(range(self.ranks)) if stage < 0 else [stage]

    def number(self, rank: int, root: Value) -> int:
        """The number of the task of a rank that computes a value; -1 for an argument."""
        return -1 if root.op is None else self.numbers[rank][root.op]

    # -- messages --------------------------------------------------------------------------------------------------
    def _is_remote(self, rank: int, root: Value) -> bool:
        homes = self.homes(root)
        return bool(homes) and rank not in homes

    def _number_ends(self) -> None:
        """Number what follows all tasks by the messages on the way to it, so that no two ranks wait for each other."""
        for op in self.function.block:
            for rank in range(self.ranks):
                if self.numbers[rank].get(op, -1) >= self.end(rank):
                    self.numbers[rank][op] = self.end(rank) + max(
                        (self._level(rank, v) for v in self.operands(op)), default=0)

    def _level(self, rank: int, root: Value) -> int:
        """The messages between ends on the way to a value."""
        remote = self._is_remote(rank, root)
        home = self.homes(root)[0] if remote else rank
        level = self.number(home, root) - self.end(home)
        return max(0, level + remote) if level >= 0 else 0

    def _find_transfers(self) -> None:
        received: dict[tuple[Value, int], int] = {}
        for rank in range(self.ranks):
            for op, number in self.numbers[rank].items():
                for v in self.operands(op):
                    if self._is_remote(rank, v):
                        received[v, rank] = min(number, received.get((v, rank), number))
        for i, value in enumerate(self.function.block.terminator.operands):
            root = self.root(value)
            for rank in self.wanted_on(i):
                if self._is_remote(rank, root):
                    received.setdefault((root, rank), self.end(rank) + self._level(rank, root))
        place = {v: i for i, v in enumerate([*self.function.args, *(r for op in self.function.block
                                                                    for r in op.results)])}
        for (value, rank), number in sorted(received.items(), key=lambda item: (place[item[0][0]], item[0][1])):
            home = self.homes(value)[0]
            self.transfers.append(Transfer(value, home, rank, self.number(home, value), number))

    def _check_order(self) -> None:
        """IRError if a task needs what a later one computes, here or on other ranks."""
        for rank in range(self.ranks):
            for op, number in self.numbers[rank].items():
                for v in self.operands(op):
                    if not self._is_remote(rank, v) and self.number(rank, v) > number:
                        self._fail_order(op, v)
        done = [-1] * self.ranks                           # the last task that each rank has ended
        last = [max([self.end(r), *self.numbers[r].values(), *(t.received for t in self.transfers
                                                               if t.destination == r)]) for r in range(self.ranks)]
        while done != last:
            ready = [r for r in range(self.ranks) if done[r] < last[r] and all(
                t.sent <= done[t.source] for t in self.transfers if t.destination == r and t.received == done[r] + 1)]
            if not ready:
                stuck = next(t for t in self.transfers if t.received == done[t.destination] + 1
                             and t.sent > done[t.source])
                user = next((op for op, n in self.numbers[stuck.destination].items() if n == stuck.received),
                            self.function)
                self._fail_order(user, stuck.value)
            for r in ready:
                done[r] += 1

    def _fail_order(self, op: Op, value: Value) -> None:
        at = value.op.loc if value.op is not None else self.function.loc
        raise IRError(f"{op.name} is computed before what it needs, {value.type} of {at}", code="MLC0984", loc=op.loc,
                      hint="a microbatch may depend on those before it, forward on forward and backward on backward")


class _Assignment:
    """Assigns operations to tasks, from the last to the first.

    needed  for each rank the number of the first task that uses a value
    early   values that are used for more than backward
    """

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.at = [{task: i + 1 for i, task in enumerate(own)} for own in tasks.orders]
        self.needed: list[dict[Value, int]] = [{} for _ in range(tasks.ranks)]
        self.early: set[Value] = set()

    def run(self) -> None:
        tasks = self.tasks
        for i, value in enumerate(tasks.function.block.terminator.operands):
            for rank in tasks.wanted_on(i):
                self._need(rank, value, tasks.end(rank))
        for op in reversed(list(tasks.function.block)):
            if op.terminator:
                continue
            place = tasks.placement.place_of(op)
            if isinstance(op, shard.PipelineMark):
                self._mark(op, place)
            elif place.stage == NOWHERE or tasks.is_repeated(op):
                self._where_used(op, place)
            else:
                self._at_stage(op, place)

    def _mark(self, op: shard.PipelineMark, place: Place) -> None:
        """Whoever uses a mark uses what is marked; the loss of a microbatch is of its forward part."""
        result = op.results[0]
        for rank in range(self.tasks.ranks):
            if result in self.needed[rank]:
                self._need(rank, op.x, self.needed[rank][result])
        if (isinstance(op, shard.Microbatch) and not place.backward) or result in self.early:
            self.early.add(op.x)

    def _need(self, rank: int, value: Value, number: int) -> None:
        """A value is used in a task of a rank."""
        self.needed[rank][value] = min(number, self.needed[rank].get(value, number))
        order = self.tasks.orders[rank]
        if 0 < number <= len(order) and not order[number - 1].backward:
            self.early.add(value)

    def _first_use(self, rank: int, op: Op) -> int | None:
        return min((self.needed[rank][r] for r in op.results if r in self.needed[rank]), default=None)

    def _where_used(self, op: Op, place: Place) -> None:
        """Each rank that uses it computes it: at the first use, or at the beginning if it is of no microbatch."""
        for rank in range(self.tasks.ranks):
            first = self._first_use(rank, op)
            if first is None and not op.pure and not op.results:
                first = self.tasks.end(rank)
            if first is None:
                continue
            if not self.tasks.is_repeated(op):
                first = first if place.microbatches or first == self.tasks.end(rank) else START
                self.tasks.numbers[rank][op] = first
            for v in free_values(op):
                self._need(rank, v, first)

    def _at_stage(self, op: Op, place: Place) -> None:
        """The rank of its stage computes it, in the task of its microbatch."""
        home, used = place.stage % self.tasks.ranks, self._first_use(place.stage % self.tasks.ranks, op)
        others = [r for r in range(self.tasks.ranks) if r != home and self._first_use(r, op) is not None]
        if used is None and not others and op.pure:
            return
        number = self._number(op, place, home, used, bool(others) or not self.early.isdisjoint(op.results))
        self.tasks.numbers[home][op] = number
        for v in free_values(op):
            self._need(home, v, number)

    def _is_of_all(self, op: Op, place: Place) -> bool:
        """Whether an operation needs all microbatches, but is not a sum with what one of them brings."""
        at = self.tasks.placement
        return (place.backward and at.microbatches == 1) or (len(place.microbatches) > 1 and all(
            len(at.at(v).microbatches) != 1 for v in free_values(op)))

    def _number(self, op: Op, place: Place, home: int, used: int | None, early: bool) -> int:
        """The number of the task of an operation at a stage.

        used   that of its first use here
        early  whether it is used for more than backward, or elsewhere
        """
        end, last, at = self.tasks.end(home), max(place.microbatches, default=0), self.at[home]
        if used == end and not early and self._is_of_all(op, place):
            return end
        backward = at.get(Task(place.stage, True, last))
        if place.backward and backward is not None:
            return backward
        forward = at[Task(place.stage, False, last)]
        return backward if backward is not None and used is not None and used < end and not early else forward
