"""Fuse operations into kernels.

takes  FIXED
gives  FUSED: every operation that computes stands in a `tensor.kernel`; between kernels are only views and constants
why    a value that stays inside a kernel costs no memory traffic

Each computing operation starts a group or joins the group of a producer; then groups are merged along their edges:

same domain    a consumer that reads the producer only at its own point of the domain shares its loop
absorption    a pointwise producer with a single consumer is evaluated where it is read, whatever the indexing map,
              unless that repeats work that is not cheap
siblings      reductions of one domain that read one value and do not depend on each other read it once

A kernel with reductions may have several stages per reduction slice (stages.py): softmax is a maximum, a sum and a
division over one domain. A contraction takes an epilogue, on tensor cores a short one (epilogues.py). It reads its
factors many times, so it absorbs producers that move elements, which its schedule packs, but none that compute; nor,
for tensor cores, one that rounds to fewer bits or pads, nor, on tiles, one that rounds rows for many columns, or pads
terms along several axes. Free operations (full, iota, broadcast_to, reshapes that add or drop unit dimensions) are
cloned for each reader. Any other reshape is a view at a kernel boundary. The reason why a producer is not fused is
recorded on the consumer (`unfused`), and so is why operations came together, and where their values are then (`fused`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import tensor as tn
from mlc.dialects.func import Func
from mlc.dialects.tensor.debug import Debug
from mlc.dialects.tensor.iteration import IterationDomain
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.traits import is_free, is_pointwise, is_read_as_it_lies, moves_elements
from mlc.ir import logs
from mlc.ir.changes import allowed, current
from mlc.ir.core import Block, Op, Value, before
from mlc.ir.diag import UserError
from mlc.ir.machine import ANY, Machine
from mlc.ir.passes import Pass
from mlc.passes.analysis import kernel_boundary
from mlc.passes.analysis.kernel_boundary import has_size
from mlc.passes.forms import FIXED, FUSED
from mlc.passes.fuse import kernels
from mlc.passes.fuse.epilogues import split_epilogues
from mlc.passes.fuse.graph import FusionGraph, Group
from mlc.passes.fuse.legality import Legality, is_below_copies, is_done_before
from mlc.passes.fuse.pieces import moved_in_pieces

MAX_OPS = 96
"""Most operations per point of a kernel; beyond it registers spill and compile time grows."""


def run(module: Op, machine: Machine = ANY, max_ops: int = MAX_OPS) -> None:
    """Form kernels in every function."""
    for debug in module.inside(Debug):
        raise UserError("mlc.debug shows values in calls of compiled functions, and this code is made for something "
                        "else", code="MLC0695", loc=debug.loc, hint="remove the line, or call the compiled function")
    for function in list(module.inside(Func)):
        for op in list(function.inside(tn.DotGeneral)):
            _copy_factors(op)
        for attention in list(function.inside(tn.Blockwise)):
            _copy_operands(attention)
        for block in kernel_boundary.blocks_of(function):
            kernel_boundary.sink(block, is_free)
            _Fuser(block, machine, max_ops).run()
        if logs.wants("fusion"):
            _log(function)


def _log(function: Func) -> None:
    """Write the kernels of a function, and why other operations did not join them."""
    for kernel in function.inside(Kernel):
        inside = [op.name.removeprefix("tensor.") for op in kernel.body.block if not op.terminator]
        reasons = "".join([*(f"; together: {why}" for why in kernel.fused),
                           *(f"; apart: {why}" for why in kernel.unfused)])
        logs.write("fusion", f"@{function.sym_name} {kernel.label or 'copy'} ({kernel.loc}): "
                   f"{', '.join(inside) or 'nothing computed'}{reasons}", function=str(function.sym_name),
                   kernel=kernel.label, line=str(kernel.loc), operations=inside, apart=list(kernel.unfused),
                   together=list(kernel.fused))


def _copy_factors(op: tn.DotGeneral) -> None:
    """Clone the data movement operations of the factors of a contraction."""
    for i, v in enumerate(op.operands):
        chain: list[Op] = []
        while v.op is not None and v.op.parent is op.parent and moves_elements(v.op):
            if is_below_copies(v.op) or is_done_before(v.op, chain[-1] if chain else op):
                break
            chain.append(v.op)
            v = v.op.operands[0]
        _copy(op, i, chain)


def _copy_operands(op: tn.Blockwise) -> None:
    """Clone the operations that attention does when it copies an operand, and a free one, which has to be in memory
    for attention alone."""
    for i in range(op.copied):
        chain, read = moved_in_pieces(op, i)
        free = [read.op] if read.op is not None and read.op.parent is op.parent and is_free(read.op) else []
        _copy(op, i, [*chain, *free])


def _copy(op: Op, i: int, chain: Sequence[Op]) -> None:
    """Clone operations before an operand, the last one first."""
    mapping: dict[Value, Value] = {}
    with before(op):
        for source in reversed(chain):
            source.insert_clone(mapping)
    if chain:
        op.set_operand(i, mapping[chain[0].results[0]])


class _Fuser:
    """Fusion of one block."""

    def __init__(self, block: Block, machine: Machine, max_ops: int) -> None:
        self.block, self.machine = block, machine
        self.graph = FusionGraph(block)
        self.legality = Legality(self.graph, max_ops, machine.narrow_types())

    def run(self) -> None:
        for op in reversed(list(self.block)):        # dead operations get no kernel
            if op.name.startswith("tensor.") and op.pure and not any(r.uses for r in op.results):
                op.erase()
            elif isinstance(op, tn.BindSize) and op.bound is not None:
                if op.result.uses or any(has_size(later, str(op.size)) for later in kernel_boundary.following(op)):
                    self.graph.bindings[str(op.size)] = op
                else:
                    op.erase()
        for op in self.block:
            if op.terminator:
                continue
            if not is_free(op):
                self.place(op)
            elif is_read_as_it_lies(op) or op in self.legality.copied or any(
                    self.graph.leaves(u) for u in op.result.users):
                self.graph.start(op)                 # a free value that must be in memory needs a kernel
        changed = True
        while changed:
            changed = False
            consumers = list(self.graph.groups)[::-1]
            consumers.sort(key=lambda g: g.across)
            for consumer in consumers:
                changed |= self.merge_into(consumer)
            changed = changed or self.merge_siblings()
        split_epilogues(self.graph)
        kernels.emit(self.graph, self.legality, self.machine)

    def place(self, op: Op) -> None:
        """Start a group, and merge it with a producer whose loop it can share. What picks elements of slices that a
        kernel computes does so there, before its readers take it along: the slices need not be stored for it."""
        group = self.graph.start(op)
        if is_pointwise(op) or isinstance(op, tn.TakeAlong):
            for producer in sorted(self.graph.producers(op), key=lambda g: g.kind == "pointwise"):
                if producer.kind != "host" and self.legality.why_not_share(producer, group) is None and self.may(
                        "share", producer, group):
                    self.graph.merge(producer, group, True, _shared(producer, group))
                    return

    def merge_into(self, consumer: Group) -> bool:
        """Merge the first producer that may be merged into `consumer`."""
        if consumer.kind == "host" or consumer not in self.graph.groups:
            return False
        for producer in dict.fromkeys(p for op in consumer.ops for p in self.graph.producers(op)):
            if producer is consumer or producer.kind == "host":
                continue
            if self.legality.why_not_share(producer, consumer) is None and self.may("share", producer, consumer):
                self.graph.merge(producer, consumer, True, _shared(producer, consumer))
                return True
            if self.legality.why_not_absorb(producer, consumer) is None and self.may("absorb", producer, consumer):
                self.graph.merge(producer, consumer, False, f"{producer.label} is computed where {consumer.label}, its "
                                 "only reader, reads it")
                return True
        return False

    def may(self, how: str, producer: Group, consumer: Group) -> bool:
        """Whether the merge of two groups is enabled (ir/changes.py). It is identified by the first reader and the last
        operation that it reads, which do not depend on other merges.
        """
        if current() is None:
            return True
        for op in self.graph.in_order(consumer.ops):
            sources = [s for v in kernel_boundary.reads(op) for s in self.graph.sources(v)]
            read = [s for s in sources if self.graph.group_of[s] is producer]
            if read:
                return allowed(how, op, self.graph.in_order(read)[-1])
        first, last = self.graph.in_order(consumer.ops)[0], self.graph.in_order(producer.ops)[-1]
        return allowed(how, first, last)             # the consumer reads only a size

    def merge_siblings(self) -> bool:
        """Merge reductions of one domain that read the same values."""
        readers: dict[tuple[Value, IterationDomain], Group] = {}
        changed = False
        for group in [g for g in self.graph.groups if g.kind == "reduce"]:
            for v in self.graph.inputs(group):
                other = readers.get((v, group.domain))
                if other in self.graph.groups and other is not group and not (
                        other.before & group.bit or group.before & other.bit) and not (
                        self.legality.why_not_together(other, group) or
                        self.legality.why_not_stages(other, group)) and (
                        current() is None or allowed("siblings", self.graph.in_order(group.ops)[0],
                                                     self.graph.in_order(other.ops)[0])):
                    self.graph.merge(other, group, True, f"{other.label} and {group.label} read {_name(v)} once, over "
                                     f"{group.extents}")
                    changed = True
                readers[v, group.domain] = group
        return changed


def _shared(producer: Group, consumer: Group) -> str:
    """The rule by which two groups have one loop."""
    return f"{consumer.label} reads {producer.label} at its own point: one loop over " + (
        consumer if producer.kind == "pointwise" else producer).extents


def _name(v: Value) -> str:
    """A value, for people."""
    return f"%{v.name}" if v.name else v.op.name.removeprefix("tensor.") if v.op is not None else str(v.type)


PASS = Pass(run, takes=FIXED, gives=FUSED)
