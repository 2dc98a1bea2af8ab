"""Piecewise linear and quadratic activation functions."""

from __future__ import annotations

from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.operands import cast, floating, number, reshape, rounded_once, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError


@operation()
def relu(input: Operand, inplace: bool = False) -> Tensor:
    """max(x, 0), for each element (rectified linear unit). The derivative at 0 is 0.

    Args:
        input: Tensor or number.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> mlc.relu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    return typed(Tensor, emit(T.Relu, x)) if x.type.dtype.is_float else E.clamp(x, 0)


@operation()
def relu6(input: Operand, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6), for each element (Howard et al. 2017). The derivative at 0 and 6 is 0.

    Args:
        input: Tensor or number.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> nn.functional.relu6(mlc.tensor([-1.0, 2.0, 9.0]))
        tensor([0., 2., 6.], dtype=mlc.float32)
    """
    x = tracer(input)
    return hardtanh(x, 0.0, 6.0) if x.type.dtype.is_float else E.clamp(x, 0, 6)


@operation()
def leaky_relu(input: Operand, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, negative_slope * x elsewhere (Maas, Hannun and Ng 2013).

    Args:
        input: Tensor or number; integers become float32.
        negative_slope: Slope below 0.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.leaky_relu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.01,  0.  ,  2.  ], dtype=mlc.float32)
    """
    x = floating(input)
    return E.where(x > 0, x, x * negative_slope)


@operation(autocast="lower_precision")
def prelu(input: Operand, weight: Operand) -> Tensor:
    """x where x > 0, weight * x elsewhere (He et al. 2015).

    Args:
        input: Tensor; integers become float32.
        weight: The slope below 0: one number, or one for each channel (dimension 1).

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `weight` has another shape (MLC0367).

    Example:
        >>> mlc.prelu(mlc.tensor([[-1.0, -1.0]]), mlc.tensor([0.5, 0.25]))
        tensor([[-0.5 , -0.25]], dtype=mlc.float32)
    """
    x, w = together(input, weight, floating=True)
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or (w.ndim and w.shape[0] not in (1, channels)):
        raise UserError(f"a weight of shape {list(w.shape)} for {channels} channels, expected one, or one for each",
                        code="MLC0367", symbols=sizes.symbols(*w.shape, channels))
    if w.ndim:
        w = reshape(w, [w.shape[0] if i == 1 else 1 for i in range(x.ndim)])
    return E.where(x > 0, x, x * w)


@operation()
def softshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """x - lambd where x > lambd, x + lambd where x < -lambd, 0 between.

    Args:
        input: Tensor or number; integers become float32.
        lambd: Half of the interval that becomes 0, at least 0.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `lambd` is negative (MLC0360).

    Example:
        >>> nn.functional.softshrink(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.5,  0. ,  1.5], dtype=mlc.float32)
    """
    if lambd < 0:
        raise UserError(f"lambd = {lambd}, expected at least 0", code="MLC0360")
    return rounded_once(lambda x: E.where(E.abs(x) <= lambd, 0.0, E.where(x > 0, x - lambd, x + lambd)),
                        floating(input))


@operation()
def hardshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, 0 elsewhere.

    Numbers of magnitude up to `lambd` become 0, the others stay, so there is a jump at the edge; `softshrink` has none.
    NaN stays. The derivative is 1 where x is kept and 0 elsewhere.

    Args:
        input: Tensor or number; integers become float32.
        lambd: Half of the interval that becomes 0.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.hardshrink(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.,  0.,  2.], dtype=mlc.float32)
    """
    x = floating(input)
    return E.where(E.abs(x) <= lambd, 0.0, x)


@operation()
def hardtanh(input: Operand, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """min(max(x, min_val), max_val), for each element. The derivative at both limits is 0.

    Args:
        input: Tensor or number; integers become float32.
        min_val: Lower limit.
        max_val: Upper limit.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: The lower limit is above the upper one (MLC0360).

    Example:
        >>> nn.functional.hardtanh(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.], dtype=mlc.float32)
    """
    if min_val > max_val:
        raise UserError(f"min_val = {min_val} is above max_val = {max_val}", code="MLC0360")
    x = floating(input)
    return E.where(x <= min_val, min_val, E.where(x >= max_val, max_val, x))


@operation()
def hardsigmoid(input: Operand, inplace: bool = False) -> Tensor:
    """min(max(x / 6 + 1 / 2, 0), 1), for each element (Courbariaux, Bengio and David 2015).

    Args:
        input: Tensor or number; integers become float32.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.hardsigmoid(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3333333, 0.5      , 0.8333334], dtype=mlc.float32)
    """
    return rounded_once(lambda x: E.where(x <= -3, 0.0, E.where(x >= 3, 1.0, x / 6 + 0.5)), floating(input))


@operation()
def hardswish(input: Operand, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x), for each element (Howard et al. 2019).

    Args:
        input: Tensor or number; integers become float32.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.hardswish(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.33333334,  0.        ,  1.6666666 ], dtype=mlc.float32)
    """
    def steps(x: Tracer) -> Tensor:
        between = E.where(E.abs(x) < 3, x, 0.0)            # keeps infinities out of the branch that is not selected
        return E.where(x <= -3, 0.0, E.where(x >= 3, x, E.where(E.isnan(x), x, between * (between + 3) / 6)))
    return rounded_once(steps, floating(input))


@operation()
def threshold(input: Operand, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, `value` elsewhere.

    A number equal to the threshold is replaced; NaN stays. With threshold 0 and value 0 it is `relu`. The derivative is
    1 where x is kept and 0 elsewhere.

    Args:
        input: Tensor or number.
        threshold: The threshold.
        value: Number in place of elements that are not above it.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `input` is of integers and `value` is no integer (MLC0352).
        UserTypeError: `threshold` or `value` is a tensor of one or more dimensions (MLC0364).

    Example:
        >>> mlc.threshold(mlc.tensor([-1.0, 0.5, 2.0]), 0.5, 9.0)
        tensor([9., 9., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    limit = number(threshold, tracer(threshold).type.dtype, weak=True)
    return E.where(x <= limit, cast(number(value, x.type.dtype), x.type.dtype), x)
