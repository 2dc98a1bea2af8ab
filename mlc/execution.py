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
    Saved,
    Unrecorded,
    differentiable_results,
    push_call,
    record_call,
    requires_grad,
)
from mlc.frontend.autograd.grad_mode import GradMode, mode
from mlc.frontend.autograd.graph import kept
from mlc.frontend.autograd.tangents import any_tangent
from mlc.frontend.captures import assign_gradients, release_gradients, take_over
from mlc.frontend.devices import CPU, BackingArray
from mlc.frontend.location import user_loc
from mlc.frontend.signature import at_the_call, consume
from mlc.frontend.storage import donated
from mlc.frontend.tensor import Consumed, Tensor, as_array, as_backing_array
from mlc.frontend.tensor import wrap as tensor_of
from mlc.ir.diag import InternalError, UserAssertionError, UserError, UserIndexError
from mlc.ir.profiling import Memory
from mlc.ir.profiling import state as profiling

_NOTHING = np.empty(0)


def execute(code: Specialization, call: Call) -> Sequence[BackingArray]:
    """The arrays that the code computes for a call; donated arguments are used up."""
    recorded = code.recorded
    if profiling.recorder is not None:                     # nothing is written over meanwhile, as these are kept
        call.before = [x._array for x in call.captured if isinstance(x, Tensor)]
    if mode.enabled and recorded.captures is not None:
        _check_history(code, call)
    _check_captures(code, call)
    _check_dual(code, call)
    if code.entry is None:
        return ()
    if recorded.written:
        _check_written(code, call)
    for i in code.donated:
        if isinstance(call.given[i], Tensor):
            call.arrays[i] = _NOTHING                      # so that the call has no reference to the tensor's array
            call.arrays[i] = donated(call.given[i], call.given)
    before = [np.array(a) for a in call.arrays] if Checks.anomaly is not None else []
    try:
        results: Sequence[BackingArray] = _called(code, call)
    except (UserAssertionError, UserIndexError, InternalError):
        # The code has run, and may have written to them.
        _consume(code, call)
        raise
    except UserError as error:                             # an argument does not fit
        at_the_call(error)
        raise
    if code.donated:
        _consume(code, call)
    if code.split is not None:
        results, call.left = results[:code.split.results], results[code.split.results:]
    if Checks.anomaly is not None:
        before += [np.array(as_backing_array(x)) for x in recorded.reached(call.captured)]
        Checks.anomaly(results, lambda: record(call).trace.module, before)
    return results


def _check_history(code: Specialization, call: Call) -> None:
    """UserError if what the function changes in place would have a history, which is not recorded for backward."""
    recorded, name = code.recorded, call.signature.name
    assert recorded.captures is not None
    if recorded.captures.keeps_history:
        raise UserError(f"{name} changes a tensor in place that it reaches by itself, to elements that depend on one "
                        "that requires a gradient, which is not recorded for backward", code="MLC0758",
                        loc=user_loc(), hint="write what is detached, or call it within mlc.no_grad")
    if recorded.captures.uses_changed_leaf:
        raise UserError(f"{name} changes a leaf in place, and then computes a result from it, whose gradient by the "
                        "changed leaf is not recorded for backward", code="MLC0758", loc=user_loc(),
                        hint="compute the result in another function, return result.detach(), or call it within "
                             "mlc.no_grad")
    if recorded.depends is None or recorded.accumulates:
        return
    operands = [*call.given, *recorded.reached(call.captured)]
    for i, n in recorded.written.items():
        if requires_grad([operands[j] for j in {i, *recorded.depends[n]}]):
            raise UserError(f"{name} changes an argument in place that has a gradient, or to elements that have, which "
                            "is not recorded for backward", code="MLC0758", loc=user_loc(),
                            hint="call it within mlc.no_grad, or return the new value")


def _check_written(code: Specialization, call: Call) -> None:
    """UserError if arguments that the function changes in place are not as it was recorded for."""
    name = call.signature.name
    reached = code.recorded.reached(call.captured)
    operands = [*call.given, *reached]
    arrays: list[Any] = []
    for i in code.recorded.written:
        array, given = call.arrays[i], call.given[i]
        shares = sum(x is given for x in operands) > 1
        if not shares and isinstance(array, np.ndarray) and getattr(given, "_storage", given) is not None:
            arrays = arrays or [*call.arrays, *map(as_backing_array, reached)]
            shares = any(np.may_share_memory(array, x) for j, x in enumerate(arrays)
                         if j != i and isinstance(x, np.ndarray))
        if shares:
            raise UserError(f"{name} changes an argument in place, and another one, or a tensor that it reaches, has "
                            "the same memory", code="MLC0759", loc=user_loc(), hint="pass a clone of one of them")
        if isinstance(given, np.ndarray) and not given.flags.writeable:
            raise UserError(f"{name} changes an argument in place, which is a read-only array", code="MLC0753",
                            loc=user_loc(), hint="pass a copy of it")


def _check_captures(code: Specialization, call: Call) -> None:
    """UserError if arguments are other tensors, among those that the function reaches, than it was recorded for."""
    captures = code.recorded.captures
    if captures is None:
        return
    for number, tensor in captures.same.items():
        if call.given[number] is not tensor:
            raise UserError(f"{call.signature.name} was recorded for an argument that is a tensor which it reaches by "
                            "itself, too, and now is another one", code="MLC0759", loc=user_loc(),
                            hint="have the function reach the tensor by one way only")
    if code.recorded.differentiates:
        _check_leaves(code, call)
    _check_shared(code, call)
    changed = [call.captured[i] for i in code.recorded.stored]
    for x in call.given if changed else ():
        storage = x._storage if type(x) is Tensor else None
        if any(t is x for t in changed) or (
                any(t._storage is storage for t in changed) if storage is not None else isinstance(x, np.ndarray)
                and any(t._storage is not None and np.may_share_memory(x, t._array) for t in changed)):
            raise UserError(f"{call.signature.name} changes a tensor in place that it reaches by itself, and an "
                            "argument has the same memory", code="MLC0759", loc=user_loc(), hint="pass a clone of it")


def wrap(code: Specialization, call: Call, results: Sequence[BackingArray]) -> Any:
    """Result of the function for a call; buffers of modules among the arguments get their new values, and what the
    function changes takes place."""
    recorded = code.recorded
    given = call.given
    recorded.assign((call.args, call.keywords), results)
    if recorded.written:
        _write(code, call, results)
    if recorded.has_effects:
        _take_effect(code, call, results)
    return recorded.result(results, given)


def _write(code: Specialization, call: Call, results: Sequence[BackingArray]) -> None:
    """Have the arguments that the function changes in place have their new elements."""
    recorded, given = code.recorded, call.given
    if _is_recorded(code, call):
        call.given = [kept(x) if i in recorded.written else x for i, x in enumerate(given)]
    for i, n in recorded.written.items():
        if not isinstance(given[i], Tensor):
            np.copyto(as_array(given[i]), as_array(tensor_of(results[n])))
        elif not isinstance(given[i]._array, Consumed):
            with GradMode(False):
                given[i].copy_(tensor_of(results[n]))


def _is_recorded(code: Specialization, call: Call) -> bool:
    """Whether a call is recorded for backward."""
    return mode.enabled and not code.recorded.accumulates and requires_grad([*call.given, *call.captured])


def _take_effect(code: Specialization, call: Call, results: Sequence[BackingArray]) -> None:
    """Have what the function does to tensors, gradients and objects that it reaches by itself happen."""
    recorded, captures = code.recorded, code.recorded.captures
    assert captures is not None
    keeps = _is_recorded(code, call)
    for i, n in recorded.stored.items():
        tensor = call.captured[i]
        if keeps:                                          # for backward
            call.captured[i] = kept(tensor)
        take_over(tensor, results[n])
    for module, name, n in recorded.rebound:
        setattr(module, name, tensor_of(results[n]))
    assign_gradients(recorded.gradients, call.given, results)
    for i in captures.requiring:
        if type(call.given[i]) is Tensor:
            call.given[i].requires_grad_()
    for effect in captures.effects:
        effect()


def record_for_backward(code: Specialization, call: Call, out: Any) -> bool:
    """Record a call that returned `out`, if an argument or a tensor that the function captured requires a gradient;
    whether one does."""
    recorded, name = code.recorded, call.signature.name
    operands = [*call.operands(), *call.captured]
    if not requires_grad(operands):
        return False
    if recorded.accumulates:
        mark_unrecorded(name, list(differentiable_results(recorded, out, operands).values()))
    elif recorded.is_frozen:
        Unrecorded(list(differentiable_results(recorded, out, operands).values()),
                   f"{name} is compiled with freeze=True, which has no derivatives", "compile it without freeze")
    elif code.donated:
        Unrecorded(list(differentiable_results(recorded, out, operands).values()),
                   f"arguments of {name} were donated, and backward would need their elements",
                   "leave out donate, or call it within mlc.no_grad")
    else:
        saved = None if code.split is None else Saved(code.split, call.left)
        record_call(name, function_of(code, call), recorded, operands, out, saved)
    return True


def memory_of(code: Specialization, call: Call) -> Memory:
    """The memory of a call that has been made, besides its arguments and its result."""
    recorded = code.recorded
    names = recorded.result_names
    changed = [(names.get(n, ""), call.captured[i]) for i, n in recorded.stored.items()]
    for owner, n in recorded.gradients:
        if n is not None and (gradient := (call.given[owner] if isinstance(owner, int) else owner).grad) is not None:
            changed.append((names.get(n, ""), gradient))
    return Memory(call.before, changed, names)


def mark_unrecorded(name: str, results: Sequence[Tensor]) -> None:
    """Have `backward` from the results of a function that calls it itself say that there is no history of them."""
    Unrecorded(results, f"{name} calls backward itself, and a call of it is not differentiated by backward",
               "call backward where they are computed, or differentiate by mlc.grad")


def give_tangents(code: Specialization, call: Call, out: Any) -> None:
    """Give what a call returned its tangents, if an argument or a tensor that the function captured is dual."""
    operands = [*call.operands(), *call.captured]
    if any_tangent(operands):
        push_call(call.signature.name, function_of(code, call), code.recorded, operands, out)


def _check_dual(code: Specialization, call: Call) -> None:
    """UserError if the function does more than compute results, and a tensor is dual."""
    recorded = code.recorded
    if not any_tangent([*call.operands(), *recorded.reached(call.captured)]):
        return
    if recorded.is_frozen:
        raise UserError(f"{call.signature.name} is compiled with freeze=True, which has no derivatives, and is called "
                        "with dual tensors", code="MLC0839", loc=user_loc(), hint="compile it without freeze")
    if recorded.written or recorded.has_effects or recorded.assigned or recorded.accumulates or code.donated:
        raise UserError(f"{call.signature.name} is compiled, is called with dual tensors, and changes tensors in place "
                        "or computes gradients, which is not translated to tangents", code="MLC0839", loc=user_loc(),
                        hint="call the function itself, which is not compiled")


def function_of(code: Specialization, call: Call) -> FunctionRecord:
    """The function of a call as its derivatives need it."""
    function: FunctionRecord | None = code.recorded.function
    if function is None:                                   # it was compiled within no_grad
        function = FunctionRecord(record(call).trace.module, call.signature.name)
        if code.entry is not None and not code.entry.interface.symbols:
            code.recorded.function = function              # the record is of the sizes that the code is of
    return function


def _check_leaves(code: Specialization, call: Call) -> None:
    """UserError where `backward` within the function would mean something else than where it was recorded."""
    captures, name = code.recorded.captures, call.signature.name
    assert captures is not None
    if not mode.enabled:
        raise UserError(f"{name} calls backward, and is called within no_grad, for which it was not recorded",
                        code="MLC0720", loc=user_loc(), hint="call it outside of no_grad")
    leaves = {id(x) for i, x in enumerate(call.given) if type(x) is Tensor and (
        x.requires_grad or i in captures.requiring)}
    reached = {id(x) for x in captures.tensors()}
    if sum(id(x) in leaves for x in call.given) > len(leaves) or not reached.isdisjoint(leaves):
        raise UserError(f"{name} calls backward, and an argument that requires a gradient is another argument, too, "
                        "or a tensor that it reaches by itself", code="MLC0759", loc=user_loc(),
                        hint="have the function reach the tensor by one way only")
    gradients = [id(x.grad) for x in (*call.given, *captures.tensors()) if type(x) is Tensor and x.grad is not None]
    if len(set(gradients)) < len(gradients):
        raise UserError(f"{name} calls backward, and one tensor is the gradient of two that it reaches", code="MLC0759",
                        loc=user_loc(), hint="give each a gradient of its own: a clone")


def _check_shared(code: Specialization, call: Call) -> None:
    """UserError if a tensor that the function changes is, or shares memory with, another one that it reaches."""
    changed = [call.captured[i] for i in code.recorded.stored]
    storages = {id(x._storage) for x in changed} - {id(None)}
    captures = code.recorded.captures
    assert captures is not None
    if not changed or not (storages or code.recorded.captures_gradients or captures.by_place):
        return
    among = [x for x in call.captured if type(x) is Tensor]
    shared = sum(id(x._storage) in storages for x in among) > len(storages)
    twice = {id(x) for x in changed}
    if shared or sum(id(x) in twice for x in among) > len(changed):
        raise UserError(f"{call.signature.name} changes a tensor in place that it reaches by itself, and another one "
                        "that it reaches has the same memory", code="MLC0759", loc=user_loc(),
                        hint="make views of it within the function, or use a clone")


def _called(code: Specialization, call: Call) -> Sequence[BackingArray]:
    """The results of the code for a call."""
    repeated = code.repeated
    if call.device != CPU and code.recorded.gradients and not code.recorded.captures_gradients:
        release_gradients(code.recorded.gradients, call.given)         # there, no memory is written to again
    if repeated is None or call.device != CPU or not code.entry.repeats or not repeated.lock.acquire(blocking=False):
        return code.entry.call(_brought(call))  # type: ignore[no-any-return]
    try:
        keep = Checks.anomaly is not None or _is_recorded(code, call)
        return repeated.run(call.arrays, call.captured, keep)
    finally:
        repeated.lock.release()


def _brought(call: Call) -> Sequence[Any]:
    """The arrays, on the CPU if the function is to run there; else the code is where they are, those that the function
    reaches included, and a device brings what it needs by itself."""
    arrays = [*call.arrays, *map(as_backing_array, call.captured)] if call.captured else call.arrays
    if call.signature.device != CPU:
        return arrays
    return [a if isinstance(a, np.ndarray) else a.numpy() for a in arrays]


def _consume(code: Specialization, call: Call) -> None:
    consume(call.given, code.donated, user_loc(), call.signature.name)
