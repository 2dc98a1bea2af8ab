"""The arithmetic of a kernel and the bytes that it has to move, counted from its IR.

Operations are those of the code, after elementary functions have become polynomials: of floats, and of products of
bytes. A fused multiply-add is two, arithmetic, a comparison of floats by `maximumf` and a square root are one; what
only moves or chooses is none. Bytes are compulsory traffic: each element that a kernel reads or writes counts once,
however often it does so.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlc.dialects import arith, math
from mlc.dialects.loop import (
    ContractBytes,
    ContractInterleaved,
    ContractPairs,
    ContractPanels,
    Fold,
    For,
    InKernel,
    Kernel,
    Load,
    Map,
    Mma,
    MultiplyAdd,
    Reduce,
    Scan,
    Store,
    TileType,
)
from mlc.ir import sizes
from mlc.ir.affine import dims_of
from mlc.ir.core import Op, Value
from mlc.ir.diag import Loc
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, bf16

ABOUT = 64
"""The number that stands for a symbolic size where operations are compared."""
_ONE = (arith.FloatBinary, arith.NegF, math.Sqrt)


def flops(kernel: Kernel) -> Dim:
    """The floating-point operations of a kernel, over its symbols."""
    total: Dim = 0
    for op in kernel.inside(InKernel):
        total = total + operations(kernel, op)
    return total


def operations(kernel: Kernel, op: InKernel) -> Dim:
    """The floating-point operations of one operation of a kernel, at all points."""
    if isinstance(op, Map):
        each = sum(2 if isinstance(inner, math.Fma) else isinstance(inner, _ONE) for inner in op.body.block)
        return each * _points(kernel, op, _spans(*op.operands, *op.results)) if each else 0
    if isinstance(op, MultiplyAdd | Mma | ContractPairs):
        return 2 * _points(kernel, op, _spans(op.acc) | {op.dim}) if _is_float(op.acc) else 0
    if isinstance(op, ContractInterleaved | ContractBytes | ContractPanels):
        whole = op.dim not in dict(_steps(kernel, op))           # no loop over blocks of terms is around it
        sums = {*op.sums.type.dims} if isinstance(op, ContractPanels) else _spans(op.result)
        return 2 * _points(kernel, op, sums | {op.dim}) if not whole else (
            2 * _points(kernel, op, sums) * kernel.domain[op.dim])
    if isinstance(op, Fold | Reduce | Scan):
        return _points(kernel, op, _spans(op.x) | {op.dim}) if _is_float(op.x) else 0
    return 0


def number(kernel: Kernel) -> str:
    """The kind of number that a kernel multiplies, of those that the roofline of a machine knows."""
    for op in kernel.walk():
        if isinstance(op, ContractPanels | ContractInterleaved | ContractBytes):
            return "bf16" if op.operands[1].type.dtype == bf16 else "int8"       # that of a factor
    return "f32"


def moved(kernel: Kernel) -> Dim:
    """The bytes that a kernel reads and writes at least, over its symbols."""
    seen: dict[tuple[Value, bool], Dim] = {}
    for op in kernel.inside(InKernel):
        if isinstance(op, Load | Store):
            key, size = (op.buffer, isinstance(op, Store)), _footprint(kernel, op)
            seen[key] = size if key not in seen else _larger(seen[key], size)
    total: Dim = 0
    for size in seen.values():
        total = total + size
    return total


def lines(kernel: Kernel) -> list[Loc]:
    """The lines that a kernel computes, those with the most operations first."""
    weight: dict[tuple[str, int, str], float] = {}
    where: dict[tuple[str, int, str], Loc] = {}
    for op in kernel.inside(InKernel):
        if op.loc.line and not op.terminator:
            key = op.loc.file, op.loc.line, op.loc.scope
            weight[key] = weight.get(key, 0.0) + about(operations(kernel, op)) + 1e-3 * isinstance(op, Store)
            where.setdefault(key, op.loc)
    return [where[key] for key in sorted(where, key=lambda k: -weight[k])] or [kernel.loc]


def about(size: Dim) -> int:
    """A number for a size, with `ABOUT` for every symbol."""
    return sizes.evaluate(size, dict.fromkeys(sizes.symbols(size), ABOUT))


def _spans(*values: Value) -> set[int]:
    return {d for v in values if isinstance(v.type, TileType) for d in v.type.dims}


def _is_float(value: Value) -> bool:
    return isinstance(value.type.dtype, FloatType)


def _points(kernel: Kernel, op: Op, spans: set[int]) -> Dim:
    """How many elements an operation computes: of the dimensions that it spans, once per block of the others. After the
    loop over a dimension, a tile has the points of one block of it, such as the lanes that a sum is in."""
    total: Dim = 1
    for d, step in _steps(kernel, op):
        extent = kernel.domain[d]
        total = total * (extent if d in spans or step == 1 else sizes.divide(extent + step - 1, step))
        spans = spans - {d}
    for d in spans:
        extent, tile = kernel.domain[d], kernel.schedule.tile[d]
        total = total * (min(extent, tile) if isinstance(extent, int) else tile)
    return total


def _steps(kernel: Kernel, op: Op) -> Iterator[tuple[int, int]]:
    """The dimensions that have a coordinate at an operation, with the points of a block."""
    steps = {d: kernel.schedule.tile[d] for d in range(kernel.parallel)}
    outer = op.parent_op
    while outer is not None and outer is not kernel:
        if isinstance(outer, For):
            steps[outer.dim] = min(outer.step, steps.get(outer.dim, outer.step))
        outer = outer.parent_op
    return iter(steps.items())


def _footprint(kernel: Kernel, op: Load | Store) -> Dim:
    """The bytes of the distinct elements of a buffer that an access reaches."""
    total: Dim = op.buffer.type.dtype.itemsize
    if op.tiles:
        return total * _points(kernel, op, _spans(op.results[0] if isinstance(op, Load) else op.value))
    for expr, held in zip(op.map.results, op.buffer.type.shape):
        reached: Dim = 1
        for d in dims_of(expr):
            reached = reached * kernel.domain[d]
        total = total * (reached if held is None else min(reached, held) if isinstance(reached, int) else held)
    return total


def _larger(a: Dim, b: Dim) -> Dim:
    return a if about(a) >= about(b) else b
