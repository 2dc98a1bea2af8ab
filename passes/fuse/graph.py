"""Fusion groups and their dependence graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, operand_maps
from mlc.dialects.tensor.reduce import Reduce, reduction_orders
from mlc.dialects.tensor.traits import FusionInterface, Iteration, is_free, is_host, is_pointwise, is_view
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Value
from mlc.ir.sizes import Dim
from mlc.passes.analysis import kernel_boundary


@dataclass(eq=False)
class Group:
    """Operations to be fused into one kernel."""

    kind: str                                       # host, or the Iteration with loops of its own, or pointwise
    domain: IterationDomain
    ops: dict[Op, IndexingMap | None]               # op -> its indexing map; None: absorbed
    times: dict[Op, int]                            # op -> number of evaluations per point
    bit: int
    before: int = 0                                 # bits of all groups that must run earlier
    merged: list[str] = field(default_factory=list)  # by which rules its operations came together
    apart: str = ""                                 # why it was split from a group that it reads

    @property
    def work(self) -> int:
        """Operations that are evaluated per point."""
        return sum(self.times.values())

    @property
    def across(self) -> bool:
        """Whether its reduction slices are strided in memory; groups with contiguous slices are merged first."""
        return bool(self.domain.reduced) and len(self.domain.shape) - 1 not in self.domain.reduced

    @property
    def orders(self) -> set[str]:
        """Orders of its reductions; an exact reduction has any."""
        return reduction_orders(self.ops)

    @property
    def label(self) -> str:
        names = [op.name.removeprefix("tensor.") for op in self.ops if not is_free(op)]
        return "_".join(names[:6]) + ("_etc" if len(names) > 6 else "")

    @property
    def extents(self) -> str:
        """Text of its domain, with reduction dimensions in parentheses."""
        reduced = self.domain.reduced
        return "[" + ", ".join(f"({d})" if a in reduced else str(d) for a, d in enumerate(self.domain.shape)) + "]"


def is_host_level(op: Op) -> bool:
    """Whether an operation stays outside kernels: a view, an array constant, a call, a loop, a scalar."""
    return is_host(op) or (is_view(op) and not is_free(op))


def domain_of(op: Op) -> IterationDomain:
    """Domain in which other operations can share the loop of `op`: for a contraction that of its result."""
    domain: IterationDomain = op.iteration_domain()  # type: ignore[attr-defined]
    return IterationDomain(domain.slices) if isinstance(
        op, tn.DotGeneral | tn.DotBlocks | tn.DotGroups | tn.Blockwise) else domain


class FusionGraph:
    """Fusion groups of one block and their dependences."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.order = {op: i for i, op in enumerate(block)}
        self.group_of: dict[Op, Group] = {}
        self.groups: dict[Group, None] = {}         # in order of their first operations
        self.sources_of: dict[Op, list[Op]] = {}
        self.bindings: dict[str, Op] = {}           # by the data-dependent size that each binds

    def leaves(self, user: Op) -> bool:
        return user.terminator or is_host_level(user) or user.parent is not self.block

    def sources(self, value: Value) -> Iterator[Op]:
        """Grouped operations that a value is computed from, through free ones."""
        work = [value]
        while work:
            op = work.pop().op
            if op is None or op.parent is not self.block:
                continue
            if op in self.group_of:
                yield op
            else:
                work += op.operands

    def producers(self, op: Op) -> dict[Group, None]:
        """Groups of the operands of `op`, through free operations, and of the operations that bind its sizes."""
        if (sources := self.sources_of.get(op)) is None:         # they do not change: operands are in groups already
            sources = [*dict.fromkeys(s for v in kernel_boundary.reads(op) for s in self.sources(v))]
            self.sources_of[op] = sources
        out = dict.fromkeys([self.group_of[s] for s in sources])
        for name, binding in self.bindings.items():
            if binding is not op and self.has_size(op, name):
                out[self.group_of[binding]] = None
        return out

    def has_size(self, op: Op, name: str) -> bool:
        work = [op]
        while work:
            current = work.pop()
            if kernel_boundary.has_size(current, name):
                return True
            work += [v.op for v in kernel_boundary.reads(current) if v.op is not None and v.op.parent is self.block
                     and v.op not in self.group_of]
        return False

    def start(self, op: Op) -> Group:
        loops = op.iteration if isinstance(op, FusionInterface) else Iteration.HOST
        kind = "host" if is_host_level(op) else loops.value if loops.has_own_loops else "pointwise"
        domain = IterationDomain(()) if kind == "host" else domain_of(op)
        at = None if kind == "host" else domain.map_of(op.results[0].type.shape)
        group = Group(kind, domain, {op: at}, {op: 1}, bit=1 << len(self.group_of))
        for p in self.producers(op):
            group.before |= p.bit | p.before
        self.groups[group] = None
        self.group_of[op] = group
        return group

    def in_order(self, ops: Iterable[Op]) -> list[Op]:
        return sorted(ops, key=self.order.__getitem__)

    def between(self, producer: Group, consumer: Group) -> bool:
        """Whether a third group depends on `producer` and is a dependence of `consumer`."""
        direct = dict.fromkeys(g for op in consumer.ops for g in self.producers(op))
        return any(g is not producer and g is not consumer and g.before & producer.bit for g in direct)

    def reads(self, op: Op, at: IndexingMap | None,
              domain: IterationDomain) -> Iterator[tuple[Op, IndexingMap | None]]:
        """Grouped operations that `op` reads at the indexing map `at`, through free ones, with their maps."""
        work = list(operand_maps(op, at, domain))
        while work:
            value, read = work.pop()
            source = value.op
            if source is None or source.parent is not self.block:
                continue
            if source in self.group_of:
                yield source, read
            else:
                work += operand_maps(source, read, domain)

    def read_count(self, producer: Group, consumer: Group) -> int:
        """Number of elements of the producer that the consumer reads per point."""
        here: set[IndexingMap] = set()
        elsewhere = 0
        for user in dict.fromkeys(user for op in producer.ops for user in self.readers(op)):
            at = consumer.ops[user]
            if at is not None and is_pointwise(user):
                here.add(at)
            else:
                elsewhere += consumer.times[user]
        return len(here) + elsewhere

    def points(self, group: Group, op: Op) -> Dim:
        """Number of points at which an operation of the group reads."""
        at, domain = group.ops[op], group.domain
        by_row = at is not None and domain.is_of_slice(at) and not isinstance(op, Reduce)
        return sizes.product(domain.slices if by_row else domain.shape)

    def readers(self, op: Op) -> Iterator[Op]:
        """Users of the result outside the group of `op`, through free operations."""
        work = [op.result]
        while work:
            for user in work.pop().users:
                if user in self.group_of:
                    if self.group_of[user] is not self.group_of[op]:
                        yield user
                elif is_free(user):
                    work.append(user.results[0])
                else:
                    yield user

    def inputs(self, group: Group) -> dict[Value, None]:
        """Values that the group reads at its points."""
        domain, out = group.domain, dict[Value, None]()
        for op, own in group.ops.items():
            for v, at in operand_maps(op, own, domain):
                if at == domain.points and v.type.shape == domain.shape and (v.op is None or v.op not in group.ops):
                    out[v] = None
        return out

    def merge(self, producer: Group, consumer: Group, at_own: bool, rule: str) -> None:
        """Merge two groups; `rule` says by which of them, for people."""
        consumer.merged = [*producer.merged, *consumer.merged, rule]
        count = 1 if at_own else self.read_count(producer, consumer)
        ops = {op: own if at_own else None for op, own in producer.ops.items()} | consumer.ops
        if at_own and producer.kind != "pointwise":
            consumer.kind, consumer.domain = producer.kind, producer.domain
        map_of = consumer.domain.map_of
        consumer.ops = {op: None if own is None else map_of(op.results[0].type.shape) for op, own in ops.items()}
        consumer.times |= {op: n * count for op, n in producer.times.items()}
        for op in producer.ops:
            self.group_of[op] = consumer
        del self.groups[producer]
        consumer.before = (consumer.before | producer.before) & ~producer.bit
        either = producer.bit | consumer.bit
        for other in self.groups:
            if other.before & either:
                other.before = other.before & ~producer.bit | consumer.bit | consumer.before

    def split(self, group: Group, rest: Iterable[Op], domain: IterationDomain, why: str) -> None:
        """Make pointwise operations of a group, which nothing else in it reads, a group that follows it."""
        moved = dict.fromkeys(self.in_order(rest))
        bit = max(g.bit for g in self.groups) << 1
        made = Group("pointwise", domain, {op: group.ops[op] for op in moved}, {op: group.times[op] for op in moved},
                     max(bit, 1 << len(self.group_of)), group.before | group.bit, list(group.merged), why)
        for other in self.groups:
            if other.before & group.bit:
                other.before |= made.bit
        group.ops = {op: at for op, at in group.ops.items() if op not in moved}
        group.times = {op: n for op, n in group.times.items() if op not in moved}
        self.groups[made] = None
        for op in moved:
            self.group_of[op] = made
