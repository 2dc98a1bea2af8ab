"""DLPack export of device arrays: capsules, read and written by their C layout.

    github.com/dmlc/dlpack: DLManagedTensor, in a capsule named "dltensor", renamed "used_dltensor" once consumed, and
    DLManagedTensorVersioned, "dltensor_versioned", which also has a read-only flag
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.ir.diag import UserTypeError

if TYPE_CHECKING:
    from mlc.backends.cuda.memory import DeviceArray

CUDA = 2
DTYPES = {np.dtype(name): (code, bits) for name, code, bits in (
    ("int8", 0, 8), ("int16", 0, 16), ("int32", 0, 32), ("int64", 0, 64), ("uint8", 1, 8), ("uint16", 1, 16),
    ("uint32", 1, 32), ("uint64", 1, 64), ("float16", 2, 16), ("float32", 2, 32), ("float64", 2, 64), ("bool", 6, 8))}
"""(kind, bits) of element types; bfloat16, which has kind 4, requires ml_dtypes."""
BFLOAT = (4, 16)
ALIGNMENT = 16
"""Alignment that kernels may assume; misaligned arrays are copied."""
LEGACY, NO_ORDER = 1, -1
"""Special stream numbers: the default (None), and that of a consumer that needs no synchronisation."""


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
rename_capsule = ctypes.pythonapi.PyCapsule_SetName
rename_capsule.restype, rename_capsule.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
capsule_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
NAME, USED = b"dltensor", b"used_dltensor"          # kept alive: capsules refer to them
VERSIONED, USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"
VERSION, READ_ONLY = (1, 0), 1

_exported: dict[int, tuple[DeviceArray, DLManagedTensor, Any]] = {}
"""Exported arrays by the address of their record: the array, and the memory that the record points to."""


def _key(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype in DTYPES:
        return DTYPES[dtype]
    if dtype.name == "bfloat16":
        return BFLOAT
    raise UserTypeError(f"an array of {dtype} cannot be shared", code="MLC0346")


# -- to others --------------------------------------------------------------------------------------------------------
def export(array: DeviceArray, stream: int | None = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """A capsule for a consumer on `stream`, whose later work waits for the array's elements."""
    if dl_device is not None and tuple(dl_device) != array.__dlpack_device__():
        raise BufferError(f"the array is on {array.device}; bring it elsewhere first")
    code, bits = _key(array.dtype)
    if copy:
        array = array.copy()
    array.memory.device.activate()
    if array.memory.failures.pending:                      # whoever reads the elements does not know of them
        array.memory.device.synchronize()
        array.memory.failures.check()
    if stream != NO_ORDER:
        array.memory.device.publish(LEGACY if stream is None else int(stream))
    if array.storage.block is not None:
        array.storage.block.shared = True
    shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    record = DLManagedTensor()
    record.tensor = DLTensor(array.address or None, CUDA, array.memory.device.ordinal, array.ndim, code, bits, 1,
                            ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), None, 0)
    record.deleter = ctypes.cast(_forget, ctypes.c_void_p)
    at = ctypes.addressof(record)
    _exported[at] = array, record, shape
    return _new(at, NAME, ctypes.cast(_destroy, ctypes.c_void_p))


@Deleter  # type: ignore[untyped-decorator]
def _forget(at: int) -> None:
    """Deleter, called by the consumer when it releases the tensor."""
    _exported.pop(at, None)


@_Destructor  # type: ignore[untyped-decorator]
def _destroy(capsule: int) -> None:
    """Destructor of a capsule: drops the exported array if no consumer has taken it."""
    if capsule_is_named(capsule, NAME):
        _exported.pop(_pointer_of(capsule, NAME), None)
