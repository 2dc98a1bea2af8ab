"""Attributes that a recorded function cannot read, so that they may change: counters of an object that trains a model.

Attributes are read by name, and the names are in the code of the program. So an attribute whose name is in no function
that may be called, nor in a method that the object has from elsewhere, is not read; unless something reads attributes
by names that are only known when it runs.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.script.origin import codes_of, file_of, is_foreign, is_programs
from mlc.frontend.script.reached_state import ClassAttributes

if TYPE_CHECKING:
    from mlc.frontend.script.reach import Reached

BY_NAME = ("getattr", "vars", "__dict__")
"""Names of what reads attributes whose names are only known when it runs."""
_MAKING = ("__init__", "__new__", "__del__", "__init_subclass__", "__set_name__")
"""Methods that are only called where the class is named, or an object goes."""
_WHOLE = (*BY_NAME, "attrgetter", "copy", "deepcopy", "dir", "eval", "exec", "fields", "asdict", "astuple", "replace",
          "getmembers", "pickle", "dumps", "dump", "__getattribute__", "__getstate__", "__reduce_ex__", "__eq__")
"""The same, and names of what reads all attributes of an object."""


def names_read(every: Sequence[Reached]) -> frozenset[str] | None:
    """The names in the functions that may be called of all that has been reached: the method of a class if its name is
    among them. None if attributes of any name may be read, as by the code of an installed package."""
    if any(reached.installed for reached in every):
        return None
    named = {f: names for reached in every for f, names in reached.named.items()}
    classes = [p for reached in every for p in reached.places if isinstance(p, ClassAttributes)]
    methods = [(id(function_of(x)), name) for p in classes for name, x in zip(p.keys, p.values)]
    implicit = {name for _, name in methods if name.startswith("__") and name not in _MAKING}
    called = {f for reached in every for f in reached.free} | (named.keys() - {f for f, _ in methods})
    while True:
        names = frozenset(name for f in called for name in named.get(f, ()))
        more = {f for f, name in methods if name in names | implicit}
        if more <= called:
            return names if names.isdisjoint(_WHOLE) else None
        called |= more


def unread(x: Any, names: frozenset[str] | None) -> set[str]:
    """The numbers and texts among the attributes of an object that cannot be read."""
    kind: Any = type(x)
    if names is None or dataclasses.is_dataclass(x) or not is_foreign(str(kind.__module__)):
        return set()                                       # trees have all fields of a dataclass
    simple = {n for n, v in vars(x).items() if isinstance(v, bool | int | float | str | type(None))}
    return simple - names - _names_of_methods(kind)


@functools.lru_cache(maxsize=4096)
def _names_of_methods(kind: type) -> frozenset[str]:
    """The names and strings in the code of the methods that a class has from bases outside of the program."""
    found = set[str]()
    for base in kind.__mro__[:-1]:
        home = str(base.__module__)
        for x in () if is_programs(home, file_of(home)) else vars(base).values():
            f = function_of(x)
            for code in codes_of(f.__code__) if isinstance(f, types.FunctionType) else ():
                found |= {*code.co_names, *(c for c in code.co_consts if isinstance(c, str))}
    return frozenset(found)


def function_of(x: Any) -> Any:
    """The function behind an attribute of a class: of a class method, a property and the like."""
    for name in ("__func__", "fget", "func"):
        x = getattr(x, name, x)
    return x
