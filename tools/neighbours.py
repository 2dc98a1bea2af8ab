"""The operations of a program with other options: in the other direction, of another kind, along another axis.

A rule that is wrong for one option of an operation shows only in programs that have it. The checks of single
operations, of their derivatives and their decompositions, need no program around them, and are made of these, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from mlc.dialects import func
from mlc.dialects.builtin import module as new_module
from mlc.dialects.tensor.base import TensorOp
from mlc.ir.core import Op, at_end
from mlc.ir.diag import IRError
from mlc.ir.types import TensorType


def neighbours(op: Op, shapes: Sequence[tuple[int, ...]]) -> Iterator[Op]:
    """The operation with one of its options changed, each in a module of its own, on arguments of these shapes; not
    where that is no operation."""
    if not isinstance(op, TensorOp) or op.regions or any(0 in shape for shape in shapes) or not all(
            isinstance(v.type, TensorType) for v in op.operands):
        return
    for name, value in options(op):
        main = func.function("main", [TensorType(shape, v.type.dtype) for shape, v in zip(shapes, op.operands)])
        new_module().body.block.insert(main)
        try:
            with at_end(main.block, op.loc):
                made = op.with_operands(list(main.args), **{name: value})
                func.Return(tuple(made.results))
        except IRError:                                    # it is not defined so
            continue
        main.update_type()
        yield made


def options(op: Op) -> Iterator[tuple[str, Any]]:
    """The other values of single attributes: truth values, axes, and kinds, of which the class's module has a list."""
    lists = [x for x in vars(sys.modules[type(op).__module__]).values() if isinstance(x, tuple) and len(x) > 1
             and all(isinstance(word, str) for word in x)]
    for name, value in op.attrs.items():
        if isinstance(value, bool):
            yield name, not value
        elif isinstance(value, str):
            yield from ((name, other) for words in lists if value in words for other in words if other != value)
        elif name == "axis" and isinstance(value, int):
            rank = max((v.type.rank for v in op.operands), default=0)
            yield from ((name, other) for other in range(rank) if other != value)


def shown_options(op: Op) -> str:
    """The options of an operation, for a message."""
    return ", ".join(f"{name} = {value}" for name, value in op.attrs.items() if value is not None)
