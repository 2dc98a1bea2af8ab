"""Buffers of modules that a recorded function reaches by itself, and assigns: each call puts other tensors there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlc.frontend.captures import Captures
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import Tensor
from mlc.frontend.tracer import Tracer
from mlc.frontend.tree import AttributeTree
from mlc.ir.diag import Loc, UserError
from mlc.ir.types import TensorType, from_numpy
from mlc.ir.weak_references import WeakTable


@dataclass(frozen=True)
class AssignedBuffer:
    """A buffer, the tensor that it was, and what is assigned."""

    module: Any
    name: str
    before: Tensor
    new: Any

    @property
    def path(self) -> str:
        return f"{type(self.module).__name__}.{self.name}"


def take(captures: Captures | None) -> list[AssignedBuffer]:
    """The buffers that a function has assigned while it was recorded; restores them."""
    found = []
    for module, name, before in captures.assigned.values() if captures is not None else ():
        new = getattr(module, name)
        if new is not before:
            found.append(AssignedBuffer(module, name, before, new))
            setattr(module, name, before)
    return found


def check(found: Sequence[AssignedBuffer], captures: Captures | None, reached: Any,
          outputs: Sequence[tuple[str, Any]], loc: Loc) -> None:
    """UserError unless each call can assign a result of its own to each buffer, as Python would.

    reached  what the function reaches: a tensor that two of its places hold is one tensor
    outputs  how the result is had, as of `Recorded`
    """
    if captures is None or reached is None:
        return
    for buffer in found:
        why = _why_not(buffer, [x for x in found if x is not buffer], captures) or _why_fixed(
            buffer.before, buffer.module, buffer.name, captures, reached)
        if not why and any(kind == "captured" and x[0] is buffer.before for kind, x in outputs):
            why = "the tensor that it was before is returned"
        if why:
            raise _refusal(buffer.path, why, buffer.name, loc)
        captures.take_by_place(buffer.module, buffer.name, buffer.before)
        reached.drop(buffer.before)                        # which the program may have no more use for
    captures.assigned.clear()
    for module, name in _assigned_by_calls(reached):
        x = getattr(module, name, None)
        if type(x) is not Tensor or any(vars(module) is vars(b.module) and name == b.name for b in found):
            continue
        used = captures.known(x) is not None or any(x is y for y in (*captures.given, *captures.read))
        why = _why_fixed(x, module, name, captures, reached) if used else ""
        if not why:
            captures.take_by_place(module, name, x)
            reached.drop(x)
        elif name in reached.by_place.get(id(vars(module)), ()):
            raise _refusal(f"{type(module).__name__}.{name}", why, name, loc)
    for buffer in found:
        _known.add(buffer.module, buffer.name)


class _Known:
    """The names of the buffers of each module that calls of compiled functions assign."""

    def __init__(self) -> None:
        self._modules = WeakTable[int, Any]()
        self._names: dict[int, set[str]] = {}

    def names(self, module: Any) -> set[str]:
        return self._names[id(module)] if self._modules.get(id(module)) is module else set()

    def add(self, module: Any, name: str) -> None:
        module = getattr(getattr(type(module), "_compilation", None), "module", module)        # whose attributes it has
        names = self.names(module) | {name}
        self._modules.put(id(module), module)
        self._names = {key: x for key, x in self._names.items() if self._modules.get(key) is not None}
        self._names[id(module)] = names


_known = _Known()


def _assigned_by_calls(reached: Any) -> list[tuple[Any, str]]:
    """The modules and names of buffers that a function reaches and that calls assign, of it or another function."""
    return [(x, name) for x in reached.objects() if isinstance(x, AttributeTree) for name in _known.names(x)]


def _refusal(path: str, why: str, name: str, loc: Loc) -> UserError:
    return refusal(f"{path} is assigned, and {why}", code="MLC0615", loc=loc,
                   hint=f"change it in place, as by self.{name}.copy_(...)")


def _why_fixed(x: Tensor, module: Any, name: str, captures: Captures, reached: Any) -> str:
    """Why a buffer cannot be an input whatever tensor it is; "" if it can."""
    if any(x is y for y in (*captures.given, *captures.read)):
        return "the tensor that it was before is an argument, or its elements are read while the function is recorded"
    if x.requires_grad:
        return "it requires a gradient"
    if reached.holds_elsewhere(x, module, name):
        return "the tensor that it was before is held elsewhere, too"
    return ""


def _why_not(buffer: AssignedBuffer, others: Sequence[AssignedBuffer], captures: Captures) -> str:
    from mlc.frontend.backward import depends_on_leaf
    new, before = buffer.new, buffer.before
    if not isinstance(new, Tracer) or new.python_class is not Tensor:
        return "what is assigned is no result of an operation"
    if new.is_argument or new._view is not None or new.maybe or captures.holder_of(new) is not None:
        return "what is assigned is a tensor of outside, or shares memory"
    if any(x.new is new or x.before is before for x in others):
        return "another buffer is the same tensor"
    array = before.backing_array
    if new.type != TensorType(tuple(array.shape), from_numpy(array.dtype)):
        return f"it was a {TensorType(tuple(array.shape), from_numpy(array.dtype))}, and is a {new.type}"
    if depends_on_leaf(new) and captures.grad_mode():
        return "it has a history, which the next call would go on with"
    return ""
