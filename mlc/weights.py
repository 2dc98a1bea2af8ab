"""Arrays by name as the bytes of a safetensors file, and back: data that holds no code, whatever is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
    "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64}
"""Element types by the names that the format has for them."""

_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


class Unreadable(ValueError):
    """The bytes are no such file, or hold what has no array here."""


def to_bytes(arrays: Mapping[str, Array]) -> bytes:
    """The file of some arrays."""
    import safetensors.numpy
    for name, array in arrays.items():
        if array.dtype not in _NAMES:
            raise Unreadable(f"{name} has elements of type {array.dtype}, which safetensors does not have")
    return safetensors.numpy.save({name: np.ascontiguousarray(array).reshape(array.shape)
                                   for name, array in arrays.items()})


def from_bytes(data: bytes) -> dict[str, Array]:
    """The arrays of a file, each in memory of its own."""
    import safetensors
    try:
        found = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise Unreadable(str(error)) from None
    return {name: _array(name, info) for name, info in found}


def _array(name: str, info: Mapping[str, Any]) -> Array:
    if info["dtype"] not in DTYPES:
        raise Unreadable(f"{name} has elements of type {info['dtype']}, which mlc does not have")
    held = np.frombuffer(info["data"], np.dtype(DTYPES[info["dtype"]])).reshape(info["shape"])
    return np.array(held, order="C")
