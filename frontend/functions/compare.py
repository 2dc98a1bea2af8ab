"""Whether tensors agree as a whole: functions that give Python a bool, so none to record."""

from __future__ import annotations

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.create import asarray, creation
from mlc.frontend.operands import same_shape
from mlc.frontend.tensor import Operand


@creation
def allclose(input: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether |input - other| <= atol + rtol * |other| for all elements; `isclose(...).all()` is a tensor."""
    return bool(R.all(E.isclose(input, other, rtol, atol, equal_nan)))


@creation
def equal(input: Operand, other: Operand) -> bool:
    """Whether two tensors have the same shape and elements; `(input == other).all()` is a tensor."""
    a, b = asarray(input), asarray(other)
    return same_shape(a.shape, b.shape) and bool(R.all(E.eq(a, b)))
