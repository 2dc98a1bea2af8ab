"""The kinds of mutable state that a function reaches, each with its contents at recording."""

from __future__ import annotations

import array
import functools
import operator
import random
import sys
import types
from collections import OrderedDict
from collections.abc import Collection, Iterator, MutableMapping
from typing import Any

import numpy as np

from mlc.frontend.leaf_keys import frozen_leaf
from mlc.frontend.script import words
from mlc.frontend.tensor import Tensor

MISSING = object()
Contents = tuple[Any, Collection[Any]]
"""(keys, values)"""


class _Named(str):
    """A key that is no literal, such as a tensor, shown by its class."""

    def __repr__(self) -> str:
        return f"<{self}>"


class ReachedState:
    """Mutable state that a function reaches: a container `x` with its keys and values at recording."""

    __slots__ = ("keys", "path", "values", "x")
    indexed = "[{!r}]"
    """Python expression for the value under a key."""

    def __init__(self, path: str, x: Any) -> None:
        self.path = path
        self.x = x
        self.renew()

    def renew(self) -> None:
        """Take the present contents as the recorded ones."""
        self.keys, values = self.contents()
        self.values = [*values]

    def contents(self) -> Contents:
        """Current contents."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restore the recorded contents."""
        raise NotImplementedError

    def inside(self) -> Iterator[tuple[str, Any]]:
        """The recorded values, each with its path."""
        named = self.keys if len(self.keys) == len(self.values) else range(len(self.values))
        for key, value in zip(named, self.values):
            shown = key if isinstance(key, str | int | float | tuple) else _Named(type(key).__name__)
            yield self.path + self.indexed.format(shown), value

    def holds(self) -> bool:
        keys, values = self.contents()
        return bool(keys == self.keys) and len(values) == len(self.values) and (
            all(map(operator.is_, values, self.values)) or all(map(same, values, self.values)))

    def words(self) -> list[int] | None:
        """Addresses of words of memory that change with the state; None where it has to be looked at."""
        return None

    def is_filled(self) -> bool:
        """Whether all that has changed is None that is a tensor now."""
        keys, values = self.contents()
        return bool(keys == self.keys) and len(values) == len(self.values) and all(
            same(a, b) or (a is None and isinstance(b, Tensor)) for a, b in zip(self.values, values))

    def change(self) -> str:
        """The path of a value that has changed."""
        keys, values = self.contents()
        if keys != self.keys or len(values) != len(self.values):
            return self.path
        return next((path for (path, a), b in zip(self.inside(), values) if not same(a, b)), self.path)


class Variable(ReachedState):
    """A global or nonlocal variable, or an attribute or the defaults of a function.

    `x` is (dict, name), (cell, None), or (function, "__code__", "__defaults__" or "__kwdefaults__").
    """

    __slots__ = ()
    indexed = ""

    def contents(self) -> Contents:
        place, name = self.x
        if name is not None:
            return (), (getattr(place, name) if isinstance(place, types.FunctionType) else place.get(name, MISSING),)
        try:
            return (), (place.cell_contents,)
        except ValueError:                                 # no value yet
            return (), (MISSING,)

    def words(self) -> list[int] | None:
        place, name = self.x
        if name is None:
            return [id(place) + words.CELL]
        if isinstance(place, types.FunctionType):
            return words.of_function(place, name)
        return words.of_entry(place, name) or words.of_dict(place) if type(place) is dict else None

    def restore(self) -> None:
        (place, name), value = self.x, self.values[0]
        if isinstance(place, types.FunctionType):
            setattr(place, name, value)
        elif name is not None:
            place[name] = value
        elif value is not MISSING:
            place.cell_contents = value
        else:
            del place.cell_contents


class Absences(ReachedState):
    """Names that a module has not: `x` is its variables and the names. Modules count as absent, as an import within a
    function is no change."""

    __slots__ = ()
    indexed = "{}"

    def contents(self) -> Contents:
        variables, names = self.x
        found = [variables.get(name, MISSING) for name in names]
        return names, [MISSING if isinstance(x, types.ModuleType) else x for x in found]

    def words(self) -> list[int] | None:
        return words.of_keys(self.x[0])

    def is_filled(self) -> bool:
        return True

    def restore(self) -> None:
        for name, value in zip(*self.contents()):
            if value is not MISSING:
                del self.x[0][name]


class Payload(ReachedState):
    """The elements of a tensor, which in-place operations change, and whether it requires a gradient.

    Writes replace the token of the tensor's storage; only where an array outside shares the memory, its contents have
    to be compared. Once it is loose, the elements may be others, of the same type.
    """

    __slots__ = ("loose",)
    indexed = ""

    def __init__(self, path: str, x: Any) -> None:
        self.loose = False
        super().__init__(path, x)

    def loosen(self) -> None:
        """Have the elements not matter any more."""
        self.loose = True
        self.renew()

    def contents(self) -> Contents:
        if self.loose:
            array, meta = self.x._array, self.x._autograd
            if meta is None:
                return (array.shape, array.dtype, False), ()
            return (array.shape, array.dtype, meta.requires_grad, meta.node is None, *meta.hooks, *meta.after), ()
        meta, storage = self.x._autograd, self.x._storage
        elements = (self.x.shape, self.x._array.tobytes()) if storage is not None and storage.handed else ()
        return elements, (self.x._array, meta, meta is not None and meta.requires_grad, storage,
                          None if storage is None else storage.token)

    def words(self) -> list[int] | None:
        """Those of the autograd record alone if it is loose: the call finds out whether an array has the same type."""
        meta, storage = self.x._autograd, self.x._storage
        found = words.of_slots(self.x, ("_autograd",) if self.loose else ("_array", "_storage", "_autograd"))
        if found is None or (storage is not None and storage.handed and not self.loose):
            return None
        if storage is not None and not self.loose:
            of_storage = words.of_slots(storage, ("token", "handed"))
            if of_storage is None:
                return None
            found = [*found[:2], *of_storage, *found[2:]]              # after the slot that they hang from
        if meta is None:
            return found
        of_meta = words.of_slots(meta, ("requires_grad", "node"))
        return None if of_meta is None else [*found, *of_meta, *words.of_dict(meta.hooks), *words.of_dict(meta.after)]

    def restore(self) -> None:
        """Where the tensor has the storage that it had, its array is that of the storage, whose memory may be another
        one now; what was written to it stays."""
        if self.loose:
            return
        array, _, _, storage, _ = self.values
        if storage is None or self.x._storage is not storage:
            self.x._array, self.x._storage = array, storage

    def variables(self) -> list[tuple[Any, str, Any]] | None:
        if self.loose:
            return None
        array, meta, flag, storage, token = self.values
        if self.keys:
            return None
        of_meta = [] if meta is None else [(meta, "requires_grad", flag)]
        of_storage = [(self.x, "_storage", None)] if storage is None else [(storage, "token", token)]
        return [(self.x, "_array", array), (self.x, "_autograd", meta), *of_meta, *of_storage]


class Components(ReachedState):
    """The components of a sparse tensor, which writes in place may replace."""

    __slots__ = ()

    def contents(self) -> Contents:
        return self.x.tree_flatten()  # type: ignore[no-any-return]

    def inside(self) -> Iterator[tuple[str, Any]]:
        names = self.x.component_names(self.keys)
        return ((f"{self.path}.{name}()", x) for name, x in zip(names, self.values))

    def words(self) -> list[int] | None:
        return words.of_slots(self.x, ("_components", "_coalesced", "_layout", "_sizes"))

    def restore(self) -> None:
        self.x.__init__(self.values, self.keys[1], self.keys[0], self.keys[2])


class GradientPresence(ReachedState):
    """Whether a tensor has a gradient."""

    __slots__ = ("present",)
    indexed = ".grad"

    def __init__(self, path: str, x: Any, present: bool) -> None:
        self.present = present
        super().__init__(path, x)

    def contents(self) -> Contents:
        return self.x._autograd is not None and self.x._autograd.grad is not None, ()

    def holds(self) -> bool:
        return self.contents()[0] is self.present

    def words(self) -> list[int] | None:
        """The slot of the gradient, if there is none; one that is there is another one after each step."""
        meta = self.x._autograd
        found = words.of_slots(self.x, ("_autograd",))
        if found is None or meta is None:
            return found
        of_meta = words.of_slots(meta, ("grad",)) if meta.grad is None else None
        return None if of_meta is None else [*found, *of_meta]

    def restore(self) -> None:
        pass


class ContextVariable(ReachedState):
    """A variable of the current context."""

    __slots__ = ()
    indexed = ".get()"

    def contents(self) -> Contents:
        return (), (self.x.get(MISSING),)

    def restore(self) -> None:
        if self.values[0] is not MISSING:                 # a context variable cannot be unset
            self.x.set(self.values[0])


class Items(ReachedState):
    """The items of a list or deque."""

    __slots__ = ()

    def words(self) -> list[int] | None:
        return words.of_list(self.x)

    def contents(self) -> Contents:
        return (), self.x

    def restore(self) -> None:
        self.x.clear()
        self.x.extend(self.values)


class Entries(ReachedState):
    """The entries of a dictionary or other mapping, except the values under `unguarded` keys."""

    __slots__ = ("unguarded",)

    def __init__(self, path: str, x: Any) -> None:
        self.unguarded: frozenset[Any] = frozenset()
        super().__init__(path, x)

    def words(self) -> list[int] | None:
        if type(self.x) is not dict:
            return words.of_dict(self.x) if type(self.x) is OrderedDict else None
        entries = words.of_entries(self.x, self.unguarded) if self.unguarded else None
        return entries or words.of_dict(self.x)

    def unguard(self, keys: Collection[Any]) -> None:
        """Have the values under these keys not matter any more."""
        self.unguarded |= frozenset(keys)
        self.renew()

    def contents(self) -> Contents:
        if self.unguarded:
            return [*self.x], [None if key in self.unguarded else value for key, value in self.x.items()]
        return [*self.x], self.x.values() if isinstance(self.x, dict) else [*self.x.values()]

    def holds(self) -> bool:
        keys, values = self.contents()
        return len(keys) == len(self.keys) and all(a is b or same(a, b) for a, b in zip(keys, self.keys)) and all(
            a is b or same(a, b) for a, b in zip(values, self.values))

    def restore(self) -> None:
        assert not self.unguarded, "restored after a recording that has succeeded"
        if isinstance(self.x, MutableMapping):
            self.x.clear()
            self.x.update(zip(self.keys, self.values))


class Members(ReachedState):
    """The members of a set."""

    __slots__ = ()

    def inside(self) -> Iterator[tuple[str, Any]]:
        return ((self.path, x) for x in self.keys)

    def contents(self) -> Contents:
        return frozenset(self.x), ()

    def restore(self) -> None:
        self.x.clear()
        self.x.update(self.keys)


class Elements(ReachedState):
    """The elements of a writable array or bytearray."""

    __slots__ = ()

    def contents(self) -> Contents:
        if isinstance(self.x, bytearray | array.array):
            return bytes(self.x), ()
        if self.x.dtype.hasobject:
            return self.x.shape, self.x.ravel().tolist()
        return (self.x.shape, self.x.tobytes()), ()

    def restore(self) -> None:
        if isinstance(self.x, bytearray):
            self.x[:] = self.keys
        elif isinstance(self.x, array.array):
            self.x[:] = array.array(self.x.typecode, self.keys)
        else:
            shape, held = (self.keys, np.array(self.values, object)) if self.x.dtype.hasobject else (
                self.keys[0], np.frombuffer(self.keys[1], self.x.dtype))
            self.x.shape = shape
            np.copyto(self.x, held.reshape(shape))


class Attributes(ReachedState):
    """The class of an object, and its attributes except those that are guarded elsewhere, as containers of their
    own, or cached, and those that are `unguarded` since nothing reads them."""

    __slots__ = ("elsewhere", "kind", "unguarded")
    indexed = ".{}"

    def __init__(self, path: str, x: Any, elsewhere: frozenset[str]) -> None:
        self.elsewhere = elsewhere
        self.unguarded = frozenset[str]()
        self.kind = type(x)
        super().__init__(path, x)

    def unguard(self, names: Collection[str]) -> None:
        """Have these attributes not matter any more, and all others matter."""
        self.unguarded = frozenset(names)
        self.renew()

    def holds(self) -> bool:
        return type(self.x) is self.kind and super().holds()

    def words(self) -> list[int] | None:
        return words.of_object(self.x, self.unguarded)

    def contents(self) -> Contents:
        own = vars(self.x)
        if self.elsewhere or self.unguarded:
            own = {k: v for k, v in own.items() if k not in self.elsewhere and k not in self.unguarded}
        return [*own], own.values()

    def restore(self) -> None:
        if type(self.x) is not self.kind:
            self.x.__class__ = self.kind
        for name in [k for k in self.contents()[0] if k not in self.keys]:
            del vars(self.x)[name]
        vars(self.x).update(zip(self.keys, self.values))


class Slots(ReachedState):
    """The attributes of an object that are in slots."""

    __slots__ = ()
    indexed = ".{}"

    def contents(self) -> Contents:
        found = [(n, getattr(self.x, n)) for n in slots_of(type(self.x))  # type: ignore[arg-type]
                 if hasattr(self.x, n)]
        return [n for n, _ in found], [v for _, v in found]

    def restore(self) -> None:
        for name in [n for n in self.contents()[0] if n not in self.keys]:
            object.__delattr__(self.x, name)
        for name, value in zip(self.keys, self.values):
            object.__setattr__(self.x, name, value)


class RandomState(ReachedState):
    """The generators of random numbers that all modules share: Python's, and numpy's if it is imported."""

    __slots__ = ()

    def contents(self) -> Contents:
        module: Any = sys.modules.get("numpy.random")      # which numpy imports when it is asked for
        of_numpy = None if module is None else module.get_state(legacy=False)
        return (), (random.getstate(), of_numpy)

    def holds(self) -> bool:
        (of_python, of_numpy), (python_now, numpy_now) = self.values, self.contents()[1]
        return bool(of_python == python_now) and (of_numpy is None or all(
            np.array_equal(x, numpy_now["state"][name]) for name, x in of_numpy["state"].items()))

    def restore(self) -> None:
        of_python, of_numpy = self.values
        random.setstate(of_python)
        if of_numpy is not None:
            np.random.set_state(of_numpy)


class ClassAttributes(ReachedState):
    """The attributes and methods of a class."""

    __slots__ = ()
    indexed = ".{}"

    def words(self) -> list[int] | None:
        return words.of_class(self.x)

    def contents(self) -> Contents:
        own = {k: v for k, v in vars(self.x).items()
               if isinstance(v, types.FunctionType) or not (k.startswith("__") and k.endswith("__"))}
        return [*own], own.values()

    def restore(self) -> None:
        for name in [k for k in self.contents()[0] if k not in self.keys]:
            delattr(self.x, name)
        for name, value in zip(self.keys, self.values):
            setattr(self.x, name, value)


def same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, int | float | complex | str | bytes | types.MethodType)
                      and bool(frozen_leaf(a) == frozen_leaf(b)))


@functools.lru_cache(maxsize=4096)
def slots_of(kind: type) -> tuple[str, ...]:
    """The attributes of a class that are in slots."""
    names = (n for base in kind.__mro__ for n in (lambda s: (s,) if isinstance(s, str) else s)(
        vars(base).get("__slots__", ())))
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))
