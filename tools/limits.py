"""The elementwise operations of a program by themselves, on the limits of their types and what is next to them.

How a number is computed depends on the operation and its types alone, but a program's own numbers hardly reach the last
bit of an exponent, or a quotient that overflows; in a program such numbers meet others first, which hide them.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any

import numpy as np

from mlc.dialects import func
from mlc.dialects.builtin import module as new_module
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.ir.core import Op, Value, at_end
from mlc.ir.types import FloatType, IntType, ScalarType, TensorType, to_numpy
from mlc.passes.analysis.structural_key import attribute_key

Array = np.ndarray[Any, Any]

FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -3.0, 7.0, 100.0, np.inf, -np.inf, np.nan, 1e-40, 1e-310, 3e38, -1e300,
          65504.0, 127.5, 255.0, -128.5, 2.0**31, 2.0**53, -(2.0**63), 2.0**64, 1 + 2.0**-8 + 2.0**-30,
          1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-24 + 2.0**-50)
"""Numbers of floats, as their type has them; the last just above the middle of two numbers of a narrower type."""
MIDDLES = tuple((1 << high) + (1 << high - digits) + 1 for high in (24, 30, 60, 62) for digits in (8, 11, 24, 53)
                if digits < high)
"""Integers just above the middle of two numbers of a type of so many digits."""
COUNT = 600
"""Limit on the elements: of so many combinations of the numbers of operands."""
MOST = 24
"""Operations that are compiled at a time."""


def at_limits(module: Op, seen: set[Hashable]) -> tuple[Op, list[Array]] | None:
    """A module in which @main gives the results of a module's elementwise operations, and its arguments; None where all
    have been `seen`, to which these are added."""
    chosen = list[Elementwise]()
    for op in module.walk():
        if isinstance(op, Elementwise) and op.operands and all(isinstance(v.type, TensorType) and isinstance(
                v.type.dtype, FloatType | IntType) for v in (*op.operands, *op.results)):
            key = type(op), attribute_key(op.attrs), *(v.type.dtype for v in (*op.operands, *op.results))
            if key not in seen and len(chosen) < MOST:
                seen.add(key)
                chosen.append(op)
    if not chosen:
        return None
    main = func.function("main", [])
    out = new_module()
    out.body.block.insert(main)
    arrays, given = list[Array](), dict[tuple[ScalarType, ...], list[Value]]()
    with at_end(main.block):
        results = list[Value]()
        for op in chosen:
            types = tuple(v.type.dtype for v in op.operands)
            if types not in given:
                numbers = combinations(types)
                arrays += numbers
                given[types] = [main.block.add_arg(TensorType(x.shape, t)) for x, t in zip(numbers, types)]
            results += op.with_operands(given[types]).results
        func.Return(tuple(results))
    main.update_type()
    return out, arrays


def combinations(types: tuple[ScalarType, ...]) -> list[Array]:
    """All combinations of numbers of some types, or some of them, as an array for each."""
    rows = np.array([*itertools.product(*(range(len(numbers_of(t))) for t in types))])
    if len(rows) > COUNT:
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:COUNT]]
    return [numbers_of(t)[rows[:, i]] for i, t in enumerate(types)]


def numbers_of(dtype: ScalarType) -> Array:
    """The limits of a type, and numbers next to them and to the width of it."""
    kind = to_numpy(dtype)
    if isinstance(dtype, FloatType):
        with np.errstate(all="ignore"):
            return np.array(FLOATS).astype(kind)
    assert isinstance(dtype, IntType)
    if kind == np.bool_:
        return np.array([False, True])
    info, width = np.iinfo(kind), dtype.width
    near = (0, 1, 2, 3, 5, -1, -2, -7, width - 1, width, width + 1, 1 << (width - 1), 1 << (width - 2), info.max,
            info.max - 1, info.min, info.min + 1, 10, *MIDDLES)
    return np.array(sorted({n for n in near if info.min <= n <= info.max}), kind)
