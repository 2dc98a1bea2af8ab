"""`record_function`: parts of a program that have names in profiles."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from mlc.ir.profiling import state


class record_function:
    """Context, or decorator, that gives a part of the program a name in profiles.

    A generator, or a coroutine, that is decorated counts from its first step to its last, with what runs in between.

    Args:
        name: The name.
        args: Accepted for PyTorch's sake.

    Example:
        >>> with mlc.profiler.profile() as p, mlc.profiler.record_function("sum"):
        ...     _ = mlc.ones(3).sum()
        >>> p.events()[0].name
        'sum'
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._starts: dict[int, list[int]] = {}            # by thread: one object may name parts of several

    def __enter__(self) -> record_function:
        self._starts.setdefault(threading.get_ident(), []).append(time.perf_counter_ns())
        return self

    def __exit__(self, *error: object) -> None:
        thread = threading.get_ident()
        start = self._starts[thread].pop()
        if not self._starts[thread]:
            del self._starts[thread]
        if state.recorder is not None:
            state.recorder.add("label", self.name, start, time.perf_counter_ns(), (), None)

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def labelled(*args: Any, **keywords: Any) -> Any:
            with record_function(self.name):
                return f(*args, **keywords)

        @functools.wraps(f)
        def generator(*args: Any, **keywords: Any) -> Any:
            with record_function(self.name):
                return (yield from f(*args, **keywords))

        @functools.wraps(f)
        async def coroutine(*args: Any, **keywords: Any) -> Any:
            with record_function(self.name):
                return await f(*args, **keywords)

        if inspect.isgeneratorfunction(f):
            return generator
        return coroutine if inspect.iscoroutinefunction(f) else labelled
