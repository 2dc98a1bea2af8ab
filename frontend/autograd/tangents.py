"""Tangents of dual tensors: what forward mode knows of tensors while a dual level is entered.

A tensor has no slot for its tangent. The level keeps the tangents by the identity of their tensors, and is dropped with
all of them when it is left. The tangent of a view is the same view of the tangent, so that a write to either is seen by
both, as it is in the primals.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.methods import call

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


class DualLevel:
    """The tangents of the tensors of a level. None as a tangent marks what is constant although its base is not."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[weakref.ref[Any], Tensor | None]] = {}
        self.origins: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    def put(self, x: Tensor, tangent: Tensor | None) -> None:
        """Have a tensor be dual from now on, with this tangent."""
        entries, origins, key = self.entries, self.origins, id(x)
        origins.pop(key, None)

        def drop(ref: weakref.ref[Any]) -> None:
            if key in entries and entries[key][0] is ref:  # the id may belong to another tensor by now
                del entries[key]
                origins.pop(key, None)

        entries[key] = weakref.ref(x, drop), tangent

    def knows(self, x: Any) -> bool:
        """Whether the tangent of a tensor, or that it has none, is known without looking at its base."""
        return id(x) in self.entries

    def follow(self, out: Tensor, x: Tensor, step: Any) -> None:
        """Have a view of a tensor that is known not to be dual get the tangent that this one may get later."""
        base, steps = self.origins.get(id(x), (x, ()))
        self.put(out, None)
        self.origins[id(out)] = base, (*steps, step)

    def get(self, x: Any) -> Tensor | None:
        """The tangent of a tensor; None for what has none."""
        found = self.entries.get(id(x))
        if found is not None and found[1] is not None:
            return found[1]
        base, steps = self._origin(x)
        if base is x or id(base) not in self.entries:
            return None
        tangent = self.entries[id(base)][1]                # which it got after the view was made
        if tangent is None:
            return None
        with NoTangents():
            for step in steps:
                tangent = step(tangent)
        self.put(x, tangent)
        return tangent

    def _origin(self, x: Any) -> tuple[Any, tuple[Any, ...]]:
        """The tensor that has the tangent that the one of x is a view of, and the views that lead to it."""
        if id(x) in self.entries:
            return self.origins.get(id(x), (x, ()))
        view = getattr(x, "_view", None)
        return (x, ()) if view is None else (view.base, view.steps)

    def overwrite(self, x: Tensor, new: Tensor | None) -> None:
        """Have the tangent of a tensor that was written to become that of the elements written, in place."""
        if self.get(x) is None and new is None:
            return
        with NoTangents():
            self.writable(x).copy_(0 if new is None else new)

    def writable(self, x: Tensor) -> Tensor:
        """The tangent of a tensor, to write to: zeros if it has none so far, of the whole base if it is a view."""
        found = self.get(x)
        if found is not None:
            return found
        base, _ = self._origin(x)
        with NoTangents():
            self.put(base, call("zeros", base.shape, dtype=base.dtype, device=base.device))
        found = self.get(x)
        assert found is not None
        return found


class _Duals:
    """The level that is entered; None outside of one. Fast paths of compiled functions read the slot."""

    __slots__ = ("level",)

    def __init__(self) -> None:
        self.level: DualLevel | None = None


duals = _Duals()


class NoTangents:
    """Context in which operations on dual tensors give plain tensors."""

    def __enter__(self) -> None:
        self.before, mode.forward = mode.forward, False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        mode.forward = self.before


def active() -> DualLevel | None:
    """The level that operations give tangents in; None if they give none."""
    return duals.level if mode.forward else None


def tangent_of(x: Any) -> Tensor | None:
    """The tangent that an operation sees of an operand; None for what has none."""
    level = duals.level
    return level.get(x) if level is not None and mode.forward else None


def any_tangent(operands: Iterable[Any]) -> bool:
    """Whether an operation sees a tangent of one of its operands."""
    level = active()
    return level is not None and any(level.get(x) is not None for x in operands)


def put_tangent(x: Tensor, tangent: Tensor | None) -> None:
    """Make a tensor dual, if there is a tangent for it."""
    if tangent is not None and duals.level is not None:
        duals.level.put(x, tangent)
