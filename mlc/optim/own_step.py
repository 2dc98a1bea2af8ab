"""Optimizers of PyTorch's kind: their constructor hands parameters and a dict of settings on, and `step` is their own.

Such a `step` changes parameters in place and keeps what it needs in `state`, which it fills when it is first called.
Within a function that is compiled, the first call therefore runs as Python, and the calls after it, which find the
state as it will be, as machine code. Numbers in the state would be constants there, so they become tensors.
"""

from __future__ import annotations

import copy
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.graph import alone
from mlc.frontend.autograd.hooks import RemovableHandle
from mlc.frontend.functions import create
from mlc.frontend.location import user_loc
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state as recording
from mlc.frontend.trace import suspended
from mlc.optim.recorded_step import captures_in_progress


class StepHooks:
    """Functions that are called before and after each step of an optimizer."""

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have `hook(optimizer, args, keywords)` be called before each step.

        Args:
            hook: Function of the optimizer and the arguments of `step`, of which it is the first; it may return others,
                as a pair.

        Returns:
            Handle whose `remove()` takes it away.

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1)
            >>> handle = opt.register_step_pre_hook(lambda *_: print("before"))
            >>> opt.step()
            before
        """
        return _added(vars(self).setdefault("_before_step", {}), hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have `hook(optimizer, args, keywords)` be called after each step.

        Args:
            hook: Function of the optimizer and the arguments of `step`, of which it is the first.

        Returns:
            Handle whose `remove()` takes it away.

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1)
            >>> handle = opt.register_step_post_hook(lambda *_: print("after"))
            >>> opt.step()
            after
        """
        return _added(vars(self).setdefault("_after_step", {}), hook)


def _added(hooks: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.key] = hook
    return handle


def hands_parameters_on(cls: type) -> bool:
    """Whether the constructor of a class takes parameters by itself, and calls that of its base with them."""
    first = [*inspect.signature(cls.__init__).parameters.values()][1:2]  # type: ignore[misc]
    return any("param" in p.name or p.kind is inspect.Parameter.VAR_POSITIONAL for p in first)


class _Stepping(threading.local):
    """The optimizers that make a step in this thread, by their identity: an attribute of theirs would be guarded."""

    def __init__(self) -> None:
        self.optimizers = set[int]()


_stepping = _Stepping()


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` of an optimizer between the hooks on it."""
    @functools.wraps(step)
    def public(self: Any, *args: Any, **keywords: Any) -> Any:
        held, given = vars(self), (self, *args)
        if id(self) in _stepping.optimizers:               # by super().step()
            return step(*given, **keywords)
        _stepping.optimizers.add(id(self))
        try:
            for hook in [*held.get("_before_step", {}).values()]:
                changed = hook(self, given, keywords)
                if changed is not None:
                    given, keywords = changed
            before = _prepared(self) if held.get("_own") is not None and recording.trace is not None else []
            out = step(*given, **keywords)
            _write_back(self, before)
            for hook in [*held.get("_after_step", {}).values()]:
                hook(self, given, keywords)
        finally:
            _stepping.optimizers.discard(id(self))
        return out

    return public


Held = dict[str, Any]


def _prepared(optimizer: Any) -> list[tuple[Held, Held]]:
    """Have the state be one that a recorded step may change: full, and of tensors. Returns that of each parameter, and
    a copy of it."""
    captures, prepared = captures_in_progress("step"), list[tuple[Held, Held]]()
    for p in (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None):
        held = optimizer.state.get(p)
        if not held:
            name = type(optimizer).__name__
            raise refusal(f"the first step of {name} makes its state", code="MLC0996", loc=user_loc(),
                          hint="call the function, or the step, once before")
        with suspended():
            for key in [key for key, x in held.items() if type(x) in (int, float)]:
                held[key] = create.tensor(held[key], dtype="float64" if type(held[key]) is float else "int64")
        captures.made.append(held)
        prepared.append((held, {**held}))
    return prepared


def _write_back(optimizer: Any, prepared: Sequence[tuple[Held, Held]]) -> None:
    """Have the tensors of the state before a recorded step have the elements of those that it has put in their place:
    `state["mean"] = 0.9 * state["mean"] + ...` changes the former one in place."""
    for held, before in prepared:
        for key in {**before, **held}:
            old, new = before.get(key), held.get(key)
            if old is new:
                continue
            if not (isinstance(old, Tensor) and isinstance(new, Tensor) and old.shape == new.shape
                    and old.dtype is new.dtype):
                raise refusal(f"a step of {type(optimizer).__name__} makes {key!r} of a parameter's state another kind "
                              "of value, which would happen once, while it is recorded", code="MLC0996", loc=user_loc(),
                              hint="keep tensors of one shape and dtype in the state, or call the step uncompiled")
            with GradMode(False):
                old.copy_(new)
            held[key] = old


def loaded(held: Mapping[str, Any], p: Tensor) -> dict[str, Any]:
    """A copy of the saved state of a parameter, with floats in its type."""
    def own(name: str, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return copy.deepcopy(x)
        return alone(x.to(p.dtype) if p.is_floating_point() and name != "step" else x)

    return {name: own(name, x) for name, x in held.items()}
