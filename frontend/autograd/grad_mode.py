"""Grad mode: whether operations on tensors that require a gradient are recorded. Each thread has its own."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Captures(Protocol):
    """The tensors that a recorded function reaches by itself, and their `grad`, which a call sets."""

    def gradient(self, owner: Any) -> Any:
        """`owner.grad`."""

    def set_gradient(self, owner: Any, value: Any) -> None:
        """`owner.grad = value`."""

    def note_read(self, tensor: Any) -> None:
        """Note that the program reads the elements of a tensor."""

    def note_assigned(self, module: Any, name: str, before: Any) -> None:
        """Note that a buffer of a module is another tensor now."""

    def grad_mode(self) -> bool:
        """The grad mode that the function is called in."""


class _Mode(threading.local):
    enabled = True
    forward = True
    inherited = False
    captures: Captures | None = None


mode = _Mode()
"""The grad mode of this thread; `mode.enabled` is what the eager path reads. `captures` are those of a function that is
being recorded; `inherited` says that it has not set the mode itself: `enabled` is true then, and what a call records
depends on the mode that it is made in. `forward` says whether operations on dual tensors give dual tensors."""


def is_grad_enabled() -> bool:
    """Whether operations are recorded for `Tensor.backward` in this thread.

    Returns:
        A bool: True but for the scope of `no_grad` and its like.

    Example:
        >>> with mlc.no_grad():
        ...     mlc.is_grad_enabled()
        False
    """
    if mode.inherited and mode.captures is not None:
        return mode.captures.grad_mode()
    return mode.enabled


class GradMode:
    """Base of the context managers that set the grad mode of a thread. An instance also decorates a function."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.before: list[tuple[bool, bool]] = []          # of each entry: a context manager may be entered twice

    def __enter__(self) -> None:
        self.before.append(_set(self.enabled))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        mode.enabled, mode.inherited = self.before.pop()

    def scope(self) -> GradMode:
        """Another context manager of this mode."""
        return GradMode(self.enabled)

    def __call__(self, f: F) -> F:
        """The function `f`, run in this mode; a generator's body runs in it, and its consumer does not."""
        @functools.wraps(f)
        def in_mode(*args: Any, **keywords: Any) -> Any:
            with self.scope():
                return f(*args, **keywords)

        @functools.wraps(f)
        def generator_in_mode(*args: Any, **keywords: Any) -> Any:
            return _GeneratorInMode(self.scope, f(*args, **keywords))

        return generator_in_mode if inspect.isgeneratorfunction(f) else in_mode  # type: ignore[return-value]


class _GeneratorInMode(Generator[Any, Any, Any]):
    """A generator each of whose steps runs in a mode."""

    def __init__(self, scope: Callable[[], GradMode], generator: Generator[Any, Any, Any]) -> None:
        self.scope, self.generator = scope, generator

    def send(self, value: Any) -> Any:
        with self.scope():
            return self.generator.send(value)

    def throw(self, *raised: Any) -> Any:
        with self.scope():
            return self.generator.throw(*raised)


class no_grad(GradMode):
    """Context manager and decorator in whose scope no operation is recorded: results do not require a gradient.

    Evaluation in this scope needs no memory for a backward pass. Tensors that require a gradient still do afterwards.
    The mode is that of the thread, and scopes nest; `enable_grad` undoes it within.

    Example:
        >>> w = mlc.tensor([1.0], requires_grad=True)
        >>> with mlc.no_grad():
        ...     (w * 2).requires_grad
        False
    """

    def __new__(cls, *f: Any) -> Any:
        return super().__new__(cls) if not f else cls()(*f)    # @mlc.no_grad is @mlc.no_grad()

    def __init__(self) -> None:
        super().__init__(False)


class inference_mode(GradMode):
    """`no_grad` under PyTorch's other name; with `mode=False`, it changes nothing.

    Tensors made in the scope may be used anywhere afterwards, also where gradients are computed, which PyTorch refuses.

    Args:
        mode: Whether to disable recording.

    Example:
        >>> with mlc.inference_mode():
        ...     mlc.is_grad_enabled()
        False
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
        self.forward: list[bool] = []                      # of each entry

    def scope(self) -> GradMode:
        return inference_mode(not self.enabled)

    def __enter__(self) -> None:
        super().__enter__()
        self.forward.append(mode.forward)
        mode.forward = mode.forward and self.enabled       # which ends the tangents of dual tensors, too

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        super().__exit__(kind, error, traceback)
        mode.forward = self.forward.pop()


class enable_grad(GradMode):
    """Context manager and decorator in whose scope operations are recorded, also within `no_grad`.

    The mode is that of the thread, and the former one returns at the end of the scope. It does not make tensors require
    a gradient: operations are recorded if one of their operands does.

    Example:
        >>> w = mlc.tensor([1.0], requires_grad=True)
        >>> with mlc.no_grad(), mlc.enable_grad():
        ...     (w * 2).requires_grad
        True
    """

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(GradMode):
    """Set the grad mode at once; as a context manager, restore the former one at the end.

    Args:
        mode: Whether operations are recorded.

    Example:
        >>> with mlc.set_grad_enabled(False):
        ...     mlc.is_grad_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self.outer = _set(bool(mode))

    def __enter__(self) -> None:
        self.before.append(self.outer)
        _set(self.enabled)

    def __call__(self, f: F) -> F:
        mode.enabled, mode.inherited = self.outer
        return super().__call__(f)


class ForwardMode(ContextDecorator):
    """Base of the context manager that sets whether operations on dual tensors give dual tensors: at once."""

    def __init__(self, mode: bool) -> None:
        self.outer, self.before = _set_forward(bool(mode)), list[bool]()
        self.enabled = bool(mode)

    def __enter__(self) -> None:
        self.before.append(self.outer)
        _set_forward(self.enabled)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _set_forward(self.before.pop())

    def __call__(self, f: F) -> F:
        _set_forward(self.outer)
        return super().__call__(f)


def _set_forward(enabled: bool) -> bool:
    """The former mode."""
    before, mode.forward = mode.forward, enabled
    return before


def _set(enabled: bool) -> tuple[bool, bool]:
    """The former mode, and whether it was inherited."""
    before = mode.enabled, mode.inherited
    mode.enabled, mode.inherited = enabled, False
    return before
