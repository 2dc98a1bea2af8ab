"""The state around a call that is made twice, as Python and compiled: of what a function reaches by itself, and of the
tensors among its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mlc.frontend import tree
from mlc.frontend.captures import take_over
from mlc.frontend.generator import default_generator
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.reached_state import Attributes, Payload
from mlc.frontend.tensor import Tensor, as_array, wrap

Values = dict[tuple[str, int], Tensor]
"""Copies of the elements of tensors and of their gradients, by "elements" or "grad" and the tensor's id."""


class StateOfCall:
    """The tensors that a function reaches, their gradients, the objects that hold them, and the default generator, as
    they are before a call.

    hooks  functions that the call may run besides
    """

    def __init__(self, f: Any, hooks: Sequence[Any] = ()) -> None:
        self.f, self.reached = f, Reached({"": f, **{f"hook {i}": hook for i, hook in enumerate(hooks)}})
        self.tensors = [place.x for place in self.reached.places if isinstance(place, Payload)]
        objects = [place.x for place in self.reached.places if isinstance(place, Attributes)]
        modules = [x for x in objects if isinstance(x, tree.AttributeTree)]
        self.buffers = [(module, name) for module in modules for name in module._buffers]
        self.held = [getattr(module, name) for module, name in self.buffers]
        self.before = self._now()

    def _now(self) -> list[Any]:
        return [[t.backing_array.copy() for t in self.tensors], _gradients(self.tensors), default_generator.get_state()]

    def values(self) -> Values:
        """Copies of all. A buffer of a module is the present one, which Python may have put in place of the one before.
        """
        found = {("elements", id(t)): t for t in self.tensors}
        found |= {("grad", id(t)): t.grad for t in self.tensors if t.grad is not None}
        found |= {("elements", id(old)): getattr(m, name) for old, (m, name) in zip(self.held, self.buffers)
                  if isinstance(old, Tensor)}
        return {key: wrap(x.backing_array.copy()) for key, x in found.items()}

    def restore(self) -> None:
        """Have all be as before."""
        self.reached.restore()
        self._set(self.before)

    def _set(self, state: list[Any]) -> None:
        elements, gradients, draws = state
        for tensor, array in zip(self.tensors, elements):
            take_over(tensor, array.copy())
        _set_gradients(self.tensors, gradients)
        default_generator.set_state(draws)

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Context in which all is as before the call."""
        now = self._now()
        self._set(self.before)
        try:
            yield
        finally:
            self._set(now)


class ArgumentsOfCall:
    """The tensors and arrays among the arguments of a call, but for those that it gives up, and their gradients and
    hooks before it."""

    def __init__(self, given: Iterable[Any]) -> None:
        self.arguments = list({id(x): x for x in given if tree.is_data(x)}.values())
        self.tensors = [x for x in self.arguments if isinstance(x, Tensor)]
        self.before = _gradients(self.tensors)
        tables: list[Any] = [table for t in self.tensors if (meta := t._autograd) is not None
                             for table in (meta.hooks, meta.after)]
        self._hooks = [(table, dict(table)) for table in tables]

    @property
    def hooks(self) -> list[Any]:
        """The functions that are hooks of the tensors."""
        return [hook[0] if isinstance(hook, tuple) else hook for _, kept in self._hooks for hook in kept.values()]

    def restore_hooks(self) -> None:
        """Have the tensors have their hooks again, after a run in which these may have removed themselves."""
        for table, kept in self._hooks:
            table.clear()
            table.update(kept)

    def values(self, copies: Mapping[int, Tensor] | None = None) -> Values:
        """Copies of all, or of their copies, which a function was called with in their place, by their ids."""
        now = [(id(x), x if copies is None else copies[id(x)]) for x in self.arguments]
        found = {("elements", key): x for key, x in now}
        found |= {("grad", key): x.grad for key, x in now if isinstance(x, Tensor) and x.grad is not None}
        return {key: wrap(np.array(as_array(x))) for key, x in found.items()}

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Context in which they have the gradients that they had before the call."""
        now = _gradients(self.tensors)
        _set_gradients(self.tensors, self.before)
        try:
            yield
        finally:
            _set_gradients(self.tensors, now)


def _gradients(tensors: Sequence[Tensor]) -> list[Any]:
    """The gradient of each tensor, or None, with a copy of its elements."""
    gradients = [None if t._autograd is None else t._autograd.grad for t in tensors]
    return [None if g is None else (g, g.backing_array.copy()) for g in gradients]


def _set_gradients(tensors: Sequence[Tensor], gradients: Sequence[Any]) -> None:
    for tensor, kept in zip(tensors, gradients):
        if tensor._autograd is not None:
            tensor._autograd.grad = None if kept is None else kept[0]
        if kept is not None:
            take_over(kept[0], kept[1].copy())
