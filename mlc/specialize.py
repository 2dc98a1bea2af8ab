"""Specialization of a function for new arguments: for symbolic sizes, for static sizes, or as plain Python.

This module chooses the specialization and registers it; `build` generates the code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mlc import fast_path, recompilation
from mlc.call import Call
from mlc.dispatch_cache import PYTHON, DispatchCache, ForSizes, RunAsPython, Specialization, State
from mlc.frontend.generalize import Axis, Note, asks_for_numbers, note_of, record_for_sizes
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.refusals import in_progress
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.report import UNRECORDED, Report
from mlc.ir import logs
from mlc.ir.diag import Error, UserError
from mlc.ir.passes import no_collection
from mlc.ir.types import TensorType
from mlc.variant import bound_key, variant_of

if TYPE_CHECKING:
    from mlc.compiled import CompiledFunction

FILLED = ("MLC0996", "MLC0997")
"""Errors of functions that make what they reach, where it is not there yet."""
MOST_FILLED = 8
"""Number of calls that may run as Python for that."""
MOST_NUMBERS = 64
"""Number of specializations of a function for numbers that have to be known, from which on it runs as Python for
others."""
Record = Callable[[Call, Reached], Recorded]
Build = Callable[[Call, Recorded, bool], Specialization]


def specialize(function: CompiledFunction, cache: DispatchCache, call: Call, record: Record,
               build: Build, again: bool = False) -> Specialization | RunAsPython:
    """The code for a call, made if no other thread has made it meanwhile; or that the function runs as Python for it.

    cache          the specializations that it becomes one of
    record, build  record the function for a call, and make code of what is recorded
    again          whether numbers are static since it could not be recorded: then it does not run as Python
    """
    with cache.lock, no_collection():
        state = cache.state()
        if state.is_of_other_types():
            cache.forget()
            state = cache.state()
        found = state.known.get(call.lookup) or state.fitting(call)
        if found is not None:
            return found
        if call.signature.asked and not call.is_of_few_numbers(MOST_NUMBERS):
            _warn(call)
            return PYTHON
        brought = Reached(call.brings())
        state.reached += [brought] if brought.places else []
        notes: list[Note] = []
        try:
            code = _for_many_sizes(function, cache, state, call, notes, record, build)
            if code is None:
                recorded = record(call, state.reached[0])
                code = _learn(function, cache, state, call, notes, build(call, recorded, cache.timed))
        except UserError as error:
            if error.code in FILLED and function.filled < MOST_FILLED:
                function.filled += 1
                return PYTHON                              # in this call: what the function reaches is complete then
            before = call.signature.static, call.signature.asked
            if any(map(call.know_numbers, in_progress.asked)):
                try:
                    return specialize(function, cache, call, record, build, True)      # for these numbers
                except UserError:
                    call.know_again(*before)               # which did not help
                    if again or not function.fallback:
                        raise
            if again or not function.fallback or error.code not in UNRECORDED:
                raise
            function.reports.append(_report(call, notes, error))
            return cache.run_as_python(call)
        captures = code.recorded.captures
        if captures is not None and captures.asks_autograd and not call.signature.sees_autograd:
            call.signature.sees_autograd = True
            call.see_autograd()
        if captures is not None and captures.asks_layout and not call.signature.sees_layout:
            call.signature.sees_layout = True
            call.see_layout()
        if captures is not None and captures.asks_identity and not call.signature.sees_identity:
            call.signature.sees_identity = True
            call.see_identity()
        state.known[call.lookup] = code
        return code


def _warn(call: Call) -> None:
    """Warn, once, of a function that has been compiled for too many numbers."""
    signature = call.signature
    if not signature.warned:
        signature.warned = True
        names = ", ".join(sorted(signature.asked))
        loc = user_loc()
        warnings.warn_explicit(
            f"{signature.name} has been compiled for {MOST_NUMBERS} numbers, as {names} has to be known while it is "
            "recorded; for others it runs as Python. Pass a tensor, and pick by indices or mlc.where", UserWarning,
            loc.file, loc.line)


def _for_many_sizes(function: CompiledFunction, cache: DispatchCache, state: State, call: Call, notes: list[Note],
                    record: Record, build: Build) -> Specialization | None:
    """Code for many sizes; None if there is none, or if static sizes fail in the same way. `notes` say why."""
    if not (axes := _varying(function, state, call)):
        return None

    def attempt(types: list[TensorType]) -> Recorded:
        with call.of_types(types):
            return record(call, state.reached[0])

    try:
        recorded, types = record_for_sizes(attempt, call.input_types(), axes, call.paths(), notes)
        if all(t.is_static for t in types) and not function.dynamic:
            return None
        with call.of_types(types):
            code = build(call, recorded, cache.timed)
    except Error as error:
        if not asks_for_numbers(error):
            raise
        notes.append(note_of(error, "; so the code is for these sizes alone"))
        return None
    general = ForSizes(types, code.entry.interface.size_constraints if code.entry is not None else (), code)
    if not general.fits(call):
        return None
    with call.of_types(types):
        _learn(function, cache, state, call, notes, code)
    state.general.setdefault(call.lookup_without_sizes(), []).append(general)
    return code


def _varying(function: CompiledFunction, state: State, call: Call) -> list[Axis]:
    """The axes whose sizes become symbols: all with `dynamic`, else those that differ from an earlier call.

    The arrays of modules keep their sizes.
    """
    if function.dynamic is False or (function.dynamic is None and call.signature.device is not None):
        return []
    shapes = [tuple(a.shape) for a in call.arrays]
    before = state.seen.setdefault(call.lookup_without_sizes(), shapes)
    of_modules = call.of_modules()
    return [(i, axis) for i, shape in enumerate(shapes) for axis, n in enumerate(shape)
            if call.types[i] is None and not call.weak[i] and not of_modules[i]
            and (function.dynamic or n != before[i][axis])]


def _learn(function: CompiledFunction, cache: DispatchCache, state: State, call: Call, notes: list[Note],
           code: Specialization) -> Specialization:
    """Register new code with the reports, the cache and the dispatcher."""
    code.recorded.trace.notes += notes
    if not cache.timed:                                    # else it is the same again, with clocks
        report = _report(call, code.recorded.trace.notes)
        if function.reports:
            report = replace(report, reason=recompilation.reason_of(function, cache, state, call, report))
        if logs.wants("recompiles") or logs.wants("compiles"):
            recompilation.log(function, report)
        function.reports.append(report)
    state.learn(code.recorded)
    if code.waits or call.signature.module is not None or call.autocast is not None or (
            code.recorded.captures is not None and code.recorded.captures.inputs):
        state.reaching.append((bound_key(call.signature), *call.specified()))
    else:
        state.variants.append(variant_of(call, code.recorded, code.images))
    if not code.waits:
        fast_path.offer(function, state, call, code)
    return code


def _report(call: Call, notes: list[Note], error: UserError | None = None) -> Report:
    """Report entry of the function's specialisation for a call."""
    return Report([str(t) for t in call.input_types()], call.values(), notes, error)
