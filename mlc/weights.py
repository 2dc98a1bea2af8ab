"""Arrays by name as the bytes of a safetensors file, and back: data that holds no code, whatever is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlc.ir.types import (
    ScalarType,
    bf16,
    c64,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    to_numpy,
    ui8,
    ui16,
    ui32,
    ui64,
)

Array = np.ndarray[Any, Any]

DTYPES: dict[str, ScalarType] = {
    "BOOL": i1, "U8": ui8, "I8": i8, "U16": ui16, "I16": i16, "U32": ui32, "I32": i32, "U64": ui64, "I64": i64,
    "F16": f16, "BF16": bf16, "F32": f32, "F64": f64, "C64": c64}
"""Element types by the names that the format has for them."""
_NAMES = frozenset(to_numpy(type).name for type in DTYPES.values())


class Unreadable(ValueError):
    """The bytes are not a safetensors file, or have an unsupported element type."""


def to_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Encode arrays by name as a safetensors file.

    Args:
        arrays: Mapping of names to numpy arrays of any dtype of mlc.

    Returns:
        The bytes of the file.

    Raises:
        Unreadable: An array has a dtype that the format lacks.

    Example:
        >>> from mlc.weights import from_bytes, to_bytes
        >>> from_bytes(to_bytes({"w": np.ones(2, np.float32)}))
        {'w': array([1., 1.], dtype=float32)}
    """
    import safetensors.numpy
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise Unreadable(f"{name} has elements of type {array.dtype}, which safetensors does not have")
    return safetensors.numpy.save({name: np.ascontiguousarray(array).reshape(array.shape)
                                   for name, array in arrays.items()})


def from_bytes(data: bytes) -> dict[str, Array]:
    """Decode a safetensors file.

    Args:
        data: The bytes of the file, which may be hostile.

    Returns:
        Dict of numpy arrays, each in memory of its own.

    Raises:
        Unreadable: The bytes are no such file, or hold a dtype that mlc lacks.

    Example:
        >>> from mlc.weights import from_bytes, to_bytes
        >>> sorted(from_bytes(to_bytes({"w": np.ones(2), "b": np.zeros(1)})))
        ['b', 'w']
    """
    import safetensors
    try:
        found = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise Unreadable(str(error)) from None
    return {name: _array(name, info) for name, info in found}


def _array(name: str, info: Mapping[str, Any]) -> Array:
    if info["dtype"] not in DTYPES:
        raise Unreadable(f"{name} has elements of type {info['dtype']}, which mlc does not have")
    array = np.frombuffer(info["data"], to_numpy(DTYPES[info["dtype"]])).reshape(info["shape"])
    return np.array(array, order="C")
