"""Compares compiled functions with eager execution, and names the first line whose value differs.

tools/check.py compares the levels of the IR with each other. It cannot detect faults of the recorder, of the guards on
sizes and values, of the call around the code, or of the handling of changed captured state. All of these show in a
comparison between a call of compiled code and an eager run of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlc import rounding
from mlc.array_difference import Array, shown, unlike
from mlc.call import Call, record
from mlc.checked_backward import compare_backward
from mlc.checked_paths import again, compare_reaching, compare_wrappers
from mlc.checked_state import ArgumentsOfCall, StateOfCall, Values
from mlc.checks import Checks
from mlc.compiled import CompiledFunction
from mlc.frontend import eager, tree
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.captured_inputs import CapturedGradient, CapturedTensor, owner_of
from mlc.frontend.devices import BackingArray
from mlc.frontend.location import programs_line, user_loc
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.script.report import UNRECORDED
from mlc.frontend.signature import Arguments
from mlc.frontend.tensor import Tensor, as_array, wrap
from mlc.ir.core import Op
from mlc.ir.diag import Error, InternalError, Loc, UserError
from mlc.ir.interp import Interpreter, in_parts, run_function
from mlc.passes import decompose_complex, grad

REFUSALS = UNRECORDED | {"MLC0329", "MLC0338", "MLC0434", "MLC0720", "MLC0721", "MLC0722", "MLC0752",
                         *(f"MLC075{n}" for n in range(6, 10))}
"""Codes of errors of compiled functions alone: they cannot be recorded, or have two tensors, or elements, of the same
memory, which are apart in a plain run."""


@dataclass
class Run:
    """Outcome of a call: its result or error, the values of its operations by line, the buffers of modules among the
    arguments, the tensors in place of others among them, by the ids of these, and the state of what the function
    reaches and of its arguments."""

    result: Any = None
    error: Exception | None = None
    values: list[tuple[Loc, str, list[Array]]] = field(default_factory=list)
    buffers: list[Any] = field(default_factory=list)
    copies: dict[int, Tensor] = field(default_factory=dict)
    state: Values = field(default_factory=dict)


class Meaning:
    """The function @main of a module, run by the interpreter without passes or code generation."""

    def __init__(self, module: Op) -> None:
        self.module = module

    def call(self, arrays: Sequence[Any]) -> list[Array]:
        return [np.asarray(r) for r in run_function(self.module, "main", [np.array(a) for a in arrays])]


def plain_run(f: Callable[..., Any], arguments: Arguments, reached: Sequence[Tensor] = ()) -> Run:
    """Run the function eagerly on copies of its tensors, its operations in the interpreter; numbers stay numbers.

    reached  tensors that the function reaches by itself, which are no copies as arguments either
    """
    out, given = Run(), iter(zip(arguments.arrays, arguments.given, arguments.weak))
    out.copies = {id(x): x for x in reached}

    def own(array: BackingArray, given: Any, weak: bool) -> Any:
        if weak:
            return given
        if id(given) not in out.copies:
            out.copies[id(given)] = _own(array, given)
        return out.copies[id(given)]

    leaves = [own(*next(given)) if slot else x.value if isinstance(x, tree.Static) else x
              for x, slot in zip(arguments.leaves, arguments.slots)]
    positional, named = arguments.structure.unflatten(leaves)

    def watch(name: str, operands: Sequence[BackingArray], result: Any) -> None:
        arrays = [x.array for x in tree.leaves(result) if isinstance(x, Tensor)]
        out.values.append((user_loc(), name, arrays))

    with eager.watched(watch), eager.compiled_by(lambda module, device: Meaning(module)):
        try:
            out.result = f(*positional, **named)
        except UserError as error:
            out.error = error
        except Exception as error:
            if programs_line(error) is None and not isinstance(error, AttributeError):
                raise                                      # a defect of this package
            out.error = error
    out.buffers = buffers_of((positional, named))
    return out


def checked_call(function: CompiledFunction, call: Call, run: Callable[[Call], Any]) -> Any:
    """Result of `run` for a call, compared with an eager run of the same call; InternalError if they differ."""
    try:
        return _compared_call(function, call, run)
    except InternalError as error:
        Checks.found = Checks.found or error
        raise


def _compared_call(function: CompiledFunction, call: Call, run: Callable[[Call], Any]) -> Any:
    signature, args = function.signature, call.args
    given_up, own = call.donated(), list(call.given)
    given = ArgumentsOfCall(x for i, x in enumerate(own) if i not in given_up)
    state = StateOfCall(signature.f, given.hooks)
    plain, compiled = plain_run(signature.f, call, state.tensors), Run()
    plain.state = given.values(plain.copies) | state.values()
    state.restore()
    given.restore_hooks()
    arrays = [np.array(a if isinstance(a, np.ndarray) else a.numpy()) for a in call.arrays]
    arguments = again(args, bool(signature.donate)) if not call.keywords else None
    try:
        compiled.result = run(call)
    except InternalError:
        raise
    except Error as error:
        compiled.error = error
    if isinstance(compiled.error, UserError) and plain.error is None and not isinstance(
            compiled.error, AssertionError) and compiled.error.code in REFUSALS:
        raise compiled.error                               # it is refused, and not computed otherwise
    compiled.buffers, left = buffers_of((args, call.keywords)), state.values()
    compiled.state = given.values() | left

    def recorded_again() -> tuple[Recorded, list[Any]]:
        with state.as_before(), given.as_before():
            recorded = record(call)
            return recorded, [*arrays, *(np.array(as_array(x)) for x in recorded.captured_operands(own))]

    compare(signature.name, plain, compiled, own, recorded_again)
    if compiled.error is not None:
        raise compiled.error
    compare_backward(signature.name, compiled.result)
    if arguments is not None:
        donated = [i for i, name in enumerate(signature.names[: len(args)]) if name in signature.donate]
        Checks.apart(lambda: compare_wrappers(signature.name, function.wrappers, arguments, compiled.result, donated))
        Checks.apart(lambda: compare_reaching(signature.name, function.reaching, arguments, state,
                                              (compiled.result, left)))
    return compiled.result


def compare(name: str, plain: Run, compiled: Run, given: Sequence[Any],
            again: Callable[[], tuple[Recorded, Sequence[Any]]]) -> None:
    """InternalError if a call of compiled code differs from the eager run.

    given   the arguments
    again   records it again, and gives the arrays that it was called with: to find the line and how much rounding
            explains
    """
    if (message := _difference(plain, compiled)) is None:
        return
    notes = []
    if plain.error is None and compiled.error is None:
        recorded, arrays = again()
        if _is_rounding(plain, compiled, recorded, given, arrays):
            return
        if line := first_difference(plain, recorded.trace.module, arrays):
            notes.append(line)
    raise InternalError(f"compiled {name} is not what Python gives: {message}", code="MLC0903", loc=user_loc(),
                        notes=tuple(notes)) from plain.error


def _is_rounding(plain: Run, compiled: Run, recorded: Recorded, given: Sequence[Any], arrays: Sequence[Any]) -> bool:
    """Whether small perturbations of the roundings in the program explain the difference of its results."""
    module, keys = recorded.trace.module.clone(), _changed(recorded, given)
    decompose_complex.run(module)                          # whose roundings are those of the parts
    changed = [key for key in keys if key in plain.state and key in compiled.state]     # others are made by the call
    results = run_function(module, "main", [np.array(a) for a in arrays])
    slack = rounding.spread(module, "main", arrays, results, rounding.MANY)
    assigned = [*recorded.assigned]
    found = [[in_parts(np.asarray(x.array)) for x in tree.leaves(
        (run.result, [run.buffers[i] for i in assigned], [run.state[key] for key in changed]))
        if isinstance(x, Tensor)] for run in (plain, compiled)]
    if [a.dtype for a in found[0]] != [a.dtype for a in found[1]]:
        return False
    pairs = [[a.astype(np.float64) for a in arrays] for arrays in found]
    first = min(keys.values(), default=len(slack))
    slack = [*slack[:first], *(slack[keys[key]] for key in changed)]
    if any(_unlike(compiled.state[key], x) for key, x in plain.state.items() if key not in changed) or any(
            _unlike(compiled.buffers[i], x) for i, x in enumerate(plain.buffers) if i not in assigned):
        return False                                       # the recording says nothing of it
    if len(pairs[0]) != len(slack) or any(a.shape != s.shape for a, s in zip(pairs[0], slack)):
        return False
    with np.errstate(all="ignore"):
        return all(np.all((np.abs(a - b) <= s) | (a == b) | (np.isnan(a) & np.isnan(b)))
                   for a, b, s in zip(*pairs, slack))


def _changed(recorded: Recorded, given: Sequence[Any]) -> dict[tuple[str, int], int]:
    """Which tensors the last results of a recording are the new elements or gradients of, each with its result."""
    keys = {("elements", id(given[i])): n for i, n in recorded.written.items()}
    for i, n in recorded.stored.items():
        assert recorded.captures is not None
        x = recorded.captures.inputs[i][0]
        if isinstance(x, CapturedTensor | CapturedGradient):
            keys["elements" if isinstance(x, CapturedTensor) else "grad", id(
                x.tensor if isinstance(x, CapturedTensor) else owner_of(x.owner, given))] = n
    return keys | {("grad", id(owner_of(owner, given))): n for owner, n in recorded.gradients if n is not None}


def _assigned(plain: Run) -> list[int]:
    """The numbers of the buffers that do not come with the result anyway."""
    returned = [id(x) for x in tree.leaves(plain.result)]
    return [i for i, x in enumerate(plain.buffers) if id(x) not in returned]


def _difference(plain: Run, compiled: Run) -> str | None:
    if plain.error is not None or compiled.error is not None:
        if _kind(plain.error) == _kind(compiled.error):
            return None
        said = [f"{type(e).__name__}: {e.message if isinstance(e, Error) else e}" if e is not None else "a result"
                for e in (compiled.error, plain.error)]
        return f"{said[0]} in place of {said[1]}"
    if (keys := plain.state.keys()) != compiled.state.keys():
        return "other tensors, that the function reaches or was given, have a gradient"
    assigned = _assigned(plain)
    states = [[run.state[key] for key in keys] for run in (compiled, plain)]
    moved, wanted = ([run.buffers[i] for i in assigned] for run in (compiled, plain))
    pairs: list[tuple[str, Any, Any]] = [
        ("result", compiled.result, plain.result), ("buffers of the arguments", moved, wanted),
        ("what the function reaches or was given", states[0], states[1])]
    for what, got, want in pairs:
        (got_leaves, got_structure), (want_leaves, want_structure) = tree.flatten(got), tree.flatten(want)
        if [*map(_shape, got_structure)] != [*map(_shape, want_structure)]:
            return f"the {what} has another structure"
        for path, a, b in zip(tree.paths(got, what), got_leaves, want_leaves):
            if message := _unlike(a, b):
                return f"{path} is {message}"
    return None


def _kind(error: Exception | None) -> Any:
    """Errors are equal if both are of the same built-in class, or both of this package's."""
    kinds = (AssertionError, IndexError, TypeError, Error)
    return next((kind for kind in kinds if isinstance(error, kind)), type(error))


def _shape(token: Any) -> Any:
    return token if token is tree.LEAF else (token[0], token[1])


def _unlike(got: Any, want: Any) -> str | None:
    """Where a leaf differs; a Python number of a plain run may be a tensor of compiled code, and of its own type."""
    if not isinstance(got, Tensor | np.ndarray | np.generic | int | float):
        return None if got is want or got == want else f"{got!r} in place of {want!r}"[:200]
    a, b = (np.asarray(x.array if isinstance(x, Tensor) else x) for x in (got, want))
    if a.shape != b.shape or (isinstance(want, Tensor | np.ndarray) and a.dtype != b.dtype):
        return f"{a.dtype}{list(a.shape)} in place of {b.dtype}{list(b.shape)}"
    return unlike(a, b)


def first_difference(plain: Run, module: Op, arrays: Sequence[Any]) -> str | None:
    """The first operation of the eager run whose value no recorded operation of its line has."""
    found: dict[tuple[str, int, int], list[Array]] = {}

    def watch(op: Op, results: Sequence[Any]) -> None:
        found.setdefault((op.loc.file, op.loc.line, op.loc.col), []).extend(
            np.asarray(r) for r in results if isinstance(r, np.ndarray | np.generic))

    grad.run(module)                                       # the functions that are differentiated run in it
    try:
        Interpreter(module, watch).run("main", [np.array(a) for a in arrays])
    except InternalError:
        raise
    except Error:
        pass                                               # what stands before it has been seen
    for loc, name, values in plain.values:
        recorded = found.get((loc.file, loc.line, loc.col))
        for value in values:
            if recorded is None:
                return f"{name} at {loc} is run by Python and was not recorded"
            if not any(r.shape == value.shape and unlike(r.astype(value.dtype), value) is None for r in recorded):
                return (f"the first value that differs is that of {name} at {loc}: {shown(value)} in Python, "
                        f"{shown(recorded[-1])} recorded")
    return None


def _own(array: BackingArray, given: Any) -> Tensor:
    """An argument as the function sees it in a plain run. One that requires a gradient does, and is the result of an
    operation if it is one; a leaf has its own gradient, and the same hooks."""
    own = wrap(np.array(array) if isinstance(array, np.ndarray) else np.array(array.numpy()))
    if not isinstance(given, Tensor):
        return own
    if given.requires_grad:
        own.requires_grad_()
    if not given.is_leaf:
        with GradMode(True):
            return own.clone()
    own.grad = None if given.grad is None else wrap(np.array(as_array(given.grad)))
    if (theirs := given._autograd) is not None:
        own.autograd_meta.hooks.update(theirs.hooks)
        own.autograd_meta.after.update((key, (hook, own)) for key, (hook, _) in theirs.after.items())
    return own


def buffers_of(trees: Any) -> list[Any]:
    """Values of the buffers of all modules in some trees."""
    return [getattr(owner, name) for owner in tree.attribute_trees(trees) for name in owner._buffers]

