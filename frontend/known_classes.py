"""The code of modules whose calls are known (frontend/known_calls.py): a program may replace any method of a class.

Classes are looked at again with every call, as a program may replace a method between two of them.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Hashable, Iterable
from operator import is_
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
)
from typing import Any

import numpy as np

from mlc.frontend.dtypes import DType
from mlc.frontend.location import is_ours
from mlc.frontend.symint import SymInt
from mlc.ir.sizes import Size

_ATOMS = frozenset({bool, int, float, complex, str, bytes, type(None), Size, SymInt, DType, range, slice})
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)


class KnownClasses:
    """The classes of a recording's modules, each with its members when it was last looked at."""

    def __init__(self) -> None:
        self.members: dict[type, tuple[tuple[Any, ...], object | None]] = {}

    def state(self, kinds: Iterable[type]) -> Hashable | None:
        """A mark that a later call gives, too, if no member of the classes or their bases is another one by then; None
        if one of them is no code of this package."""
        found = []
        for kind in {base for own in kinds for base in own.__mro__ if base is not object}:
            now = vars(kind).values()
            members, state = self.members.get(kind, ((), None))
            if len(members) != len(now) or not all(map(is_, members, now)):
                members = tuple(now)
                state = object() if is_ours(kind.__module__) and all(map(is_own_member, members)) else None
                self.members[kind] = members, state
            if state is None:
                return None
            found.append(state)
        return frozenset(found)


def is_own_member(x: Any) -> bool:
    """Whether a member of a class is code of this package, or a plain setting."""
    if isinstance(x, staticmethod | classmethod):
        return is_own_member(x.__func__)
    if isinstance(x, property):
        return all(f is None or is_own_member(f) for f in (x.fget, x.fset, x.fdel))
    if isinstance(x, FunctionType):
        return is_own_function(x)
    if isinstance(x, dict | MappingProxyType):
        return all(map(is_own_member, x.values()))
    return isinstance(x, _SLOTS) or type(x).__module__ == "dataclasses" or is_plain(x)


def is_own_function(f: FunctionType) -> bool:
    """Whether a function, and what it calls by its closure, is code of this package: `functools.wraps` copies the name
    of a module, but no globals. Some methods of dataclasses are code of the standard library."""
    found, pending = set[FunctionType](), [f]
    while pending:
        inner = pending.pop()
        name = inner.__globals__.get("__name__", "")
        if not is_ours(name) and name not in ("dataclasses", "reprlib"):
            return False
        found.add(inner)
        around = map(_content, inner.__closure__ or ())
        pending += [x for x in around if isinstance(x, FunctionType) and x not in found]
    return True


def _content(cell: CellType) -> Any:
    """The variable of a closure; None if it is not assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_plain(x: Any) -> bool:
    """Whether a setting is a number, a text, a function or class of this package, or a container of such."""
    kind = type(x)
    if kind in _ATOMS or isinstance(x, np.generic):
        return True
    if kind in (tuple, list, frozenset):
        return all(map(is_plain, x))
    if kind is dict:
        return all(is_plain(k) and is_plain(v) for k, v in x.items())
    if kind is FunctionType:
        named = getattr(sys.modules.get(x.__module__ or ""), x.__name__, None) is x
        return is_own_function(x) and (named or x.__closure__ is None)
    if kind in (BuiltinFunctionType, type):
        return is_ours(x.__module__ or "")
    if kind is MethodType:
        return False
    return is_ours(kind.__module__) and dataclasses.is_dataclass(x) and all(
        is_plain(getattr(x, field.name)) for field in dataclasses.fields(x))
