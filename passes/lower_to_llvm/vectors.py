"""Lowering of vector operations on registers. A vector of several dimensions becomes a list of rows, LLVM vectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from mlc.dialects import llvm, vector, x86vector
from mlc.dialects.combining import CombiningKind
from mlc.ir.core import Op, Value
from mlc.ir.diag import BackendError
from mlc.ir.types import VectorType, bf16, i32, i64
from mlc.passes.lower_to_llvm.arithmetic import narrow, widen
from mlc.passes.lower_to_llvm.lowering import Lowering, Number, Parts, convert, is_narrow, rule

_REDUCTIONS: dict[str, type[llvm.Reduce]] = {cls.kind: cls for cls in llvm.Reduce.__subclasses__()}


def _splat(x: Value, lanes: int) -> Value:
    """A row of equal elements."""
    type = VectorType((lanes,), x.type)
    poison = llvm.Poison(type).result
    first = llvm.InsertElement(poison, x, llvm.constant(0, i64)).result
    return llvm.ShuffleVector(first, poison, (0,) * lanes).result


@rule(vector.FromElements)
def _from_elements(low: Lowering, op: vector.FromElements) -> list[Parts]:
    elements, lanes = low.all(op.elements), op.result.type.shape[-1]
    parts: Parts = []
    for type in convert(op.result.type):
        part: Value = llvm.Poison(type).result
        for lane, x in enumerate(elements[len(parts) * lanes: (len(parts) + 1) * lanes]):
            part = llvm.InsertElement(part, x, llvm.constant(lane, i64)).result
        parts.append(part)
    return [parts]


@rule(vector.Broadcast)
def _broadcast(low: Lowering, op: vector.Broadcast) -> list[Parts]:
    source, count = low.env[op.source], len(convert(op.result.type))
    if not isinstance(op.source.type, VectorType):
        return [[_splat(source[0], op.result.type.shape[-1])] * count]
    return [source * (count // len(source))]


def _row(op: Op, position: Sequence[Number], shape: Sequence[int]) -> int:
    """The row number of a position's leading indices."""
    if not all(isinstance(n, int) for n in position):
        raise BackendError(f"{op.name}: only the last index of a position may be dynamic", code="MLC0544", loc=op.loc)
    return int(np.ravel_multi_index(tuple(int(n) for n in position), tuple(shape))) if position else 0  # type: ignore[arg-type]


@rule(vector.Extract)
def _extract(low: Lowering, op: vector.Extract) -> list[Parts]:
    parts, shape = low.env[op.source], op.source.type.shape
    position = low.mixed(op.position)
    if len(position) == len(shape):
        row = parts[_row(op, position[:-1], shape[:-1])]
        return [[llvm.ExtractElement(row, low.value(position[-1])).result]]
    count = math.prod(shape[len(position):-1])
    start = _row(op, position, shape[:len(position)]) * count
    return [parts[start: start + count]]


@rule(vector.Insert)
def _insert(low: Lowering, op: vector.Insert) -> list[Parts]:
    out, shape = list(low.env[op.dest]), op.dest.type.shape
    position = low.mixed(op.position)
    if len(position) == len(shape):
        at = _row(op, position[:-1], shape[:-1])
        out[at] = llvm.InsertElement(out[at], low.one(op.value), low.value(position[-1])).result
        return [out]
    count = math.prod(shape[len(position):-1])
    start = _row(op, position, shape[:len(position)]) * count
    out[start: start + count] = low.env[op.value]
    return [out]


@rule(vector.Shuffle)
def _shuffle(low: Lowering, op: vector.Shuffle) -> list[Value]:
    """LLVM requires vectors of equal length: the shorter one is padded with undefined lanes."""
    a, b = low.one(op.v1), low.one(op.v2)
    (m,), (n,) = a.type.shape, b.type.shape
    longest = max(m, n)
    a, b = (x if x.type.shape[0] == longest else llvm.ShuffleVector(
        x, x, tuple(i if i < x.type.shape[0] else -1 for i in range(longest))).result for x in (a, b))
    return [llvm.ShuffleVector(a, b, tuple(i if i < m else i - m + longest for i in op.mask)).result]


@rule(vector.Transpose)
def _transpose(low: Lowering, op: vector.Transpose) -> list[Parts]:
    """Element by element; LLVM combines the moves into shuffles."""
    source, shape = low.env[op.vector], op.vector.type.shape
    target = op.result.type.shape
    out: Parts = [llvm.Poison(t).result for t in convert(op.result.type)]
    for index in itertools.product(*map(range, shape)):
        to = tuple(index[p] for p in op.permutation)
        at, row = _row(op, index[:-1], shape[:-1]), _row(op, to[:-1], target[:-1])
        element = llvm.ExtractElement(source[at], llvm.constant(index[-1], i64)).result
        out[row] = llvm.InsertElement(out[row], element, llvm.constant(to[-1], i64)).result
    return [out]


@rule(vector.Bitcast)
def _bitcast(low: Lowering, op: vector.Bitcast) -> list[Parts]:
    types = convert(op.result.type)
    return [[x if x.type == t else llvm.Bitcast(x, t).result for x, t in zip(low.env[op.source], types)]]


@rule(vector.CreateMask)
def _create_mask(low: Lowering, op: vector.CreateMask) -> list[Parts]:
    """Clamp the sizes to the number of lanes, so that one 32-bit comparison suffices."""
    shape = op.result.type.shape
    *outer, last = (low.one(n) for n in op.sizes)
    lanes = shape[-1]
    cut = llvm.SMax(llvm.SMin(last, llvm.constant(lanes, i64)).result, llvm.constant(0, i64)).result
    numbers = llvm.constant(np.arange(lanes, dtype=np.int32), VectorType((lanes,), i32))
    row = llvm.ICmp("slt", numbers, _splat(llvm.Trunc(cut, i32).result, lanes)).result
    off = llvm.constant(False, row.type)
    out: Parts = []
    for index in itertools.product(*map(range, shape[:-1])):
        part = row
        for i, n in zip(index, outer):
            part = llvm.Select(llvm.ICmp("slt", llvm.constant(i, i64), n).result, part, off).result
        out.append(part)
    return [out]


@rule(vector.Step)
def _step(low: Lowering, op: vector.Step) -> list[Value]:
    lanes = op.result.type.shape[0]
    return [llvm.constant(np.arange(lanes, dtype=np.int64), VectorType((lanes,), i64))]


@rule(vector.Reduction)
def _reduction(low: Lowering, op: vector.Reduction) -> list[Value]:
    """Minimum and maximum of 16-bit floats compare in f32."""
    kind = op.result.type
    values = [low.one(v) for v in op.operands]
    if is_narrow(kind):
        values = [widen(v, kind) for v in values]
    joined = _REDUCTIONS[op.kind](values[0]).result
    if op.acc is not None:
        joined = llvm.INSTRUCTIONS[CombiningKind(op.kind).associative_op](joined, values[1]).result
    return [narrow(joined, kind) if is_narrow(kind) else joined]


@rule(x86vector.Dot)
def _dot(low: Lowering, op: x86vector.Dot) -> list[Value]:
    factors = [llvm.Bitcast(low.one(v), VectorType(v.type.shape, bf16)).result for v in (op.a, op.b)]
    return [llvm.CallIntrinsic(x86vector.DOT, (low.one(op.src), *factors), types=(op.src.type,)).result]


@rule(x86vector.DotBytes)
def _dot_bytes(low: Lowering, op: x86vector.DotBytes) -> list[Value]:
    name = x86vector.DOT_BYTES[op.a.type.shape[0]]
    return [llvm.CallIntrinsic(name, tuple(map(low.one, op.operands)), types=(op.src.type,)).result]


@rule(x86vector.PairsOfBytes)
def _pairs_of_bytes(low: Lowering, op: x86vector.PairsOfBytes) -> list[Value]:
    name = x86vector.PAIRS_OF_BYTES[op.a.type.shape[0]]
    return [llvm.CallIntrinsic(name, tuple(map(low.one, op.operands)), types=(op.result.type,)).result]
