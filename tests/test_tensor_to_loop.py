"""Conversions and integer arithmetic at their edges: the tensor level's meaning against native code, bit for bit."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from mlc.backends.executable import build
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Return, function
from mlc.ir import sizes
from mlc.ir.core import Value, at_end
from mlc.ir.interp import run_function
from mlc.ir.types import (
    IntType,
    ScalarType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    to_numpy,
    ui8,
    ui16,
    ui32,
    ui64,
)
from mlc.passes import pipeline
from tests.public_case import thinned

INTEGERS = (i8, i16, i32, i64, ui8, ui16, ui32, ui64)
FLOATS = (f16, bf16, f32, f64)


def program(types: list[TensorType], body: Any) -> Module:
    made = module()
    f = function("main", types)
    with at_end(f.block, f.loc):
        Return(tuple(body(*f.args)))
    f.update_type()
    made.body.block.insert(f)
    return made


def check(body: Any, *arrays: np.ndarray[Any, Any], dtypes: list[ScalarType]) -> None:
    """Native code gives the bits that the tensor level gives."""
    types = [TensorType(a.shape, dtype) for a, dtype in zip(arrays, dtypes)]
    wanted = run_function(program(types, body), "main", arrays)
    found = build(pipeline.lower(program(types, body))).entry("main").call(arrays)
    for a, b in zip(found, wanted, strict=True):
        bits = f"u{a.dtype.itemsize}"
        different = (a.view(bits) != b.view(bits)) & ~((a != a) & (b != b))
        assert not different.any(), (f"{a.dtype}: {arrays[0][different][:3]} gives {a[different][:3]}, "
                                     f"not {b[different][:3]}")


def edges(dtype: ScalarType) -> np.ndarray[Any, Any]:
    """Numbers of a float type around the ends of every integer type, and the ones that are none."""
    ends = [sign * 2.0 ** k for sign in (1, -1) for k in (0, 7, 8, 15, 16, 31, 32, 63, 64)]
    with np.errstate(all="ignore"):
        some = np.array([*ends, 0.5, -0.5, 0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5], to_numpy(dtype))
        return np.concatenate([some, np.nextafter(some, to_numpy(dtype).type(np.inf)),
                               np.nextafter(some, to_numpy(dtype).type(-np.inf))])


def extremes(dtype: IntType) -> np.ndarray[Any, Any]:
    info = np.iinfo(to_numpy(dtype))
    near = {k for end in (int(info.min), int(info.max), 0) for k in range(end - 3, end + 4)}
    halves = {(1 << k) + d for k in range(1, 64) for d in (-1, 0, 1)}           # what floats round to even
    ties = {(1 << k) + (1 << (k - n)) + d for k in range(30, 64) for n in (8, 11, 24, 53) if n <= k for d in (-1, 0, 1)}
    return np.array(sorted(n for n in {*near, *halves, *ties} if info.min <= n <= info.max), to_numpy(dtype))


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_to_integers(source: ScalarType) -> None:
    check(lambda x: [tn.Cast(x, dtype=t).result for t in INTEGERS], edges(source), dtypes=[source])


@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_to_floats(source: IntType) -> None:
    check(lambda x: [tn.Cast(x, dtype=t).result for t in (*FLOATS, *INTEGERS) if t != source], extremes(source),
          dtypes=[source])


@pytest.mark.parametrize("dtype", thinned(reversed(INTEGERS), 4), ids=str)
def test_integer_arithmetic(dtype: IntType) -> None:
    """Division by zero and of the least number by -1, shifts by the width and more, powers below zero."""
    info = np.iinfo(to_numpy(dtype))
    some = [n for n in (info.min, info.min + 1, -3, -2, -1, 0, 1, 2, 3, dtype.width - 1, dtype.width, info.max)
            if info.min <= n <= info.max]
    a, b = (np.array(column, to_numpy(dtype)) for column in zip(*itertools.product(some, some)))

    def body(x: Value, y: Value) -> list[Value]:
        return [cls(x, y).result for cls in (tn.FloorDiv, tn.Rem, tn.Shl, tn.Shr, tn.Pow, tn.Maximum, tn.Minimum)]
    check(body, a, b, dtypes=[dtype, dtype])


@pytest.mark.parametrize("order", ["lanes<4, 2>", "lanes<1, 2>", "lanes<8, 3>"])
@pytest.mark.parametrize("length", [0, 3, 8, 16, 23, 64, 129, 300])
def test_runs(order: str, length: int) -> None:
    """Of fixed and of any length, and with a maximum of the same rows."""
    x = np.random.default_rng(length).standard_normal((3, length)).astype(np.float32)

    def body(v: Value) -> list[Value]:
        return [tn.ReduceSum(v, (1,), order).result, tn.ReduceProd(v, (1,), order).result,
                tn.ReduceMax(v, (1,)).result]

    check(body, x, dtypes=[f32])
    made = program([TensorType((3, sizes.sym("N")), f32)], body)
    found = build(pipeline.lower(made)).entry("main").call([x])
    for a, b in zip(found, run_function(program([TensorType(x.shape, f32)], body), "main", [x]), strict=True):
        assert a.tobytes() == b.tobytes()
