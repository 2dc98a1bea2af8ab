"""Repeated calls of compiled functions on a device: those of which only the addresses of elements are others.

A call through Python looks at everything anew, which takes longer than small kernels do. What it found out is kept
(`DeviceCall`): the next call with tensors of the same types, of a function that reaches what it did, checks just that,
takes memory for the results, and launches. All else goes the long way: calls that are recorded for derivatives, that
change something besides their donated arguments, and those made while calls are recorded, profiled or checked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from mlc.call import Call
from mlc.checks import Checks
from mlc.dispatch_cache import DispatchCache, Specialization, State
from mlc.frontend import tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.tangents import duals
from mlc.frontend.captured_inputs import CapturedTensor
from mlc.frontend.compiler import compiler
from mlc.frontend.devices import CPU
from mlc.frontend.dispatch import GATE
from mlc.frontend.script import words
from mlc.frontend.tensor import Consumed, Tensor
from mlc.ir.profiling import state as profiling

if TYPE_CHECKING:
    from mlc.backends.cuda.planned_call import PlannedCall
    from mlc.compiled import CompiledFunction

MISSED: Any = object()
"""The result of a call that is not one of those that are repeated."""

MAX_CALLS = 8
"""Maximum number of repeated calls that a function looks for, one after another."""

MAX_LEARNED = 256
"""Maximum number of repeated calls that a function learns: of ever new shapes, each would replace one that comes
again."""


FEW_VARIABLES = 4
"""Up to this number, it is faster to compare variables here than to enter native code."""


class Reached(NamedTuple):
    """The tensors that a function reaches by itself, as a call found them.

    rows       address of the rows of an address and a word each that tell whether they are still so, and their number
    addresses  of their elements
    requires   whether one requires a gradient
    keep       what the rows, and the words in them, belong to
    """

    rows: int
    number: int
    addresses: tuple[int, ...]
    requires: bool
    keep: Any


class DeviceCall:
    """The calls of a function with tensors on one device of given types, while a captured state holds."""

    def __init__(self, code: Specialization, state: State, call: Call, planned: PlannedCall) -> None:
        captures = code.recorded.captures
        self.code, self._launch = code, planned.launch
        self.shapes = tuple([a.shape for a in call.arrays])
        self._state, self._memory = state, planned.memory
        self._kind: Any = type(call.arrays[0]) if call.arrays else None
        self._types = [(a.shape, a.dtype) for a in call.arrays]
        self._donated, self._consumed = code.donated, Consumed(None, call.signature.name)
        self._outputs = code.recorded.outputs
        self._structure: Any = code.recorded.structure
        self._returns_one = [*self._structure] == [tree.LEAF] and [*self._outputs] == [("result", 0)]
        self._tensors = captures.tensors() if captures is not None else []
        self._fit: Callable[[], bool] | None = captures.fit if captures is not None else None
        self._first_changed: Any = compiler().first_changed()
        self._reached: Reached | None = None
        self._variables = None if self._tensors else _few_variables(state)

    def call(self, args: Sequence[Any]) -> Any:
        """The result of a call; MISSED if it is none of these."""
        types = self._types
        if (GATE.cell_contents is not None or duals.level is not None or Checks.every_call
                or len(args) != len(types)):
            return MISSED
        kind, memory = self._kind, self._memory
        arrays: list[Any] = []
        addresses: list[int] = []
        for x, (shape, dtype) in zip(args, types):
            if type(x) is not Tensor:
                return MISSED
            array = x._array
            if type(array) is not kind or array.shape != shape or array.memory is not memory or (
                    array.dtype is not dtype and array.dtype != dtype):
                return MISSED
            meta = x._autograd
            if meta is not None and meta.requires_grad and mode.enabled:
                return MISSED
            arrays.append(array)
            addresses.append(array.address)
        if self._variables is None:
            if not self._state.holds():
                return MISSED
        else:
            for place, name, value in self._variables:
                if (place.get(name) if type(place) is dict else getattr(place, name)) is not value:
                    return MISSED
        if self._tensors:
            reached = self._reached
            if reached is None or self._first_changed(reached.rows, 0, reached.number) != reached.number:
                reached = self._look()
            if reached is None or (reached.requires and mode.enabled):
                return MISSED
            addresses += reached.addresses
        if self._donated:
            return self._donating(args, arrays, addresses)
        return self._result(self._launch(addresses, arrays))

    def _donating(self, args: Sequence[Any], arrays: Sequence[Any], addresses: list[int]) -> Any:
        """The same where arguments are donated, which takes the long way unless each has its memory for itself."""
        if len({*addresses}) < len(addresses):
            return MISSED
        for i in self._donated:
            storage = arrays[i].storage
            if args[i]._storage is not None or storage.block is None or not storage.writable:
                return MISSED
        results = self._launch(addresses, arrays)
        for i in self._donated:
            args[i]._array = self._consumed
        return self._result(results)

    def _result(self, results: Sequence[Any]) -> Any:
        """The result of the function."""
        make = object.__new__
        if self._returns_one:
            out = make(Tensor)
            out._array = results[0]
            return out
        leaves: list[Any] = []
        for kind, x in self._outputs:
            if kind == "result":
                out = make(Tensor)
                out._array = results[x]
                leaves.append(out)
            else:
                leaves.append(x)
        return self._structure.unflatten(leaves)

    def _look(self) -> Reached | None:
        """The tensors that the function reaches, as they are now; None if the code is not for them."""
        assert self._fit is not None
        found = [(t, t._array, t._autograd) for t in self._tensors]
        if not self._fit() or not all(type(a) is self._kind and a.memory is self._memory for _, a, _ in found):
            return None
        guarded, requires = self._first_changed is not None and words.known(), False
        rows: list[int] = []
        for t, array, meta in found:
            slots = words.of_slots(t, ["_array", "_autograd"])
            rows += [part for address, x in zip(slots or (), (array, meta)) for part in (address, id(x))]
            guarded = guarded and slots is not None
            if meta is not None:
                wanted, place = meta.requires_grad, words.of_slots(meta, ["requires_grad"])
                rows += [part for address in place or () for part in (address, id(wanted))]
                guarded, requires = guarded and place is not None, requires or wanted
        held = (ctypes.c_uint64 * len(rows))(*rows)
        made = Reached(ctypes.addressof(held), len(rows) // 2, tuple([a.address for _, a, _ in found]), requires,
                       (held, found))
        if guarded:
            self._reached = made
        return made


def _few_variables(state: State) -> list[tuple[Any, Any, Any]] | None:
    """The globals and slots of functions that a state consists of, and their values; None if there is more to it, or
    too much to ask one by one."""
    found = state.reached[0].variables if len(state.reached) == 1 else None
    if found is None or len(found) > FEW_VARIABLES or not all(
            isinstance(name, str) and type(place) in (dict, FunctionType) for place, name, _ in found):
        return None
    return found


def learn(function: CompiledFunction, cache: DispatchCache, call: Call, code: Specialization) -> None:
    """Have calls like this one, which was made, be repeated calls of the function, if they can be."""
    planned = _planned(function, cache, call, code)
    if planned is None:
        return
    shapes = tuple([a.shape for a in call.arrays])
    known, state = function.device_calls, cache.state()
    if any(x.code is code and x.shapes == shapes for x in known) or state.known.get(call.lookup) is not code:
        return
    function.device_calls_learned += 1
    function.device_calls = (DeviceCall(code, state, call, planned), *known)[:MAX_CALLS]


def _planned(function: CompiledFunction, cache: DispatchCache, call: Call,
             code: Specialization) -> PlannedCall | None:
    """The launches of calls like this one; None if they cannot be repeated."""
    recorded, captures, signature = code.recorded, code.recorded.captures, call.signature
    plans: Any = getattr(code.entry, "planned", None)      # entries of GPUs have them
    if (not plans or function.check or function.device_calls_learned >= MAX_LEARNED or call.keywords
            or cache.timed or profiling.recorder is not None or Checks.anomaly is not None
            or signature.sees_autograd or call.autocast is not None or (call.device == CPU and call.arrays)
            or len(call.arrays) != len(call.args) or any(type(x) is not Tensor for x in call.given)
            or any(kind not in ("result", "value") for kind, _ in recorded.outputs)
            or recorded.written or recorded.assigned or recorded.has_effects or recorded.captured):
        return None
    inputs = list[Any](call.arrays)
    if captures is not None:
        if (captures.same or captures.requiring or captures.asks_autograd or captures.constants is not None
                or not all(isinstance(source, CapturedTensor) for source in captures.sources())):
            return None
        inputs += [t.backing_array for t in captures.tensors()]
    found: PlannedCall | None = plans.get(tuple([a.shape for a in inputs]))
    return found if found is not None and found.takes(inputs) else None
