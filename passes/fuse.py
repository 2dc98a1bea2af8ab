"""Decide which operations become one kernel.

takes  FIXED
gives  FUSED: every operation that computes stands in a `tensor.kernel`; between kernels are only views and constants
why    a value that stays inside a kernel costs no memory traffic

Each computing operation starts a group or joins the group of a producer; then groups are merged along their edges:

same domain   a consumer that reads element p of the producer where it computes element p itself shares its loop
absorption    a pointwise producer whose values are read by one consumer alone is evaluated where it is read, whatever
              the index map in between, unless that repeats work that is not cheap

A contraction takes an epilogue but no prologue, since it reads its factors many times. Operations that cost nothing
(full, iota, broadcast_to, reshapes that add or drop axes of size 1) are copied to each reader. Any other reshape is a
view between kernels. The reason why a producer stayed apart is recorded on the consumer (`unfused`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlc.dialects import tensor as tn
from mlc.dialects.func import Func
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.kernel import Kernel, Yield
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Region, Value, at_end, before
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.passes.forms import FIXED, FUSED

MAX_OPS = 96
"""Operations that a kernel evaluates for one point; past it registers spill and compile time grows."""

_CHEAP = frozenset(f"tensor.{n}" for n in (
    "add", "sub", "mul", "neg", "abs", "compare", "select", "cast", "maximum", "minimum", "and", "or", "xor", "shl",
    "shr", "logical_not", "sign", "transpose", "slice", "pad", "concat", "reverse", "take", "take_along", "full",
    "iota", "broadcast_to", "reshape", "size", "constant", "stop_gradient"))
POINTWISE = (Elementwise, tn.Select, tn.Cast, tn.Map)
"""Operations whose result element p depends on element p of their (broadcast) operands alone."""


@dataclass(eq=False)
class Group:
    """Operations that will be one kernel."""

    kind: str                                       # pointwise | reduce | contract
    domain: tuple[Dim, ...]
    ops: dict[Op, bool] = field(default_factory=dict)      # op -> whether it runs at the kernel's own coordinates
    times: dict[Op, int] = field(default_factory=dict)     # op -> at how many places it is evaluated for one point
    bit: int = 0
    before: int = 0                                 # bits of all groups that must run earlier

    def add(self, op: Op) -> None:
        """Take in an operation that runs at the kernel's own coordinates."""
        self.ops[op] = True
        self.times[op] = 1

    @property
    def work(self) -> int:
        """How many operations are evaluated for one point."""
        return sum(self.times.values())

    @property
    def label(self) -> str:
        names = [op.name.removeprefix("tensor.") for op in self.ops if op.name not in _FREE_NAMES]
        return "_".join(names[:6]) + ("_etc" if len(names) > 6 else "")


_FREE_NAMES = frozenset({"tensor.full", "tensor.iota", "tensor.size", "tensor.broadcast_to", "tensor.reshape",
                         "tensor.constant"})


def is_free(op: Op) -> bool:
    """Costs nothing where it is read, so every reader gets its own copy."""
    if isinstance(op, tn.Reshape):
        return long_axes(op.x.type.shape) == long_axes(op.shape)
    if isinstance(op, tn.Constant):
        return not op.result.type.shape
    return isinstance(op, tn.Full | tn.Iota | tn.Size | tn.BroadcastTo)


def long_axes(shape: tuple[Dim, ...]) -> list[Dim]:
    """The sizes that are not 1."""
    return [d for d in shape if d != 1]


def is_outside(op: Op) -> bool:
    """Stands between kernels: a view of a buffer, or a constant in the program's data."""
    return isinstance(op, tn.Reshape | tn.Constant) and not is_free(op)


def run(module: Op, max_ops: int = MAX_OPS) -> None:
    """Form the kernels of every function."""
    for function in list(module.inside(Func)):
        for op in list(function.inside(tn.DotGeneral)):
            _arrange(op)
        _Fuser(function.block, max_ops).run()


def _arrange(op: tn.DotGeneral) -> None:
    """Let the right factor end in a free axis, which lies in vector registers: swap the factors or transpose it."""
    lhs, rhs, batch, contract = op.lhs, op.rhs, op.batch, op.contract
    with before(op, op.loc.through("fuse")):
        if not _free_axes(rhs, [b for _, b in batch], [c for _, c in contract]):
            lhs, rhs = rhs, lhs                      # a product commutes exactly; the free axes are all on one side
            batch, contract = (tuple((b, a) for a, b in pairs) for pairs in (batch, contract))
        batch_axes, contract_axes = [b for _, b in batch], [c for _, c in contract]
        free = _free_axes(rhs, batch_axes, contract_axes)
        if free and rhs.type.rank - 1 not in free:
            perm = (*batch_axes, *contract_axes, *free)
            rhs = tn.Transpose(rhs, perm=perm).result
            batch = tuple((a, perm.index(b)) for a, b in batch)
            contract = tuple((a, perm.index(c)) for a, c in contract)
        if lhs is not op.lhs or rhs is not op.rhs:
            new = tn.DotGeneral(lhs, rhs, batch=batch, contract=contract)
            new.attrs |= {k: v for k, v in op.attrs.items() if k not in ("batch", "contract")}
            op.replace_by(new.result)


def _free_axes(v: Value, batch: list[int], contract: list[int]) -> list[int]:
    return [a for a in range(v.type.rank) if a not in batch and a not in contract]


class _Fuser:
    """Fusion of one block."""

    def __init__(self, block: Block, max_ops: int) -> None:
        self.block = block
        self.max_ops = max_ops
        self.group_of: dict[Op, Group] = {}
        self.groups: list[Group] = []

    def run(self) -> None:
        for op in reversed(list(self.block)):        # a kernel has results; what nobody reads gets none
            if op.name.startswith("tensor.") and not any(r.uses for r in op.results):
                op.erase()
        for op in self.block:
            if op.terminator or not op.name.startswith("tensor."):
                continue
            if not is_free(op):
                self.place(op)
            elif any(self.leaves(u) for u in op.result.users):
                self.start(op)                       # a free value that leaves the function needs a kernel after all
        changed = True
        while changed:
            changed = False
            for consumer in reversed(list(self.groups)):
                changed |= self.merge_into(consumer)
        self.emit()

    def leaves(self, user: Op) -> bool:
        return user.terminator or is_outside(user) or not user.name.startswith("tensor.")

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
        return dict.fromkeys(self.group_of[s] for v in op.operands for s in self.sources(v))

    def start(self, op: Op) -> Group:
        kind = "reduce" if isinstance(op, Reduce) else "contract" if isinstance(op, tn.DotGeneral) else \
            "outside" if is_outside(op) else "pointwise"
        group = Group(kind, op.results[0].type.shape, bit=1 << len(self.groups))
        group.add(op)
        for p in self.producers(op):
            group.before |= p.bit | p.before
        self.groups.append(group)
        self.group_of[op] = group
        return group

    def place(self, op: Op) -> None:
        producers = self.producers(op)
        if isinstance(op, POINTWISE):
            for group in sorted(producers, key=lambda g: g.kind == "pointwise"):
                if self.why_not_join(op, group) is None:
                    group.add(op)
                    self.group_of[op] = group
                    self.depend(group, producers)
                    return
        self.start(op)

    def why_not_join(self, op: Op, group: Group) -> str | None:
        """Why `op` cannot run in the loop of `group`, at the same coordinates."""
        if group.kind == "outside":
            return "it stands between kernels"
        if op.results[0].type.shape != group.domain:
            return "the domains differ"
        if group.work >= self.max_ops:
            return f"the kernel would have more than {self.max_ops} operations"
        for v in op.operands:
            for s in self.sources(v):
                if self.group_of[s] is group and not (v.op is s and group.ops[s] and v.type.shape == group.domain):
                    return "it reads other elements than its own"
        if any(p is not group and p.before & group.bit for p in self.producers(op)):
            return "another kernel runs between them"
        return None

    def depend(self, group: Group, producers: dict[Group, None]) -> None:
        """Let `group` run after `producers`, and whatever runs after `group` too."""
        for p in producers:
            if p is not group:
                group.before |= p.bit | p.before
        for other in self.groups:
            if other.before & group.bit:
                other.before |= group.before

    # -- merging groups -------------------------------------------------------------------------------------------
    def merge_into(self, consumer: Group) -> bool:
        """Merge the first producer that may be merged into `consumer`."""
        if consumer.kind == "outside" or consumer not in self.groups:
            return False
        for producer in dict.fromkeys(p for op in consumer.ops for p in self.producers(op)):
            if producer is consumer or producer.kind == "outside":
                continue
            if self.why_not_share(producer, consumer) is None:
                self.merge(producer, consumer, at_own=True)
                return True
            if self.why_not_absorb(producer, consumer) is None:
                self.merge(producer, consumer, at_own=False)
                return True
        return False

    def between(self, producer: Group, consumer: Group) -> bool:
        """Whether some third group runs after the one and before the other."""
        return any(g is not producer and g is not consumer and g.before & producer.bit and consumer.before & g.bit
                   for g in self.groups)

    def why_not_share(self, producer: Group, consumer: Group) -> str | None:
        """Why the two cannot run in one loop."""
        if producer.domain != consumer.domain:
            return f"the domains differ: {_shape(producer.domain)} and {_shape(consumer.domain)}"
        if producer.kind != "pointwise" and consumer.kind != "pointwise":
            return f"both have a loop of their own ({producer.kind} and {consumer.kind})"
        if producer.work + consumer.work > self.max_ops:
            return f"the kernel would have more than {self.max_ops} operations"
        for op, own in consumer.ops.items():
            for v in op.operands:
                for s in self.sources(v):
                    if self.group_of[s] is producer and not (own and isinstance(op, POINTWISE) and v.op is s
                                                             and producer.ops[s]):
                        return "it reads other elements than its own"
        return "another kernel runs between them" if self.between(producer, consumer) else None

    def why_not_absorb(self, producer: Group, consumer: Group) -> str | None:
        """Why the consumer cannot evaluate the producer's elements where it reads them."""
        if producer.kind != "pointwise":
            return f"a {producer.kind} is evaluated once"
        if consumer.kind == "contract" and any(
                self.group_of[s] is producer for op in consumer.ops if isinstance(op, tn.DotGeneral)
                for v in op.operands for s in self.sources(v)):
            return "a contraction reads its factors from memory"
        for op in producer.ops:
            for user in self.readers(op):
                if self.leaves(user) or self.group_of.get(user) is not consumer:
                    return "its value is needed elsewhere too"
        if self.places(producer, consumer) * producer.work + consumer.work > self.max_ops:
            return f"the kernel would have more than {self.max_ops} operations"
        repeats = sizes.product(producer.domain) != sizes.product(self.points(consumer)) or any(
            len(list(self.readers(op))) > 1 for op in producer.ops)          # at two places, perhaps
        if repeats and not all(op.name in _CHEAP for op in producer.ops):
            return "it would be computed more than once"
        return None

    def places(self, producer: Group, consumer: Group) -> int:
        """At how many places the consumer reads the producer for one point; its own is one, whoever reads there."""
        reading = {user for op in producer.ops for user in self.readers(op)}
        here = {user for user in reading if consumer.ops[user] and isinstance(user, POINTWISE)}
        return bool(here) + sum(consumer.times[user] for user in reading - here)

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

    def points(self, group: Group) -> tuple[Dim, ...]:
        """The domain of a group with the axes it reduces."""
        for op in group.ops:
            if isinstance(op, Reduce):
                return op.x.type.shape  # type: ignore[no-any-return]
        return group.domain

    def merge(self, producer: Group, consumer: Group, at_own: bool) -> None:
        places = 1 if at_own else self.places(producer, consumer)
        consumer.ops = {op: own and at_own for op, own in producer.ops.items()} | consumer.ops
        consumer.times |= {op: n * places for op, n in producer.times.items()}
        if at_own and producer.kind != "pointwise":
            consumer.kind = producer.kind
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
        old = [op for op in self.block if op.name.startswith("tensor.")]
        remaining = sorted(self.groups, key=lambda g: min(ordered[op] for op in g.ops))
        while remaining:
            ready = next(g for g in remaining if not any(o is not g and g.before & o.bit for o in remaining))
            remaining.remove(ready)
            ops = sorted(ready.ops, key=ordered.__getitem__)
            with before(terminator, ops[-1].loc):
                if ready.kind == "outside":
                    ops[0].insert_clone(mapping)
                else:
                    self.kernel(ready, ops, mapping)
        self.finish(terminator, mapping)
        for op in reversed(old):
            op.erase()

    def finish(self, terminator: Op, mapping: dict[Value, Value]) -> None:
        """Every returned value comes from a kernel of its own result: what does not is copied by one."""
        seen: set[Value] = set()
        for i, v in enumerate(terminator.operands):
            v = mapping.get(v, v)
            if not isinstance(v.op, Kernel) or v in seen:
                block = Block([v.type])
                with at_end(block):
                    Yield(tuple(block.args))
                with before(terminator):
                    v = Kernel((v,), (), (), None, Region(block), (v.type,), label="copy").results[0]
            seen.add(v)
            terminator.set_operand(i, v)

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
                        tuple(v.type for v in outs), label=group.label, unfused=tuple(reasons))
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


def _shape(domain: tuple[Dim, ...]) -> str:
    return "[" + ", ".join(map(str, domain)) + "]"


PASS = Pass(run, takes=FIXED, gives=FUSED)
