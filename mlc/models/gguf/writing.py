"""Writing GGUF files: fields, and tensors one by one, so that memory holds one at a time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mlc.dialects.tensor.encodings import ENCODINGS, decode
from mlc.frontend.output_files import write_file
from mlc.ir.types import bf16, f16, f32, to_numpy
from mlc.models.gguf.file import TYPE_NAMES, Stored
from mlc.models.gguf.quantization import fits, quantize

Array = np.ndarray[Any, Any]

PLAIN_TYPES = ("f32", "f16", "bf16")
TYPES = (*PLAIN_TYPES, *ENCODINGS)
"""The types of weights that files can be written with."""
ALIGNMENT = 32
_TYPES = {name.lower(): number for number, name in TYPE_NAMES.items()}
_TEXT, _ARRAY = 8, 9
_NEVER_QUANTISED = ("ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "position_embd.weight", "token_types.weight")
_FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q4_k": 14, "q5_k": 16, "q6_k": 18, "bf16": 32}
"""`general.file_type` of llama.cpp (llama.h, llama_ftype), of which K-quants are the S variants."""


@dataclass(frozen=True)
class Described:
    """The content of a GGUF file: fields by name, and tensors, each of which is made when it is written."""

    fields: Mapping[str, Any]
    tensors: Mapping[str, Callable[[], Stored]]


def numbers(found: Stored) -> Array:
    """The elements of a tensor in f32."""
    if found.encoding is not None:
        return decode(found.bytes, ENCODINGS[found.encoding])
    return found.bytes.astype(np.float32)


def type_for(name: str, found: Stored, wanted: str) -> str:
    """The type of a tensor in a file with weights of a type.

    Vectors, the routers of experts and tables of positions and kinds are f32, as llama.cpp has them; a matrix whose
    rows are no whole blocks is q8_0, or f16 where they are no blocks of that either.
    """
    if len(found.shape) < 2 or name.endswith(_NEVER_QUANTISED):
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
        return np.asarray(x.astype(to_numpy({"f32": f32, "f16": f16, "bf16": bf16}[kind])))
    return quantize(np.ascontiguousarray(x), kind)


def write_gguf(path: Path, content: Described, wanted: str) -> dict[str, str]:
    """Write a file with weights of a type; returns the type of each tensor. A file is there as a whole or not at all.

    Raises:
        UserError: The file cannot be written (MLC0393), or the package gguf is not installed (MLC0917).
    """
    kinds, described, at = dict[str, str](), list[bytes](), 0
    for name, make in content.tensors.items():
        found = make()
        kinds[name] = kind = type_for(name, found, wanted)
        described.append(_text(name) + _numbers("<I", len(found.shape)) + _numbers("<Q", *reversed(found.shape))
                         + _numbers("<I", _TYPES[kind]) + _numbers("<Q", at))
        at += _padded(size_of(found.shape, kind))
    fields = {**content.fields, "general.file_type": _FILE_TYPES[wanted], "general.quantization_version": 2,
              "general.alignment": ALIGNMENT}
    held = [(name, value) for name, value in fields.items() if value != []]
    head = b"".join([b"GGUF", _numbers("<I", 3), _numbers("<Q", len(kinds), len(held)),
                     *(_text(name) + _field(value) for name, value in held), *described])
    write_file(path, _parts(head, content, kinds))
    return kinds


def _parts(head: bytes, content: Described, kinds: Mapping[str, str]) -> Iterator[bytes | memoryview]:
    """The bytes of a file, one tensor in memory at a time."""
    yield head + bytes(_padded(len(head)) - len(head))
    for name, make in content.tensors.items():
        raw = np.ascontiguousarray(converted(make(), kinds[name])).reshape(-1).view(np.uint8)
        yield raw.data
        yield bytes(_padded(raw.size) - raw.size)


def size_of(shape: tuple[int, ...], kind: str) -> int:
    """Bytes of a tensor of a type."""
    if kind in PLAIN_TYPES:
        return prod(shape) * (4 if kind == "f32" else 2)
    return prod(shape) // ENCODINGS[kind].elements * ENCODINGS[kind].bytes


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _numbers(form: str, *values: int) -> bytes:
    return b"".join(struct.pack(form, value) for value in values)


def _text(value: str) -> bytes:
    data = value.encode()
    return _numbers("<Q", len(data)) + data


def _field(value: Any) -> bytes:
    """The type and the value of a field."""
    if not isinstance(value, list):
        kind, form = _type_of(value, False)
        return _numbers("<I", kind) + (_text(value) if form is None else struct.pack(form, value))
    kind, form = _type_of(value[0], True)
    data = b"".join(_text(x) if form is None else struct.pack(form, x) for x in value)
    return _numbers("<I", _ARRAY, kind) + _numbers("<Q", len(value)) + data


def _type_of(value: Any, in_list: bool) -> tuple[int, str | None]:
    """The type that llama.cpp expects for a value, and its form: single numbers that are not negative are unsigned."""
    if isinstance(value, bool):
        return 7, "<?"
    if isinstance(value, str):
        return _TEXT, None
    if isinstance(value, float):
        return 6, "<f"
    if in_list and -(1 << 31) <= value < 1 << 31:
        return 5, "<i"
    return (4, "<I") if 0 <= value < 1 << 32 else (11, "<q")
