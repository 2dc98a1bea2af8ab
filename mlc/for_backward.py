"""Code of calls that are recorded for backward: it also returns what backward reads, so that this need not compute the
products and convolutions of the function again. A function that takes derivatives itself has none: it is a training
step as a rule, and would leave as much as it computes for a gradient that nobody asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlc.call import Call
from mlc.dialects.builtin import Module
from mlc.dispatch_cache import Code, Specialization
from mlc.execution import function_of
from mlc.frontend.autograd.function_modules import copy_of
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.devices import device_of_call
from mlc.frontend.tensor import Tensor, as_backing_array
from mlc.ir.compilation_lock import compiling
from mlc.ir.profiling import timed
from mlc.repeated_call import RepeatedCall

Compile = Callable[[Module, str], Any]
"""Makes code of a module for a device."""
MOST = 4
"""Limit on the sets of inputs that require a gradient for which a function has code of its own."""


def for_backward(code: Specialization, call: Call, native_code: Compile) -> Specialization:
    """The code of a call that is recorded for backward; `code` itself if it is not, or if backward reads arguments
    alone."""
    if not (mode.enabled and code.may_split):
        return code
    wrt = tuple([i for i, x in enumerate((*call.operands(), *call.captured)) if type(x) is Tensor and x.requires_grad])
    if not wrt:
        return code
    if wrt not in code.saving:
        with compiling:
            if wrt not in code.saving:
                code.saving[wrt] = timed("compilation", call.signature.name,
                                         lambda: _code_of(code, call, wrt, native_code))
    return code.saving[wrt] or code


def _code_of(code: Specialization, call: Call, wrt: tuple[int, ...], native_code: Compile) -> Specialization | None:
    """Such code; None if there is to be none."""
    recorded = code.recorded
    if len(code.saving) >= MOST or (recorded.function is None and code.entry.interface.symbols):
        return None
    record = function_of(code, call)
    present = [n for kind, n in recorded.outputs if kind == "result" and record.results[n].dtype.is_inexact and (
        recorded.depends is None or not recorded.depends[n].isdisjoint(wrt))]
    split = record.split(wrt, tuple(dict.fromkeys(present)))
    if split is None:
        return None
    device = device_of_call([as_backing_array(x) for x in (*call.arrays, *call.captured)])
    found = native_code(copy_of(split.forward), device)
    entry = found.entry("main")
    made = Code(found, entry, RepeatedCall.of(entry, recorded, len(call.arrays)))
    return Specialization(recorded, lambda: made, split=split)
