"""Functionalization: writes to tensors that are being recorded.

The IR has values, which never change. So a write makes a new value, which the tracer of the tensor stands for from then
on, and with it the tracers of all tensors that share its memory: of the tensor that it is a view of, the value with the
new elements put in place; of views, the same views of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend import tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.view_node import NOT_DIFFERENTIATED, Step, View
from mlc.frontend.location import user_loc
from mlc.frontend.methods import SYNTAX
from mlc.frontend.operands import number
from mlc.frontend.refusals import refusal
from mlc.frontend.storage import Storage
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import Trace, as_tracer, current, emit, suspended
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Op, Value
from mlc.ir.diag import Loc, UserError
from mlc.ir.types import i1, i64

HINT = "write x = x + y, or change a clone"


def captured(x: Any) -> Any:
    """The tracer of a tensor that the function which is recorded reaches by itself and may change; else x itself."""
    trace = current()
    if type(x) is not Tensor or trace.root.captures is None or any(x is made for made in trace.root.made):
        return x
    return as_tracer(x)


def distinct(out: Any, args: tuple[Any, ...]) -> Any:
    """The result of an operation, which is no argument itself but a tensor of its own."""
    if isinstance(out, Tracer):
        return another(out) if any(out is x for x in args) else out
    if isinstance(out, tuple | list) and any(isinstance(x, Tracer) and any(x is y for y in args) for x in out):
        return type(out)([distinct(x, args) for x in out]) if not hasattr(out, "_fields") else out
    return out


def another(x: Tracer) -> Tracer:
    """A tensor of the same elements as x. Where gradients are recorded it is of another value: a derivative by one is
    not that by the other, and a copy of a leaf is no leaf."""
    if current().root.captures is None or not x.type.dtype.is_inexact:
        return Tracer(x.value, x.owner, x.weak)
    return emit(T.Reshape, x, x.shape, weak=x.weak)  # type: ignore[no-any-return]


MAY_COPY = frozenset({"reshape", "flatten", "unflatten", "ravel"})
"""View operations that copy where the elements do not lie in memory in order."""


def views(x: Any, out: Any, again: Callable[[Any], Any], name: str) -> Any:
    """The results of the view operation `name` on x, linked to it; `again` is the operation as a function of x."""
    if not isinstance(x, Tensor):
        return out
    x = captured(x)
    leaves, structure = tree.flatten(out)

    def numbered(number: int) -> Step:
        return lambda y: tree.leaves(again(y))[number]

    def result(leaf: Tracer, number: int) -> Tracer:
        if not isinstance(x, Tracer) or (name in MAY_COPY and is_rearranged(x)):
            return uncertain(leaf, x)
        return linked(x, leaf, numbered(number), name in NOT_DIFFERENTIATED and x.type.dtype.is_inexact)

    return structure.unflatten([result(leaf, i) if isinstance(leaf, Tracer) else leaf for i, leaf in enumerate(leaves)])


def is_rearranged(x: Tracer, asks: bool = True) -> bool:
    """Whether the elements of x may lie in memory in another order than in x. Where an argument or a captured tensor
    decides it, the recording depends on how the elements of that lie, unless it only compares (not `asks`)."""
    value, base = x.value, base_of(x)
    while value is not base.value:
        if not isinstance(value.op, T.Reshape | T.StopGradient):
            return True
        value = value.op.operands[0]
    captures = current().root.captures
    return captures is not None and isinstance(base, Tracer) and not captures.is_in_order(base, asks)


def lies_in_order(x: Any) -> bool | None:
    """Whether the elements of x lie in memory in row-major order; None if that is not known."""
    x = captured(x)
    if not isinstance(x, Tracer):
        return None                                        # plain data, which tells
    base = base_of(x)
    if not is_rearranged(x):
        return None if x.maybe and isinstance(x.value.op, T.Reshape) else True
    if x._view is None or not base.type.is_static or is_rearranged(base):
        return None if x._view is not None else False
    with suspended():
        return x._view.of(OPERATIONS["zeros"](base.type.shape, dtype="bool")).is_contiguous()


SYNTAX["lies_in_order"] = lies_in_order


def contiguous(x: Tracer) -> Tracer:
    """x, or a copy of it where its elements do not lie in memory in order."""
    if not is_rearranged(x):
        return x
    return another(x) if x._view is None else uncertain(x, x)


def uncertain(out: Tracer, *origins: Any) -> Tracer:
    """`out` as a tensor that shares memory with these or not."""
    bases = dict.fromkeys(b for x in origins for b in (base_of(x), *getattr(base_of(x), "maybe", ())))
    if any(out is x for x in origins) or out._view is not None:
        out = Tracer(out.value, out.owner, out.weak)
    out.maybe = tuple(bases)
    for base in bases:
        if isinstance(base, Tracer):
            if base._storage is None:
                Storage(None, True).add(base)
            storage = base._storage
            assert storage is not None
            storage.add(out)
            out._storage = None
    return out


def linked(x: Tracer, out: Tracer, step: Step, detached: bool = False) -> Tracer:
    """`out` as a view of x, which `step` makes."""
    if out is x or out._view is not None:
        out = another(out)
    before = x._view
    base, steps = (x, (step,)) if before is None else (before.base, (*before.steps, step))
    out._view = View(base, steps, not detached and (before is None or before.recorded))
    if base._storage is None:
        Storage(None, True).add(base)
    assert base._storage is not None
    base._storage.add(out)
    return out


def _adopt(base: Tracer) -> bool:
    """Have a tensor of a caller, and its views, be of the function that is being recorded, while that is recorded."""
    trace = around = current()
    while around is not base.owner:
        if not around.is_call or around.parent is None:
            return False
        around = around.parent
    if around is trace:
        return True
    captures = trace.root.captures
    is_leaf = captures is not None and (base.value in captures.leaves or base.value in captures.leaves_within)
    trace.adopted.append((base, base.owner, base.home))
    trace.before_adoption += [(x, x.value, x.owner, x.home) for x in (base, *_shared(base))]
    base.value, base.owner, base.home = trace.local(base), trace, trace.block
    if captures is not None and is_leaf:
        captures.leaves_within.add(base.value)
    _renew_views(base)
    return True


def _shared(base: Tracer) -> list[Tracer]:
    """The tensors besides that share the memory of one, in the functions, loops and branches in progress."""
    every = base._storage.tensors() if base._storage is not None else ()
    return [x for x in every if x is not base and isinstance(x, Tracer) and _is_alive(x)]


def _is_alive(x: Tracer) -> bool:
    """Whether the function, loop or branch in which a tensor was made is in progress."""
    return x.home is x.owner.block or x.home in x.owner.regions


def _renew_views(base: Tracer) -> None:
    """Have the views of a tensor stand for the views of its present value."""
    for view in _shared(base):
        if view._view is not None:
            moved = view._view.of(base)
            assert isinstance(moved, Tracer)
            view.value, view.owner, view.home = moved.value, base.owner, base.home


def return_adopted(inner: Trace, values: Sequence[Value]) -> None:
    """Give the tensors that a called function has changed in place back to the caller, with their new values."""
    adopted = inner.adopted
    disown(inner)
    for (base, _, _), value in zip(adopted, values):
        _adopt(base)
        replace(base, value)


def disown(inner: Trace) -> None:
    """Have the tensors of callers that a function changes stand for what they were before."""
    for x, value, owner, home in inner.before_adoption:
        x.value, x.owner, x.home = value, owner, home


def result_of_call(leaf: Tracer, result: Tracer, inner: Trace) -> Tracer:
    """The result of a call that is `leaf` in the called function: a tensor of the caller where it is that, or a view
    of one. It is `leaf` itself, which the program may hold elsewhere too."""
    if leaf.owner is not inner:
        return leaf
    base = base_of(leaf)
    leaf.stand_for(result)
    if leaf._view is not None and base.owner is inner:     # which has ended with the function
        leaf._view = leaf._storage = None
    leaf.maybe = ()
    return leaf


def may_be_written(x: Tracer) -> bool:
    """Whether a tensor may be changed in place: not an argument of a function that is recorded by itself."""
    around = current()
    while around is not x.owner:
        if not around.is_call or around.parent is None:
            return False
        around = around.parent
    return not x.is_argument or around.captures is not None


def check_write(x: Tracer) -> None:
    """UserError if a write to a tensor could not be recorded."""
    base = base_of(x)
    if any(map(_is_foreign, base.maybe)):
        raise refusal("a tensor would be changed in place that may share the memory of one from outside of the "
                      "function that is being recorded", code="MLC0756", loc=user_loc(), hint="change a clone")
    trace = current()
    if not _adopt(base):
        raise refusal("a tensor that was made outside of the function that is being recorded would be changed in place",
                      code="MLC0756", loc=user_loc(), hint=HINT)
    if trace.parent is not None and base.is_argument and not any(base is known for known, _, _ in trace.adopted):
        raise refusal("an argument of the function that is being recorded would be changed in place", code="MLC0756",
                      loc=user_loc(), hint=HINT)
    is_detached = x._view is not None and not x._view.recorded
    _check_captured(base, is_detached)
    captures = trace.root.captures
    if is_detached and (captures is None or not captures.is_leaf(base)):
        raise refusal("a detached tensor shares the memory of the tensor that it comes from, whose history does not "
                      "say what is written here", code="MLC0756", loc=user_loc(), hint="change x.detach().clone()")


def _check_captured(base: Tracer, is_detached: bool) -> None:
    """UserError if a captured tensor may not be written to: a leaf while operations are recorded, unless by a detached
    view, or one whose memory another captured tensor has."""
    captures = current().root.captures
    if captures is None:
        return
    if mode.enabled and not is_detached and (captures.is_leaf(base) or base.value in captures.leaves_within):
        given = captures.tensor_of(base)
        if given is not None and not given.is_leaf:
            raise refusal("a tensor would be changed in place that requires a gradient and is the result of an "
                          "operation that was recorded outside", code="MLC0758", loc=user_loc(),
                          hint="write x = x + y, or change a clone")
        raise refusal("a leaf that requires a gradient would be changed in place while operations are recorded",
                      code="MLC0439", loc=user_loc(), hint="update it within mlc.no_grad, or write x = x + y")
    held = captures.held_by(base)
    if held is not None and held._storage is not None:
        captures.check_alone(held)


def write(x: Tracer, new: Tracer) -> None:
    """Have x stand for new elements, of its shape and dtype."""
    check_write(x)
    base = base_of(x)
    value = new.value if base is x else _with(base, x, new).value
    captures = current().root.captures
    if captures is not None and captures.is_leaf(base) and mode.enabled:        # by a detached view
        value = emit(T.StopGradient, Tracer(value, current())).value
    replace(base, value)


def replace(base: Tracer, value: Value) -> None:
    """Have a tensor stand for another value from now on, and its views for the views of that."""
    trace = current()
    if base.home is not trace.innermost:
        trace.changes[-1].note(base)
    captures = trace.root.captures
    if captures is not None and captures.is_leaf(base):
        captures.leaves[value] = captures.leaves[base.value]
    elif captures is not None and base.value in captures.leaves_within:
        captures.leaves_within.add(value)
        captures.severed[value] = user_loc()
    base.value, base.weak = value, False
    _spoil(base)
    _renew_views(base)


def _spoil(base: Tracer) -> None:
    """Have tensors not be used any more that share the memory of one that was changed, or not."""
    loc = user_loc()
    for origin in base.maybe:
        if isinstance(origin, Tracer):
            for x in (origin, *(origin._storage.members() if origin._storage is not None else ())):
                if base_of(x) is not base and _is_alive(x) and (
                        not x.maybe or len(x.maybe) == len(base.maybe) == 1):
                    spoil(x, loc)
        else:
            current().root.spoiled.append(origin)
    for x in base._storage.members() if base._storage is not None else ():
        if x is not base and x._view is None and _is_alive(x):
            spoil(x, loc)


def spoil(x: Tracer, loc: Loc) -> None:
    """Have a tensor not be used any more, since a write at a location may have changed it."""
    trace = current()
    if x.changed is None and trace.changes:
        trace.changes[-1].spoiled.append((x, loc))
    x.changed = x.changed or loc


def give_up(x: Tracer, shared: bool) -> None:
    """Have a tensor not be used any more: a loop changes it in place, under a name that it then gives other tensors."""
    shared = shared or x._view is not None or (x._storage is not None and len(x._storage.members()) > 1)
    if x.owner is not current() or shared or x.is_argument or any(map(_is_foreign, x.maybe)):
        raise refusal("a loop would change a tensor in place that was made outside of it, under a name to which it "
                      "then assigns another tensor", code="MLC0756", loc=user_loc(), hint=HINT)
    x.changed = user_loc()
    for origin in x.maybe:
        if isinstance(origin, Tracer):
            origin.changed = x.changed
        else:
            current().root.spoiled.append(origin)


def _is_foreign(origin: Any) -> bool:
    """Whether a tensor is seen outside of the function that is being recorded."""
    if not isinstance(origin, Tracer):
        return not any(origin is t for t in current().root.made)
    return origin.owner is not current() or origin.is_argument


def after_branch(result: Any, states: Sequence[Any]) -> Any:
    """A variable after a branch, which may stand for a tensor that was there before, as one of `states` is."""
    if all(x is result for x in states):
        return result
    outer = [x for x in states if isinstance(x, Tensor) and is_outer(x)]
    return uncertain(result, *outer) if isinstance(result, Tracer) and outer else result


def is_outer(x: Any) -> bool:
    """Whether a tensor, or what it is a view of, was there before the loop or branch that has just been recorded."""
    base, trace = base_of(x), current()
    return (not isinstance(base, Tracer) or base.owner is not trace or base.home is trace.block
            or base.home in trace.regions)


def base_of(x: Any) -> Any:
    """The tensor that x is a view of, or x itself."""
    return x if x._view is None else x._view.base


_INVERTIBLE = (T.Reshape, T.Transpose, T.Slice, T.BroadcastTo, T.StopGradient, T.DynamicSlice, T.Take,
               T.ViewAsReal, T.ViewAsComplex, T.Bitcast)
"""Operations of views whose operand can be made anew from a new result."""


def _with(base: Tracer, view: Tracer, new: Tracer) -> Tracer:
    """The elements of `base` with those of a view of it replaced."""
    chain = list[Op]()
    value: Value = view.value
    while value is not base.value:
        op = value.op
        if not isinstance(op, _INVERTIBLE):
            raise UserError("this view cannot be written to while a function is recorded", code="MLC0757",
                            loc=user_loc(), hint="write to the tensor that it is a view of")
        chain.append(op)
        value = op.operands[0]
    for op in chain:
        new = _before(op, Tracer(op.operands[0], current()), new)
    return new


def _before(op: Op, x: Tracer, new: Tracer) -> Tracer:
    """The operand x of a view operation, once its result is `new`."""
    if isinstance(op, T.StopGradient):
        return new
    if isinstance(op, T.ViewAsReal | T.ViewAsComplex):
        return emit(T.ViewAsComplex if isinstance(op, T.ViewAsReal) else T.ViewAsReal, new)  # type: ignore[no-any-return]
    if isinstance(op, T.Bitcast):
        return emit(T.Bitcast, new, x.type.dtype)  # type: ignore[no-any-return]
    if isinstance(op, T.Transpose):
        order = tuple(sorted(range(len(op.perm)), key=op.perm.__getitem__))
        return emit(T.Transpose, new, order)  # type: ignore[no-any-return]
    if isinstance(op, T.Take):
        return emit(T.Scatter, x, Tracer(op.indices, current()), new, op.axis, "set")  # type: ignore[no-any-return]
    if isinstance(op, T.DynamicSlice):
        starts = tuple(Tracer(v, current()) for v in op.starts)
        return emit(T.DynamicUpdateSlice, x, new, starts)  # type: ignore[no-any-return]
    if not isinstance(op, T.Slice):
        if isinstance(op, T.BroadcastTo) and x.type.size != new.type.size:
            raise UserError("several elements of the tensor are the same memory, as after expand, and would be written "
                            "at once", code="MLC0752", loc=user_loc(), hint="write to a copy: x.clone()")
        return emit(T.Reshape, new, x.type.shape)  # type: ignore[no-any-return]
    if all(step == 1 for step in op.steps) and all(isinstance(start, int) for start in op.starts):
        starts = tuple(number(int(start), i64) for start in op.starts)
        return emit(T.DynamicUpdateSlice, x, new, starts)  # type: ignore[no-any-return]
    backwards = tuple(a for a, step in enumerate(op.steps) if step < 0)
    new = emit(T.Reverse, new, backwards) if backwards else new
    low = [start if step > 0 else start + (n - 1) * step for start, step, n in zip(op.starts, op.steps, new.type.shape)]
    steps = [abs(step) for step in op.steps]
    high = [n - a - k * s for n, a, k, s in zip(x.type.shape, low, new.type.shape, steps)]
    around = tuple(low), tuple(high), tuple(s - 1 for s in steps)
    dtype = new.type.dtype
    zero = emit(T.Full, 0.0 if dtype.is_float else not dtype.is_bool and 0, (), dtype)
    inside = emit(T.Full, True, new.type.shape, i1)
    there = emit(T.Pad, inside, emit(T.Full, False, (), i1), *around)
    return emit(T.Select, there, emit(T.Pad, new, zero, *around), x)  # type: ignore[no-any-return]
