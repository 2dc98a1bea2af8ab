"""Element types as the standard has them: promotion by dtype alone, limits, kinds and conversions."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import mlc
from mlc.frontend.dtypes import ALL, DType, as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError, UserTypeError

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

NUMBER = (bool, int, float, complex)
DTYPES = {d.name: d for d in ALL if d.name not in ("float16", "bfloat16")}
"""The dtypes of the standard, by their names."""
KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float16", "bfloat16", "float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


class FloatLimits(NamedTuple):
    """Limits of a float dtype, or of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerLimits(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DType | Tensor, /) -> FloatLimits:
    """Limits of a float dtype, or of the parts of a complex one.

    Args:
        type: The dtype, or a tensor of it.

    Returns:
        Named tuple of `bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype`.

    Raises:
        UserTypeError: The dtype is no float (MLC0359).

    Example:
        >>> xp.finfo(xp.float32).bits
        32
    """
    dtype = dtype_of(type).to_real()
    found = mlc.finfo(dtype)
    return FloatLimits(found.bits, found.eps, found.max, found.min, found.smallest_normal, dtype)


def iinfo(type: DType | Tensor, /) -> IntegerLimits:
    """Limits of an integer dtype.

    Args:
        type: The dtype, or a tensor of it.

    Returns:
        Named tuple of `bits`, `max`, `min` and `dtype`.

    Raises:
        UserTypeError: The dtype is no integer (MLC0354).

    Example:
        >>> xp.iinfo(xp.int8).max
        127
    """
    dtype = dtype_of(type)
    found = mlc.iinfo(dtype)
    return IntegerLimits(found.bits, found.max, found.min, dtype)


def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: The dtype.
        kind: Another dtype, the name of a kind ("bool", "signed integer", "unsigned integer", "integral",
            "real floating", "complex floating" or "numeric"), or a tuple of dtypes and kinds, of which one is enough.

    Returns:
        True or False.

    Raises:
        UserError: There is no such kind (MLC0881).

    Example:
        >>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.int8, ("bool", xp.int8))
        (True, True)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return as_dtype(dtype) is as_dtype(kind)
    if kind not in KINDS:
        raise UserError(f"{kind!r} is no kind of dtypes", code="MLC0881", loc=user_loc(),
                        hint=f"use one of {', '.join(map(repr, KINDS))}")
    return as_dtype(dtype).name in KINDS[kind]


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion takes a dtype to another one.

    Args:
        from_: The dtype, or a tensor of it.
        to: The other dtype.

    Returns:
        True if `result_type(from_, to)` is `to`, and False if it is another, or if there is none.

    Example:
        >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.int64, xp.int32)
        (True, False)
    """
    given, wanted = dtype_of(from_), as_dtype(to)
    pair = {given.name, wanted.name}
    if "uint64" in pair and pair & {*KINDS["signed integer"]}:
        return False                                       # they have no common dtype
    return mlc.promote_types(given, wanted) is wanted


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The common dtype of tensors, dtypes and numbers.

    It depends on the dtypes alone: a tensor of no dimensions counts as any other, unlike in mlc's operators. A number
    has the dtype of the others, or, if it is of a higher kind, the default one of its kind.

    Args:
        arrays_and_dtypes: Tensors, dtypes and numbers.

    Returns:
        The dtype.

    Raises:
        UserTypeError: There are only numbers (MLC0880), or no common dtype (MLC0341).

    Example:
        >>> xp.result_type(xp.int8, xp.asarray(1, dtype=xp.int16), 3)
        mlc.int16
    """
    dtypes = [dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, NUMBER)]
    if not dtypes:
        raise UserTypeError("numbers alone have no common dtype", code="MLC0880", loc=user_loc(),
                            hint="make a tensor of one of them, as in xp.asarray(2.0)")
    found = reduce(mlc.promote_types, dtypes)
    for x in arrays_and_dtypes:
        if isinstance(x, NUMBER):
            found = _with_number(found, x)
    return found


def _with_number(dtype: DType, x: bool | int | float | complex) -> DType:
    if isinstance(x, complex):
        return dtype if dtype.is_complex else mlc.complex128 if dtype is mlc.float64 else mlc.complex64
    if isinstance(x, float):
        return dtype if dtype.is_complex or dtype.is_floating_point else mlc.float32
    return mlc.int64 if dtype is mlc.bool and not isinstance(x, bool) else dtype


def dtype_of(x: Any) -> DType:
    """The dtype of a tensor or an array, or x itself, which is a dtype."""
    return x if isinstance(x, DType) else as_dtype(x.dtype) if hasattr(x, "shape") else as_dtype(x)


def in_one_dtype(*xs: Operand) -> list[Any]:
    """Operands cast to their common dtype; numbers are left to the operation, which gives them that dtype, unless they
    are integers of more than 63 bits."""
    dtype = result_type(*xs)
    return [x if isinstance(x, NUMBER) and not (type(x) is int and dtype is mlc.uint64 and x >= 2**63)
            else mlc.asarray(x, dtype=dtype) for x in xs]


def tensors_in_one_dtype(*xs: Operand) -> list[Tensor]:
    """Operands cast to their common dtype, numbers too."""
    dtype = result_type(*xs)
    return [mlc.asarray(x, dtype=dtype) for x in xs]


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x in another dtype.

    Args:
        x: Tensor.
        dtype: The dtype; floats are truncated on the way to integers, and complex numbers become real only by
            `xp.real`.
        copy: Whether the result has memory of its own even if it has the dtype of x.
        device: Device of the result; that of x by default.

    Returns:
        Tensor of the shape of x.

    Raises:
        UserError: x is complex and the dtype is not (MLC0785), or there is no such device (MLC0337).

    Example:
        >>> xp.astype(xp.asarray([1.5, -1.5]), xp.int32)
        tensor([ 1, -1], dtype=mlc.int32)
    """
    return x.to(dtype, copy=copy, device=device)
