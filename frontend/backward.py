"""`backward` and `autograd.grad` while a function is recorded.

Outside of a recording, operations leave nodes behind, which the engine goes through (autograd/engine.py). What is
recorded is a history by itself: `backward` becomes an operation that differentiates those before it
(dialects/autodiff/backward.py).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, NoReturn

from mlc.dialects import autodiff, func, scf
from mlc.dialects.autodiff import has_cotangent, is_custom
from mlc.dialects.func import Func
from mlc.frontend import unsupported_api
from mlc.frontend.autograd.differentiable import Differentiable, check_kind, check_real, listed
from mlc.frontend.autograd.grad_mode import GradMode, mode
from mlc.frontend.autograd.hooks import check_gradient
from mlc.frontend.captures import Captures
from mlc.frontend.location import user_loc
from mlc.frontend.operands import broadcast_to, cast, number, tracer
from mlc.frontend.recorded_operation import constant
from mlc.frontend.refusals import refusal
from mlc.frontend.script.reach import Reached
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import Trace, current
from mlc.frontend.tracer import Tracer
from mlc.ir.core import BlockArg, Op, OpResult, Value, located
from mlc.ir.diag import Loc, UserError, UserTypeError


def run_backward(tensors: Sequence[Any], cotangents: Sequence[Any], create_graph: bool, inputs: Any = None) -> None:
    """Record the gradients of the sum of tensors by leaves, and have them accumulated in their `grad`.

    Args:
        tensors: Tensors that depend on leaves that require a gradient.
        cotangents: One for each; None for 1.
        create_graph: Whether the gradients may be differentiated in turn.
        inputs: The tensors whose `grad` is updated; None for all leaves.

    Raises:
        UserError: As `Tensor.backward`, and where it is not recorded: in a loop, a branch or a function that is called
            (MLC0720).
    """
    trace, captures = _recording()
    if trace.parent is not None:
        _refuse("a function that is called, such as the forward of a module")
    captures.accumulates = True
    roots = [_root(x, i, len(tensors)) for i, x in enumerate(tensors)]
    reached = _Dependence(trace, captures.leaves).of([trace.local(x) for x in roots])
    leaves = {value: captures.leaves[value] for value in reached}
    if not leaves:
        raise UserError("the tensor does not require a gradient: no operation that it comes from was recorded",
                        code="MLC0430", loc=user_loc(),
                        hint="what to differentiate by needs requires_grad_() before it is used")
    if inputs is not None:
        chosen = [_value(x) for x in listed(inputs)]
        leaves = {value: owner for value, owner in leaves.items() if value in chosen}
    _check_leaves(leaves.values())
    _check_called(trace, [*captures.retained], [trace.local(x) for x in roots])
    leaves |= {value: x for value, x in captures.retained.items()
               if value in _Dependence(trace, [value]).of([trace.local(x) for x in roots])}
    found = _pulled(trace, roots, cotangents, [*leaves], create_graph)
    with GradMode(create_graph):
        for owner, gradient in _by_owner(leaves, found):
            _accumulate(owner, gradient, create_graph)


def gradients_of(tensors: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any],
                 create_graph: bool) -> list[Tensor | None]:
    """Record the gradients of the sum of tensors by others; None for those that they do not depend on.

    Args:
        tensors: Tensors.
        inputs: What to differentiate by.
        cotangents: One for each of `tensors`; None for 1.
        create_graph: Whether the gradients may be differentiated in turn.

    Returns:
        One for each of `inputs`.

    Raises:
        UserError: As `run_backward`.
    """
    trace, captures = _recording()
    roots = [_root(x, i, len(tensors)) for i, x in enumerate(tensors)]
    wanted = [_value(x) for x in inputs]
    within = [trace.local(x) for x in roots]
    reached = _Dependence(trace, {**captures.leaves, **dict.fromkeys(wanted)}).of(within)
    if trace.parent is not None:
        _check_inside(trace, wanted, within)
    _check_called(trace, wanted, within)
    present = [v for v in dict.fromkeys(wanted) if v in reached]
    found = dict(zip(present, _pulled(trace, roots, cotangents, present, create_graph)))
    return [found.get(v) for v in wanted]


def requires_grad(x: Tracer) -> bool:
    """Whether a tensor that is recorded depends on a leaf that requires a gradient."""
    trace = current()
    captures = trace.root.captures
    if captures is None:
        raise unsupported_api.of_tensor("requires_grad", x)
    captures.asks_autograd = True
    if x.value in captures.leaves:
        return True
    return (not mode.inherited or captures.grad_mode()) and depends_on_leaf(x)


def depends_on_leaf(x: Tracer) -> bool:
    """Whether a tensor that is recorded is computed from a leaf that requires a gradient."""
    trace = current()
    assert trace.root.captures is not None
    return bool(_Dependence(trace, trace.root.captures.leaves).of([x.value]))


def dependences(results: Sequence[Tracer], inputs: Sequence[Value]) -> list[frozenset[int]]:
    """The inputs, by their numbers, that each result of the function that is recorded has a derivative by."""
    numbers = {value: i for i, value in enumerate(inputs)}
    found = _Dependence(current().root, numbers).dependents([x.value for x in results])
    return [frozenset(numbers[value] for value, bits in found.items() if bits >> i & 1) for i in range(len(results))]


def depend_on_changed_leaf(results: Sequence[Tracer], inputs: Sequence[Value]) -> bool:
    """Whether a result of the function that is recorded is computed from a leaf that was changed in place before."""
    captures = current().root.captures
    assert captures is not None
    changed = {value for value, leaf in captures.leaves.items() if type(leaf) is Tensor or leaf.is_argument} - {*inputs}
    return bool(changed) and bool(_Dependence(current().root, changed).of([x.value for x in results]))


# -- what is differentiated --------------------------------------------------------------------------------------------
def _recording() -> tuple[Trace, Captures]:
    """The trace in progress, if backward can be recorded in it."""
    trace = current()
    if trace.root.captures is None:
        _refuse("a function that is recorded by itself, such as one that is given to mlc.grad")
    around: Trace | None = trace
    while around is not None and around.parent is not None:
        if not around.is_call:
            _refuse("a function that is recorded by itself, such as one that is given to mlc.grad")
        around = around.parent
    if trace.in_region:
        _refuse("a loop or branch that depends on a tensor")
    trace.root.captures.differentiates = trace.root.captures.asks_autograd = True
    return trace, trace.root.captures


def _check_inside(trace: Trace, wanted: Sequence[Value], roots: Sequence[Value]) -> None:
    """UserError if a function that is called depends on one of the values in a way that goes through its caller."""
    while trace.parent is not None:
        outside = {inner: outer for outer, inner in trace.captured.items()}
        used = _Dependence(trace, outside).of(roots)
        targets = [outside[v] for v in wanted if v in outside]
        roots = [outside[v] for v in used if v not in wanted]
        trace = trace.parent
        if not _Dependence(trace, targets).of(roots).keys().isdisjoint(targets):
            _refuse("a function that is called, such as the forward of a module, by what its caller has computed from")
        wanted = targets


def _check_called(trace: Trace, wanted: Sequence[Value], roots: Sequence[Value]) -> None:
    """UserError if a function that is called has computed one of the values, and from it another result that the roots
    depend on: the way from one to the other is within the function."""
    for value in wanted:
        call = value.op
        if not isinstance(call, func.Call) or len(call.results) < 2:
            continue
        known = _Dependence(trace, {r for r in call.results if r is not value})
        function = known.functions.get(str(call.callee))
        returned = function.block.terminator.operands if function is not None else ()
        for result in known.of(roots) if function is not None and not is_custom(function) else ():
            at, own = (next(i for i, r in enumerate(call.results) if r is x) for x in (result, value))
            inside = _Dependence(trace, [returned[own]])
            if returned[at] is not returned[own] and returned[own] in inside.of([returned[at]]):
                raise refusal("a function that is called, such as the forward of a module, has computed both what is "
                              "differentiated by and, from it, what is differentiated", code="MLC0720", loc=user_loc(),
                              hint="compute it in the function that is compiled itself, or differentiate eagerly")


def _refuse(where: str) -> NoReturn:
    raise refusal(f"backward is called in {where}, where it is not recorded", code="MLC0720", loc=user_loc(),
                  hint="call it in the function that is compiled itself, or use mlc.grad, which differentiates a "
                       "function")


def _value(x: Any) -> Value:
    return current().local(tracer(x))


def _root(x: Any, position: int, count: int) -> Tracer:
    if not isinstance(x, Tensor):
        raise UserTypeError(f"backward takes tensors, found {type(x).__name__}", code="MLC0435", loc=user_loc())
    found = tracer(x)
    if not has_cotangent(found.type):
        name = "the tensor" if count == 1 else f"tensor {position}"
        raise UserError(f"{name} does not require a gradient: it is of {found.dtype.name}", code="MLC0430",
                        loc=user_loc(), hint="what to differentiate by needs requires_grad_() before it is used")
    return found


class _Dependence:
    """Which of some values others are computed from, by operations that have derivatives."""

    def __init__(self, trace: Trace, targets: Collection[Value]) -> None:
        self.targets = targets
        self.severed: dict[Value, Loc] = trace.root.captures.severed if trace.root.captures is not None else {}
        self.functions = {str(f.sym_name): f for f in trace.root.nested()}
        self.outside = dict[Value, Value]()                # arguments of the functions in progress, in their callers
        around: Trace | None = trace
        while around is not None:
            self.outside |= {inner: outer for outer, inner in around.captured.items()}
            around = around.parent
        self.known: dict[tuple[str, int], frozenset[int]] = {}

    def of(self, values: Sequence[Value]) -> dict[Value, None]:
        """The targets that the values depend on, in the order in which they are found."""
        found: dict[Value, None] = {}
        seen, work = set[Value](), list(values)
        while work:
            value = work.pop()
            if value in seen or not has_cotangent(value.type):
                continue
            seen.add(value)
            work += self.sources(value)
            if value in self.targets:
                found[value] = None
        return found

    def dependents(self, values: Sequence[Value]) -> dict[Value, int]:
        """The targets that the values depend on, each with the numbers of those that depend on it, as bits.

        Values are visited from the last operation to the first, so that the numbers of all that read a value are known
        when it is visited; only where a loop carries it back it is visited again.
        """
        block = current().root.block
        order = {op: i for i, op in enumerate(op for first in block.ops for op in first.walk())}
        numbers: dict[Value, int] = {}
        work: list[tuple[int, int, Value]] = []
        waiting = set[Value]()
        pushed = itertools.count()

        def visit(value: Value, bits: int) -> None:
            before = numbers.get(value, 0)
            if bits | before == before or not has_cotangent(value.type):
                return
            numbers[value] = bits | before
            if value not in waiting:
                waiting.add(value)
                op = value.block.parent_op if isinstance(value, BlockArg) else value.op
                heapq.heappush(work, (1 if op is None else -order.get(op, -1), next(pushed), value))

        for i, value in enumerate(values):
            visit(value, 1 << i)
        while work:
            _, _, value = heapq.heappop(work)
            waiting.remove(value)
            for source in self.sources(value):
                visit(source, numbers[value])
        return {value: bits for value, bits in numbers.items() if value in self.targets}

    def sources(self, value: Value) -> Iterable[Value]:
        """The values that one is computed from, as far as there are derivatives; none for a target."""
        if value in self.severed:
            raise refusal("a function that is called, such as the forward of a module, changes a tensor in place and "
                          "then computes with it what is differentiated", code="MLC0756", loc=self.severed[value],
                          hint="change it in the function that is compiled itself, or after it was used")
        if value in self.targets:
            return ()
        if isinstance(value, BlockArg):
            around = value.block.parent_op                 # a loop that is recorded
            return (*(around.incoming(value) if isinstance(around, scf.For | scf.While) else ()),
                    *([self.outside[value]] if value in self.outside else ()))
        return () if value.op is None or value.op.blocks_gradient else self.read(value.op, value)

    def read(self, op: Op, value: Value) -> Iterable[Value]:
        """The values that a result of an operation is computed from."""
        if isinstance(op, scf.If | scf.For | scf.While) and isinstance(value, OpResult):
            return op.incoming(value)
        if isinstance(op, func.Call) and str(op.callee) in self.functions:
            number = next(i for i, r in enumerate(op.results) if r is value)
            return (op.operands[i] for i in self.through(self.functions[str(op.callee)], number))
        return (v for inner in op.walk() for v in inner.operands)

    def through(self, function: Func, number: int) -> frozenset[int]:
        """The arguments that a result of a function depends on."""
        key = str(function.sym_name), number
        if key not in self.known:
            if is_custom(function):
                self.known[key] = frozenset(range(len(function.args)))
            else:
                inside = _Dependence.__new__(_Dependence)
                inside.targets, inside.functions, inside.known = set(function.args), self.functions, self.known
                inside.severed = self.severed
                inside.outside = {}
                reached = inside.of([function.block.terminator.operands[number]])
                self.known[key] = frozenset(i for i, arg in enumerate(function.args) if arg in reached)
        return self.known[key]


# -- recording it ------------------------------------------------------------------------------------------------------
def _pulled(trace: Trace, roots: Sequence[Tracer], cotangents: Sequence[Any], wrt: Sequence[Value],
            create_graph: bool) -> list[Tensor]:
    """The gradients by the values `wrt`."""
    if not wrt:
        return []
    with located(user_loc()):
        given = [_cotangent(x, ct, i, len(roots)) for i, (x, ct) in enumerate(zip(roots, cotangents))]
        op = autodiff.Backward(tuple(map(trace.local, roots)), tuple(map(trace.local, given)), tuple(wrt))
        results = [Tracer(v, trace) for v in op.results]
        return [x if create_graph else constant(x) for x in results]


def _cotangent(x: Tracer, given: Any, position: int, count: int) -> Tracer:
    what = "the tensor" if count == 1 else f"tensor {position}"
    if given is None:
        if x.shape and x.type.size != 1:
            raise UserError(f"{what} has shape {list(x.shape)}, and only one element has a gradient by itself",
                            code="MLC0432", loc=user_loc(),
                            hint="sum or average it, or pass its cotangent: y.backward(mlc.ones_like(y))")
        check_real(x.dtype, what)
        return broadcast_to(number(1.0, x.type.dtype), x.shape)
    if not isinstance(given, Tensor) and not hasattr(given, "dtype"):
        raise UserTypeError(f"a cotangent is a tensor, found {type(given).__name__}", code="MLC0435", loc=user_loc())
    out = tracer(given)
    if out.shape != x.shape:
        raise UserError(f"the cotangent has shape {list(out.shape)}, {what} {list(x.shape)}", code="MLC0432",
                        loc=user_loc())
    check_kind(out.dtype, x.dtype, what)
    return cast(out, x.type.dtype)


def _check_leaves(owners: Collection[Any]) -> None:
    """UserError if one of the leaves has a history outside of the recorded function."""
    captures = current().root.captures
    assert captures is not None
    for owner in owners:
        held = captures.tensor_of(owner)
        if held is not None and not held.is_leaf:
            raise refusal("backward is called within the recorded function, and goes on beyond it: it reaches the "
                          "result of an operation that was recorded outside", code="MLC0721", loc=user_loc(),
                          hint="detach the tensor that is passed, or call backward outside")


def _by_owner(leaves: dict[Value, Any], found: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each leaf with its gradient: the sum of those by its values, if it was changed in place."""
    sums: dict[int, tuple[Any, Any]] = {}
    for owner, gradient in zip(leaves.values(), found):
        before = sums.get(id(owner))
        sums[id(owner)] = owner, gradient if before is None else before[1] + gradient
    return list(sums.values())


def _accumulate(owner: Any, gradient: Any, create_graph: bool) -> None:
    """Add to the gradient that a leaf holds, as autograd/engine.py does."""
    captures = current().root.captures
    assert captures is not None
    held = captures.tensor_of(owner)
    meta = None if held is None else held._autograd
    for hook in list(meta.hooks.values()) if meta is not None else ():
        captures.hooks.append(Reached({"hook": hook}))
        changed = hook(gradient)
        if changed is not None:
            check_gradient(changed, gradient)
            gradient = changed
    before = captures.gradient(owner)
    if before is None or create_graph:
        captures.set_gradient(owner, gradient if before is None else before + gradient)
    else:
        before.add_(gradient)
    for after, tensor in list(meta.after.values()) if meta is not None else ():
        captures.hooks.append(Reached({"hook": after}))
        after(tensor)


# -- the attributes of tensors that are recorded -----------------------------------------------------------------------
def _backward(self: Tracer, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
              inputs: Any = None) -> None:
    run_backward([self], [gradient], create_graph, inputs)


def _requires_grad_(self: Tracer, requires_grad_: bool = True) -> Tracer:
    trace = current()
    assert trace.root.captures is not None
    if requires_grad_ == requires_grad(self):
        return self
    if not requires_grad_ or not has_cotangent(self.type) or trace.in_region:
        raise refusal("requires_grad of a tensor that is recorded is set, which is possible for a new leaf of floats "
                      "only", code="MLC0434", loc=user_loc(), hint="x.detach() does not require a gradient")
    trace.root.captures.require_gradient(self)
    return self


def _retain_grad(self: Tracer) -> None:
    captures = current().root.captures
    assert captures is not None
    if not requires_grad(self):
        raise UserError("the tensor does not require a gradient", code="MLC0430", loc=user_loc(),
                        hint="what to differentiate by needs requires_grad_() before it is used")
    if not captures.is_leaf(self):
        captures.retained[self.value] = self


def _retains_grad(self: Tracer) -> bool:
    captures = current().root.captures
    return captures is not None and self.value in captures.retained


def _set_requires_grad(self: Tracer, value: bool) -> None:
    _requires_grad_(self, value)


def _is_leaf(self: Tracer) -> bool:
    captures = current().root.captures
    return not requires_grad(self) or (captures is not None and captures.is_leaf(self))


def _gradient(self: Tracer) -> Any:
    if mode.captures is None:
        raise unsupported_api.of_tensor("grad", self)
    return Differentiable.grad.fget(self)  # type: ignore[attr-defined]


def _set_gradient(self: Tracer, value: Any) -> None:
    if mode.captures is None:
        raise unsupported_api.of_tensor("grad", self)
    Differentiable.grad.fset(self, value)  # type: ignore[attr-defined]


def _data(self: Tracer) -> Any:
    if mode.captures is None:
        raise unsupported_api.of_tensor("data", self)
    return Differentiable.data.fget(self)  # type: ignore[attr-defined]


def _set_data(self: Tracer, value: Any) -> None:
    if mode.captures is None:
        raise unsupported_api.of_tensor("data", self)
    Differentiable.data.fset(self, value)  # type: ignore[attr-defined]


def _method(name: str, f: Callable[..., Any]) -> property:
    """A method of tensors that are recorded; UserAttributeError in a function that is recorded by itself."""
    def bound(self: Tracer) -> Any:
        if current().root.captures is None:
            raise unsupported_api.of_tensor(name, self)
        return partial(f, self)

    return property(bound)


def _attach() -> None:
    for name, f in (("backward", _backward), ("requires_grad_", _requires_grad_), ("retain_grad", _retain_grad)):
        setattr(Tracer, name, _method(name, f))
    for name, member in (("retains_grad", property(_retains_grad)), ("is_leaf", property(_is_leaf)),
                         ("requires_grad", property(requires_grad, _set_requires_grad)),
                         ("data", property(_data, _set_data)), ("grad", property(_gradient, _set_gradient))):
        setattr(Tracer, name, member)


_attach()
