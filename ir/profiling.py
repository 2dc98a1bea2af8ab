"""The hook of profiles: where work is done that a profile reports, it is timed while one is on.

Fast paths do not come here, so a profile closes them (mlc/profiler.py), and costs nothing while it is off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass
class Memory:
    """The memory of a call of a compiled function, besides its arguments and its result.

    reached       the arrays of tensors that it reaches by itself, before the call
    changed       those of these tensors, and gradients, that have other memory after it, each with its name
    result_names  the names of results of the code that are the memory of these: number of the result
    """

    reached: Sequence[Any] = ()
    changed: Sequence[tuple[str, Any]] = ()
    result_names: Mapping[int, str] = field(default_factory=dict)


class Recorder(Protocol):
    """A profile that is on."""

    def add(self, kind: str, name: str, start: int, end: int, operands: Sequence[Any], result: Any,
            memory: Callable[[], Memory] | None = None) -> None:
        """Take an event: its kind and name, nanoseconds of the clock `perf_counter_ns`, and what it took and gave."""

    def made(self, name: str, operands: Sequence[Any], result: Any) -> None:
        """Take what a function has made that is no event, such as `mlc.zeros`."""

    def add_times(self, times: Any) -> None:
        """Take the times of the kernels of a call (backends/timed.py)."""


class _State:
    """The profile that is on, in all threads, and what is to be done when it ends.

    kernels  whether code is made that times its kernels
    """

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.kernels = False
        self.later: list[Callable[[], object]] = []


class _Native(threading.local):
    """When this thread's last call of native code began and ended, while a profile is on."""

    span: tuple[int, int] | None = None


state = _State()
native = _Native()


def timed(kind: str, name: str, work: Callable[[], T], operands: Sequence[Any] = (),
          memory: Callable[[], Memory] | None = None) -> T:
    """The result of `work`; an event of a profile, if one is on.

    An operation takes as long as its native code, if it runs any, not as the path that a profile makes it take.

    kind    "operation", "compiled function", "compilation" or "data"
    memory  asked after the call, of one of a compiled function
    """
    recorder = state.recorder
    if recorder is None:
        return work()
    native.span, start = None, perf_counter_ns()
    result = work()
    end = perf_counter_ns()
    if kind == "operation" and native.span is not None:
        start, end = native.span
    recorder.add(kind, name, start, end, operands, result, memory)
    return result


def enter(function: Callable[..., int], *args: Any) -> int:
    """The result of native code, which is timed while a profile is on."""
    if state.recorder is None:
        return function(*args)
    start = perf_counter_ns()
    status = function(*args)
    native.span = start, perf_counter_ns()
    return status
