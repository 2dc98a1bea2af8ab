"""Writing GGUF files: fields, and tensors one by one, so that memory holds one at a time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mlc.dialects.tensor.encodings import ENCODINGS, decode
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import write_file
from mlc.ir.diag import UserError
from mlc.ir.types import bf16, f16, f32, to_numpy
from mlc.models.gguf.file import ARRAY, NUMBERS, TEXT, TYPE_NAMES, Stored
from mlc.models.gguf.quantization import fits, quantize

Array = np.ndarray[Any, Any]

PLAIN_TYPES = ("f32", "f16", "bf16")
TYPES = (*PLAIN_TYPES, *ENCODINGS)
"""The types of weights that files can be written with."""
ALIGNMENT = 32
_TYPES = {name.lower(): number for number, name in TYPE_NAMES.items()}
_F32, _BOOL, _F64 = 6, 7, 12
_NEVER_QUANTISED = ("ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "position_embd.weight", "token_types.weight")
_FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q4_k": 14, "q5_k": 16, "q6_k": 18, "bf16": 32}
"""`general.file_type` of llama.cpp (llama.h, llama_ftype), of which K-quants are the S variants."""


@dataclass(frozen=True)
class Described:
    """The content of a GGUF file, by name.

    fields   numbers, texts, and lists of them
    tensors  each is made when it is written
    types    the numbers of the types of fields, or of the elements of lists, that are not to be those llama.cpp expects
    """

    fields: Mapping[str, Any]
    tensors: Mapping[str, Callable[[], Stored]]
    types: Mapping[str, int] = field(default_factory=dict)


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
    """The memory of a tensor in a type; one that has it already stays as it is.

    Raises:
        UserError: Numbers are too large for the type (MLC0994).
    """
    held = found.encoding or {"float32": "f32", "float16": "f16"}.get(found.bytes.dtype.name, "bf16")
    if held == kind:
        return found.bytes
    x = numbers(found)
    if kind in PLAIN_TYPES:
        with np.errstate(over="ignore"):                   # what comes of it is refused
            out = x.astype(to_numpy({"f32": f32, "f16": f16, "bf16": bf16}[kind]))
        if np.isinf(out).any() and (large := np.abs(x[np.isinf(out) & np.isfinite(x)])).size:
            raise UserError(f"numbers of {large.max():g} are too large for {kind}", code="MLC0994", loc=user_loc(),
                            hint="write the tensor as f32")
        return np.asarray(out)
    return quantize(np.ascontiguousarray(x), kind)


def write_gguf(path: Path, content: Described, wanted: str) -> dict[str, str]:
    """Write a file with weights of a type; returns the type of each tensor. A file is there as a whole or not at all.

    Raises:
        UserError: The file cannot be written (MLC0393), a field is of no type of such files (MLC0911), numbers are too
            large for their type (MLC0994), or the package gguf is not installed (MLC0917).
    """
    kinds, described, at = dict[str, str](), list[bytes](), 0
    for name, make in content.tensors.items():
        found = make()
        kinds[name] = kind = type_for(name, found, wanted)
        described.append(_text(name) + _numbers("<I", len(found.shape)) + _numbers("<Q", *reversed(found.shape))
                         + _numbers("<I", _TYPES[kind]) + _numbers("<Q", at))
        at += _padded(size_of(found.shape, kind))
    own = {"general.file_type": _FILE_TYPES[wanted], "general.quantization_version": 2,
           "general.alignment": ALIGNMENT}
    types = {name: kind for name, kind in content.types.items() if name not in own}
    held = [(name, value) for name, value in {**content.fields, **own}.items() if value != [] or name in types]
    head = b"".join([b"GGUF", _numbers("<I", 3), _numbers("<Q", len(kinds), len(held)),
                     *(_text(name) + _field(name, value, types.get(name)) for name, value in held), *described])
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


def _field(name: str, value: Any, kind: int | None) -> bytes:
    """The type and the value of a field; the type of its numbers is found if it is None."""
    values = value if isinstance(value, list) else [value]
    kind = _type_of(name, values, isinstance(value, list)) if kind is None else kind
    data = b"".join(map(_text, values)) if kind == TEXT else np.array(values, NUMBERS[kind]).tobytes()
    if isinstance(value, list):
        return _numbers("<I", ARRAY, kind) + _numbers("<Q", len(value)) + data
    return _numbers("<I", kind) + data


_INTEGERS = ((5, -(1 << 31), 1 << 31), (4, 0, 1 << 32), (11, -(1 << 63), 1 << 63), (10, 0, 1 << 64))
"""Types of integers, each with the least of them and the end of their range."""


def _type_of(name: str, values: list[Any], in_list: bool) -> int:
    """The type that llama.cpp expects for values, if it has room for them.

    Floats are f32, as their writer may have rounded them; single integers are unsigned if they are not negative.
    """
    found = {type(x) for x in values}
    if found == {bool}:
        return _BOOL
    if found == {str}:
        return TEXT
    if float in found and found <= {int, float}:
        large = any(float(np.finfo(np.float32).max) < abs(x) < float("inf") for x in values)
        return _F64 if large else _F32
    for kind, least, end in _INTEGERS if in_list else _INTEGERS[1:]:
        if found == {int} and all(least <= x < end for x in values):
            return kind
    raise UserError(f"the field {name} is {str(values[:4])[:80]}, and a GGUF file has no type for that",
                    code="MLC0911", loc=user_loc())
