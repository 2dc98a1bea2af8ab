"""What a function reaches by itself, as it is now: closure cells, globals, and the objects behind them.

A recording holds what the function read there. So whoever keeps it asks before each call whether all of that is still
so (`holds`), and, when it was made, whether the function itself has changed any of it (`change`): that would happen
once, not in each call.

Found are the names that the code of a function and of those inside it mention, then what these hold: containers,
instances of classes that are neither Python's nor numpy's, classes of the program, and the functions among all that.
"""

from __future__ import annotations

import argparse
import functools
import operator
import sys
import types
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlc.frontend import tree
from mlc.frontend.dtypes import DType
from mlc.frontend.location import is_ours
from mlc.frontend.tensor import Tensor
from mlc.ir.sizes import Size

_ATOMS = (type(None), bool, int, float, complex, str, bytes, Tensor, Size, DType, np.generic, np.dtype, range, slice,
          type(Ellipsis), types.CodeType, types.BuiltinFunctionType)
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
_STATEFUL = ("mlc.nn", "mlc.optim")
"""Modules of this package whose objects belong to the program."""
_MISSING = object()
Contents = tuple[Any, Collection[Any]]
"""(keys, values)"""


# -- what may change --------------------------------------------------------------------------------------------------
class Place:
    """Something that may change, and the keys and values that it had. `x` is what holds them."""

    __slots__ = ("keys", "path", "values", "x")
    indexed = "[{!r}]"
    """How the program spells a value under its key."""

    def __init__(self, path: str, x: Any) -> None:
        self.path = path
        self.x = x
        self.keys, values = self.contents()
        self.values = [*values]

    def contents(self) -> Contents:
        """What it holds now."""
        raise NotImplementedError

    def restore(self) -> None:
        """Let it hold what it did."""
        raise NotImplementedError

    def inside(self) -> Iterator[tuple[str, Any]]:
        """The values that it had, each with its path."""
        for key, value in zip(self.keys or range(len(self.values)), self.values):
            yield self.path + self.indexed.format(key), value

    def holds(self) -> bool:
        keys, values = self.contents()
        return bool(keys == self.keys) and len(values) == len(self.values) and (
            all(map(operator.is_, values, self.values)) or all(map(_same, values, self.values)))

    def change(self) -> str:
        """The path of what is another value now."""
        keys, values = self.contents()
        if keys != self.keys or len(values) != len(self.values):
            return self.path
        return next((path for (path, a), b in zip(self.inside(), values) if not _same(a, b)), self.path)


class Variable(Place):
    """A global variable, or that of a function around: `x` is (dict, name), or (cell, None)."""

    __slots__ = ()
    indexed = ""

    def contents(self) -> Contents:
        place, name = self.x
        if name is not None:
            return (), (place.get(name, _MISSING),)
        try:
            return (), (place.cell_contents,)
        except ValueError:                                 # no value yet
            return (), (_MISSING,)

    def restore(self) -> None:
        (place, name), value = self.x, self.values[0]
        if name is not None:
            place[name] = value
        elif value is not _MISSING:
            place.cell_contents = value
        else:
            del place.cell_contents


class Items(Place):
    """A list, or a queue."""

    __slots__ = ()

    def contents(self) -> Contents:
        return (), self.x

    def restore(self) -> None:
        self.x.clear()
        self.x.extend(self.values)


class Entries(Place):
    """A dictionary."""

    __slots__ = ()

    def contents(self) -> Contents:
        return [*self.x], self.x.values()

    def restore(self) -> None:
        self.x.clear()
        self.x.update(zip(self.keys, self.values))


class Members(Place):
    """A set."""

    __slots__ = ()

    def contents(self) -> Contents:
        return frozenset(self.x), ()

    def restore(self) -> None:
        self.x.clear()
        self.x.update(self.keys)


class Elements(Place):
    """The elements of a numpy array or bytearray that can be written to."""

    __slots__ = ()

    def contents(self) -> Contents:
        return bytes(self.x) if isinstance(self.x, bytearray) else self.x.tobytes(), ()

    def restore(self) -> None:
        if isinstance(self.x, bytearray):
            self.x[:] = self.keys
        else:
            np.copyto(self.x, np.frombuffer(self.keys, self.x.dtype).reshape(self.x.shape))


class Attributes(Place):
    """The attributes of an object, without those that are `spared`."""

    __slots__ = ("spared",)
    indexed = ".{}"

    def __init__(self, path: str, x: Any, spared: frozenset[str]) -> None:
        self.spared = spared
        super().__init__(path, x)

    def contents(self) -> Contents:
        own = vars(self.x)
        if self.spared:
            own = {k: v for k, v in own.items() if k not in self.spared}
        return [*own], own.values()

    def restore(self) -> None:
        for name in [k for k in self.contents()[0] if k not in self.keys]:
            del vars(self.x)[name]
        vars(self.x).update(zip(self.keys, self.values))


class ClassAttributes(Place):
    """The attributes and methods of a class."""

    __slots__ = ()
    indexed = ".{}"

    def contents(self) -> Contents:
        own = {k: v for k, v in vars(self.x).items()
               if isinstance(v, types.FunctionType) or not (k.startswith("__") and k.endswith("__"))}
        return [*own], own.values()

    def restore(self) -> None:
        for name in [k for k in self.contents()[0] if k not in self.keys]:
            delattr(self.x, name)
        for name, value in zip(self.keys, self.values):
            setattr(self.x, name, value)


# -- finding it -------------------------------------------------------------------------------------------------------
class Reached:
    """The places that some functions and values reach, and what they hold now.

    variables  whether those of functions and modules are among them, and not only what they hold
    buffers    whether the buffers of modules are
    """

    def __init__(self, roots: Mapping[str, Any], variables: bool = True, buffers: bool = True) -> None:
        self._variables, self._buffers = variables, buffers
        self.places: list[Place] = []
        self._seen: dict[int, Any] = {}
        self._work: list[tuple[str, Any]] = list(roots.items())
        while self._work:
            path, x = self._work.pop()
            if not isinstance(x, _ATOMS) and id(x) not in self._seen:
                self._seen[id(x)] = x
                self._visit(path, x)

    def holds(self) -> bool:
        """Whether everything is as it was."""
        return all(place.holds() for place in self.places)

    def change(self) -> str | None:
        """The first thing that is not as it was."""
        return next((place.change() for place in self.places if not place.holds()), None)

    def restore(self) -> None:
        """Let everything be as it was."""
        for place in self.places:
            if not place.holds():
                place.restore()

    @property
    def variables(self) -> list[tuple[Any, str | None, Any]] | None:
        """The variables that are reached, with what each holds; None if there is something else that may change."""
        if not all(isinstance(p, Variable) and p.values[0] is not _MISSING for p in self.places):
            return None
        return [(*p.x, p.values[0]) for p in self.places]

    def _visit(self, path: str, x: Any) -> None:
        if isinstance(x, types.FunctionType):
            self._function(path, x)
        elif isinstance(x, types.MethodType):
            self._work += [(path, x.__func__), (path.rpartition(".")[0] or path, x.__self__)]
        elif isinstance(x, functools.partial):
            self._work += [(path, x.func), (f"{path}.args", x.args), (f"{path}.keywords", x.keywords)]
        elif isinstance(x, staticmethod | classmethod):
            self._work.append((path, x.__func__))
        elif isinstance(x, property):
            self._work += [(path, x.fget), (path, x.fset)]
        elif isinstance(x, functools.cached_property):
            self._work.append((path, x.func))
        elif isinstance(x, tuple | frozenset):
            self._work += [(f"{path}[{i}]", v) for i, v in enumerate(x)]
        elif isinstance(x, list | deque):
            self._add(Items(path, x))
        elif isinstance(x, dict):
            self._add(Entries(path, x))
        elif isinstance(x, set):
            self._add(Members(path, x))
        elif isinstance(x, bytearray) or (isinstance(x, np.ndarray) and x.flags.writeable):
            self._add(Elements(path, x))
        elif isinstance(x, type):
            if _is_programs(x.__module__, _file_of(x.__module__)):
                self._add(ClassAttributes(path, x))
                self._work += [(path, base) for base in x.__bases__]
        elif not isinstance(x, types.ModuleType | np.ndarray):
            self._object(path, x)

    def _add(self, place: Place) -> None:
        if self._variables or not isinstance(place, Variable):
            self.places.append(place)
        self._work += place.inside()

    def _function(self, path: str, f: types.FunctionType) -> None:
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            found = Variable(name, (cell, None))
            self._add(found) if not is_ours(f.__module__ or "") else self._work.extend(found.inside())
        self._work += [(f"{path}.__defaults__", f.__defaults__), (f"{path}.__kwdefaults__", f.__kwdefaults__)]
        if _is_programs(str(f.__globals__.get("__name__", "")), f.__code__.co_filename):
            names = {n for code in _codes(f.__code__) for n in code.co_names}
            for name in names & f.__globals__.keys():
                self._global(name, f.__globals__, name)
                module = f.__globals__[name]
                if isinstance(module, types.ModuleType) and _is_programs(module.__name__, _file_of(module.__name__)):
                    for attribute in names & vars(module).keys():
                        self._global(f"{name}.{attribute}", vars(module), attribute)

    def _global(self, path: str, variables: dict[str, Any], name: str) -> None:
        value = variables[name]
        of_package = isinstance(value, types.FunctionType | type) and is_ours(value.__module__)
        if not isinstance(value, types.ModuleType) and not of_package:
            self._add(Variable(path, (variables, name)))

    def _object(self, path: str, x: Any) -> None:
        kind = type(x)
        if "__wrapped__" in getattr(x, "__dict__", ()) or (is_ours(kind.__module__) and hasattr(kind, "slow_path")):
            self._work.append((path, x.__wrapped__))       # a compiled function
            return
        is_own = kind.__module__.startswith(_STATEFUL) or isinstance(x, _NAMESPACES)
        if not is_own and not _is_foreign(kind.__module__):
            return
        self._work.append((kind.__name__, kind))
        if not hasattr(x, "__dict__"):
            return
        spared = {*_cached_properties(kind)}  # type: ignore[arg-type]
        if isinstance(x, tree.AttributeTree) and not self._buffers:
            spared |= {*x._buffers}
        self._add(Attributes(path, x, frozenset(spared)))
        self._work += [(f"{path}.{name}", vars(x).get(name)) for name in spared]


@functools.lru_cache(maxsize=4096)
def _cached_properties(kind: type) -> tuple[str, ...]:
    """Attributes that objects of a class compute when they are first read: that is no change."""
    every = {name: x for base in reversed(kind.__mro__) for name, x in vars(base).items()}
    return tuple(name for name, x in every.items() if isinstance(x, functools.cached_property))


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, int | float | complex | str | bytes | types.MethodType)
                      and bool(tree.frozen_leaf(a) == tree.frozen_leaf(b)))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code and those of the functions and classes within it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def _is_foreign(module: str) -> bool:
    """Whether a module is neither this package's, nor numpy's, nor Python's own."""
    root = module.partition(".")[0]
    return root == "__main__" or not (is_ours(module) or root in sys.stdlib_module_names or root == "numpy")


@functools.lru_cache(maxsize=4096)
def _is_programs(module: str, file: str) -> bool:
    """Whether a module is part of the program, and not an installed package."""
    return _is_foreign(module) and not {"site-packages", "dist-packages"}.intersection(Path(file).parts)


def _file_of(module: str) -> str:
    return str(getattr(sys.modules.get(module), "__file__", "") or "")
