"""Expansion of affine expressions into arith operations on indices, as upstream's affine expansion does."""

from __future__ import annotations

from collections.abc import Callable

from mlc.dialects import arith
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, Algebra, fold
from mlc.ir.core import Value
from mlc.ir.sizes import Dim, Leaf, Quotient
from mlc.ir.types import index

Pair = tuple[str, Value, Value]
"""An operation on two values: its sign, and the values."""


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
    """Builds the index values of sizes in one function.

    symbols  the value of each name
    known    the sizes that have been built, and the sums and products of two values
    """

    def __init__(self, symbols: dict[str, Value], known: dict[Dim | Pair, Value] | None = None) -> None:
        self.symbols = symbols
        self.known: dict[Dim | Pair, Value] = known or {}

    def inner(self) -> SizeBuilder:
        """One for a nested region, where what has been built here is visible, and not the other way round."""
        return SizeBuilder(dict(self.symbols), dict(self.known))

    def add(self, a: Value, b: Value) -> Value:
        return self._once("+", a, b, super().add)

    def multiply(self, a: Value, b: Value) -> Value:
        return self._once("*", a, b, super().multiply)

    def _once(self, sign: str, a: Value, b: Value, build: Callable[[Value, Value], Value]) -> Value:
        key = sign, a, b
        if key not in self.known:
            self.known[key] = build(a, b)
        return self.known[key]

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
