"""Rounding to integers, and fractional parts."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions.elementwise.apply import unary
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.operands import cast, floating, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import bf16, f16, f32


def _rounding(cls: Any, input: Operand) -> Tensor:
    x = tracer(input)
    return unary(cls, x) if x.type.dtype.is_inexact else x


@operation()
def floor(input: Operand) -> Tensor:
    """The greatest integer not above each element.

    floor(x) <= x < floor(x) + 1. NaN, infinities and -0.0 stay as they are.

    Args:
        input: Tensor or number; integers and bools stay as they are.

    Returns:
        Tensor of the shape and dtype of `input`; the derivative is 0.

    Example:
        >>> mlc.floor(mlc.tensor([-1.5, 1.5]))
        tensor([-2.,  1.], dtype=mlc.float32)
    """
    return _rounding(T.Floor, input)


@operation()
def ceil(input: Operand) -> Tensor:
    """The least integer not below each element.

    ceil(x) = -floor(-x). NaN and infinities stay as they are, and a result of 0 has the sign of x.

    Args:
        input: Tensor or number; integers and bools stay as they are.

    Returns:
        Tensor of the shape and dtype of `input`; the derivative is 0.

    Example:
        >>> mlc.ceil(mlc.tensor([-1.5, 1.5]))
        tensor([-1.,  2.], dtype=mlc.float32)
    """
    return _rounding(T.Ceil, input)


@operation()
def round(input: Operand, *, decimals: int = 0) -> Tensor:
    """The nearest integer to each element, or the nearest multiple of 10 ** -decimals; halves go to the even one.

    Args:
        input: Tensor or number; integers and bools stay as they are.
        decimals: Decimal places; a negative number rounds to tens, hundreds and so on.

    Returns:
        Tensor of the shape and dtype of `input`; the derivative is 0.

    Raises:
        UserError: `decimals` is not 0 and `input` is not of floats (MLC0359), or it is beyond -308 to 308 (MLC0360).

    Example:
        >>> mlc.round(mlc.tensor([0.5, 1.5, 2.7]))
        tensor([0., 2., 3.], dtype=mlc.float32)
        >>> mlc.round(mlc.tensor([1234.567]), decimals=-2)
        tensor([1200.], dtype=mlc.float32)
    """
    places = plain_int(decimals, "decimals")
    if not places:
        return _rounding(T.Round, input)
    x = tracer(input)
    if not x.type.dtype.is_float:
        raise UserTypeError(f"decimals = {places} need floats, found {x.dtype}", code="MLC0359")
    if builtins.abs(places) > sys.float_info.max_10_exp:
        raise UserError(f"decimals = {places}, expected {-sys.float_info.max_10_exp} to {sys.float_info.max_10_exp}",
                        code="MLC0360")
    scale = 10.0 ** builtins.abs(places)
    wide = cast(x, f32) if x.type.dtype in (f16, bf16) else x          # which the products may overflow
    found = round(wide * scale) / scale if places > 0 else round(wide / scale) * scale
    return cast(tracer(found), x.type.dtype, x.weak)


@operation()
def trunc(input: Operand) -> Tensor:
    """Each element rounded toward zero.

    trunc(x) = sign(x) * floor(|x|): the fraction is dropped, as in a conversion to integers, but the dtype stays. NaN
    and infinities stay as they are, and a result of 0 has the sign of x. `mlc.fix` is another name.

    Args:
        input: Tensor or number; integers and bools stay as they are.

    Returns:
        Tensor of the shape and dtype of `input`; the derivative is 0.

    Example:
        >>> mlc.trunc(mlc.tensor([-1.5, 1.5]))
        tensor([-1.,  1.], dtype=mlc.float32)
    """
    x = tracer(input)
    return where(x < 0, ceil(x), floor(x)) if x.type.dtype.is_inexact else x


@operation()
def frac(input: Operand) -> Tensor:
    """x - trunc(x), the fractional part of each element, with its sign.

    An infinity gives NaN. The derivative is 1.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.frac(mlc.tensor([-1.5, 2.25]))
        tensor([-0.5 ,  0.25], dtype=mlc.float32)
    """
    x = floating(input)
    return x - trunc(x)
