"""Offsets of the CPython and numpy object fields that the emitted wrapper reads, checked against public attributes."""

from __future__ import annotations

import ctypes
import sys
import types
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

# CPython 3.11 to 3.14 on 64 bits, with the global lock.
OB_REFCNT, OB_TYPE = 0, 8
LIST_ITEMS = 24
CELL_CONTENTS = 16
FUNCTION_SLOTS = {"__code__": 48, "__defaults__": 56, "__kwdefaults__": 64}
VECTORCALL_OFFSET_FLAG = 1 << 63
"""Bit of `nargsf`: the callee may use the slot before the arguments."""

# struct PyArrayObject_fields of numpy's C API, frozen by its ABI.
ARRAY_DATA, ARRAY_NDIM, ARRAY_DIMS, ARRAY_BASE, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 48, 56, 64
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

# Positions in numpy's table of C functions.
_API_CHECK_TYPE, _API_NEW_COPY, _API_NEW_FROM_DESCR, _API_SET_BASE_OBJECT = 2, 85, 94, 282


@cache
def problem() -> str | None:
    """Why these offsets are not valid in this process; None if they are."""
    if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info[:2] <= (3, 14):
        return f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]} is not CPython 3.11 to 3.14"
    if "t" in sys.abiflags or sys.maxsize != 2**63 - 1 or hasattr(sys, "getobjects"):
        return "this build of Python lays objects out differently (free-threaded, 32 bits, or tracing references)"
    if not numpy_functions():
        return "numpy's table of C functions is not where it is expected"
    cell = types.CellType(sys)
    if _word(id(cell) + CELL_CONTENTS) != id(sys):
        return "cells of closures are laid out differently"
    items = [object(), object()]
    if _word(_word(id(items) + LIST_ITEMS) + 8) != id(items[1]):
        return "lists are laid out differently"
    if any(_word(id(_sample) + at) != id(getattr(_sample, name)) for name, at in FUNCTION_SLOTS.items()):
        return "functions are laid out differently"
    for sample in (np.zeros((2, 3), np.float32), np.zeros((4, 0, 1), np.int8)[::2], np.array(1.5), np.arange(6)[1::2],
                   np.broadcast_to(np.zeros(1, np.complex128), (2, 2)), np.zeros(3, ">i4")):
        if not _reads_right(sample):
            return "numpy's arrays are laid out differently from its published ABI"
    return None


def _sample(x: int = 1, *, y: int = 2) -> int:
    return x + y


def _reads_right(sample: np.ndarray[Any, Any]) -> bool:
    """Whether the fields at the offsets agree with the array's attributes."""
    at = id(sample)
    flags = sample.flags
    expected = (C_CONTIGUOUS * flags.c_contiguous) | (ALIGNED * flags.aligned) | (WRITEABLE * flags.writeable)
    if (_word(at + OB_TYPE) != id(np.ndarray) or _word(at + ARRAY_DESCR) != id(sample.dtype)
            or ctypes.c_int32.from_address(at + ARRAY_NDIM).value != sample.ndim
            or _word(at + ARRAY_DATA) != _public_address(sample)
            or _word(at + ARRAY_BASE) != (0 if sample.base is None else id(sample.base))
            or ctypes.c_int32.from_address(at + ARRAY_FLAGS).value & (C_CONTIGUOUS | ALIGNED | WRITEABLE) != expected):
        return False
    dims = _word(at + ARRAY_DIMS)
    return all(ctypes.c_int64.from_address(dims + 8 * axis).value == n for axis, n in enumerate(sample.shape))


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def data_address(array: np.ndarray[Any, Any]) -> int:
    """The data address of an array; the public attribute takes a microsecond."""
    return _word(id(array) + ARRAY_DATA) if problem() is None else _public_address(array)


def _public_address(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@cache
def numpy_functions() -> dict[str, int]:
    """Addresses of PyArray_NewFromDescr, PyArray_SetBaseObject and PyArray_NewCopy; empty if numpy does not offer them
    as expected."""
    try:
        capsule = import_module("numpy._core._multiarray_umath")._ARRAY_API      # what C extensions import
    except (ImportError, AttributeError):
        return {}
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(capsule, None)
    if not table or _word(table + 8 * _API_CHECK_TYPE) != id(np.ndarray):
        return {}
    return {"new_from_descr": _word(table + 8 * _API_NEW_FROM_DESCR),
            "set_base_object": _word(table + 8 * _API_SET_BASE_OBJECT),
            "new_copy": _word(table + 8 * _API_NEW_COPY)}


class _Member(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("offset", ctypes.c_ssize_t),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]
    offset: int


_MEMBER_DESCRIPTOR_D_MEMBER = 40


def slot_offset(type: type, name: str) -> int | None:
    """The offset of the slot `name` in instances of `type`; None if it cannot be determined."""
    descriptor: Any = getattr(type, name, None)
    if problem() is not None or descriptor.__class__.__name__ != "member_descriptor":
        return None
    offset = _Member.from_address(_word(id(descriptor) + _MEMBER_DESCRIPTOR_D_MEMBER)).offset
    sample: Any = object.__new__(type)
    value = np.zeros(1)
    if not 16 <= offset <= type.__basicsize__ - 8 or _word(id(sample) + offset):
        return None
    descriptor.__set__(sample, value)
    return offset if _word(id(sample) + offset) == id(value) else None
