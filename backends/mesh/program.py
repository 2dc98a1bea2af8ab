"""The program of one rank: compiled segments, and the collectives between them."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mlc.backends.cached_code import loaded
from mlc.backends.executable import Arena
from mlc.backends.mesh import carry_out
from mlc.backends.mesh import on_gpus as carry_out_on_gpus
from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.mesh.on_gpus import Begun
from mlc.backends.toolchain import Toolchain, toolchain_for
from mlc.backends.transport.transport import Request, wait_for
from mlc.dialects import func, shard
from mlc.dialects.builtin import Module
from mlc.dialects.builtin import module as empty_module
from mlc.dialects.func import UPDATES, Func
from mlc.dialects.shard.mesh import Mesh, Sharding
from mlc.dialects.shard.ranks import program_names
from mlc.dialects.tensor.control import BindSize
from mlc.ir.compilation_lock import compiling
from mlc.ir.core import Op, Symbol, Value, before
from mlc.ir.diag import UserError
from mlc.ir.passes import Pipeline
from mlc.ir.printer import to_text
from mlc.ir.sizes import Dim
from mlc.ir.types import ComplexType, TensorType
from mlc.passes import pipeline

Array = np.ndarray[Any, Any]
TOGETHER = 1 << 16
"""Most bytes of an operand whose collective is on its way together with others: what is longer would be held longer."""
_scratch: deque[Arena] = deque()
"""Scratch memory of segments, of which a rank runs one at a time."""


@dataclass(frozen=True)
class Placement:
    """How an argument is divided, and how where it is used, if otherwise."""

    sharding: Sharding
    used: Sharding | None = None


def partitioned(module: Op, name: str, topology: Mesh, args: Sequence[Placement],
                sizes: Mapping[str, Dim] | None = None, overlap: bool = False, on_gpus: bool = False) -> Module:
    """A copy of a recorded module in which function `name` is the program of one rank, of segments and collectives.

    args     how each argument is divided
    sizes    numbers for the size symbols
    overlap  whether collectives may be on their way while segments run
    on_gpus  whether it is for ranks with GPUs
    """
    copy = module.clone(env=dict(sizes) if sizes else None)
    assert isinstance(copy, Module)
    function = function_of(copy, name)
    for attribute in ("donate", UPDATES):                  # each segment has buffers of its own
        function.attrs.pop(attribute, None)
    _check(copy)
    function.attrs["mesh"] = topology
    function.attrs["arg_shardings"] = tuple(a.sharding for a in args)
    like, gradients = dict(function.attrs.get("like_inputs", ())), dict(function.attrs.pop("gradients", ()))
    function.attrs["result_shardings"] = tuple(args[of].sharding if (of := (like | gradients).get(i)) is not None
                                               else None for i in range(len(function.function_type.results)))
    function.attrs["open_results"] = tuple(gradients)      # a gradient is used where the state of an optimiser lies
    _gather_where_used(function, args)
    Pipeline(pipeline.distributed(overlap, on_gpus)).run(copy)
    return copy


def _gather_where_used(function: Func, args: Sequence[Placement]) -> None:
    """Have arguments be divided otherwise where they are used."""
    first = next(iter(function.block))
    for value, placed in zip(function.args, args):
        if placed.used is not None:
            users = list(value.uses)
            with before(first, first.loc):
                gathered = shard.Shard(value, placed.used.dims).result
            for user, i in users:
                if not user.terminator:
                    user.set_operand(i, gathered)


def _check(module: Op) -> None:
    """Refuse what is not divided among ranks; UserError MLC0967."""
    for op in module.walk():
        if isinstance(op, BindSize):
            raise UserError("a size that depends on data is not the same on every rank, and not divided",
                            code="MLC0967", loc=op.loc, hint="compute it outside of the mesh, on x.cpu()")
        if any(isinstance(v.type, TensorType) and isinstance(v.type.dtype, ComplexType)
               for v in (*op.operands, *op.results)):
            raise UserError("complex tensors are not divided among ranks", code="MLC0967", loc=op.loc,
                            hint="compute with the real and the imaginary part, or outside of the mesh, on x.cpu()")


def function_of(module: Op, name: str) -> Func:
    """The function of a module with a name."""
    return next(op for op in module.inside(Func) if op.sym_name == name)


@dataclass
class _Step:
    """A call of a segment (`entry`), or an operation between segments, from and to numbered slots.

    last       slots that no later step takes
    with_next  whether it is a collective that is on its way together with that of the next step
    """

    op: Op
    entry: Any
    takes: list[int]
    gives: list[int]
    last: list[int] = field(default_factory=list)
    with_next: bool = False


class RankProgram:
    """A partitioned function, loaded: its segments are compiled for this processor, or the GPU of this rank.

    module     the partitioned module
    function   that of the rank, by default this one; in a pipeline, ranks have different ones
    arrays     the number of arguments and results of the whole function
    takes      the arguments that it has, by number
    placed     how each result is divided
    gives      the results that it has
    """

    def __init__(self, module: Module, name: str, mesh: RankMesh, args: Sequence[Placement],
                 rank: int | None = None) -> None:
        self.module, self.mesh = module, mesh
        self._programs = program_names(module, name, mesh.topology)
        self.function = function = function_of(module, self._programs[mesh.rank if rank is None else rank])
        self.arrays = len(args) + len(function.attrs["result_shardings"])
        self.takes = function.attrs.get("takes", tuple(range(len(args))))
        like = dict(function.attrs.get("like_inputs", ()))
        self.placed = [Placement(sharding, args[like[i]].used if i in like else None)
                       for i, sharding in enumerate(function.attrs["result_shardings"])]
        slots: dict[Value, int] = {a: i for i, a in enumerate(function.args)}
        self.steps: list[_Step] = []
        self.slots, self._entries = len(slots), dict[str, Any]()
        self._carrier: Any = carry_out_on_gpus if mesh.on_gpus else carry_out
        self._add_steps(function, slots)
        self.name = f"{name} of {function.loc}" if function.loc.file else name
        self.digest = hashlib.sha256(to_text(module).encode()).digest()
        self.communicates = any(isinstance(op, shard.Collective | shard.Message) for op in module.walk())
        self.results = [slots[v] for v in function.block.terminator.operands]
        self.gives = function.attrs.get("gives", tuple(range(len(self.results))))
        kept = set(self.results)
        for step in reversed(self.steps):
            step.last = [slot for slot in {*step.takes, *step.gives} if slot not in kept]
            kept |= {*step.takes, *step.gives}
        _put_together(self.steps)
        self._first = next((i for i, step in enumerate(self.steps)
                            if isinstance(step.op, shard.Collective | shard.Message)), len(self.steps))

    @cached_property
    def _for_me(self) -> dict[int, list[shard.Send]]:
        """The messages that other ranks send to this one, in their order, by rank."""
        out: dict[int, list[shard.Send]] = {}
        for rank, name in enumerate(self._programs):
            for op in self._operations(function_of(self.module, name)):
                if isinstance(op, shard.Send) and rank != self.mesh.rank and op.peer_of(rank) == self.mesh.rank:
                    out.setdefault(rank, []).append(op)
        return out

    def _operations(self, function: Func) -> Iterator[Op]:
        """The operations of a function; those of a task of a pipeline take the place of its call."""
        for op in function.block:
            called = function_of(self.module, op.callee) if isinstance(op, func.Call) else None
            if called is not None and "partitioned" in called.attrs:
                yield from self._operations(called)
            else:
                yield op

    def _add_steps(self, function: Func, slots: dict[Value, int]) -> None:
        """Add the operations of a function; those of a task of a pipeline take the place of its call."""
        for op in function.block:
            if op.terminator:
                return
            called = function_of(self.module, op.callee) if isinstance(op, func.Call) else None
            if called is not None and "partitioned" in called.attrs:
                inner = {a: slots[v] for a, v in zip(called.args, op.operands)}
                self._add_steps(called, inner)
                slots |= {r: inner[v] for r, v in zip(op.results, called.block.terminator.operands)}
                continue
            slots |= {r: self.slots + i for i, r in enumerate(op.results)}
            self.slots += len(op.results)
            entry = None if called is None else self._entry(called)
            self.steps.append(_Step(op, entry, [slots[v] for v in op.operands], [slots[r] for r in op.results]))

    def _entry(self, segment: Func) -> Any:
        """The code of a segment, which may be called several times."""
        if segment.sym_name not in self._entries:
            host = toolchain_for(self.mesh.code_for)
            entry = self._entries[segment.sym_name] = _compiled(self.module, segment.sym_name, host)
            if self.mesh.code_for == "cpu":                # a GPU's allocator shares the memory of all calls
                entry.share_scratch(_scratch)
        return self._entries[segment.sym_name]

    def run(self, args: Sequence[Any], alike: Sequence[Array]) -> list[Any]:
        """The shards of the results, given those of the arguments; `alike` are arguments that every rank brings.

        None stands for a result of which this rank has none.
        """
        _ = self.mesh.transport                            # refuses an abstract mesh
        agree = self.mesh.begin_agreement(self.name, self.digest, *(np.ascontiguousarray(x).tobytes() for x in alike)) \
            if self.communicates or alike else _agreed
        values: list[Any] = [*(self.mesh.placed(args[i]) for i in self.takes), *[None] * (self.slots - len(self.takes))]
        sent: list[tuple[int, Request]] = []
        begun: list[tuple[int, Callable[[], Any]]] = []
        receive = carry_out_on_gpus.Arrivals(self._for_me, self.mesh).receive if self.mesh.on_gpus else \
            lambda op: carry_out.receive(op, self.mesh)
        for i, step in enumerate(self.steps):
            if i == self._first:                           # what is computed before that is of this rank alone
                agree()
                agree = _agreed                            # what the others have sent is no longer held
            self._take(step, values, sent, begun, receive)
        agree()                                            # if nothing is communicated
        for to, request in sent:
            wait_for("shard.send", to, request, self.mesh.transport.deadline(None))
        found = dict(zip(self.gives, (values[slot] for slot in self.results)))
        return [found.get(i) for i in range(len(self.placed))]

    def _take(self, step: _Step, values: list[Any], sent: list[tuple[int, Request]],
              begun: list[tuple[int, Callable[[], Any]]], receive: Callable[[shard.Recv], Any]) -> None:
        """Run a step; what no later one takes is freed.

        sent     messages on their way
        begun    collectives on their way, by the slots of their results
        receive  gives the content of a message

        Those with a request are finished in the background: MPI moves messages only while it is called.
        """
        taken = [values[slot] for slot in step.takes]
        if step.entry is not None:
            given = step.entry.call(taken)
        elif isinstance(step.op, shard.ProcessIndex):
            given = [self.mesh.placed(np.array(self.mesh.topology.position(self.mesh.rank, step.op.axes)))]
        elif isinstance(step.op, shard.Send):
            sent.append(self._carrier.start_sending(step.op, taken[0], self.mesh))
            given = []
        elif isinstance(step.op, shard.Recv):
            given = [receive(step.op)]
            sent[:] = [s for s in sent if not _is_sent(*s)]  # which hold what they send
        elif isinstance(step.op, shard.After):
            given = taken[:1]
        elif isinstance(step.op, shard.Start):
            finish = self._carrier.begin(step.op, taken[0], self.mesh)
            given = [Begun(finish) if self.mesh.on_gpus else self.mesh.transport.start(step.op.name, finish)]
        elif isinstance(step.op, shard.Wait):
            given = [taken[0].wait()]
        else:
            assert isinstance(step.op, shard.Collective)
            begun.append((step.gives[0], self._carrier.begin(step.op, taken[0], self.mesh)))
            if step.with_next:
                return
            for slot, finish in begun:
                values[slot] = finish()
            begun.clear()
            given = [values[step.gives[0]]]
        for slot, x in zip(step.gives, given):
            values[slot] = x
        for slot in step.last:
            values[slot] = None


def _is_sent(to: int, request: Request) -> bool:
    """Whether a message is sent; raises its error."""
    if not request.done():
        return False
    request.wait(0)
    return True


def _agreed() -> None:
    """There is nothing to agree about, or all have agreed."""


def _put_together(steps: Sequence[_Step]) -> None:
    """Have short collectives that follow each other be on their way at once: each would wait as long for the others.

    What they take is there until all of them are done.
    """
    given = set[int]()
    for step, after in zip(steps, steps[1:]):
        given |= set(step.gives)
        step.with_next = _is_short(step) and _is_short(after) and given.isdisjoint(after.takes)
        if step.with_next:
            after.last, step.last = [*step.last, *after.last], []
        else:
            given.clear()


def _is_short(step: _Step) -> bool:
    return (isinstance(step.op, shard.Collective) and not isinstance(step.op, shard.Start)
            and step.op.operand_bytes() <= TOGETHER)


def _compiled(module: Module, name: str, host: Toolchain) -> Any:
    """The entry of a segment, compiled by itself."""
    with compiling:
        alone = empty_module()
        alone.attrs.update(module.attrs)
        segment = function_of(module, name).clone()
        segment.attrs |= {"sym_name": Symbol("main"), "sym_visibility": None}
        alone.body.block.insert(segment)

        def image(module: Module) -> Any:
            return host.compile(host.lower(module), True)

        return loaded(alone, host, image).entry("main")
