"""shard, ranks: the interpreter of all ranks of a program at once.

Each rank is a thread with an interpreter of its own. A collective waits for the other members of its group, at once or
where its request is waited for; one that they do not all run in the same order, or that some never reach, is an error
that names the ranks and the places, and so is a request that is never waited for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlc.dialects.shard.collectives import Collective
from mlc.dialects.shard.mesh import STAGE, Mesh, Sharding
from mlc.dialects.shard.messages import Message
from mlc.dialects.tensor.base import Array
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.interp import Interpreter


def interpret(module: Op, name: str, mesh: Mesh, args: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The results of function `name` on each rank of a mesh.

    args  the arguments of each rank

    In a pipeline, a rank may have no shard of an argument or a result; then it is None.
    """
    programs = program_names(module, name, mesh)
    if programs == [name] * mesh.ranks:
        return _Meeting([module] * mesh.ranks).run(name, args)
    attrs = [function_named(module, program).attrs for program in programs]
    given = [[args[rank][i] for i in a["takes"]] for rank, a in enumerate(attrs)]
    found = _Meeting([module] * mesh.ranks).run_each(programs, given)
    return [[dict(zip(a["gives"], results)).get(i) for i in range(a["results"])] for a, results in zip(attrs, found)]


def program_names(module: Op, name: str, mesh: Mesh) -> list[str]:
    """The function of each rank of a partitioned function: its own, or that of its position in a pipeline."""
    known = {str(op.attrs.get("sym_name")) for op in module.regions[0].block}
    if name in known or STAGE not in mesh.axes:
        return [name] * mesh.ranks
    return [f"{name}_position_{mesh.position(rank, (STAGE,))}" for rank in range(mesh.ranks)]


def function_named(module: Op, name: str) -> Op:
    """The function of a module with a name."""
    return next(op for op in module.regions[0].block if op.attrs.get("sym_name") == name)


def interpret_each(modules: Sequence[Op], name: str, args: Sequence[Sequence[Any]]) -> list[list[Array]]:
    """The same for ranks that have a program each."""
    return _Meeting(modules).run(name, args)


def shards(x: Array, sharding: Sharding, mesh: Mesh) -> list[Array | None]:
    """The shard of a tensor that each rank has; None on ranks that have none."""
    return [x[sharding.piece(x.shape, mesh, rank)] if sharding.is_on(mesh, rank) else None
            for rank in range(mesh.ranks)]


def joined(pieces: Sequence[Array | None], sharding: Sharding, mesh: Mesh) -> Array:
    """The tensor of the shards of all ranks. IRError (MLC0964) if replicas differ."""
    there = [(rank, x) for rank, x in enumerate(pieces) if x is not None and sharding.is_on(mesh, rank)]
    _, first = there[0]
    shape = [n * mesh.size(axes) for n, axes in zip(first.shape, sharding.dims)]
    out, known = np.zeros(shape, first.dtype), np.zeros(shape, bool)
    for rank, x in there:
        at = sharding.piece(shape, mesh, rank)
        if known[at].all() and known[at].size and out[at].tobytes() != x.tobytes():
            raise IRError(f"rank {rank} has another replica than the ranks before it", code="MLC0964")
        out[at], known[at] = x, True
    return out


@dataclass(eq=False)
class _Arrival:
    """A rank at a collective, which it has begun."""

    op: Collective
    x: Array
    result: Array | None = None


class _Meeting:
    """The place where the ranks meet.

    begun     for each group, the collectives that each member has begun and that are not complete, in order
    waiting   the collective for which each waiting rank waits
    running   the number of ranks that are neither waiting nor at their end
    receiving what each rank that waits for a message receives
    messages  what has been sent and not received yet, by sender, receiver and tag
    problem   the error that ends all ranks
    """

    def __init__(self, modules: Sequence[Op]) -> None:
        self.modules = modules
        self.changed = threading.Condition()
        self.begun: dict[tuple[int, ...], dict[int, list[_Arrival]]] = {}
        self.waiting: dict[int, _Arrival] = {}
        self.running = len(modules)
        self.receiving: dict[int, Message] = {}
        self.messages: dict[tuple[int, int, int], deque[tuple[Message, Array]]] = {}
        self.problem: Exception | None = None

    def run(self, name: str, args: Sequence[Sequence[Any]]) -> list[list[Array]]:
        return self.run_each([name] * len(self.modules), args)

    def run_each(self, names: Sequence[str], args: Sequence[Sequence[Any]]) -> list[list[Array]]:
        results: list[list[Array]] = [[] for _ in self.modules]

        def of(rank: int) -> None:
            interpreter = Interpreter(self.modules[rank])
            interpreter.ranks = member = _Member(self, rank)
            try:
                results[rank] = interpreter.call(names[rank], args[rank])
                member.check_waited()
            except Exception as error:
                self._fail(error)
            finally:
                self._leave()

        threads = [threading.Thread(target=of, args=(rank,)) for rank in range(len(self.modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.problem is None:
            self._check_received()
        if self.problem is not None:
            raise self.problem
        return results

    # -- messages --------------------------------------------------------------------------------------------------
    def send(self, rank: int, op: Message, x: Array) -> None:
        """Have a rank send x; whoever waits for it goes on."""
        to = op.peer_of(rank)
        with self.changed:
            self.messages.setdefault((rank, to, op.tag), deque()).append((op, x))
            if to in self.receiving and self._source(to) == (rank, to, op.tag):
                del self.receiving[to]
                self.running += 1
                self.changed.notify_all()

    def receive(self, rank: int, op: Message) -> Array:
        """Wait for a message to a rank."""
        key = op.peer_of(rank), rank, op.tag
        with self.changed:
            if not self.messages.get(key):
                self.receiving[rank] = op
                self.running -= 1
                self._check_progress()
                self.changed.wait_for(lambda: bool(self.messages.get(key)) or self.problem is not None)
            if not self.messages.get(key):
                assert self.problem is not None
                raise self.problem
            sent, x = self.messages[key].popleft()
        if sent.content != op.content:
            raise IRError(f"rank {rank} receives a {op.content} with tag {op.tag}, and rank {key[0]} sends a "
                          f"{sent.content} ({sent.loc})", code="MLC0965", loc=op.loc,
                          hint="both ends of a message have one type")
        return x

    def _source(self, rank: int) -> tuple[int, int, int]:
        op = self.receiving[rank]
        return op.peer_of(rank), rank, op.tag

    def _check_received(self) -> None:
        """Every message is received by somebody."""
        for (source, to, tag), left in self.messages.items():
            if left:
                self.problem = IRError(f"rank {source} sends a {left[0][0].content} to rank {to} with tag {tag}, which "
                                       "never receives it", code="MLC0966", loc=left[0][0].loc,
                                       hint="for each shard.send there is a shard.recv of its tag")

    # -- collectives -----------------------------------------------------------------------------------------------
    def begin(self, rank: int, op: Collective, x: Array) -> _Arrival:
        """Have a rank begin a collective, which is complete once the last member of its group does."""
        arrival, group = _Arrival(op, x), tuple(op.mesh.group(rank, op.axes))
        with self.changed:
            begun = self.begun.setdefault(group, {member: [] for member in group})
            begun[rank].append(arrival)
            at = len(begun[rank]) - 1                      # among those that are not complete
            there = {member: others[at] for member, others in begun.items() if len(others) > at}
            for member, other in there.items():
                if not _match(op, other.op):
                    self._report_mismatch(rank, op, member, other.op)
                    raise self.problem or AssertionError
            if len(there) == len(group):
                assert at == 0, "they are complete in their order"
                self._complete(begun)
        return arrival

    def _complete(self, begun: dict[int, list[_Arrival]]) -> None:
        """Give the members of a group the results of the first collective that all have begun."""
        arrived = [others.pop(0) for others in begun.values()]
        for member, arrival, result in zip(begun, arrived, arrived[0].op.of_group([a.x for a in arrived])):
            arrival.result = result
            if self.waiting.get(member) is arrival:
                del self.waiting[member]
                self.running += 1
        self.changed.notify_all()

    def wait(self, rank: int, arrival: _Arrival) -> Array:
        """Wait until a collective that a rank has begun is complete, and return the rank's result."""
        with self.changed:
            if arrival.result is None:
                self.waiting[rank] = arrival
                self.running -= 1
                self._check_progress()
                self.changed.wait_for(lambda: arrival.result is not None or self.problem is not None)
            if arrival.result is None:
                assert self.problem is not None
                raise self.problem
            return arrival.result

    def _check_progress(self) -> None:
        """End all ranks if none of them can go on."""
        if self.running or not (self.waiting or self.receiving) or self.problem is not None:
            return
        if self.receiving:
            return self._report_deadlock()
        rank, arrival = min(self.waiting.items())
        op = arrival.op
        begun = self.begun[tuple(op.mesh.group(rank, op.axes))]
        missing = [r for r, others in begun.items() if len(others) <= begun[rank].index(arrival)]
        for member in missing:
            other = self.waiting[member].op if member in self.waiting else None
            if other is not None and rank in other.mesh.group(member, other.axes):
                return self._report_mismatch(rank, op, member, other)
        self.problem = IRError(f"rank {rank} waits at {op.name} along {', '.join(op.axes)} for rank "
                               f"{', '.join(map(str, missing or [rank]))}, which never gets there", code="MLC0966",
                               loc=op.loc, hint="all ranks of a group have the same collectives in the same order")
        self.changed.notify_all()

    def _report_mismatch(self, rank: int, op: Collective, member: int, other: Collective) -> None:
        """End all ranks, of which two have different collectives."""
        self.problem = self.problem or IRError(
            f"rank {rank} is at {op.name} of {op.x.type} along {', '.join(op.axes)}, rank {member} at {other.name} of "
            f"{other.x.type} along {', '.join(other.axes)} ({other.loc})", code="MLC0965", loc=op.loc,
            hint="all ranks of a group have the same collectives in the same order")
        self.changed.notify_all()

    def _report_deadlock(self) -> None:
        """End all ranks, of which those that wait for messages do so for ever."""
        rank, op = min(self.receiving.items())
        others = [f"rank {r} for tag {o.tag} of rank {o.peer_of(r)}" for r, o in sorted(self.receiving.items())[1:]]
        self.problem = IRError(f"rank {rank} waits at shard.recv for tag {op.tag} of rank {op.peer_of(rank)}, which "
                               "never sends it" + "".join(f"; {other}" for other in others), code="MLC0966", loc=op.loc,
                               hint="a message is sent before what its sender waits for")
        self.changed.notify_all()

    def _leave(self) -> None:
        with self.changed:
            self.running -= 1
            self._check_progress()

    def _fail(self, error: Exception) -> None:
        with self.changed:
            self.problem = self.problem or error
            self.changed.notify_all()


@dataclass(frozen=True)
class _Member:
    """A rank; `requests` are those that it has not waited for."""

    meeting: _Meeting
    rank: int
    requests: list[_Arrival] = field(default_factory=list)

    def collective(self, op: Op, x: Any) -> Any:
        assert isinstance(op, Collective)
        return self.meeting.wait(self.rank, self.meeting.begin(self.rank, op, x))

    def start(self, op: Op, x: Any) -> Any:
        assert isinstance(op, Collective)
        self.requests.append(self.meeting.begin(self.rank, op, x))
        return self.requests[-1]

    def wait(self, op: Op, request: Any) -> Any:
        if request not in self.requests:
            op.fail(f"rank {self.rank} has waited for this request before", code="MLC0989",
                    hint="a request is waited for once")
        self.requests.remove(request)
        return self.meeting.wait(self.rank, request)

    def check_waited(self) -> None:
        """IRError (MLC0989) if this rank is at its end and has not waited for all of its requests."""
        for arrival in self.requests:
            arrival.op.fail(f"rank {self.rank} never waits for its request", code="MLC0989",
                            hint="write one shard.wait for each start of a collective")

    def send(self, op: Op, x: Any) -> None:
        assert isinstance(op, Message)
        self.meeting.send(self.rank, op, x)

    def receive(self, op: Op) -> Any:
        assert isinstance(op, Message)
        return self.meeting.receive(self.rank, op)


def _match(a: Collective, b: Collective) -> bool:
    """Whether two collectives are one, run by two ranks."""
    return a is b or (type(a) is type(b) and a.attrs == b.attrs and a.x.type == b.x.type)
