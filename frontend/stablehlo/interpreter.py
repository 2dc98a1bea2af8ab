"""Runs a program of StableHLO on mlc's tensors.

Recorded as any other function, the run is the import: what the IR means is what mlc's public functions mean.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.frontend.dtypes import of_ir
from mlc.frontend.location import text
from mlc.frontend.operands import tracer
from mlc.frontend.stablehlo.sizes import Known, known_of
from mlc.frontend.stablehlo.syntax import (
    SYNTAX,
    UNSUPPORTED,
    ArrayType,
    Function,
    Operation,
    Program,
    Region,
    ValueType,
)
from mlc.frontend.stablehlo.table import find, reason, takes
from mlc.frontend.tensor import Tensor, wrap
from mlc.frontend.trace import state
from mlc.ir.diag import UserError

MAX_CALLS = 64
"""Most functions that call each other."""
MAX_CONSTANT = 1 << 16
"""Most bytes of a constant that the code holds."""
CustomCall = Callable[..., Any]
CUSTOM_CALLS: dict[str, CustomCall] = {}
"""Functions of a step and of tensors, by the name that `custom_call` calls them by."""


class Scope:
    """The values of a region, and those around it.

    values  by name
    known   of integers that the sizes of arguments determine, what is known of them: an array of numbers and sizes
    """

    def __init__(self, values: ChainMap[str, Any] | None = None, known: ChainMap[str, Known] | None = None) -> None:
        self.values = ChainMap[str, Any]() if values is None else values
        self.known = ChainMap[str, Known]() if known is None else known

    def inner(self) -> Scope:
        """The scope of a nested region."""
        return Scope(self.values.new_child(), self.known.new_child())


class Step:
    """An operation that is being run.

    op           the operation
    interpreter  what runs it
    scope        the values around it
    """

    def __init__(self, op: Operation, interpreter: Interpreter, scope: Scope) -> None:
        self.op, self.interpreter, self.scope = op, interpreter, scope

    def body(self, number: int = 0) -> Callable[..., tuple[Any, ...]]:
        """A region as a function of tensors."""
        if number >= len(self.op.regions):
            self.op.wrong(f"it has {len(self.op.regions)} regions")
        region = self.op.regions[number]
        return lambda *xs: self.interpreter.region(region, xs, self.scope.inner())

    def known(self, number: int) -> list[Any]:
        """The numbers and sizes that an operand has, which has to be independent of the elements of arguments."""
        found = self.scope.known.get(self.op.operands[number]) if number < len(self.op.operands) else None
        if found is None:
            self.op.refuse(f"operand {number} gives sizes, and depends on the elements of arguments")
        return list(found.ravel())


class Interpreter:
    """One run of a program; `functions` are its functions."""

    def __init__(self, program: Program) -> None:
        self.functions = program.functions
        self.depth = 0

    def call(self, function: Function, inputs: Sequence[Any], known: Sequence[Known | None] = ()) -> tuple[Any, ...]:
        """The results of a function."""
        if function.body is None:
            raise UserError(f"@{function.name} has no body", code=UNSUPPORTED, loc=function.loc)
        if self.depth >= MAX_CALLS:
            raise UserError(f"@{function.name} calls itself", code=SYNTAX, loc=function.loc)
        self.depth += 1
        try:
            return self.region(function.body, inputs, Scope(), known)
        finally:
            self.depth -= 1

    def region(self, region: Region, inputs: Sequence[Any], scope: Scope,
               known: Sequence[Known | None] = ()) -> tuple[Any, ...]:
        """The results of a region for its arguments."""
        scope.values.update(zip(region.names, inputs))
        scope.known.update({n: k for n, k in zip(region.names, known) if k is not None})
        around = text.loc
        try:
            for op in region.operations:
                text.loc = op.loc
                if op.name in ("stablehlo.return", "func.return"):
                    return tuple(scope.values[n] for n in op.operands)
                self._run(op, scope)
        finally:
            text.loc = around
        return ()

    def _run(self, op: Operation, scope: Scope) -> None:
        """Run an operation, and give its results their names."""
        f = find(op.name)
        if f is None:
            op.refuse(reason(op.name))
        inputs = [scope.values[n] for n in op.operands]
        fewest, most = takes(f)
        if len(inputs) < fewest or (most is not None and len(inputs) > most):
            op.wrong(f"it has {len(inputs)} operands, and takes {fewest if fewest == most else f'{fewest} or more'}")
        out = f(Step(op, self, scope), *inputs)
        results = out if isinstance(out, tuple) and not (len(op.results) == 1 and _is_tuple(op.results[0])) else (out,)
        results = () if not op.results and results == (None,) else results
        if len(results) != len(op.results):
            op.wrong(f"it has {len(op.results)} results, and gives {len(results)}")
        for number, (type, x) in enumerate(zip(op.results, results)):
            check(op, number, type, x)
        names = op.names or [f"unnamed {i}" for i in range(len(results))]
        scope.values.update(zip(names, results))
        if len(results) == 1 and (found := known_of(op, [scope.known.get(n) for n in op.operands], inputs)) is not None:
            scope.known[names[0]] = found


def _is_tuple(type: ValueType) -> bool:
    return hasattr(type, "parts")


def check(op: Operation, number: int, type: ValueType, x: Any) -> None:
    """UserError if a result has not the type that the text gives it: a wrong text or row is never a wrong number."""
    if not isinstance(type, ArrayType):
        return
    if not isinstance(x, Tensor):
        op.wrong(f"result {number} is no array")
    fits = x.dtype is of_ir(type.dtype) and len(x.shape) == len(type.shape) and all(
        n is None or bool(n == m) for n, m in zip(type.shape, x.shape))
    if not fits:
        op.wrong(f"result {number} is {x.dtype.name}{[str(n) for n in x.shape]}, and the text says {type}")


def constant(array: np.ndarray[Any, Any]) -> Tensor:
    """A constant of the program: of what is recorded, too, or one of its inputs, as weights are, if it is large."""
    return tracer(array) if state.trace is not None and array.nbytes <= MAX_CONSTANT else wrap(array)
