"""Evaluation in float64, for functions that are sums of series."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.frontend.operands import cast, together, tracer
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir.types import f64


def in_double(f: Callable[..., Tensor], *xs: Operand) -> Tensor:
    """f(*xs) computed in float64 and rounded once to the promoted float type."""
    operands = together(*xs, floating=True)
    dtype, weak = operands[0].type.dtype, operands[0].weak
    return cast(tracer(f(*(cast(x, f64) for x in operands))), dtype, weak)


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """sum_k coefficients[k] * x ** k, by Horner's rule."""
    out: Tensor | float = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    assert isinstance(out, Tracer)
    return out
