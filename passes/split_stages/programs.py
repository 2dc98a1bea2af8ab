"""The functions of the ranks of a pipeline, and of their tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlc.dialects import func, shard
from mlc.dialects.func import Func
from mlc.dialects.shard.mesh import STAGE, Mesh
from mlc.ir.core import Op, Symbol, Value, at_end, builder, located
from mlc.ir.printer import to_text
from mlc.passes.analysis.free_values import free_values
from mlc.passes.split_stages.tasks import START, Tasks, Transfer

KEPT = ("mesh", "arg_names", "arg_shardings", "like_inputs", "result_shardings", "partitioned")
"""Attributes of the function, about all of its arguments and results, that those of all positions have."""


def write(function: Func, tasks: Tasks, mesh: Mesh) -> None:
    """Replace a function by those of all positions along the axis of stages, and of their tasks."""
    programs = _Programs(function, tasks, mesh)
    for rank in range(tasks.ranks):
        programs.add(rank)
    function.erase()


@dataclass
class _Programs:
    """The functions that replace one.

    shared    functions of tasks by their text: microbatches have the same
    received  the messages that a rank receives before a task, with their tags
    sent      those that it sends after one
    """

    function: Func
    tasks: Tasks
    mesh: Mesh
    shared: dict[tuple[str, str], Symbol] = field(default_factory=dict)
    received: dict[tuple[int, int], list[tuple[int, Transfer]]] = field(default_factory=lambda: defaultdict(list))
    sent: dict[tuple[int, int], list[tuple[int, Transfer]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for tag, t in enumerate(self.tasks.transfers):
            self.received[t.destination, t.received].append((tag, t))
            self.sent[t.source, t.sent].append((tag, t))

    def add(self, rank: int) -> None:
        """Add the function of a position."""
        tasks, old = self.tasks, self.function
        used = self._used(rank)
        numbered = [(i, a) for i, a in enumerate(old.args) if rank in tasks.homes(a) and a in used]
        held = [a for _, a in numbered]
        made = func.function(f"{old.sym_name}_position_{rank}", [a.type for a in held], [a.name for a in held],
                             private=not old.is_public)
        made.loc = old.loc
        values: dict[Value, Value] = dict(zip(held, made.args))
        numbers = [-1, START, *tasks.numbers[rank].values(), *(t.received for t in tasks.transfers
                                                               if t.destination == rank)]
        ops = defaultdict[int, list[Op]](list)
        for op in old.block:
            if op in tasks.numbers[rank]:
                ops[tasks.numbers[rank][op]].append(op)
        leaving = self._leaving(rank)
        with at_end(made.body.block):
            for number in range(-1, max(numbers) + 1):
                self._receive(rank, number, values)
                self._call(rank, number, ops[number], leaving, values)
                self._send(rank, number, values)
            gives = [i for i in range(len(old.block.terminator.operands)) if rank in tasks.wanted_on(i)]
            with located(old.block.terminator.loc):
                func.Return(tuple(values[tasks.root(old.block.terminator.operands[i])] for i in gives))
        made.attrs |= {name: old.attrs[name] for name in KEPT if name in old.attrs}
        made.attrs |= {"position": rank, "takes": tuple(i for i, _ in numbered), "gives": tuple(gives),
                       "results": len(old.block.terminator.operands)}
        made.update_type()
        self._insert(made)

    def _insert(self, made: Func) -> None:
        assert self.function.parent is not None
        self.function.parent.insert(made, self.function)

    def _used(self, rank: int) -> set[Value]:
        """The values that a rank computes with, sends or returns."""
        tasks = self.tasks
        return {*(t.value for t in tasks.transfers if t.source == rank),
                *(v for op in tasks.numbers[rank] for v in tasks.operands(op)),
                *(tasks.root(v) for i, v in enumerate(self.function.block.terminator.operands)
                  if rank in tasks.wanted_on(i))}

    # -- messages --------------------------------------------------------------------------------------------------
    def _receive(self, rank: int, number: int, values: dict[Value, Value]) -> None:
        for tag, t in self.received[rank, number]:
            with located(self._loc(t.value)):
                values[t.value] = shard.Recv(self.mesh, (STAGE,), tag, t.source, t.value.type).result

    def _send(self, rank: int, number: int, values: dict[Value, Value]) -> None:
        for tag, t in self.sent[rank, number]:
            with located(self._loc(t.value)):
                shard.Send(self.mesh, (STAGE,), tag, values[t.value], t.destination)

    def _loc(self, value: Value) -> Any:
        return value.op.loc if value.op is not None else self.function.loc

    # -- tasks -----------------------------------------------------------------------------------------------------
    def _call(self, rank: int, number: int, ops: Sequence[Op], leaving: set[Value], values: dict[Value, Value]) -> None:
        """Call the function of a task, if there is anything in it."""
        if not ops:
            return
        inside = {r for op in ops for r in op.results}
        takes = list(dict.fromkeys(v for op in ops for v in self.tasks.operands(op) if v not in inside))
        gives = [r for op in ops for r in op.results if r in leaving]
        made = self._task(self._name(rank, number), ops, takes, gives)
        with located(ops[0].loc):
            call = func.Call(made, tuple(values[v] for v in takes), tuple(v.type for v in gives))
        values |= dict(zip(gives, call.results))

    def _leaving(self, rank: int) -> set[Value]:
        """The results of the tasks of a rank that other tasks use, or that are sent or returned."""
        tasks, numbers = self.tasks, self.tasks.numbers[rank]
        return {*(t.value for t in tasks.transfers if t.source == rank),
                *(v for op, number in numbers.items() for v in tasks.operands(op)
                  if v.op is not None and numbers.get(v.op) != number),
                *(tasks.root(v) for i, v in enumerate(self.function.block.terminator.operands)
                  if rank in tasks.wanted_on(i))}

    def _name(self, rank: int, number: int) -> str:
        name, order = self.function.sym_name, self.tasks.orders[rank]
        if number == START:
            return f"{name}_start_{rank}"
        if number > len(order):
            return f"{name}_end_{rank}"
        task = order[number - 1]
        return f"{name}_{'backward' if task.backward else 'forward'}_{task.stage}"

    def _task(self, name: str, ops: Sequence[Op], takes: Sequence[Value], gives: Sequence[Value]) -> Symbol:
        """The name of a function of some operations, which may be that of another microbatch."""
        made = func.function(name, [v.type for v in takes], [v.name for v in takes], private=True)
        mapping: dict[Value, Value] = dict(zip(takes, made.args))
        with at_end(made.body.block):
            for op in ops:
                self._clone(op, mapping)
            func.Return(tuple(mapping[v] for v in gives))
        if any(isinstance(op, shard.Collective | shard.ProcessIndex | shard.After) for op in ops):
            made.attrs |= {"mesh": self.mesh, "partitioned": True}
        made.update_type()
        text = to_text(made)
        if (name, text) not in self.shared:
            assert self.function.parent is not None
            made.attrs["sym_name"] = self.shared[name, text] = func.free_symbol(self.function.parent, name)
            self._insert(made)
        return self.shared[name, text]

    def _clone(self, op: Op, mapping: dict[Value, Value]) -> None:
        """Build an operation at the insertion point, after what it repeats."""
        for v in free_values(op):
            root = self.tasks.root(v)
            if root not in mapping:
                assert root.op is not None
                self._clone(root.op, mapping)
            mapping[v] = mapping[root]
        assert builder.block is not None
        builder.block.insert(op.clone(mapping), builder.before)
