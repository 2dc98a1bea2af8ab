"""DLPack import of device tensors of other libraries."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from mlc.backends.cuda.dlpack import (
    ALIGNMENT,
    BFLOAT,
    DTYPES,
    NAME,
    READ_ONLY,
    USED,
    USED_VERSIONED,
    VERSION,
    VERSIONED,
    Deleter,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
    capsule_is_named,
    capsule_pointer,
    rename_capsule,
)
from mlc.backends.cuda.memory import DeviceArray, DeviceMemory, Storage
from mlc.ir.diag import BackendError, UserTypeError
from mlc.ir.types import bf16, to_numpy


def import_dlpack(x: Any, memory: DeviceMemory) -> DeviceArray:
    """Import a device tensor of another library: shared, or copied if it is misaligned."""
    name = f"{type(x).__module__}.{type(x).__name__}"
    memory.device.activate()
    if name.startswith("torch."):
        x = x.detach()
    try:
        capsule = _asked(x, memory.device.stream)
        versioned = bool(capsule_is_named(id(capsule), VERSIONED))
        at = capsule_pointer(capsule, VERSIONED if versioned else NAME)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise UserTypeError(f"a {name} cannot be shared: {error}", code="MLC0346") from None
    record = (DLManagedTensorVersioned if versioned else DLManagedTensor).from_address(at)
    if versioned and record.major > VERSION[0]:
        raise UserTypeError(f"a {name} cannot be shared: it uses version {record.major} of DLPack", code="MLC0346")
    tensor = record.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    dtype = _dtype(tensor, name)
    if tensor.strides and not _is_contiguous(shape, [tensor.strides[i] for i in range(tensor.ndim)]):
        raise UserTypeError(f"a {name} that does not lie in row-major order cannot be shared", code="MLC0346",
                            hint="x.contiguous()")
    rename_capsule(capsule, USED_VERSIONED if versioned else USED)
    address = (tensor.data or 0) + tensor.byte_offset
    storage = Borrowed(address, record, memory)
    storage.writable = not (versioned and record.flags & READ_ONLY)
    out = DeviceArray(memory, storage, shape, dtype)
    return out if address % ALIGNMENT == 0 else out.copy()


def _asked(x: Any, stream: int) -> Any:
    """The capsule of a tensor, a versioned one if the producer supports it."""
    try:
        return x.__dlpack__(stream=stream, max_version=VERSION)
    except TypeError:
        return x.__dlpack__(stream=stream)


def _dtype(tensor: DLTensor, name: str) -> np.dtype[Any]:
    wanted = tensor.code, tensor.bits
    if tensor.lanes == 1 and wanted == BFLOAT:
        return to_numpy(bf16)
    for dtype, known in DTYPES.items():
        if tensor.lanes == 1 and known == wanted:
            return dtype
    raise UserTypeError(f"the element type of a {name} is not supported", code="MLC0346")


def _is_contiguous(shape: tuple[int, ...], strides: list[int]) -> bool:
    step = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n != 1 and s != step:
            return 0 in shape
        step *= n
    return True


class Borrowed(Storage):
    """Memory of another library, released as soon as it is unreferenced, since its owner may run out of memory."""

    __slots__ = ("_memory", "_record")

    def __init__(self, address: int, record: Any, memory: DeviceMemory) -> None:
        super().__init__(address)
        self._record, self._memory = record, memory

    def __del__(self) -> None:
        try:
            self._memory.device.settle()
        except BackendError:
            return                                         # the device has failed; the owner will notice too
        if self._record.deleter:
            Deleter(self._record.deleter)(ctypes.addressof(self._record))
