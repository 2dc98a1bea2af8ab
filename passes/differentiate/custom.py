"""differentiate, custom: functions with a custom derivative rule, which dialects/autodiff/attributes.py describes.

x are the arguments of which one differentiates, y the results; floating-point ones have tangents and cotangents. Both
rules are linear in what they are given of those, so each serves the other mode too, transposed: take it apart as any
function, and run its backward half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import CUSTOM_ARGS, CUSTOM_JVP, CUSTOM_VJP, has_cotangent
from mlc.dialects.func import Func
from mlc.ir.core import Value
from mlc.passes.differentiate.activity import Halves, Request
from mlc.passes.differentiate.reverse_control import full


class Parts:
    """The arguments of a function with a custom rule by what they are for."""

    def __init__(self, function: Func, args: Sequence[Value]) -> None:
        count, first, second = function.attrs[CUSTOM_ARGS]
        self.inputs = list(args[:count])
        self.first = [args[i] for i in first]
        self.second = [args[i] for i in second]


def floats(values: Sequence[Value]) -> list[int]:
    """The numbers of the values that have tangents."""
    return [i for i, v in enumerate(values) if has_cotangent(v.type)]


def linear_request(function: Func, table: Mapping[str, Func]) -> Request:
    """What taking a rule apart asks for: the transpose of the map that it is linear in."""
    if CUSTOM_VJP in function.attrs:
        name = function.attrs[CUSTOM_VJP][1]
        bwd, second = table[name], len(function.attrs[CUSTOM_ARGS][2])
        count = len(floats(function.block.terminator.operands))
        start = len(bwd.args) - second - count
        return Request(name, tuple(range(start, start + count)), tuple(range(len(bwd.function_type.results))))
    name = function.attrs[CUSTOM_JVP][0]
    rule, inputs = table[name], function.args[: function.attrs[CUSTOM_ARGS][0]]
    own = len(function.function_type.results)
    tangents = range(len(inputs), len(inputs) + len(floats(inputs)))
    return Request(name, tuple(tangents), tuple(range(own, len(rule.function_type.results))))


def forward_half(function: Func, args: Sequence[Value], table: Mapping[str, Func],
                 made: Mapping[Request, Halves]) -> tuple[list[Value], list[Value]]:
    """The results of a function and what its rule needs later, at the insertion point."""
    parts, own = Parts(function, args), len(function.function_type.results)
    if CUSTOM_VJP in function.attrs:
        found = list(func.call(table[function.attrs[CUSTOM_VJP][0]], [*parts.inputs, *parts.first]))
        return found[:own], [*found[own:], *parts.second]
    halves = made[linear_request(function, table)]
    zero = [full(0.0, parts.inputs[i].type) for i in floats(parts.inputs)]
    primals = [*parts.inputs, *zero, *parts.first]
    found = list(func.call(halves.forward, primals))
    return found[:own], [*primals, *found]


def backward_half(function: Func, kept: Sequence[Value], cotangents: Mapping[int, Value], types: Sequence[Value],
                  table: Mapping[str, Func], made: Mapping[Request, Halves]) -> dict[int, Value]:
    """The cotangents of the arguments by their number, from those of results `types` by theirs."""
    given = [cotangents[j] if j in cotangents else full(0.0, types[j].type) for j in floats(types)]
    inputs = floats(function.args[: function.attrs[CUSTOM_ARGS][0]])
    if CUSTOM_VJP in function.attrs:
        second = len(function.attrs[CUSTOM_ARGS][2])
        rest = len(kept) - second
        found = func.call(table[function.attrs[CUSTOM_VJP][1]], [*kept[:rest], *given, *kept[rest:]])
    else:
        halves = made[linear_request(function, table)]
        count = len(table[halves.request.callee].args)
        found = halves.call_backward(kept[:count], kept[count:], given)
    return dict(zip(inputs, found))


def tangents(function: Func, args: Sequence[Value], given: Mapping[int, Value], table: Mapping[str, Func],
             made: Mapping[Request, Halves]) -> tuple[list[Value], dict[int, Value]]:
    """The results of a function and their tangents, from tangents of some of its arguments."""
    parts, own = Parts(function, args), len(function.function_type.results)
    flow = [given[i] if i in given else full(0.0, parts.inputs[i].type) for i in floats(parts.inputs)]
    if CUSTOM_JVP in function.attrs:
        found = list(func.call(table[function.attrs[CUSTOM_JVP][0]], [*parts.inputs, *flow, *parts.first]))
        return found[:own], dict(zip(floats(found[:own]), found[own:]))
    results, kept = forward_half(function, args, table, made)
    halves = made[linear_request(function, table)]
    second = len(function.attrs[CUSTOM_ARGS][2])
    rest = len(kept) - second
    primals = [*kept[:rest], *(full(0.0, results[j].type) for j in floats(results)), *kept[rest:]]
    found = list(func.call(halves.forward, primals))
    return results, dict(zip(floats(results), halves.call_backward(primals, found, flow)))
