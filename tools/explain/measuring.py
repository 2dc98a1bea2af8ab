"""Measured times of the kernels of an explanation: its code runs on random arguments, with a clock around each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlc.backends.cpu.clock import CycleClock
from mlc.backends.cpu.targets import host
from mlc.backends.image import compile_image
from mlc.backends.timed import TimedEntry, TimedExecutable, Times
from mlc.dialects import loop
from mlc.dialects.func import Call, Func
from mlc.ir.core import Op
from mlc.ir.instrumentation import TIMES
from mlc.ir.kernel_sites import KernelSite
from mlc.ir.profiling import Memory, state
from mlc.passes import pipeline
from mlc.tools import inputs
from mlc.tools.explain.explanation import Kernel
from mlc.tools.explain.kernels import ancestors
from mlc.tools.explain.lineage import Lineage

CALLS = 10
"""Calls that are timed, after one that is not; the shortest counts."""
Slots = Mapping[str, Sequence[int | str]]
"""The kernels and calls of each function in the order in which passes/time_kernels.py numbers them: a kernel by the
operation that it is from (-1 for none), a call by the name of the function."""


class _Recorder:
    """A profile that keeps the times of each call."""

    def __init__(self) -> None:
        self.times: list[Times] = []

    def add(self, kind: str, name: str, start: int, end: int, operands: Sequence[Any], result: Any,
            memory: Callable[[], Memory] | None = None) -> None:
        """No event is of interest."""

    def made(self, name: str, operands: Sequence[Any], result: Any) -> None:
        """No memory is of interest."""

    def add_times(self, times: Times) -> None:
        self.times.append(times)


def slots(module: Op, lineage: Lineage, kernels: Mapping[int, Kernel]) -> Slots:
    """The slots of a module with kernels that are scheduled, where `outline` is the next pass."""
    out: dict[str, list[int | str]] = {}
    for function in module.inside(Func):
        found = out[str(function.sym_name)] = []
        for op in function.walk():
            if isinstance(op, loop.Kernel):
                found.append(next(ancestors(lineage.number_of[op], lineage, kernels), -1))
            elif isinstance(op, Call):
                found.append(str(op.callee))
    return out


def measured(kernels: Mapping[int, Kernel], slots: Slots, module: Op, numbers: Mapping[str, int]) -> dict[int, Kernel]:
    """The kernels with how often each runs in a call of the module's entry, and how long; `module` is lowered."""
    name = inputs.choose_entry(module, None)
    types = inputs.entries(module)[name].inputs
    own = inputs.size_names(types)
    arrays = inputs.random_arrays(types, 0, {s: n for s, n in numbers.items() if s in own})
    pipeline.resume(module, "llvm", host().machine, added=TIMES)
    entry = TimedExecutable(compile_image(module, host())).entry(name)
    assert isinstance(entry, TimedEntry)
    entry.call(arrays)                                     # its pages are mapped, and its data in the caches
    taken, clock, before = _Recorder(), CycleClock(), state.recorder
    state.recorder = taken
    try:
        for _ in range(CALLS):
            entry.call(arrays)
    finally:
        state.recorder = before
    clock.stop()
    shortest = min(taken.times, key=lambda times: times.end - times.start)
    runs, cycles = shortest.sums[:, 0].tolist(), shortest.sums[:, 1].tolist()
    out = {number: replace(k, runs=0, measured=0.0) for number, k in kernels.items() if not k.callee}
    for slot, number in enumerate(_numbers(slots, name, entry.sites)):
        if number in out:
            seconds = cycles[slot] * clock.nanoseconds_per_cycle / 1e9
            k = out[number]
            out[number] = replace(k, runs=k.runs + runs[slot], measured=(k.measured or 0.0) + seconds)
    return {**kernels, **out}


def _numbers(slots: Slots, entry: str, sites: Sequence[KernelSite]) -> list[int]:
    """The operation of each slot of an entry; -1 for one of a value in its arena."""
    out = list[int]()

    def visit(function: str) -> None:
        for x in slots.get(function, ()):
            if isinstance(x, str):
                visit(x)
            else:
                out.append(x)
        while len(out) < len(sites) and sites[len(out)].live:        # values come behind all kernels of a function
            out.append(-1)

    visit(entry)
    assert len(out) == len(sites), "every slot is a kernel's, or a value's"
    return out
