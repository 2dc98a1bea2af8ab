"""Complex numbers: their parts, conjugates, angles, and tensors of them."""

from __future__ import annotations

import math

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import unary
from mlc.frontend.functions.elementwise.comparison import isnan
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.functions.elementwise.sign import sign
from mlc.frontend.operands import broadcast_to, conjugate, floating, full, number, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import i1


def is_complex_tensor(x: Tracer) -> bool:
    return x.type.dtype.is_complex


def _need_complex(x: Tracer, name: str) -> Tracer:
    if not is_complex_tensor(x):
        raise UserTypeError(f"{name} is that of complex tensors, and this one is of {x.dtype}", code="MLC0788",
                            hint="convert it first: x.to(mlc.complex64)")
    return x


def _part(x: Tracer, i: int) -> Tracer:
    """Part i of a complex tensor, as a view."""
    rank = x.ndim
    both = emit(T.ViewAsReal, x)
    shape = (*x.shape, 1)
    piece = emit(T.Slice, both, (*[0] * rank, i), (*x.shape, i + 1), (1,) * len(shape))
    return reshape(piece, x.shape)


@operation(view=True)
def view_as_real(input: Operand) -> Tensor:
    """A complex tensor as floats, with real and imaginary parts along a new last dimension of size 2.

    Args:
        input: Complex tensor.

    Returns:
        Tensor of shape (..., 2), which shares the memory of `input`.

    Raises:
        UserTypeError: `input` is real (MLC0788).

    Example:
        >>> mlc.view_as_real(mlc.tensor([1 + 2j]))
        tensor([[1., 2.]], dtype=mlc.float32)
    """
    return emit(T.ViewAsReal, _need_complex(tracer(input), "view_as_real"))  # type: ignore[no-any-return]


@operation(view=True)
def view_as_complex(input: Operand) -> Tensor:
    """Floats as a complex tensor, with real and imaginary parts from the last dimension, of size 2.

    Args:
        input: Tensor of float32 or float64, of shape (..., 2), whose pairs are adjacent in memory.

    Returns:
        Complex tensor without that dimension, which shares the memory of `input`.

    Raises:
        UserError: the last dimension has another size (MLC0364), or the dtype no complex one (MLC0787).

    Example:
        >>> mlc.view_as_complex(mlc.tensor([[1.0, 2.0]]))
        tensor([1.+2.j], dtype=mlc.complex64)
    """
    x = tracer(input)
    x.dtype.to_complex()
    if is_complex_tensor(x) or not x.ndim or x.shape[-1] != 2:
        raise UserError(f"view_as_complex takes floats in pairs, of shape (..., 2), and not {x.type}", code="MLC0364")
    return emit(T.ViewAsComplex, x)  # type: ignore[no-any-return]


@operation(view=True)
def real(input: Operand) -> Tensor:
    """The real part of each element; a real tensor itself.

    Args:
        input: Tensor.

    Returns:
        Tensor of the shape of `input`, which shares its memory.

    Example:
        >>> mlc.real(mlc.tensor([1 + 2j, 3 - 1j]))
        tensor([1., 3.], dtype=mlc.float32)
    """
    x = tracer(input)
    return _part(x, 0) if is_complex_tensor(x) else x


@operation(view=True)
def imag(input: Operand) -> Tensor:
    """The imaginary part of each element.

    Args:
        input: Complex tensor.

    Returns:
        Tensor of the shape of `input`, which shares its memory.

    Raises:
        UserTypeError: `input` is real (MLC0788).

    Example:
        >>> mlc.imag(mlc.tensor([1 + 2j, 3 - 1j]))
        tensor([ 2., -1.], dtype=mlc.float32)
    """
    return _part(_need_complex(tracer(input), "imag"), 1)


@operation(view=True)
def conj(input: Operand) -> Tensor:
    """The complex conjugate of each element; a real tensor itself.

    Args:
        input: Tensor.

    Returns:
        Tensor of the shape and dtype of `input`. That of a real tensor shares its memory; that of a complex one has
        memory of its own, where PyTorch has a view.

    Example:
        >>> mlc.conj(mlc.tensor([1 + 2j, 3 - 1j]))
        tensor([1.-2.j, 3.+1.j], dtype=mlc.complex64)
    """
    return conjugate(tracer(input))


@operation(view=True)
def resolve_conj(input: Operand) -> Tensor:
    """The tensor itself: none is stored as its conjugate.

    Args:
        input: Tensor.

    Returns:
        Tensor of the shape and dtype of `input`, which shares its memory.

    Example:
        >>> mlc.resolve_conj(mlc.tensor([1 + 2j]))
        tensor([1.+2.j], dtype=mlc.complex64)
    """
    return tracer(input)


@operation(view=True)
def resolve_neg(input: Operand) -> Tensor:
    """The tensor itself: none is stored with the opposite sign.

    Args:
        input: Tensor.

    Returns:
        Tensor of the shape and dtype of `input`, which shares its memory.

    Example:
        >>> mlc.resolve_neg(mlc.tensor([1.0, -2.0]))
        tensor([ 1., -2.], dtype=mlc.float32)
    """
    return tracer(input)


@operation()
def complex(real: Operand, imag: Operand) -> Tensor:
    """Complex numbers of real and imaginary parts.

    result = real + i * imag. Only float32 and float64 are the parts of a complex dtype, and the operands are not
    converted. The inverse is `x.real`, `x.imag`.

    Args:
        real: Tensor of float32 or float64.
        imag: Tensor of the same dtype whose shape broadcasts with that of `real`.

    Returns:
        Tensor of complex64 or complex128, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).
        UserTypeError: The operands are of different dtypes (MLC0789), or no complex dtype has such parts (MLC0787).

    Example:
        >>> mlc.complex(mlc.tensor([1.0, 2.0]), mlc.tensor([0.0, -1.0]))
        tensor([1.+0.j, 2.-1.j], dtype=mlc.complex64)
    """
    a, b = tracer(real), tracer(imag)
    if a.dtype is not b.dtype:
        raise UserTypeError(f"the real parts are of {a.dtype.name}, the imaginary ones of {b.dtype.name}",
                            code="MLC0789", hint="convert one of them")
    if is_complex_tensor(a):
        raise UserTypeError(f"there is no complex dtype with parts of {a.dtype.name}", code="MLC0787",
                            hint="pass real parts and imaginary parts, of float32 or float64")
    a.dtype.to_complex()
    return joined(a, b)


def joined(a: Tracer, b: Tracer) -> Tracer:
    """Complex numbers of parts of one dtype, which broadcast."""
    shape = tracer(a + b).shape if a.shape != b.shape else a.shape
    return emit(T.Complex, broadcast_to(a, shape), broadcast_to(b, shape))  # type: ignore[no-any-return]


@operation()
def polar(abs: Operand, angle: Operand) -> Tensor:
    """Complex numbers of absolute values and angles.

    result = abs * (cos(angle) + i * sin(angle)). A negative absolute value turns the number by pi. The inverse is
    `mlc.abs(z)`, `mlc.angle(z)`.

    Args:
        abs: Tensor of float32 or float64.
        angle: Tensor of the same dtype, in radians, whose shape broadcasts with that of `abs`.

    Returns:
        Tensor of complex64 or complex128, of the broadcast shape.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).
        UserTypeError: The operands are of different dtypes (MLC0789), or no complex dtype has such parts (MLC0787).

    Example:
        >>> mlc.polar(mlc.tensor([2.0]), mlc.tensor([0.0]))
        tensor([2.+0.j], dtype=mlc.complex64)
    """
    r, phi = tracer(abs), tracer(angle)
    if r.dtype is not phi.dtype:
        raise UserTypeError(f"the absolute values are of {r.dtype.name}, the angles of {phi.dtype.name}",
                            code="MLC0789", hint="convert one of them")
    r.dtype.to_complex()
    return joined(tracer(r * emit(T.Cos, phi)), tracer(r * emit(T.Sin, phi)))


@operation()
def angle(input: Operand) -> Tensor:
    """The angle of each element in the complex plane: of real ones pi if they are negative, else 0.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> mlc.angle(mlc.tensor([2.0, -2.0]))
        tensor([0.       , 3.1415927], dtype=mlc.float32)
        >>> mlc.angle(mlc.tensor([1j]))
        tensor([1.5707964], dtype=mlc.float32)
    """
    x = floating(input)
    if is_complex_tensor(x):
        return emit(T.Atan2, emit(T.Imag, x), emit(T.Real, x), weak=x.weak)  # type: ignore[no-any-return]
    return where(isnan(x), x, where(x < 0, full(math.pi, x, x.shape), full(0.0, x, x.shape)))


@operation()
def sgn(input: Operand) -> Tensor:
    """x / |x|, for each element; 0 of 0. Of real tensors it is `sign`.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> mlc.sgn(mlc.tensor([3 + 4j, 0j]))
        tensor([0.6+0.8j, 0. +0.j ], dtype=mlc.complex64)
    """
    x = tracer(input)
    if not is_complex_tensor(x):
        return sign(x)
    a, b, size = emit(T.Real, x), emit(T.Imag, x), unary(T.Abs, x)
    size = where(size == 0, full(1.0, tracer(size)), size)
    return joined(tracer(a / size), tracer(b / size))


@operation()
def isreal(input: Operand) -> Tensor:
    """Whether the imaginary part of each element is 0; True for each element of a real tensor.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of bools of the shape of `input`.

    Example:
        >>> mlc.isreal(mlc.tensor([1 + 0j, 1j]))
        tensor([ True, False], dtype=mlc.bool)
    """
    x = tracer(input)
    return emit(T.Imag, x) == 0 if is_complex_tensor(x) else broadcast_to(number(True, i1), x.shape)
