"""PyTorch's `torch.profiler`: which operations, compiled functions and kernels a program runs, how long, at which line.

    with mlc.profiler.profile(kernels=True, profile_memory=True) as p:
        train()
    print(p.kernels().table())                             # by kernel, by line and by module
    print(p.memory().table())                              # who owns the bytes at the peak
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    p.export_chrome_trace("trace.json")                    # for ui.perfetto.dev, chrome://tracing and TensorBoard
    p.export_flame_graph("flame.svg")

Measured are calls, on the CPU that makes them: of operations that run at once, of compiled functions, compilations, the
batches of a DataLoader, and the parts of the program that `record_function` names. Views move no elements, and have no
events. While a profile is on, calls take the general path through Python. The time of an operation is that of its
native code, without this path; the times of other events include it.

With `kernels`, code is made anew that reads the cycle counter of the processor around each kernel, which takes about 50
nanoseconds; other code stays as it is. A kernel's time is that of the thread that calls it, from the moment at which it
is handed to the threads until the last has finished. A kernel that several lines were fused into counts at the line
with most of its floating-point operations; that of a gradient at the line that is differentiated. Of an operation that
runs at once, it is the line of the call. Operations and bytes are counted from the IR: polynomials that stand for
elementary functions as their steps, and each element that is read or written once.

Example:
    >>> with mlc.profiler.profile() as p:
    ...     with mlc.profiler.record_function("sums"):
    ...         _ = mlc.ones(3).sum()
    >>> "sums" in {row.key for row in p.key_averages()}
    True
"""

from __future__ import annotations

import atexit
import os
import platform
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from types import TracebackType
from typing import Any

from mlc import profile_paths
from mlc.backends.cpu.clock import CycleClock
from mlc.backends.timed import Times
from mlc.flame_graph import flame_graph
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import not_written, write_file
from mlc.ir import html
from mlc.ir.diag import Loc, UserError
from mlc.ir.kernel_sites import SourceLine
from mlc.ir.profiling import Memory
from mlc.profile_kernels import CallSurroundings, Kernels, TimedCall, kernels_of, shown
from mlc.profile_labels import record_function
from mlc.profile_memory import CallMemory, Owner, Peak, Results, made, peak_of
from mlc.profile_results import Averages, Event, averages, chrome_trace, nested, write_json
from mlc.profile_schedule import ProfilerAction as ProfilerAction
from mlc.profile_schedule import schedule
from mlc.roofline import Limits

MOST_WORDS = 1 << 23
"""Eight-byte words of the times of calls that are kept for each call by itself."""
_recording = threading.RLock()
"""Held while the state of a profile changes: several threads may run what is profiled. A signal's handler may call
operations within."""
os.register_at_fork(after_in_child=_recording._at_fork_reinit)  # type: ignore[attr-defined]
__all__ = ["profile", "record_function", "schedule", "tensorboard_trace_handler"]


class ProfilerActivity(Enum):
    """The kinds of work that PyTorch's profiles tell apart; mlc measures calls on the CPU."""

    CPU = 0
    CUDA = 1


@coded
def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False
                              ) -> Callable[[profile], None]:
    """Make a function for `on_trace_ready` that writes each trace to a folder, as TensorBoard expects it.

    Args:
        dir_name: The folder, made if it is missing.
        worker_name: Start of the files' names; that of the machine and the process by default.
        use_gzip: Whether the files are compressed.

    Returns:
        Function of a profile.

    Raises:
        UserError: A file cannot be written (MLC0393), when the function is called.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with mlc.profiler.profile(on_trace_ready=mlc.profiler.tensorboard_trace_handler(folder, "a")):
        ...     _ = mlc.ones(2) + 1
        >>> [name.endswith(".pt.trace.json") for name in os.listdir(folder)]
        [True]
    """
    def handler(p: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise not_written(dir_name, error) from None
        worker = worker_name or f"{platform.node()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip
        p.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class profile:
    """Context in which calls are timed.

    Args:
        activities: `ProfilerActivity`s; that of CUDA adds nothing, and warns.
        schedule: Function of the number of a step that says whether it is recorded; None for all. `step()` ends a step.
        on_trace_ready: Function of the profile, called at the end, or after each cycle of the schedule.
        record_shapes: Whether the shapes of operands are kept.
        profile_memory: Whether the bytes of results that are no views are counted, until they are freed.
        with_stack: Accepted for PyTorch's sake: every event has the line of the program that asked for it.
        with_flops: Floating-point operations are counted with `kernels`; True without it is refused.
        with_modules: Accepted for PyTorch's sake: what runs in the `forward` of a module has its path.
        kernels: Whether code is made that times its kernels, for operations and compiled functions alike; the first
            call of each compiles it anew. `kernels()` sums them up, and they are events of their own.

    Raises:
        UserError: Something is asked for that is not measured, or the profile is on already (MLC0796).

    Example:
        >>> x = mlc.ones(3, 3)
        >>> with mlc.profiler.profile() as p:
        ...     with mlc.profiler.record_function("product"):
        ...         _ = x @ x
        >>> sorted({row.key for row in p.key_averages()} - {"matmul"})
        ['product']
    """

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, kernels: bool = False) -> None:
        if with_flops and not kernels:
            raise UserError("profile: with_flops counts the operations of kernels", code="MLC0796", loc=user_loc(),
                            hint="profile(kernels=True) measures them, and p.kernels() has their sums")
        if ProfilerActivity.CUDA in (activities or ()):
            warnings.warn("mlc.profiler measures calls on the CPU, and nothing on devices", stacklevel=3)
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._on_trace_ready, self._record_shapes, self._profile_memory = on_trace_ready, record_shapes, profile_memory
        self._kernels = kernels
        self.step_num = 0
        self._action = ProfilerAction.NONE
        self._is_on = False
        self._clear()

    def _clear(self) -> None:
        self._events: list[Event] = []
        self._results = Results()
        self._nested: list[Event] | None = None
        self._timed: list[TimedCall] = []
        self._summed: dict[Any, TimedCall] = {}            # the calls since there are too many, by what was called
        self._words = 0
        self._pending: dict[int, list[Times]] = {}         # by thread, of calls whose function is not known yet
        self._clock = CycleClock() if self._kernels else None
        self._begin = time.perf_counter_ns()

    # -- on and off ---------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin, as `with` does."""
        if self._is_on:
            raise UserError("this profile is on already", code="MLC0796", loc=user_loc(),
                            hint="end it first, or make another: several may be on")
        self._clear()
        self._has_ended = False
        self.step_num = 0
        self._turn(self._schedule(0))

    def stop(self) -> None:
        """End, as the end of `with` does."""
        self._has_ended = True
        recording = self._action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._turn(ProfilerAction.NONE)
        with _recording:
            self._results.drop_freed(time.perf_counter_ns() - self._begin)
        if recording and self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def step(self) -> None:
        """End a step of the schedule; of a profile that has ended it is nothing."""
        if self._has_ended:
            return
        if self._action is ProfilerAction.RECORD_AND_SAVE and self._on_trace_ready is not None:
            self._on_trace_ready(self)
        self.step_num += 1
        before, after = self._action, self._schedule(self.step_num)
        if after in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) and before is not ProfilerAction.RECORD:
            self._clear()
        self._turn(after)

    def _turn(self, action: ProfilerAction) -> None:
        """Take or leave the paths on which calls are timed."""
        if action is not ProfilerAction.NONE and not self._is_on:
            profile_paths.begin(self, self._kernels)
            self._is_on = True
            atexit.register(self._turn, ProfilerAction.NONE)           # before what it needs is gone
        elif action is ProfilerAction.NONE and self._is_on:
            if self._clock is not None:
                self._clock.stop()
            self._is_on = False
            atexit.unregister(self._turn)
            profile_paths.end(self)
        self._action = action

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if error is None:
            self.stop()
        else:
            self._turn(ProfilerAction.NONE)

    # -- events -------------------------------------------------------------------------------------------------------
    def add(self, kind: str, name: str, start: int, end: int, operands: Sequence[Any], result: Any,
            memory: Callable[[], Memory] | None = None) -> None:
        """Take an event.

        Args:
            kind: Its kind.
            name: Its name.
            start: Nanoseconds of the clock when it began.
            end: Nanoseconds when it ended.
            operands: Arrays that it took.
            result: What it gave.
            memory: Function that says what else a call of a compiled function has to do with memory.
        """
        thread, loc = threading.get_native_id(), user_loc()
        called = self._pending.pop(thread, []) if kind in ("operation", "compiled function") else []
        if self._action in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            return
        line = SourceLine(loc.file, loc.line, loc.scope)
        shapes = tuple(tuple(x.shape) for x in operands) if self._record_shapes else ()
        with _recording:
            self._nested = None
            around, total = None, 0
            if self._profile_memory and kind in ("operation", "compiled function"):
                around, total = self._memory_of(name, loc, start, end, operands, result, memory)
            for times in called:                           # those before it are of code that is called otherwise
                if times.end < start:
                    self._keep(TimedCall(times, times.entry.interface.name))
                else:
                    self._keep(TimedCall(times, name, line if kind == "operation" else None, around))
            self._events.append(Event(name, kind, shown(line), thread, start - self._begin, end - start, shapes, total,
                                      module=loc.scope))

    def _memory_of(self, name: str, loc: Loc, start: int, end: int, operands: Sequence[Any], result: Any,
                   memory: Callable[[], Memory] | None) -> tuple[CallSurroundings | None, int]:
        """Count what a call has made: the memory around it, of a compiled function, and the bytes."""
        self._results.drop_freed(start - self._begin)
        owner = Owner("tensor", name, 0, shown(SourceLine(loc.file, loc.line)), loc.scope)
        held = None if memory is None else memory()
        around = None if held is None else self._results.around(operands, held)
        total = self._results.add(made(result, operands), owner, end - self._begin)
        for path, tensor in () if held is None else held.changed:
            total += self._results.add(made(tensor, operands), replace(owner, name=path or name), end - self._begin)
        return around, total

    def made(self, name: str, operands: Sequence[Any], result: Any) -> None:
        """Take what a function has made that is no event, such as `mlc.zeros`.

        Args:
            name: Its name.
            operands: Arrays that it took.
            result: What it gave.
        """
        if self._profile_memory and self._action not in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            now, loc = time.perf_counter_ns() - self._begin, user_loc()
            owner = Owner("tensor", name, 0, shown(SourceLine(loc.file, loc.line)), loc.scope)
            with _recording:
                self._results.drop_freed(now)
                self._results.add(made(result, operands), owner, now)

    def add_times(self, times: Times) -> None:
        """Take the times of the kernels of a call, whose event follows.

        Args:
            times: What the code says.
        """
        if self._kernels and self._action not in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            self._pending.setdefault(times.thread, []).append(times)

    def _keep(self, call: TimedCall) -> None:
        """Take the times of a call: by themselves, or once there are too many, as a part of a sum."""
        self._words += call.times.size
        if self._words <= MOST_WORDS:
            self._timed.append(call)
            return
        key = call.times.entry, call.name, call.line
        if (before := self._summed.get(key)) is not None:
            before.times.add(call.times)
        else:
            self._summed[key] = call.without_events()
            self._timed.append(self._summed[key])

    def _calls(self) -> list[TimedCall]:
        """The calls of timed code; of those that no event followed, under the names that their code has."""
        with _recording:
            for thread in list(self._pending):
                for times in self._pending.pop(thread):
                    self._keep(TimedCall(times, times.entry.interface.name))
        return self._timed

    def events(self) -> list[Event]:
        """List the events by their beginnings.

        Returns:
            List of events, those of a cycle where there is a schedule.
        """
        with _recording:
            if self._nested is None:
                for event in self._events:
                    event.children = 0
                self._nested = nested([*self._events, *self._kernel_events()])
            return self._nested

    def _kernel_events(self) -> Iterator[Event]:
        """The kernels of all calls, as events within these."""
        if self._clock is None:
            return
        for call in self._calls():
            times, sites = call.times, call.times.entry.sites
            starts, ends = (self._clock.nanoseconds(times.events[:, i]).astype(int) - self._begin for i in (1, 2))
            for slot, start, end in zip(times.events[:, 0].tolist(), starts.tolist(), ends.tolist()):
                line = sites[slot].lines[0] if call.line is None else call.line
                yield Event(call.label(sites[slot]), "kernel", shown(line), times.thread, start, end - start,
                            module=line.scope)

    def kernels(self, limits: Limits | None = None) -> Kernels:
        """Sum up the kernels of compiled functions and operations.

        Args:
            limits: Limits of the machine, to compare with.

        Returns:
            The kernels, by kernel, line and module; `table()` is text.

        Raises:
            UserError: The profile times no kernels (MLC0796).
        """
        if self._clock is None:
            raise UserError("the profile times no kernels", code="MLC0796", loc=user_loc(),
                            hint="profile(kernels=True)")
        return kernels_of(self._calls(), self._clock.nanoseconds_per_cycle / 1e9, limits)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages:
        """Sum the events by name.

        Args:
            group_by_input_shape: Whether events with operands of other shapes are apart; needs `record_shapes`.
            group_by_stack_n: Above 0, events of different lines are apart.

        Returns:
            The sums, whose `table()` is text.

        Raises:
            UserError: Shapes were not recorded (MLC0796).
        """
        if group_by_input_shape and not self._record_shapes:
            raise UserError("the profile has no shapes", code="MLC0796", loc=user_loc(),
                            hint="profile(record_shapes=True)")
        return averages(self.events(), group_by_stack_n > 0, group_by_input_shape, self._profile_memory)

    def memory(self) -> Peak:
        """Find the moment at which the most memory was in use, with the owners of all bytes.

        It is in a call of a compiled function, with its arguments, its results, the values in its arena and all tensors
        that live beside it; or after an operation, with all tensors that were alive. Tensors that were made before the
        profile count where compiled functions take them.

        Returns:
            The peak; `table()` is text.

        Raises:
            UserError: The profile counts no memory, or times no kernels (MLC0796).

        Example:
            >>> with mlc.profiler.profile(kernels=True, profile_memory=True) as p:
            ...     x = mlc.ones(1000) + 1
            >>> p.memory().owners[0].bytes
            4000
        """
        if not self._profile_memory or not self._kernels:
            raise UserError("the profile does not know the owners of memory", code="MLC0796", loc=user_loc(),
                            hint="profile(kernels=True, profile_memory=True)")
        calls = self._calls()
        with _recording:
            return peak_of(calls, self._results)

    def memory_timeline(self) -> list[tuple[float, int]]:
        """List the bytes of results that were alive, which `profile_memory` counts.

        A result that is freed counts until the next event.

        Returns:
            List of pairs of microseconds since the beginning, and the bytes from then on.
        """
        return [(at / 1e3, count) for at, count in self._results.timeline]

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write the memory timeline as JSON.

        Args:
            path: Name of the file; it is compressed if that ends with .gz.
            device: Accepted for PyTorch's sake.

        Raises:
            UserError: The profile counts no memory (MLC0796), or the file cannot be written (MLC0393).
        """
        if not self._profile_memory:
            raise UserError("the profile counts no memory", code="MLC0796", loc=user_loc(),
                            hint="profile(profile_memory=True)")
        write_json(path, {"microseconds": [at for at, _ in self.memory_timeline()],
                          "bytes": [count for _, count in self._results.timeline]})

    def export_flame_graph(self, path: str, title: str = "mlc") -> None:
        """Write the kernels as a flame graph: an SVG file for any browser.

        Args:
            path: Name of the file.
            title: Text above it.

        Raises:
            UserError: The profile times no kernels (MLC0796), or the file cannot be written (MLC0393).
        """
        write_file(path, [flame_graph(self.kernels().by_module_path, title).encode()])

    def _repr_html_(self) -> str:
        found = self.kernels()
        if not found.rows:
            return html.plain(self.key_averages().table(row_limit=20))
        graph = flame_graph(found.by_module_path, "mlc")
        return found._repr_html_() + html.framed(graph, 40 + int(graph.split('height="')[1].split('"')[0]))

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace for chrome://tracing and https://ui.perfetto.dev, in which events have their lines.

        Args:
            path: Name of the file; it is compressed if that ends with .gz.

        Raises:
            UserError: The file cannot be written (MLC0393).
        """
        write_json(path, chrome_trace(self.events(), self._results.timeline, self._memory_counters()))

    def _memory_counters(self) -> Iterator[tuple[str, int, dict[str, int]]]:
        """The memory of each call of compiled functions: a name, nanoseconds since the beginning, and bytes by kind."""
        if self._clock is None or not self._profile_memory:
            return
        for call in self._calls():
            if call.line is None and len(call.times.events):
                starts = self._clock.nanoseconds(call.times.events[:, 1]).astype(int) - self._begin
                found = CallMemory(call).counters()
                for event, kinds in found:
                    yield f"memory of {call.name}", int(starts[event]), kinds
                yield f"memory of {call.name}", call.times.end - self._begin, dict.fromkeys(found[0][1], 0)


coded_methods(profile, ("__init__", "start", "kernels", "memory", "key_averages", "export_memory_timeline",
                        "export_flame_graph", "export_chrome_trace"))
