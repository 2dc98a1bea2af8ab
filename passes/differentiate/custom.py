"""differentiate, custom: functions with a custom derivative rule (see dialects/autodiff/attributes.py).

A rule is linear in its tangents or cotangents, so its transpose serves the other mode: the rule is differentiated like
any function, and its backward function is the transpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import CUSTOM_ARGS, CUSTOM_JVP, CUSTOM_VJP, has_cotangent
from mlc.dialects.func import Func
from mlc.ir.core import Value
from mlc.passes.differentiate.activity import VjpFunctions, VjpRequest
from mlc.passes.differentiate.reverse_control import full


class Parts:
    """The arguments of a function with a custom rule, by role."""

    def __init__(self, function: Func, args: Sequence[Value]) -> None:
        count, first, second = function.attrs[CUSTOM_ARGS]
        self.inputs = list(args[:count])
        self.first = [args[i] for i in first]
        self.second = [args[i] for i in second]


def floats(values: Sequence[Value]) -> list[int]:
    """The positions of the values that have tangents."""
    return [i for i, v in enumerate(values) if has_cotangent(v.type)]


def linear_request(function: Func, table: Mapping[str, Func]) -> VjpRequest:
    """The request for the transpose of the linear map that a rule computes."""
    if CUSTOM_VJP in function.attrs:
        name = function.attrs[CUSTOM_VJP][1]
        bwd, second = table[name], len(function.attrs[CUSTOM_ARGS][2])
        count = len(floats(function.block.terminator.operands))
        start = len(bwd.args) - second - count
        return VjpRequest(name, tuple(range(start, start + count)), tuple(range(len(bwd.function_type.results))))
    name = function.attrs[CUSTOM_JVP][0]
    rule, inputs = table[name], function.args[: function.attrs[CUSTOM_ARGS][0]]
    own = len(function.function_type.results)
    tangents = range(len(inputs), len(inputs) + len(floats(inputs)))
    return VjpRequest(name, tuple(tangents), tuple(range(own, len(rule.function_type.results))))


def forward(function: Func, args: Sequence[Value], table: Mapping[str, Func],
                 memo: Mapping[VjpRequest, VjpFunctions]) -> tuple[list[Value], list[Value]]:
    """The results of a function and the residuals of its rule, at the insertion point."""
    parts, own = Parts(function, args), len(function.function_type.results)
    if CUSTOM_VJP in function.attrs:
        results = list(func.call(table[function.attrs[CUSTOM_VJP][0]], [*parts.inputs, *parts.first]))
        return results[:own], [*results[own:], *parts.second]
    pair = memo[linear_request(function, table)]
    zero = [full(0.0, parts.inputs[i].type) for i in floats(parts.inputs)]
    primals = [*parts.inputs, *zero, *parts.first]
    results = list(func.call(pair.forward, primals))
    return results[:own], [*primals, *results]


def backward(function: Func, kept: Sequence[Value], cotangents: Mapping[int, Value], types: Sequence[Value],
                  table: Mapping[str, Func], memo: Mapping[VjpRequest, VjpFunctions]) -> dict[int, Value]:
    """The cotangents of the arguments by position, from those of the results, which have `types`."""
    dense = [cotangents[j] if j in cotangents else full(0.0, types[j].type) for j in floats(types)]
    inputs = floats(function.args[: function.attrs[CUSTOM_ARGS][0]])
    if CUSTOM_VJP in function.attrs:
        second = len(function.attrs[CUSTOM_ARGS][2])
        split = len(kept) - second
        grads = func.call(table[function.attrs[CUSTOM_VJP][1]], [*kept[:split], *dense, *kept[split:]])
    else:
        pair = memo[linear_request(function, table)]
        count = len(table[pair.request.callee].args)
        grads = pair.call_backward(kept[:count], kept[count:], dense)
    return dict(zip(inputs, grads))


def tangents(function: Func, args: Sequence[Value], known: Mapping[int, Value], table: Mapping[str, Func],
             memo: Mapping[VjpRequest, VjpFunctions]) -> tuple[list[Value], dict[int, Value]]:
    """The results of a function and their tangents, from tangents of some of its arguments."""
    parts, own = Parts(function, args), len(function.function_type.results)
    flow = [known[i] if i in known else full(0.0, parts.inputs[i].type) for i in floats(parts.inputs)]
    if CUSTOM_JVP in function.attrs:
        found = list(func.call(table[function.attrs[CUSTOM_JVP][0]], [*parts.inputs, *flow, *parts.first]))
        return found[:own], dict(zip(floats(found[:own]), found[own:]))
    results, kept = forward(function, args, table, memo)
    pair = memo[linear_request(function, table)]
    second = len(function.attrs[CUSTOM_ARGS][2])
    split = len(kept) - second
    primals = [*kept[:split], *(full(0.0, results[j].type) for j in floats(results)), *kept[split:]]
    found = list(func.call(pair.forward, primals))
    return results, dict(zip(floats(results), pair.call_backward(primals, found, flow)))
