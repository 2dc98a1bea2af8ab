"""Hooks of the recorded graph: functions that backward calls, and the handles that remove them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError

Hook = Callable[..., Any]
_keys = itertools.count()


class RemovableHandle:
    """Registration of a hook.

    Example:
        >>> x = mlc.tensor([1.0], requires_grad=True)
        >>> handle = x.register_hook(lambda gradient: 2 * gradient)
        >>> handle.remove()
    """

    def __init__(self, *registries: dict[int, Any]) -> None:
        self.registries, self.key = registries, next(_keys)

    def remove(self) -> None:
        """Unregister the hook."""
        for hooks in self.registries:
            hooks.pop(self.key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *raised: object) -> None:
        self.remove()


class NodeHooks:
    """The hooks of a node, by the keys that remove them, and what the program stores with it.

    before    functions of the gradients of the outputs
    after     functions of the gradients of the inputs and those of the outputs
    metadata  as the program likes
    of_results  functions of the gradients of results, by the numbers of these
    retained  the metadata of the results whose gradient is accumulated, by their numbers
    """

    __slots__ = ("after", "before", "metadata", "of_results", "retained")

    def __init__(self) -> None:
        self.before: dict[int, Hook] = {}
        self.after: dict[int, Hook] = {}
        self.metadata: dict[Any, Any] = {}
        self.of_results: dict[int, dict[int, Hook]] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}

    def run_before(self, outputs: Sequence[Any], name: str) -> Sequence[Any]:
        """The gradients of the outputs after the hooks."""
        for hook in list(self.before.values()):
            outputs = _replaced(hook(tuple(outputs)), outputs, name)
        return outputs

    def run_after(self, inputs: Sequence[Any], outputs: Sequence[Any], name: str) -> Sequence[Any]:
        """The gradients of the inputs after the hooks."""
        for hook in list(self.after.values()):
            inputs = _replaced(hook(tuple(inputs), tuple(outputs)), inputs, name)
        return inputs


def check_gradient(changed: Any, gradient: Any) -> None:
    """UserTypeError unless `changed`, which a hook returned, can take the place of a gradient."""
    if getattr(changed, "shape", None) == gradient.shape and changed.dtype is gradient.dtype:
        return
    shown = f"a {type(changed).__name__}" if not hasattr(changed, "dtype") else (
        f"one of shape {list(changed.shape)} and dtype {changed.dtype}")
    raise UserTypeError(f"a hook returned {shown} for a gradient of shape {list(gradient.shape)} and dtype "
                        f"{gradient.dtype}", code="MLC0436", loc=user_loc(),
                        hint="return a tensor of the same shape and dtype, or None to leave it as it is")


def _replaced(changed: Any, gradients: Sequence[Any], name: str) -> Sequence[Any]:
    """The gradients that a hook of a node returned; None leaves them as they are."""
    if changed is None:
        return gradients
    if not isinstance(changed, tuple | list) and len(gradients) == 1:
        changed = (changed,)
    if not isinstance(changed, tuple | list) or len(changed) != len(gradients):
        shown = f"{len(changed)} gradients" if isinstance(changed, tuple | list) else f"a {type(changed).__name__}"
        raise UserTypeError(f"a hook of {name} returned {shown} for {len(gradients)}", code="MLC0436", loc=user_loc(),
                            hint="return a tuple with a gradient or None for each, or None to leave all as they are")
    for new, old in zip(changed, gradients):
        if new is not None and old is not None:
            check_gradient(new, old)
    return changed
