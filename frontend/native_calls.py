"""Native callables for eager calls: the code that has run a call takes all calls of its pattern from then on.

A call has a pattern if its code computes all results from arrays on the CPU, numbers and constants. Its sizes are those
that the code was compiled for: symbols stand for numbers above 1, and for different ones where frontend/eager.py names
them by numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mlc.frontend.devices import CPU
from mlc.frontend.eager import Call, EagerKernel
from mlc.frontend.tensor import Tensor
from mlc.ir.call_pattern import Argument, Array, CallPattern, Constant, Items, Number
from mlc.ir.compilation_lock import compiling


def offer(call: Call, kernel: EagerKernel, record: Callable[[], Callable[..., Any] | None]) -> None:
    """Have the kernel that has run a call take the calls of its pattern, if it has one.

    record  makes their function for autograd
    """
    with compiling:
        if not kernel.is_new:
            return
        computes = not call.op.view and kernel.computes_all and kernel.entry is not None
        pattern = pattern_of(call, kernel) if computes else None
        kernel.is_new = computes and pattern is None       # for a call of arrays after one of torch's tensors
        if pattern is not None and kernel.entry is not None:
            call.op.add(kernel.entry, pattern, record() if kernel.is_plain else _finishing(kernel, record()))


def _finishing(kernel: EagerKernel, record: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function that makes the output of a tuple of results, once the call is recorded."""
    def finish(results: Any, *args: Any, **keywords: Any) -> Any:
        if record is not None:
            record(results, *args, **keywords)
        return kernel.structure.unflatten(results)

    return finish


def pattern_of(call: Call, kernel: EagerKernel) -> CallPattern | None:
    """The pattern of a call that the kernel has run; None if calls like it take the general path."""
    if call.device != CPU or len(call.given) != len(call.arrays):
        return None
    numbers = iter(range(len(call.given)))
    op = call.op

    def argument(x: Any, name: str) -> Argument:
        return _operand(x, op.is_literal(name, x), call, kernel, numbers) if name in op.operands else Constant(own(x))

    try:
        arguments = [argument(x, op.parameter(i)) for i, x in enumerate(call.args)]
        arguments += [argument(x, name) for name, x in call.keywords.items()]
    except _NoPattern:
        return None
    return CallPattern(tuple(arguments), tuple(call.keywords), len(kernel.structure) > 1, not kernel.is_plain,
                       kernel.distinct)


def _operand(x: Any, literal: bool, call: Call, kernel: EagerKernel, numbers: Iterator[int]) -> Argument:
    """An operand in the pattern of a call. No closure, whose cell would keep the arrays of the call in a cycle."""
    kind = type(x)
    if x is None or kind is bool or (literal and kind in (int, float, complex)):
        return Constant(x)
    if kind is list or kind is tuple:
        return Items(tuple(_operand(item, literal, call, kernel, numbers) for item in x))
    number = next(numbers)
    if kind is float or (kind is int and not (call.op.stored and _has_integers(call))):
        return Number(kind)
    if kind is not Tensor and kind is not np.ndarray:
        raise _NoPattern
    return Array(number not in kernel.unused)


def _has_integers(call: Call) -> bool:
    """Whether an operand has integers, in whose place a Python integer may not fit."""
    return any(x.dtype.kind in "iu" for x, weak in zip(call.arrays, call.weak) if not weak)


class _NoPattern(Exception):
    """An argument of the call is of another kind."""


def own(x: Any) -> Any:
    """An argument with containers of its own, since what the program does to its lists concerns later calls."""
    if isinstance(x, list | tuple) and not hasattr(x, "_fields"):
        return type(x)(map(own, x))
    return {key: own(v) for key, v in x.items()} if type(x) is dict else x
