"""tensor, base classes and functions of all families: checks, broadcasting, rounding, constants, batching rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, aligned
from mlc.dialects.tensor.sharding_rule import ShardingRule, by_indexing_maps
from mlc.dialects.tensor.traits import FusionInterface, Iteration
from mlc.ir import sizes
from mlc.ir.core import Op, Value, builder, clone_region
from mlc.ir.diag import UNKNOWN, IRError
from mlc.ir.sizes import Dim, Size, is_natural
from mlc.ir.types import ComplexType, FloatType, IntType, ScalarType, TensorType, bf16, f16, f32, i1, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

Array = np.ndarray[Any, Any]

FOLDED_ELEMENTS = 256
"""Most elements of a constant that folding creates."""


class TensorOp(FusionInterface, pure=True):
    """An operation on tensors whose result is one tensor.

    on_parts  rule by which decompose_complex computes it for complex tensors: a method that takes a `Parts` for each
              complex operand and gives that of the result, or a value if the result is real; None if the operation is
              not defined on complex elements
    """

    on_parts: ClassVar[Callable[..., Any] | None] = None

    def refuse(self, message: str, code: str, hint: str | None = None, symbols: Iterable[str] = ()) -> NoReturn:
        """Raise IRError, with notes on the origin of each operand. `symbols` are those of the sizes at fault."""
        notes = tuple(f"operand {i}, {v.type}, comes from {v.op.loc}" for i, v in enumerate(self.operands)
                      if v.op is not None and v.op.loc is not UNKNOWN)
        raise IRError(f"{self.name}: {message}", code=code, loc=self.loc, notes=notes, hint=hint, symbols=symbols)

    def size_constraints(self) -> Iterable[tuple[Dim, str]]:
        """Sizes besides those of tensors that must be non-negative at run time, each with the message if it is not."""
        return ()

    def iteration_domain(self) -> IterationDomain:
        """The iteration domain of a kernel of this operation alone."""
        return IterationDomain(self.results[0].type.shape)

    def iterator_types(self) -> tuple[str, ...]:
        """The iterator type of each dimension of the domain, for an operation with loops of its own."""
        domain = self.iteration_domain()
        return tuple(self.iteration.iterator_type if d in domain.reduced else "parallel"
                     for d in range(len(domain.shape)))

    def home(self, domain: IterationDomain) -> tuple[Dim, ...] | None:
        """The indexing map of the result, for an operation with loops of its own; others are computed at each use."""
        return None

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """The indexing maps by which the element `at` of the result reads each operand; None if there is no such map.

        `domain` is that of the kernel. An operation with loops of its own reads by its coordinates.
        """
        return (None,) * len(self.operands)

    def sharding_rule(self) -> ShardingRule:
        """Along which factors the operation can be divided among ranks; by default as its indexing maps say."""
        return by_indexing_maps(self)

    def combining_name(self) -> str:
        """The name of the combining kind of partial results of a reduction or contraction."""
        return ""

    def on_shard(self, operands: Sequence[Value], shape: tuple[Dim, ...]) -> Op:
        """Build the operation on the shards of its operands; `shape` is that of the result's shard."""
        return self.with_operands(operands)

    def block_axis(self) -> int | None:
        """The axis of the first operand in which other operands give positions, if the operation can be built on a
        block of it; None if there is none."""
        return None

    def on_block(self, operands: Sequence[Value], start: Value) -> Value:
        """Build the operation on a block of that axis, which begins at a position: positions elsewhere give zeros, or
        change nothing."""
        raise NotImplementedError

    def with_operands(self, operands: Sequence[Value], **attrs: Any) -> Op:
        """Build the operation on other operands, with some attributes changed, at the insertion point."""
        op = type(self).make(operands, {**self.attrs, **attrs}, None, segments=self.segments, loc=self.loc)
        assert builder.block is not None
        builder.block.insert(op, builder.before)
        return op

    def tensors(self) -> list[TensorType]:
        """The types of the operands; IRError unless all are tensors."""
        for i, v in enumerate(self.operands):
            if not isinstance(v.type, TensorType):
                self.refuse(f"operand {i} is {v.type}, not a tensor", "MLC0118")
            if isinstance(v.type.dtype, ComplexType) and self.on_parts is None:
                self.refuse(f"is not defined on complex elements, {v.type.dtype}", "MLC0785",
                            hint="apply it to x.real and x.imag, or to abs(x)")
        return [v.type for v in self.operands]

    def check_axis(self, axis: int, rank: int) -> None:
        if not 0 <= axis < rank:
            self.refuse(f"axis {axis} is out of range for {rank} dimensions", "MLC0114")

    def check_axes(self, axes: Sequence[int], rank: int) -> None:
        for axis in axes:
            self.check_axis(axis, rank)
        if list(axes) != sorted(set(axes)):
            self.refuse(f"axes {list(axes)} are not in ascending order, each once", "MLC0114")

    def constants(self) -> list[Array] | None:
        """The operands as arrays, if all are constants and the result is static and small."""
        type = self.results[0].type
        if not (isinstance(type, TensorType) and type.is_static and int_size(type) <= FOLDED_ELEMENTS):
            return None
        if any(isinstance(d, Size) for a in self.attrs.values() if isinstance(a, tuple) for d in a):
            return None
        arrays = [constant_array(v) for v in self.operands]
        return None if any(a is None for a in arrays) else [a for a in arrays if a is not None]


class CopyOp(TensorOp):
    """An operation whose result consists of elements of its operands, so it folds for every element type."""

    iteration = Iteration.INDEXED
    checked_operand = None

    def fold(self) -> Value | Array | None:
        arrays = self.constants()
        return None if arrays is None else np.asarray(self.ref(*arrays))


class SizedOp(TensorOp):
    """An operation whose reference evaluates sizes: `compute(size, *operands)`."""

    def compute(self, size: Any, *xs: Any) -> Any:
        raise NotImplementedError

    def ref(self, *xs: Any) -> Any:
        return self.compute(operator.index, *xs)

    def interpret(self, frame: Frame) -> Any:
        return self.compute(frame.size, *frame.all(self.operands))


class TypedOp(Op):
    """Printed as `name %x {attributes} : type to type`; the attributes `spelled` are part of the result type."""

    spelled: ClassVar[tuple[str, ...]] = ()

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, self.spelled)
        source = f"{p.type(self.operands[0].type)} to " if self.operands else ""
        p.append(f" {p.values(self.operands)}".rstrip() + (f" {extra}" if extra else "")
                 + f" : {source}{p.type(self.results[0].type)}")

    @classmethod
    def parse_form(cls, parser: Parser) -> Op:
        refs = parser.operand_list()
        attrs = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        sources = [parser.type()] if refs else []
        if refs:
            parser.expect("to")
        target = parser.type()
        if not isinstance(target, TensorType):
            parser.fail(f"expected a tensor type, found {target}", "MLC0206")
        attrs |= {name: getattr(target, name) for name in cls.spelled}
        return parser.build(cls, parser.resolve_all(refs, sources), attrs, [target])


# -- sizes ------------------------------------------------------------------------------------------------------------
def shape_text(shape: Sequence[Dim]) -> str:
    """`[B, 3]`: a shape in messages."""
    return "[" + ", ".join(map(str, shape)) + "]"


def int_size(type: TensorType) -> int:
    """The number of elements of a static type."""
    size = type.size
    assert isinstance(size, int)
    return size


def less(a: Dim, b: Dim) -> bool:
    """Whether a < b is provable for all non-negative values of the symbols."""
    return is_natural(b - a - 1)


def broadcast(op: TensorOp, types: Sequence[TensorType]) -> tuple[Dim, ...]:
    """The shape that the operands broadcast to by numpy's rule; sizes fit if provably equal or one is the literal 1."""
    rank = max((t.rank for t in types), default=0)
    out: list[Dim] = []
    for i in range(-rank, 0):
        found = {t.shape[i] for t in types if t.rank >= -i and t.shape[i] != 1}
        if len(found) > 1:
            shapes = " and ".join(shape_text(t.shape) for t in types)
            symbolic = any(isinstance(d, Size) for d in found)
            op.refuse(f"shapes {shapes} do not broadcast", "MLC0111",
                      hint="a symbolic size broadcasts only with itself and with the literal 1" if symbolic else None,
                      symbols=sizes.symbols(*found))
        out.append(found.pop() if found else 1)
    return tuple(out)


# -- element types ----------------------------------------------------------------------------------------------------
def kind(dtype: ScalarType) -> str:
    """`bool`, `int`, `float` or `complex`; `index` for a type that is not an element type of tensors."""
    if isinstance(dtype, FloatType):
        return "float"
    if isinstance(dtype, ComplexType):
        return "complex"
    return "bool" if dtype == i1 else "int" if isinstance(dtype, IntType) else "index"


def accumulator(dtype: ScalarType) -> ScalarType:
    """The accumulator type of sums and products of `dtype`: f32 for the 16-bit floats."""
    return f32 if dtype in (f16, bf16) else dtype


def rounded(x: Any, dtype: ScalarType) -> Array:
    """Convert to element type `dtype`, rounding once, to nearest even."""
    array: Array = np.asarray(x)
    if array.dtype == to_numpy(dtype):
        return array
    with np.errstate(all="ignore"):
        if dtype == bf16 and (array.dtype.itemsize == 8 or (array.dtype.kind in "iu" and array.dtype.itemsize == 4)):
            array = _to_odd_f32(array)
        return array.astype(to_numpy(dtype))


def _to_odd_f32(x: Array) -> Array:
    """Round numbers wider than f32 to odd in f32; rounding that to bf16 equals rounding `x` directly.

    Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    if x.dtype.kind in "iu":              # beyond 2^32, a set bit 16 stands for any bits below it
        low = x & 0xFFFF
        far = x > 1 << 32 if x.dtype.kind == "u" else (x > 1 << 32) | (x < -(1 << 32))
        x = np.where(far, x - low | (low != 0).astype(x.dtype) << 16, x).astype(np.float64)
    near = x.astype(np.float32)
    bits = near.view(np.int32)
    inexact = (near.astype(np.float64) != x) & (bits & 1 == 0) & ~np.isnan(x)
    away = (np.abs(x) > np.abs(near.astype(np.float64)))
    return np.asarray(np.where(inexact, bits + np.where(away, 1, -1), bits).astype(np.int32)).view(np.float32)


# -- constant values --------------------------------------------------------------------------------------------------
def constant_array(value: Value) -> Array | None:
    """The array of a constant value; None if it is not constant, of symbolic shape, or large."""
    op = value.op
    if isinstance(op, tensor.Constant):
        return op.value
    if isinstance(op, tensor.Full | tensor.Iota) and op.result.type.is_static and (
            int_size(op.result.type) <= FOLDED_ELEMENTS):
        return np.asarray(op.ref())
    return None


def splat(value: Value) -> Any:
    """The constant that all elements of a value equal, as a 0-d array; or None."""
    return value.op.scalar() if isinstance(value.op, tensor.Full) else None


def is_splat(value: Value, number: float) -> bool:
    """Whether all elements of a value are `number`; +0.0 and -0.0 are distinct."""
    element = splat(value)
    if element is not None and element.dtype.kind == "c":
        return False
    return element is not None and bool(element == number) and (
        element.dtype.kind in "biu" or bool(np.signbit(element) == np.signbit(number)))


# -- building blocks of derivatives -----------------------------------------------------------------------------------
def full(number: Any, like: Value, shape: Sequence[Dim] | None = None) -> Value:
    """`number` in the element type of `like`, as a 0-d tensor unless `shape` is given."""
    return tensor.Full(number, () if shape is None else tuple(shape), like.type.dtype).result


def zeros(like: Value) -> Value:
    """A tensor of zeros of the type of `like`."""
    return full(0, like, like.type.shape)


def unbroadcast(ct: Value, to: Value) -> Value:
    """The cotangent of `to`, which was broadcast to the shape of `ct`: the sum over the broadcast axes."""
    shape = to.type.shape
    lead = ct.type.rank - len(shape)
    axes = [*range(lead), *(i + lead for i, d in enumerate(shape) if d == 1 and ct.type.shape[i + lead] != 1)]
    if axes:
        ct = tensor.ReduceSum(ct, tuple(axes)).result
    return reshape(ct, shape)


def reshape(x: Value, shape: Sequence[Dim]) -> Value:
    """x reshaped; no operation is built if it has the shape already."""
    return x if x.type.shape == tuple(shape) else tensor.Reshape(x, tuple(shape)).result


def broadcast_to(x: Value, shape: Sequence[Dim]) -> Value:
    """x broadcast to a shape; no operation is built if it has the shape already."""
    return x if x.type.shape == tuple(shape) else tensor.BroadcastTo(x, tuple(shape)).result


def keep_axes(x: Value, axes: Sequence[int], shape: Sequence[Dim]) -> Value:
    """x, the result of reducing the `axes` of `shape`, with these axes restored as size 1."""
    return reshape(x, [1 if i in axes else d for i, d in enumerate(shape)])


def cast(x: Value, dtype: ScalarType) -> Value:
    """x converted to an element type; no operation is built if it has the type already."""
    return x if x.type.dtype == dtype else tensor.Cast(x, dtype).result


# -- building blocks of batching rules: a batched operand has a leading batch axis -----------------------------------
def again(op: Op, operands: Sequence[Value], **attrs: Any) -> Any:
    """Build a copy of `op` on other operands, with some attributes replaced; returns its results."""
    regions = [clone_region(r, {}) for r in op.regions]
    copy = type(op).make(operands, {**op.attrs, **attrs}, None, regions, (), op.segments, builder.loc or op.loc)
    assert builder.block is not None, "no insertion point"
    builder.block.insert(copy, builder.before)
    return copy.results if len(copy.results) != 1 else copy.result


def pointwise_maps(op: Op, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
    """The operand maps of a pointwise operation."""
    return [aligned(v.type.shape, at) for v in op.operands]


def with_batch_axis(batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
    """The operands; those that are not batched are broadcast along the batch axis."""
    return [x if is_batched else broadcast_to(x, (batch_size, *x.type.shape))
            for x, is_batched in zip(operands, batched)]


def broadcasting(op: Op, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool], **attrs: Any) -> Any:
    """The batching rule of operations whose operands broadcast."""
    rank = max(x.type.rank - is_batched for x, is_batched in zip(operands, batched))
    return again(op, [lifted(x, rank + 1) if is_batched else x for x, is_batched in zip(operands, batched)], **attrs)


def lifted(x: Value, rank: int) -> Value:
    """A batched value with axes of size 1 inserted after the batch axis, to give it `rank` dimensions."""
    batch_size, *shape = x.type.shape
    return reshape(x, (batch_size, *[1] * (rank - len(shape) - 1), *shape))


def leading(op: Op, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Any:
    """The batching rule of operations that accept any number of leading axes."""
    return again(op, with_batch_axis(batch_size, operands, batched))


def along_axes(op: Op, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Any:
    """The batching rule of operations along an `axis`, or `axes`."""
    moved = {"axis": op.attrs["axis"] + 1} if "axis" in op.attrs else {"axes": tuple(a + 1 for a in op.attrs["axes"])}
    return again(op, with_batch_axis(batch_size, operands, batched), **moved)


def batch_axis_at(x: Value, axis: int) -> Value:
    """x with its first axis moved to position `axis`."""
    if axis == 0:
        return x
    return tensor.Transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, x.type.rank))).result


def batch_axis_first(x: Value, axis: int) -> Value:
    """x with an axis moved to the front."""
    if axis == 0:
        return x
    return tensor.Transpose(x, (axis, *(a for a in range(x.type.rank) if a != axis))).result


def select(condition: Value, a: Value, b: Value) -> Value:
    return tensor.Select(condition, a, b).result


def compare(predicate: str, a: Value, b: Value) -> Value:
    return tensor.Compare(predicate, a, b).result
