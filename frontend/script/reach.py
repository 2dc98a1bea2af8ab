"""Snapshots of the Python state that a function captures: closure cells, globals, and the objects behind them.

A recording depends on the state that the function read. So a cached recording is used only if that state is unchanged
(`holds`), and after recording, `change` finds state that the function itself has changed: that would happen once, not
in each call.

The search starts from the names in the code of a function and its nested functions, and follows their values:
containers, instances of classes other than Python's and numpy's, classes of the program, and functions.
"""

from __future__ import annotations

import argparse
import array
import dataclasses
import functools
import operator
import os
import sys
import threading
import types
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from mlc.frontend import tree
from mlc.frontend.dtypes import DType
from mlc.frontend.location import is_ours
from mlc.frontend.script.held import holds_tracers
from mlc.frontend.script.origin import codes_of, file_of, is_foreign, is_programs
from mlc.frontend.script.reached_outside import ForeignArray, Memory, Progress
from mlc.frontend.script.reached_state import (
    MISSING,
    Absences,
    Attributes,
    ClassAttributes,
    Components,
    ContextVariable,
    Elements,
    Entries,
    Items,
    Members,
    Payload,
    ReachedState,
    Slots,
    Variable,
    slots_of,
)
from mlc.frontend.script.unread import is_clear, names_of, reads_by_name, unread_attributes, uses_of
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import Tensor
from mlc.ir.sizes import Size

_ATOMS = (type(None), bool, int, float, complex, str, bytes, Tensor, Size, DType, np.generic, np.dtype, range, slice,
          type(Ellipsis), types.CodeType)
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace, threading.local, threading.Event, np.poly1d)
_STATEFUL = ("mlc.nn", "mlc.optim", "mlc.amp", "mlc.utils.data", "mlc.distributions", "configparser",
             "multiprocessing.sharedctypes")
"""Modules of this package, and of Python, whose objects count as the program's state."""
_CACHES = frozenset({"_cached"})
"""Attributes of objects of this package that keep what was computed last: of transforms of distributions."""
Place = tuple[int, str | None]
"""Where a variable is: the id of its cell, or of the globals that have it under a name."""
BY_NAME = ("getattr", "vars", "__dict__")
"""Names of what reads attributes whose names are only known when it runs."""


# -- finding it -------------------------------------------------------------------------------------------------------
class Reached:
    """The mutable state that some functions and values reach, and its current contents.

    carried    variables that may change themselves; their contents may not
    buffers    whether to include the buffers of modules
    named      the names and strings in the code of each function of the program, by its id
    free       the ids of functions that are reached otherwise than as methods, and of classes that are values
    texts      texts that are reached
    by_place   names of buffers that are inputs, whatever tensor they are, by the ids of the attributes of their modules
    calls      guards of the calls that gave this, of functions with a cache
    clear      whether all that is reached is known to read attributes by the names in its code alone
    """

    def __init__(self, roots: Mapping[str, Any], buffers: bool = True,
                 carried: Collection[Place] = ()) -> None:
        self._carried, self._buffers = frozenset(carried), buffers
        self.places: list[ReachedState] = []
        self._seen: dict[int, Any] = {}
        self._names: set[str] = set()                      # names and strings in the code of the program
        self.named: dict[int, frozenset[str]] = {}
        self.free: set[int] = set()
        self.texts: set[str] = set()
        self.calls: list[ReachedState] = []
        self.by_place: dict[int, set[str]] = {}
        self.clear = True
        self._uncomputed: list[tuple[Any, list[str]]] = []             # cached properties not computed yet
        self._work: list[tuple[str, Any]] = []
        self._functions: list[tuple[str, types.FunctionType]] = []     # of the program
        self.free |= {id(x) for x in roots.values()}
        self.follow(roots.items())
        if not self._names.isdisjoint((*BY_NAME, "hasattr")):          # also attributes that functions get later
            for path, f in self._functions:
                self._add(Entries(path, vars(f)))
            self.follow(())

    def holds(self) -> bool:
        """Whether nothing has changed."""
        return all(place.holds() for place in self.places)

    def objects(self) -> Iterable[Any]:
        """All that has been reached: functions, containers and other objects, but no immutable values."""
        return self._seen.values()

    def reaches(self, x: Any) -> bool:
        """Whether an object has been reached."""
        return id(x) in self._seen

    def classes_of_trees(self) -> list[tuple[str, type]]:
        """The classes of dataclasses, named tuples and dictionaries that have been reached, each with its name."""
        found = [x for x in self._seen.values() if isinstance(x, type)]
        return [(x.__name__, x) for x in found if dataclasses.is_dataclass(x) or issubclass(x, tuple | list | dict)]

    def holds_elsewhere(self, x: Any, owner: Any, name: str) -> bool:
        """Whether an attribute of an object has a value that another place has, too."""
        for place in self.places:
            found = vars(place.x) if isinstance(place, Attributes) else place.x
            if isinstance(place, Attributes | Entries):    # as it is now, with what is not guarded
                own = found is vars(owner)                 # a compiled module has the attributes of the module
                if any(v is x and not (own and k == name) for k, v in found.items()):
                    return True
            elif any(v is x for v in place.values):
                return True
        return False

    def drop(self, x: Any) -> None:
        """Guard and keep an object no more."""
        self.places = [place for place in self.places if place.x is not x]
        self._seen.pop(id(x), None)

    def change(self) -> str | None:
        """The path of the first change."""
        return next((place.change() for place in self.places if not place.holds()), None)

    def is_filled(self) -> bool:
        """Whether all that has changed is None that is a tensor now."""
        return all(place.holds() or place.is_filled() for place in self.places)

    def restore(self) -> None:
        """Restore all state."""
        for place in self.places:
            if not place.holds():
                place.restore()
        for x, names in self._uncomputed:
            for name in names:
                if holds_tracers(vars(x).get(name)):
                    del vars(x)[name]                      # to be computed outside
                self.follow([(f"{type(x).__name__}.{name}", vars(x).get(name))])

    def loosen(self, read: Sequence[Tensor], numbers: Sequence[tuple[Any, str]], hosts: Sequence[Any],
               names: frozenset[str] | None) -> None:
        """Stop guarding the elements of tensors, but for those that were read while the function was recorded, numbers
        in mappings that are inputs, the attributes of objects that host functions change, those of `by_place`,
        and those that cannot be read if attributes of these `names` are."""
        of_read, of_hosts = {id(t) for t in read}, {id(x) for x in hosts if not self._reads(x)}
        inputs: dict[int, set[str]] = {}
        held = self._held() if numbers else frozenset()
        for mapping, key in numbers:                       # but those that the program may read or set
            if self._names.isdisjoint((key, "param_groups", *BY_NAME)) and id(mapping) not in held:
                inputs.setdefault(id(mapping), set()).add(key)
        for place in self.places:
            if isinstance(place, Payload) and id(place.x) not in of_read:
                place.loosen()
            elif isinstance(place, Entries) and (of_place := inputs.get(id(place.x)) or self.by_place.get(id(place.x))):
                place.unguard(of_place)
            elif isinstance(place, Attributes):
                found = unread_attributes(place.x, names) | self.by_place.get(id(vars(place.x)), set())
                if place.unguarded != found:
                    place.unguard(found)
        self.places = [p for p in self.places if not (isinstance(p, Attributes) and id(p.x) in of_hosts)]

    def _held(self) -> frozenset[int]:
        """The ids of what is held otherwise than in the `param_groups` of an optimizer."""
        groups = {id(v) for p in self.places if isinstance(p, Attributes) for k, v in zip(p.keys, p.values)
                  if k == "param_groups"}
        tuples = [x for x in self._seen.values() if isinstance(x, tuple)]
        return frozenset(id(v) for p in self.places if id(p.x) not in groups for v in p.values) | {
            id(v) for x in tuples for v in x}

    def _reads(self, host: Any) -> bool:
        """Whether the program may read what a host function changes of an object."""
        changing = {name for name, x in vars(host).items() if isinstance(x, bool | int | float | list | tuple)}
        return not self._names.isdisjoint(changing | {"get_last_lr", "get_lr", *BY_NAME})

    def reads_settings(self, numbers: Sequence[tuple[Any, str]], hosts: Sequence[Any]) -> bool:
        """Whether the program may read, by itself, numbers in mappings, or what host functions change."""
        keys = {key for _, key in numbers} | {"last_epoch", "_last_lr", "get_last_lr", "get_lr", "param_groups"}
        return bool(hosts) and not self._names.isdisjoint(keys)

    def renew(self, container: Any) -> None:
        """Take the present contents of a container, or of a variable's place, as those that are guarded."""
        for place in [p for p in self.places if p.x is container or (
                isinstance(p, Variable) and isinstance(container, tuple) and all(map(operator.is_, p.x, container)))]:
            place.renew()
            self.follow(place.inside())

    def follow(self, found: Iterable[tuple[str, Any]]) -> None:
        """Also reach these values, each with its path."""
        self._work += found
        while self._work:
            path, x = self._work.pop()
            if type(x) is str:
                self.texts.add(x)
            elif id(x) not in self._seen and (type(x) is Tensor or isinstance(x, SparseTensor) or not _is_atom(x)):
                self._seen[id(x)] = x
                self._visit(path, x)

    @property
    def variables(self) -> list[tuple[Any, str | None, Any]] | None:
        """The reached variables and the arrays of tensors, with their values; None if there is other mutable state."""
        if not all(isinstance(p, Variable | Payload) and p.values and p.values[0] is not MISSING for p in self.places):
            return None                                    # which what is no longer guarded by its value is, too
        rows = [p.variables() if isinstance(p, Payload) else [(*p.x, p.values[0])] for p in self.places]
        return None if None in rows else [row for found in rows for row in found or ()]

    def _visit(self, path: str, x: Any) -> None:
        self.clear = self.clear and is_clear(x)
        if type(x) is Tensor:
            self.places.append(Payload(path, x))
        elif isinstance(x, SparseTensor):
            self._add(Components(path, x))
        elif isinstance(x, types.FunctionType):
            self._function(path, x)
        elif isinstance(x, types.MethodType):
            self.free.add(id(x.__func__))
            self._work += [(path, x.__func__), (path.rpartition(".")[0] or path or "self", x.__self__)]
        elif isinstance(x, functools.partial):
            self.free.add(id(x.func))
            self._work += [(path, x.func), (f"{path}.args", x.args), (f"{path}.keywords", x.keywords)]
        elif isinstance(x, staticmethod | classmethod):
            self._work.append((path, x.__func__))
        elif isinstance(x, property):
            self._work += [(path, x.fget), (path, x.fset)]
        elif isinstance(x, functools.cached_property | functools.partialmethod | functools.singledispatchmethod):
            self._work.append((path, x.func))
        elif isinstance(x, functools._lru_cache_wrapper):
            self._work.append((path, x.__wrapped__))       # calls that are recorded guard the results in its cache
        elif isinstance(x, np.vectorize):
            self._work.append((path, x.pyfunc))
        elif isinstance(x, memoryview):
            self._work.append((path, x.obj))
        elif isinstance(x, Memory.CLASSES):
            self._add(Memory(path, x))
        elif isinstance(x, ContextVar):
            self._add(ContextVariable(path, x))
        elif isinstance(x, weakref.ref):
            self._work.append((f"{path}()", x()))
        elif type(x) in weakref.ProxyTypes:
            self._work.append((path, x.__repr__.__self__))             # the object itself
        elif isinstance(x, tuple | frozenset | list | deque | UserList | dict | set | MappingProxyType | UserDict
                        | ChainMap | WeakKeyDictionary | WeakValueDictionary | type(os.environ)):
            self._container(path, x)
            if type(x).__module__ not in ("builtins", "collections"):
                self._object(path, x)
        elif isinstance(x, types.BuiltinFunctionType | types.MethodWrapperType):
            self._work.append((path, x.__self__))          # may be a method of a container
        elif isinstance(x, Iterator):
            self._add(Progress(path, x))
            self._object(path, x)
        elif isinstance(x, bytearray | array.array) or (isinstance(x, np.ndarray) and _may_be_written(x)):
            self._add(Elements(path, x))
        elif isinstance(x, type):
            if is_programs(str(x.__module__), file_of(str(x.__module__))):
                self._add(ClassAttributes(path, x))
                self._work += [(path, base) for base in (*x.__bases__, type(x))]
        elif not isinstance(x, types.ModuleType | np.ndarray):
            if hasattr(type(x), "__dlpack__"):
                self.places.append(ForeignArray(path, x))
            self._object(path, x)

    def _container(self, path: str, x: Any) -> None:
        if isinstance(x, tuple | frozenset):
            self._work += [(f"{path}[{i}]", v) for i, v in enumerate(x)]
        elif isinstance(x, set):
            self._add(Members(path, x))
        else:
            self._add((Entries if isinstance(x, Mapping) else Items)(path, x))

    def _add(self, place: ReachedState) -> None:
        if isinstance(place, Variable) and isinstance(place.values[0], str):
            self._names.add(place.values[0])
        if not isinstance(place, ClassAttributes):
            self.free |= {id(x) for x in place.values if isinstance(x, types.FunctionType | type)}
        if not (isinstance(place, Variable) and (id(place.x[0]), place.x[1]) in self._carried):
            self.places.append(place)
        self._work += place.inside()

    def _function(self, path: str, f: types.FunctionType) -> None:
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            found = Variable(name, (cell, None))
            self._add(found) if not is_ours(_home(f)) else self._work.extend(found.inside())
        if is_programs(str(f.__globals__.get("__name__", "")), f.__code__.co_filename):
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                if getattr(f, name):
                    self._add(Variable(f"{path}.{name}", (f, name)))
            for name in vars(f):
                if not name.startswith("__"):
                    self._add(Variable(f"{path}.{name}", (vars(f), name)))
            self._functions.append((path, f))
            names = {n for code in codes_of(f.__code__) for n in code.co_names}
            texts = {x for code in codes_of(f.__code__) for x in code.co_consts if isinstance(x, str)}
            self.named[id(f)] = names_of(f.__code__)
            self._names |= names | texts
            cells = [v for cell in f.__closure__ or () for v in Variable("", (cell, None)).values]
            if not names.isdisjoint((*BY_NAME, "globals")):            # of globals, by texts that the program has
                known = [*cells, *(f.__defaults__ or ()), *(f.__globals__.get(n) for n in names)]
                names |= texts | {x for x in known if isinstance(x, str)}
            if not names.isdisjoint(("environ", "getenv")) or any(f.__globals__.get(n) is os.getenv for n in names):
                self._work.append(("os.environ", os.environ))
            if "argv" in names:
                self._work.append(("sys.argv", sys.argv))
            modules = _modules([*(f.__globals__.get(n) for n in names), *(sys.modules.get(n) for n in names), *cells],
                               names)
            self._work += [(m.__name__, type(m)) for m in modules]     # which may have properties
            scopes = [("", f.__globals__), *((str(m.__name__), vars(m)) for m in modules)]
            self.clear = self.clear and reads_by_name(f)
            for scope, variables in scopes:
                wanted = {*names, "__getattr__"} if scope else names - _attributes_alone(f)
                for name in wanted & variables.keys():
                    self._global(f"{scope}.{name}" if scope else name, variables, name)
                if not names.isdisjoint(_ASKS):
                    asked = names | texts if scope or "globals" in names else uses_of(f.__code__).globals
                    self._absent(scope, variables, asked - variables.keys())

    def _absent(self, scope: str, variables: dict[str, Any], names: Collection[str]) -> None:
        """Guard that a module has none of these names."""
        wanted = [n for n in sorted(names) if n.isidentifier() and (id(variables), n) not in self._carried]
        if wanted:
            self.places.append(Absences(f"{scope}." if scope else "", (variables, wanted)))

    def _global(self, path: str, variables: dict[str, Any], name: str) -> None:
        value = variables[name]
        self.clear = self.clear and is_clear(value)
        of_package = isinstance(value, types.FunctionType | type | types.ModuleType) and is_ours(_home(value))
        if not (of_package and is_ours(str(variables.get("__name__", "")))):
            self._add(Variable(path, (variables, name)))

    def _object(self, path: str, x: Any) -> None:
        kind = type(x)
        home = str(kind.__module__)                        # there may be none
        if home == "types" and kind is not getattr(types, kind.__name__, None):
            home = "__main__"                              # made by the program: make_dataclass, types.new_class
        if is_ours(home) and hasattr(x, "__wrapped__"):
            self._work.append((path, x.__wrapped__))       # a compiled function
            return
        is_own = home.startswith(_STATEFUL) or isinstance(x, (*_NAMESPACES, tree.AttributeTree))
        if not is_own and not is_foreign(home):
            return
        self._work.append((kind.__name__, kind))
        if slots_of(kind):  # type: ignore[arg-type]
            self._add(Slots(path, x))
        if not hasattr(x, "__dict__"):
            return
        elsewhere = {n for n in _cached_properties(kind) if n not in vars(x)}  # type: ignore[arg-type]
        if elsewhere:
            self._uncomputed.append((x, [*elsewhere]))
        if isinstance(x, tree.AttributeTree) and not self._buffers:
            elsewhere |= {*x._buffers}
        if is_ours(home):
            elsewhere |= _CACHES & vars(x).keys()
        self._add(Attributes(path, x, frozenset(elsewhere)))
        self._work += [(f"{path}.{name}", vars(x).get(name)) for name in elsewhere]


@functools.lru_cache(maxsize=4096)
def _cached_properties(kind: type) -> tuple[str, ...]:
    """Cached properties of a class: computing them does not count as a change."""
    every = {name: x for base in reversed(kind.__mro__) for name, x in vars(base).items()}
    return tuple(name for name, x in every.items() if isinstance(x, functools.cached_property))


def _home(x: Any) -> str:
    """The module of a function, class or module, by name; the `__module__` of a wrapper is that of what it wraps."""
    if isinstance(x, types.FunctionType):
        return str(x.__globals__.get("__name__", ""))
    return str(x.__name__ if isinstance(x, types.ModuleType) else x.__module__)


def _is_atom(x: Any) -> bool:
    """Whether a value is immutable; an instance of a subclass is only if it has no attributes of its own."""
    return isinstance(x, _ATOMS) and not (isinstance(x, int | float | complex | str | bytes) and hasattr(x, "__dict__"))


def _may_be_written(x: Any) -> bool:
    """Whether an array, or an array that it is a view of, is writable."""
    while isinstance(x, np.ndarray):
        if x.flags.writeable:
            return True
        x = x.base
    return False


def _modules(found: list[Any], names: set[str]) -> list[types.ModuleType]:
    """The modules of the program among the values, and those that these hold under one of the names."""
    out: dict[str, types.ModuleType] = {}
    while found:
        m = found.pop()
        if isinstance(m, types.ModuleType) and m.__name__ not in out and is_programs(m.__name__, file_of(m.__name__)):
            out[m.__name__] = m
            found += [vars(m).get(n) for n in names]
    return list(out.values())


_ASKS = frozenset({*BY_NAME, "hasattr", "globals", "NameError", "AttributeError", "Exception", "BaseException"})
"""Names of what tells whether a module has a name. Without these a function does not run where it has not; that a
global hides a builtin later is not seen, as native guards of variables have no row for what is not there."""
_OF_MODULES = frozenset({"modules", "__import__", "import_module"})
"""Names of what gives a module by its name, whose attributes are its globals."""


def _attributes_alone(f: types.FunctionType) -> frozenset[str]:
    """Names in the code of a function that are of attributes of tensors, as `t` in x.t(), and of no globals, whatever
    globals have these names. Names of other attributes may be those of globals, read from a module."""
    names = frozenset(n for code in codes_of(f.__code__) for n in code.co_names)
    if names & _OF_MODULES:
        return frozenset()
    return frozenset(n for n in names - uses_of(f.__code__).globals if hasattr(Tensor, n))
