"""The state that a function reaches by itself, around a call that is made twice: as Python and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlc.frontend import tree
from mlc.frontend.captures import take_over
from mlc.frontend.generator import default_generator
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.reached_state import Attributes, Payload
from mlc.frontend.tensor import Tensor, wrap


class StateOfCall:
    """The tensors that a function reaches, their gradients, the objects that hold them, and the default generator, as
    they are before a call."""

    def __init__(self, f: Any) -> None:
        self.f, self.reached = f, Reached({"": f})
        self.tensors = [place.x for place in self.reached.places if isinstance(place, Payload)]
        objects = [place.x for place in self.reached.places if isinstance(place, Attributes)]
        modules = [x for x in objects if isinstance(x, tree.AttributeTree)]
        self.buffers = [(module, name) for module in modules for name in module._buffers]
        self.held = [getattr(module, name) for module, name in self.buffers]
        self.before = self._now()

    def _now(self) -> list[Any]:
        gradients = [None if t._autograd is None else t._autograd.grad for t in self.tensors]
        elements = [t.backing_array.copy() for t in self.tensors]
        kept = [None if g is None else (g, g.backing_array.copy()) for g in gradients]
        return [elements, kept, default_generator.get_state()]

    def values(self) -> dict[tuple[str, int], Tensor]:
        """Copies of the elements of the tensors and of their gradients, by "elements" or "grad" and the tensor's id. A
        buffer of a module is the present one, which Python may have put in place of the one before."""
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
        for tensor, kept in zip(self.tensors, gradients):
            if tensor._autograd is not None:
                tensor._autograd.grad = None if kept is None else kept[0]
            if kept is not None:
                take_over(kept[0], kept[1].copy())
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
