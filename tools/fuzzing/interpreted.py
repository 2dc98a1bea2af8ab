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
from mlc.dialects.tensor.reduce import ReduceProd
from mlc.frontend import eager
from mlc.ir.core import Op
from mlc.ir.interp import run_function
from mlc.passes import pipeline
from mlc.passes.analysis.size_constraints import size_constraints
from mlc.tools.check import has_others

Array = np.ndarray[Any, Any]
Watch = Callable[[Op, Sequence[Any]], None]
FIXED = [text for _, text, _ in pipeline.SHARED].index("fix_numerics") + 1
"""Number of passes up to fix_numerics, after which every pass preserves results bit for bit."""
DERIVED = [text for _, text, _ in pipeline.SHARED].index("grad") + 1
"""Number of passes after which derivatives are ordinary operations."""


class Interpreted:
    """Stand-in for native code: a module after the first `passes` of the pipeline, run by the interpreter."""

    linked: Any = None
    sources = ()

    def __init__(self, module: Module, passes: int = FIXED, watch: Watch | None = None) -> None:
        self.watch = watch
        for step in pipeline.steps("llvm")[:passes]:
            step.transform.run(module, **dict(step.options))
        self.module, self.entries = module, {"main": self}
        main = next(f for f in module.inside(Func) if f.sym_name == "main")
        self.type, self.inputs = main.function_type, [a.type for a in main.args]
        self.size_constraints = list(size_constraints(main))
        for op in list(main.inside(tensor.ConstrainSize)):
            op.erase()

    @property
    def interface(self) -> Interpreted:
        return self

    def entry(self, name: str) -> Interpreted:
        return self

    def call(self, arrays: Sequence[Any]) -> list[Array]:
        found = run_function(self.module, "main", [np.array(a) for a in arrays], self.watch)
        return [np.asarray(r, order="C") for r in found]


@contextmanager
def interpreted() -> Iterator[Callable[[], bool]]:
    """Within, compiled functions and operations on arrays are interpreted.

    Gives a function that says whether the result of an operation was unspecified: it needs finite numbers and has had
    others, or is a product of which some factors overflow and others are 0, which depends on their order.
    """
    met = False

    def watch(op: Op, results: Sequence[Any]) -> None:
        nonlocal met
        met = met or any(isinstance(x, np.ndarray) and x.dtype.kind == "f" and (
            has_others(op, x) or (isinstance(op, ReduceProd) and bool(np.isnan(x).any()))) for x in results)

    with (mock.patch.object(api, "native_code", lambda module, placement: Interpreted(module, watch=watch)),
          eager.compiled_by(lambda module, where: Interpreted(module, DERIVED, watch))):
        yield lambda: met
