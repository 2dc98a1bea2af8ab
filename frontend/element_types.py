"""Element types under PyTorch's names: limits, promotion, the default, and legacy names of tensor types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from mlc.dialects.tensor.promotion import promote
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.dtypes import LEGACY, DType, as_dtype, complex64, float32, of_ir
from mlc.frontend.location import user_loc
from mlc.frontend.operands import promoted
from mlc.frontend.size import Size
from mlc.frontend.tensor import DTypeLike, Operand, Tensor, as_array, wrap
from mlc.ir.diag import UserTypeError
from mlc.ir.types import from_numpy, to_numpy


class finfo:
    """Limits of a float dtype.

    Args:
        type: The dtype; float32 if left out.

    Attributes:
        bits: Number of bits.
        eps: Difference between 1 and the next number above it.
        max: Largest finite number.
        min: Smallest finite number, which is negative.
        tiny: Smallest positive normal number; `smallest_normal` is another name.
        resolution: Power of 10 that the decimal digits of the dtype resolve.
        dtype: Name of the dtype.

    Raises:
        UserTypeError: The dtype is no float (MLC0359).

    Example:
        >>> mlc.finfo(mlc.float16).max, mlc.finfo(mlc.float32).eps == 2.0**-23
        (65504.0, True)
    """

    def __init__(self, type: DTypeLike = None) -> None:
        wanted = float32 if type is None else as_dtype(type).to_real()
        if not wanted.is_floating_point:
            raise UserTypeError(f"{wanted} is no float", code="MLC0359", loc=user_loc(), hint="use mlc.iinfo")
        limits: Any = ml_dtypes.finfo(to_numpy(wanted.ir))  # type: ignore[no-untyped-call]
        self.bits = int(limits.bits)
        self.eps, self.max, self.min = float(limits.eps), float(limits.max), float(limits.min)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        self.resolution = float(limits.resolution)
        self.dtype = wanted.name

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution}, min={self.min}, max={self.max}, eps={self.eps}, " \
               f"smallest_normal={self.smallest_normal}, tiny={self.tiny}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype.

    Args:
        type: The dtype.

    Attributes:
        bits: Number of bits.
        max: Largest number.
        min: Smallest number.
        dtype: Name of the dtype.

    Raises:
        UserTypeError: The dtype is no integer (MLC0354).

    Example:
        >>> mlc.iinfo(mlc.int8).min, mlc.iinfo(mlc.uint8).max
        (-128, 255)
    """

    def __init__(self, type: DTypeLike) -> None:
        wanted = as_dtype(type)
        if wanted.is_floating_point or wanted.is_complex or wanted.name == "bool":
            raise UserTypeError(f"{wanted} is no integer", code="MLC0354", loc=user_loc(), hint="use mlc.finfo")
        limits = np.iinfo(to_numpy(wanted.ir))
        self.bits, self.max, self.min = int(limits.bits), int(limits.max), int(limits.min)
        self.dtype = wanted.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def limits(dtype: DType) -> tuple[float, float]:
    """The least and the greatest finite number of a dtype; False and True are 0 and 1."""
    if dtype.name == "bool":
        return 0, 1
    found = finfo(dtype) if dtype.is_floating_point else iinfo(dtype)
    return found.min, found.max


coded_methods(finfo, ("__init__",))
coded_methods(iinfo, ("__init__",))


@coded
def get_default_dtype() -> DType:
    """The dtype of tensors that are made of Python floats, or with no dtype given.

    Returns:
        Always `mlc.float32`.

    Example:
        >>> mlc.get_default_dtype()
        mlc.float32
    """
    return float32


@coded
def set_default_dtype(d: DTypeLike) -> None:
    """Accept float32, the default dtype; any other is refused.

    Args:
        d: The dtype.

    Raises:
        UserError: It is another than float32 (MLC0719).

    Example:
        >>> mlc.set_default_dtype(mlc.float32)
    """
    if as_dtype(d) is not float32:
        raise UserTypeError(f"the default dtype is float32, and cannot be {as_dtype(d)}", code="MLC0719",
                            loc=user_loc(), hint="say the dtype where tensors are made, as in mlc.zeros(3, "
                                                 "dtype=mlc.float64), and convert modules, as in model.double()")


@coded
def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The smallest dtype that both dtypes convert to.

    The dtype of an operation on two tensors: bool < integers < floats < complex numbers, and within a kind the one that
    holds both. A float of any width outranks every integer, so int64 with float16 is float16.

    Args:
        type1: A dtype.
        type2: Another.

    Returns:
        The dtype.

    Raises:
        UserTypeError: One is no dtype (MLC0342).

    Example:
        >>> mlc.promote_types(mlc.int32, mlc.float16), mlc.promote_types(mlc.uint8, mlc.int8)
        (mlc.float16, mlc.int16)
    """
    return of_ir(promote(as_dtype(type1).ir, as_dtype(type2).ir))


@coded
def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Whether a dtype is of the same kind as another, or of a lower one: bool, integers, floats, complex numbers.

    Args:
        from_: Dtype before the conversion.
        to: Dtype after it.

    Returns:
        A bool.

    Raises:
        UserTypeError: One is no dtype (MLC0342).

    Example:
        >>> mlc.can_cast(mlc.float64, mlc.float32), mlc.can_cast(mlc.float32, mlc.int64)
        (True, False)
    """
    def kind(x: DType) -> int:
        return 3 if x.is_complex else 2 if x.is_floating_point else 0 if x.name == "bool" else 1
    return kind(as_dtype(from_)) <= kind(as_dtype(to))


@coded
def result_type(tensor1: Operand, tensor2: Operand) -> DType:
    """The dtype of the sum of two operands.

    Tensors of no dimensions, and after them numbers, count only if they are of a higher kind (bool, integer, float).

    Args:
        tensor1: Tensor or number.
        tensor2: Another.

    Returns:
        The dtype.

    Example:
        >>> mlc.result_type(mlc.ones(2, dtype=mlc.int8), 1.5)
        mlc.float32
    """
    found: tuple[list[Any], ...] = ([], [], [])
    for x in (tensor1, tensor2):
        numbers = isinstance(x, bool | int | float | complex)
        wide = isinstance(x, float | complex)
        ty = from_numpy(np.asarray(x).dtype if wide else as_array(x).dtype)
        found[2 if numbers else 0 if np.ndim(x) else 1].append(ty)
    dtype, weak = promoted(*found)
    return (float32 if dtype.is_float else complex64) if weak and dtype.is_inexact else of_ir(dtype)


class TensorType:
    """A legacy tensor type such as `mlc.LongTensor`: it makes tensors of its dtype, and `isinstance` knows them.

    `LongTensor(2, 3)` has that shape, and zeros where PyTorch leaves the elements undefined; `LongTensor([1, 2])` has
    these elements.
    """

    def __init__(self, name: str, dtype: DType) -> None:
        self.__name__ = name
        self.dtype = dtype

    def __call__(self, *data: Any) -> Tensor:
        if len(data) == 1 and isinstance(data[0], list | tuple) and not isinstance(data[0], Size):
            return wrap(np.array(as_array(data[0], self.dtype), order="C"))
        return Tensor(*data).to(self.dtype)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype is self.dtype and x.device == "cpu"

    def __repr__(self) -> str:
        return f"mlc.{self.__name__}"

    def __reduce__(self) -> str:
        return self.__name__


coded_methods(TensorType, ("__call__",))
FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, IntTensor, LongTensor, ShortTensor, CharTensor, ByteTensor, \
    BoolTensor = (TensorType(name, dtype) for name, dtype in LEGACY.items())
