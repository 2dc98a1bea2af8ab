"""Emission of the kernels of fusion groups."""

from __future__ import annotations

from typing import Any

from mlc.dialects.tensor.iteration import IterationDomain, single
from mlc.dialects.tensor.kernel import Kernel, Yield, copy_attributes
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.traits import FusionInterface, is_free
from mlc.ir.affine import AffineMap
from mlc.ir.core import Block, Op, Region, Value, at_end, before
from mlc.ir.machine import Machine
from mlc.passes.analysis import kernel_boundary
from mlc.passes.fuse.graph import FusionGraph, Group, is_host_level
from mlc.passes.fuse.legality import Legality
from mlc.passes.fuse.stages import plan

DISABLED = "the merge is disabled (MLC_CHANGES)"
"""The reason why groups are apart that could be merged."""


def emit(graph: FusionGraph, legality: Legality, machine: Machine) -> None:
    """Replace the operations by kernels, in topological order."""
    ordered = {op: i for i, op in enumerate(graph.block)}
    mapping: dict[Value, Value] = {}
    terminator = graph.block.terminator
    old = [op for op in graph.block if not op.terminator and not is_host_level(op)]
    remaining = sorted(graph.groups, key=lambda g: min(ordered[op] for op in g.ops))
    left = sum(g.bit for g in remaining)
    while remaining:
        ready = next(g for g in remaining if not g.before & left & ~g.bit)
        remaining.remove(ready)
        left ^= ready.bit
        ops = sorted(ready.ops, key=ordered.__getitem__)
        with before(terminator, ops[-1].loc):
            if ready.kind == "host":
                kernel_boundary.move(ops[0], mapping, terminator)
            else:
                _kernel(graph, legality, ready, ops, mapping, machine)
    kernel_boundary.finish(terminator, mapping, lambda v: copied(v, terminator))
    for op in reversed(old):
        op.erase()


def _kernel(graph: FusionGraph, legality: Legality, group: Group, ops: list[Op], mapping: dict[Value, Value],
            machine: Machine) -> None:
    """Build the kernel of a group; `mapping` gets its results."""
    body = _with_free(graph, ops)
    inside = {r for op in body for r in op.results}
    ins = list(dict.fromkeys(v for op in body for v in op.operands if v not in inside))
    outs = [op.results[0] for op in ops if next(graph.readers(op), None) is not None]
    block = Block([v.type for v in ins], [v.name for v in ins])
    local: dict[Value, Value] = dict(zip(ins, block.args))
    with at_end(block):
        for op in body:
            op.insert_clone(local)
        Yield(tuple(local[v] for v in outs))
    reasons = []
    for producer in dict.fromkeys(p for op in ops for p in graph.producers(op)):
        if producer is not group and producer.kind != "host":
            why = [legality.why_not_share(producer, group) or group.apart or DISABLED]
            if producer.kind == "pointwise":
                why.append(legality.why_not_absorb(producer, group) or DISABLED)
            reasons.append(f"{producer.label}: {'; '.join(dict.fromkeys(why))}")
    kernel = Kernel(tuple(mapping.get(v, v) for v in ins), (), (), None, Region(block),
                    tuple(v.type for v in outs), label=group.label, unfused=tuple(reasons),
                    **(found := kernel_attributes(block, machine)))
    kernel.fused = (*group.merged, *kept(block, found.get("stages", 1)))
    for old, new in zip(outs, kernel.results):
        new.name = old.name
        mapping[old] = new


def kept(body: Block, stages: int) -> list[str]:
    """Where the values of a kernel are that nothing outside of it reads, as sentences."""
    where: dict[str, list[str]] = {}
    for op in body:
        if op.terminator or is_free(op) or not op.results or any(user.terminator for user in op.results[0].users):
            continue
        place = op.attrs.get("materialize")
        again = stages > 1 and not isinstance(op, Reduce)
        text = ("in a scratch buffer" if place == "scratch" else f"in the memory of result {place}"
                if place is not None else "in registers, computed in each stage that reads them" if again
                else "in registers")
        where.setdefault(text, []).append(op.name.removeprefix("tensor."))
    return [f"kept {text}: {', '.join(names)}" for text, names in where.items()]


def _with_free(graph: FusionGraph, ops: list[Op]) -> list[Op]:
    """Operations of a group with the free operations that they read, in topological order."""
    out: dict[Op, None] = {}
    for op in ops:
        work: list[tuple[Op, bool]] = [(op, False)]
        while work:
            current, ready = work.pop()
            if ready:
                out[current] = None
            elif current not in out:
                work.append((current, True))
                work += [(v.op, False) for v in current.operands
                         if v.op is not None and v.op.parent is graph.block and is_free(v.op)
                         and v.op not in graph.group_of]
    return list(out)


def kernel_attributes(body: Block, machine: Machine) -> dict[str, Any]:
    """The iteration domain of a kernel, its indexing maps and its stages, as attributes."""
    outputs = body.terminator.operands
    inner: Any = next((op for op in body if isinstance(op, FusionInterface) and op.iteration.has_own_loops), None)
    domain: IterationDomain = inner.iteration_domain() if inner is not None else IterationDomain(outputs[0].type.shape)
    iterators = inner.iterator_types() if inner is not None else ("parallel",) * len(domain.shape)
    maps = tuple(domain.result_map(v.type.shape) for v in outputs)
    stages = plan(body, domain, maps, machine)
    reads = stages.reads()
    last = tuple(max((stage for stage, _ in found), default=0) for found in reads.values())
    attrs: dict[str, Any] = {"domain": domain.shape, "iterator_types": iterators,
                             "indexing_maps": (
                                 *(single({at for _, at in found}, domain) for found in reads.values()),
                                 *(AffineMap.get(len(domain.shape), map) for map in maps))}
    if any((*stages.stores, *last)):
        attrs |= {"stages": stages.count, "stores": stages.stores, "last_reads": last}
    return attrs


def copied(v: Value, terminator: Op) -> Value:
    """Copy a tensor by a kernel before the terminator."""
    block = Block([v.type])
    with at_end(block, terminator.loc):
        Yield(tuple(block.args))
    with before(terminator):
        return Kernel((v,), (), (), None, Region(block), (v.type,), label="copy",
                      **copy_attributes(v.type.shape)).results[0]
