"""Samples of linear algebra, Fourier transforms, sorting, random bits and special functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.ir.sizes import evaluate
from mlc.ir.types import ui32
from tests.arrays import Array
from tests.op_sample import FLOATS, INTS, NUMBERS, B, C, Sample, t

SQUARE = ("3x3xf64", "1x1xf64", "0x0xf64", "2x4x4xf64", "0x2x2xf64", "BxCxCxf64", "BxBxf64", "2x3x3xf32")
TALL_AND_WIDE = ("4x2xf64", "2x4xf64", "5x1xf64", "Bx2x3xf64", "3x0xf64", "0x3xf64")


def numbers(text: str, seed: int = 11) -> Array:
    return np.random.default_rng(seed).uniform(-2, 2, [evaluate(d, NUMBERS) for d in t(text).shape])


def positive(text: str) -> Array:
    """Symmetric matrices with eigenvalues above 1."""
    x = numbers(text)
    return np.asarray(x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1]))


def steady(text: str) -> Array:
    """Matrices whose diagonal outweighs the rest, so that no step of an elimination is a matter of rounding."""
    x = numbers(text)
    return np.asarray(x + 5 * np.sign(x + 1e-3) * np.eye(*x.shape[-2:]))


def _factorisations() -> list[Sample]:
    out = [Sample((t(s),), tensor.Cholesky, values=(positive(s),)) for s in SQUARE]
    out.append(Sample((t("2x2xf64"),), tensor.Cholesky, values=(-np.eye(2),), smooth=False))
    out.append(Sample((t("40x40xf64"),), tensor.Cholesky, values=(positive("40x40xf64"),), smooth=False))
    for s in (*SQUARE, *TALL_AND_WIDE):
        x = numbers(s)
        out += [Sample((t(s),), make, values=(x,)) for make in (tensor.Lu, tensor.Qr, tensor.Svd)]
    out += [Sample((t("2x4xf64"),), lambda x: tensor.Qr(x, True), values=(numbers("2x4xf64"),)),
            Sample((t("4x2xf64"),), lambda x: tensor.Qr(x, True), values=(numbers("4x2xf64"),), smooth=False)]
    out += [Sample((t(s),), make, values=(numbers(s),), smooth=False)
            for s in ("37x34xf64", "34x37xf64") for make in (tensor.Lu, tensor.Qr)]
    out += [Sample((t("3x3xf64"),), tensor.Lu, values=([[0.0, 1, 2], [0, 0, 3], [0, 4, 5]],), smooth=False)]
    out += [Sample((t(s),), make, values=(numbers(s),)) for s in SQUARE for make in (tensor.MatrixExp, tensor.Pinv)]
    out += [Sample((t(s),), tensor.Pinv, values=(numbers(s),)) for s in TALL_AND_WIDE]
    out += [Sample((t("3x2xf64"),), lambda x: tensor.Pinv(x, 1e-3, 0.5), values=(numbers("3x2xf64"),),
                   smooth=False),
            Sample((t("2x2xf64"),), tensor.MatrixExp, values=([[-200.0, 3.0], [0.0, -100.0]],), smooth=False)]
    out += [Sample((t(s),), tensor.Eigh, values=(positive(s) * 0.3 - 1,)) for s in SQUARE]
    # squares of these are too great or too small for their type, and here no singular value is to be divided by
    out += [Sample((t(f"4x2x{d}"),), tensor.Svd, values=(numbers("4x2xf64") * size,), smooth=False)
            for d, size in (("f64", 1e-200), ("f64", 1e200), ("f32", 1e-30), ("f32", 1e30))]
    out += [Sample((t("3x2xf64"),), lambda x, atol=atol: tensor.Pinv(x, atol), values=([[1, 2], [2, 4], [3, 6]],),
                   smooth=False) for atol in (None, 0.0)]
    return out


def _solutions() -> list[Sample]:
    out = []
    for a, b in (("3x3xf64", "3x2xf64"), ("1x1xf64", "1x1xf64"), ("0x0xf64", "0x2xf64"), ("2x4x4xf64", "2x4x1xf64"),
                 ("BxCxCxf64", "BxCx3xf64"), ("2x3x3xf32", "2x3x2xf32")):
        values = (steady(a), numbers(b))
        out += [Sample((t(a), t(b)), lambda a, b, u=u, v=v: tensor.TriangularSolve(a, b, u, v), values=values)
                for u in (False, True) for v in (False, True)]
        out.append(Sample((t(a), t(b)), tensor.Solve, values=values))
    out.append(Sample((t("3x3xf64"), t("3x2xf64")), lambda a, b: tensor.TriangularSolve(a, b, unit=True),
                      values=(numbers("3x3xf64"), numbers("3x2xf64"))))
    values = (steady("35x35xf64"), numbers("35x2xf64"))
    out.append(Sample((t("35x35xf64"), t("35x2xf64")), tensor.TriangularSolve, values=values, smooth=False))
    return out


def _sorts() -> list[Sample]:
    out = [Sample((t(s),), lambda x, a=a, d=d: tensor.ArgSort(x, a, d)) for d in (False, True) for s, a in (
        ("7xf64", 0), ("1xf64", 0), ("0xf64", 0), ("2x3xf64", 1), ("3x2xf64", 0), ("Bx5xf64", 1), ("5xBxf64", 1),
        ("70xf64", 0))]
    out += [Sample((t(f"7x{d}"),), lambda x: tensor.ArgSort(x, 0)) for d in (*INTS, *FLOATS)]
    out += [Sample((t("5xi1"),), lambda x: tensor.ArgSort(x, 0)),
            Sample((t("6xf64"),), lambda x: tensor.ArgSort(x, 0), values=([1.0, np.nan, -0.0, 0.0, -np.inf, np.nan],))]
    for right in (False, True):
        for s, v in (("5xf64", "4xf64"), ("0xf64", "3xf64"), ("1xf64", "2x1xf64"), ("2x5xf64", "2x3xf64"),
                     ("Bx4xf64", "BxCxf64"), ("Cxf64", "Bxf64"), ("5xf64", "f64"), ("5xi32", "7xi32")):
            values: tuple[Any, ...] = (np.sort(np.round(numbers(s))), np.round(numbers(v, 12)))
            out.append(Sample((t(s), t(v)), lambda s, v, r=right: tensor.SearchSorted(s, v, r), values=values))
    return out


def _transforms() -> list[Sample]:
    return [Sample((t(s),), lambda x, a=a, i=i: tensor.Dft(x, a, i)) for i in (False, True) for s, a in (
        ("8x2xf64", 0), ("1x2xf64", 0), ("0x3x2xf64", 1), ("0x2xf64", 0), ("2x5x2xf64", 1), ("6x3x2xf64", 0),
        ("Bx4x2xf64", 1), ("66x2xf64", 0), ("67x2xf64", 0), ("7x2xf32", 0))]


def _random() -> list[Sample]:
    keys = (np.array([1, 2], np.uint32),)
    out = [Sample((t("2xui32"),), lambda k, s=s: tensor.RandomBits(k, t(s).shape, t(s).dtype), values=keys) for s in (
        "ui32", "7xui32", "0xui32", "1xui32", "2x3xui8", "2x3xui16", "2x3xui64")]
    out.append(Sample((t("2xui32"), t("BxCxf32")), lambda k, _: tensor.RandomBits(k, (B, 2 * C), ui32),
                      values=(*keys, np.zeros((NUMBERS["B"], NUMBERS["C"])))))
    inside = [Sample((t(f"{s}f64"),), tensor.ErfInv, -0.9, 0.9) for s in ("", "0x", "1x", "7x", "2x3x", "Bx3x")]
    inside += [Sample((t(f"7x{d}"),), tensor.ErfInv, -0.9, 0.9) for d in FLOATS[:3]]
    ends = [-1.0, 1.0, 0.0, -0.0, 1 - 1e-9, -1 + 1e-14, 1e-300, 1.5, np.nan]
    return [*out, *inside, Sample((t("9xf64"),), tensor.ErfInv, values=(ends,), smooth=False)]


SAMPLES = (*_factorisations(), *_solutions(), *_sorts(), *_transforms(), *_random())
