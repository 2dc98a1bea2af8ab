"""Functions recorded for a model: what its inputs, weights and results are, and their names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.api import Compiled, compiled_function
from mlc.backends.onnx import Result
from mlc.call import Call, record
from mlc.frontend import tree
from mlc.frontend.captured_inputs import CapturedGradient, CapturedNumber, CapturedTensor
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.signature import Spec
from mlc.frontend.tensor import Array, Tensor, as_array
from mlc.ir.core import Op
from mlc.ir.diag import UserError


@dataclass
class Program:
    """A recorded function.

    module    as it was recorded
    name      of the function
    inputs    names of the arguments of main
    weights   per input that has a value already, this
    changed   the weights that a call changes
    results   those of the model: of the function, then new values of weights and gradients
    """

    module: Op
    name: str
    inputs: list[str]
    weights: dict[str, Array]
    changed: set[str]
    results: list[Result]


def recorded(f: Any, args: Sequence[Any] | None, keywords: Mapping[str, Any]) -> Program:
    """A function, module or result of `mlc.compile`, recorded for arguments or specifications."""
    compiled = compiled_function(f) or Compiled(f)
    if args is None:
        args = compiled.signature.specified()
        if args is None:
            raise UserError(f"nothing says what the arguments of {compiled.signature.name} are", code="MLC0850",
                            loc=user_loc(), hint="pass args=(...) with arrays or mlc.spec(...)")
    call = compiled.signature.bind_types(args, dict(keywords))
    out = record(call)
    names, weights = _arguments(call)
    known = dict(_reached(compiled.signature.f))
    for source, _, _ in out.captures.inputs if out.captures is not None else ():
        name, value = _captured(source, known, names)
        names.append(_fresh(name, names))
        if value is not None:
            weights[names[-1]] = value
    results, changed = _results(out, call, names)
    if not results:
        raise UserError(f"{compiled.signature.name} gives no tensor", code="MLC0850", loc=user_loc(),
                        hint="return what is to be the model's result")
    return Program(out.trace.module, compiled.signature.name, names, weights, changed, results)


def _arguments(call: Call) -> tuple[list[str], dict[str, Array]]:
    """Names of the arrays of a call, and the values of those that modules hold: by the names of their state."""
    names: list[str] = []
    weights: dict[str, Array] = {}
    slots, given = iter(call.slots), iter(call.given)
    of_module = iter(call.of_modules())
    bound = len(call.signature.bound)
    for number, (root, x) in enumerate(call.roots()):
        paths, dotted = tree.paths(x, root), tree.names(x)
        for path, name in zip(paths, dotted):
            if not next(slots):
                continue
            value = next(given)
            is_weight = next(of_module)
            names.append(_fresh(name if number < bound else f"{root}.{name}" if is_weight else path, names))
            if is_weight and not isinstance(value, Spec):
                weights[names[-1]] = _elements(value)
    return names, weights


def _fresh(name: str, taken: Sequence[str]) -> str:
    """A name that is not taken."""
    fresh, count = name, 1
    while fresh in taken:
        fresh, count = f"{name}_{count}", count + 1
    return fresh


def _elements(x: Any) -> Array:
    return np.asarray(x.array if isinstance(x, Tensor) else as_array(x))


def _reached(f: Any, depth: int = 0) -> Iterator[tuple[int, str]]:
    """The names of tensors that a function finds in its closure and globals, by identity."""
    if depth > 3:
        return
    f = inspect.unwrap(f) if callable(f) else f
    f = getattr(f, "__func__", f)
    if not inspect.isfunction(f):
        return
    found = inspect.getclosurevars(f)
    values = {**found.globals, **found.nonlocals}
    modules = {k: x for k, x in values.items() if isinstance(x, tree.AttributeTree)}
    for owner, module in modules.items():
        state = module.state_dict() if hasattr(module, "state_dict") else {}
        for name, x in zip(tree.names(module), tree.leaves(module)):
            yield id(x), name if len(modules) == 1 else f"{owner}.{name}"
        for name, x in state.items():
            yield id(x), name if len(modules) == 1 else f"{owner}.{name}"
    for name, x in values.items():
        if type(x) is Tensor:
            yield id(x), name
        elif inspect.isfunction(x) and name in found.nonlocals:
            yield from _reached(x, depth + 1)


def _captured(source: Any, known: Mapping[int, str], names: Sequence[str]) -> tuple[str, Array | None]:
    """The name and the value of what a function reaches by itself; a random key has no value."""
    if isinstance(source, CapturedTensor):
        return known.get(id(source.tensor), f"captured_{len(names)}"), _elements(source.tensor)
    if isinstance(source, CapturedNumber):
        name = source.key if source.index is None else f"{source.key}_{source.index}"
        return name, np.asarray(source.operand(()))
    if isinstance(source, CapturedGradient):
        owner = source.owner
        name = names[owner] if isinstance(owner, int) else known.get(id(owner), "captured")
        return f"{name}.grad", None if isinstance(owner, int) else _elements(source.operand(()))
    return "key", None


def _results(out: Recorded, call: Call, names: Sequence[str]) -> tuple[list[Result], set[str]]:
    """The results of the model, and the names of the inputs that a call changes."""
    own: list[tuple[int, Any]] = []
    for kind, x in out.outputs:
        if kind in ("result", "number"):
            own.append((x, ()))
        elif kind == "first":
            own.append(x)
        elif kind != "value":                              # an input, or a view of one
            own.append((x[1], ()))
        elif x is not None:
            raise UserError(f"{call.signature.name} returns {x!r}, which is no tensor", code="MLC0850", loc=user_loc(),
                            hint="return tensors, or None")
    results = [Result(number, "output" if len(own) == 1 else f"output_{i}", sizes)
               for i, (number, sizes) in enumerate(own)]
    arguments = len(call.arrays)
    places = _buffers(call, names)
    inputs = {**{places[b]: r for b, r in out.assigned.items() if b in places},
              **{names[i]: r for i, r in out.written.items()},
              **{names[arguments + i]: r for i, r in out.stored.items()}}
    results += [Result(r, _fresh(f"{name}.new", names)) for name, r in inputs.items()]
    held: dict[int, str] = {}
    if out.captures is not None:
        held = {id(source.tensor): name for (source, _, _), name in zip(out.captures.inputs, names[arguments:])
                if isinstance(source, CapturedTensor)}
    for number, (owner, result) in enumerate(out.gradients):
        if result is not None:
            name = names[owner] if isinstance(owner, int) else held.get(id(owner), f"gradient_{number}")
            results.append(Result(result, _fresh(f"{name}.grad", names)))
    taken: list[str] = []
    for r in results:
        r.name = _fresh(r.name, [*names, *taken])
        taken.append(r.name)
    return results, set(inputs)


def _buffers(call: Call, names: Sequence[str]) -> dict[int, str]:
    """The inputs that are buffers of modules among the arguments, by the numbers that a call gives the buffers."""
    found: dict[int, str] = {}
    by_value = {id(x): name for x, name in zip(call.given, names)}
    for number, x in enumerate(_buffer_values((call.args, call.keywords))):
        if id(x) in by_value:
            found[number] = by_value[id(x)]
    return found


def _buffer_values(x: Any) -> Iterator[Any]:
    """The buffers in a tree, in the order in which a call numbers them."""
    if isinstance(x, tree.AttributeTree):
        yield from (getattr(x, name) for name in x._buffers)
    for _, child in tree.children(x):
        yield from _buffer_values(child)
