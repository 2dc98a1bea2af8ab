"""Decide which operations become one kernel.

takes  FIXED
gives  FUSED: every operation that computes stands in a `tensor.kernel`; between kernels are only views and constants
why    a value that stays inside a kernel costs no memory traffic

Each computing operation starts a group or joins the group of a producer; then groups are merged along their edges:

same domain    a consumer that reads of the producer what stands where it runs itself shares its loop
absorption    a pointwise producer whose values are read by one consumer alone is evaluated where it is read, whatever
              the index map in between, unless that repeats work that is not cheap
siblings      reductions of one domain that read one value and do not depend on each other read it once

A kernel that reduces may go through each of its reduction slices several times (plan_stages.py): softmax is a maximum,
a sum and a division over one domain. A contraction takes an epilogue. Since it reads its factors many times, it
computes nothing on the way, but it may move elements: its schedule packs them in the order in which it reads.
Operations that cost nothing (full, iota, broadcast_to, reshapes that add or drop axes of size 1) are copied to each
reader. Any other reshape is a view between kernels. The reason why a producer stayed apart is recorded on the consumer
(`unfused`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mlc.dialects import tensor as tn
from mlc.dialects.func import Func
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, operand_maps, single
from mlc.dialects.tensor.kernel import Kernel, Yield, copy_contract
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.scatter import Scattering
from mlc.dialects.tensor.traits import (
    FusionInterface,
    Iteration,
    is_cheap,
    is_free,
    is_host,
    is_pointwise,
    is_view,
    moves_elements,
)
from mlc.ir import sizes
from mlc.ir.affine import AffineMap
from mlc.ir.changes import allowed, current
from mlc.ir.core import Block, Op, Region, Value, at_end, before
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.passes import between
from mlc.passes.forms import FIXED, FUSED
from mlc.passes.plan_stages import plan

MAX_OPS = 96
"""Operations that a kernel evaluates for one point; past it registers spill and compile time grows."""

FEW_ROWS, LONG_ROW = 16, 32768
"""Fewer rows than this, longer than that, are better split among threads by kernels without rows."""
FAR_ROW = 1024
"""The longest row across memory, one element per line of it, of which a block stays in a cache from sweep to sweep."""
SHORT_ROW = 8
"""Rows shorter than this leave most lanes of a vector empty."""


@dataclass(eq=False)
class Group:
    """Operations that will be one kernel."""

    kind: str                                       # outside, or the Iteration that has loops of its own, or pointwise
    domain: IterationDomain
    ops: dict[Op, IndexingMap | None]               # op -> its indexing map; None: evaluated where it is read
    times: dict[Op, int]                            # op -> at how many places it is evaluated for one point
    bit: int
    before: int = 0                                 # bits of all groups that must run earlier

    @property
    def work(self) -> int:
        """How many operations are evaluated for one point."""
        return sum(self.times.values())

    @property
    def across(self) -> bool:
        """Whether its rows lie across memory; whoever goes along memory is served first."""
        return bool(self.domain.reduced) and len(self.domain.shape) - 1 not in self.domain.reduced

    @property
    def orders(self) -> set[str]:
        """The orders of its reductions; one that is exact takes any."""
        return {op.order or "chain" for op in self.ops if isinstance(op, Reduce) and not op.is_order_independent}

    @property
    def label(self) -> str:
        names = [op.name.removeprefix("tensor.") for op in self.ops if not is_free(op)]
        return "_".join(names[:6]) + ("_etc" if len(names) > 6 else "")


def is_outside(op: Op) -> bool:
    """Stands between kernels: a view of a buffer, a constant in the program's data, a call, a loop, a scalar."""
    return is_host(op) or (is_view(op) and not is_free(op))


def run(module: Op, max_ops: int = MAX_OPS) -> None:
    """Form the kernels of every function."""
    for function in list(module.inside(Func)):
        for op in list(function.inside(tn.DotGeneral)):
            _copy_factors(op)
        for block in between.blocks_of(function):
            between.sink(block, is_free)
            _Fuser(block, max_ops).run()


def _copy_factors(op: tn.DotGeneral) -> None:
    """Give a contraction its own copies of the operations that only move the elements of its factors."""
    for i, v in enumerate(op.operands):
        chain: list[Op] = []
        while v.op is not None and v.op.parent is op.parent and moves_elements(v.op):
            if is_below_copies(v.op):
                break
            chain.append(v.op)
            v = v.op.operands[0]
        mapping: dict[Value, Value] = {}
        with before(op):
            for source in reversed(chain):
                source.insert_clone(mapping)
        if chain:
            op.set_operand(i, mapping[chain[0].results[0]])


def is_below_copies(op: Op) -> bool:
    """Whether a contraction reads windows or copies of what `op` moves: it is moved once, before."""
    if not isinstance(op, tn.Transpose | tn.Reverse):
        return False
    work = [(user, False) for user in op.results[0].users]
    while work:
        user, several = work.pop()
        if isinstance(user, tn.DotGeneral) and several:
            return True
        if moves_elements(user):
            several |= isinstance(user, tn.Windows | tn.BroadcastTo)
            work += [(next_user, several) for next_user in user.results[0].users]
    return False


class _Fuser:
    """Fusion of one block."""

    def __init__(self, block: Block, max_ops: int) -> None:
        self.block = block
        self.max_ops = max_ops
        self.order = {op: i for i, op in enumerate(block)}
        self.group_of: dict[Op, Group] = {}
        self.groups: list[Group] = []
        self.witnesses: dict[str, Op] = {}           # by the size that each names, and that what follows may have

    def run(self) -> None:
        for op in reversed(list(self.block)):        # a kernel has results; what nobody reads gets none
            if op.name.startswith("tensor.") and op.pure and not any(r.uses for r in op.results):
                op.erase()
            elif isinstance(op, tn.Witness) and op.bound is not None:
                if op.result.uses or any(between.has_size(later, str(op.size)) for later in between.following(op)):
                    self.witnesses[str(op.size)] = op
                else:
                    op.erase()
        for op in self.block:
            if op.terminator:
                continue
            if not is_free(op):
                self.place(op)
            elif any(self.leaves(u) for u in op.result.users):
                self.start(op)                       # a free value that leaves the function needs a kernel after all
        changed = True
        while changed:
            changed = False
            consumers = self.groups[::-1]
            consumers.sort(key=lambda g: g.across)
            for consumer in consumers:
                changed |= self.merge_into(consumer)
            changed = changed or self.merge_siblings()
        self.emit()

    def leaves(self, user: Op) -> bool:
        return user.terminator or is_outside(user) or user.parent is not self.block

    # -- forming groups -------------------------------------------------------------------------------------------
    def sources(self, value: Value) -> Iterator[Op]:
        """The placed operations that a value comes from, through free ones."""
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
        """The groups of what `op` reads, through free operations, and of the witnesses of the sizes that it has."""
        out = dict.fromkeys(self.group_of[s] for v in between.reads(op) for s in self.sources(v))
        for name, witness in self.witnesses.items():
            if witness is not op and self.has_size(op, name):
                out[self.group_of[witness]] = None
        return out

    def has_size(self, op: Op, name: str) -> bool:
        work = [op]
        while work:
            current = work.pop()
            if between.has_size(current, name):
                return True
            work += [v.op for v in between.reads(current) if v.op is not None and v.op.parent is self.block
                     and v.op not in self.group_of]
        return False

    def start(self, op: Op) -> Group:
        loops = op.iteration if isinstance(op, FusionInterface) else Iteration.HOST
        kind = "outside" if is_outside(op) else loops.value if loops.has_own_loops else "pointwise"
        domain = IterationDomain(()) if kind == "outside" else domain_of(op)
        at = None if kind == "outside" else domain.map_of(op.results[0].type.shape)
        group = Group(kind, domain, {op: at}, {op: 1}, bit=1 << len(self.group_of))
        for p in self.producers(op):
            group.before |= p.bit | p.before
        self.groups.append(group)
        self.group_of[op] = group
        return group

    def place(self, op: Op) -> None:
        """Start a group, and let it share the loop of a producer at once if it may."""
        group = self.start(op)
        if is_pointwise(op):
            for producer in sorted(self.producers(op), key=lambda g: g.kind == "pointwise"):
                if producer.kind != "outside" and self.why_not_share(producer, group) is None and self.may(
                        "share", producer, group):
                    self.merge(producer, group, at_own=True)
                    return

    # -- merging groups -------------------------------------------------------------------------------------------
    def merge_into(self, consumer: Group) -> bool:
        """Merge the first producer that may be merged into `consumer`."""
        if consumer.kind == "outside" or consumer not in self.groups:
            return False
        for producer in dict.fromkeys(p for op in consumer.ops for p in self.producers(op)):
            if producer is consumer or producer.kind == "outside":
                continue
            if self.why_not_share(producer, consumer) is None and self.may("share", producer, consumer):
                self.merge(producer, consumer, at_own=True)
                return True
            if self.why_not_absorb(producer, consumer) is None and self.may("absorb", producer, consumer):
                self.merge(producer, consumer, at_own=False)
                return True
        return False

    def may(self, how: str, producer: Group, consumer: Group) -> bool:
        """Whether to merge two groups: asked about the first reader and the last operation that it reads there, since
        those are the same whatever else is merged.
        """
        if current() is None:
            return True
        for op in self.in_order(consumer.ops):
            if read := [s for v in between.reads(op) for s in self.sources(v) if self.group_of[s] is producer]:
                return allowed(how, op, self.in_order(read)[-1])
        return allowed(how, self.in_order(consumer.ops)[0], self.in_order(producer.ops)[-1])    # it reads a size

    def in_order(self, ops: Iterable[Op]) -> list[Op]:
        return sorted(ops, key=self.order.__getitem__)

    def between(self, producer: Group, consumer: Group) -> bool:
        """Whether some third group runs after the one and before the other."""
        return any(g is not producer and g is not consumer and g.before & producer.bit and consumer.before & g.bit
                   for g in self.groups)

    def why_not_share(self, producer: Group, consumer: Group) -> str | None:
        """Why the two cannot run in one loop."""
        home, guest = (consumer, producer) if producer.kind == "pointwise" else (producer, consumer)
        if why := self.why_not_together(home, guest):
            return why
        for op, own in consumer.ops.items():
            at = home.domain.map_of(op.results[0].type.shape) if own is not None else None
            for s, read in self.reads(op, at, home.domain):
                if self.group_of[s] is not producer:         # it may be a loop, whose results are no tensors
                    continue
                there = home.domain.map_of(s.results[0].type.shape)
                held = read == there or (home.kind == "reduce" and there == home.domain.points
                                         and read == home.domain.in_slice)
                if producer.ops[s] is None or there is None or not held:
                    return "it reads other elements than its own"
        if self.between(producer, consumer):
            return "another kernel runs between them"
        return self.why_not_beside(home, guest) or self.why_not_rows(home, guest)

    def why_not_beside(self, home: Group, guest: Group) -> str | None:
        """Why `guest` should not read tensors of its own where a contraction writes: its vectors lie across short rows.

        The contraction writes them once; reading others in that order, too, takes longer than another kernel.
        """
        length = home.domain.shape[-1] if home.kind == "contract" and home.domain.shape else 0
        if not isinstance(length, int) or not 1 < length < SHORT_ROW:
            return None
        own = any(v.op not in home.ops for v in self.inputs(guest))
        return f"rows of {length} are too short to read beside a contraction" if own else None

    def why_not_together(self, home: Group, guest: Group) -> str | None:
        """Why the operations of `guest` cannot be evaluated in the domain of `home`."""
        if guest.kind == "pointwise" and home.domain.map_of(guest.domain.shape) is None:
            return f"the domains differ: {_shape(guest.domain)} and {_shape(home.domain)}"
        if guest.kind != "pointwise" and (
                home.kind != "reduce" or guest.kind != "reduce" or home.domain != guest.domain):
            return f"both have a loop of their own ({home.kind} and {guest.kind})"
        if home.kind == "scatter":
            return "a scatter is over when all updates are there"
        if len(home.orders | guest.orders) > 1:
            return "they add in different orders"
        if home.work + guest.work > self.max_ops:
            return f"the kernel would have more than {self.max_ops} operations"
        return None

    def why_not_rows(self, home: Group, guest: Group) -> str | None:
        """Why it does not pay to go through the rows of the two several times, or to store all their points."""
        domain, ops = home.domain, {**home.ops, **guest.ops}
        if home.kind != "reduce" or not self.goes_by_rows(domain, ops):
            return None
        rows, length = sizes.product(domain.slices), sizes.product(domain.shape[a] for a in domain.reduced)
        if isinstance(rows, int) and isinstance(length, int) and rows < FEW_ROWS and length > LONG_ROW:
            return f"{rows} rows of {length} are too few"
        if home.across:
            return None if isinstance(length, int) and length <= FAR_ROW else f"rows of {length} lie across memory"
        return f"rows of {length} are too short" if isinstance(length, int) and length < SHORT_ROW else None

    def goes_by_rows(self, domain: IterationDomain, ops: Iterable[Op]) -> bool:
        """Whether a kernel of `ops` uses what it has reduced for all points of a row, or stores them."""
        inside = set(ops)
        for op in inside:
            at = domain.map_of(op.results[0].type.shape)
            if at is None or (domain.is_of_slice(at) and not isinstance(op, Reduce)):
                continue
            if not isinstance(op, Reduce) and any(user not in inside for user in self.readers(op)):
                return True
            if any(s in inside and domain.is_of_slice(read) for s, read in self.reads(op, at, domain)):
                return True
        return False

    def reads(self, op: Op, at: IndexingMap | None,
              domain: IterationDomain) -> Iterator[tuple[Op, IndexingMap | None]]:
        """The placed operations that `op` reads where its map is `at`, through free ones, and by which maps."""
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

    def why_not_absorb(self, producer: Group, consumer: Group) -> str | None:
        """Why the consumer cannot evaluate the producer's elements where it reads them."""
        if producer.kind != "pointwise":
            return f"a {producer.kind} is evaluated once"
        if consumer.kind == "contract" and not all(moves_elements(op) for op in producer.ops) and any(
                self.group_of[s] is producer for op in consumer.ops if isinstance(op, tn.DotGeneral)
                for v in op.operands for s in self.sources(v)):
            return "a contraction reads its factors many times"
        if any(isinstance(op, tn.Windows | tn.DotGeneral) for op in consumer.ops) and any(
                is_below_copies(op) for op in producer.ops):
            return "a contraction reads its elements at several places"
        for op in producer.ops:
            for user in self.readers(op):
                if self.leaves(user) or self.group_of.get(user) is not consumer:
                    return "its value is needed elsewhere too"
        if self.places(producer, consumer) * producer.work + consumer.work > self.max_ops:
            return f"the kernel would have more than {self.max_ops} operations"
        users = {user for op in producer.ops for user in self.readers(op)}
        repeats = any(len(list(self.readers(op))) > 1 for op in producer.ops) or any(    # at two places, perhaps
            sizes.product(producer.domain.shape) != self.points(consumer, user) for user in users)
        by_rows = consumer.kind == "reduce" and self.goes_by_rows(consumer.domain, consumer.ops)
        if (repeats or by_rows) and not all(is_cheap(op) for op in producer.ops):
            return "it would be computed more than once"
        return None

    def places(self, producer: Group, consumer: Group) -> int:
        """At how many places the consumer reads the producer for one point; its own is one, whoever reads there."""
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
        """At how many points an operation of the group reads."""
        at, domain = group.ops[op], group.domain
        by_row = at is not None and domain.is_of_slice(at) and not isinstance(op, Reduce)
        return sizes.product(domain.slices if by_row else domain.shape)

    def readers(self, op: Op) -> Iterator[Op]:
        """Who reads the result outside the op's own group, seen through free operations."""
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

    def merge_siblings(self) -> bool:
        """Merge reductions of one domain that read the same values."""
        readers: dict[tuple[Value, IterationDomain], Group] = {}
        changed = False
        for group in [g for g in self.groups if g.kind == "reduce"]:
            for v in self.inputs(group):
                other = readers.get((v, group.domain))
                if other in self.groups and other is not group and not (
                        other.before & group.bit or group.before & other.bit) and not (
                        self.why_not_together(other, group) or self.why_not_rows(other, group)) and (
                        current() is None or allowed("siblings", self.in_order(group.ops)[0],
                                                     self.in_order(other.ops)[0])):
                    self.merge(other, group, at_own=True)
                    changed = True
                readers[v, group.domain] = group
        return changed

    def inputs(self, group: Group) -> dict[Value, None]:
        """What the group reads at its points."""
        domain, out = group.domain, dict[Value, None]()
        for op, own in group.ops.items():
            for v, at in operand_maps(op, own, domain):
                if at == domain.points and v.type.shape == domain.shape and (v.op is None or v.op not in group.ops):
                    out[v] = None
        return out

    def merge(self, producer: Group, consumer: Group, at_own: bool) -> None:
        places = 1 if at_own else self.places(producer, consumer)
        ops = {op: own if at_own else None for op, own in producer.ops.items()} | consumer.ops
        if at_own and producer.kind != "pointwise":
            consumer.kind, consumer.domain = producer.kind, producer.domain
        map_of = consumer.domain.map_of
        consumer.ops = {op: None if own is None else map_of(op.results[0].type.shape) for op, own in ops.items()}
        consumer.times |= {op: n * places for op, n in producer.times.items()}
        for op in producer.ops:
            self.group_of[op] = consumer
        self.groups.remove(producer)
        consumer.before = (consumer.before | producer.before) & ~producer.bit
        for other in self.groups:
            if other.before & producer.bit:
                other.before = other.before & ~producer.bit | consumer.bit | consumer.before
        for other in self.groups:
            if other.before & consumer.bit:
                other.before |= consumer.before

    # -- building kernels -----------------------------------------------------------------------------------------
    def emit(self) -> None:
        """Replace the operations by kernels, in an order that respects every dependence."""
        ordered = {op: i for i, op in enumerate(self.block)}
        mapping: dict[Value, Value] = {}
        terminator = self.block.terminator
        old = [op for op in self.block if not op.terminator and not is_outside(op)]
        remaining = sorted(self.groups, key=lambda g: min(ordered[op] for op in g.ops))
        left = sum(g.bit for g in remaining)
        while remaining:
            ready = next(g for g in remaining if not g.before & left & ~g.bit)
            remaining.remove(ready)
            left ^= ready.bit
            ops = sorted(ready.ops, key=ordered.__getitem__)
            with before(terminator, ops[-1].loc):
                if ready.kind == "outside":
                    between.move(ops[0], mapping, terminator)
                else:
                    self.kernel(ready, ops, mapping)
        between.finish(terminator, mapping, lambda v: copied(v, terminator))
        for op in reversed(old):
            op.erase()

    def kernel(self, group: Group, ops: list[Op], mapping: dict[Value, Value]) -> None:
        """Build the kernel of a group; `mapping` gets its results."""
        body = self.with_free(ops)
        inside = {r for op in body for r in op.results}
        ins = list(dict.fromkeys(v for op in body for v in op.operands if v not in inside))
        outs = [op.results[0] for op in ops if next(self.readers(op), None) is not None]
        block = Block([v.type for v in ins], [v.name for v in ins])
        local: dict[Value, Value] = dict(zip(ins, block.args))
        with at_end(block):
            for op in body:
                op.insert_clone(local)
            Yield(tuple(local[v] for v in outs))
        reasons = []
        for producer in dict.fromkeys(p for op in ops for p in self.producers(op)):
            if producer is not group and producer.kind != "outside":
                why = self.why_not_share(producer, group)
                if producer.kind == "pointwise":
                    why = f"{why}; {self.why_not_absorb(producer, group)}"
                reasons.append(f"{producer.label}: {why}")
        kernel = Kernel(tuple(mapping.get(v, v) for v in ins), (), (), None, Region(block),
                        tuple(v.type for v in outs), label=group.label, unfused=tuple(reasons),
                        **contract(block))
        for old, new in zip(outs, kernel.results):
            new.name = old.name
            mapping[old] = new

    def with_free(self, ops: list[Op]) -> list[Op]:
        """The operations of a group, each after the free ones that it reads."""
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
                             if v.op is not None and v.op.parent is self.block and is_free(v.op)
                             and v.op not in self.group_of]
        return list(out)


def domain_of(op: Op) -> IterationDomain:
    """The domain in which others may share the loop of `op`: for a contraction that of its result."""
    domain: IterationDomain = op.iteration_domain()  # type: ignore[attr-defined]
    return IterationDomain(domain.slices) if isinstance(op, tn.DotGeneral) else domain


def contract(body: Block) -> dict[str, Any]:
    """The iteration domain of a kernel, its indexing maps and its stages, as attributes."""
    outputs = body.terminator.operands
    inner: Any = next((op for op in body if isinstance(op, FusionInterface) and op.iteration.has_own_loops), None)
    domain: IterationDomain = inner.iteration_domain() if inner is not None else IterationDomain(outputs[0].type.shape)
    along = (inner.axis,) if isinstance(inner, Scattering) else domain.reduced
    iterators = [inner.iteration.iterator_type if d in along else "parallel" for d in range(len(domain.shape))]
    maps = tuple(domain.result_map(v.type.shape) for v in outputs)
    stages = plan(body, domain, maps)
    reads = stages.reads()
    last = tuple(max((stage for stage, _ in found), default=0) for found in reads.values())
    attrs: dict[str, Any] = {"domain": domain.shape, "iterator_types": tuple(iterators),
                             "indexing_maps": (
                                 *(single({at for _, at in found}, domain) for found in reads.values()),
                                 *(AffineMap.get(len(domain.shape), map) for map in maps))}
    if any((*stages.stores, *last)):
        attrs |= {"stages": stages.count, "stores": stages.stores, "last_reads": last}
    return attrs


def copied(v: Value, terminator: Op) -> Value:
    """A kernel that copies a tensor, before the end of its block."""
    block = Block([v.type])
    with at_end(block, terminator.loc):
        Yield(tuple(block.args))
    with before(terminator):
        return Kernel((v,), (), (), None, Region(block), (v.type,), label="copy",
                      **copy_contract(v.type.shape)).results[0]


def _shape(domain: IterationDomain) -> str:
    """A domain, what it reduces in parentheses."""
    return "[" + ", ".join(f"({d})" if a in domain.reduced else str(d) for a, d in enumerate(domain.shape)) + "]"


PASS = Pass(run, takes=FIXED, gives=FUSED)
