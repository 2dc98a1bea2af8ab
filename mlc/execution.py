"""Execution of compiled code on the arrays of a call, and conversion of its results to those of the Python function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.call import Call, record
from mlc.checks import Checks
from mlc.dispatch_cache import Specialization
from mlc.frontend.autograd.function_node import (
    FunctionRecord,
    Unrecorded,
    differentiable_results,
    record_call,
    requires_grad,
)
from mlc.frontend.autograd.grad_mode import GradMode, mode
from mlc.frontend.devices import CPU, BackingArray
from mlc.frontend.location import user_loc
from mlc.frontend.signature import at_the_call, consume
from mlc.frontend.storage import donated
from mlc.frontend.tensor import Consumed, Tensor, as_array
from mlc.frontend.tensor import wrap as tensor_of
from mlc.ir.diag import InternalError, UserAssertionError, UserError, UserIndexError


def execute(code: Specialization, call: Call) -> Sequence[BackingArray]:
    """The arrays that the code computes for a call; donated arguments are used up."""
    if code.recorded.written and mode.enabled and requires_grad([*call.given, *code.recorded.trace.constant_tensors]):
        raise UserError(f"{call.signature.name} changes an argument in place, which is not recorded for backward",
                        code="MLC0758", loc=user_loc(), hint="call it within mlc.no_grad, or return the new value")
    if code.entry is None:
        return ()
    if code.recorded.written:
        _check_written(code, call)
    for i in code.donated:
        if isinstance(call.given[i], Tensor):
            call.arrays[i] = donated(call.given[i], call.given)
    before = [np.array(a) for a in call.arrays] if Checks.anomaly is not None else []
    try:
        results: Sequence[BackingArray] = code.entry.call(_brought(call))
    except (UserAssertionError, UserIndexError, InternalError):
        # The code has run, and may have written to them.
        _consume(code, call)
        raise
    except UserError as error:                             # an argument does not fit
        at_the_call(error)
        raise
    if code.donated:
        _consume(code, call)
    if Checks.anomaly is not None:
        Checks.anomaly(results, lambda: record(call).trace.module, before)
    return results


def _check_written(code: Specialization, call: Call) -> None:
    """UserError if arguments that the function changes in place are not as it was recorded for."""
    name = call.signature.name
    captured = [t.backing_array for t in code.recorded.trace.constant_tensors]
    for i in code.recorded.written:
        array, given = call.arrays[i], call.given[i]
        others = [*(x for j, x in enumerate(call.arrays) if j != i), *captured]
        if isinstance(array, np.ndarray) and any(np.may_share_memory(array, x) for x in others
                                                 if isinstance(x, np.ndarray)):
            raise UserError(f"{name} changes an argument in place, and another one, or a tensor that it reaches, has "
                            "the same memory", code="MLC0759", loc=user_loc(), hint="pass a clone of one of them")
        if isinstance(given, np.ndarray) and not given.flags.writeable:
            raise UserError(f"{name} changes an argument in place, which is a read-only array", code="MLC0753",
                            loc=user_loc(), hint="pass a copy of it")


def wrap(code: Specialization, call: Call, results: Sequence[BackingArray]) -> Any:
    """Result of the function for a call; buffers of modules among the arguments get their new values."""
    recorded = code.recorded
    recorded.assign((call.args, call.keywords), results)
    for i, n in recorded.written.items():
        given = call.given[i]
        if not isinstance(given, Tensor):
            np.copyto(given, as_array(tensor_of(results[n])))
        elif not isinstance(given._array, Consumed):
            with GradMode(False):
                given.copy_(tensor_of(results[n]))
    return recorded.result(results, call.given)


def record_for_backward(code: Specialization, call: Call, out: Any) -> None:
    """Record a call that returned `out`, if an argument or a tensor that the function captured requires a gradient."""
    recorded, name = code.recorded, call.signature.name
    if requires_grad(recorded.trace.constant_tensors):
        Unrecorded(list(differentiable_results(recorded, out).values()),
                   f"{name} reaches a tensor that requires a gradient by itself, and backward does not find it there",
                   f"pass the tensor, or the module that holds it, to {name} as an argument")
    elif not requires_grad(call.given):
        return
    elif code.donated:
        Unrecorded(list(differentiable_results(recorded, out).values()),
                   f"arguments of {name} were donated, and backward would need their elements",
                   "leave out donate, or call it within mlc.no_grad")
    else:
        function = recorded.function
        if function is None:                               # it was compiled within no_grad
            function = FunctionRecord(record(call).trace.module)
            if code.entry is not None and not code.entry.interface.symbols:
                recorded.function = function               # the record is of the sizes that the code is of
        record_call(name, function, recorded, call.operands(), out)


def _brought(call: Call) -> Sequence[Any]:
    """The arrays, on the CPU if the function runs there; a device brings what it needs by itself."""
    if call.target_device != CPU or call.device == CPU:
        return call.arrays
    return [a if isinstance(a, np.ndarray) else a.numpy() for a in call.arrays]


def _consume(code: Specialization, call: Call) -> None:
    consume(call.given, code.donated, user_loc(), call.signature.name)
