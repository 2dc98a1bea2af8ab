"""Literals of the textual IR: strings, symbols, numbers, and attributes of the declared Python type."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from mlc.ir.affine import AffineMap
from mlc.ir.affine_syntax import parse_size
from mlc.ir.attributes import BY_CLASS, DialectAttribute
from mlc.ir.core import Op, Symbol
from mlc.ir.diag import IRError
from mlc.ir.sizes import Size
from mlc.ir.types import ComplexType, FloatType, FunctionType, ScalarType, Type, to_numpy

_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|[\\\"nt])")


def unquote(text: str) -> str:
    body = text[1:-1].encode()
    plain = {b"\\": b"\\", b'"': b'"', b"n": b"\n", b"t": b"\t"}
    return _ESCAPE.sub(lambda m: plain.get(m[1]) or bytes.fromhex(m[1].decode()), body).decode("utf-8", "replace")


def symbol(text: str) -> Symbol:
    return Symbol(unquote(text[1:]) if text.startswith('@"') else text[1:].replace("::@", "::"))


def float_from_bits(bits: int, type: FloatType) -> float:
    raw = bits.to_bytes(type.width // 8, "little")
    return struct.unpack("<f", raw)[0] if type.width == 32 else float(np.frombuffer(raw, to_numpy(type))[0])


def decode_numbers(body: Any, dtype: ScalarType) -> Any:
    """Nested lists of number texts as nested lists of numbers."""
    if isinstance(body, list):
        return [decode_numbers(x, dtype) for x in body]
    if isinstance(dtype, ComplexType):
        real, imaginary = (decode_numbers(x, dtype.part) for x in (body if isinstance(body, tuple) else (body, "0.0")))
        return complex(real, imaginary)
    if isinstance(body, tuple):
        raise ValueError("a pair is a complex number")
    if body in ("true", "false"):
        return body == "true"
    if isinstance(dtype, FloatType):
        return float_from_bits(int(body, 16), dtype) if body.startswith("0x") else float(body)
    return int(body, 0)


def decode_attr(cls: type[Op], name: str, value: Any) -> Any:
    """Convert an attribute to the Python type that the class declares; IRError if that fails.

    Sizes may be written as text, enumerations as numbers, and floats as integers.
    """
    if name in cls.enums and isinstance(value, int):
        if not 0 <= value < len(cls.enums[name]):
            raise IRError(f"{cls.name}: {name} = {value} is out of range", code="MLC0101")
        return cls.enums[name][value]
    declared = next((f.shape for f in cls.attr_fields if f.name == name), "")
    if name == "sym_name" and isinstance(value, str):
        value = Symbol(value)                   # upstream writes a definition's name as a string
    return decoded(f"{cls.name}: the attribute {name}", value, declared)


def decoded(what: str, value: Any, declared: str) -> Any:
    """Convert a value to the type of an annotation; IRError if that fails."""
    if "Dim" in declared:
        value = _sizes_in(value)
    if declared.startswith("float") and "ndarray" not in declared and type(value) is int:
        value = float(value)                    # a constant, whose value may be an array too, knows its own type
    if not fits(value, declared):
        raise IRError(f"{what} is not of type {declared}", code="MLC0101")
    return value


def dialect_attribute(cls: type[DialectAttribute], values: Mapping[str, Any]) -> DialectAttribute:
    """The attribute of a class with these fields; IRError if one is missing, unknown or of the wrong type."""
    declared = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    if unknown := [name for name in values if name not in declared]:
        raise IRError(f"#{cls.mnemonic} has no field {unknown[0]}; it has {', '.join(declared)}", code="MLC0101")
    if missing := [f.name for f in declared.values() if f.default is dataclasses.MISSING and f.name not in values]:
        raise IRError(f"#{cls.mnemonic} needs the field {missing[0]}", code="MLC0101")
    return cls(**{name: decoded(f"#{cls.mnemonic}: the field {name}", value, str(declared[name].type))
                  for name, value in values.items()})


def _sizes_in(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_sizes_in(v) for v in value)
    return parse_size(value) if isinstance(value, str) else value


_CLASSES: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "bool": (bool,), "str": (str,), "Symbol": (Symbol,), "Dim": (int, Size),
    "complex": (complex,), "None": (type(None),), "Type": (Type,), "ScalarType": (ScalarType,),
    "FunctionType": (FunctionType,),
    "AffineMap": (AffineMap,), "Array": (np.ndarray,), "np.ndarray[Any, Any]": (np.ndarray,),
}


def fits(value: Any, annotation: str) -> bool:
    """Whether `value` has the type of an annotation; a type that cannot be checked is assumed to fit.

    >>> fits((1, 2), "tuple[int, ...]"), fits(True, "int"), fits(None, "str | None")
    (True, False, True)
    """
    for kind in _alternatives(annotation):
        if kind.startswith("tuple["):
            parts = _alternatives(kind[6:-1], ",")
            if isinstance(value, tuple):
                kinds = (parts[0],) * len(value) if parts[-1] == "..." else parts
                if len(kinds) == len(value) and all(fits(v, k) for v, k in zip(value, kinds)):
                    return True
            continue
        classes = _CLASSES.get(kind) or BY_CLASS.get(kind)
        if classes is None or (isinstance(value, classes) and (not isinstance(value, bool) or kind == "bool")):
            return True
    return False


@cache
def _alternatives(annotation: str, separator: str = "|") -> tuple[str, ...]:
    """The parts of an annotation between separators outside of brackets."""
    parts, depth = [""], 0
    for c in annotation:
        depth += (c == "[") - (c == "]")
        if c == separator and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return tuple(part.strip() for part in parts)
