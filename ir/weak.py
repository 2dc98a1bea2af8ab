"""Objects that are known as long as somebody holds them, without Python code that runs when they go.

A signal that arrives while the garbage collector works is raised in the first Python function that runs after it. If
that is the callback of a weak reference or a `__del__`, Python prints the exception and goes on: Ctrl-C is lost. The
containers of the module `weakref` have such callbacks. Those here look for what has gone when something is added.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class WeakTable(Generic[K, V]):
    """Values by key: a value that nobody else holds is not there."""

    def __init__(self) -> None:
        self._refs: dict[K, weakref.ref[V]] = {}
        self._look_at = 64                       # entries at which to look for those that have gone

    def get(self, key: K) -> V | None:
        ref = self._refs.get(key)
        return None if ref is None else ref()

    def put(self, key: K, value: V) -> None:
        if len(self._refs) >= self._look_at:
            for gone in [k for k, ref in list(self._refs.items()) if ref() is None]:
                self._refs.pop(gone, None)
            self._look_at = 64 + 2 * len(self._refs)
        self._refs[key] = weakref.ref(value)

    def values(self) -> list[V]:
        return [value for ref in list(self._refs.values()) if (value := ref()) is not None]


class WeakList(Generic[V]):
    """Objects in the order in which they came."""

    def __init__(self) -> None:
        self._table = WeakTable[int, V]()
        self._numbers = itertools.count()        # each is used once, so no thread deletes what another has just added

    def add(self, value: V) -> None:
        self._table.put(next(self._numbers), value)

    def values(self) -> list[V]:
        return self._table.values()


class _Left(weakref.ref[Any]):
    """Weak reference with a value that outlives its referent."""

    __slots__ = ("left",)
    left: Any


class Remains(Generic[V]):
    """Values that objects leave behind when they are collected, until somebody takes them."""

    def __init__(self) -> None:
        self._known: dict[int, _Left] = {}
        self._gone: deque[_Left] = deque()       # appending is no Python code, and atomic

    def expect(self, owner: object, left: V) -> None:
        """`left` is to be taken away once nobody holds `owner`."""
        ref = _Left(owner, self._gone.append)
        ref.left = left
        self._known[id(ref)] = ref

    def taken(self) -> Iterator[V]:
        """Values left behind since the last call; each is yielded once, whoever asks."""
        while self._gone:
            try:
                ref = self._gone.popleft()
            except IndexError:                   # another thread was faster
                return
            del self._known[id(ref)]
            yield ref.left
