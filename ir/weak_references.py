"""Weak containers and finalization queues whose upkeep runs no Python code during garbage collection.

A signal that arrives while the garbage collector works is raised in the first Python function that runs after it. If
that is the callback of a weak reference or a `__del__`, Python prints the exception and goes on: Ctrl-C is lost. The
containers of the module `weakref` have such callbacks. Those here drop dead references when something is added.
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
    """Weak-value dictionary: an entry lives as long as its value is referenced elsewhere."""

    def __init__(self) -> None:
        self._refs: dict[K, weakref.ref[V]] = {}
        self._look_at = 64                       # number of entries at which dead ones are removed

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
    """List of weak references in order of insertion."""

    def __init__(self) -> None:
        self._table = WeakTable[int, V]()
        self._numbers = itertools.count()        # each is used once, so no thread deletes what another has just added

    def add(self, value: V) -> None:
        self._table.put(next(self._numbers), value)

    def values(self) -> list[V]:
        return self._table.values()


class _Finalizer(weakref.ref[Any]):
    """Weak reference with a value that outlives its referent."""

    __slots__ = ("value",)
    value: Any


class FinalizationQueue(Generic[V]):
    """Values registered with owners, queued when the owner is collected until they are drained."""

    __slots__ = ("_append", "_pending", "_queue")

    def __init__(self) -> None:
        self._pending: dict[int, _Finalizer] = {}
        self._queue: deque[_Finalizer] = deque()
        self._append = self._queue.append              # runs no Python code, and is atomic

    def register(self, owner: object, value: V) -> None:
        """Queue `value` when `owner` is collected."""
        ref = _Finalizer(owner, self._append)
        ref.value = value
        self._pending[id(ref)] = ref

    def __bool__(self) -> bool:
        """Whether values are queued."""
        return bool(self._queue)

    def drain(self) -> Iterator[V]:
        """Values queued since the last call; each is yielded once, to one thread."""
        while self._queue:
            try:
                ref = self._queue.popleft()
            except IndexError:                   # another thread was faster
                return
            del self._pending[id(ref)]
            yield ref.value
