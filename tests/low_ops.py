"""A module per operation of arith and math that applies it to arrays, element by element and in vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects import arith, func, math, memref, scf, vector
from mlc.dialects.arith import constant
from mlc.dialects.builtin import Module, module
from mlc.ir.core import REGISTRY, Value, at_end
from mlc.ir.types import (
    FloatType,
    IndexType,
    IntType,
    MemRefType,
    ScalarType,
    VectorType,
    bf16,
    element,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    to_numpy,
)
from tests.arrays import Array
from tests.low_programs import specials

FLOATS: tuple[ScalarType, ...] = (f16, bf16, f32, f64)
INTS: tuple[ScalarType, ...] = (i1, i8, i16, i32, i64)
WIDTHS = (0, 3, 8, 16)
"""Lanes; 0 is scalar code."""

Build = Callable[..., Value]
Case = tuple[str, Build, tuple[ScalarType, ...], ScalarType]
"""A name, what builds the operation from values, the element types of operands and of the result."""


def cases() -> Iterator[Case]:
    """Every elementwise operation with every type it takes, and every predicate and pair of a cast."""
    for name, cls in sorted(REGISTRY.items()):
        if not name.startswith(("arith.", "math.")) or cls in (arith.Constant, arith.Select):
            continue
        if issubclass(cls, arith.Cast):
            yield from _casts(name, cls)
        elif cls in (arith.CmpF, arith.CmpI):
            for p in cls.enums["predicate"]:
                for t in FLOATS if cls is arith.CmpF else (*INTS, index):
                    yield (f"{name}_{p}_{t}", lambda a, b, cls=cls, p=p: cls(p, a, b).result, (t, t), i1)
        elif issubclass(cls, arith.Elementwise):
            accepted = [t for t in (*FLOATS, *INTS, index) if isinstance(t, cls.accepts)]
            for t in accepted:
                if (cls is math.AbsI and t == i1) or cls is math.Exp2:      # which has no code for CPUs
                    continue
                yield (f"{name}_{t}", lambda *xs, cls=cls: cls(*xs).result, (t,) * len(cls.operand_fields), t)
    for t in (*FLOATS, *INTS, index):
        yield (f"arith.select_{t}", lambda c, a, b: arith.Select(c, a, b).result, (i1, t, t), t)


def _casts(name: str, cls: type[arith.Cast]) -> Iterator[Case]:
    all_types = (*FLOATS, *INTS, index)
    for a, b in itertools.product(all_types, all_types):
        if a == b or not isinstance(a, cls.source) or not isinstance(b, cls.target):
            continue
        if cls.fits(cls, a, b) and not (cls in (arith.FPToSI, arith.FPToUI) and b == i1):  # type: ignore[arg-type]
            yield (f"{name}_{a}_{b}", lambda x, cls=cls, b=b: cls(x, b if not isinstance(x.type, VectorType) else
                                                                  VectorType(x.type.shape, b)).result, (a,), b)


def casts_of_signed() -> Iterator[Case]:
    """A number with the sign of another, cast to all other types of floats, at once and by way of each third one."""
    for a, b, c in itertools.product(FLOATS, FLOATS, FLOATS):
        if a != b:
            way = (b,) if b == c else (b, c)
            yield (f"signed_{'_'.join(map(str, (a, *way)))}",
                   lambda x, y, way=way: _cast_floats(math.CopySign(x, y).result, way), (a, a), c)


def _cast_floats(x: Value, way: Sequence[ScalarType]) -> Value:
    for to in way:
        x = _cast_float(x, to)
    return x


def _cast_float(x: Value, to: ScalarType) -> Value:
    """bf16 and f16 are cast to each other by way of f32, as the lowering of tensors does."""
    if {element(x.type), to} == {f16, bf16}:
        x = _cast_float(x, f32)
    target = VectorType(x.type.shape, to) if isinstance(x.type, VectorType) else to
    return (arith.ExtF if element(x.type).width < to.width else arith.TruncF)(x, target).result


def stored(type: ScalarType) -> ScalarType:
    """The element type in memory."""
    return i8 if type == i1 else type


def two_widths(i: int) -> tuple[int, ...]:
    """Scalar code and vectors, with other lanes from case to case."""
    return 0, WIDTHS[1 + i % 3]


def build_module(group: Sequence[Case], widths: Callable[[int], Sequence[int]] = lambda i: WIDTHS) -> Module:
    """One function per case and width: f(n, operands..., result). `widths` are those of the case at a place."""
    out = module()
    for i, (name, build, operands, result) in enumerate(group):
        for width in widths(i):
            out.body.block.insert(_function(f"{name}_{width}", build, operands, result, width))
    return out


def _function(name: str, build: Build, operands: Sequence[ScalarType], result: ScalarType, width: int) -> func.Func:
    types = [MemRefType((None,), stored(t)) for t in (*operands, result)]
    f = func.function(name, [index, *types])
    n, *xs, y = f.args
    with at_end(f.block):
        zero, one = constant(0, index), constant(max(1, width), index)
        loop = scf.loop(zero, n, one)
        i = loop.counter
        with at_end(loop.block):
            if width:
                mask = vector.CreateMask((arith.SubI(n, i).result,), VectorType((width,), i1)).result
                values: list[Value] = [vector.MaskedLoad(x, (i,), mask, _filler(x.type.dtype, width)).result
                                       for x in xs]
            else:
                values = [memref.Load(x, (i,)).result for x in xs]
            values = [_truth(v) if t == i1 else v for v, t in zip(values, operands)]
            out = build(*values)
            if result == i1:
                out = arith.ExtUI(out, VectorType((width,), i8) if width else i8).result
            if width:
                vector.MaskedStore(y, (i,), mask, out)
            else:
                memref.Store(out, y, (i,))
            scf.Yield(())
        func.Return(())
    f.update_type()
    return f


def _filler(dtype: ScalarType, width: int) -> Value:
    """Value of inactive lanes: one, so that nothing traps there."""
    return constant(1.0 if isinstance(dtype, FloatType) else 1, VectorType((width,), dtype))


def _truth(x: Value) -> Value:
    return arith.CmpI("ne", x, constant(0, x.type)).result


def inputs(name: str, operands: Sequence[ScalarType], result: ScalarType, seed: int = 0) -> list[Array]:
    """Special values in all combinations (a sample of three), and random ones, where the operation is defined."""
    rng = np.random.default_rng(seed)
    grids = np.meshgrid(*[np.arange(len(specials(t))) for t in operands], indexing="ij")
    columns = [specials(t)[g.reshape(-1)] for t, g in zip(operands, grids)]
    count = columns[0].size
    if count > 1600:
        chosen = rng.choice(count, 1600, replace=False)
        columns = [c[chosen] for c in columns]
    random = [np.frombuffer(rng.bytes(200 * to_numpy(t).itemsize), to_numpy(t)) if t != i1 else
              rng.integers(0, 2, 200).astype(np.bool_) for t in operands]
    columns = [np.concatenate([c, r]) for c, r in zip(columns, random)]
    keep = _defined(name, operands, result, columns)
    return [c[keep].astype(np.int8) if c.dtype == np.bool_ else c[keep] for c in columns]


def _defined(name: str, operands: Sequence[ScalarType], result: ScalarType, xs: list[Array]) -> Array:
    """Where the operation's result is defined."""
    op = name.split("_")[0]
    kind = operands[0]
    if op in ("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.divui", "arith.remui"):
        a, b = xs
        if kind == i1:
            return np.zeros(a.shape, bool)           # -1 / -1 is the only division, and it overflows
        return np.asarray((b != 0) & ~((a == np.iinfo(a.dtype).min) & (b == -1)))
    if op in ("arith.shli", "arith.shrsi", "arith.shrui"):
        width = kind.width
        return (xs[1].astype(np.int64) >= 0) & (xs[1].astype(np.int64) < width)
    if op in ("arith.fptosi", "arith.fptoui"):
        low, high = (0, 2.0**result.width) if op == "arith.fptoui" else \
            (-2.0**(result.width - 1), 2.0**(result.width - 1))
        with np.errstate(invalid="ignore"):
            wide = np.trunc(xs[0].astype(np.float64))
        return (wide >= low) & (wide < high)
    return np.ones(xs[0].shape, bool)


def result_array(result: ScalarType, count: int) -> Array:
    return np.zeros(count, to_numpy(stored(result)))


def operation(name: str) -> str:
    return name.split("_")[0]


def call_arguments(case: Case) -> list[Any]:
    """The count, the operands and space for the result."""
    name, _, operands, result = case
    columns = inputs(name, operands, result)
    return [columns[0].size, *columns, result_array(result, columns[0].size)]


__all__ = ["WIDTHS", "Case", "IndexType", "IntType", "build_module", "call_arguments", "cases", "casts_of_signed",
           "operation", "two_widths"]
