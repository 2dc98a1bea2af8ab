"""Absolute values and signs."""

from __future__ import annotations

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import unary
from mlc.frontend.functions.elementwise.arithmetic import reciprocal
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.operands import cast, signed, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit


@operation()
def abs(input: Operand) -> Tensor:
    """|x|, the absolute value of each element.

    The least integer of a signed dtype has none and stays. The derivative at 0 is 0.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape and dtype of `input`; of complex numbers, that of their parts.

    Example:
        >>> mlc.abs(mlc.tensor([-1.5, 2.0]))
        tensor([1.5, 2. ], dtype=mlc.float32)
    """
    x = tracer(input)
    if x.type.dtype.is_complex:
        return emit(T.Abs, x, weak=x.weak)  # type: ignore[no-any-return]
    return unary(T.Abs, x) if signed(x) and not x.type.dtype.is_bool else x


@operation()
def sign(input: Operand) -> Tensor:
    """-1, 0 or 1 for elements below, at and above 0; 0 for NaN.

    The derivative is 0.

    Args:
        input: Tensor or number; bools stay.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> mlc.sign(mlc.tensor([-3.0, 0.0, 5.0]))
        tensor([-1.,  0.,  1.], dtype=mlc.float32)
    """
    x = tracer(input)
    return x if x.type.dtype.is_bool else unary(T.Sign, x)


@operation()
def signbit(input: Operand) -> Tensor:
    """Whether the sign bit of each element is set: True for negative numbers and -0.

    NaN gives False, whatever its sign bit; PyTorch and numpy read the bit.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.signbit(mlc.tensor([-1.0, -0.0, 0.0]))
        tensor([ True,  True, False], dtype=mlc.bool)
    """
    x = tracer(input)
    return (x < 0) | ((x == 0) & (reciprocal(x) < 0)) if x.type.dtype.is_float else x < 0


@operation()
def copysign(input: Operand, other: Operand) -> Tensor:
    """|input| with the sign of `other`, elementwise; a zero counts by its sign, NaN as positive.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.copysign(mlc.tensor([1.0, 2.0]), mlc.tensor([-0.0, 3.0]))
        tensor([-1.,  2.], dtype=mlc.float32)
    """
    a, b = together(input, other, floating=True)
    negative = (b < 0) | ((b == 0) & (reciprocal(b) < 0))
    return where(negative, -abs(a), abs(a))


@operation()
def heaviside(input: Operand, values: Operand) -> Tensor:
    """The Heaviside step function: 0 where input < 0, 1 where input > 0, and `values` where it is 0.

    NaN gives 0.

    Args:
        input: Tensor or number.
        values: Tensor or number, the result at 0; its shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.heaviside(mlc.tensor([-1.0, 0.0, 2.0]), 0.5)
        tensor([0. , 0.5, 1. ], dtype=mlc.float32)
    """
    a, b = together(input, values)
    return where(a == 0, b, cast(tracer(a > 0), a.type.dtype))
