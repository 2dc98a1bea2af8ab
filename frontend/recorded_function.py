"""The recording of a whole function: its inputs, its results, and what a call changes besides."""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mlc.dialects.func import UPDATES
from mlc.frontend import assigned_buffers, tree
from mlc.frontend.abstract_values import Undefined
from mlc.frontend.arguments import check_call
from mlc.frontend.assigned_buffers import AssignedBuffer
from mlc.frontend.autograd.view_node import ComputedStep, View
from mlc.frontend.backward import depend_on_changed_leaf, dependences, depends_on_leaf
from mlc.frontend.buffers import Buffers
from mlc.frontend.captured_inputs import CapturedGradient, CapturedTensor
from mlc.frontend.captures import Captures
from mlc.frontend.data_dependent import unpad
from mlc.frontend.devices import BackingArray
from mlc.frontend.input_names import input_names
from mlc.frontend.location import user_loc
from mlc.frontend.operands import to_default_dtype, tracer
from mlc.frontend.operation_errors import as_user_error
from mlc.frontend.refusals import refusal
from mlc.frontend.script.changes import recorded_within
from mlc.frontend.script.held import holds_tracers
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.reached_state import RandomState
from mlc.frontend.signature import Arguments, name_of, parameters, roots
from mlc.frontend.tensor import Consumed, Tensor, as_array, wrap
from mlc.frontend.trace import Trace, captured
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.abi import REPLACES
from mlc.ir.core import Value, located
from mlc.ir.diag import Error, Loc, UserError, UserTypeError
from mlc.ir.sizes import Size

SHARING = ("argument", "leaf", "captured", "gradient", "buffer")
"""Kinds of outputs that may be tensors which were there before the call, or share their memory."""
_MUTABLE = (set, bytearray, deque)
"""Collections that the caller may change, so that each call gives another one."""


@dataclass
class Recorded:
    """A function recorded as a module with the entry @main, and how to rebuild the Python result from its results.

    outputs   per leaf of the result: ("result", its number), for a Python number ("number", that of the result), for
              a constant ("value", the leaf itself), for a padded result of data-dependent size ("first", (its number,
              the axes and the results that are its sizes)), or, for an argument or a view of one, ("argument", (its
              number, that of the result, the view or None)), or, for another leaf or a view of one, ("leaf", (its
              number, that of the result, the view or None)), or, for a tensor that the function reaches by itself,
              ("captured", (that, the number of the result, the view)), or, for the gradient of one, ("gradient", (the
              tensor or the number of the argument, as above, the view)), or, for a buffer that is assigned, ("buffer",
              ((the module, its name), as above, the view))
    captured  arrays that the function captured (globals, closures); it takes them after its arguments
    captures  what the function reaches by itself: inputs after the arguments, and what happens after a call
    stored    for those inputs that are changed in place: number of the input, number of the result
    rebound   modules and names of buffers that the function assigns, with the number of the result
    gradients tensors, or numbers of arguments, whose `grad` is set: to a result, by its number, or to None
    assigned  for buffers of the argument modules that are assigned: number of the buffer, number of the result
    written   for arguments that are changed in place: number of the array, number of the result
    depends   per result: the numbers of the arguments and captured inputs that it has a derivative by
    function  a copy of the module for derivatives, where a call is recorded for `backward`
    result_names  for results that are new elements, or gradients, of inputs that have a name: number of the result
    made      numbers of the leaves that are constant collections which each call makes
    """

    trace: Trace
    structure: tree.TreeDef
    outputs: list[tuple[str, Any]]
    captured: list[BackingArray] = field(default_factory=list)
    assigned: dict[int, int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    captures: Captures | None = None
    stored: dict[int, int] = field(default_factory=dict)
    rebound: list[tuple[Any, str, int]] = field(default_factory=list)
    gradients: list[tuple[Tensor | int, int | None]] = field(default_factory=list)
    depends: list[frozenset[int]] | None = None
    function: Any = None
    result_names: dict[int, str] = field(default_factory=dict)
    made: frozenset[int] = frozenset()

    @property
    def computes(self) -> bool:
        """Whether there is anything to run."""
        changes = self.assigned or self.written or self.stored or self.rebound
        return (bool(changes) or any(number is not None for _, number in self.gradients)
                or any(kind != "value" for kind, _ in self.outputs))

    def result(self, results: Sequence[BackingArray], given: Sequence[Any] = ()) -> Any:
        """Result of the Python function, rebuilt from those of the compiled one, and from the arguments."""
        make = object.__new__
        leaves = []
        for kind, x in self.outputs:
            if kind == "argument" and (found := _given(given, x[0], x[2], results)) is not None:
                leaves.append(found)
            elif kind == "captured":
                tensor, _, view = x
                leaves.append(_view_of(tensor, view, results))
            elif kind == "gradient":
                owner, _, view = x
                gradient = (given[owner] if isinstance(owner, int) else owner).grad
                leaves.append(_view_of(gradient, view, results))
            elif kind == "buffer":
                (module, name), _, view = x
                leaves.append(_view_of(getattr(module, name), view, results))
            elif kind == "leaf":
                number, _, view = x
                leaves.append(_view_of(leaves[number], view, results))
            elif kind == "number":
                leaves.append(wrap(results[x]).item())
            elif kind != "value":
                out = make(Tensor)
                out._array = (results[x] if kind == "result" else results[x[1]] if kind == "argument" else
                              unpad(results, *x))
                leaves.append(out)
            else:
                leaves.append(copy.copy(x) if len(leaves) in self.made else x)
        return self.structure.unflatten(leaves)

    def captured_operands(self, given: Sequence[Any]) -> list[Any]:
        """The inputs of a call besides its arguments."""
        return self.captures.operands(given) if self.captures is not None else []

    def reached(self, captured: Sequence[Any]) -> Sequence[Any]:
        """The inputs of a call besides its arguments as the function reaches them, given those that its code takes."""
        return captured if self.captures is None else self.captures.as_recorded(captured)

    @property
    def is_frozen(self) -> bool:
        """Whether constants are in the place of tensors that the function reaches."""
        return self.captures is not None and self.captures.constants is not None

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
        return bool(self.stored or self.gradients or self.rebound) or (
            captures is not None and bool(captures.effects or captures.requiring))

    def like_inputs(self) -> dict[int, int]:
        """The results that are new elements of inputs: number of the result, and of the input, captured or not."""
        own = self._own_inputs
        return {n: i for i, n in self.written.items()} | {n: own + i for i, n in self.stored.items()}

    def gradients_of_inputs(self) -> dict[int, int]:
        """The results that are gradients of inputs: number of the result, and of the input, captured or not."""
        sources = self.captures.inputs if self.captures is not None else []
        captured = {id(source.tensor): self._own_inputs + i for i, (source, _, _) in enumerate(sources)
                    if isinstance(source, CapturedTensor)}
        found = [(n, owner if isinstance(owner, int) else captured.get(id(owner))) for owner, n in self.gradients]
        return {n: of for n, of in found if n is not None and of is not None}

    def names_of_results(self, inputs: Sequence[str]) -> dict[int, str]:
        """The names of results that are new elements or gradients of inputs, given the names of these."""
        every = [*((n, i, "") for n, i in self.like_inputs().items()),
                 *((n, i, ".grad") for n, i in self.gradients_of_inputs().items())]
        return {n: inputs[i] + what for n, i, what in every if i < len(inputs) and inputs[i]}

    def mark_results(self) -> None:
        """Say in the attributes of the recorded function which results belong to which inputs."""
        self.trace.function.attrs |= {"like_inputs": tuple(self.like_inputs().items()),
                                      "gradients": tuple(self.gradients_of_inputs().items())}

    @property
    def _own_inputs(self) -> int:
        """The number of inputs that are not captured."""
        return len(self.trace.block.args) - (len(self.captures.inputs) if self.captures is not None else 0)

    def plain_outputs(self) -> list[tuple[str, Any]]:
        """The outputs where arguments that are returned are copies."""
        return [("result", x[1]) if kind in SHARING else (kind, x)
                for kind, x in self.outputs]

    def assign(self, given: tuple[Any, ...], results: Sequence[BackingArray]) -> None:
        """Store the buffers that the call assigned in the modules among the arguments `given` (args, keywords)."""
        if self.assigned:
            Buffers(*given).assign({i: wrap(results[n]) for i, n in self.assigned.items()})


class ComputedView(NamedTuple):
    """A view that depends on numbers which are results of the function, too: their places among these, in order."""

    view: View
    places: tuple[int, ...]

    def of(self, x: Tensor, results: Sequence[BackingArray]) -> Tensor:
        numbers = (int(as_array(results[place])) for place in self.places)
        for step in self.view.steps:
            x = (step.at(numbers) if isinstance(step, ComputedStep) else step)(x)
        return x


def _view_of(x: Any, view: View | ComputedView | None, results: Sequence[BackingArray]) -> Any:
    """A tensor, or a view of it, given the results of the call."""
    return x if view is None else view.of(x, results) if isinstance(view, ComputedView) else view.of(x)


def _given(given: Sequence[Any], number: int, view: View | ComputedView | None,
           results: Sequence[BackingArray]) -> Tensor | None:
    """An argument that is a result, or the view of it that is; None if it is no tensor, or no more."""
    x = given[number] if given else None
    if type(x) is not Tensor or type(x._array) is Consumed:
        return None
    return _view_of(x, view, results)  # type: ignore[no-any-return]


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
    trace.function.loc = trace.module.loc = loc
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
    around = _around(Reached(dict(roots([*parameters(f)], args, keywords)), buffers=False), reached)
    with trace.recording():
        with unchanged(around, name, loc, trace.captures):
            out, structure = tree.flatten(captured(f)(*args, **keywords))
            replaced = assigned_buffers.take(trace.captures)
        try:
            with located(loc):
                outputs, results = _outputs(out, own, trace.captures, replaced, name, loc)
                assigned_buffers.check(replaced, trace.captures, reached, outputs, loc)
                count = len(results)
                kept = buffers.take()
                assigned = {i: len(results) + n for n, i in enumerate(kept)}
                results += [tracer(x) for x in kept.values()]
                changed = [i for i, (t, value) in enumerate(zip(own, before)) if t.value is not value]
                if changed and not writes:
                    raise refusal(f"{name} changes an argument in place", code="MLC0756", loc=loc,
                                  hint="write x = x + y in place of x += y, or change a clone")
                written = {i: len(results) + n for n, i in enumerate(changed)}
                results += [own[i] for i in changed]
                puts = [(x.module, x.name, len(results) + n) for n, x in enumerate(replaced)]
                results += [x.new for x in replaced]
                stored, gradients = _effects(trace.captures, results)
                depends = _depends(trace.captures, results, count, before)
                places = _updated(trace, results)
                trace.finish(results, True)
                outputs = [("first", (x, trace.unpadding[x]))
                           if kind == "result" and x in trace.unpadding else (kind, x)
                           for kind, x in outputs]
        except Error as error:
            raise as_user_error(error, "result", out, loc) from None
    if donated:
        trace.function.attrs["donate"] = tuple(donated)
    recorded = Recorded(trace, structure, outputs, trace.lifted, assigned, written, trace.captures, stored, puts,
                        gradients, depends, made=_made(outputs, around))
    _note_updates(recorded, places)
    _name(recorded, [*names, *[""] * (len(own) - len(names))], reached)
    if trace.captures is not None:
        _finish(trace.captures, reached)
    return recorded


def _around(given: Reached, reached: Reached | None) -> list[Reached]:
    """All that the arguments and the function reach; the classes of arguments are the function's from now on."""
    around = [given]
    if reached is not None:
        reached.follow(given.classes_of_trees())
        around.append(reached)
    return around


def _finish(captures: Captures, reached: Reached | None) -> None:
    """Have the arguments belong to the program again, and guard what functions with a cache have given."""
    captures.given = ()
    if reached is not None:
        reached.places += [call for within in captures.hooks for call in within.calls]


def _depends(captures: Captures | None, results: Sequence[Tracer], count: int,
             arguments: Sequence[Value]) -> list[frozenset[int]] | None:
    """`Recorded.depends`; notes whether one of the first `count` results is computed from a leaf that was changed."""
    if captures is None or (captures.accumulates and captures.severed):
        return None
    inputs = [*arguments, *(value for _, _, value in captures.inputs)]
    if not captures.accumulates:
        captures.uses_changed_leaf = depend_on_changed_leaf(results[:count], inputs)
    return dependences(results, inputs)


def _updated(trace: Trace, results: Sequence[Tracer]) -> dict[int, int]:
    """The results that take the place of arguments which they may be written over: each a value of its own."""
    times = Counter(r.value for r in results)
    return {n: trace.updates[r.value].index for n, r in enumerate(results)
            if r.value in trace.updates and times[r.value] == 1}


def _note_updates(recorded: Recorded, replaced: dict[int, int]) -> None:
    """Say in the IR which results take the place of arguments, those in `replaced` among them, or of gradients."""
    replaced |= recorded.like_inputs()
    if not recorded.captures_gradients:
        replaced |= {n: REPLACES for _, n in recorded.gradients if n is not None}
    if replaced:
        updates = tuple(replaced.get(n, -1) for n in range(max(replaced) + 1))
        recorded.trace.function.attrs[UPDATES] = updates


def _name(recorded: Recorded, names: list[str], reached: Reached | None) -> None:
    """Give the inputs and results of a function their names; `names` are those of the arguments."""
    if recorded.captures is not None and reached is not None:
        names += input_names(recorded.captures, reached, names)
    recorded.result_names = recorded.names_of_results(names)
    if any(names):
        rest = len(recorded.trace.block.args) - len(names)
        recorded.trace.function.attrs["arg_names"] = (*names, *[""] * rest)


def _outputs(out: Sequence[Any], own: Sequence[Tracer], captures: Captures | None,
             replaced: Sequence[AssignedBuffer], name: str, loc: Loc) -> tuple[list[tuple[str, Any]], list[Tracer]]:
    """How each leaf of the result is had, and the results that are tensors; UserError for what cannot be returned."""
    results: list[Tracer] = []
    outputs: list[tuple[str, Any]] = []
    for x in out:
        if isinstance(x, Tracer) and x.python_class is not Tensor and not x.type.shape and captures is not None:
            outputs.append(("number", len(results)))
            results.append(x)
        elif isinstance(x, tree.Leaf | np.ndarray) or hasattr(type(x), "__dlpack__"):
            kind, how = _output(x, own, out[:len(outputs)], len(results), captures, replaced)
            results.append(to_default_dtype(tracer(x)))
            outputs.append((kind, (*how[:2], _with_numbers(how[2], results)) if kind in SHARING else how))
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
        elif holds_tracers(x):
            raise UserTypeError(f"{name} returns a {type(x).__name__} that holds tensors of this recording",
                                code="MLC0616", loc=loc,
                                hint="return them in a list, tuple, dict, named tuple or dataclass")
        else:
            outputs.append(("value", x))
    return outputs, results


def _made(outputs: Sequence[tuple[str, Any]], around: Sequence[Reached]) -> frozenset[int]:
    """`Recorded.made`: collections that were not there before."""
    held = {id(x) for reached in around for x in reached.objects()}
    return frozenset(i for i, (kind, x) in enumerate(outputs)
                     if kind == "value" and isinstance(x, _MUTABLE) and id(x) not in held)


def _with_numbers(view: View | None, results: list[Tracer]) -> View | ComputedView | None:
    """A view, with the numbers that it depends on, which become results, too."""
    numbers = [n for step in (view.steps if view is not None else ()) if isinstance(step, ComputedStep)
               for n in step.numbers]
    if view is None or not numbers:
        return view
    first = len(results)
    results += map(tracer, numbers)
    return ComputedView(view, tuple(range(first, len(results))))


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
    numbers: dict[int, int] = {}                           # a tensor may be the gradient of several
    for owner, gradient in captures.changed_gradients():
        if gradient is not None and id(gradient) not in numbers:
            numbers[id(gradient)] = len(results)
            results.append(tracer(gradient))
        gradients.append((owner, None if gradient is None else numbers[id(gradient)]))
    return stored, gradients


def _output(x: Any, own: Sequence[Tracer], before: Sequence[Any], number: int,
            captures: Captures | None, replaced: Sequence[AssignedBuffer]) -> tuple[str, Any]:
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
    buffer = next((x for x in replaced if x.new is base), None)
    if buffer is not None:
        return "buffer", ((buffer.module, buffer.name), number, view)
    held, holder = captures.held_by(base), captures.holder_of(base)
    if holder is not None:
        return "gradient", (holder, number, view)
    return ("result", number) if held is None else ("captured", (held, number, view))


@contextmanager
def unchanged(around: Sequence[Any], name: str, loc: Loc, captures: Captures | None) -> Iterator[None]:
    """Context in which a function is recorded that must not change the state `around` it, but for containers that
    it has `made` the contents of; restores that state."""
    random_state = RandomState("the state of a generator of random numbers", None)
    try:
        with recorded_within(around):
            yield
        for container in captures.made if captures is not None else ():
            for reached in around:
                reached.renew(container)
        if captures is not None and any(r.reads_settings(captures.numbers, captures.hosts) for r in around):
            raise refusal(f"{name} calls the step of a scheduler, and reads what that changes: it takes place after "
                          "the call", code="MLC0722", loc=loc, hint="read the learning rate outside of the function")
        around = [*around, *(captures.hooks if captures is not None else ())]
        changed = [(path, reached) for reached in around if (path := reached.change()) is not None]
        fills = all(isinstance(reached, Reached) and reached.is_filled() for _, reached in changed)
    finally:
        for reached in around:
            reached.restore()
        if drawn := not random_state.holds():
            random_state.restore()
    if drawn:
        raise refusal(f"{name} draws random numbers of Python or numpy: they would be the same in every call",
                      code="MLC0616", loc=loc, hint="draw them outside and pass them, or pass a key to mlc.random")
    for path, _ in changed:
        if fills:
            raise refusal(f"{name} makes {path}, which was None before the call", code="MLC0997", loc=loc,
                          hint="call the function once before")
        raise refusal(f"{name} changes {path}, which existed before the call: that happens once, while it is "
                      "recorded, not in each call", code="MLC0615", loc=loc,
                      hint="return the new value, or make it a buffer of a module that is passed (register_buffer)")


def _identifier(path: str) -> str:
    """A path as the name of an IR value."""
    out = "".join(c if c.isalnum() or c == "_" else "_" for c in path.replace("'", "").replace("]", ""))
    return out if out[:1].isalpha() or out[:1] == "_" else ""
