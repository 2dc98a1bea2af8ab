"""JSON serialization of dataclasses; deserialization rejects values that do not have the declared type of a field.

Strings, numbers, bools and None are stored as such, tuples as lists, and dataclasses as objects of their fields. An IR
type is {"type": text} and a size {"size": text}, in IR syntax.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from mlc.backends.checksummed import CorruptFile
from mlc.ir.affine_syntax import parse_size
from mlc.ir.diag import Error
from mlc.ir.parser import Parser
from mlc.ir.sizes import Size
from mlc.ir.types import FunctionType

D = TypeVar("D")
LARGEST = 1 << 63


def to_json(value: Any) -> Any:
    """JSON representation of a value."""
    if is_dataclass(value) and not isinstance(value, type | FunctionType):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)
                if not (f.metadata.get("optional") and getattr(value, f.name) == f.default)}
    if isinstance(value, tuple):
        return [to_json(x) for x in value]
    if isinstance(value, FunctionType):
        return {"type": str(value)}
    return {"size": str(value)} if isinstance(value, Size) else value


def from_json(data: Any, kind: type[D], what: str = "its head") -> D:
    """Value of type `kind` from its JSON representation; raises CorruptFile for ill-formed data."""
    return _from_json(data, kind, what)  # type: ignore[no-any-return]


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, localns={"Size": Size})    # which sizes.Dim names before it is defined


def _from_json(data: Any, kind: Any, what: str) -> Any:
    if kind is FunctionType or kind is Size:
        return _parsed(data, kind, what)
    if is_dataclass(kind):
        return _object(data, kind, what)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple and isinstance(data, list):
        if len(arguments) == 2 and arguments[1] is ...:
            return tuple(_from_json(x, arguments[0], f"{what}[{i}]") for i, x in enumerate(data))
        if len(arguments) == len(data):
            return tuple(_from_json(x, t, f"{what}[{i}]") for i, (x, t) in enumerate(zip(data, arguments)))
    if origin in (Union, types.UnionType):
        chosen = next((t for t in arguments if _could_be(data, t)), None)
        if chosen is not None:
            return _from_json(data, chosen, what)
    if origin is None and type(data) is kind and not (kind is int and abs(data) >= LARGEST):
        return data
    raise CorruptFile(f"{what} is {_shown(data)}")


def _could_be(data: Any, kind: Any) -> bool:
    if is_dataclass(kind):
        return isinstance(data, dict) and _has_fields(data, kind)
    return isinstance(data, dict) if kind is Size else type(data) is kind


def _has_fields(data: dict[str, Any], kind: Any) -> bool:
    """Whether an object has the fields of a dataclass, and no others."""
    needed = {f.name for f in fields(kind) if not f.metadata.get("optional")}
    return needed <= data.keys() <= {f.name for f in fields(kind)}


def _object(data: Any, kind: Any, what: str) -> Any:
    hints = _hints(kind)
    if not isinstance(data, dict) or not _has_fields(data, kind):
        raise CorruptFile(f"{what} is {_shown(data)}")
    found = {name: _from_json(value, hints[name], f"{what}.{name}") for name, value in data.items()}
    try:
        return kind(**found)
    except Error as error:
        raise CorruptFile(f"{what}: {error.message}") from None


def _parsed(data: Any, kind: type, what: str) -> Any:
    """Parse a type or a size."""
    name = "type" if kind is FunctionType else "size"
    if not isinstance(data, dict) or data.keys() != {name} or not isinstance(data[name], str):
        raise CorruptFile(f"{what} is {_shown(data)}")
    try:
        found = parse_size(data["size"]) if kind is Size else Parser(data["type"], what).type()
    except Error as error:
        raise CorruptFile(f"{what}: {error.message}") from None
    if not isinstance(found, kind):
        raise CorruptFile(f"{what} is {_shown(data)}")
    return found


def _shown(data: Any) -> str:
    text = ascii(data)
    return text if len(text) <= 60 else text[:60] + "..."
