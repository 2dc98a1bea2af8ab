"""Application of elementwise operations, with type promotion and checks of the dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.operands import NUMBER, cast, common_dtype, number, plain, together, tracer
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserTypeError
from mlc.ir.types import ScalarType, bf16, f16, f32, i1, to_numpy


def unary(cls: Any, x: Tracer) -> Tensor:
    return emit(cls, x, weak=x.weak)  # type: ignore[no-any-return]


def binary(cls: Any, a: Operand, b: Operand, floating: bool = False) -> Tensor:
    a, b = together(a, b, floating=floating)
    return emit(cls, a, b, weak=a.weak)  # type: ignore[no-any-return]


def scaled(cls: Any, a: Operand, b: Operand, floating: bool = False) -> Tensor:
    """A product or quotient. A number, or a 0-d tensor of another type, beside a tensor of 16-bit floats is not rounded
    to their type first, in which 65536.0 is inf and 1.003 may be 1.0: both are taken to float32, and the result is
    rounded, as in PyTorch's kernels."""
    x, y = plain(a, b)
    dtype, _ = common_dtype([x, y])
    if dtype not in (f16, bf16) or not (_changes(x, dtype) or _changes(y, dtype)):
        return binary(cls, x, y, floating)
    return wide(lambda x, y: binary(cls, x, y), x, y)


def wide(f: Callable[[Tracer, Tracer], Operand], a: Operand, b: Operand) -> Tensor:
    """f of two operands in their promoted type; of 16-bit floats in float32, from the numbers themselves, and rounded
    once."""
    xs = plain(a, b)
    dtype, _ = common_dtype(xs)
    if dtype not in (f16, bf16):
        return tracer(f(*together(*xs)))
    return cast(tracer(f(*(number(x, f32) if isinstance(x, NUMBER) else cast(x, f32) for x in xs))), dtype)


def _changes(x: Any, dtype: ScalarType) -> bool:
    """Whether a number or 0-d tensor may have another value in a type of 16-bit floats."""
    if not isinstance(x, NUMBER):
        return not x.shape and x.type.dtype not in (i1, f16, bf16)
    with np.errstate(over="ignore"):
        return x == x and float(np.asarray(x).astype(to_numpy(dtype))) != x


def numeric(x: Operand, name: str) -> Tracer:
    out = tracer(x)
    if out.type.dtype.is_bool:
        raise UserTypeError(f"{name} is not defined on bool", code="MLC0359", hint="cast it first: x.to(mlc.int64)")
    return out


def compare(predicate: str, a: Operand, b: Operand) -> Tensor:
    a, b = together(a, b)
    return emit(T.Compare, predicate, a, b, weak=a.weak)  # type: ignore[no-any-return]
