"""The state of modules: buffers that a function assigns while it is recorded.

A recorded function assigns tracers, which are meaningless outside of it. So the new buffers become additional results
of the function, and after a call they are assigned to the modules that were passed, as in eager execution.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Any

from mlc.frontend import tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError


def is_called() -> bool:
    """Whether what is recorded is the outermost function, or one that it calls, once: no transformed one."""
    trace = state.trace
    while trace is not None and trace.is_call:
        trace = trace.parent
    return trace is None or trace.parent is None


class _InProgress(threading.local):
    """The buffers of the functions being recorded in this thread, by weak reference."""

    def __init__(self) -> None:
        self.known: list[weakref.ref[Buffers]] = []


_in_progress = _InProgress()


class Buffers:
    """The buffers of all modules in some trees, with their values at construction."""

    def __init__(self, *trees: Any) -> None:
        self.slots = [(owner, name) for owner in tree.attribute_trees(trees) for name in owner._buffers
                      if hasattr(owner, name)]
        self.before = [getattr(owner, name) for owner, name in self.slots]
        if self.slots:
            _in_progress.known = [x for x in _in_progress.known if x() is not None] + [weakref.ref(self)]

    @staticmethod
    def in_progress() -> Buffers:
        """The buffers that the functions being recorded may assign, with their current values."""
        out = Buffers()
        slots = {(id(owner), name): (owner, name) for x in _in_progress.known if (b := x()) for owner, name in b.slots}
        out.slots = list(slots.values())
        out.before = [getattr(owner, name) for owner, name in out.slots]
        return out

    def path(self, number: int) -> str:
        owner, name = self.slots[number]
        return f"{type(owner).__name__}.{name}"

    def restore(self) -> None:
        """Restore the buffers of the modules."""
        self.assign(dict(enumerate(self.before)))

    def take(self) -> dict[int, Tensor]:
        """The new values of the assigned buffers by number; restores the buffers of the modules."""
        now = [getattr(owner, name) for owner, name in self.slots]
        new = {i: x for i, (x, old) in enumerate(zip(now, self.before)) if x is not old}
        self.assign({i: self.before[i] for i in new})
        for i in new:
            held, (owner, name) = self.before[i], self.slots[i]
            if type(held) is not Tensor:
                continue
            if mode.captures is None or not is_called():
                raise UserError(f"{type(owner).__name__}.{name} is assigned, but the module is no argument of the "
                                "function that is recorded: the new value would be lost", code="MLC0384",
                                loc=user_loc(), hint="pass the module as an argument, or call its eval() first")
            mode.captures.note_assigned(owner, name, held)  # of a module that the function reaches by itself
        return new

    def assign(self, values: Mapping[int, Any]) -> None:
        for i, x in values.items():
            owner, name = self.slots[i]
            setattr(owner, name, x)
