"""Calls of modules that have been recorded before: a network of equal layers is recorded a layer at a time, once.

A call of a module is recorded as a function, whose arguments are the tensors that it uses. Another call would be
recorded as the same function if all that `forward` can see is the same: the module with its settings and those of the
modules in it, the other arguments, the types of all tensors and which of them are one tensor, and the settings of the
thread. Then the function is called anew, with the tensors of that call. This is known of modules of this package alone,
since the code of a program may read what it likes; and only of calls that do nothing besides: they draw no random
numbers, change nothing in place, assign no buffers, run no hooks and keep no tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any, NamedTuple

from mlc.dialects import func
from mlc.frontend import tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.functionalization import is_rearranged
from mlc.frontend.global_hooks import OF_ALL
from mlc.frontend.known_classes import is_plain
from mlc.frontend.leaf_keys import frozen_leaf
from mlc.frontend.location import is_ours
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import Trace, as_tracer, current, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Value

SETTINGS: list[Callable[[], Hashable]] = [
    lambda: state.autocast,
    lambda: (mode.enabled, mode.inherited, mode.forward),
]
"""Functions of what recordings of this package's modules depend on besides: each says the setting of this thread."""

_CONTAINERS = frozenset({list, tuple, dict, type(None)})


@dataclasses.dataclass(slots=True)
class Seen:
    """The part of a program that a call of a module can see.

    key      all of it but which tensors they are; equal for calls that are recorded as equal functions
    leaves   the leaves of the module and its arguments
    done     what the recording had done before the call
    emitted  number of operations before it
    asked    facts about derivatives that the recording depends on
    """

    key: Hashable
    leaves: list[Any]
    done: tuple[int, ...]
    emitted: int
    asked: list[str] = dataclasses.field(default_factory=list)


def find(seen: Seen) -> KnownCall | None:
    """A call that has been recorded and saw the same."""
    trace = current()
    return next((known for known in trace.root.known_calls.get(seen.key, ()) if known.fits(trace)), None)


@contextmanager
def watching(seen: Seen | None) -> Iterator[None]:
    """Context in which a call is recorded."""
    if seen is None:
        yield
        return
    captures = current().root.captures
    assert captures is not None
    with captures.noting(seen.asked):
        yield


def learn(seen: Seen, inner: Trace, function: func.Func, result: Any) -> None:
    """Note a call that has been recorded as a function and gives a result, if another such call may call it."""
    parent = inner.parent
    assert parent is not None
    if seen.asked or _done(parent.root) != seen.done or inner.leaving or inner.data_dependent.bindings:
        return
    leaves, structure = tree.flatten(result)
    if (out := _origins(leaves, seen, inner)) is None:
        return
    numbers = {value: i for i, x in reversed([*enumerate(seen.leaves)]) if isinstance(x, Tensor)
               and (value := parent.value_of(x)) is not None}
    inputs = [numbers.get(value, value) for value in inner.captured]
    functions = {str(f.sym_name): f for f in parent.root.nested()}
    if any(isinstance(x, Value) and not _tells_sizes(arg, functions)
           for x, arg in zip(inputs, function.args, strict=True)):
        return                                             # the program holds a tensor that the leaves do not show
    results = [x.weak for x in leaves if isinstance(x, Tracer)]
    parent.root.known_calls.setdefault(seen.key, []).append(
        KnownCall(parent, function, inputs, results, out, structure, parent.root.emitted - seen.emitted))


def _origins(leaves: Sequence[Any], seen: Seen, inner: Trace) -> list[tuple[str, Any]] | None:
    """How each leaf of the result of a call is had, as in `KnownCall`; None if another call could not have it so."""
    out = list[tuple[str, Any]]()
    first: dict[int, int] = {}                             # the results of the function, by the tensors that they are
    count = 0
    for x in leaves:
        if not isinstance(x, Tracer):
            if isinstance(x, Tensor) or not is_plain(x):
                return None
            out.append(("value", x))
            continue
        where = [i for i, y in enumerate(seen.leaves) if y is x]
        if not _is_own(x, inner) if x.owner is inner else len(where) != 1:
            return None
        out.append(("result", first.setdefault(id(x), count)) if x.owner is inner else ("leaf", where[0]))
        count += 1
    return out


def _tells_sizes(arg: Value, functions: Mapping[str, func.Func]) -> bool:
    """Whether an argument of a function is there for the sizes in its type alone: nothing reads its elements."""
    return all(isinstance(op, func.Call) and str(op.callee) in functions and _tells_sizes(
        functions[str(op.callee)].args[i], functions) for op, i in arg.uses)


def _is_own(x: Tracer, inner: Trace) -> bool:
    """Whether a tensor that a function has made shares no memory with one from outside of it."""
    shared = (*x.maybe, *([] if x._view is None else [x._view.base]))
    return x.changed is None and all(isinstance(y, Tracer) and y.owner is inner for y in shared)


class KnownCall(NamedTuple):
    """A call that has been recorded.

    parent    the function that it is called in
    function  what was recorded
    inputs    per argument of the function: the number of the leaf that it is, or a value of the parent that tells sizes
    results   per result of the function: whether it is weakly typed
    leaves    per leaf of the result: ("result", the number of that of the function), ("leaf", the number of that of the
              call), or ("value", itself)
    structure of the result
    emitted   number of operations
    """

    parent: Trace
    function: func.Func
    inputs: list[int | Value]
    results: list[bool]
    leaves: list[tuple[str, Any]]
    structure: tree.TreeDef
    emitted: int

    def fits(self, trace: Trace) -> bool:
        """Whether the values that tell it sizes are those of a trace, and in reach there."""
        values = [x for x in self.inputs if isinstance(x, Value)]
        around = (trace.block, *trace.regions)
        return not values or (trace is self.parent and all(
            (v.op.parent if v.op is not None else v.owner) in around for v in values))

    def again(self, trace: Trace, leaves: Sequence[Any]) -> Any:
        """The result of another such call, recorded as a call of the function."""
        operands = [x if isinstance(x, Value) else trace.local(as_tracer(leaves[x])) for x in self.inputs]
        trace.root.count(self.emitted)
        results = [Tracer(v, trace, weak) for v, weak in zip(func.call(self.function, operands), self.results)]
        of_kind = {"result": results, "leaf": leaves}
        return self.structure.unflatten([x if kind == "value" else of_kind[kind][x] for kind, x in self.leaves])


def seen(f: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Seen | None:
    """All that a call of f can see; None if it is no module of this package, or may see more."""
    module, trace = getattr(f, "__self__", None), state.trace
    if type(f) is not MethodType or not isinstance(module, tree.AttributeTree):
        return None
    if trace is None or trace.root.captures is None or trace.root.named:
        return None
    leaves, structure = tree.flatten((module, args, keywords))
    if any(OF_ALL.values()) or (classes := _classes(structure)) is None:
        return None
    if (code := trace.root.known_classes.state(classes)) is None:
        return None
    given = {id(x) for x in trace.root.captures.given}
    first: dict[int, int] = {}
    known = []
    for i, x in enumerate(leaves):
        what = _leaf(x, trace, given)
        if what is None:
            return None
        known.append((what, first.setdefault(_identity(x, trace), i) if isinstance(x, Tensor) else i))
    key = f.__func__, code, structure, tuple(known), tuple([setting() for setting in SETTINGS])
    try:
        hash(key)
    except TypeError:
        return None
    return Seen(key, leaves, _done(trace.root), trace.root.emitted)


def _identity(x: Tensor, trace: Trace) -> int:
    """Equal for tensors that one argument of a recorded function stands for."""
    value = trace.value_of(x)
    return id(value if value is not None else x.value if isinstance(x, Tracer) else x)


def _leaf(x: Any, trace: Trace, given: set[int]) -> Hashable | None:
    """The part of a leaf that is to be the same; None if it may not occur."""
    if isinstance(x, Tracer):
        captures = trace.root.captures
        assert captures is not None
        return None if x.changed is not None else (
            "tracer", x.type, x.weak, x._view is None, is_rearranged(x, False), not x.maybe, captures.is_leaf(x))
    if isinstance(x, Tensor):
        meta = x._autograd
        if id(x) in given or x._view is not None or (meta is not None and (
                meta.node is not None or meta.hooks or meta.after)):
            return None
        array = x.backing_array
        return "tensor", type(x), type(array), tuple(array.shape), array.dtype, x.requires_grad
    return ("value", frozen_leaf(x)) if is_plain(x) else None


def _classes(structure: tree.TreeDef) -> set[type] | None:
    """The classes of a structure, if containers are modules and dataclasses of this package, with settings that are
    known, or plain ones; None for others."""
    found = set[type]()
    for token in structure:
        if token is tree.LEAF:
            continue
        kind, _, more = token
        if kind in _CONTAINERS or kind is tree.Again:
            continue
        if not is_ours(kind.__module__) or issubclass(kind, tree.Leaf):
            return None
        if issubclass(kind, tree.AttributeTree) and not all(
                is_plain(x.value if isinstance(x, tree.Static) else x) for _, x in more[1]):
            return None
        if issubclass(kind, tree.AttributeTree) or dataclasses.is_dataclass(kind):
            found.add(kind)
    return found


def _done(root: Trace) -> tuple[int, ...]:
    """The number of times that a recording has done something beside operations: it tells whether a call did."""
    captures = root.captures
    assert captures is not None
    return (*captures.done(), len(root.made), len(root.spoiled))
