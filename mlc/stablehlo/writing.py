"""Functions of mlc's as StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.api import lower
from mlc.backends.stablehlo import emit
from mlc.backends.stablehlo.emit import is_symbolic
from mlc.dialects.func import Func
from mlc.ir.core import Op
from mlc.passes import pipeline

PRIMITIVES = [name for _, name, _ in pipeline.SHARED].index("fix_numerics")
"""Number of passes to primitives of the tensor dialect, of which operations of StableHLO are made."""


def text(f: Callable[..., Any], args: Sequence[Any] | None = None) -> str:
    """A function as a program of StableHLO.

    It computes in the element types of f; sums of 16-bit floats are in float32. Indices that are out of range are
    clamped, where mlc reports an error. Sizes may be symbols: XLA refines the program to those of a call, as it does
    what `jax.export` writes.

    Args:
        f: Function, or result of `mlc.compile`.
        args: Arguments, arrays or specifications (`mlc.spec`); None for the annotations of f.

    Returns:
        The text of a module in the generic form, which jaxlib and other programs read. `main` takes the arrays of the
        arguments in the order of `mlc.lower`.

    Raises:
        UserError: An operation has no counterpart (MLC0864), elements determine a size (MLC0865), or whether the
            function fails (MLC0866).

    Example:
        >>> print(mlc.stablehlo.text(lambda x: x + x, [mlc.spec(2)]))
        module {
          func.func public @main(%1: tensor<2xf32>) -> (tensor<2xf32>) {
            %2 = "stablehlo.add"(%1, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
            "func.return"(%2) : (tensor<2xf32>) -> ()
          }
        }
        <BLANKLINE>
    """
    return module_text(lower(f, args, "trace").module)


def module_text(module: Op) -> str:
    """A module of the tensor dialect, which is lowered in place, as a program of StableHLO."""
    whole = any(is_symbolic(f) for f in module.inside(Func))
    for step in pipeline.steps("llvm")[:PRIMITIVES]:
        more = {"all": True} if whole and step.transform.name == "inline" else {}
        step.transform.run(module, **{**dict(step.options), **more})
    return emit(module)
