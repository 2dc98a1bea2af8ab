"""arith, comparisons and selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.arith.constant import constant_value
from mlc.dialects.arith.elementwise import Elementwise, one_bit
from mlc.dialects.arith.representation import store, unsigned
from mlc.ir.core import Op, Value
from mlc.ir.types import (
    FloatType,
    IndexType,
    IntType,
    ScalarType,
    ShapedType,
    Type,
    element,
    i1,
    like,
)

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


FLOAT_PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "false": lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    "oeq": lambda a, b: a == b, "ogt": lambda a, b: a > b, "oge": lambda a, b: a >= b,
    "olt": lambda a, b: a < b, "ole": lambda a, b: a <= b, "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: (a == a) & (b == b),
    "ueq": lambda a, b: ~((a < b) | (a > b)), "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b), "une": lambda a, b: a != b,
    "uno": lambda a, b: (a != a) | (b != b),
    "true": lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
}
INT_PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b, "ult": lambda a, b: a < b, "ule": lambda a, b: a <= b,
    "ugt": lambda a, b: a > b, "uge": lambda a, b: a >= b,
}


class _Compare(Elementwise):
    predicate: str
    lhs: Value
    rhs: Value
    format = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)"

    def infer(self) -> Type:
        if self.predicate not in self.enums["predicate"]:
            self.fail(f"no predicate {self.predicate!r}", code="MLC0109")
        return like(Elementwise.infer(self), i1)


class CmpF(_Compare, name="arith.cmpf"):
    """result = predicate(lhs, rhs); with a NaN, `o` predicates are false and `u` predicates true"""

    accepts = (FloatType,)
    enums = {"predicate": tuple(FLOAT_PREDICATES)}

    def ref(self, a: Any, b: Any) -> Any:
        return store(FLOAT_PREDICATES[self.predicate](np.asarray(a), np.asarray(b)), self.result.type)


class CmpI(_Compare, name="arith.cmpi"):
    """result = predicate(lhs, rhs); `s` compares signed and `u` unsigned"""

    accepts = (IntType, IndexType)
    enums = {"predicate": tuple(INT_PREDICATES)}

    def ref(self, a: Any, b: Any) -> Any:
        if self.predicate.startswith("u"):
            a, b = unsigned(a, self.lhs.type), unsigned(b, self.lhs.type)
        elif element(self.lhs.type) == i1:
            a, b = one_bit(a), one_bit(b)
        return store(INT_PREDICATES[self.predicate](a, b), self.result.type)


class Select(Op, name="arith.select", pure=True):
    """result = condition ? true_value : false_value, elementwise if the condition is a vector"""

    condition: Value
    true_value: Value
    false_value: Value

    def infer(self) -> Type:
        if self.true_value.type != self.false_value.type:
            self.fail(f"operand types differ: {self.true_value.type} and {self.false_value.type}", code="MLC0109")
        if self.condition.type not in (i1, like(self.true_value.type, i1) if isinstance(
                self.true_value.type, ShapedType | ScalarType) else i1):
            self.fail(f"condition {self.condition.type} does not fit {self.true_value.type}", code="MLC0109")
        return self.true_value.type  # type: ignore[no-any-return]

    def print_form(self, p: Printer) -> None:
        kind = "" if self.condition.type == i1 else p.type(self.condition.type) + ", "
        extra = p.attr_dict(self)
        p.append(f" {p.values(self.operands)}{' ' + extra if extra else ''} : {kind}{p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        refs = parser.operand_list()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        types = parser.type_list()
        condition = types[0] if len(types) == 2 else i1
        return Select.make(parser.resolve_all(refs, [condition, types[-1], types[-1]]), extra, None)

    def ref(self, c: Any, a: Any, b: Any) -> Any:
        if not isinstance(self.condition.type, ShapedType) and np.ndim(c) == 0:
            return a if c else b
        return store(np.where(c, a, b), self.result.type)

    def fold(self) -> Value | None:
        chosen = constant_value(self.condition)
        return None if chosen is None or np.ndim(chosen) else self.true_value if chosen else self.false_value
