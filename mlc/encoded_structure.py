"""Structures of arguments and results as data of a file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.backends.checksummed import CorruptFile
from mlc.frontend import tree
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError

_CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "dict": dict, "none": type(None)}
_NAMES = {kind: name for name, kind in _CONTAINERS.items()}
_PLAIN = (type(None), bool, int, float, str)


def encode_structure(structure: tree.TreeDef, what: str) -> list[Any]:
    out: list[Any] = []
    for token in structure:
        if token is tree.LEAF:
            out.append(0)
            continue
        kind, count, rest = token
        if kind not in _NAMES:
            raise UserTypeError(f"{what} is a {kind.__name__}, which only its own code could make again",
                                code="MLC0570", loc=user_loc(),
                                hint="pass and return lists, tuples and dicts; the module given to mlc.compile is "
                                     "saved as its weights")
        keys = [encode_value(key, f"a key of {what}") for key in rest] if kind is dict else []
        out.append([_NAMES[kind], count, *keys])
    return out


def encode_value(x: Any, what: str) -> Any:
    if type(x) not in _PLAIN:
        raise UserTypeError(f"{what} is a {type(x).__name__}, which a file cannot hold", code="MLC0570", loc=user_loc(),
                            hint="arrays, numbers, strings, bools and None can be saved")
    return ["float", x.hex()] if type(x) is float else x


def decode_structure(data: Sequence[Any]) -> tree.TreeDef:
    """Decode a structure; CorruptFile if the data is invalid."""
    tokens: list[Any] = []
    wanted = 1                                             # number of trees still to be decoded
    for item in data:
        wanted -= 1
        if wanted < 0 or (item != 0 and item[0] not in _CONTAINERS):
            raise CorruptFile("a container in it is ill-formed")
        if item == 0:
            tokens.append(tree.LEAF)
            continue
        kind, count = _CONTAINERS[item[0]], int(item[1])
        keys = tuple(decode_value(key) for key in item[2:]) if kind is dict else None
        if count < 0 or (keys is not None and len(set(keys)) != count):
            raise CorruptFile("a container in it is ill-formed")
        tokens.append((kind, count, keys))
        wanted += count
    if wanted:
        raise CorruptFile("a container in it is ill-formed")
    return tree.TreeDef(tokens)


def decode_value(data: Any) -> Any:
    return float.fromhex(data[1]) if isinstance(data, list) else data
