"""State that a function reaches and Python does not show: positions of iterators, and memory of other packages."""

from __future__ import annotations

import ctypes
import itertools
import operator
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from mlc.frontend.dlpack import from_dlpack
from mlc.frontend.script.reached_state import Contents, ReachedState, same
from mlc.ir.diag import UserError


class ForeignArray(ReachedState):
    """The elements of another package's array, by the DLPack protocol; of one that cannot be shared, its version."""

    __slots__ = ()

    def contents(self) -> Contents:
        try:
            array = from_dlpack(self.x)
        except UserError:
            return (getattr(self.x, "_version", None),), ()
        return (array.shape, array.dtype, array.tobytes()), ()

    def restore(self) -> None:
        if len(self.keys) == 3:
            shape, dtype, elements = self.keys
            np.copyto(from_dlpack(self.x), np.frombuffer(elements, dtype).reshape(shape))


class Memory(ReachedState):
    """The memory of a number, array or structure of ctypes."""

    __slots__ = ()
    CLASSES = (ctypes.c_double.__mro__[1], ctypes.Array, ctypes.Structure, ctypes.Union)

    def contents(self) -> Contents:
        return bytes(self.x), ()

    def restore(self) -> None:
        ctypes.memmove(ctypes.addressof(self.x), bytes(self.keys), len(self.keys))


class Progress(ReachedState):
    """The position of an iterator, if it can be observed; it cannot be restored."""

    __slots__ = ()

    def contents(self) -> Contents:
        if isinstance(self.x, itertools.count):
            return repr(self.x), ()
        if isinstance(self.x, types.GeneratorType):
            frame = self.x.gi_frame
            return ((), ()) if frame is None else ((frame.f_lasti, *frame.f_locals), frame.f_locals.values())
        if isinstance(self.x, enumerate | zip | map | filter):
            return (), self.x.__reduce__()[1]              # the iterators that they consume
        if isinstance(self.x, itertools.cycle | itertools.chain) and sys.version_info < (3, 14):
            _, given, state = (*self.x.__reduce__(), ())[:3]
            if isinstance(self.x, itertools.chain):
                return tuple(operator.length_hint(x, -1) for x in state), state
            return (operator.length_hint(given[0], -1), len(state[0])), ()     # of the items, and of those kept
        found = _consumed(self.x)
        if found is not None and all(map(same, found, _consumed(self.x) or ())):
            return (), found                               # and not others whenever it is asked
        return operator.length_hint(self.x, -1), ()

    def inside(self) -> Iterator[tuple[str, Any]]:
        return ((self.path, value) for value in self.values)

    @property
    def is_known(self) -> bool:
        """Whether the position can be observed; that of itertools.chain, for example, cannot."""
        return self.keys != -1 or bool(self.values)

    def restore(self) -> None:
        pass


_CALLS = type(iter(int, 1))


def _consumed(x: Any) -> list[Any] | None:
    """Iterables that an iterator of itertools consumes, with its own state, or f of iter(f, end); None if unknown."""
    if isinstance(x, _CALLS):
        f = x.__reduce__()[1][0]
        return None if type(getattr(f, "__self__", None)).__name__ == "SRE_Scanner" else [f]
    if type(x).__module__ != "itertools" or sys.version_info >= (3, 14) or isinstance(x, itertools.repeat):
        return None
    try:
        _, given, *own = x.__reduce__()
    except TypeError:                                      # it cannot be copied
        return None
    return [*given, *_parts(own)]


def _parts(x: Any) -> list[Any]:
    """The values in a nest of lists and tuples."""
    return [v for part in x for v in _parts(part)] if isinstance(x, list | tuple) else [x]
