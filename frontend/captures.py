"""Captures: what a recorded function reaches by itself.

Tensors that it uses, their gradients, and settings such as a learning rate are inputs of its entry, after the
arguments. What the function does to them happens after each call: tensors take over their new elements, `grad` is set,
and host functions such as `scheduler.step` run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.captured_inputs import (
    CapturedBuffer,
    CapturedGradient,
    CapturedKey,
    CapturedNumber,
    CapturedTensor,
    Input,
    owner_of,
)
from mlc.frontend.location import user_loc
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.core import Value
from mlc.ir.diag import Loc
from mlc.ir.types import TensorType, from_numpy

if TYPE_CHECKING:
    from mlc.frontend.devices import BackingArray
    from mlc.frontend.trace import Trace
    from mlc.frontend.tracer import Tracer


class GradientState:
    """`grad` of a tensor while a function is recorded.

    owner    the tensor, or the tracer of an argument
    present  whether there was one before; None as long as that does not matter
    initial  that one
    current  the one now
    """

    __slots__ = ("current", "initial", "owner", "present")

    def __init__(self, owner: Tensor) -> None:
        self.owner = owner
        self.present: bool | None = None
        self.initial: Any = _UNREAD
        self.current: Any = _UNREAD


_UNREAD = object()
_FACTS = ("asks_autograd", "asks_layout", "asks_identity", "differentiates", "accumulates")
"""Attributes of `Captures` that say what the recording depends on or computes of derivatives."""


class Captures:
    """The captures of the outermost function that is recorded.

    arguments  of the function, the tracers
    given      of the call that it is recorded for, what they stand for
    same       arguments that are tensors which the function reaches by itself too
    inputs     each with its tracer, and the value that this stands for at first
    leaves     the values of tensors that require a gradient, with these, and other leaves of the recorded graph
    leaves_within  the values of leaves in functions that are called and change them
    severed    those of them after a write, and its place: what is computed of them has no gradient by the leaf
    requiring  the numbers of arguments that require a gradient from then on
    retained   the values of other tensors whose gradient `backward` keeps, with these
    effects    functions that run after each call
    hosts      objects whose attributes these change
    read       tensors whose elements the recording depends on, beyond being an input
    numbers    mappings and keys of the numbers that are inputs
    assigned   the modules and names of buffers that are assigned, each with the tensor before
    by_place   the modules and names of buffers that may be another tensor in each call
    made       containers that the function has filled with what each call would fill them with
    hooks      what the hooks reach that were called, and the results of functions with a cache
    differentiates  whether gradients are computed in it
    accumulates     whether they are accumulated in leaves
    recorded_grad_mode  the grad mode of the call that is recorded
    asks_autograd   whether the recording depends on what autograd knows of the arguments
    asks_layout     whether it depends on how the elements of arguments lie in memory
    asks_identity   whether it depends on which arguments are one tensor
    constants       inputs in place of `inputs`, once the tensors among these are constants
    keeps_history   whether a captured tensor takes over elements that depend on a leaf
    uses_changed_leaf  whether a result depends on a leaf that was changed in place before
    """

    def __init__(self, trace: Trace, given: Sequence[Any]) -> None:
        self.trace, self.given = trace, given
        self.arguments: list[Tracer] = []
        self.same: dict[int, Tensor] = {}
        self.inputs: list[tuple[Input, Tracer, Value]] = []
        self.leaves: dict[Value, Tensor] = {}
        self.leaves_within = set[Value]()
        self.severed = dict[Value, Loc]()
        self.requiring: list[int] = []
        self.retained: dict[Value, Tensor] = {}
        self.effects: list[Callable[[], Any]] = []
        self.hosts: list[Any] = []
        self.read: list[Tensor] = []
        self.numbers: list[tuple[MutableMapping[str, Any], str]] = []
        self.assigned: dict[tuple[int, str], tuple[Any, str, Tensor]] = {}
        self.by_place: list[tuple[Any, str]] = []
        self.made: list[Any] = []
        self.differentiates = self.accumulates = self.asks_autograd = False
        self.asks_layout = self.asks_identity = False
        self.keeps_history = self.uses_changed_leaf = False
        self.recorded_grad_mode = mode.enabled
        self.hooks: list[Any] = []
        self.constants: list[Input] | None = None
        self._types: list[tuple[Tensor, Any, tuple[int, ...], Any]] = []
        self._ordered: list[tuple[Tensor, bool]] = []
        self._buffers: list[tuple[Input, Any, tuple[int, ...], Any]] = []
        self._fixed: list[Any] | None = None               # the tensors among the inputs; the others have to be asked
        self._others: list[tuple[int, Input]] = []
        self._tensors: dict[int, Tracer] = {}
        self._numbers: dict[tuple[int, str, int | None], Tracer] = {}
        self._gradients: dict[int, GradientState] = {}

    # -- inputs -------------------------------------------------------------------------------------------------------
    def argument(self, tracer: Tracer, number: int) -> None:
        """Register an argument of the function."""
        self.arguments.append(tracer)
        given = self.given[number] if number < len(self.given) else None
        if type(given) is Tensor and given.requires_grad:
            self.leaves[tracer.value] = tracer

    def tensor(self, tensor: Tensor) -> Tracer:
        """The tracer of a tensor."""
        tracer = self._tensors.get(id(tensor))
        if tracer is None:
            number = next((i for i, x in enumerate(self.given) if x is tensor), None)
            if number is not None:
                self.same[number] = tensor
                tracer = self.arguments[number]
            else:
                array = tensor.backing_array
                tracer = self._input(CapturedTensor(tensor), array)
                self._types.append((tensor, type(array), tuple(array.shape), array.dtype))
                if tensor.requires_grad:
                    self.leaves[tracer.value] = tensor
            self._tensors[id(tensor)] = tracer
        return tracer

    def known(self, tensor: Tensor) -> Tracer | None:
        """The tracer of a tensor; None if the function has not used it."""
        return self._tensors.get(id(tensor))

    def done(self) -> tuple[int, ...]:
        """How often the recording has done what is no operation on tensors."""
        others = sum(not isinstance(source, CapturedTensor) for source, _, _ in self.inputs)
        return others, *map(len, (self.effects, self.hosts, self.read, self.made, self.hooks, self.retained,
                                  self.requiring, self._gradients, self.severed, self.leaves_within, self.assigned))

    @contextmanager
    def noting(self, asked: list[str]) -> Iterator[None]:
        """Context after which `asked` are the facts about derivatives that something within depends on or computes."""
        before = {name: getattr(self, name) for name in _FACTS}
        vars(self).update(dict.fromkeys(_FACTS, False))
        try:
            yield
        finally:
            asked += [name for name in _FACTS if getattr(self, name)]
            vars(self).update({name: was or getattr(self, name) for name, was in before.items()})

    def number(self, mapping: MutableMapping[str, Any], key: str, check: Callable[[Any], None],
               index: int | None = None) -> Tracer:
        """The tracer of a number in a mapping, or in a sequence there, which may be another one in each call, unless
        `check` refuses it."""
        if self.effects:
            raise refusal(f"{key!r} is read after a host function that may change it", code="MLC0722", loc=user_loc(),
                          hint="call scheduler.step() after optimizer.step()")
        tracer = self._numbers.get((id(mapping), key, index))
        if tracer is None:
            source = CapturedNumber(mapping, key, index, check)
            tracer = self._numbers[id(mapping), key, index] = self._input(source, np.zeros(()), True)
            self.numbers.append((mapping, key))
        return tracer

    def key(self, generator: Any) -> Tracer:
        """The tracer of the next key of a generator."""
        return self._input(CapturedKey(generator), np.zeros(2, np.uint32))

    def _input(self, source: Input, array: BackingArray, weak: bool = False) -> Tracer:
        tracer = self.trace.arg(TensorType(tuple(array.shape), from_numpy(array.dtype)), weak=weak)
        self.inputs.append((source, tracer, tracer.value))
        return tracer

    def held_by(self, tracer: Any) -> Tensor | None:
        """The tensor that a tracer stands for, if it is a captured one."""
        return next((source.tensor for source, known, _ in self.inputs
                     if known is tracer and isinstance(source, CapturedTensor)), None)

    def check_alone(self, tensor: Tensor) -> None:
        """UserError if another captured tensor, or an argument, shares the memory of one that is changed."""
        for other in [*self.tensors(), *(x for x in self.given if type(x) is Tensor)]:
            if other is not tensor and tensor._storage is not None and other._storage is tensor._storage:
                raise refusal("a tensor would be changed in place whose memory another one shares that the function "
                              "uses", code="MLC0756", loc=user_loc(), hint="make views of it within the function")

    def elements(self, tracer: Tracer) -> Any:
        """The elements of a captured tensor that a function is specialized to; None for any other tracer."""
        for source, known, value in self.inputs:
            if value is tracer.value and known.value is value and isinstance(source, CapturedTensor):
                self.read.append(source.tensor)
                return source.tensor.array
        return None

    def note_read(self, tensor: Any) -> None:
        """Note that the program has read the elements of a tensor while the function was recorded; UserError if the
        function has changed it before."""
        if any(tracer.value is not value for source, tracer, value in self.inputs
               if isinstance(source, CapturedTensor) and source.tensor is tensor):
            raise refusal("the elements of a tensor are read that the function has changed before: they are only known "
                          "when the compiled function runs", code="MLC0350", loc=user_loc(),
                          hint="read them before, or outside of the function")
        self.read.append(tensor)

    def grad_mode(self) -> bool:
        """The grad mode of the call that the function is recorded for."""
        self.asks_autograd = True
        return self.recorded_grad_mode

    def is_in_order(self, tracer: Tracer, asks: bool) -> bool:
        """Whether the elements of an argument or a captured tensor lie in memory in order; if it `asks`, the recording
        depends on that."""
        number, tensor = self._number_of(tracer), self.held_by(tracer)
        given = tensor if number is None else self.given[number] if number < len(self.given) else None
        if not isinstance(given, Tensor | np.ndarray):
            return True
        found = in_order(given)
        if asks and tensor is not None:
            self._ordered.append((tensor, found))
        self.asks_layout = self.asks_layout or (asks and number is not None)
        return found

    def are_one(self, x: Any, y: Any) -> bool:
        """Whether an argument is the tensor that another argument is, or one that the function reaches by itself."""
        numbers = [self._number_of(t) for t in (x, y)]
        given: list[Any] = [t if n is None else self.given[n] if n < len(self.given) else None
                            for t, n in zip((x, y), numbers)]
        if None not in numbers:
            self.asks_identity = True
            return given[0] is given[1] and isinstance(given[0], Tensor | np.ndarray)
        if numbers == [None, None] or any(type(t) is not Tensor for t, n in zip(given, numbers) if n is None):
            return False                                   # one of them is computed
        if given[0] is not given[1]:
            raise refusal("whether an argument is a tensor that the function reaches by itself is asked: it may be in "
                          "another call", code="MLC0616", loc=user_loc(), hint="pass what decides it as an argument")
        self.tensor(given[0])                              # other calls have to pass it, too
        return True

    # -- buffers that are assigned ------------------------------------------------------------------------------------
    def note_assigned(self, module: Any, name: str, before: Tensor) -> None:
        """Note that a buffer of a module is another tensor now."""
        self.assigned.setdefault((id(module), name), (module, name, before))

    def take_by_place(self, module: Any, name: str, before: Tensor) -> None:
        """Have the buffer of a module be any tensor: take it as an input, in the place of the tensor that it is in the
        call that is recorded, if that is one."""
        self.by_place.append((module, name))
        for i, (source, tracer, value) in enumerate(self.inputs):
            if isinstance(source, CapturedTensor) and source.tensor is before:
                self.inputs[i] = CapturedBuffer(module, name), tracer, value
                self._buffers += [(self.inputs[i][0], *row[1:]) for row in self._types if row[0] is before]
                self._types = [row for row in self._types if row[0] is not before]

    # -- gradients ----------------------------------------------------------------------------------------------------
    def gradient(self, owner: Tensor) -> Tensor | None:
        """`owner.grad`."""
        state = self._state(owner)
        self.asks_autograd = True
        if state.current is _UNREAD:
            held = self.tensor_of(owner)
            found = None if held is None or held._autograd is None else held._autograd.grad
            state.present = found is not None
            state.initial = None if found is None else self._input(
                CapturedGradient(self._name(owner)), found.backing_array)
            state.current = state.initial
        return state.current  # type: ignore[no-any-return]

    def set_gradient(self, owner: Tensor, value: Tensor | None) -> None:
        """`owner.grad = value`."""
        if self.trace.in_region:
            raise refusal("grad of a tensor is set in a loop or branch that depends on a tensor", code="MLC0720",
                          loc=user_loc(), hint="set it outside of the loop or branch, or change it in place there")
        self.asks_autograd = True
        self._state(owner).current = value

    def _state(self, owner: Tensor) -> GradientState:
        found = self._gradients.get(id(owner))
        if found is None:
            tensor = self.held_by(owner)                   # what the program has may be either
            if tensor is not None:
                return self._state(tensor)
            number = next((i for i, x in enumerate(self.given) if x is owner), None)
            if number is not None:
                self.same[number] = owner
                return self._state(self.arguments[number])
            found = self._gradients[id(owner)] = GradientState(owner)
        return found

    def tensor_of(self, owner: Tensor) -> Tensor | None:
        """The tensor of the program that `owner` is, or stands for; None for one that the function makes."""
        if type(owner) is Tensor:
            return owner
        number = self._number_of(owner)
        return None if number is None or type(self.given[number]) is not Tensor else self.given[number]

    def _number_of(self, owner: Any) -> int | None:
        return next((i for i, tracer in enumerate(self.arguments) if tracer is owner), None)

    def _name(self, owner: Tensor) -> Tensor | int:
        number = self._number_of(owner)
        return owner if number is None else number

    def is_leaf(self, tracer: Tracer) -> bool:
        """Whether a tensor that is recorded is a leaf that requires a gradient: not a clone, which has its value."""
        leaf = self.leaves.get(tracer.value)
        return leaf is not None and (leaf is tracer or self._tensors.get(id(leaf)) is tracer)

    def require_gradient(self, tracer: Tracer) -> None:
        """Have a tensor that is recorded be a leaf that requires a gradient."""
        self.leaves[tracer.value] = tracer
        number = self._number_of(tracer)
        if number is not None:
            self.requiring.append(number)
            self.asks_autograd = True

    def holder_of(self, gradient: Any) -> Tensor | int | None:
        """The tensor, or the number of the argument, whose `grad` is the gradient at the end; None if there is none."""
        return next((self._name(state.owner) for state in self._gradients.values()
                     if state.current is gradient and self.tensor_of(state.owner) is not None), None)

    def changed_gradients(self) -> list[tuple[Tensor | int, Any]]:
        """The tensors and arguments whose gradient is another one at the end, each with that."""
        return [(self._name(state.owner), state.current) for state in self._gradients.values()
                if state.current is not state.initial and self.tensor_of(state.owner) is not None]

    def gradients_read(self) -> list[tuple[Tensor, bool]]:
        """The tensors that are no arguments of whose gradient the recording assumes that it is there, or not."""
        return [(state.owner, state.present) for state in self._gradients.values()
                if state.present is not None and type(state.owner) is Tensor]

    def changed(self) -> list[tuple[int, Tracer]]:
        """The inputs that are changed in place, by their numbers, each with what stands for its new elements."""
        return [(i, tracer) for i, (_, tracer, value) in enumerate(self.inputs) if tracer.value is not value]

    def fit(self) -> bool:
        """Whether the tensors that are inputs are of the types that the function was recorded for."""
        if not all(type(t._array) is kind and t._array.shape == shape and t._array.dtype == dtype
                   for t, kind, shape, dtype in self._types):
            return False
        if any(in_order(t) is not before for t, before in self._ordered):
            return False
        now = [(source.operand(()), *row) for source, *row in self._buffers]
        return all(type(t) is Tensor and not t.requires_grad and type(t._array) is kind and t._array.shape == shape
                   and t._array.dtype == dtype for t, kind, shape, dtype in now)

    def as_recorded(self, operands: Sequence[Any]) -> Sequence[Any]:
        """The inputs of a call as the recorded function takes them, given those of the code."""
        if self.constants is None:
            return operands
        others = iter([x for x, source in zip(operands, self.constants) if not isinstance(source, CapturedTensor)])
        return [source.tensor if isinstance(source, CapturedTensor) else next(others) for source, _, _ in self.inputs]

    def sources(self) -> list[Input]:
        """The inputs of the code: those that were recorded, unless constants are in their place."""
        return [source for source, _, _ in self.inputs] if self.constants is None else self.constants

    def tensors(self) -> list[Tensor]:
        """The tensors among the inputs."""
        return [source.tensor for source in self.sources() if isinstance(source, CapturedTensor)]

    def operands(self, given: Sequence[Any]) -> list[Any]:
        """The inputs of a call, once the function is recorded."""
        if self._fixed is None:
            sources = self.sources()
            self._fixed = [x.tensor if isinstance(x, CapturedTensor) else None for x in sources]
            self._others = [(i, x) for i, x in enumerate(sources) if self._fixed[i] is None]
        found = self._fixed.copy()
        for i, source in self._others:
            found[i] = source.operand(given)
        return found


def in_order(x: Any) -> bool:
    """Whether the elements of an argument lie in memory in row-major order."""
    array = x if isinstance(x, np.ndarray) else x._array if type(x) is Tensor else None
    return not isinstance(array, np.ndarray) or array.flags.c_contiguous





def take_over(tensor: Tensor, array: BackingArray) -> None:
    """Have a tensor take over elements that a compiled function has computed, in place."""
    storage = tensor._storage
    if storage is None:
        tensor._array = array
    elif tensor._view is not None or not storage.replace(tensor, array):  # type: ignore[arg-type]
        storage.write(tensor, array)  # type: ignore[arg-type]


def assign_gradients(rows: Sequence[tuple[Tensor | int, int | None]], given: Sequence[Any],
                     results: Sequence[BackingArray]) -> None:
    """Set `grad` of tensors and arguments to results of a call, by their numbers, or to None. A result that is the
    gradient of several is one tensor."""
    made: dict[int, Tensor] = {}
    for owner, number in rows:
        target = owner_of(owner, given)
        if number is not None:
            if number not in made:
                made[number] = wrap(results[number])
            target.autograd_meta.grad = made[number]
        elif target._autograd is not None:
            target._autograd.grad = None


def release_gradients(rows: Sequence[tuple[Tensor | int, int | None]], given: Sequence[Any]) -> None:
    """Set the `grad` that a call is about to replace to None, so that its memory may be freed before."""
    for owner, _ in rows:
        if (autograd := owner_of(owner, given)._autograd) is not None:
            autograd.grad = None
