"""GGUF files: fields by name, and tensors that are mapped into memory. All that a file says is checked first.

The layout is that of ggml's docs/gguf.md, versions 2 and 3, in little-endian order: magic, version, the numbers of
tensors and fields, the fields, what is known of the tensors, and from the next multiple of the alignment their bytes.
The package gguf reads the same files, but a view of numpy at a time, and trusts them.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.ir.types import ScalarType, bf16, f16, f32, to_numpy

Array = np.ndarray[Any, Any]

MOST_FIELDS, MOST_TENSORS, MOST_DIMENSIONS, LONGEST_NAME = 1 << 16, 1 << 20, 4, 1 << 16
NUMBERS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "|b1", 10: "<u8", 11: "<i8",
           12: "<f8"}
"""The types of numbers by their numbers in files."""
TEXT, ARRAY = 8, 9
PLAIN: dict[int, ScalarType] = {0: f32, 1: f16, 30: bf16}
"""The types of tensors whose elements are numbers."""
TYPE_NAMES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K",
              11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
              19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32",
              27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}


@dataclass(frozen=True)
class Stored:
    """A tensor of a file.

    bytes     its memory: elements [..] of a plain type, or rows of blocks [.., bytes] of an encoding
    shape     of its elements, the first dimension outermost
    encoding  of blocks; None for a plain type
    """

    bytes: Array
    shape: tuple[int, ...]
    encoding: str | None


@dataclass(frozen=True)
class GGUFFile:
    """The content of a file, by name.

    fields   numbers, texts, and arrays of them
    tensors  the tensors
    types    per field the number of its type, or of that of the elements of an array
    """

    path: Path
    fields: Mapping[str, Any]
    tensors: Mapping[str, Stored]
    types: Mapping[str, int]


def read_gguf_file(path: Path) -> GGUFFile:
    """The fields of a file, and its tensors, mapped and not copied.

    Raises:
        UserError: The file cannot be read, or its bytes contradict each other or the format (MLC0922).
    """
    try:
        if path.exists() and not path.is_file():           # a pipe would block
            raise OSError(0, "it is not a regular file")
        with open(path, "rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:                 # a ValueError: it is empty
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot read {path}: {reason}", code="MLC0922", loc=user_loc()) from None
    return _Reader(path, mapped).read()


class _Reader:
    """The position in a file; whatever is read has to lie within it."""

    def __init__(self, path: Path, mapped: mmap.mmap) -> None:
        self.path, self.mapped, self.at = path, mapped, 0
        self.types: dict[str, int] = {}

    def damaged(self, what: str) -> UserError:
        return UserError(f"{self.path}: {what}", code="MLC0922", loc=user_loc(),
                         hint="the file is damaged, or not a GGUF file of version 2 or 3")

    def read(self) -> GGUFFile:
        if self.mapped[:4] != b"GGUF":
            raise self.damaged("it does not begin with GGUF")
        self.at = 4
        version = self.number("<I")
        if version not in (2, 3):
            raise self.damaged(f"its version is {version}")
        tensors = self.count("tensors", MOST_TENSORS, 24)
        fields: dict[str, Any] = {}
        for _ in range(self.count("fields", MOST_FIELDS, 13)):
            name = self.text(LONGEST_NAME)
            if name in fields:
                raise self.damaged(f"it has the field {name} twice")
            fields[name] = self.value(name)
        described = [self.described() for _ in range(tensors)]
        alignment = fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 8 <= alignment <= 1 << 20 or alignment & (alignment - 1):
            raise self.damaged(f"its alignment is {alignment!r}, no power of two from 8 to 2^20")
        start = -(-self.at // alignment) * alignment
        found: dict[str, Stored] = {}
        for name, shape, kind, offset in described:
            if name in found:
                raise self.damaged(f"it has the tensor {name} twice")
            found[name] = self.stored(name, shape, kind, start + offset)
        return GGUFFile(self.path, fields, found, self.types)

    # -- fields -------------------------------------------------------------------------------------------------------
    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def take(self, size: int) -> bytes:
        if size > len(self.mapped) - self.at:
            raise self.damaged(f"{size} bytes at {self.at} lie beyond its end")
        self.at += size
        return self.mapped[self.at - size: self.at]

    def count(self, what: str, most: int, least_bytes: int) -> int:
        """A number of things, each of which takes some bytes of what is left of the file."""
        count: int = self.number("<Q")
        if count > most or count * least_bytes > len(self.mapped) - self.at:
            raise self.damaged(f"it has no room for {count} {what}")
        return count

    def text(self, most: int) -> str:
        length: int = self.number("<Q")
        if length > most:
            raise self.damaged(f"a text of {length} bytes at {self.at} is too long")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.damaged(f"the text before byte {self.at} is not UTF-8") from None

    def texts(self, count: int) -> list[str]:
        """So many texts, read at once: a vocabulary has 100,000."""
        mapped, at, end = self.mapped, self.at, len(self.mapped)
        length, found = struct.Struct("<Q").unpack_from, list[str]()
        try:
            while len(found) < count and at <= end - 8:
                begin = at + 8
                at = begin + length(mapped, at)[0]
                found.append(mapped[begin:at].decode("utf-8"))
        except UnicodeDecodeError:
            pass
        if len(found) < count or at > end:
            return [self.text(end) for _ in range(count)]  # which says what is wrong with one
        self.at = at
        return found

    def value(self, name: str) -> Any:
        kind: int = self.number("<I")
        if kind == TEXT:
            return self.text(len(self.mapped))
        if kind == ARRAY:
            return self.array(name)
        self.types[name] = kind
        return self.numbers(name, kind, 1)[0]

    def array(self, name: str) -> list[Any]:
        """Arrays of arrays are allowed by the format, and used by nothing: refused, so that nothing is nested."""
        kind: int = self.number("<I")
        self.types[name] = kind
        if kind == TEXT:
            return self.texts(self.count(f"texts in {name}", 1 << 28, 8))
        return self.numbers(name, kind, self.number("<Q"))

    def numbers(self, name: str, kind: int, count: int) -> list[Any]:
        if kind not in NUMBERS:
            raise self.damaged(f"the field {name} has the type {kind}, which no field has")
        dtype = np.dtype(NUMBERS[kind])
        raw = np.frombuffer(self.take(count * dtype.itemsize), np.uint8 if kind == 7 else dtype)
        return [bool(x) for x in raw] if kind == 7 else raw.tolist()

    # -- tensors ------------------------------------------------------------------------------------------------------
    def described(self) -> tuple[str, tuple[int, ...], int, int]:
        """Name, shape, type and offset of a tensor; files have the innermost dimension first."""
        name, rank = self.text(LONGEST_NAME), self.number("<I")
        if not 1 <= rank <= MOST_DIMENSIONS:
            raise self.damaged(f"the tensor {name} has {rank} dimensions")
        shape = tuple(self.number("<Q") for _ in range(rank))[::-1]
        return name, shape, self.number("<I"), self.number("<Q")

    def stored(self, name: str, shape: tuple[int, ...], kind: int, begin: int) -> Stored:
        if (dtype := PLAIN.get(kind)) is not None:
            return Stored(self.bytes(name, to_numpy(dtype), shape, begin), shape, None)
        known = TYPE_NAMES.get(kind, str(kind))
        encoding = next((e for e in ENCODINGS.values() if e.name == known.lower()), None)
        if encoding is None:
            raise UserError(f"{self.path}: the tensor {name} is of type {known}, which mlc does not compute with",
                            code="MLC0911", loc=user_loc(), hint="mlc computes with F32, F16, BF16, " + ", ".join(
                                e.name.upper() for e in ENCODINGS.values()))
        if shape[-1] % encoding.elements:
            raise self.damaged(f"rows of {shape[-1]} elements of {name} are no blocks of {encoding.elements}")
        rows = (*shape[:-1], shape[-1] // encoding.elements * encoding.bytes)
        return Stored(self.bytes(name, np.dtype(np.uint8), rows, begin), shape, encoding.name)

    def bytes(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], begin: int) -> Array:
        count = prod(shape)
        if count == 0 or begin % dtype.itemsize or begin + count * dtype.itemsize > len(self.mapped):
            raise self.damaged(f"the tensor {name} {list(shape)} at byte {begin} does not lie within it")
        return np.frombuffer(self.mapped, dtype, count, begin).reshape(shape)
