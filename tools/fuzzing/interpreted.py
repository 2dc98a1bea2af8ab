"""The interpreter as a replacement for native code, so that recorded functions run without compilation by LLVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from mlc import api
from mlc.dialects import tensor
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.tensor.binary import Add, Mul, Sub
from mlc.dialects.tensor.reduce import ReduceProd
from mlc.frontend import eager
from mlc.ir.core import Op, Value
from mlc.ir.interp import bind_sizes, in_parts, run_function, size_error
from mlc.ir.sizes import evaluate
from mlc.passes import pipeline
from mlc.passes.analysis.size_constraints import size_constraints
from mlc.tools.check import has_others

Array = np.ndarray[Any, Any]
FIXED = [text for _, text, _ in pipeline.SHARED].index("fix_numerics") + 1
"""Number of passes up to fix_numerics, after which every pass preserves results bit for bit."""
DERIVED = [text for _, text, _ in pipeline.SHARED].index("grad") + 1
"""Number of passes after which derivatives are ordinary operations."""


class Interpreted:
    """Stand-in for native code: a module after the first `passes` of the pipeline, run by the interpreter."""

    linked: Any = None
    sources = ()

    def __init__(self, module: Module, passes: int = FIXED, seen: Unspecified | None = None) -> None:
        self.seen = seen or Unspecified()
        for step in pipeline.steps("llvm")[:passes]:
            step.transform.run(module, **dict(step.options))
        self.module, self.entries = module, {"main": self}
        self.main = main = next(f for f in module.inside(Func) if f.sym_name == "main")
        self.type, self.inputs = main.function_type, [a.type for a in main.args]
        self._constraints = size_constraints(main)
        self.size_constraints = list(self._constraints)
        for op in list(main.inside(tensor.ConstrainSize)):
            op.erase()

    @property
    def interface(self) -> Interpreted:
        return self

    def entry(self, name: str) -> Interpreted:
        return self

    def _check_sizes(self, arrays: Sequence[Any]) -> None:
        """UserError for sizes that the function is not for, as native code gives it."""
        env: dict[str, int] = {}
        packed = self.main.attrs.get("complex_args", ())
        bind_sizes(self.inputs, [in_parts(x) if i in packed else x for i, x in enumerate(map(np.asarray, arrays))], env)
        for size, (message, loc) in self._constraints.items():
            if evaluate(size, env) < 0:
                raise size_error(f"{loc}: {message}", env)

    def call(self, arrays: Sequence[Any]) -> list[Array]:
        if self._constraints:
            self._check_sizes(arrays)
        watch = self.seen.watch(self.main, arrays)
        found = run_function(self.module, "main", [np.array(a) for a in arrays], watch)
        return [np.asarray(r, order="C") for r in found]


class Unspecified:
    """Whether the result of an operation was unspecified: it needs finite numbers and has had others, or is NaN, as a
    product in which some factors overflow and others are 0, which depends on their order, or an infinity and a product
    that overflows, which does not where both are one operation."""

    def __init__(self) -> None:
        self.met = False

    def watch(self, main: Func, arrays: Sequence[Any]) -> Callable[[Op, Sequence[Any]], None]:
        """Of a call of a function, what is told of each operation and its results."""
        nans = {v: _has(np.isnan, x) for v, x in zip(main.args, arrays)}
        infinite, overflows = {v: _has(np.isinf, x) for v, x in zip(main.args, arrays)}, set[Value]()

        def watch(op: Op, results: Sequence[Any]) -> None:
            nans.update((v, _has(np.isnan, x)) for v, x in zip(op.results, results))
            infinite.update((v, _has(np.isinf, x)) for v, x in zip(op.results, results))
            if isinstance(op, Mul) and infinite[op.result] and not any(infinite.get(v, True) for v in op.operands):
                overflows.add(op.result)
            born = isinstance(op, ReduceProd | Add | Sub) and nans[op.result] and not any(
                nans.get(v, True) for v in op.operands) and (
                isinstance(op, ReduceProd) or any(v in overflows for v in op.operands))
            self.met |= born or any(_is_float(x) and has_others(op, x) for x in results)

        return watch


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _has(these: Callable[[Any], Any], x: Any) -> bool:
    return _is_float(x) and bool(these(x).any())


@contextmanager
def interpreted() -> Iterator[Unspecified]:
    """Within, compiled functions and operations on arrays are interpreted. Gives what is known of their results."""
    seen = Unspecified()
    with (mock.patch.object(api, "native_code", lambda module, placement: Interpreted(module, seen=seen)),
          eager.compiled_by(lambda module, where: Interpreted(module, DERIVED, seen))):
        yield seen
