"""Comparisons of whole tensors, which return a Python bool and so cannot be recorded."""

from __future__ import annotations

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.create import asarray, creation
from mlc.frontend.operands import same_shape
from mlc.frontend.tensor import Operand


@creation
def allclose(input: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether |input - other| <= atol + rtol * |other| holds for all elements, as a Python bool.

    Empty tensors are close. Within a compiled function the answer is not known: use `mlc.isclose(...).all()`.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether NaN is close to NaN.

    Returns:
        bool.

    Raises:
        UserError: called within a compiled function (MLC0350), the shapes do not broadcast (MLC0111), or a tolerance is
            negative (MLC0360).

    Example:
        >>> mlc.allclose(mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 2.000001]))
        True
    """
    return bool(R.all(E.isclose(input, other, rtol, atol, equal_nan)))


@creation
def equal(input: Operand, other: Operand) -> bool:
    """Whether two tensors have the same shape and equal elements, as a Python bool.

    Elements are compared in the promoted dtype, and NaN equals nothing. Within a compiled function the answer is not
    known: use `(input == other).all()`.

    Args:
        input: Tensor or number.
        other: Tensor or number.

    Returns:
        bool.

    Raises:
        UserError: called within a compiled function (MLC0350).

    Example:
        >>> mlc.equal(mlc.tensor([1, 2]), mlc.tensor([1.0, 2.0]))
        True
    """
    a, b = asarray(input), asarray(other)
    return same_shape(a.shape, b.shape) and bool(R.all(E.eq(a, b)))
