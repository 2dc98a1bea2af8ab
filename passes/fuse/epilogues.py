"""Epilogues of products on tensor cores that are long enough to be kernels of their own.

A thread holds so many sums that few threads fit on a multiprocessor, and the code of the epilogue is repeated for each
of them. A few operations on a sum are hidden there. Functions and divisions are not: each is a long chain of dependent
instructions, a division even a branch, and the repeated code leaves the cache of instructions. A kernel of their own
has all threads of the device to hide that, at the cost of storing and loading the values in between, so these are the
narrowest ones: the sums after they have been rounded to 16 bits.
"""

from __future__ import annotations

from mlc.dialects import arith, math
from mlc.dialects import tensor as tn
from mlc.dialects.tensor.iteration import IterationDomain
from mlc.dialects.tensor.orders import order_of
from mlc.dialects.tensor.traits import is_cheap, is_free, is_pointwise
from mlc.ir import sizes
from mlc.ir.changes import allowed, current
from mlc.ir.core import Op, Value
from mlc.passes.fuse.graph import FusionGraph, Group

HEAVY, DIVISION = 48, 16
"""Operations of an epilogue, beyond which it is a kernel of its own, and as how many a division or root counts."""
MANY = 1 << 19
"""Fewest points of such an epilogue: fewer are computed in the time that a kernel takes to start."""
WHY = "a long epilogue of a product on tensor cores is a kernel of its own"


def split_epilogues(graph: FusionGraph) -> None:
    """Make the long epilogues of products on tensor cores groups of their own."""
    for group in [g for g in graph.groups if g.kind == "contract"]:
        points = sizes.product(group.domain.shape)
        if isinstance(points, int) and points >= MANY and any(
                isinstance(op, tn.DotGeneral) and order_of(op).startswith("mma<") for op in group.ops):
            _split(graph, group)


def _split(graph: FusionGraph, group: Group) -> None:
    """Move the expensive operations after a product to a group of their own, and what is better computed there."""
    slow = {op for op in group.ops if is_pointwise(op) and not is_cheap(op)}
    if sum(map(_cost, slow)) <= HEAVY:
        return
    rest = _with_readers(graph, group, slow)
    if not all(map(is_pointwise, rest)):
        return
    before = [op for op in reversed(graph.in_order(group.ops)) if op not in rest and is_pointwise(op)]
    while moved := [op for op in before if op not in rest and _belongs(graph, group, op, rest)]:
        rest.add(moved[0])                               # which may make it cheaper to move others
    if any(group.ops[op] != group.domain.points for op in _crossing(graph, group, rest)):
        return                                           # what a kernel stores, it has at every point
    first = graph.in_order(rest)[0]
    if current() is None or allowed("apart", first, graph.in_order(slow)[-1]):
        graph.split(group, rest, IterationDomain(group.domain.shape), WHY)


def _cost(op: Op) -> int:
    """About how many instructions an expensive operation is."""
    if not isinstance(op, tn.Map):
        return DIVISION
    return sum(DIVISION if isinstance(inner, arith.DivF | math.Sqrt) else 1 for inner in op.body.block
               if not inner.terminator and not isinstance(inner, arith.Constant))


def _with_readers(graph: FusionGraph, group: Group, some: set[Op]) -> set[Op]:
    """Operations of a group, with all of its operations that depend on them."""
    out = set(some)
    for op in graph.in_order(group.ops):
        if any(source in out for source in _sources(graph, group, op)):
            out.add(op)
    return out


def _sources(graph: FusionGraph, group: Group, op: Op) -> list[Op]:
    """The operations of the group that an operation of it reads, through free ones."""
    return [s for v in op.operands for s in graph.sources(v) if graph.group_of[s] is group]


def _readers(graph: FusionGraph, op: Op) -> list[Op]:
    """Users of a result, through free operations."""
    out, work = list[Op](), [*op.results[0].users]
    while work:
        user = work.pop()
        if user not in graph.group_of and is_free(user):
            work += user.results[0].users
        else:
            out.append(user)
    return out


def _crossing(graph: FusionGraph, group: Group, rest: set[Op]) -> set[Op]:
    """The operations before the split whose results are read after it."""
    return {s for op in rest for s in _sources(graph, group, op) if s not in rest}


def _belongs(graph: FusionGraph, group: Group, op: Op, rest: set[Op]) -> bool:
    """Whether only the rest reads an operation, and it reads no more bytes of the product's kernel than it gives."""
    if not all(user in rest for user in _readers(graph, op)):
        return False
    stored = _crossing(graph, group, rest)
    if op not in stored:
        return False
    more = {s for s in _sources(graph, group, op) if s not in stored}
    return sum(_width(s.results[0]) for s in more) <= _width(op.results[0])


def _width(v: Value) -> int:
    width: int = v.type.dtype.width
    return width
