"""Samples of windows, cumulative operations, scatters and dynamic slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.ir.core import Op
from mlc.ir.sizes import evaluate
from tests.op_sample import FLOATS, INTS, NUMBERS, C, Sample, t

WINDOWS: tuple[tuple[str, int, Any, int, int], ...] = (
    ("7x", 0, 3, 1, 1), ("7x", 0, 3, 2, 1), ("7x", 0, 2, 1, 3), ("7x", 0, 7, 5, 1), ("1x", 0, 1, 1, 1),
    ("0x", 0, 1, 2, 1), ("8x", 0, 2, 2, 1), ("1x", 0, 2, 1, 1), ("2x7x3x", 1, 3, 2, 2), ("0x5x", 1, 2, 1, 1),
    ("Bx5x", 1, 3, 1, 1), ("(B+4)x", 0, 3, 2, 1), ("(2*B)x1x", 0, "C", 1, 1))
"""Shape, axis, size, stride, dilation."""


def _windows() -> list[Sample]:
    out = []
    for text, axis, size, stride, dilation in WINDOWS:
        size = C if size == "C" else size
        x = t(f"{text}f64")
        named = (t("BxCxf64"),) if not x.is_static else ()              # tells the numbers of symbols
        windows = Sample((x, *named), lambda x, *_, s=(axis, size, stride, dilation): tensor.Windows(x, *s))
        spread = windows.build()[1].results[0].type
        n, rest = x.shape[axis], (stride, dilation)
        tall = x.with_shape((*x.shape[: axis + 1], size, *x.shape[axis + 1:]))
        out += [windows, Sample((spread, *named), lambda x, *_, s=(axis, n, *rest): tensor.Place(x, *s)),
                Sample((tall, *named), lambda x, *_, s=(axis, *rest): tensor.Pick(x, *s))]
    out.append(Sample((t("5xi8"),), lambda x: tensor.Windows(x, 0, 2)))
    out.append(Sample((t("3x2xi1"),), lambda x: tensor.Place(x, 0, 6, 2)))
    out.append(Sample((t("6x2xbf16"),), lambda x: tensor.Pick(x, 0, 2)))
    return out


PACKED: tuple[tuple[str, int, int, int], ...] = (
    ("3x8x", 1, 4, 0), ("8x3x", 0, 4, 0), ("8x3x", 0, 4, 1), ("4x", 0, 4, 0), ("3x1x", 1, 1, 0), ("0x4x", 1, 2, 1),
    ("2x0x", 1, 3, 0), ("2x6x3x", 1, 3, 2), ("(4*B)x2x", 0, 4, 0), ("Bx32x", 1, 16, 0))
"""Shape, axis, width and place of panels."""


def _packed() -> list[Sample]:
    out = []
    for text, axis, width, outer in PACKED:
        x = t(f"{text}f64")
        named = (t("BxCxf64"),) if not x.is_static else ()              # tells the numbers of symbols
        pack = Sample((x, *named), lambda x, *_, s=(axis, width, outer): tensor.Pack(x, *s))
        panels = pack.build()[1].results[0].type
        out += [pack, Sample((panels, *named), lambda x, *_, s=(axis, x.shape[axis], outer): tensor.Unpack(x, *s))]
    out += [Sample((t("6x4xf64"),), lambda x: tensor.Pack(x, 0, 3, 1, True)),
            Sample((t("2x4x3xf64"),), lambda x: tensor.Unpack(x, 1, 5, 0, True))]
    out += [Sample((t(f"2x3x4x{d}"),), lambda x: tensor.Unpack(x, 1, 5)) for d in ("f32", "i8", "i1", "bf16")]
    return out


def _cumulative() -> list[Sample]:
    def make(kind: str, axis: int, reverse: bool, order: str | None = None) -> Any:
        return lambda x: tensor.Cumulative(x, kind, axis, reverse, order)
    kinds = ("add", "mul", "max", "min")
    out = [Sample((t(f"{text}f64"),), make(kind, axis, reverse)) for kind in kinds for text, axis, reverse in (
        ("7x", 0, False), ("7x", 0, True), ("0x", 0, False), ("1x", 0, True), ("2x5x", 1, False), ("5x2x", 0, False),
        ("2x3x4x", 1, True), ("Bx5x", 1, False), ("5xBx", 0, True), ("2xBx", 1, False))]
    out += [Sample((t(f"2x5x{d}"),), make(kind, 1, False)) for kind in kinds for d in (*INTS, *FLOATS)]
    out += [Sample((t(f"2x5x{d}"),), make(kind, 1, True, "chain")) for kind in kinds[:2] for d in FLOATS]
    out += [Sample((t("2x4xf64"),), make("mul", 1, reverse), values=(([1.5, 0.0, 2.0, 3.0], [2.0, 0.0, 0.0, 1.0]),))
            for reverse in (False, True)]
    out += [Sample((t(text),), lambda x, s=(axis, reverse): tensor.LogCumSumExp(x, *s)) for text, axis, reverse in (
        ("7xf64", 0, False), ("6xf64", 0, True), ("0x2xf64", 0, False), ("1xf64", 0, False), ("2x5xf64", 1, False),
        ("5x2xf64", 0, True), ("Bx5xf64", 1, False), ("2xBxf64", 1, True), ("Bx2xf64", 0, False), ("2x5xf32", 1, False),
        ("2x5xf16", 1, True))]
    out.append(Sample((t("3x4xf64"),), lambda x: tensor.LogCumSumExp(x, 1), smooth=False, values=((
        [-np.inf, -np.inf, 1.0, 2.0], [-1e4, -2e4, 0.0, 800.0], [1.0, np.inf, 2.0, np.nan]),)))
    out.append(Sample((t("4xf64"),), make("max", 0, False), values=([1.0, 1.0, np.nan, 3.0],), smooth=False))
    return out


SCATTERS: tuple[tuple[str, str, str, int, Any], ...] = (
    ("5x", "", "", 0, 3), ("5x", "3x", "3x", 0, [4, 0, 4]), ("5x", "0x", "0x", 0, []), ("0x2x", "0x", "0x2x", 0, []),
    ("1x2x", "3x", "3x2x", 0, [0, 0, 0]), ("2x4x3x", "2x2x", "2x2x2x3x", 1, [[1, 2], [1, 3]]),
    ("Bx3x", "Cx", "Cx3x", 0, [2, 2]))
"""x, indices, updates, axis, and the indices' numbers."""

ALONG: tuple[tuple[str, str, int, Any], ...] = (
    ("5x", "3x", 0, [4, 0, 4]), ("2x5x", "2x1x", 1, [[3], [0]]), ("5x", "0x", 0, []), ("1x", "1x", 0, [0]),
    ("3x2x", "4x2x", 0, [[0, 1], [2, 2], [0, 0], [1, 1]]), ("3x4x", "2x2x", 1, [[1, 1], [0, 3]]),
    ("Bx7x", "Bx2x", 1, [[1, 1], [6, 0], [0, 2]]))


def _scatter() -> list[Sample]:
    def sample(cls: type[Op], types: tuple[str, str, str], axis: int, at: Any, kind: str) -> Sample:
        x, i, u = (t(s) for s in types)
        rng = np.random.default_rng(8)
        numbers = [rng.uniform(0.4, 3, [evaluate(d, NUMBERS) for d in s.shape]) for s in (x, u)]
        return Sample((x, i, u), lambda x, i, u: cls(x, i, u, axis, kind), values=(numbers[0], at, numbers[1]))
    kinds = ("add", "set", "mul", "max", "min")
    out = [sample(tensor.Scatter, (f"{x}f64", f"{i}i64", f"{u}f64"), axis, at, kind)
           for kind in kinds for x, i, u, axis, at in SCATTERS]
    out += [sample(tensor.ScatterAlong, (f"{x}f64", f"{i}i32", f"{i}f64"), axis, at, kind)
            for kind in kinds for x, i, axis, at in ALONG]
    out += [sample(tensor.Scatter, (f"5x{d}", "4xui8", f"4x{d}"), 0, [4, 0, 4, 4], kind)
            for kind in kinds for d in (*INTS, *FLOATS)]
    out += [sample(tensor.ScatterAlong, (f"5x{d}", "4xi64", f"4x{d}"), 0, [4, 0, 4, 4], kind)
            for kind in kinds[:2] for d in (INTS[0], *FLOATS)]
    out.append(Sample((t("3xi1"), t("2xi64"), t("2xi1")), lambda x, i, u: tensor.Scatter(x, i, u, 0, "set"),
                      values=([True, False, True], [1, 0], [True, False])))
    zeros = ([2.0, 0.0, 3.0], [0, 0, 2, 1, 2], [0.0, 1.5, 0.0, 2.0, 0.0])
    out.append(Sample((t("3xf64"), t("5xi64"), t("5xf64")), lambda x, i, u: tensor.Scatter(x, i, u, 0, "mul"),
                      values=zeros, smooth=False))
    return out


def _dynamic() -> list[Sample]:
    out = []
    for x, piece, starts in (
            ("7x", "3x", [2]), ("7x", "3x", [6]), ("7x", "7x", [-4]), ("7x", "0x", [9]), ("0x", "0x", [0]),
            ("1x", "1x", [0]), ("4x5x", "2x3x", [1, 2]), ("", "", []), ("Bx4x", "1x4x", [1, 0]),
            ("BxCx", "2xCx", [2, 0])):
        numbers = [np.random.default_rng(9).uniform(-2, 2, [evaluate(d, NUMBERS) for d in t(f"{s}f64").shape])
                   for s in (x, piece)]
        for dtype in ("i64", "i8"):
            scalars = tuple(t(dtype) for _ in starts)
            shape = t(f"{piece}f64").shape
            out.append(Sample((t(f"{x}f64"), *scalars), lambda x, *at, s=shape: tensor.DynamicSlice(x, at, s),
                              values=(numbers[0], *starts)))
            out.append(Sample((t(f"{x}f64"), t(f"{piece}f64"), *scalars), lambda x, u, *at: tensor.DynamicUpdateSlice(
                x, u, at), values=(*numbers, *starts)))
    out.append(Sample((t("5xi1"), t("2xi1"), t("ui8")), lambda x, u, i: tensor.DynamicUpdateSlice(x, u, (i,)),
                      values=([True, False, True, False, True], [False, True], 2)))
    return out


CONVOLUTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("2x3x8x", "4x3x3x", {}), ("1x1x1x", "1x1x1x", {}), ("2x3x8x", "4x3x3x", {"stride": (2,), "low": (1,)}),
    ("2x3x8x", "4x3x1x", {"stride": (3,)}), ("0x3x8x", "4x3x3x", {}), ("2x3x", "4x3x", {}),
    ("2x3x8x", "4x3x3x", {"low": (-1,), "high": (2,), "dilation": (2,)}), ("2x0x4x", "3x0x2x", {}),
    ("2x4x5x", "6x2x3x", {"spread": (2,), "low": (2,), "high": (1,), "groups": 2}),
    ("2x3x5x6x", "4x3x3x3x", {"low": (1, 1), "high": (1, 1)}), ("2x3x5x6x", "4x3x1x1x", {}),
    ("2x3x5x6x", "3x1x3x2x", {"groups": 3, "stride": (2, 1)}), ("1x2x5x6x", "2x2x1x3x", {"stride": (2, 2)}),
    ("1x2x3x4x3x", "2x2x2x2x2x", {"low": (0, 1, 0), "stride": (1, 2, 1)}), ("Bx2x5x", "3x2x3x", {"low": (1,)}),
    ("2x2xBx", "3x2x3x", {"low": (1,), "high": (1,)}), ("2x2xBx", "3x2x1x", {"stride": (2,)}),
    ("2x2xBx", "3x2x2x", {"spread": (2,), "high": (1,)}))
"""x, w, and what is not as in a plain convolution."""


def _convolution() -> list[Sample]:
    out = [Sample((t(f"{x}f64"), t(f"{w}f64")), lambda x, w, given=given: tensor.Convolution(x, w, **given))
           for x, w, given in CONVOLUTIONS]
    return out + [Sample((t(f"2x3x5x{d}"), t(f"4x3x3x{d}")), lambda x, w: tensor.Convolution(x, w, low=(1,)))
                  for d in FLOATS] + [
        Sample((t(f"{x}{d}"), t(f"{w}i8")), lambda x, w, given=given: tensor.Convolution(x, w, **given))
        for d in ("ui8", "i8") for x, w, given in CONVOLUTIONS[:6]]


def _pooling() -> list[Sample]:
    out = [Sample((t(f"{x}f64"),), lambda x, given=given: tensor.MaxPool(x, **given)) for x, given in (
        ("7x", {"size": (3,)}), ("1x", {"size": (1,)}), ("0x3x", {"size": (2,)}),
        ("2x8x", {"size": (3,), "stride": (2,)}), ("2x4x", {"size": (2,), "low": (3,), "high": (4,)}),
        ("2x0x", {"size": (2,), "low": (1,), "high": (1,)}), ("Bx2x", {"size": (2, 1), "low": (1, 0)}),
        ("2x5x6x", {"size": (3, 2), "stride": (2, 3), "low": (1, 0), "high": (1, 0)}),
        ("2x3x4x3x", {"size": (2, 2, 2), "dilation": (1, 2, 1)}), ("Bx6x", {"size": (2,), "stride": (2,)}),
        ("2x6x", {"size": (2,), "stride": (2,), "low": (1,), "high": (1,)}),
        ("2xBx", {"size": (2,), "high": (1,)}), ("3x", {"size": ()}))]
    return out + [Sample((t(f"2x5x{d}"),), lambda x: tensor.MaxPool(x, (2,), low=(1,)))
                  for d in (*FLOATS[:3], "i8", "ui8")]


def _attention() -> list[Sample]:
    out = []
    for q, k, v, mask, causal in (
            ("3x4x", "5x4x", "5x2x", None, False), ("3x4x", "5x4x", "5x2x", "3x5x", False),
            ("2x3x4x", "2x5x4x", "2x5x3x", None, True), ("2x3x4x", "3x4x", "3x3x", "1x3x", True),
            ("2x3x2x4x", "2x3x4x", "2x3x1x", "2x1x1x3x", False), ("1x1x", "1x1x", "1x1x", None, True),
            ("0x4x", "5x4x", "5x2x", None, False), ("Bx3x4x", "BxCx4x", "BxCx4x", "3x1x", False)):
        types = [t(f"{s}f64") for s in (q, k, v)]
        given = {"scale": 0.4, "causal": causal}
        out.append(Sample(tuple(types), lambda q, k, v, given=given: tensor.Attention(q, k, v, None, **given)))
        out += [Sample((*types, t(f"{mask}{d}")), lambda q, k, v, m, given=given: tensor.Attention(q, k, v, m, **given))
                for d in ("f64", "i1") if mask]
    out += [Sample((t(f"2x3x{d}"),) * 3, lambda q, k, v: tensor.Attention(q, k, v, None, 0.5)) for d in FLOATS[:3]]
    nothing = ([[1.0]], [[1.0], [2.0]], [[3.0], [4.0]], [[False, False]])
    out.append(Sample((t("1x1xf64"), t("2x1xf64"), t("2x1xf64"), t("1x2xi1")), lambda q, k, v, m: tensor.Attention(
        q, k, v, m, 0.5), values=nothing))
    return out


def _attention_grad() -> list[Sample]:
    out = []
    for q, k, v, result, mask, causal in (
            ("3x4x", "5x4x", "5x2x", "3x2x", "3x5x", False), ("2x3x4x", "2x5x4x", "2x5x3x", "2x3x3x", None, True),
            ("2x3x4x", "3x4x", "3x3x", "2x3x3x", "1x3x", True), ("1x1x", "1x1x", "1x1x", "1x1x", None, True),
            ("2x3x2x4x", "2x3x4x", "2x3x1x", "2x3x2x1x", "2x1x1x3x", False),
            ("0x4x", "5x4x", "5x2x", "0x2x", None, False), ("Bx3x4x", "BxCx4x", "BxCx4x", "Bx3x4x", None, False)):
        types = tuple(t(f"{s}f64") for s in (q, k, v, result, result))
        out.append(Sample(types, lambda q, k, v, o, ct, c=causal: tensor.AttentionGrad(q, k, v, o, ct, None, 0.4, c)))
        out += [Sample((*types, t(f"{mask}{d}")),
                       lambda q, k, v, o, ct, m, c=causal: tensor.AttentionGrad(q, k, v, o, ct, m, 0.4, c))
                for d in ("f64", "i1") if mask]
    return out + [Sample((t(f"2x3x{d}"),) * 5, lambda q, k, v, o, ct, wide=wide: tensor.AttentionGrad(
        q, k, v, o, ct, None, 0.5, wide=wide)) for d, wide in (("bf16", False), ("f32", True))]


def _flash_attention() -> list[Sample]:
    return [Sample(tuple(t(f"{s}{d}") for s in (q, k, v)),
                   lambda q, k, v, n=block, c=causal: tensor.FlashAttention(q, k, v, 0.4, c, n))
            for q, k, v, block, causal, d in (
                ("3x16x", "5x16x", "5x16x", 4, False, "bf16"), ("2x7x16x", "2x6x16x", "2x6x32x", 2, True, "bf16"),
                ("2x3x4x16x", "2x9x16x", "2x9x16x", 8, True, "f16"), ("0x16x", "5x16x", "5x16x", 4, False, "bf16"),
                ("1x16x", "1x16x", "1x16x", 1, True, "bf16"),
                ("Bx3x16x", "Bx5x16x", "Bx5x16x", 2, False, "bf16"))]


def _flash_attention_grad() -> list[Sample]:
    out = []
    for lead, queries, keys, block, causal, d in (
            ("", 3, 5, 4, False, "bf16"), ("2x", 7, 6, 2, True, "f16"), ("", 0, 4, 4, False, "bf16"),
            ("1x", 1, 1, 1, True, "bf16"), ("Bx", 3, 5, 2, False, "bf16")):
        q, k = (t(f"{lead}{n}x16x{d}") for n in (queries, keys))
        row, statistics = t(f"{lead}{queries}xf32"), t(f"{lead}{queries}x8xf32")
        out.append(Sample((q, k), lambda q, k, n=block, c=causal: tensor.AttentionStatistics(q, k, 0.4, c, n)))
        out += [Sample((q, k, k, q, statistics, row),
                       lambda q, k, v, ct, s, d, of=of, n=block, c=causal: tensor.FlashAttentionGrad(
                           q, k, v, ct, s, d, of, 0.4, c, n)) for of in "qkv"]
    return out


def _standardize() -> list[Sample]:
    return [Sample((t(x),), lambda x, axes=axes: tensor.Standardize(x, axes)) for x, axes in (
        ("7xf64", (0,)), ("2x3xf64", (1,)), ("0x3xf64", (1,)), ("1x5xf64", (1,)), ("2x3x5xf64", (0, 2)),
        ("Bx5xf64", (0,)), ("BxCx5xf64", (0, 2)), ("2x5xf32", (1,)), ("2x5xf16", (1,)))]


SAMPLES = (*_windows(), *_packed(), *_convolution(), *_pooling(), *_cumulative(), *_scatter(), *_dynamic(),
           *_standardize(), *_attention(), *_attention_grad(), *_flash_attention(), *_flash_attention_grad())
