"""Branches and loops: of the program where the condition is known while recording, and else of the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.control import cond as branch
from mlc.frontend.control import scan as scan_over
from mlc.frontend.control import while_loop
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import NeedsValue, Stored, dtype_of, known, refuse, tensor
from mlc.frontend.tensor import OPERATIONS as O
from mlc.frontend.tensor import Tensor
from mlc.ir.sizes import Size

LONGEST_KNOWN = 128
"""Steps of a loop that are recorded one by one."""


def _is_known(x: Any) -> bool:
    return isinstance(x, np.ndarray | Stored)


def _truth(x: Any) -> bool:
    return bool(known(x, "a condition").ravel()[0])


@row("If", values=("condition",))
def if_(condition: Any, *, then_branch: Any, else_branch: Any) -> Any:
    if _is_known(condition):
        return tuple((then_branch if _truth(condition) else else_branch)())
    def results(body: Any) -> tuple[Any, ...]:
        found = body()
        if any(x is None or isinstance(x, list) for x in found):
            raise NeedsValue(condition, "which branch has the sequence or optional")
        return tuple(map(tensor, found))
    return tuple(branch(O["reshape"](condition, ()), lambda: results(then_branch), lambda: results(else_branch)))


@row("Loop", values=("trips", "condition", "carried"))
def loop(trips: Any = None, condition: Any = None, *carried: Any, body: Any) -> Any:
    count = len(carried)
    values = len(body.graph.output) - 1 - count            # the results that are collected
    if (trips is None or _is_known(trips)) and (condition is None or _is_known(condition)):
        most = LONGEST_KNOWN + 1 if trips is None else int(known(trips, "trips").ravel()[0])
        has_lists = any(isinstance(x, list) for x in carried)
        if (most <= LONGEST_KNOWN or trips is None or has_lists) and (
                out := _unrolled(most, condition is None or _truth(condition), carried, body, trips is None)):
            return out
    if values:
        return _collected(trips, condition, carried, body)
    return _while(trips, condition, carried, body)


def _unrolled(most: int, goes_on: bool, carried: Sequence[Any], body: Any, endless: bool) -> tuple[Any, ...] | None:
    """The results of a loop whose steps are recorded one by one; None if its end is not known."""
    collected = list[list[Any]]()
    values, step = list(carried), 0
    while goes_on and step < most:
        if endless and step == LONGEST_KNOWN:
            return None
        again, *out = body(np.array(step, np.int64), np.array(True), *values)
        if not _is_known(again):
            return None
        goes_on, values, step = _truth(again), out[:len(values)], step + 1
        collected.append(out[len(values):])
    width = len(body.graph.output) - 1 - len(carried)
    stacks = [_stacked([c[k] for c in collected], body.graph.output[1 + len(carried) + k]) for k in range(width)]
    return (*values, *stacks)


def _stacked(parts: Sequence[Any], output: Any) -> Any:
    if not parts:
        t = output.type.tensor_type
        if not t.HasField("shape") or not all(d.HasField("dim_value") for d in t.shape.dim):
            refuse("the results of no steps, whose sizes are not given")
        return O["zeros"]((0, *(d.dim_value for d in t.shape.dim)), dtype=dtype_of(t.elem_type))
    if all(isinstance(p, np.ndarray) for p in parts):
        return np.stack(parts)
    return O["stack"](tuple(map(tensor, parts)))


def _needs_tensors(carried: Sequence[Any], steps: Sequence[Any]) -> list[Any]:
    if any(isinstance(x, list) or x is None for x in carried):
        unknown = next((x for x in steps if x is not None and not _is_known(x)), None)
        raise NeedsValue(unknown, "the number of steps of a loop that carries a sequence")
    return [tensor(x) for x in carried]


def _while(trips: Any, condition: Any, carried: Sequence[Any], body: Any) -> tuple[Any, ...]:
    """A loop whose steps are counted when the model runs."""
    start = (O["zeros"]((), dtype="int64"), O["ones"]((), dtype="bool") if condition is None else O["reshape"](
        tensor(condition), ()), tuple(_needs_tensors(carried, (trips, condition))))
    most = None if trips is None else O["reshape"](tensor(trips), ())

    def goes_on(state: Any) -> Any:
        step, again, _ = state
        return again if most is None else O["logical_and"](again, O["lt"](step, most))

    def step(state: Any) -> Any:
        k, again, values = state
        again, *values = body(k, again, *values)
        return k + 1, O["reshape"](tensor(again), ()), tuple(map(tensor, values))
    return tuple(while_loop(goes_on, step, start)[2])


def _collected(trips: Any, condition: Any, carried: Sequence[Any], body: Any) -> tuple[Any, ...]:
    """A loop of a known number of steps, whose results are collected."""
    steps = known(trips, "the number of steps of a loop whose results are collected")
    if condition is not None and not _truth(condition):
        steps = np.array(0)
    n = int(steps.ravel()[0])

    def step(values: Any, k: Any) -> Any:
        again, *out = body(k, np.array(True), *values)
        if not _is_known(again) or not _truth(again):
            raise NeedsValue(again, "whether a loop whose results are collected goes on")
        return tuple(map(tensor, out[:len(values)])), tuple(map(tensor, out[len(values):]))
    last, results = scan_over(step, tuple(_needs_tensors(carried, (trips, condition))), O["arange"](n), n)
    return (*last, *results)


@row("Scan", since=9)
def scan(*inputs: Any, body: Any, num_scan_inputs: int, scan_input_axes: Any = None, scan_input_directions: Any = None,
         scan_output_axes: Any = None, scan_output_directions: Any = None) -> Any:
    count = len(inputs) - num_scan_inputs
    state, sequences = inputs[:count], inputs[count:]
    results = len(body.graph.output) - count
    axes, ways = scan_input_axes or [0] * num_scan_inputs, scan_input_directions or [0] * num_scan_inputs
    xs = tuple(_turned(O["moveaxis"](x, a, 0), way) for x, a, way in zip(sequences, axes, ways))

    def step(values: Any, parts: Any) -> Any:
        out = list(map(tensor, body(*values, *parts)))
        return tuple(out[:count]), tuple(out[count:])
    if isinstance(xs[0].shape[0], Size):
        last, found = scan_over(step, tuple(state), xs)
    else:
        last, found = scan_over(step, tuple(state), xs, xs[0].shape[0])
    axes, ways = scan_output_axes or [0] * results, scan_output_directions or [0] * results
    return (*last, *(O["moveaxis"](_turned(y, way), 0, a) for y, a, way in zip(found, axes, ways)))


def _turned(x: Any, backward: int) -> Tensor:
    """x from its end, if it is gone through backward."""
    out: Tensor = O["flip"](x, (0,)) if backward else x
    return out
