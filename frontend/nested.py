"""Recorded functions within recorded functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import func
from mlc.frontend import functionalization, known_calls, tree
from mlc.frontend.arguments import check_call
from mlc.frontend.buffers import Buffers
from mlc.frontend.data_dependent import unpadded
from mlc.frontend.location import user_loc
from mlc.frontend.trace import Trace, captured, current
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Value, located


def record(name: str, f: Callable[..., Any], inputs: Sequence[Tracer] | None, pads: bool = False,
           is_call: bool = False) -> tuple[Trace, func.Func, list[Tracer], tree.TreeDef, list[Any]]:
    """Record `f` as a function of its own within the current trace.

    If `inputs` is given, they become its arguments: `f` is called with tracers in their place. Other values that it
    uses are captured. Returns the trace, the function, the tracers among its results, their structure, and the other
    leaves by position (None for tracers). With `pads`, the results of a call must be passed to `results_of`. If it
    `is_call`, the caller calls it once, where it is, and it may change the caller's tensors in place.
    """
    inner = Trace(name, current())
    inner.function.loc = user_loc()
    inner.is_call = is_call
    f = captured(f)
    try:
        with inner.recording():
            own = [inner.arg(t.type, t.value.name, t.weak) for t in inputs] if inputs is not None else []
            out = f(*own) if inputs is not None else f()
            leaves, structure = tree.flatten(out)
            traced = [x for x in leaves if isinstance(x, Tracer)]
            with located(user_loc()):
                function = inner.finish(traced, pads)
    except BaseException:
        functionalization.disown(inner)
        raise
    return inner, function, traced, structure, [None if isinstance(x, Tracer) else x for x in leaves]


def results_of(inner: Trace, traced: Sequence[Tracer], values: Sequence[Value]) -> list[Tracer]:
    """Results of a call of a function recorded as `inner` with `pads`: `values` unpadded, one per item of `traced`."""
    outer, count = current(), len(traced)
    numbers = dict(zip(inner.leaving, values[count:]))
    found = unpadded(outer.data_dependent, inner.data_dependent, numbers, values[:count], [t.shape for t in traced])
    return [Tracer(v, outer, t.weak) for v, t in zip(found, traced)]


def kept(inner: Trace, results: Any) -> list[Tracer]:
    """The tensors of a function that are no results of it, but that the program holds on to elsewhere.

    It does so in an attribute of a module, by a hook, or in an object that is no tree, such as a distribution. They are
    found by being alive when the function ends. What a result is a view of, or may be, is alive for its sake.
    """
    leaves = [x for x in tree.leaves(results) if isinstance(x, Tracer)]
    known = {id(base) for x in leaves for base in (x, *x.maybe)}
    viewed = {id(functionalization.base_of(x)) for x in leaves if x._view is not None}
    alive = [x for reference in inner.tracers if (x := reference()) is not None]
    return [x for x in alive if x.owner is inner and x.home is inner.block and x.changed is None
            and id(x) not in known and id(functionalization.base_of(x)) not in viewed]


def call(name: str, f: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Record f(*args, **keywords) as a call of a function."""
    check_call(f, name, args, keywords)
    seen = known_calls.seen(f, args, keywords)
    if seen is not None and (known := known_calls.find(seen)) is not None:
        with located(user_loc()):
            return known.again(current(), seen.leaves)
    buffers = Buffers(getattr(f, "__self__", None), args, keywords)

    def body() -> Any:
        out = captured(f)(*args, **keywords), buffers.take()
        adopted = [x for x, _, _ in current().adopted]
        return *out, kept(current(), (out, adopted)), adopted

    with known_calls.watching(seen):
        inner, function, traced, structure, others = record(name, body, None, True, True)
    if seen is not None:
        pending = iter(traced)
        out, *more = structure.unflatten([x if x is not None else next(pending) for x in others])
        if not any(more):
            known_calls.learn(seen, inner, function, out)
    with located(user_loc()):
        results = results_of(inner, traced, func.call(function, inner.arguments()))
        changed = results[len(results) - len(inner.adopted):]
        functionalization.return_adopted(inner, [x.value for x in changed])
    pending = iter([functionalization.result_of_call(leaf, x, inner) for leaf, x in zip(traced, results)])
    leaves = [x if x is not None else next(pending) for x in others]
    out, assigned, *_ = structure.unflatten(leaves)
    buffers.assign(assigned)
    return out
