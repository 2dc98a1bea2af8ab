"""Signatures of calls: which leaves are arrays, which are numbers, and which are compile-time constants."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlc.frontend import tree
from mlc.frontend.abstract_values import Undefined
from mlc.frontend.arguments import check_call, coded
from mlc.frontend.autograd.view_node import View
from mlc.frontend.backward import depend_on_changed_leaf, dependences, depends_on_leaf
from mlc.frontend.buffers import Buffers
from mlc.frontend.captures import CapturedGradient, Captures
from mlc.frontend.data_dependent import unpad
from mlc.frontend.devices import BackingArray, device_of_call
from mlc.frontend.dtypes import as_dtype
from mlc.frontend.eager import frozen, to_default_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.operation_errors import as_user_error
from mlc.frontend.operators import is_operand
from mlc.frontend.refusals import refusal
from mlc.frontend.script.reach import Reached
from mlc.frontend.tensor import Array, Consumed, DTypeLike, Tensor, as_array, as_backing_array, wrap
from mlc.frontend.trace import Trace, Tracer, captured
from mlc.ir import sizes
from mlc.ir.affine_syntax import parse_size
from mlc.ir.core import located
from mlc.ir.diag import Error, IRError, Loc, UserError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import TensorType, from_numpy


class Spec(tree.Leaf):
    """Specification of an array argument: sizes, which may be symbols, and a dtype. `mlc.spec` makes it.

    Args:
        type: The tensor type.

    Example:
        >>> mlc.spec("B", 16) == mlc.spec("B", 16)
        True
    """

    __slots__ = ("type",)

    def __init__(self, type: TensorType) -> None:
        self.type = type

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes, integers or symbolic sizes."""
        return self.type.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"spec({self.type})"


SIZES = 'use a number, a symbol such as "B", or an expression such as "2*B"'


@coded
def spec(*shape: int | str | Size, dtype: DTypeLike = "float32") -> Spec:
    """Specification of an array argument, for `mlc.compile`, `mlc.lower` and annotations.

    Equal symbols stand for equal sizes, in all arguments of a function.

    Args:
        shape: Sizes: integers of at least 0, symbols such as "B", or expressions such as "2*B + 1".
        dtype: Element type.

    Returns:
        The specification.

    Raises:
        UserError: An expression cannot be parsed (MLC0371).
        UserTypeError: A size is negative or no size (MLC0371), or `dtype` is no element type (MLC0342).

    Example:
        >>> mlc.spec("B", 16)
        spec(tensor<Bx16xf32>)
    """
    dims: list[Dim] = []
    for d in shape:
        known: Any = d
        if isinstance(known, bool) or not isinstance(known, int | str | Size) or (isinstance(known, int) and known < 0):
            raise UserTypeError(f"{d!r} is no size", code="MLC0371", loc=user_loc(), hint=SIZES)
        try:
            dims.append(parse_size(d) if isinstance(d, str) else d)
        except IRError as error:
            raise UserError(error.message, code="MLC0371", loc=user_loc(), hint=SIZES) from None
    return Spec(TensorType(tuple(dims), as_dtype(dtype).ir))


class Arguments:
    """The leaves of one call, classified.

    arrays   the arguments of the compiled function
    given    the leaf that each array came from
    slots    per leaf: whether it is an array
    key      all that the compiled function depends on, except the device
    device   the device of the tensors among the arrays
    """

    __slots__ = ("arrays", "device", "given", "key", "leaves", "slots", "structure", "types", "weak")

    def __init__(self, leaves: Sequence[Any], structure: tree.TreeDef,
                 specs: Sequence[Spec | None] | None = None) -> None:
        self.leaves = leaves
        self.structure = structure
        self.arrays: list[BackingArray] = []
        self.given: list[Any] = []
        self.slots: list[bool] = []
        self.types: list[TensorType | None] = []           # of leaves with a specification
        self.weak: list[bool] = []
        key: list[Any] = [structure]
        for i, x in enumerate(leaves):
            wanted = specs[i] if specs is not None else None
            array, weak = _array_of(x, wanted)
            self.slots.append(array is not None)
            if array is None:
                key.append(frozen(x))
                continue
            self.arrays.append(array)
            self.given.append(x)
            self.weak.append(weak)
            self.types.append(wanted.type if wanted is not None else None)
            key.append(wanted if wanted is not None else (type(x) if weak else (array.dtype, array.shape)))
        self.device = device_of_call(self.arrays)
        self.key = tuple(key)

    def operands(self) -> list[Any]:
        """The tensors among the arguments as they are, so that their gradients are known; the arrays of all others."""
        return [x if type(x) is Tensor else array for x, array in zip(self.given, self.arrays)]

    def input_types(self) -> list[TensorType]:
        return [wanted or TensorType(a.shape, from_numpy((as_array(a) if isinstance(a, np.ndarray) else a).dtype))
                for a, wanted in zip(self.arrays, self.types)]


def _array_of(x: Any, wanted: Spec | None) -> tuple[BackingArray | None, bool]:
    """The array of a leaf, and whether it is a Python number; None for a compile-time constant."""
    if type(x) is Tensor:
        return x.backing_array, False
    if isinstance(x, np.ndarray):
        return (x if x.dtype.isnative else as_array(x)), False
    if isinstance(x, int | float) and not isinstance(x, np.generic):
        if wanted is not None and type(x) is not bool:
            return _number(x, wanted), False
        if type(x) is not int and type(x) is not float:
            return None, False                             # True, and members of an IntEnum, are distinct by identity
        if type(x) is int and not -2**63 <= x < 2**63:
            raise UserError(f"{x} does not fit in 64 bits", code="MLC0348", loc=user_loc())
        return np.array(x), True
    if isinstance(x, Spec):                                # for `lower`: only its type is needed
        return np.empty(0, np.uint8), False
    if isinstance(x, Tracer):
        raise UserError(f"a {x.type} is used after the function it belongs to has been recorded", code="MLC0351",
                        loc=user_loc(), hint="return it from the function instead of storing it")
    return (as_backing_array(x), False) if is_operand(x) else (None, False)


def _number(x: int | float, wanted: Spec) -> Array:
    """Convert a Python number to an array of the specified type."""
    out = as_array(x, wanted.type.dtype)
    if out.dtype.kind in "biu" and out.item() != x:
        raise UserTypeError(f"{x} is no {out.dtype}, which is specified", code="MLC0352", loc=user_loc(),
                            hint=f"pass another number, or specify {'float32' if type(x) is float else 'int64'}")
    return out


def name_of(f: Callable[..., Any]) -> str:
    """Name of a function in messages and in IR."""
    name = str(getattr(f, "__name__", type(f).__name__))
    return name if name.isidentifier() else "function"


def parameters(f: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name; empty if it has no signature."""
    try:
        return dict(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return {}


def roots(names: Sequence[str], args: Sequence[Any], keywords: dict[str, Any]) -> list[tuple[str, Any]]:
    """(name, argument) pairs of a call, in the order of its leaves."""
    return [*((names[i] if i < len(names) else f"args[{i}]", x) for i, x in enumerate(args)), *keywords.items()]


# -- recording a whole function ---------------------------------------------------------------------------------------
SHARING = ("argument", "leaf", "captured", "gradient")
"""Kinds of outputs that may be tensors which were there before the call, or share their memory."""


@dataclass
class Recorded:
    """A function recorded as a module with the entry @main, and how to rebuild the Python result from its results.

    outputs   per leaf of the result: ("result", its number), ("value", the leaf itself), for a padded result of
              data-dependent size, ("first", (its number, the axes and the results that are its sizes)), or, for an
              argument or a view of one, ("argument", (its number, that of the result, the view or None)), or, for
              another leaf or a view of one, ("leaf", (its number, that of the result, the view or None)), or, for a
              tensor that the function reaches by itself, ("captured", (that, the number of the result, the view)), or,
              for the gradient of one, ("gradient", (the tensor or the number of the argument, as above, the view))
    captured  arrays that the function captured (globals, closures); it takes them after its arguments
    captures  what the function reaches by itself: inputs after the arguments, and what happens after a call
    stored    for those inputs that are changed in place: number of the input, number of the result
    gradients tensors, or numbers of arguments, whose `grad` is set: to a result, by its number, or to None
    assigned  for buffers of the argument modules that are assigned: number of the buffer, number of the result
    written   for arguments that are changed in place: number of the array, number of the result
    depends   per result: the numbers of the arguments and captured inputs that it has a derivative by
    function  a copy of the module for derivatives, where a call is recorded for `backward`
    """

    trace: Trace
    structure: tree.TreeDef
    outputs: list[tuple[str, Any]]
    captured: list[BackingArray] = field(default_factory=list)
    assigned: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    captures: Captures | None = None
    stored: dict[int, int] = field(default_factory=dict)
    gradients: list[tuple[Tensor | int, int | None]] = field(default_factory=list)
    depends: list[frozenset[int]] | None = None
    function: Any = None

    @property
    def computes(self) -> bool:
        """Whether there is anything to run."""
        changes = self.assigned or self.written or self.stored
        return (bool(changes) or any(number is not None for _, number in self.gradients)
                or any(kind != "value" for kind, _ in self.outputs))

    def result(self, results: Sequence[BackingArray], given: Sequence[Any] = ()) -> Any:
        """Result of the Python function, rebuilt from those of the compiled one, and from the arguments."""
        make = object.__new__
        leaves = []
        for kind, x in self.outputs:
            if kind == "argument" and (found := _given(given, *x)) is not None:
                leaves.append(found)
            elif kind == "captured":
                tensor, _, view = x
                leaves.append(tensor if view is None else view.of(tensor))
            elif kind == "gradient":
                owner, _, view = x
                gradient = (given[owner] if isinstance(owner, int) else owner).grad
                leaves.append(gradient if view is None else view.of(gradient))
            elif kind == "leaf":
                number, _, view = x
                leaves.append(leaves[number] if view is None else view.of(leaves[number]))
            elif kind != "value":
                out = make(Tensor)
                out._array = (results[x] if kind == "result" else results[x[1]] if kind == "argument" else
                              unpad(results, *x))
                leaves.append(out)
            else:
                leaves.append(x)
        return self.structure.unflatten(leaves)

    def captured_operands(self, given: Sequence[Any]) -> list[Any]:
        """The inputs of a call besides its arguments."""
        return self.captures.operands(given) if self.captures is not None else []

    @property
    def differentiates(self) -> bool:
        """Whether gradients are computed in the function."""
        return self.captures is not None and self.captures.differentiates

    @property
    def accumulates(self) -> bool:
        """Whether gradients are accumulated in leaves."""
        return self.captures is not None and self.captures.accumulates

    @property
    def captures_gradients(self) -> bool:
        """Whether inputs are gradients of tensors."""
        return self.captures is not None and any(
            isinstance(source, CapturedGradient) for source, _, _ in self.captures.inputs)

    @property
    def has_effects(self) -> bool:
        """Whether a call changes anything but its arguments."""
        captures = self.captures
        return bool(self.stored or self.gradients) or (
            captures is not None and bool(captures.effects or captures.requiring))

    def plain_outputs(self) -> list[tuple[str, Any]]:
        """The outputs where arguments that are returned are copies."""
        return [("result", x[1]) if kind in SHARING else (kind, x)
                for kind, x in self.outputs]

    def assign(self, given: tuple[Any, ...], results: Sequence[BackingArray]) -> None:
        """Store the buffers that the call assigned in the modules among the arguments `given` (args, keywords)."""
        if self.assigned:
            Buffers(*given).assign({i: wrap(results[n]) for i, n in self.assigned.items()})


def _given(given: Sequence[Any], number: int, result: int, view: View | None) -> Tensor | None:
    """An argument that is a result, or the view of it that is; None if it is no tensor, or no more."""
    x = given[number] if given else None
    if type(x) is not Tensor or type(x._array) is Consumed:
        return None
    return x if view is None else view.of(x)


def record_entry(f: Callable[..., Any], arguments: Arguments, names: Sequence[str] = (), lifts: bool = False,
                 donated: Sequence[int] = (), reached: Any = None, name: str = "", writes: bool = False,
                 captures: bool = False) -> Recorded:
    """Record f(*args, **keywords), where `arguments` holds the leaves of (args, keywords).

    names    names of the leaves that are arrays
    lifts    whether captured arrays become arguments instead of constants
    donated  numbers of the arrays whose memory the results may reuse
    reached  captured state, which the function may not change
    name     name of the function in messages, if not its own
    writes   whether the caller writes to the arguments that the function changes in place
    captures whether tensors that the function reaches by itself are inputs, which it may change
    """
    loc, name = user_loc(), name or name_of(f)
    trace = Trace("main", lifts=lifts)
    trace.function.loc = loc
    own = [trace.arg(type, _identifier(names[i]) if i < len(names) else "", weak, loc)
           for i, (type, weak) in enumerate(zip(arguments.input_types(), arguments.weak))]
    before = [t.value for t in own]
    if captures:
        trace.captures = Captures(trace, arguments.given)
        for i, t in enumerate(own):
            trace.captures.argument(t, i)
    pending = iter(own)
    leaves = [next(pending) if slot else (x.value if isinstance(x, tree.Static) else x)
              for x, slot in zip(arguments.leaves, arguments.slots)]
    args, keywords = arguments.structure.unflatten(leaves)
    check_call(f, name, args, keywords)
    buffers = Buffers(args, keywords)
    around = [Reached(dict(roots([*parameters(f)], args, keywords)), buffers=False)]
    around += [reached] if reached is not None else []
    with trace.recording():
        with unchanged(around, name, loc, trace.captures):
            out, structure = tree.flatten(captured(f)(*args, **keywords))
        try:
            with located(loc):
                outputs, results = _outputs(out, own, trace.captures, name, loc)
                count = len(results)
                returned = {r.value for r in results}
                kept = {i: x for i, x in buffers.take().items() if trace.local(tracer(x)) not in returned}
                assigned = {i: len(results) + n for n, i in enumerate(kept)}
                results += [tracer(x) for x in kept.values()]
                changed = [i for i, (t, value) in enumerate(zip(own, before)) if t.value is not value]
                if changed and not writes:
                    raise refusal(f"{name} changes an argument in place", code="MLC0756", loc=loc,
                                  hint="write x = x + y in place of x += y, or change a clone")
                written = {i: len(results) + n for n, i in enumerate(changed)}
                results += [own[i] for i in changed]
                stored, gradients = _effects(trace.captures, results)
                depends = None
                if trace.captures is not None and not trace.captures.accumulates:
                    inputs = [*before, *(value for _, _, value in trace.captures.inputs)]
                    depends = dependences(results, inputs)
                    trace.captures.uses_changed_leaf = depend_on_changed_leaf(results[:count], inputs)
                trace.finish(results, True)
                outputs = [("first", (x, trace.unpadding[x]))
                           if kind == "result" and x in trace.unpadding else (kind, x)
                           for kind, x in outputs]
        except Error as error:
            raise as_user_error(error, "result", out, loc) from None
    if donated:
        trace.function.attrs["donate"] = tuple(donated)
    if names:
        trace.function.attrs["arg_names"] = (*names, *("" for _ in trace.block.args[len(names):]))
    if trace.captures is not None:
        trace.captures.given = ()                          # which belong to the program again
    return Recorded(trace, structure, outputs, trace.lifted, assigned, written, trace.captures, stored, gradients,
                    depends)


def _outputs(out: Sequence[Any], own: Sequence[Tracer], captures: Captures | None, name: str,
             loc: Loc) -> tuple[list[tuple[str, Any]], list[Tracer]]:
    """How each leaf of the result is had, and the results that are tensors; UserError for what cannot be returned."""
    results: list[Tracer] = []
    outputs: list[tuple[str, Any]] = []
    for x in out:
        if isinstance(x, tree.Leaf | np.ndarray) or hasattr(type(x), "__dlpack__"):
            outputs.append(_output(x, own, out[:len(outputs)], len(results), captures))
            results.append(to_default_dtype(tracer(x)))
        elif isinstance(x, Undefined):
            raise UserError("a result may be unassigned", code="MLC0607", loc=loc,
                            hint="give it a value on every path")
        elif isinstance(x, Size):
            raise UserError(f"the size {x} is part of the result, and known only when the compiled function runs",
                            code="MLC0408", loc=loc, symbols=sizes.symbols(x),
                            hint="return it as a tensor, or give the sizes as numbers (dynamic=False)")
        elif isinstance(x, Iterator | Awaitable):
            raise UserTypeError(f"{name} returns a {type(x).__name__}, which would be the same in every call, and used "
                                "up after the first", code="MLC0616", loc=loc,
                                hint="return a list or a tuple; `yield` and `async def` do not compile")
        else:
            outputs.append(("value", x))
    return outputs, results


def _effects(captures: Captures | None, results: list[Any]) -> tuple[dict[int, int], list[Any]]:
    """The captured inputs that are changed, and the gradients that are set, each with the number of a result; the
    results are appended."""
    stored: dict[int, int] = {}
    gradients: list[Any] = []
    if captures is None:
        return stored, gradients
    for number, changed in captures.changed():
        stored[number] = len(results)
        results.append(changed)
        captures.keeps_history |= changed.value not in captures.leaves and depends_on_leaf(changed)
        held = captures.held_by(changed)
        if held is not None:
            captures.check_alone(held)
    for owner, gradient in captures.changed_gradients():
        gradients.append((owner, None if gradient is None else len(results)))
        if gradient is not None:
            results.append(tracer(gradient))
    return stored, gradients


def _output(x: Any, own: Sequence[Tracer], before: Sequence[Any], number: int,
            captures: Captures | None) -> tuple[str, Any]:
    """How a leaf of the result, which is result `number`, is had: as an argument or one of the leaves before it, as a
    view of one of them, or as a result."""
    if type(x) is Tensor and captures is not None:
        x = tracer(x)
    view = x._view if isinstance(x, Tracer) else None
    base: Any = x if view is None else view.base
    if not isinstance(base, Tracer) or (view is not None and not (base.type.is_static and x.type.is_static)):
        return "result", number
    for kind, those in (("argument", own), ("leaf", before)):
        at = next((i for i, t in enumerate(those) if t is base and not t.weak), None)
        if at is not None:
            return kind, (at, number, view)
    if captures is None:
        return "result", number
    held, holder = captures.held_by(base), captures.holder_of(base)
    if holder is not None:
        return "gradient", (holder, number, view)
    return ("result", number) if held is None else ("captured", (held, number, view))


@contextmanager
def unchanged(around: Sequence[Any], name: str, loc: Loc, captures: Captures | None) -> Iterator[None]:
    """Context in which a function is recorded that must not change the state `around` it, but for containers that
    it has `made` the contents of; restores that state."""
    try:
        yield
        for container in captures.made if captures is not None else ():
            for reached in around:
                reached.renew(container)
        if captures is not None and any(r.reads_settings(captures.numbers, captures.hosts) for r in around):
            raise refusal(f"{name} calls the step of a scheduler, and reads what that changes: it takes place after "
                          "the call", code="MLC0722", loc=loc, hint="read the learning rate outside of the function")
        around = [*around, *(captures.hooks if captures is not None else ())]
        path = next((path for reached in around if (path := reached.change()) is not None), None)
    finally:
        for reached in around:
            reached.restore()
    if path is not None:
        raise refusal(f"{name} changes {path}, which existed before the call: that happens once, while it is "
                      "recorded, not in each call", code="MLC0615", loc=loc,
                      hint="return the new value, or make it a buffer of a module that is passed (register_buffer)")


def _identifier(path: str) -> str:
    """A path as the name of an IR value."""
    out = "".join(c if c.isalnum() or c == "_" else "_" for c in path.replace("'", "").replace("]", ""))
    return out if out[:1].isalpha() or out[:1] == "_" else ""


def consume(given: Sequence[Any], donated: Sequence[int], loc: Loc, function: str) -> None:
    """Mark donated tensors as consumed: using one from now on is an error that names the call."""
    mark = Consumed(loc, function)
    for i in donated:
        if isinstance(given[i], Tensor):
            given[i]._array = mark


def at_the_call(error: UserError) -> None:
    """Move an error about arguments to the location of the call; the location in the function becomes a note."""
    if error.loc.file:
        error.notes = (*error.notes, f"the sizes are used at {error.loc}")
    error.loc = user_loc()


def paths_of(names: Sequence[str], arguments: Arguments, args: Sequence[Any], keywords: dict[str, Any]) -> list[str]:
    """The path of each array from the caller's side: `params['w'][0]`."""
    every = [path for name, x in roots(names, args, keywords) for path in tree.paths(x, name)]
    return [path for path, slot in zip(every, arguments.slots) if slot]
