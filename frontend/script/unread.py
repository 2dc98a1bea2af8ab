"""Attributes that a recorded function cannot read, so that they may change: counters of an object that trains a model.

Attributes are read by name, and the names are in the code of the program. So an attribute is not read if its name is in
no function that may be called, nor in a method that the object has from this package. That holds only where all that
is reached is known not to read attributes in other ways: functions and classes of the program and of this package,
numpy, plain data, and some builtins. Anything else, such as `getattr`, `attrgetter` or an installed package, may read
any of them.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import functools
import re
import sys
import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlc.frontend.location import is_ours
from mlc.frontend.script.origin import codes_of, file_of, is_programs
from mlc.frontend.script.reached_state import ClassAttributes

if TYPE_CHECKING:
    from mlc.frontend.script.reach import Reached

_MAKING = ("__init__", "__new__", "__del__", "__init_subclass__", "__set_name__")
"""Methods that are only called where a class is used as a value, or an object goes."""
_CLASS_OF = ("type", "__class__")
"""Names of what gives the class of an object, which may make another one."""
_FORMATS = ("format", "format_map")
"""Names of methods that read the attributes whose names are in a text."""
_WHOLE = {"__dict__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__", "__copy__", "__deepcopy__",
          "__globals__", "__builtins__", "__closure__", "__match_args__", "__slots__"}
"""Names of attributes that lead to all attributes of an object, or to other code."""
_BUILTINS = frozenset((
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "classmethod", "complex", "dict", "divmod", "enumerate",
    "filter", "float", "format", "frozenset", "hasattr", "hash", "id", "int", "isinstance", "issubclass", "iter", "len",
    "list", "map", "max", "min", "next", "object", "ord", "pow", "print", "property", "range", "repr", "reversed",
    "round", "set", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "zip", "NotImplemented",
    "__name__"))
"""Builtins that read no attributes but those of special methods."""
_MODULES = ("builtins", "math", "cmath", "numpy", "typing", "collections", "abc", "__future__")
"""Modules whose functions and classes read no attributes of the program's objects."""


class Uses(NamedTuple):
    """The globals that the code of a function reads or assigns, and the modules that it imports."""

    globals: frozenset[str]
    modules: frozenset[str]


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> frozenset[str]:
    """The names in a code object and those nested in it, with the words of its texts."""
    return frozenset(name for inner in codes_of(code) for name in (*inner.co_names, *_words(inner.co_consts)))


@functools.lru_cache(maxsize=4096)
def uses_of(code: types.CodeType) -> Uses:
    """The globals and modules that a code object and those nested in it use."""
    used, modules = set[str](), set[str]()
    for inner in codes_of(code):
        for op in dis.get_instructions(inner):
            if op.opname == "LOAD_NAME" or "GLOBAL" in op.opname:
                used.add(op.argval)
            elif op.opname == "IMPORT_NAME":
                modules.add(op.argval)
    return Uses(frozenset(used), frozenset(modules))


def _words(constants: Sequence[Any]) -> Iterator[str]:
    for x in constants:
        if isinstance(x, str):
            yield x
            yield from re.findall(r"\w+", x)
        elif isinstance(x, tuple | frozenset):
            yield from _words([*x])


def is_clear(x: Any) -> bool:
    """Whether it is known of a value that is reached which attributes are read by its use: those that are named in
    code which is reached, too."""
    if isinstance(x, types.ModuleType):
        return _is_known(x.__name__)
    if isinstance(x, type):
        return _is_known(x.__module__)
    if isinstance(x, types.FunctionType):
        return _is_known(x.__module__)
    if isinstance(x, types.BuiltinFunctionType):           # of a module, or a method of a container
        owner = x.__self__
        if not isinstance(owner, types.ModuleType):
            return is_clear(owner) and x.__name__ not in _FORMATS
        return x.__name__ in _BUILTINS if owner is builtins else _is_known(owner.__name__)
    if isinstance(x, staticmethod | classmethod | functools.cached_property):
        return isinstance(function_of(x), types.FunctionType)
    if isinstance(x, property):
        return all(f is None or isinstance(f, types.FunctionType) for f in (x.fget, x.fset))
    if isinstance(x, types.MethodType | functools.partial | types.CellType | np.ndarray):
        return True                                        # whose parts are reached, too
    return _is_known(type(x).__module__)


def _is_known(module: Any) -> bool:
    """Whether a module is the program's, of this package, or known."""
    return isinstance(module, str) and (module.partition(".")[0] in _MODULES or is_ours(module)
                                        or is_programs(module, file_of(module)))


def reads_by_name(f: types.FunctionType) -> bool:
    """Whether all that the code of a function uses by itself is clear."""
    found = uses_of(f.__code__)
    return names_of(f.__code__).isdisjoint(_WHOLE) and all(
        is_clear(f.__globals__[n]) if n in f.__globals__ else n in _BUILTINS or _is_error(n) for n in found.globals
    ) and all(n in sys.modules and is_clear(sys.modules[n]) for n in found.modules)


def _is_error(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def names_read(every: Sequence[Reached]) -> frozenset[str] | None:
    """The names in the functions that may be called of all that has been reached: the method of a class if its name is
    among them. None if attributes of any name may be read."""
    if not all(reached.clear for reached in every):
        return None
    named = {f: names for reached in every for f, names in reached.named.items()}
    free = {x for reached in every for x in reached.free}
    classes = [p for reached in every for p in reached.places if isinstance(p, ClassAttributes)]
    methods = [(id(function_of(x)), name, id(p.x)) for p in classes for name, x in zip(p.keys, p.values)]
    called = free | (named.keys() - {f for f, _, _ in methods})
    texts = frozenset(_words([x for reached in every for x in reached.texts]))
    while True:
        names = frozenset(name for f in called for name in named.get(f, ()))
        if not names.isdisjoint(_FORMATS):
            names |= texts
        makes = not names.isdisjoint(_CLASS_OF)
        more = {f for f, name, kind in methods if name in names or (
            name.startswith("__") and (name not in _MAKING or makes or kind in free))}
        if more <= called:
            return names
        called |= more


def unread_attributes(x: Any, names: frozenset[str] | None) -> set[str]:
    """The numbers and texts among the attributes of an object that cannot be read."""
    kind: Any = type(x)
    bases = kind.__mro__[:-1]
    if names is None or dataclasses.is_dataclass(x) or hasattr(kind, "__match_args__") or not is_programs(
            str(kind.__module__), file_of(str(kind.__module__))) or not all(
                is_ours(b.__module__) or is_programs(b.__module__, file_of(b.__module__)) for b in bases):
        return set()                                       # trees have all fields of a dataclass, patterns the others
    simple = {n for n, v in vars(x).items() if isinstance(v, bool | int | float | str | type(None))}
    return simple - names - _names_of_methods(kind)


@functools.lru_cache(maxsize=4096)
def _names_of_methods(kind: type) -> frozenset[str]:
    """The names in the code of the methods that a class has from this package."""
    found = [function_of(x) for base in kind.__mro__[:-1] if is_ours(base.__module__) for x in vars(base).values()]
    codes = [f.__code__ for f in found if isinstance(f, types.FunctionType)]
    return frozenset(name for code in codes for name in names_of(code))


def function_of(x: Any) -> Any:
    """The function behind an attribute of a class: of a class method, a property and the like."""
    for name in ("__func__", "fget", "func"):
        x = getattr(x, name, x)
    return x
