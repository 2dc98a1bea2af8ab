"""Writes a module of the tensor dialect as text of StableHLO, in the generic form, which every version reads.

takes  primitives of real numbers (`passes/decompose`); where sizes are symbols, without calls
gives  a module of func, stablehlo and chlo

Values of scalars (of scf and arith) are arrays without dimensions, indices are i64. An operation without a row is
refused by name. An index out of range is an error in mlc; in StableHLO it is clamped, and an update there is dropped.
"""

from __future__ import annotations

from mlc.backends.stablehlo import control, indexing, operations  # noqa: F401 - they fill the table
from mlc.backends.stablehlo.writer import Writer
from mlc.dialects.func import Func
from mlc.ir.core import Op
from mlc.ir.types import TensorType


def emit(module: Op) -> str:
    """The text of a module.

    Args:
        module: Module of primitives of the tensor dialect, on real numbers.

    Returns:
        The text.

    Raises:
        UserError: An operation, a type or a size has no counterpart (MLC0864 to MLC0866).

    Example:
        >>> from mlc.backends.stablehlo import emit
        >>> "stablehlo.add" in emit(mlc.lower(lambda x: x + x, [mlc.spec(2)]).module)
        True
    """
    functions = list(module.inside(Func))
    combinations: dict[str, list[str]] = {}
    lines = [line for f in functions for line in Writer(combinations).function(f)]
    lines += [line for combination in combinations.values() for line in combination]
    head = " attributes {jax.uses_shape_polymorphism = true}" if any(is_symbolic(f) for f in functions) else ""
    return "\n".join([f"module{head} {{", *lines, "}", ""])


def is_symbolic(function: Func) -> bool:
    """Whether an argument of a function has a size that is no number."""
    return any(isinstance(a.type, TensorType) and not a.type.is_static for a in function.args)
