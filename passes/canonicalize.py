"""Canonicalize operations: fold constants and remove identities.

takes  any form
gives  the same form
why    fewer forms of equivalent IR for the passes below

After folding, the rules of ir/rewrite.py are applied to a fixed point. Constants are moved to the right-hand side of
commutative operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mlc.dialects import arith, tensor
from mlc.ir.core import Op, Value
from mlc.ir.diag import UserError
from mlc.ir.passes import Pass
from mlc.ir.rewrite import Counters, Outcome, Rule, apply_rules, rules_for
from mlc.ir.types import Type

LARGEST = 1 << 16
"""Largest constant, in elements, that folding may create; a larger one costs more program size than it saves."""

def _tensor_constant(value: Any, type: Type) -> Value:
    """A constant of the array; a rule of the dialect turns a splat into a fill."""
    return tensor.Constant(np.asarray(value)).result


MATERIALIZE: dict[str, Callable[[Any, Type], Value]] = {"arith": arith.constant, "tensor": _tensor_constant}
"""Constant materialisers by the dialect of the type."""


def simplify(op: Op) -> Outcome:
    """Fold `op` to an existing value or a constant."""
    if type(op).fold is Op.fold or len(op.results) != 1:
        return None
    folded = op.fold()
    if folded is None or isinstance(folded, Value):
        return folded
    make = MATERIALIZE.get(op.result.type.dialect)
    return make(folded, op.result.type) if make is not None and np.size(folded) <= LARGEST else None


def constant_to_the_right(op: Op) -> bool:
    """c + x == x + c"""
    lhs, rhs = op.operands
    if not is_constant(lhs) or is_constant(rhs):
        return False
    op.set_operands([rhs, lhs])
    return True


CONSTANT_TO_THE_RIGHT = Rule("constant_to_the_right", Op, constant_to_the_right)


def rules(cls: type[Op], fast: bool = False) -> list[Rule]:
    """The rules of a class, after the one for commutative operations."""
    commutes = cls.commutative and len(cls.operand_fields) == 2
    return ([CONSTANT_TO_THE_RIGHT] if commutes else []) + rules_for(cls, fast)


def is_constant(value: Value) -> bool:
    """Whether a value is defined by a constant-like operation."""
    op = value.op
    return op is not None and not op.operands and "value" in op.attrs


def run(module: Op, fast: bool = False, limit: int | None = None) -> Counters:
    """Rewrite to a fixed point. `fast` allows rules that change IEEE results; `limit` bounds the number of rewrites."""
    if limit is not None and limit < 0:
        raise UserError(f"pass canonicalize: limit = {limit} is negative", code="MLC0333",
                        hint="give the number of rewrites after which it stops")
    with np.errstate(all="ignore"):              # folding yields infinities and wraps integers like the operations
        return apply_rules(module, "canonicalize", partial(rules, fast=fast), Counters(limit=limit), simplify)


PASS = Pass(run, whole=False)
