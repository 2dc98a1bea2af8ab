"""Arithmetic: sums, products, quotients and remainders."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions.elementwise.apply import binary, numeric, scaled, unary, wide
from mlc.frontend.functions.elementwise.bits import logical_and, logical_or
from mlc.frontend.functions.elementwise.rounding import trunc
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.operands import cast, common_dtype, floating, number, plain, rounded_once, signed, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.types import bf16, f16, i64


@operation(name="cast")
def cast_to(input: Operand, dtype: DTypeLike) -> Tensor:
    """The elements of a tensor in another dtype.

    Floats are truncated on the way to integers, integers wrap around in narrower ones, and what is not 0 is True.
    Complex numbers lose their imaginary parts on the way to real ones.
    Floats beyond an integer dtype give its nearest limit, and NaN gives 0; in PyTorch both are undefined. The
    derivative goes through casts between float dtypes only. PyTorch spells this `x.to(dtype)`, which works here too.

    Args:
        input: Tensor or number.
        dtype: The dtype, as `mlc.float32`, "float32", or a numpy dtype.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `dtype` is no dtype (MLC0342).

    Example:
        >>> mlc.cast(mlc.tensor([-1.5, 0.0, 2.7]), mlc.int64)
        tensor([-1,  0,  2], dtype=mlc.int64)
    """
    x, to = tracer(input), as_ir(dtype)
    if x.type.dtype.is_complex and not (to.is_complex or to.is_bool):
        x = emit(T.Real, x)
    return cast(x, to)


@operation()
def bitcast(input: Operand, dtype: DTypeLike) -> Tensor:
    """The bits of the elements as elements of another dtype of the same width.

    It has no derivative.

    Args:
        input: Tensor of integers or floats.
        dtype: The dtype, of integers or floats.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `dtype` is no dtype (MLC0342).
        UserTypeError: The widths differ, or one of both is a dtype of bools or complex numbers (MLC0113).

    Example:
        >>> mlc.bitcast(mlc.tensor([1.0, -0.0]), mlc.int32)
        tensor([ 1065353216, -2147483648], dtype=mlc.int32)
    """
    return emit(T.Bitcast, tracer(input), as_ir(dtype))  # type: ignore[no-any-return]


@operation()
def positive(input: Operand) -> Tensor:
    """+x: the tensor itself.

    Nothing is computed or copied: the result shares the memory of `input`. It is there for the operator `+x`.

    Args:
        input: Tensor or number, not of bool.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` is of bool (MLC0359).

    Example:
        >>> mlc.positive(mlc.tensor([1.0, -2.0]))
        tensor([ 1., -2.], dtype=mlc.float32)
    """
    return numeric(input, "positive")


@operation()
def neg(input: Operand) -> Tensor:
    """-x, for each element; integers wrap around.

    Of unsigned integers the result is 2^bits - x, and of the least signed integer it is that integer. Of floats it
    inverts the sign, of 0 and NaN too. The derivative is -1.

    Args:
        input: Tensor or number, not of bool.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` is of bool (MLC0359).

    Example:
        >>> mlc.neg(mlc.tensor([1.0, -2.0]))
        tensor([-1.,  2.], dtype=mlc.float32)
    """
    return unary(T.Neg, numeric(input, "neg"))


@operation()
def square(input: Operand) -> Tensor:
    """x * x, for each element; integers wrap around.

    Of bools the result is int64. The derivative is 2 * x. For complex numbers it is x * x and not |x|^2.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape and dtype of `input`; int64 if that is bool.

    Example:
        >>> mlc.square(mlc.tensor([1.0, -3.0]))
        tensor([1., 9.], dtype=mlc.float32)
    """
    x = tracer(input)
    x = cast(x, i64) if x.type.dtype.is_bool else x
    return mul(x, x)


@operation(autocast="fp32_on_cuda")
def reciprocal(input: Operand) -> Tensor:
    """1 / x, for each element; an infinity of the zero's sign at 0.

    Integers become float32, so that 1 / 2 is 0.5. 1 / inf is 0 with the sign of the infinity. The derivative is -1 /
    x^2.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.reciprocal(mlc.tensor([2.0, -0.5, 0.0]))
        tensor([ 0.5, -2. ,  inf], dtype=mlc.float32)
    """
    return unary(T.Reciprocal, floating(input))


@operation(view=True)
def detach(input: Operand) -> Tensor:
    """The tensor itself, as a constant to all derivatives.

    The result shares the memory of `input` and does not require a gradient: what is computed from it is not recorded
    for `Tensor.backward`. A write to one is seen in the other; `x.detach().clone()` is independent.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape, dtype and elements of `input`.

    Example:
        >>> mlc.grad(lambda x: x * mlc.detach(x))(mlc.tensor(3.0))
        tensor(3., dtype=mlc.float32)
    """
    return unary(T.StopGradient, tracer(input))


def _weighted(input: Operand, other: Operand, alpha: Operand) -> list[Tracer]:
    """input and alpha * other; the product is computed in the promoted type, as it may overflow the type of other."""
    a, b = together(input, other)
    if isinstance(alpha, int):
        return [a, b if alpha == 1 else cast(tracer(mul(b, alpha)), a.type.dtype)]
    return together(a, mul(b, alpha))


def _rounds(input: Operand, other: Operand, alpha: Operand) -> bool:
    """Whether alpha * other would be rounded to 16 bits before the sum is."""
    if isinstance(alpha, int) and alpha == 1:
        return False
    return common_dtype(plain(input, other))[0] in (f16, bf16)


@operation(integers=("alpha",))
def add(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """input + alpha * other, elementwise; for bools the logical or.

    Integers wrap around. With a float `alpha` integers are added as floats.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.
        alpha: Number or tensor that `other` is multiplied by.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.add(mlc.tensor([1.0, 2.0]), mlc.tensor([10.0, 20.0]), alpha=2)
        tensor([21., 42.], dtype=mlc.float32)
    """
    if _rounds(input, other, alpha):
        return wide(lambda a, b: add(a, b, alpha=alpha), input, other)
    a, b = _weighted(input, other, alpha)
    return logical_or(a, b) if a.type.dtype.is_bool else binary(T.Add, a, b)


@operation(integers=("alpha",))
def sub(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """input - alpha * other, elementwise.

    Integers wrap around.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.
        alpha: Number or tensor that `other` is multiplied by.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: both are of bool (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.sub(mlc.tensor([5.0, 2.0]), 1)
        tensor([4., 1.], dtype=mlc.float32)
    """
    if _rounds(input, other, alpha):
        return wide(lambda a, b: sub(a, b, alpha=alpha), input, other)
    a, b = _weighted(input, other, alpha)
    numeric(a, "sub")
    return binary(T.Sub, a, b)


@operation()
def rsub(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """other - alpha * input, elementwise: `sub` with the operands exchanged.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.
        alpha: Factor of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: an operand is of bool (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.rsub(mlc.tensor([1.0, 2.0]), 10)
        tensor([9., 8.], dtype=mlc.float32)
    """
    return sub(other, input, alpha=alpha)


@operation()
def mul(input: Operand, other: Operand) -> Tensor:
    """input * other, elementwise; for bools the logical and.

    Integers wrap around.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.mul(mlc.tensor([1.0, 2.0]), mlc.tensor([[3.0], [4.0]]))
        tensor([[3., 6.],
                [4., 8.]], dtype=mlc.float32)
    """
    a, b = plain(input, other)
    return logical_and(a, b) if common_dtype([a, b])[0].is_bool else scaled(T.Mul, a, b)


@operation()
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, elementwise, rounded if so asked.

    Division by 0 gives an infinity or NaN; with rounding, integers divided by 0 give 0, where PyTorch raises an error.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.
        rounding_mode: None for the quotient itself, "floor" to round toward minus infinity, "trunc" to round toward
            zero.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; without rounding, integers become float32. With it,
        integers divided by 0 give 0, where PyTorch raises an error.

    Raises:
        UserError: `rounding_mode` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.div(mlc.tensor([7, -7]), 2)
        tensor([ 3.5, -3.5], dtype=mlc.float32)
        >>> mlc.div(mlc.tensor([7, -7]), 2, rounding_mode="trunc")
        tensor([ 3, -3], dtype=mlc.int64)
    """
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode is None:
        return scaled(T.Div, input, other, floating=True)
    if rounding_mode != "trunc":
        raise UserError(f"rounding_mode = {rounding_mode!r}", code="MLC0360", hint='use None, "floor" or "trunc"')
    a, b = plain(input, other)
    if common_dtype([a, b])[0].is_float:
        return wide(lambda a, b: trunc(binary(T.Div, a, b)), a, b)
    a, b = together(a, b)
    quotient = floor_divide(a, b)
    inexact = logical_and(quotient < 0, quotient * b != a) if signed(a) else None
    return quotient if inexact is None else quotient + cast(tracer(inexact), a.type.dtype)


@operation()
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """floor(input / other), elementwise.

    Integers divided by 0 give 0, where PyTorch raises an error; floats give an infinity or NaN.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: both are of bool (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.floor_divide(mlc.tensor([7, -7]), 2)
        tensor([ 3, -4], dtype=mlc.int64)
    """
    return wide(lambda a, b: binary(T.FloorDiv, numeric(a, "floor_divide"), b), input, other)


@operation()
def remainder(input: Operand, other: Operand) -> Tensor:
    """input - other * floor(input / other), elementwise: the remainder with the sign of `other`, as Python's %.

    For a divisor of 0 integers give 0, where PyTorch raises an error, and floats NaN.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: both are of bool (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.remainder(mlc.tensor([7, -7]), 3)
        tensor([1, 2], dtype=mlc.int64)
    """
    a, b = together(input, other)
    numeric(a, "remainder")
    return binary(T.Rem, a, b)


@operation()
def fmod(input: Operand, other: Operand) -> Tensor:
    """input - other * trunc(input / other), elementwise: the remainder with the sign of `input`, as C's fmod.

    For a divisor of 0 integers give 0, where PyTorch raises an error, and floats NaN.

    Args:
        input: Tensor or number.
        other: Tensor or number whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: both are of bool (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.fmod(mlc.tensor([7, -7]), 3)
        tensor([ 1, -1], dtype=mlc.int64)
    """
    a, b = together(input, other)
    numeric(a, "fmod")
    return binary(T.Fmod, a, b)


@operation()
def lerp(input: Operand, end: Operand, weight: Operand) -> Tensor:
    """input + weight * (end - input), elementwise: linear interpolation, exact for weights 0 and 1.

    Args:
        input: Tensor or number, the value at weight 0.
        end: Tensor or number, the value at weight 1.
        weight: Tensor or number; outside [0, 1] it extrapolates.

    Returns:
        Tensor of floats, of the shape that all three broadcast to.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.lerp(mlc.tensor([0.0, 10.0]), 20.0, 0.25)
        tensor([ 5. , 12.5], dtype=mlc.float32)
    """
    def of(a: Tensor, b: Tensor, t: Tensor) -> Tensor:
        return where(abs(t) < 0.5, a + t * (b - a), b - (1 - t) * (b - a))     # exact at both ends

    t = tracer(weight)
    if t.weak and not t.type.dtype.is_complex:             # a number, which is not rounded to 16 bits
        return rounded_once(lambda a, b: of(a, b, t), *together(input, end, floating=True))
    return rounded_once(of, *together(input, end, t, floating=True))


@operation()
def addcmul(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """input + value * tensor1 * tensor2, elementwise, rounded once in float16 and bfloat16.

    With a float `value`, the result of integers is truncated to their dtype; PyTorch refuses it.

    Args:
        input: Tensor or number.
        tensor1: Tensor or number.
        tensor2: Tensor or number.
        value: Number or tensor, the factor of the product.

    Returns:
        Tensor of the shape that all broadcast to, in the promoted dtype.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.addcmul(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]), mlc.tensor([5.0, 6.0]), value=0.5)
        tensor([ 8.5, 14. ], dtype=mlc.float32)
    """
    return rounded_once(lambda x, a, b: add(x, mul(mul(a, b), value)), *together(input, tensor1, tensor2))


@operation()
def addcdiv(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """input + value * tensor1 / tensor2, elementwise, rounded once in float16 and bfloat16.

    Args:
        input: Tensor or number.
        tensor1: Tensor or number.
        tensor2: Tensor or number.
        value: Number or tensor, the factor of the quotient.

    Returns:
        Tensor of floats, of the shape that all broadcast to.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.addcdiv(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]), mlc.tensor([2.0, 8.0]), value=2)
        tensor([4., 3.], dtype=mlc.float32)
    """
    return rounded_once(lambda x, a, b: add(x, mul(div(a, b), value)),
                        *together(input, tensor1, tensor2, floating=True))


def count(n: Any, like: Tracer) -> Tracer:
    """A number of elements, in the element type of `like`."""
    if isinstance(n, int):
        return number(n, like.type.dtype)
    return cast(emit(T.Size, n, i64), like.type.dtype)
