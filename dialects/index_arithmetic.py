"""Affine expressions as operations of arith on indices, as upstream's affine expansion makes them."""

from __future__ import annotations

from mlc.dialects import arith
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, Algebra, fold
from mlc.ir.core import Value
from mlc.ir.sizes import Dim, Leaf, Quotient
from mlc.ir.types import index


class IndexArithmetic(Algebra[Value]):
    """Operations of arith on indices, or on vectors of them. Divisors are positive."""

    def add(self, a: Value, b: Value) -> Value:
        return arith.AddI(a, b).result

    def multiply(self, a: Value, b: Value) -> Value:
        return arith.MulI(a, b).result

    def quotient(self, quotient: Quotient, num: Value, den: Value) -> Value:
        """Rounded down also where num is negative."""
        if sizes.is_natural(quotient.num):
            return (arith.DivUI if quotient.op == "floordiv" else arith.RemUI)(num, den).result
        down = arith.FloorDivSI(num, den).result
        return down if quotient.op == "floordiv" else arith.SubI(num, arith.MulI(down, den).result).result


class SizeBuilder(IndexArithmetic):
    """Numbers of sizes as index values of one function."""

    def __init__(self, symbols: dict[str, Value]) -> None:
        self.symbols = symbols
        self.known: dict[Dim, Value] = {}

    def value(self, size: Dim) -> Value:
        """The index value of a size; built once, at the current insertion point."""
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
