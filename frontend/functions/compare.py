"""Comparisons of whole tensors, which return a Python bool."""

from __future__ import annotations

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.create import asarray, creation
from mlc.frontend.operands import same_shape
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.tracer import Tracer, as_number


@creation
def allclose(input: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether |input - other| <= atol + rtol * |other| holds for all elements, as a Python bool.

    Empty tensors are close. Within a compiled function the bool may decide an `if`.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether NaN is close to NaN.

    Returns:
        bool.

    Raises:
        UserError: the shapes do not broadcast (MLC0111), or a tolerance is negative (MLC0360).

    Example:
        >>> mlc.allclose(mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 2.000001]))
        True
    """
    return _as_bool(R.all(E.isclose(input, other, rtol, atol, equal_nan)))


@creation
def equal(input: Operand, other: Operand) -> bool:
    """Whether two tensors have the same shape and equal elements, as a Python bool.

    Elements are compared in the promoted dtype, and NaN equals nothing. Within a compiled function the bool may decide
    an `if`.

    Args:
        input: Tensor or number.
        other: Tensor or number.

    Returns:
        bool.

    Example:
        >>> mlc.equal(mlc.tensor([1, 2]), mlc.tensor([1.0, 2.0]))
        True
    """
    a, b = asarray(input), asarray(other)
    return same_shape(a.shape, b.shape) and _as_bool(R.all(E.eq(a, b)))


def _as_bool(x: Tensor) -> bool:
    """A truth as a Python bool; one that is recorded stands for a bool."""
    return as_number(x) if isinstance(x, Tracer) else bool(x)  # type: ignore[return-value]
