"""Saved tensors: the operands that nodes keep for the backward pass, and the hooks that pack them meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ContextDecorator, contextmanager
from typing import Any

from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.graph import Edge, LeafEdge, kept
from mlc.frontend.autograd.hooks import Hook
from mlc.frontend.autograd.tangents import duals, put_tangent, tangent_of
from mlc.frontend.devices import CPU
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.diag import UserError, UserTypeError


class _State(threading.local):
    """The hooks of this thread, innermost last, and the message for a program that adds some where it must not."""

    def __init__(self) -> None:
        self.hooks: list[SavedTensorsHooks] = []
        self.disabled: str | None = None


saving = _State()
"""How operands are saved in this thread."""


class Packed:
    """A saved tensor in the form that a hook gave it; `unpack` is called for each use.

    repeated  the tensor as a repetition of the computation has found it, if there was one
    """

    __slots__ = ("__weakref__", "autograd", "dtype", "on_host", "packed", "repeated", "shape", "tangent",
                 "unpack_hook")

    def __init__(self, tensor: Tensor, packed: Any, unpack_hook: Callable[[Any], Any]) -> None:
        array = tensor.backing_array
        self.shape, self.dtype = array.shape, array.dtype
        self.on_host = tensor.device == CPU
        self.autograd = tensor._autograd
        tangent = tangent_of(tensor)
        self.tangent: Tensor | None = None if tangent is None else kept(tangent)
        self.packed, self.unpack_hook = packed, unpack_hook
        self.repeated: Tensor | None = None

    def unpack(self) -> Tensor:
        """The tensor, with its history."""
        with GradMode(False), no_hooks():
            found = self.unpack_hook(self.packed)
        if type(found) is not Tensor:
            raise UserTypeError(f"the unpack hook of a saved tensor returned a {type(found).__name__}", code="MLC0727",
                                loc=user_loc(), hint="return the tensor that was given to the pack hook")
        array = found.backing_array
        if array.shape != self.shape or array.dtype != self.dtype:
            raise UserTypeError(f"the unpack hook of a saved tensor of shape {list(self.shape)} and dtype {self.dtype} "
                                f"returned one of shape {list(array.shape)} and dtype {array.dtype}", code="MLC0727",
                                loc=user_loc(), hint="return the tensor that was given to the pack hook")
        out: Tensor = kept(found)
        out._autograd = self.autograd
        put_tangent(out, self.tangent)
        return out


class SavedTensorsHooks:
    """Base of the hooks that decide how operands are saved.

    by_place  whether they find saved tensors by their places among those of all nodes, which must not depend on which
              code has served a call
    """

    by_place = False

    def save(self, given: Sequence[Any], left: Sequence[Any]) -> list[Any]:
        """The operands `given` as a node is to keep them; in `left`, those that it does not need are replaced."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        if saving.disabled is not None:
            raise UserError(saving.disabled, code="MLC0728", loc=user_loc(),
                            hint="leave the scope of disable_saved_tensors_hooks first")
        saving.hooks.append(self)
        return self

    def __exit__(self, *raised: object) -> None:
        saving.hooks.remove(self)


class PairOfHooks(SavedTensorsHooks):
    """Hooks of the program: a function of each tensor, and one of what that returned."""

    def __init__(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise UserTypeError(f"{name} is a {type(hook).__name__}, expected a function", code="MLC0727",
                                    loc=user_loc())
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def save(self, given: Sequence[Any], left: Sequence[Any]) -> list[Any]:
        with GradMode(False), no_hooks():
            return [Packed(x, self.pack_hook(x), self.unpack_hook) if type(x) is Tensor else kept(x) for x in left]


def save(given: Sequence[Any], left: Sequence[Any] | None = None) -> list[Any]:
    """Operands as a node keeps them; in `left`, those that it does not need are replaced by something smaller."""
    left = given if left is None else left
    return saving.hooks[-1].save(given, left) if saving.hooks else [kept(x) for x in left]


def save_arrays(given: Sequence[Any]) -> list[Any]:
    """The same for a node whose edges have the histories of the operands: of a tensor only the array is kept, unless
    that may be written to or the tensor is dual."""
    if not keeps_arrays():
        return save(given)
    return [x._array if type(x) is Tensor and x._storage is None else kept(x) for x in given]


def keeps_arrays() -> bool:
    """Whether `save_arrays` keeps arrays at present: there are no hooks, and no dual tensors."""
    return not saving.hooks and duals.level is None


def saved_by_place() -> bool:
    """Whether tensors are saved by their places at present."""
    return bool(saving.hooks) and saving.hooks[-1].by_place


def unpack(saved: Sequence[Any]) -> list[Any]:
    """The operands that were saved."""
    return [x.unpack() if type(x) is Packed else x for x in saved]


def with_histories(operands: list[Any], wrt: Sequence[int], edges: Sequence[Edge]) -> list[Any]:
    """The operands that were saved, those at `wrt` with the histories at the ends of the edges."""
    for i, edge in zip(wrt, edges):
        if type(operands[i]) is not Tensor:
            operands[i] = tensor = wrap(operands[i])
            tensor._autograd = edge.meta if isinstance(edge, LeafEdge) else edge
    return operands


@contextmanager
def no_hooks() -> Iterator[None]:
    """Context in which no hooks are called, as while one runs."""
    before, saving.hooks = saving.hooks, []
    try:
        yield
    finally:
        saving.hooks = before


class Disabled(ContextDecorator):
    """Context in which adding hooks is an error with this message."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __enter__(self) -> None:
        if saving.hooks:
            raise UserError(self.message, code="MLC0728", loc=user_loc(), hint="disable hooks outside of their scope")
        self.before, saving.disabled = saving.disabled, self.message

    def __exit__(self, *raised: object) -> None:
        saving.disabled = self.before
