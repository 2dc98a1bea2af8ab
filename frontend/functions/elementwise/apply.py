"""Application of elementwise operations, with type promotion and checks of the dtype."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.operands import together, tracer
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserTypeError


def unary(cls: Any, x: Tracer) -> Tensor:
    return emit(cls, x, weak=x.weak)  # type: ignore[no-any-return]


def binary(cls: Any, a: Operand, b: Operand, floating: bool = False) -> Tensor:
    a, b = together(a, b, floating=floating)
    return emit(cls, a, b, weak=a.weak)  # type: ignore[no-any-return]


def numeric(x: Operand, name: str) -> Tracer:
    out = tracer(x)
    if out.type.dtype.is_bool:
        raise UserTypeError(f"{name} is not defined on bool", code="MLC0359", hint="cast it first: x.to(mlc.int64)")
    return out


def compare(predicate: str, a: Operand, b: Operand) -> Tensor:
    a, b = together(a, b)
    return emit(T.Compare, predicate, a, b, weak=a.weak)  # type: ignore[no-any-return]
