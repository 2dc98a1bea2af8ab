"""GGUF files are written by the package gguf: fields, and tensors one by one, so that memory holds one at a time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlc.dialects.tensor.encodings import ENCODINGS, decode
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.ir.types import bf16, to_numpy
from mlc.models.gguf.file import Stored
from mlc.models.gguf.quantization import fits, quantize
from mlc.models.text import missing_package

Array = np.ndarray[Any, Any]

PLAIN_TYPES = ("f32", "f16", "bf16")
TYPES = (*PLAIN_TYPES, *ENCODINGS)
"""The types of weights that files can be written with."""
_FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q4_k": 14, "q5_k": 16, "q6_k": 18, "bf16": 32}
"""`general.file_type` of llama.cpp (llama.h, llama_ftype), of which K-quants are the S variants."""


@dataclass(frozen=True)
class Described:
    """What a GGUF file is to hold: fields by name, and tensors, each of which is made when it is written."""

    fields: Mapping[str, Any]
    tensors: Mapping[str, Callable[[], Stored]]


def numbers(found: Stored) -> Array:
    """The elements of a tensor in f32."""
    if found.encoding is not None:
        return decode(found.bytes, ENCODINGS[found.encoding])
    return found.bytes.astype(np.float32)


def type_for(name: str, found: Stored, wanted: str) -> str:
    """The type of a tensor in a file with weights of a type.

    Vectors and the routers of experts are f32, as llama.cpp has them; a matrix whose rows are no whole blocks is q8_0, or
    f16 where they are no blocks of that either.
    """
    if len(found.shape) < 2 or name.endswith(("ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight")):
        return "f32"
    if wanted in PLAIN_TYPES or fits(found.shape[-1], wanted):
        return wanted
    return "q8_0" if fits(found.shape[-1], "q8_0") else "f16"


def converted(found: Stored, kind: str) -> Array:
    """The memory of a tensor in a type; one that has it already stays as it is."""
    held = found.encoding or {"float32": "f32", "float16": "f16"}.get(found.bytes.dtype.name, "bf16")
    if held == kind:
        return found.bytes
    x = numbers(found)
    if kind in PLAIN_TYPES:
        return x.astype({"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": to_numpy(bf16)}[kind])
    return quantize(np.ascontiguousarray(x), kind)


def write_gguf(path: Path, content: Described, wanted: str) -> dict[str, str]:
    """Write a file with weights of a type; returns the type of each tensor. A file is there as a whole or not at all.

    Raises:
        UserError: The file cannot be written (MLC0393), or the package gguf is not installed (MLC0917).
    """
    try:
        import gguf
    except ImportError:
        raise missing_package("gguf", "writes GGUF files") from None
    out: dict[str, str] = {}
    try:
        handle, temporary = tempfile.mkstemp(suffix=".gguf", dir=path.parent)
        os.close(handle)
        try:
            writer = gguf.GGUFWriter(temporary, content.fields["general.architecture"])
            _write_fields(gguf, writer, {**content.fields, "general.file_type": _FILE_TYPES[wanted],
                                         "general.quantization_version": 2})
            for name, made in content.tensors.items():
                found = made()
                out[name] = kind = type_for(name, found, wanted)
                raw = converted(found, kind)
                encoding = gguf.GGMLQuantizationType[kind.upper()]
                writer.add_tensor(name, raw.view(np.uint8) if kind == "bf16" else np.ascontiguousarray(raw),
                                  raw_dtype=encoding)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", code="MLC0393", loc=user_loc()) from None
    return out


def _write_fields(gguf: Any, writer: Any, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if name == "general.architecture" or isinstance(value, list) and not value:
            continue                                       # the writer has the first one by itself; arrays have elements
        kind = _kind(gguf, value[0] if isinstance(value, list) else value, isinstance(value, list))
        if isinstance(value, list):
            writer.add_key_value(name, value, gguf.GGUFValueType.ARRAY, kind)
        else:
            writer.add_key_value(name, value, kind)


def _kind(gguf: Any, value: Any, in_list: bool) -> Any:
    """The type of a field that llama.cpp expects for a value: numbers that are not negative are unsigned."""
    types = gguf.GGUFValueType
    if isinstance(value, bool):
        return types.BOOL
    if isinstance(value, str):
        return types.STRING
    if isinstance(value, float):
        return types.FLOAT32
    if in_list:
        return types.INT32
    return types.UINT32 if 0 <= value < 1 << 32 else types.INT64
