"""Tracing: a Python function runs once on `Tracer`s, and the operations on them are recorded as a tensor IR function.

Traces nest. A module's `__call__` and a function that is differentiated are recorded as functions of their own; a value
of an enclosing trace that they use becomes an additional argument, passed at the call. Functions that are equal up to
names, and written at the same place, are deduplicated.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mlc.dialects import builtin, func
from mlc.dialects import tensor as T
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.captures import Captures
from mlc.frontend.compiler import compiler
from mlc.frontend.data_dependent import DataDependentSizes, Unpadding, refuse
from mlc.frontend.devices import BackingArray
from mlc.frontend.dispatch import general_path
from mlc.frontend.known_classes import KnownClasses
from mlc.frontend.location import user_loc
from mlc.frontend.loop_memory import LoopMemory
from mlc.frontend.python_arithmetic import on_numbers
from mlc.frontend.refusals import in_progress, unknown
from mlc.frontend.symint import plain_sizes
from mlc.frontend.tensor import Array, Tensor, as_backing_array
from mlc.frontend.tracer import NUMBER_NEEDED, Tracer, value_origin
from mlc.ir import sizes
from mlc.ir.bounds import MAX_ELEMENTS, magnitude
from mlc.ir.core import Block, BlockArg, Op, Symbol, Value, at_end, insertion
from mlc.ir.diag import UNKNOWN, Loc, UserError, UserMemoryError
from mlc.ir.printer import to_text
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType, from_numpy


def captured(f: Callable[..., Any]) -> Callable[..., Any]:
    """Callable to use in place of the user's function `f`: `f` itself while nothing is recorded."""
    return compiler().captured(f) if state.trace is not None else f


class TooMany(UserError):
    """An untrusted program records more operations than allowed."""


class _State(threading.local):
    """The trace in progress in this thread, whether an operation has set the location, and the `Autocast` state."""

    trace: Trace | None = None
    in_operation: bool = False
    autocast: Any = None


state = _State()


@contextmanager
def suspended() -> Iterator[None]:
    """Context in which operations run at once, although a function is being recorded."""
    trace, inside, captures, recording = state.trace, state.in_operation, mode.captures, in_progress.recording
    state.trace, state.in_operation, mode.captures, in_progress.recording = None, False, None, None
    try:
        with on_numbers(False):
            yield
    finally:
        state.trace, state.in_operation, mode.captures, in_progress.recording = trace, inside, captures, recording


class Changes:
    """The tensors of outside that a loop or branch changes in place.

    after    each of them, with a tracer of what it stands for at the end
    spoiled  tensors that may not be used any more after these changes, and where these are
    """

    def __init__(self) -> None:
        self.after: dict[Tracer, Tracer] = {}
        self.spoiled: list[tuple[Tracer, Loc]] = []
        self._before: dict[Tracer, list[tuple[Tracer, Value]]] = {}

    def note(self, base: Tracer) -> None:
        """Note that a tensor is about to be changed, and with it its views."""
        if base not in self._before:
            shared = base._storage.tensors() if base._storage is not None else ()
            self._before[base] = [(x, x.value) for x in {base: None, **dict.fromkeys(shared)} if isinstance(x, Tracer)]

    @property
    def tensors(self) -> list[Tracer]:
        """The tensors that have been changed so far."""
        return [*self._before]

    def undo(self) -> None:
        """Have the tensors stand for what they were before."""
        for base, values in self._before.items():
            self.after[base] = Tracer(base.value, base.owner)
            for x, value in values:
                x.value = value
        for x, _ in self.spoiled:
            x.changed = None


class Trace:
    """One function being recorded. The outermost trace owns the module.

    lifts     whether captured arrays become arguments (`arrays`) or constants
    captures  of the outermost: what the function reaches by itself, where captured tensors become arguments
    """

    captures: Captures | None = None

    def __init__(self, name: str, parent: Trace | None = None, lifts: bool = False) -> None:
        self.parent = parent
        self.root: Trace = parent.root if parent is not None else self
        self.lifts = lifts
        self.module: builtin.Module = parent.module if parent is not None else builtin.module()
        self.function = func.function(name, (), private=parent is not None)
        self.block = self.function.block
        self.captured: dict[Value, Value] = {}             # of the parent's function -> argument of this one
        self.lifted: list[BackingArray] = []               # captured arrays that became arguments
        self.lifted_from: list[Any] = []                   # what held them: a tensor, or the array itself
        # by id: the array, which keeps its id so; elements
        self.arrays: dict[int, tuple[BackingArray, Tracer, BackingArray]] = {}
        self.recorded: dict[str, dict[func.Places, func.Func]] = {}     # of the outermost: functions by their texts
        self.notes: list[tuple[Loc, str, str]] = []         # of the outermost: how control flow was recorded
        self.refused: UserError | None = None              # of the outermost: the first refusal, even if it was caught
        self.regions: list[Block] = []                     # of loops and conditions in progress, innermost last
        self.changes: list[Changes] = []                   # what is changed in place in them
        self.across_ranks: Loc | None = None               # of the outermost: what only a mesh does for all ranks
        self.depth = 0                                     # of the outermost: number of those of all functions
        self.loops = LoopMemory()                          # of the outermost: of the loop in progress
        self.made: list[Tensor] = []                       # of the outermost: tensors of plain data that were made here
        self.spoiled: list[Tensor] = []                    # of the outermost: those of them that were changed since
        self.is_call = False                               # of a function that is called where it is recorded, once
        self.tracers: list[weakref.ref[Tracer]] = []       # of such a function: all of them
        self.adopted: list[tuple[Tracer, Trace, Block]] = []           # tensors of callers that it changes in place
        self.data_of: list[tuple[Any, Any]] = []           # tensors, and what their attribute `data` gave
        self.updates: dict[Value, BlockArg] = {}           # results that replace arguments, which may be written over
        self.before_adoption: list[tuple[Tracer, Value, Trace, Block]] = []
        self.data_dependent = DataDependentSizes(self)
        self.named: set[str] = set()                       # of the outermost: the names of all functions
        self.unpadding: dict[int, Unpadding] = {}
        self.leaving: list[str] = []
        self.emitted = 0                                   # of the outermost: number of operations recorded
        self.left = math.inf                               # of the outermost: number of operations still allowed
        self.known_calls: dict[Any, list[Any]] = {}        # of the outermost: of modules, by what each can see
        self.known_classes = KnownClasses()                # of the outermost: the classes of these

    def arg(self, type: TensorType, name: str = "", weak: bool = False, loc: Loc = UNKNOWN) -> Tracer:
        """Append an argument to the function."""
        out = Tracer(self.block.add_arg(type, name, loc), self, weak)
        out.is_argument = True
        return out

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Context in which operations on tensors are recorded in this trace."""
        saved, state.trace = state.trace, self
        outside = mode.enabled, mode.inherited
        if self.parent is None:                            # its own no_grad alone counts
            mode.enabled, mode.inherited = True, self.captures is not None
        inside, state.in_operation = state.in_operation, False
        around, in_progress.recording = in_progress.recording, self.root
        gradients, mode.captures = mode.captures, self.root.captures
        try:
            with at_end(self.block), general_path():
                yield
        finally:
            state.trace, state.in_operation = saved, inside
            mode.enabled, mode.inherited = outside
            in_progress.recording, mode.captures = around, gradients

    @contextmanager
    def region(self, block: Block, loc: Loc) -> Iterator[Changes]:
        """Context in which operations are recorded in `block`, the body of a loop or condition that is built later.

        The block may use the values around it; its own values may not be used outside. Tensors of outside that are
        changed in place stand for their former values after it: who builds the loop or condition gives them new ones.
        """
        self.regions.append(block)
        changes = Changes()
        self.changes.append(changes)
        self.root.depth += 1
        try:
            with at_end(block):
                yield changes
        except BaseException as error:
            discard(block)
            if isinstance(error, RecursionError) and self.root.depth == 1:
                raise UserError("infinite recursion while recording: only the value of a tensor ends it",
                                code="MLC0613", loc=loc, hint="write a loop") from None
            raise
        finally:
            self.regions.pop()
            self.changes.pop()
            self.root.depth -= 1
            changes.undo()

    @property
    def innermost(self) -> Block:
        """The block that is being recorded: of the function, or of a loop or branch in it."""
        return self.regions[-1] if self.regions else self.block

    @property
    def in_region(self) -> bool:
        """Whether the operations recorded now may run a number of times other than one."""
        return self.root.depth > 0

    def local(self, tracer: Tracer) -> Value:
        """The value in this function of a tracer of this trace or an enclosing one."""
        if tracer.changed is not None:
            raise UserError("a tensor is used after it was changed in place, in a loop or branch, by another name",
                            code="MLC0756", loc=user_loc(), notes=(f"it was changed at {tracer.changed}",),
                            hint="use that name, or write x = x + y there")
        return self._captured(tracer.value, tracer.owner)

    def _captured(self, value: Value, owner: Trace) -> Value:
        if owner is self:
            home = value.op.parent if value.op is not None else value.owner
            if home is not self.block and home not in self.regions:
                raise UserError(f"a {value.type} that is computed inside of a loop or branch is used outside of it",
                                code="MLC0600", loc=user_loc(),
                                notes=(f"the value comes from {value_origin(value)}",),
                                hint="return it from the loop or branch, or carry it through the loop")
            if self.root.named:
                self.check_sizes(str(value.type), getattr(value.type, "shape", ()))
            return value
        if self.parent is None:
            raise UserError(f"a {value.type} is used after the function it belongs to has been recorded",
                            code="MLC0351", notes=(f"the value comes from {value_origin(value)}",),
                            hint="return it from the function instead of storing it")
        outer = self.parent._captured(value, owner)
        if outer not in self.captured:
            self.captured[outer] = self.block.add_arg(outer.type, outer.name)
        return self.captured[outer]

    def seen_as(self, value: Value, owner: Trace) -> Value | None:
        """The value in this function of one of an enclosing trace, or of this one; None if it has not been used."""
        if owner is self or self.parent is None:
            return value if owner is self else None
        outer = self.parent.seen_as(value, owner)
        return None if outer is None else self.captured.get(outer)

    def value_of(self, x: Tensor) -> Value | None:
        """The value in this function of a tensor; None if the function has not used it."""
        captures = self.root.captures
        known = x if isinstance(x, Tracer) else None if captures is None else captures.known(x)
        return None if known is None else self.seen_as(known.value, known.owner)

    def count(self, operations: int) -> None:
        """Of the outermost: count operations that are recorded, and raise TooMany if they are more than allowed."""
        self.left -= operations
        self.emitted += operations
        if self.left < 0:
            raise TooMany("too many operations are recorded", code="MLC0621", loc=user_loc())

    def check_sizes(self, what: str, shape: Iterable[Any]) -> None:
        """Raise UserError if a data-dependent size is bound in a loop or branch that has been left."""
        for name in {n for d in shape for n in sizes.symbols(d)} & self.root.named:
            around: Trace | None = self
            while around is not None and name not in around.data_dependent.bindings:
                around = around.parent
            home = around.data_dependent.bindings[name].parent if around is not None else None
            if around is None or home not in (around.block, *around.regions):
                raise UserError(f"a {what} is used outside of the loop, branch or function that binds its "
                                f"data-dependent size {name}", code="MLC0600", loc=user_loc(),
                                hint="reduce it there, or choose by the mask with mlc.where, which keeps the size")

    def known(self, array: BackingArray, tensor: Tensor | None = None) -> Tracer:
        """Tracer of a captured array: a constant, or an argument whose array is appended to `lifted`.

        Either way it stands for the current elements; only those of a Tensor are assumed to be immutable.
        """
        captures = self.root.captures
        if tensor is not None and captures is not None and not any(tensor is made for made in self.root.made):
            return captures.tensor(tensor)
        keeper = self.root if self.root.lifts else self
        found = keeper.arrays.get(id(array))
        if found is not None and (found[2] is array or not isinstance(array, np.ndarray)
                                  or found[2].tobytes() == array.tobytes()):  # type: ignore[union-attr]
            return found[1]
        elements: BackingArray
        if keeper.lifts:
            kept = tensor is not None or not isinstance(array, np.ndarray) or not array.flags.writeable
            elements = array if kept else np.array(array, order="C")
            tracer = keeper.arg(TensorType(array.shape, from_numpy(array.dtype)))
            keeper.lifted.append(elements)
            keeper.lifted_from.append(elements if tensor is None else tensor)
        else:
            elements = np.array(array if isinstance(array, np.ndarray) else array.numpy(), order="C")
            with insertion(self.block, self.block.first if self.regions else None):    # for all regions to see
                tracer = Tracer(T.Constant(elements).result, self)
        keeper.arrays[id(array)] = (array, tracer, elements)
        return tracer

    def elements(self, tracer: Tracer) -> Array | None:
        """The elements of a captured array; None for computed values and arguments.

        A caller specializes the recorded function to these elements.
        """
        op = tracer.value.op
        if isinstance(op, T.Constant):
            return op.value
        if self.root.captures is not None:
            return self.root.captures.elements(tracer)  # type: ignore[no-any-return]
        found = (kept for _, known, kept in self.root.arrays.values() if known.value is tracer.value)
        return next((kept for kept in found if isinstance(kept, np.ndarray)), None)

    def _leave(self, values: Sequence[Value], pads: bool) -> list[Value]:
        """Results of the function, with those of data-dependent sizes padded, followed by the true sizes."""
        if not pads:
            refuse(values, self.data_dependent, str(self.function.sym_name), user_loc())
        if self.parent is None:
            padded, self.unpadding = self.data_dependent.results(values)
            return padded
        padded, numbers = self.data_dependent.padded(values)
        self.leaving = list(numbers)
        return [*padded, *numbers.values()]

    def check_device(self, device: str) -> None:
        """UserError where statistics are to be those of all ranks, and the code is for one rank, not for a mesh."""
        if self.across_ranks is not None and not device.startswith("mesh"):
            raise UserError("SyncBatchNorm is trained in a function that is compiled for one rank, which would have "
                            "the statistics of its own batch only", code="MLC0976", loc=self.across_ranks,
                            hint="do not compile the model, or have its tensors on a mesh: mlc.distributed.mesh(...)")

    def finish(self, results: Sequence[Tracer], pads: bool = False) -> func.Func:
        """Complete the function with these results. A nested one is added to the module, or an equal one reused.

        pads   whether the caller unpads results of data-dependent size: of the outermost function as `unpadding` says,
               and of a nested one by the sizes `leaving`, whose values follow the results
        """
        if self.root.refused is not None:
            raise self.root.refused
        if self.parent is None:
            self.data_of.clear()
        values = [self.local(r) for r in results]
        if self.data_dependent.bindings:
            values = self._leave(values, pads)
        func.Return(tuple(values))
        if self.parent is not None:
            self._tell_sizes()
        self.function.update_type()
        if self.parent is None:
            self.module.body.block.insert(self.function)
            return self.function
        name, names = self.function.sym_name, [arg.name for arg in self.block.args]
        self.function.sym_name = Symbol("f")
        for arg in self.block.args:                         # names do not make functions differ
            arg.name = ""
        text = to_text(self.function)
        for arg, original in zip(self.block.args, names):
            arg.name = original
        alike, places = self.root.recorded.setdefault(text, {}), func.places(self.function)
        if (found := alike.get(places)) is None:
            if alike:                                       # later passes must not make them one either
                self.function.attrs[func.WRITTEN_AT] = len(alike)
            found = alike[places] = self.function
            taken = {f.sym_name for f in self.root.nested()} | {"main"}
            found.sym_name = Symbol(next(n for n in (name, *(f"{name}_{i}" for i in range(1, len(taken) + 1)))
                                         if n not in taken))
            self.module.body.block.insert(found)
        return found

    def nested(self) -> list[func.Func]:
        """Of the outermost: the functions that have been recorded within it."""
        return [function for alike in self.recorded.values() for function in alike.values()]

    def _tell_sizes(self) -> None:
        """Add an argument for each size symbol that the function uses but no argument determines."""
        bound = {str(d) for a in self.block.args for d in a.type.shape}
        used = {s for op in self.function.walk() for d in _sizes_of(op) for s in sizes.symbols(d)}
        used |= {s for a in self.block.args for d in a.type.shape for s in sizes.symbols(d)}
        around: Trace | None = self.parent
        while around is not None:
            for name, binding in around.data_dependent.bindings.items():
                if name in used and name not in bound:
                    self._captured(binding.result, around)
                    bound.add(name)
            for arg in list(around.block.args):
                if any(str(d) in used and str(d) not in bound for d in arg.type.shape):
                    self._captured(arg, around)
                    bound |= {str(d) for d in arg.type.shape}
            around = around.parent

    def arguments(self) -> list[Value]:
        """Values captured from the parent, which a call of the nested function passes after its own arguments."""
        return list(self.captured)


def discard(block: Block) -> None:
    """Erase the operations recorded in a detached block."""
    for op in block.ops:
        op.drop_uses()
    block.first = block.last = None


def _sizes_of(op: Op) -> Iterator[Size]:
    work: list[Any] = [*op.attrs.values(), *(r.type for r in op.results)]
    while work:
        x = work.pop()
        if isinstance(x, Size):
            yield x
        elif isinstance(x, tuple | list):
            work += x
        elif isinstance(x, TensorType):
            work += x.shape


def _check_numbers(op: Op) -> None:
    """UserMemoryError if a result has more elements than there may be, whatever its unknown sizes are, and UserError if
    an attribute, such as a stride, does not fit in 64 bits: the operation may check it, or one it is decomposed into;
    or if one is a number that only a call knows.
    """
    if not isinstance(op, T.Full):                         # which knows its type, as unsigned numbers may be larger
        work: list[Any] = list(op.attrs.values())
        while work:
            x = work.pop()
            if type(x) is tuple:
                work += x
            elif isinstance(x, Value):
                raise unknown(x, f"a setting of {op.name.removeprefix('tensor.')} is a {x.type} that is being "
                              "recorded, and its number is only known when the compiled function runs", code="MLC0350",
                              loc=user_loc(), notes=(f"the value comes from {value_origin(x)}",), hint=NUMBER_NEEDED)
            elif type(x) is int and not -2**63 <= x < 2**63:
                raise UserError(f"{op.name.removeprefix('tensor.')}: {x} does not fit in 64 bits"[-200:],
                                code="MLC0348", loc=user_loc())
    for result in op.results:
        if isinstance(result.type, TensorType):
            shape = result.type.shape
            if math.prod([d or 1 if isinstance(d, int) else magnitude(d, lambda _: 1) for d in shape]) >= MAX_ELEMENTS:
                raise UserMemoryError(f"{op.name.removeprefix('tensor.')}: shape [{', '.join(map(str, shape))}] is "
                                      "beyond all memory", code="MLC0328", loc=user_loc())


def current() -> Trace:
    """The trace in progress."""
    assert state.trace is not None, "nothing is being recorded"
    return state.trace


def note(kind: str, what: str) -> None:
    """Note for reports how Python's control flow at the user's line was recorded."""
    if (found := (user_loc(), kind, what)) not in (notes := current().root.notes):
        notes.append(found)


def as_tracer(x: Any) -> Tracer:
    """Tracer in the current trace for a tensor or an array."""
    if isinstance(x, Tracer):
        return x
    if current().root.spoiled and any(x is t for t in current().root.spoiled):
        raise UserError("a tensor is used after it was changed in place by another name", code="MLC0756",
                        loc=user_loc(), hint="use that name, or begin with mlc.zeros or a clone")
    return current().known(as_backing_array(x), x if isinstance(x, Tensor) else None)


def emit(cls: Callable[..., Any], *args: Any, weak: bool = False, **attrs: Any) -> Any:
    """Record the operation `cls` on tracers (a tuple for a variadic operand); returns its result, or a tuple."""
    trace = current()
    trace.root.count(1)

    def unwrap(x: Any) -> Any:
        if isinstance(x, Tracer):
            return trace.local(x)
        if isinstance(x, tuple) and x and isinstance(x[0], Tracer):
            return tuple(trace.local(t) for t in x)
        return plain_sizes(x)

    out = cls(*map(unwrap, args), **{k: unwrap(v) for k, v in attrs.items()})
    op: Op = out.op if isinstance(out, Value) else out  # type: ignore[assignment]
    _check_numbers(op)
    if trace.root.named:
        trace.check_sizes(op.name.removeprefix("tensor."), _sizes_of(op))
    if isinstance(out, Value):
        return Tracer(out, trace, weak)
    results = tuple(Tracer(r, trace, weak) for r in out.results)
    return results[0] if len(results) == 1 else results
