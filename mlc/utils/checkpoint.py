"""Activation checkpointing of eager programs: a function whose intermediate results are computed again by backward.

Only the arguments of a checkpointed call are kept for backward, which calls the function once more: memory for time.
`mlc.checkpoint` does the same within functions that are compiled.

Example:
    >>> x = mlc.tensor(2.0, requires_grad=True)
    >>> y = mlc.utils.checkpoint.checkpoint(lambda x: x * x.exp().log(), x, use_reentrant=False)
    >>> mlc.autograd.grad(y, x)
    (tensor(4., dtype=mlc.float32),)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import mlc.api as api
from mlc.frontend import tree
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.graph import alone, kept
from mlc.frontend.autograd.saved_tensors import Packed, SavedTensorsHooks, save, unpack
from mlc.frontend.generator import default_generator
from mlc.frontend.location import user_loc
from mlc.frontend.script.reach import Reached
from mlc.frontend.signature import name_of
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError
from mlc.ir.weak_references import WeakTable

__all__ = ["checkpoint", "checkpoint_sequential"]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def noop_context_fn() -> Contexts:
    """The contexts of forward and of its repetition: none."""
    return nullcontext(), nullcontext()


@coded
def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], Contexts] = noop_context_fn, determinism_check: str = "default",
               debug: bool = False, early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Call a function without keeping what its operations save for backward, which calls it again instead.

    Gradients by the arguments and by the tensors that the function reaches otherwise are those of a plain call. Within
    a function that is recorded, it is `mlc.checkpoint`.

    Args:
        function: The function. It has to do the same when it is called again.
        args: Its arguments.
        use_reentrant: Accepted for PyTorch's sake: both variants are the one that PyTorch recommends, False.
        context_fn: Function that returns two context managers, for the call and for its repetition.
        determinism_check: "default" to check that the repetition saves tensors of the same shapes and dtypes, or
            "none".
        debug: Accepted for PyTorch's sake.
        early_stop: Accepted for PyTorch's sake: the repetition always goes on to the end.
        preserve_rng_state: Whether the default generator draws the same numbers in the repetition, as for layers such
            as Dropout. The buffers of modules are those of the call in any case.
        kwargs: Its keyword arguments.

    Returns:
        The result of the function.

    Raises:
        UserError: The repetition does something else (MLC0733), raised by backward; or `determinism_check` is neither
            value (MLC0732).

    Example:
        >>> x = mlc.tensor(0.5, requires_grad=True)
        >>> y = mlc.utils.checkpoint.checkpoint(lambda x: mlc.exp(mlc.sin(x)), x, use_reentrant=False)
        >>> y.backward()
        >>> x.grad
        tensor(1.4174242, dtype=mlc.float32)
    """
    if determinism_check not in ("default", "none"):
        raise UserError(f"determinism_check is {determinism_check!r}", code="MLC0732", loc=user_loc(),
                        hint='it is "default" or "none"')
    forward, repetition = context_fn()
    if state.trace is not None:
        with forward:
            return api.checkpoint(function)(*args, **kwargs)
    frame = _Frame(function, args, kwargs, repetition, determinism_check == "default", preserve_rng_state)
    with forward, frame:
        return function(*args, **kwargs)


@coded
def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          **kwargs: Any) -> Any:
    """Call functions one after another in segments, all but the last one by `checkpoint`.

    Args:
        functions: An `nn.Sequential`, or a list of functions of one argument.
        segments: How many segments to form.
        input: Argument of the first function.
        use_reentrant: As of `checkpoint`.
        kwargs: More arguments of `checkpoint`.

    Returns:
        The result of the last function.

    Raises:
        UserError: There are fewer functions than segments, or no segment (MLC0732).

    Example:
        >>> layers = [mlc.sin, mlc.exp, mlc.tanh, mlc.sin]
        >>> x = mlc.tensor(0.5, requires_grad=True)
        >>> mlc.utils.checkpoint.checkpoint_sequential(layers, 2, x, use_reentrant=False).item()
        0.7979684472084045
    """
    every = list(functions)
    if not 1 <= segments <= len(every):
        raise UserError(f"{len(every)} functions cannot be divided into {segments} segments", code="MLC0732",
                        loc=user_loc(), hint="form at least one segment, and no more than there are functions")
    size, x = len(every) // segments, input
    for k in range(segments - 1):
        x = checkpoint(_chain(every[k * size: (k + 1) * size]), x, use_reentrant=use_reentrant, **kwargs)
    return _chain(every[(segments - 1) * size:])(x)


def _chain(functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    def chain(x: Any) -> Any:
        for f in functions:
            x = f(x)
        return x

    return chain


Place = tuple[int, int]
"""Number of a node among those that the function records, and of one of its operands."""


class _Frame(SavedTensorsHooks):
    """One checkpointed call: nodes keep numbers in place of their operands, by which the repetition finds them.

    saved     the arguments
    buffers   the buffers of all modules that the function reaches
    generator  state of the default generator at the call, for the repetition
    handles   what nodes hold, by place, while they hold it
    count     of nodes that have been recorded
    """

    by_place = True

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any],
                 repetition: AbstractContextManager[Any], checks: bool, draws_again: bool) -> None:
        self.function, self.repetition, self.checks = function, repetition, checks
        self.saved = _mapped(lambda x: save([x])[0], (args, keywords))
        self.buffers = _Buffers(Reached({"": (function, args, keywords)}).objects())
        self.handles = WeakTable[Place, Packed]()
        self.generator = default_generator.get_state() if draws_again else None
        self.count = 0
        self.line = user_loc()

    def save(self, given: Sequence[Any], left: Sequence[Any]) -> list[Any]:
        number, self.count = self.count, self.count + 1
        out = []
        for i, x in enumerate(left):
            if type(x) is Tensor:
                handle = Packed(x, (number, i), self.operand)
                self.handles.put((number, i), handle)
                x = handle
            out.append(kept(x))
        return out

    def operand(self, place: Place) -> Tensor:
        """The operand at a place, from the repetition of the call."""
        handle = self.handles.get(place)
        assert handle is not None, "the node that asks holds it"
        if handle.repeated is None:
            self.repeat()
        if handle.repeated is None:
            raise self.differs(f"operand {place[1]} of operation {place[0]} is not there when it is repeated")
        return handle.repeated

    def repeat(self) -> None:
        """Call the function again and keep what its nodes would save."""
        args, keywords = _mapped(lambda x: unpack([x])[0], self.saved)
        second = _Repetition(self)
        now = default_generator.get_state()
        try:
            if self.generator is not None:
                default_generator.set_state(self.generator)
            with GradMode(True), self.buffers.as_before(), self.repetition, second:
                self.function(*args, **keywords)
        finally:
            if self.generator is not None:
                default_generator.set_state(now)
        if self.checks and second.count != self.count:
            raise self.differs(f"it records {self.count} operations, and {second.count} when it is repeated")

    def differs(self, how: str) -> UserError:
        return UserError(f"{name_of(self.function)} does not do the same when backward calls it again: {how}",
                         code="MLC0733", loc=self.line, notes=(f"backward was called at {user_loc()}",),
                         hint="a checkpointed function must not depend on what has changed since, or be called so "
                              "without checkpoint")


class _Buffers:
    """The buffers of modules as they are before a call, such as the keys of layers that draw random numbers."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self.before = [(owner, name, _copied(getattr(owner, name))) for owner in objects
                       if isinstance(owner, tree.AttributeTree) for name in owner._buffers]

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Context in which they are so again; what is assigned or written within it is forgotten."""
        now = [(owner, name, getattr(owner, name)) for owner, name, _ in self.before]
        try:
            for owner, name, value in self.before:
                setattr(owner, name, _copied(value))
            yield
        finally:
            for owner, name, value in now:
                setattr(owner, name, value)


def _copied(value: Any) -> Any:
    """A buffer with elements of its own."""
    return alone(value) if type(value) is Tensor else value


class _Repetition(SavedTensorsHooks):
    """Finds the operands of a repeated call."""

    by_place = True

    def __init__(self, frame: _Frame) -> None:
        self.frame, self.count = frame, 0

    def save(self, given: Sequence[Any], left: Sequence[Any]) -> list[Any]:
        number, self.count = self.count, self.count + 1
        for i, x in enumerate(given):
            handle = self.frame.handles.get((number, i))
            if handle is None or type(x) is not Tensor:
                continue
            array = x.backing_array
            if self.frame.checks and (array.shape, array.dtype) != (handle.shape, handle.dtype):
                raise self.frame.differs(f"operand {i} of operation {number} has shape {list(handle.shape)} and dtype "
                                         f"{handle.dtype}, and {list(array.shape)} and {array.dtype} when it is "
                                         "repeated")
            handle.repeated = kept(x)                      # as it is now, whatever is written to it later
            handle.repeated._autograd = None
        return [None] * len(left)



def _mapped(f: Callable[[Any], Any], x: Any) -> Any:
    """Arguments with f of each tensor in place of it; modules are left as they are."""
    if type(x) is Tensor or type(x) is Packed:
        return f(x)
    if type(x) is list or type(x) is tuple:
        return type(x)(_mapped(f, y) for y in x)
    return {key: _mapped(f, y) for key, y in x.items()} if type(x) is dict else x
