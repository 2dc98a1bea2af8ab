"""Functions of angles and of the hyperbola."""

from __future__ import annotations

import math

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, unary
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.functions.elementwise.sign import abs
from mlc.frontend.operands import cast, floating, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.types import bf16, f16, f32


@operation()
def sin(input: Operand) -> Tensor:
    """sin(x), the sine of each element in radians; NaN at infinities.

    The argument is reduced exactly, so results are as accurate for large x as for small ones. sin(-0.0) is -0.0. The
    derivative is cos(x).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.sin(mlc.tensor([0.0, 1.0]))
        tensor([0.        , 0.84147096], dtype=mlc.float32)
    """
    return unary(T.Sin, floating(input))


@operation()
def cos(input: Operand) -> Tensor:
    """cos(x), the cosine of each element in radians; NaN at infinities.

    The argument is reduced exactly, so results are as accurate for large x as for small ones. The derivative is
    -sin(x).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.cos(mlc.tensor([0.0, 1.0]))
        tensor([1.       , 0.5403023], dtype=mlc.float32)
    """
    return unary(T.Cos, floating(input))


@operation()
def sinc(input: Operand) -> Tensor:
    """sin(pi * x) / (pi * x), the normalized sinc of each element; 1 at 0.

    Near 0 it is a series, whose derivatives are accurate there too.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.sinc(mlc.tensor([0.0, 0.5]))
        tensor([1.        , 0.63661975], dtype=mlc.float32)
    """
    given = floating(input)
    narrow = given.type.dtype in (f16, bf16)               # in which pi * x overflows, and is far from a multiple of pi
    x = (cast(given, f32) if narrow else given) * math.pi
    near = abs(x) < 0.05                                   # the derivative of sin(x) / x is a difference there
    z = where(near, x, 0.0) ** 2
    series = 1 + z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z / 362880)))
    return cast(tracer(where(near, series, sin(x) / where(near, 1.0, x))), given.type.dtype)


@operation(autocast="fp32_on_cuda")
def tan(input: Operand) -> Tensor:
    """sin(x) / cos(x), the tangent of each element in radians; NaN at infinities.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.tan(mlc.tensor([0.0, 1.0]))
        tensor([0.       , 1.5574077], dtype=mlc.float32)
    """
    return unary(T.Tan, floating(input))


@operation(autocast="fp32_on_cuda")
def sinh(input: Operand) -> Tensor:
    """(e ** x - e ** -x) / 2, the hyperbolic sine of each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.sinh(mlc.tensor([0.0, 1.0]))
        tensor([0.       , 1.1752012], dtype=mlc.float32)
    """
    return unary(T.Sinh, floating(input))


@operation(autocast="fp32_on_cuda")
def cosh(input: Operand) -> Tensor:
    """(e ** x + e ** -x) / 2, the hyperbolic cosine of each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.cosh(mlc.tensor([0.0, 1.0]))
        tensor([1.       , 1.5430807], dtype=mlc.float32)
    """
    return unary(T.Cosh, floating(input))


@operation()
def asinh(input: Operand) -> Tensor:
    """ln(x + sqrt(x ** 2 + 1)), the inverse hyperbolic sine of each element (DLMF 4.37.16).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.asinh(mlc.tensor([0.0, 1.0]))
        tensor([0.       , 0.8813736], dtype=mlc.float32)
    """
    return unary(T.Asinh, floating(input))


@operation()
def acosh(input: Operand) -> Tensor:
    """ln(x + sqrt(x ** 2 - 1)), the inverse hyperbolic cosine of each element (DLMF 4.37.19); NaN below 1.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats from 0 on, of the shape of `input`.

    Example:
        >>> mlc.acosh(mlc.tensor([1.0, 2.0]))
        tensor([0.      , 1.316958], dtype=mlc.float32)
    """
    return unary(T.Acosh, floating(input))


@operation()
def atanh(input: Operand) -> Tensor:
    """ln((1 + x) / (1 - x)) / 2, the inverse hyperbolic tangent of each element (DLMF 4.37.24).

    1 and -1 give infinities, and NaN comes from what is outside [-1, 1].

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.atanh(mlc.tensor([0.0, 0.5]))
        tensor([0.        , 0.54930615], dtype=mlc.float32)
    """
    return unary(T.Atanh, floating(input))


@operation()
def tanh(input: Operand) -> Tensor:
    """(e ** x - e ** -x) / (e ** x + e ** -x), the hyperbolic tangent of each element.

    Odd, increasing, and between -1 and 1, which it reaches at infinities and where the distance is below the precision.
    The derivative is 1 - tanh(x)^2. tanh(x) = 2 sigmoid(2 x) - 1.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats in [-1, 1], of the shape of `input`.

    Example:
        >>> mlc.tanh(mlc.tensor([0.0, 1.0]))
        tensor([0.       , 0.7615942], dtype=mlc.float32)
    """
    return unary(T.Tanh, floating(input))


@operation(autocast="fp32_on_cuda")
def asin(input: Operand) -> Tensor:
    """The arc sine of each element, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.asin(mlc.tensor([0.0, 1.0]))
        tensor([0.       , 1.5707964], dtype=mlc.float32)
    """
    return unary(T.Asin, floating(input))


@operation(autocast="fp32_on_cuda")
def acos(input: Operand) -> Tensor:
    """The arc cosine of each element, in radians from 0 to pi; NaN outside [-1, 1].

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.acos(mlc.tensor([1.0, 0.0]))
        tensor([0.       , 1.5707964], dtype=mlc.float32)
    """
    return unary(T.Acos, floating(input))


@operation()
def atan(input: Operand) -> Tensor:
    """The arc tangent of each element, in radians from -pi/2 to pi/2.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.atan(mlc.tensor([0.0, 1.0]))
        tensor([0.       , 0.7853982], dtype=mlc.float32)
    """
    return unary(T.Atan, floating(input))


@operation()
def atan2(input: Operand, other: Operand) -> Tensor:
    """The angle of the point (other, input), elementwise, in radians from -pi to pi.

    The quadrant is that of the point; zeros count by their sign, so that atan2(-0, -1) is -pi.

    Args:
        input: Tensor or number, the ordinate y.
        other: Tensor or number, the abscissa x; its shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.atan2(mlc.tensor([1.0, -1.0]), mlc.tensor([-1.0, 0.0]))
        tensor([ 2.3561945, -1.5707964], dtype=mlc.float32)
    """
    return binary(T.Atan2, input, other, floating=True)


@operation()
def hypot(input: Operand, other: Operand) -> Tensor:
    """sqrt(input ** 2 + other ** 2), elementwise, without overflow on the way.

    It is inf where either operand is infinite, even if the other is NaN, as in IEEE 754.

    Args:
        input: Tensor or number; integers become float32.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of floats, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.hypot(mlc.tensor([3.0, 1e30]), mlc.tensor([4.0, 1e30]))
        tensor([5.0000000e+00, 1.4142135e+30], dtype=mlc.float32)
    """
    return binary(T.Hypot, input, other, floating=True)


@operation()
def deg2rad(input: Operand) -> Tensor:
    """x * pi / 180, each element from degrees to radians.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.deg2rad(mlc.tensor([180.0, 90.0]))
        tensor([3.1415927, 1.5707964], dtype=mlc.float32)
    """
    return floating(input) * (math.pi / 180)


@operation()
def rad2deg(input: Operand) -> Tensor:
    """x * 180 / pi, each element from radians to degrees.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.rad2deg(mlc.tensor([0.0, 1.0]))
        tensor([ 0.     , 57.29578], dtype=mlc.float32)
    """
    return floating(input) * (180 / math.pi)
