"""Fast paths of compiled functions: which calls native code serves without Python, and what it has to know of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.backends.executable import Entry
from mlc.call import Call
from mlc.checks import Checks
from mlc.dispatch_cache import Specialization, State
from mlc.execution import mark_unrecorded
from mlc.frontend import tree
from mlc.frontend.autocast import process as autocast_guard
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.tangents import duals
from mlc.frontend.captured_inputs import CapturedKey, CapturedNumber, CapturedTensor, Input
from mlc.frontend.captures import in_order
from mlc.frontend.devices import CPU
from mlc.frontend.dispatch import GATE
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.tensor import Consumed, Tensor
from mlc.ir.abi import REPLACES, Interface
from mlc.ir.compilation_lock import compiling
from mlc.ir.profiling import state as profiling
from mlc.recorded_calls import RecordedCalls
from mlc.repeated_call import may_be_over

if TYPE_CHECKING:
    from mlc.backends.cpu.captured import CapturedInputs, Changes
    from mlc.compiled import CompiledFunction


MOST_WANTED = 4
"""Limit on the sets of arguments that require a gradient for which code has a fast path of its own."""


def offer(function: CompiledFunction, state: State, call: Call, code: Specialization,
          for_backward: bool = False) -> None:
    """Add a fast path for calls like this one, provided that the captured state consists of variables only, or is
    guarded by words of memory and what is captured are tensors, numbers of optimizers and random keys.

    A call that is recorded for derivatives takes one of its own, added with `for_backward`. All take the slow path
    while a profile is on.
    """
    captures = code.recorded.captures
    if captures is not None and captures.asks_autograd and any(
            type(x) is Tensor and x._autograd is not None for x in call.given):
        return                                             # the code depends on what autograd knows of them
    if captures is not None and captures.asks_identity:
        return                                             # native code does not compare arguments with each other
    if captures is not None and captures.asks_layout and not all(map(in_order, call.given)):
        return                                             # native code takes arguments in order
    with compiling:                                        # so that no profile begins or ends meanwhile
        if profiling.recorder is not None:
            profiling.later.append(lambda: offer(function, state, call, code, for_backward))
        else:
            _offer_now(function, state, call, code, for_backward)


def offer_recorded(function: CompiledFunction, state: State, call: Call, code: Specialization) -> None:
    """Add a fast path for calls like this one, which has been recorded for derivatives, unless that has been tried."""
    repeated, wanted = code.repeated, _wanted(call)
    if repeated is None or wanted in repeated.offered or len(repeated.offered) >= MOST_WANTED:
        return
    repeated.offered.add(wanted)
    if code.recorded.function is not None and not code.donated:
        offer(function, state, call, code, for_backward=True)


def _wanted(call: Call) -> tuple[int, ...]:
    """The arguments that require a gradient."""
    return tuple([i for i, x in enumerate(call.given) if type(x) is Tensor and x.requires_grad])


def _offer_now(function: CompiledFunction, state: State, call: Call, code: Specialization, for_backward: bool) -> None:
    """The same while no profile is on."""
    recorded, captures, captured = code.recorded, code.recorded.captures, None
    returned = _returned(call, recorded)
    entry = getattr(code.entry, "direct", None)
    if (call.target_device != CPU or type(entry) is not Entry or function.dispatcher is None
            or Checks.anomaly is not None or call.autocast is not None or returned is None):
        return
    variables, checks = state.reached[0].variables, function.check or Checks.every_call
    changes = for_backward or recorded.has_effects or (captures is not None and captures.asks_autograd)
    if changes or (captures is not None and captures.inputs):
        if code.repeated is None:
            return
        captured = _captured(call, code, state, returned if changes else None, for_backward)
        if captured is None:
            return
        variables = []                                     # the guards of the state have them, too
    if variables is None:
        return
    from mlc.backends.cpu.callable import add_fast_path, make_callable
    how = "tensor", Tensor, "_array", Consumed(None, call.signature.name), [
        *variables, (GATE, None, None), (autocast_guard, "autocast", None), (duals, "level", None)]
    if checks:                                             # every call is checked, and this way beside it
        from mlc import checked_paths
        path = make_callable(entry, checked_paths.refused, *how, captured)
        if captured is None:
            function.wrappers.append(path)
        else:
            function.reaching.append((path, captured))
        return
    if captured is not None:
        code.repeated.fast.append(captured)  # type: ignore[union-attr]
    add_fast_path(function.dispatcher, entry, *how, captured)


def _returned(call: Call, recorded: Recorded) -> tuple[int, ...] | None:
    """The numbers of the results that a call returns, one or a tuple of them, or none if it returns None; None if the
    wrapper cannot return what it does, or take its arguments."""
    captures = recorded.captures
    if (call.keywords or any(call.weak) or len(call.given) != len(call.args) or recorded.written
            or any(x is not arg for x, arg in zip(call.given, call.args))      # one that is within a container
            or (captures is not None and (captures.same or captures.requiring))):
        return None
    if not recorded.outputs and [*recorded.structure] == [*tree.flatten(None)[1]]:
        return () if recorded.has_effects else None
    tokens = ["leaf" if t is tree.LEAF else "tuple" if t[0] is tuple else "" for t in recorded.structure]
    count = len(recorded.outputs)
    if any(kind != "result" for kind, _ in recorded.outputs) or tokens != (
            ["leaf"] if count == 1 else ["tuple", *["leaf"] * count]):
        return None
    numbers = tuple(number for _, number in recorded.outputs)
    return numbers if recorded.has_effects or numbers == tuple(range(count)) else None


def _captured(call: Call, code: Specialization, state: State, returned: tuple[int, ...] | None,
              for_backward: bool) -> CapturedInputs | None:
    """The captured inputs of calls like this one, which change what they reach unless `returned` is None; None if
    native code does not do it."""
    from mlc.backends.cpu.captured import CapturedInputs, GradMode
    recorded, captures, own = code.recorded, code.recorded.captures, len(call.arrays)
    assert captures is not None
    inputs, before = _inputs(captures.sources())
    if inputs is None or (before is not None and returned is None):
        return None
    changes, record = None, None
    if for_backward and returned is not None:
        record = RecordedCalls(recorded, own, returned, inputs,
                               lambda given: _with_history(recorded, returned, own, code.entry.interface, given),
                               code.split)
    if returned is not None:
        changes = _changes(call, code, returned, before, record)
        if changes is None:
            return None
    found = CapturedInputs(code.entry, own, inputs, state.guards, GradMode(mode, "enabled"), changes)
    if record is not None:
        record.captured = found
    return found


def _inputs(sources: Sequence[Input]) -> tuple[list[Any] | None, Callable[[], None] | None]:
    """The tensors among the inputs, and arrays for the others, with the function that writes these before a call, if
    there are any; None if an input has to be looked up in each call."""
    inputs, writers = list[Any](), list[Callable[[], None]]()
    for source in sources:
        if isinstance(source, CapturedTensor):
            inputs.append(source.tensor)
        elif isinstance(source, CapturedNumber):
            inputs.append(np.zeros(()))
            writers.append(_writer_of_number(source, inputs[-1]))
        elif isinstance(source, CapturedKey):
            inputs.append(np.zeros(2, np.uint32))
            writers.append(_writer_of_key(source, inputs[-1]))
        else:
            return None, None

    def before() -> None:
        for write in writers:
            write()

    return inputs, before if len(writers) > 1 else writers[0] if writers else None


def _writer_of_number(source: CapturedNumber, array: Any) -> Callable[[], None]:
    memory = memoryview(array)

    def write() -> None:
        memory[()] = source.number()

    return write


def _writer_of_key(source: CapturedKey, array: Any) -> Callable[[], None]:
    def write() -> None:
        array[:] = source.words()

    return write


def _changes(call: Call, code: Specialization, returned: tuple[int, ...], before: Callable[[], None] | None,
             record: RecordedCalls | None) -> Changes | None:
    """The effects of calls, which `record` records for derivatives; None if native code cannot do it: if memory is
    shared, or calls of this mode are recorded and there is no `record`."""
    from mlc.backends.cpu.captured import Changes
    recorded, captures, interface = code.recorded, code.recorded.captures, code.entry.interface
    assert captures is not None
    asks, enabled = captures.asks_autograd, captures.recorded_grad_mode
    history = _with_history(recorded, returned, own := len(call.arrays), interface)
    left = range(len(interface.results) if code.split is None else code.split.results, len(interface.results))
    placed = [*recorded.stored.values(), *(n for _, n in recorded.gradients if n is not None), *left]
    rest = set(range(len(interface.results))) - {*returned}
    if (sorted(placed) != sorted(rest) or any(a >= 0 for a in interface.aliases)
            or captures.keeps_history or captures.uses_changed_leaf
            or any(isinstance(owner, int) for owner, _ in recorded.gradients)
            or any(interface.inputs[own + j] != interface.results[n] for j, n in recorded.stored.items())
            or len({*map(id, captures.tensors())}) < len(captures.tensors())):
        return None
    if record is not None:
        if asks or recorded.gradients or recorded.accumulates or recorded.is_frozen:
            return None
        return Changes([*recorded.stored.items()], (), [], returned, True,
                       _before(before, record.keep) if record.replaces else before,
                       _after_recorded(captures.effects, record), records=True,
                       left=None if code.split is None else left, wanted=_wanted(call))
    if asks and enabled and history and not recorded.accumulates:
        return None
    marked = history if recorded.accumulates else []
    stored = [*recorded.stored.items()]
    over = {n for _, n in may_be_over(code.entry, own, stored)}
    over |= {n for n, at in enumerate(interface.overwrites) if at == REPLACES}
    return Changes(stored, over, [*recorded.gradients], returned, enabled if asks else None, before,
                   _after(call.signature.name, captures.effects, marked))


def _before(write: Callable[[], None] | None, keep: Callable[[], None]) -> Callable[[], None]:
    """The function that writes the inputs that are no tensors, and keeps what the call replaces."""
    def before() -> None:
        if write is not None:
            write()
        keep()

    return before


def _with_history(recorded: Recorded, returned: Sequence[int], own: int, interface: Interface,
                  given: Sequence[int] = ()) -> list[int]:
    """The places of those among the returned results that depend on a captured tensor which requires a gradient, or on
    the arguments `given`; `own` is the number of the arguments before the captured tensors."""
    assert recorded.captures is not None
    wanted = {*given, *(own + j for j, (source, _, _) in enumerate(recorded.captures.inputs)
                        if isinstance(source, CapturedTensor) and source.tensor.requires_grad)}
    return [i for i, n in enumerate(returned) if wanted and interface.results[n].dtype.is_inexact and (
        recorded.depends is None or not wanted.isdisjoint(recorded.depends[n]))]


def _after_recorded(effects: Sequence[Callable[[], Any]], record: RecordedCalls) -> Callable[..., None]:
    """The function of what a call returns, and of its arguments, that does the rest: effects and recording the call."""
    if not effects:
        return record

    def after(*values: Any) -> None:
        for effect in effects:
            effect()
        record(*values)

    return after


def _after(name: str, effects: Sequence[Callable[[], Any]], marked: Sequence[int]) -> Callable[..., None] | None:
    """The same of calls that are not recorded: effects, and marking results of which there is no history."""
    if not effects and not marked:
        return None

    def after(*values: Any) -> None:
        for effect in effects:
            effect()
        if marked:
            mark_unrecorded(name, [values[i] for i in marked])

    return after
