"""differentiate, batch, operations: each says itself what it is of many lanes.

A value is batched, and then has an axis of lanes before its own, or the same for all lanes. What depends on nothing
batched is copied. Another operation gives its rule (`vmap`); where it has none, it is taken apart if it is a composite,
and else done for one lane after the other. A scalar of each lane, as loops and conditions are made of, is a tensor.

Within loops and conditions not all lanes may be `live`. Those that are not are computed as well, and what becomes of
them is thrown away; only positions that are checked must be in range.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlc.dialects import arith, func, tensor
from mlc.dialects.autodiff.attributes import RECOMPUTE
from mlc.dialects.autodiff.predicated import Masked
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import broadcast_to, full, reshape, select
from mlc.dialects.tensor.control import for_loop, from_index, from_scalar, scalar_dtype
from mlc.dialects.tensor.map import map_elements
from mlc.dialects.tensor.shape import pad
from mlc.dialects.tensor.traits import checked_operand
from mlc.ir.core import Block, Op, Symbol, Value, before, builder, located
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import IndexType, IntType, TensorType, Type, i64
from mlc.passes.differentiate.predicated import beside

PASS_NAME = "vmap"
"""What the locations of batched operations say they went through."""


@dataclass(frozen=True)
class BatchRequest:
    """A function of many lanes: its arguments `batched` are those of each lane.

    lanes    how many there are, where that is a number; else the function has a size symbol of its own for it
    masked   whether its first argument says which lanes are live
    """

    callee: Symbol
    batched: tuple[int, ...]
    lanes: int | None
    masked: bool = False


@dataclass(frozen=True)
class BatchedFunction:
    """The function that a request asked for, and which of its results are those of each lane."""

    function: Func
    results: tuple[bool, ...]


Flagged = list[tuple[Value, bool]]
"""Values, and whether each is batched."""
Walk = Generator[BatchRequest, BatchedFunction, Any]
"""What hands out the requests of calls inside, and is sent what answers them."""


@dataclass
class Scope:
    """What values of the function have become. `live` are the lanes that count, None where all do."""

    live: Value | None = None
    new: dict[Value, Value] = field(default_factory=dict)
    batched: set[Value] = field(default_factory=set)

    def bind(self, old: Value, new: Value, is_batched: bool) -> None:
        self.new[old] = new
        (self.batched.add if is_batched else self.batched.discard)(old)

    def get(self, values: Sequence[Value]) -> Flagged:
        return [(self.new[v], v in self.batched) for v in values]


def batched_type(type: Type, lanes: Dim, asked: Loc) -> TensorType:
    """The type of a value of `type` for each lane."""
    if isinstance(type, TensorType):
        return type.with_shape((lanes, *type.shape))
    if isinstance(type, IntType | IndexType):
        return TensorType((lanes,), scalar_dtype(type))
    raise UserError(f"a {type} for each lane is nothing there is a tensor of", code="MLC0137", loc=asked)


class Walker:
    """Batches what stands in blocks, for so many lanes."""

    def __init__(self, lanes: Dim, asked: Loc, table: Mapping[Symbol, Func]) -> None:
        self.lanes = lanes
        self.asked = asked
        self.table = table                       # the functions of the module

    def control(self, op: Op, scope: Scope) -> Walk:
        """Batch a loop, a condition or what else has values of the function inside."""
        raise NotImplementedError

    def block(self, block: Block, scope: Scope) -> Walk:
        """Batch the operations of a block, at the insertion point; what its terminator hands over."""
        op = block.first
        while op is not None and not op.terminator:
            with located(op.loc.through(PASS_NAME)):
                replaced = yield from self._op(op, scope)
            op = replaced if replaced is not None else op.next
        assert op is not None, "a block without end"
        return scope.get(op.operands)

    def _op(self, op: Op, scope: Scope) -> Walk:
        """Batch one operation; the first of those that it was taken apart into, if it was."""
        if not any(v in scope.batched for inner in op.walk() for v in inner.operands):
            self.copy(op, scope)
        elif isinstance(op, func.Call):
            yield from self._call(op, scope)
        elif isinstance(op, tensor.BindSize):
            self._bind_size(op, scope)
        elif op.name.startswith("scf.") or isinstance(op, Masked):
            yield from self.control(op, scope)
        elif (results := self._by_rule(op, scope)) is not None:
            for old, new in zip(op.results, results):
                scope.bind(old, new, True)
        elif hasattr(op, "decompose"):
            return decompose(op)
        else:
            self._by_lane(op, scope)
        return None

    def copy(self, op: Op, scope: Scope) -> None:
        """The same operation, once for all lanes."""
        mapping = {v: scope.new[v] for inner in op.walk() for v in inner.operands if v in scope.new}
        copy = op.insert_clone(mapping)
        for old, new in zip(op.results, copy.results):
            scope.bind(old, new, False)

    def spread(self, value: Value, is_batched: bool) -> Value:
        """A value as one of each lane."""
        if is_batched:
            return value
        if not isinstance(value.type, TensorType):
            value = from_scalar(value)
        return broadcast_to(value, (self.lanes, *value.type.shape))

    # -- operations ---------------------------------------------------------------------------------------------------
    def _by_rule(self, op: Op, scope: Scope) -> Sequence[Value] | None:
        flagged = scope.get(op.operands)
        if op.name.startswith("arith."):
            return [self._of_scalars(op, flagged)]
        operands, batched = [v for v, _ in flagged], [is_batched for _, is_batched in flagged]
        at = checked_operand(op)
        if at is not None and scope.live is not None and batched[at]:
            operands[at] = select(beside(scope.live, operands[at]), operands[at], full(0, operands[at]))
        results = op.vmap(self.lanes, operands, batched)
        return [results] if isinstance(results, Value) else results

    def _of_scalars(self, op: Op, flagged: Flagged) -> Value:
        """An operation on scalars, for each lane: tensor.map of it, with i64 for an index."""
        def body(*elements: Value) -> Value:
            dtype = scalar_dtype(op.results[0].type)
            if isinstance(op, arith.IndexCast | arith.IndexCastUI):
                return resized(elements[0], dtype, isinstance(op, arith.IndexCastUI))
            made = type(op).make(elements, dict(op.attrs), [dtype], loc=op.loc)
            assert builder.block is not None
            builder.block.insert(made)
            return made.results[0]
        return map_elements([v if isinstance(v.type, TensorType) else from_scalar(v) for v, _ in flagged], body)

    def _bind_size(self, op: tensor.BindSize, scope: Scope) -> None:
        """The tapes of a derivative have at least the rows that are used: for all lanes those of the longest."""
        if op.bound is not None:
            raise UserError(f"vmap cannot give each batch element a number of rows of its own: the size {op.size} "
                            "is data-dependent", code="MLC0137", loc=op.loc,
                            notes=(f"vmap is asked for at {self.asked}",),
                            hint="choose by the mask, which keeps the size: mlc.where(mask, x, 0). What all lanes "
                                 "share is picked before loops and conditions")
        for call in op.result.users:
            if not isinstance(call, func.Call) or not self.table[call.callee].attrs.get(RECOMPUTE):
                raise UserError(f"the size {op.size} depends on data and would differ from lane to lane",
                                code="MLC0137", loc=op.loc, notes=(f"vmap is asked for at {self.asked}",),
                                hint="use a size that is known, and choose by a mask")
        n, = (v for v, _ in scope.get([op.n]))
        if scope.live is not None:
            n = select(scope.live, n, full(0, n))
        n = tensor.Maximum(tensor.ReduceMax(n, (0,)).result, tensor.Full(0, (), i64).result).result
        scope.bind(op.result, tensor.BindSize(n, op.size).result, False)

    def _by_lane(self, op: Op, scope: Scope) -> None:
        """A loop over the lanes, for an operation that has no rule and is made of no others.

        Where there may be no lanes, what a turn reads and writes has a row more, for a row to fit in.
        """
        spare = 0 if isinstance(self.lanes, int) and self.lanes > 0 else 1
        flagged = [(spared(x, spare) if is_batched else x, is_batched) for x, is_batched in scope.get(op.operands)]

        def one(i: Value, *stacked: Value) -> list[Value]:
            lane = from_index(i)
            operands = [taken(x, lane) if is_batched else x for x, is_batched in flagged]
            made = op.insert_clone(dict(zip(op.operands, operands)))
            return [put(all, x, lane) for all, x in zip(stacked, made.results)]

        start = [full(0, r, (self.lanes + spare, *r.type.shape)) for r in op.results]
        for old, new in zip(op.results, for_loop(0, self.lanes, start, one)):
            stops = (self.lanes, *old.type.shape)
            kept = tensor.Slice(new, (0,) * len(stops), stops, (1,) * len(stops)).result if spare else new
            scope.bind(old, kept, True)

    # -- calls --------------------------------------------------------------------------------------------------------
    def _call(self, op: func.Call, scope: Scope) -> Walk:
        flagged = scope.get(op.operands)
        which = tuple(i for i, (_, is_batched) in enumerate(flagged) if is_batched)
        lanes = self.lanes if isinstance(self.lanes, int) else None
        made = yield BatchRequest(op.callee, which, lanes, scope.live is not None)
        live = [] if scope.live is None else [scope.live]
        for old, new, is_batched in zip(op.results, func.call(made.function, [*live, *(v for v, _ in flagged)]),
                                        made.results):
            scope.bind(old, new, is_batched)


def decompose(op: Op) -> Op | None:
    """Replace a composite by what it is made of; the first operation of that, or what follows."""
    block, last = op.parent, op.prev
    assert block is not None
    with before(op):
        value = op.decompose()  # type: ignore[attr-defined]
    following = op.next
    op.replace_by(*((value,) if isinstance(value, Value) else value))
    return (last.next if last is not None else block.first) or following


def resized(x: Value, type: IntType, unsigned: bool) -> Value:
    """An integer in a type of another width."""
    if x.type == type:
        return x
    if x.type.width > type.width:
        return arith.TruncI(x, type).result
    return (arith.ExtUI if unsigned else arith.ExtSI)(x, type).result


def spared(x: Value, rows: int) -> Value:
    """x with so many rows more."""
    rank = x.type.rank
    return pad(x, (0,) * rank, (rows, *[0] * (rank - 1)), (0,) * rank)


def taken(x: Value, lane: Value) -> Value:
    """The value of one lane."""
    shape = x.type.shape[1:]
    starts = (lane, *(full(0, lane) for _ in shape))
    return reshape(tensor.DynamicSlice(x, starts, (1, *shape)).result, shape)


def put(x: Value, value: Value, lane: Value) -> Value:
    """x with the value of one lane replaced."""
    shape = value.type.shape
    starts = (lane, *(full(0, lane) for _ in shape))
    return tensor.DynamicUpdateSlice(x, reshape(value, (1, *shape)), starts).result
