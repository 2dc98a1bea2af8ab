"""Sample uses of every tensor operation: operand types, the operation on them, and numbers for them.

Each operation has samples of several shapes: no dimensions, a size of 0, of 1, a prime, broadcasting where it
applies, and symbolic sizes. Those in f64 serve the tests of derivatives; others go over the element types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.map import map_elements
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir.core import REGISTRY, Op, Value
from mlc.ir.sizes import evaluate
from mlc.ir.types import ScalarType, bf16, f32, f64, i1, i8, i32, i64, to_numpy
from tests import op_samples_linalg, op_samples_quantized, op_samples_windows
from tests.op_sample import FLOATS, INTS, NUMBERS, PAIRS, SHAPES, B, C, Sample, main_of, t

__all__ = ["NUMBERS", "SAMPLES", "B", "Sample", "main_of", "samples_of", "t"]

BY_KIND: dict[str, tuple[ScalarType, ...]] = {"bool": (i1,), "int": INTS, "float": FLOATS}

DOMAINS: dict[type[Op], tuple[float, float]] = {
    tensor.Log: (0.2, 3.0), tensor.Log2: (0.2, 3.0), tensor.Log1p: (-0.5, 3.0), tensor.Sqrt: (0.2, 3.0),
    tensor.Rsqrt: (0.2, 3.0), tensor.Reciprocal: (0.3, 3.0), tensor.Div: (0.3, 3.0), tensor.FloorDiv: (0.3, 7.0),
    tensor.Rem: (0.3, 7.0), tensor.Fmod: (0.3, 7.0), tensor.Log10: (0.2, 3.0), tensor.Tan: (-1.2, 1.2),
    tensor.Asin: (-0.9, 0.9), tensor.Acos: (-0.9, 0.9), tensor.Atanh: (-0.9, 0.9), tensor.Acosh: (1.1, 3.0),
    tensor.Atan2: (0.3, 3.0), tensor.Hypot: (0.3, 3.0), tensor.Pow: (0.3, 2.0), tensor.Shl: (0, 9), tensor.Shr: (0, 9),
}
"""Where floats are taken from for operations that are not smooth, or not defined, everywhere."""


def _elementwise() -> list[Sample]:
    from mlc.dialects.tensor.binary import Binary
    from mlc.dialects.tensor.elementwise import Unary
    out = []
    for cls in [c for n, c in REGISTRY.items() if n.startswith("tensor.")]:
        if not issubclass(cls, Unary | Binary):
            continue
        low, high = DOMAINS.get(cls, (-2.0, 2.0))
        preferred = {"float": f64, "int": i32, "bool": i1}[cls.accepts[-1]]
        dtypes = [d for k in cls.accepts for d in BY_KIND[k]]
        if issubclass(cls, Unary):
            out += [Sample((t(f"{s}{preferred}"),), cls, low, high) for s in SHAPES]
            out += [Sample((t(f"7x{d}"),), cls, low, high) for d in dtypes]
        else:
            out += [Sample((t(f"{a}{preferred}"), t(f"{b}{preferred}")), cls, low, high) for a, b in PAIRS]
            out += [Sample((t(f"7x{d}"), t(f"7x{d}")), cls, low, high) for d in dtypes]
    out.append(Sample((t("4xf64"), t("f64")), tensor.Pow, values=([0.0, 1.0, -2.0, 3.0], 2.0), smooth=False))
    out.append(Sample((t("4xi32"), t("4xi32")), tensor.FloorDiv, values=([7, -7, 7, 5], [2, 2, -2, 0])))
    out.append(Sample((t("4xi32"), t("4xi32")), tensor.Rem, values=([7, -7, 7, 5], [2, 2, -2, 0])))
    return out


def _compare() -> list[Sample]:
    out = [Sample((t(f"{a}f64"), t(f"{b}f64")), lambda x, y, p=p: tensor.Compare(p, x, y))
           for p in ("eq", "ne", "lt", "le", "gt", "ge") for a, b in (*PAIRS[:3], PAIRS[5])]
    out += [Sample((t(f"7x{d}"), t(f"7x{d}")), lambda x, y: tensor.Compare("le", x, y)) for d in (i1, *INTS, *FLOATS)]
    out += [Sample((t(c), t(a), t(b)), tensor.Select) for c, a, b in (
        ("i1", "f64", "f64"), ("7xi1", "7xf64", "7xf64"), ("0xi1", "f64", "0xf64"), ("2x1xi1", "3xf64", "f64"),
        ("i1", "Bx3xf64", "3xf64"), ("Bx1xi1", "Cxf64", "BxCxf64"), ("1xi1", "3xi32", "1xi32"), ("3xi1", "3xi1", "i1"))]
    for source in (i1, *INTS, *FLOATS):
        out += [Sample((t(f"7x{source}"),), lambda x, d=d: tensor.Cast(x, d), -300, 300) for d in (i1, *INTS, *FLOATS)]
    out += [Sample((t(f"{s}f64"),), lambda x: tensor.Cast(x, f64)) for s in SHAPES]
    out += [Sample((t(f"{s}f64"),), lambda x: tensor.Bitcast(x, f64)) for s in SHAPES]
    out += [Sample((t(f"7x{source}"),), lambda x, d=d: tensor.Bitcast(x, d))
            for source in (*INTS, *FLOATS) for d in (*INTS, *FLOATS) if source.width == d.width]
    return out


REDUCED = (("f64", ()), ("7xf64", (0,)), ("0xf64", (0,)), ("1xf64", (0,)), ("2x3xf64", (0,)), ("2x3xf64", (1,)),
           ("2x3x5xf64", (0, 2)), ("3x0xf64", (1,)), ("3x0xf64", (0,)), ("Bx3xf64", (0,)), ("Bx3xCxf64", (0, 1, 2)))


def _reduce() -> list[Sample]:
    out = []
    for cls in [c for c in REGISTRY.values() if issubclass(c, Reduce) and c is not tensor.ReduceFma]:
        for text, axes in REDUCED:
            text = text if "float" in cls.accepts else text.replace("f64", "i1" if "bool" in cls.accepts else "i32")
            out.append(Sample((t(text),), lambda x, cls=cls, axes=axes: cls(x, axes)))
        out += [Sample((t(f"2x3x{d}"),), lambda x, cls=cls: cls(x, (1,)))
                for k in cls.accepts for d in BY_KIND[k]]
    out += [Sample((t(text), t(text)), lambda x, y, axes=axes: tensor.ReduceFma(x, y, axes)) for text, axes in REDUCED]
    out += [Sample((t(f"2x3x{d}"), t(f"2x3x{d}")), lambda x, y: tensor.ReduceFma(x, y, (1,)))
            for k in ("int", "float") for d in BY_KIND[k]]
    for order in ("chain", "lanes<4>", "lanes<2, 2>"):
        for cls in (tensor.ReduceSum, tensor.ReduceProd):
            out += [Sample((t(f"3x7x{d}"),), lambda x, cls=cls, order=order: cls(x, (1,), order)) for d in FLOATS]
    for zeros in ([2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0, 2.0]):
        out.append(Sample((t(f"{len(zeros)}xf64"),), lambda x: tensor.ReduceProd(x, (0,)), values=(zeros,)))
    return out


def _shape() -> list[Sample]:
    out = [Sample((t(a),), lambda x, b=b: tensor.Reshape(x, t(b).shape)) for a, b in (
        ("f64", "1x1xf64"), ("6xf64", "2x3xf64"), ("0x3xf64", "0xf64"), ("7xf64", "7x1xf64"), ("2x3xi1", "3x2xi1"),
        ("Bx6xf64", "(2*B)x3xf64"), ("BxCxf64", "(B*C)xf64"))]
    out += [Sample((t(a),), lambda x, p=p: tensor.Transpose(x, p)) for a, p in (
        ("f64", ()), ("7xf64", (0,)), ("2x3xf64", (1, 0)), ("0x3xf64", (1, 0)), ("2x3x5xf64", (2, 0, 1)),
        ("Bx1xCxf64", (2, 0, 1)), ("2x3xi8", (1, 0)))]
    out += [Sample((t(a),), lambda x, b=b: tensor.BroadcastTo(x, t(b).shape)) for a, b in (
        ("f64", "2x3xf64"), ("1xf64", "7xf64"), ("1xf64", "0xf64"), ("3xf64", "2x3xf64"), ("2x1x3xf64", "5x2x4x3xf64"),
        ("1xi1", "3xi1"))]
    out += [Sample((t("Bx1xf64"), t("Cxf64")), lambda x, _: tensor.BroadcastTo(x, (C, B, 3)))]
    out += [Sample((t(a),), lambda x, s=s: tensor.Slice(x, *s)) for a, s in (
        ("f64", ((), (), ())), ("7xf64", ((1,), (6,), (2,))), ("7xf64", ((1,), (7,), (3,))),
        ("7xf64", ((3,), (3,), (1,))), ("0xf64", ((0,), (0,), (2,))), ("1xf64", ((0,), (1,), (3,))),
        ("7xf64", ((6,), (-1,), (-1,))), ("7xf64", ((5,), (0,), (-2,))),
        ("7xf64", ((4,), (4,), (-3,))), ("0xf64", ((-1,), (-1,), (-2,))), ("2x7xi32", ((0, 2), (2, 7), (1, 2))),
        ("Bx7xf64", ((1, 0), (B, 7), (1, 2))), ("BxCxf64", ((0, C - 1), (B, -1), (2, -1))))]
    out += [Sample((t(a), t("f64")), lambda x, v, p=p: tensor.Pad(x, v, *p)) for a, p in (
        ("f64", ((), (), ())), ("7xf64", ((1,), (2,), (0,))), ("3xf64", ((0,), (-2,), (2,))),
        ("1xf64", ((2,), (0,), (1,))),
        ("0xf64", ((2,), (3,), (1,))), ("0xf64", ((0,), (0,), (2,))), ("2x3xf64", ((1, 0), (0, 2), (1, 0))),
        ("BxCxf64", ((B, 0), (1, C), (0, 1))))]
    out += [Sample((t("3xi8"), t("i8")), lambda x, v: tensor.Pad(x, v, (1,), (1,), (0,)))]
    out += [Sample(tuple(map(t, a)), lambda *xs, axis=axis: tensor.Concat(xs, axis)) for a, axis in (
        (("7xf64",), 0), (("2xf64", "3xf64"), 0), (("2x3xf64", "2x1xf64", "2x0xf64"), 1), (("0x3xf64", "0x3xf64"), 0),
        (("Bx3xf64", "1x3xf64", "Cx3xf64"), 0), (("2xi1", "3xi1"), 0))]
    out += [Sample((t(a),), lambda x, axes=axes: tensor.Reverse(x, axes)) for a, axes in (
        ("f64", ()), ("7xf64", (0,)), ("0x3xf64", (0, 1)), ("1xf64", (0,)), ("2x3x5xf64", (0, 2)), ("Bx3xf64", (0,)),
        ("3xi32", (0,)))]
    return out


def _index() -> list[Sample]:
    out = []
    for x, i, axis, picked in (
            ("5xf64", "i64", 0, 3), ("5xf64", "3xi32", 0, [4, 0, 4]), ("5xf64", "0xi64", 0, []),
            ("1x3xf64", "2xi8", 0, [0, 0]), ("2x5x3xf64", "2x2xi64", 1, [[1, 2], [0, 1]]),
            ("7xf64", "3xui8", 0, [6, 5, 6]), ("Bx3xf64", "Cxi64", 0, [2, 2]), ("200xf64", "2xi8", 0, [127, 0])):
        numbers = np.random.default_rng(5).uniform(-2, 2, [evaluate(d, NUMBERS) for d in t(x).shape])
        out.append(Sample((t(x), t(i)), lambda x, i, axis=axis: tensor.Take(x, i, axis), values=(numbers, picked)))
    for x, i, axis, along in (
            ("5xf64", "3xi64", 0, [4, 0, 4]), ("2x5xf64", "2x1xi64", 1, [[3], [0]]), ("5xf64", "0xi64", 0, []),
            ("1xf64", "1xi8", 0, [0]), ("3x2xf64", "5x2xi32", 0, [[0, 1], [2, 2], [0, 0], [1, 1], [2, 0]]),
            ("Bx7xf64", "Bx1xi64", 1, [[1], [6], [0]])):
        numbers = np.random.default_rng(6).uniform(-2, 2, [evaluate(d, NUMBERS) for d in t(x).shape])
        out.append(Sample((t(x), t(i)), lambda x, i, axis=axis: tensor.TakeAlong(x, i, axis), values=(numbers, along)))
    return out


def _contract() -> list[Sample]:
    out = []
    for x, y, batch, contract in (
            ("f64", "f64", (), ()), ("3xf64", "3xf64", (), ((0, 0),)), ("3xf64", "2xf64", (), ()),
            ("2x3xf64", "3x5xf64", (), ((1, 0),)), ("3x2xf64", "3x5xf64", (), ((0, 0),)),
            ("2x0xf64", "0x3xf64", (), ((1, 0),)), ("0x2xf64", "2x3xf64", (), ((1, 0),)),
            ("1x1xf64", "1x1xf64", (), ((1, 0),)),
            ("5x2x3xf64", "5x3x7xf64", ((0, 0),), ((2, 1),)), ("2x5x3xf64", "3x7x2xf64", ((0, 2),), ((2, 0),)),
            ("2x3x5xf64", "5x4x3xf64", (), ((2, 0), (1, 2))), ("Bx3xf64", "3xCxf64", (), ((1, 0),)),
            ("CxBx3xf64", "CxBx3xf64", ((0, 0),), ((2, 2),))):
        out.append(Sample((t(x), t(y)), lambda x, y, b=batch, c=contract: tensor.DotGeneral(x, y, b, c)))
    for d in (*INTS, *FLOATS):
        out.append(Sample((t(f"2x3x{d}"), t(f"3x5x{d}")), lambda x, y: tensor.DotGeneral(x, y, (), ((1, 0),))))
    for order in ("chain", "blocks<4>"):
        out += [Sample((t(f"2x7x{d}"), t(f"7x3x{d}")), lambda x, y, order=order: tensor.DotGeneral(
            x, y, (), ((1, 0),), order)) for d in FLOATS]
    return out


def _source() -> list[Sample]:
    out = []
    arrays: tuple[Any, ...] = (
        np.float64(1.5), np.zeros((0, 3)), np.array([1.0, np.inf, -0.0, np.nan]), np.arange(40.0).reshape(5, 8),
        np.array([True, False]), np.array([2**64 - 1], np.uint64), np.array([[1, -1]], np.int8),
        np.array([1.5, 2.5], to_numpy(bf16)), np.full(7, 0.1, np.float32))
    out += [Sample((), lambda a=a: tensor.Constant(np.asarray(a))) for a in arrays]
    numbers: tuple[tuple[Any, str], ...] = (
        (1.0, "f64"), (0.1, "7xf32"), (float("inf"), "1xf16"), (float("nan"), "3xbf16"), (-0.0, "0xf64"),
        (True, "3xi1"), (-5, "2x3xi8"), (255, "ui8"), (2**64 - 1, "ui64"), (1e300, "2xf32"))
    out += [Sample((), lambda n=n, s=s: tensor.Full(n, t(s).shape, t(s).dtype)) for n, s in numbers]
    out += [Sample((), lambda s=s, a=a: tensor.Iota(t(s).shape, a, t(s).dtype)) for s, a in (
        ("7xi64", 0), ("0xi32", 0), ("1xf32", 0), ("2x3xi8", 1), ("2x3x5xf64", 1))]
    out += [Sample((), lambda d=d, s=s: tensor.Size(d, s)) for d, s in ((7, i64), (0, i32), (300, i8))]
    # symbols get their numbers from an argument
    x = (t("BxCxf64"),)
    out += [Sample(x, lambda _: tensor.Full(2.5, (B, 2 * C + 1), f32)),
            Sample(x, lambda _: tensor.Iota((B, C), 0, i32)), Sample(x, lambda _: tensor.Size(B * C - 1, i64))]
    return out


def _map() -> list[Sample]:
    def body(*xs: Value) -> Value:
        return xs[0] * xs[-1] + 1.0
    return [Sample(tuple(map(t, types)), lambda *xs: map_elements(xs, body)) for types in (
        ("f64",), ("7xf32",), ("0xf64",), ("2x1xf32", "3xf32"), ("1xf64",), ("Bx1xf64", "Cxf64"))]


def _composite() -> list[Sample]:
    one: tuple[tuple[str, int], ...] = (("7xf64", 0), ("1xf64", 0), ("2x3xf64", 1), ("2x3xf64", 0), ("0x3xf64", 1),
                                        ("Bx5xf64", 1), ("5xBxf64", 0), ("3xf32", 0), ("3xf16", 0), ("3xbf16", 0))
    out = [Sample((t(s),), lambda x, cls=cls, axis=axis: cls(x, axis))
           for cls in (tensor.Softmax, tensor.LogSoftmax, tensor.LogSumExp, tensor.ArgMax)
           for s, axis in one]
    out.append(Sample((t("2x4xi32"),), lambda x: tensor.ArgMax(x, 1)))
    over: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("7xf64", (0,)), ("1xf64", (0,)), ("0xf64", (0,)), ("2x3xf64", (0,)), ("2x3x5xf64", (0, 2)), ("Bx3xf64", (0,)),
        ("BxCxf64", (0, 1)), ("7xf32", (0,)), ("7xf16", (0,)), ("7xbf16", (0,)))
    out += [Sample((t(s),), lambda x, axes=axes: tensor.Mean(x, axes)) for s, axes in over]
    out += [Sample((t(s),), lambda x, axes=axes, c=c: tensor.Var(x, axes, c)) for s, axes in over for c in (0.0, 1.0)]
    norms: tuple[tuple[str, str, tuple[int, ...]], ...] = (
        ("7xf64", "7xf64", (0,)), ("2x3xf64", "3xf64", (1,)), ("0x3xf64", "3xf64", (1,)), ("1x5xf64", "5xf64", (1,)),
        ("2x3x5xf64", "2x5xf64", (0, 2)), ("Bx5xf64", "5xf64", (1,)), ("2x5xf32", "5xf32", (1,)),
        ("2x5xf16", "5xf16", (1,)))
    for x, w, axes in norms:
        out += [Sample((t(x), t(w), t(w)), lambda x, w, b, axes=axes: tensor.LayerNorm(x, w, b, axes)),
                Sample((t(x), t(w)), lambda x, b, axes=axes: tensor.LayerNorm(x, None, b, axes, 1e-3)),
                Sample((t(x),), lambda x, axes=axes: tensor.LayerNorm(x, None, None, axes))]
    activations: Sequence[Callable[..., Op]] = (
        tensor.Relu, tensor.Elu, tensor.Gelu, lambda x: tensor.Gelu(x, "tanh"), tensor.Silu,
        tensor.Softplus, tensor.LogSigmoid, tensor.StopGradient)
    out += [Sample((t(f"{s}f64"),), make, -4, 4) for make in activations for s in SHAPES]
    out += [Sample((t(f"7x{d}"),), make, -4, 4) for make in activations for d in FLOATS[:3]]
    classes: tuple[tuple[str, str, int, Any], ...] = (
        ("5xf64", "i64", 0, 3), ("2x5xf64", "2xi64", 1, [4, 0]), ("0x5xf64", "0xi32", 1, []),
        ("1x1xf64", "1xui8", 1, [0]),
        ("2x5x3xf64", "2x3xi64", 1, [[1, 2, 4], [0, 0, 3]]), ("Bx5xf64", "Bxi64", 1, [1, 0, 4]),
        ("2x5xf32", "2xi64", 1, [4, 0]), ("2x5xf16", "2xi64", 1, [4, 0]))
    for x, y, axis, labels in classes:
        logits = np.random.default_rng(7).uniform(-3, 3, [evaluate(d, NUMBERS) for d in t(x).shape])
        out += [Sample((t(x), t(y)), lambda x, y, axis=axis, how=how: tensor.CrossEntropy(x, y, axis, how),
                       values=(logits, labels)) for how in ("none", "mean", "sum")]
    return out


SAMPLES: tuple[Sample, ...] = (
    *_source(), *_elementwise(), *_compare(), *_reduce(), *_shape(), *_index(), *_contract(), *_map(), *_composite(),
    *op_samples_linalg.SAMPLES, *op_samples_windows.SAMPLES, *op_samples_quantized.SAMPLES)
"""Every sample, family by family."""
COMPOSITES = {s.op for s in SAMPLES if hasattr(REGISTRY[s.op], "decompose")}
_first = {s.op: s for s in reversed(SAMPLES)}
ONCE_COMPOSITES = [s for s in SAMPLES if s.op not in COMPOSITES or s is _first[s.op]]
"""Every sample of primitives, and the first of each composite, for what looks at modules that are decomposed: the
others are more of the same primitives, and the dearest of all."""


def samples_of(name: str) -> list[Sample]:
    """The samples of one operation."""
    return [s for s in SAMPLES if s.op == name]
