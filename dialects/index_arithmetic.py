"""Expansion of affine expressions into arith operations on indices, as upstream's affine expansion does."""

from __future__ import annotations

from mlc.dialects import arith
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, Algebra, fold
from mlc.ir.core import Value
from mlc.ir.sizes import Dim, Leaf, Quotient
from mlc.ir.types import index


class IndexArithmetic(Algebra[Value]):
    """Builds arith operations on indices, or on vectors of indices. Divisors are positive."""

    def add(self, a: Value, b: Value) -> Value:
        return arith.AddI(a, b).result

    def multiply(self, a: Value, b: Value) -> Value:
        return arith.MulI(a, b).result

    def quotient(self, quotient: Quotient, num: Value, den: Value) -> Value:
        """Rounds down, also for a negative num."""
        if sizes.is_natural(quotient.num):
            return (arith.DivUI if quotient.op == "floordiv" else arith.RemUI)(num, den).result
        down = arith.FloorDivSI(num, den).result
        return down if quotient.op == "floordiv" else arith.SubI(num, arith.MulI(down, den).result).result


class SizeBuilder(IndexArithmetic):
    """Builds the index values of sizes in one function."""

    def __init__(self, symbols: dict[str, Value]) -> None:
        self.symbols = symbols
        self.known: dict[Dim, Value] = {}

    def value(self, size: Dim) -> Value:
        """The index value of a size; built at most once, at the current insertion point."""
        if size not in self.known:
            self.known[size] = fold(size, self)
        return self.known[size]

    def expression(self, expr: AffineExpr) -> Value:
        return self.value(expr)

    def constant(self, value: int) -> Value:
        if value not in self.known:
            self.known[value] = arith.constant(value, index)
        return self.known[value]

    def leaf(self, leaf: Leaf) -> Value:
        assert isinstance(leaf, str), "sizes are made of symbols"
        return self.symbols[leaf]
