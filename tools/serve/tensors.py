"""Tensors of the Open Inference Protocol: as lists of JSON, or as bytes behind it."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from mlc.tools.serve.errors import ApiError, wrong
from mlc.tools.serve.fields import Fields
from mlc.tools.serve.functions import Array, Described

MOST_ELEMENTS = 1 << 31
_TYPES: dict[str, Any] = {"BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1",
                          "INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
                          "BF16": ml_dtypes.bfloat16}
HEADER = "inference-header-content-length"


class Input:
    """An input of a request, as far as it is read without its data."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.name, self.datatype = fields.text("name"), fields.text("datatype")
        shape = fields.list("shape", 32)
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in shape) or (
                math.prod(shape) > MOST_ELEMENTS):
            raise wrong(fields.path("shape"), f"{fields.path('shape')} is not a list of sizes")
        self.shape = tuple(shape)
        self.size: int | None = None
        if fields.has("parameters"):
            parameters = fields.inner("parameters")
            self.size = parameters.integer("binary_data_size", 0, 1 << 40)
            parameters.check_all_read()
        self.data = fields.any("data")
        if self.size is not None and self.data is not None:
            raise wrong(fields.path("data"), f"{fields.path('data')} is given beside binary_data_size")
        fields.check_all_read()

    def array(self, wanted: Described, binary: bytes | None) -> Array:
        """The array, checked against what the function takes."""
        place = f"input {self.name}"
        if self.datatype != wanted.datatype:
            raise ApiError(400, f"{place} is of {self.datatype[:20]}, and the model takes {wanted.datatype}")
        if len(self.shape) != len(wanted.shape) or any(w not in (-1, n) for n, w in zip(self.shape, wanted.shape)):
            raise ApiError(400, f"{place} has the shape {list(self.shape)}, and the model takes {list(wanted.shape)}")
        dtype, count = np.dtype(_TYPES[self.datatype]), math.prod(self.shape)
        if binary is not None:
            if len(binary) != count * dtype.itemsize:
                raise ApiError(400, f"{place} has {len(binary)} bytes, and its shape says {count * dtype.itemsize}")
            if self.datatype == "BOOL" and any(b > 1 for b in binary):
                raise ApiError(400, f"{place} has bytes that are neither true nor false")
            return np.frombuffer(binary, dtype).reshape(self.shape)
        if self.datatype in ("FP16", "BF16"):
            raise ApiError(400, f"{place} is of {self.datatype}, which is sent as binary data")
        return self._of_list(dtype, count, place)

    def _of_list(self, dtype: np.dtype[Any], count: int, place: str) -> Array:
        flat = _flat(self.data, self.shape, place)
        allowed: Any = bool if dtype.kind == "b" else int if dtype.kind in "iu" else (int, float)
        if any(not isinstance(x, allowed) or (isinstance(x, bool) and allowed is not bool) for x in flat):
            raise ApiError(400, f"{place} has data that is not of {self.datatype}")
        try:
            with np.errstate(over="raise"):
                out = np.array(flat, dtype).reshape(self.shape)
        except (ValueError, OverflowError, FloatingPointError):
            raise ApiError(400, f"{place} has data that is not of {self.datatype}") from None
        if dtype.kind == "f" and not np.isfinite(out).all():        # of numbers that JSON has, and the type has not
            raise ApiError(400, f"{place} has numbers that are too large for {self.datatype}")
        return out


def _flat(data: Any, shape: tuple[int, ...], place: str) -> list[Any]:
    """The elements of nested lists, which may be nested as the shape says or not at all."""
    if not isinstance(data, list):
        raise ApiError(400, f"{place} has no data")
    count, elements = math.prod(shape), data
    if any(isinstance(part, list) for part in data):
        for n in shape[1:]:
            if any(not isinstance(part, list) or len(part) != n for part in elements):
                raise ApiError(400, f"{place} has data that is not nested as its shape {list(shape)} says")
            elements = [x for part in elements for x in part]
    if len(elements) != count:
        raise ApiError(400, f"{place} has {len(elements)} elements, and its shape says {count}")
    return list(elements)


def as_bytes(x: Array) -> bytes:
    """The bytes of an array, in little-endian order."""
    return np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False).tobytes()


def as_list(x: Array) -> list[Any]:
    """The elements of an array for JSON, one after the other."""
    out: list[Any] = (x.astype(np.float32) if x.dtype.name == "bfloat16" else x).reshape(-1).tolist()
    if x.dtype.kind not in "biu" and not all(map(math.isfinite, out)):
        raise ApiError(400, "a result is not finite, which JSON cannot say: ask for binary data")
    return out
