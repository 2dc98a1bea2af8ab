"""Element types in the public interface: `mlc.float32` and the dtypes that are accepted in its place."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.devices import as_device, is_device
from mlc.frontend.location import user_loc
from mlc.ir import types
from mlc.ir.diag import IRError, UserTypeError
from mlc.ir.types import ScalarType, from_numpy, to_numpy


class DType:
    """Element type of tensors, such as `mlc.float32`; one object for each, so that dtypes are compared with `is`.

    numpy takes it for a dtype: `np.zeros(3, mlc.float32)`. Where mlc takes a dtype, names, numpy's and PyTorch's
    dtypes, and Python's bool, int and float do as well.

    Args:
        name: Name of the dtype.
        ir: Element type of the IR.

    Example:
        >>> mlc.ones(2).dtype is mlc.float32, mlc.bfloat16.itemsize
        (True, 2)
    """

    __slots__ = ("ir", "name")

    def __init__(self, name: str, ir: ScalarType) -> None:
        self.name = name
        self.ir = ir

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of numpy, which numpy looks for in this attribute; bfloat16 is that of the package ml_dtypes.

        Example:
            >>> mlc.float32.dtype, np.zeros(2, mlc.int8).dtype
            (dtype('float32'), dtype('int8'))
        """
        return to_numpy(self.ir)

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element.

        Example:
            >>> mlc.float16.itemsize, mlc.complex64.itemsize, mlc.bool.itemsize
            (2, 8, 1)
        """
        return self.ir.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a floating-point type; complex types are none.

        Example:
            >>> mlc.bfloat16.is_floating_point, mlc.complex64.is_floating_point
            (True, False)
        """
        return self.ir.is_float

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type.

        Example:
            >>> mlc.complex64.is_complex, mlc.float32.is_complex
            (True, False)
        """
        return self.ir.is_complex

    def to_real(self) -> DType:
        """The dtype of the parts of a complex dtype; of others the dtype itself.

        Returns:
            A dtype.

        Example:
            >>> mlc.complex64.to_real(), mlc.int8.to_real()
            (mlc.float32, mlc.int8)
        """
        return _OF_IR[self.ir.part] if isinstance(self.ir, types.ComplexType) else self

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this dtype; of a complex dtype itself.

        Returns:
            `mlc.complex64` or `mlc.complex128`.

        Raises:
            UserTypeError: The dtype is neither float32 nor float64 (MLC0787).

        Example:
            >>> mlc.float32.to_complex()
            mlc.complex64
        """
        if self.is_complex:
            return self
        found = {"float32": complex64, "float64": complex128}.get(self.name)
        if found is None:
            raise UserTypeError(f"there is no complex dtype with parts of {self.name}", code="MLC0787", loc=user_loc(),
                                hint="the parts are of float32 or float64")
        return found

    @property
    def is_signed(self) -> bool:
        """Whether it has negative numbers; complex types count as such.

        Example:
            >>> mlc.int8.is_signed, mlc.uint8.is_signed, mlc.bool.is_signed
            (True, False, False)
        """
        return self.ir.is_inexact or (not self.ir.is_bool and not getattr(self.ir, "unsigned", False))

    def __repr__(self) -> str:
        return f"mlc.{self.name}"

    def __reduce__(self) -> str:
        return "bool_" if self.name == "bool" else self.name


bool_ = DType("bool", types.i1)
int8, int16, int32, int64 = (DType(f"int{t.width}", t) for t in (types.i8, types.i16, types.i32, types.i64))
uint8, uint16, uint32, uint64 = (DType(f"uint{t.width}", t) for t in (types.ui8, types.ui16, types.ui32, types.ui64))
float16, bfloat16 = DType("float16", types.f16), DType("bfloat16", types.bf16)
float32, float64 = DType("float32", types.f32), DType("float64", types.f64)
complex64, complex128 = DType("complex64", types.c64), DType("complex128", types.c128)

ALL = (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64,
       complex128)
_OF_IR = {d.ir: d for d in ALL}
_OF_NAME = {d.name: d for d in ALL} | {"half": float16, "float": float32, "double": float64, "int": int32,
                                      "long": int64, "short": int16, "cfloat": complex64, "cdouble": complex128}
LEGACY = {"FloatTensor": float32, "DoubleTensor": float64, "HalfTensor": float16, "BFloat16Tensor": bfloat16,
          "IntTensor": int32, "LongTensor": int64, "ShortTensor": int16, "CharTensor": int8, "ByteTensor": uint8,
          "BoolTensor": bool_}
"""Dtypes of PyTorch's legacy tensor types."""
_OF_NAME |= LEGACY


def type_name(dtype: DType, device: str) -> str:
    """Name of the legacy type of tensors, such as "mlc.FloatTensor"."""
    name = next((n for n, found in LEGACY.items() if found is dtype), f"Tensor of {dtype.name}")
    return f"mlc.{name}" if device == "cpu" else f"mlc.cuda.{name}"
_OF_PYTHON: dict[Any, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
"""As in PyTorch and numpy: the types themselves, while numbers of them become float32 and complex64."""


def of_ir(type: ScalarType) -> DType:
    return _OF_IR[type]


NO_DTYPE = (IRError, TypeError, ValueError, AttributeError, LookupError, SyntaxError, OverflowError)
"""Exceptions raised for an object that numpy does not accept as a dtype, or that has no element type."""


def as_dtype(x: Any) -> DType:
    """Convert to an element type: mlc.float32, "float32", np.float32, torch.float32, float; None is the default."""
    if isinstance(x, DType):
        return x
    if x is None:                                          # of which numpy would make float64
        return float32
    if isinstance(x, ScalarType) and x in _OF_IR:
        return _OF_IR[x]
    if isinstance(x, type) and x in _OF_PYTHON:
        return _OF_PYTHON[x]
    name = x if isinstance(x, str) else str(x)
    if found := _OF_NAME.get(name.removeprefix("torch.").removeprefix("mlc.")):
        return found
    try:
        if hasattr(x, "__array__") and not isinstance(x, type):
            raise TypeError("an array")                    # of which numpy would take the element type
        return _OF_IR[from_numpy(np.dtype(x))]
    except NO_DTYPE:
        known = ", ".join(d.name for d in ALL)
        raise UserTypeError(f"{x!r} is no element type", code="MLC0342", hint=f"use one of {known}") from None


def is_dtype(x: Any) -> bool:
    """Whether an argument that may also be a size or a shape is meant as an element type."""
    return isinstance(x, DType | ScalarType | np.dtype | type | str) or type(x).__qualname__ == "dtype"


def destination(target: Any, dtype: Any, device: Any) -> tuple[DType | None, str | None]:
    """The element type and the device requested by `x.to(target, dtype, device=device)`, where target is a device, an
    element type or a tensor; None for one that is not requested."""
    if is_device(target):
        target, device = None, target
    elif device is None and hasattr(target, "to_device"):
        device = target.device
    name = as_device(device)
    if target is not None and dtype is not None:
        raise UserTypeError(f"{target!r} and {dtype!r} are two element types"[:200], code="MLC0342", loc=user_loc(),
                            hint="pass one of them")
    wanted = dtype if target is None else getattr(target, "dtype", target) if hasattr(target, "shape") else target
    try:
        return None if wanted is None else as_dtype(wanted), name
    except UserTypeError as error:
        error.loc = user_loc()
        if isinstance(target, str):
            error.message = f"{target!r} is neither an element type nor a device"
            error.hint = f'{error.hint}, or of "cpu" and "cuda"'
        raise


def as_ir(x: Any) -> ScalarType:
    return as_dtype(x).ir
