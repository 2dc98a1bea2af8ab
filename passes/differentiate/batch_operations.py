"""differentiate, batch, operations: applies the batching rule (`vmap`) of each operation.

A value is either batched, with a leading batch axis, or shared by all batch elements. Operations on shared values are
cloned. Others are batched by their rule; an operation without a rule is decomposed if it is a composite, and otherwise
run in a loop over the batch elements. A batched scalar, such as a loop bound or a condition, is a tensor.

Inside loops and conditionals, only some batch elements may be active. Inactive elements are computed too and their
results discarded; operands that are checked at run time, such as indices, are replaced by valid ones.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlc.dialects import arith, func, tensor
from mlc.dialects.autodiff.attributes import RECOMPUTE
from mlc.dialects.autodiff.predication import Predicated
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import broadcast_to, full, reshape, select
from mlc.dialects.tensor.control import for_loop, from_index, from_scalar, scalar_dtype
from mlc.dialects.tensor.map import map_elements
from mlc.dialects.tensor.slicing import pad
from mlc.dialects.tensor.traits import checked_operand
from mlc.ir.core import Block, Op, Symbol, Value, before, builder, located
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import IndexType, IntType, TensorType, Type, i64
from mlc.passes.differentiate.predicated import beside

PASS_NAME = "vmap"
"""Name of the pass in the locations of batched operations."""


@dataclass(frozen=True)
class BatchRequest:
    """A request for a function batched over its arguments `batched`.

    batch_size  None if it is symbolic: the function then has a size symbol of its own for it
    predicated  whether the first argument is the active mask
    """

    callee: Symbol
    batched: tuple[int, ...]
    batch_size: int | None
    predicated: bool = False


@dataclass(frozen=True)
class BatchedFunction:
    """A batched function, and which of its results are batched."""

    function: Func
    results: tuple[bool, ...]


Flagged = list[tuple[Value, bool]]
"""Values, each with a flag: whether it is batched."""
BatchCoroutine = Generator[BatchRequest, BatchedFunction, Any]
"""Coroutine that yields a request for each callee and is sent the batched function."""


@dataclass
class BatchScope:
    """Mapping from values of the function to batched ones. `active` is the active mask, None if all are active."""

    active: Value | None = None
    new: dict[Value, Value] = field(default_factory=dict)
    batched: set[Value] = field(default_factory=set)

    def bind(self, old: Value, new: Value, is_batched: bool) -> None:
        self.new[old] = new
        (self.batched.add if is_batched else self.batched.discard)(old)

    def get(self, values: Sequence[Value]) -> Flagged:
        return [(self.new[v], v in self.batched) for v in values]


def batched_type(type: Type, batch_size: Dim, asked: Loc) -> TensorType:
    """`type` with a leading batch axis."""
    if isinstance(type, TensorType):
        return type.with_shape((batch_size, *type.shape))
    if isinstance(type, IntType | IndexType):
        return TensorType((batch_size,), scalar_dtype(type))
    raise UserError(f"a value of type {type} cannot be batched", code="MLC0137", loc=asked)


class BlockBatcher:
    """Batches the operations of blocks."""

    def __init__(self, batch_size: Dim, asked: Loc, table: Mapping[Symbol, Func]) -> None:
        self.batch_size = batch_size
        self.asked = asked
        self.table = table                       # the functions of the module

    def control(self, op: Op, scope: BatchScope) -> BatchCoroutine:
        """Batch a loop, a conditional or another operation whose regions capture values."""
        raise NotImplementedError

    def block(self, block: Block, scope: BatchScope) -> BatchCoroutine:
        """Batch the operations of a block at the insertion point; returns the batched operands of its terminator."""
        op = block.first
        while op is not None and not op.terminator:
            with located(op.loc.through(PASS_NAME)):
                replaced = yield from self._op(op, scope)
            op = replaced if replaced is not None else op.next
        assert op is not None, "the block has no terminator"
        return scope.get(op.operands)

    def _op(self, op: Op, scope: BatchScope) -> BatchCoroutine:
        """Batch one operation. If it is decomposed instead, return the first operation of the decomposition."""
        if not any(v in scope.batched for inner in op.walk() for v in inner.operands):
            self.copy(op, scope)
        elif isinstance(op, func.Call):
            yield from self._call(op, scope)
        elif isinstance(op, tensor.BindSize):
            self._bind_size(op, scope)
        elif op.name.startswith("scf.") or isinstance(op, Predicated):
            yield from self.control(op, scope)
        elif (results := self._by_rule(op, scope)) is not None:
            for old, new in zip(op.results, results):
                scope.bind(old, new, True)
        elif hasattr(op, "decompose"):
            return decompose(op)
        else:
            self._by_element(op, scope)
        return None

    def copy(self, op: Op, scope: BatchScope) -> None:
        """Clone an operation on shared values; its results are shared too."""
        mapping = {v: scope.new[v] for inner in op.walk() for v in inner.operands if v in scope.new}
        copy = op.insert_clone(mapping)
        for old, new in zip(op.results, copy.results):
            scope.bind(old, new, False)

    def spread(self, value: Value, is_batched: bool) -> Value:
        """The value, broadcast along the batch axis if it is shared."""
        if is_batched:
            return value
        if not isinstance(value.type, TensorType):
            value = from_scalar(value)
        return broadcast_to(value, (self.batch_size, *value.type.shape))

    # -- operations ---------------------------------------------------------------------------------------------------
    def _by_rule(self, op: Op, scope: BatchScope) -> Sequence[Value] | None:
        flagged = scope.get(op.operands)
        if op.name.startswith("arith."):
            return [self._of_scalars(op, flagged)]
        operands, batched = [v for v, _ in flagged], [is_batched for _, is_batched in flagged]
        at = checked_operand(op)
        if at is not None and scope.active is not None and batched[at]:
            operands[at] = select(beside(scope.active, operands[at]), operands[at], full(0, operands[at]))
        results = op.vmap(self.batch_size, operands, batched)
        return [results] if isinstance(results, Value) else results

    def _of_scalars(self, op: Op, flagged: Flagged) -> Value:
        """Batch an operation on scalars as a tensor.map, with i64 in place of index."""
        def body(*elements: Value) -> Value:
            dtype = scalar_dtype(op.results[0].type)
            if isinstance(op, arith.IndexCast | arith.IndexCastUI):
                return resized(elements[0], dtype, isinstance(op, arith.IndexCastUI))
            scalar = type(op).make(elements, dict(op.attrs), [dtype], loc=op.loc)
            assert builder.block is not None
            builder.block.insert(scalar)
            return scalar.results[0]
        return map_elements([v if isinstance(v.type, TensorType) else from_scalar(v) for v, _ in flagged], body)

    def _bind_size(self, op: tensor.BindSize, scope: BatchScope) -> None:
        """Bind the length of a derivative's tapes to the maximum trip count over the batch."""
        if op.bound is not None:
            raise UserError(f"vmap cannot give each batch element a number of rows of its own: the size {op.size} "
                            "is data-dependent", code="MLC0137", loc=op.loc,
                            notes=(f"vmap is requested at {self.asked}",),
                            hint="select by the mask, which keeps the size: mlc.where(mask, x, 0). Index "
                                 "unbatched arrays before loops and conditionals")
        for call in op.result.users:
            if not isinstance(call, func.Call) or not self.table[call.callee].attrs.get(RECOMPUTE):
                raise UserError(f"the size {op.size} depends on data and would differ between batch elements",
                                code="MLC0137", loc=op.loc, notes=(f"vmap is requested at {self.asked}",),
                                hint="use a size that does not depend on data, and select by a mask")
        n, = (v for v, _ in scope.get([op.n]))
        if scope.active is not None:
            n = select(scope.active, n, full(0, n))
        n = tensor.Maximum(tensor.ReduceMax(n, (0,)).result, tensor.Full(0, (), i64).result).result
        scope.bind(op.result, tensor.BindSize(n, op.size).result, False)

    def _by_element(self, op: Op, scope: BatchScope) -> None:
        """Loop over the batch elements, for a primitive operation without a batching rule.

        If the batch may be empty, the arrays are padded by one row, so that slices stay in bounds.
        """
        spare = 0 if isinstance(self.batch_size, int) and self.batch_size > 0 else 1
        flagged = [(spared(x, spare) if is_batched else x, is_batched) for x, is_batched in scope.get(op.operands)]

        def one(i: Value, *stacked: Value) -> list[Value]:
            element = from_index(i)
            operands = [taken(x, element) if is_batched else x for x, is_batched in flagged]
            clone = op.insert_clone(dict(zip(op.operands, operands)))
            return [put(all, x, element) for all, x in zip(stacked, clone.results)]

        start = [full(0, r, (self.batch_size + spare, *r.type.shape)) for r in op.results]
        for old, new in zip(op.results, for_loop(0, self.batch_size, start, one)):
            stops = (self.batch_size, *old.type.shape)
            kept = tensor.Slice(new, (0,) * len(stops), stops, (1,) * len(stops)).result if spare else new
            scope.bind(old, kept, True)

    # -- calls --------------------------------------------------------------------------------------------------------
    def _call(self, op: func.Call, scope: BatchScope) -> BatchCoroutine:
        flagged = scope.get(op.operands)
        which = tuple(i for i, (_, is_batched) in enumerate(flagged) if is_batched)
        batch_size = self.batch_size if isinstance(self.batch_size, int) else None
        batched = yield BatchRequest(op.callee, which, batch_size, scope.active is not None)
        active = [] if scope.active is None else [scope.active]
        for old, new, is_batched in zip(op.results, func.call(batched.function, [*active, *(v for v, _ in flagged)]),
                                        batched.results):
            scope.bind(old, new, is_batched)


def decompose(op: Op) -> Op | None:
    """Replace a composite by its decomposition; returns the operation at which to continue."""
    block, last = op.parent, op.prev
    assert block is not None
    with before(op):
        value = op.decompose()  # type: ignore[attr-defined]
    following = op.next
    op.replace_by(*((value,) if isinstance(value, Value) else value))
    return (last.next if last is not None else block.first) or following


def resized(x: Value, type: IntType, unsigned: bool) -> Value:
    """An integer, extended or truncated to another width."""
    if x.type == type:
        return x
    if x.type.width > type.width:
        return arith.TruncI(x, type).result
    return (arith.ExtUI if unsigned else arith.ExtSI)(x, type).result


def spared(x: Value, rows: int) -> Value:
    """x padded by `rows` rows."""
    rank = x.type.rank
    return pad(x, (0,) * rank, (rows, *[0] * (rank - 1)), (0,) * rank)


def taken(x: Value, element: Value) -> Value:
    """The value of one batch element."""
    shape = x.type.shape[1:]
    starts = (element, *(full(0, element) for _ in shape))
    return reshape(tensor.DynamicSlice(x, starts, (1, *shape)).result, shape)


def put(x: Value, value: Value, element: Value) -> Value:
    """x with the value of one batch element replaced."""
    shape = value.type.shape
    starts = (element, *(full(0, element) for _ in shape))
    return tensor.DynamicUpdateSlice(x, reshape(value, (1, *shape)), starts).result
