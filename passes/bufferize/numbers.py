"""Numbers of sizes as index values, and the names of the symbols they are made of."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, Algebra, fold
from mlc.ir.affine_syntax import is_positional
from mlc.ir.core import Value
from mlc.ir.diag import IRError
from mlc.ir.sizes import Dim, Leaf, Quotient, Size
from mlc.ir.types import TensorType, index


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


def symbols_of(types: Sequence[TensorType]) -> list[str]:
    """The size symbols of argument types, in order of appearance; each must stand alone somewhere."""
    out = list(dict.fromkeys(str(d) for t in types for d in t.shape if isinstance(d, Size) and str(d).isidentifier()))
    for t in types:
        for d in t.shape:
            if missing := sizes.symbols(d) - set(out):
                raise IRError(f"the size {', '.join(sorted(missing))} cannot be read off any argument: it stands only "
                              f"in {t}", code="MLC0163")
    return out


def kernel_names(names: Sequence[str]) -> tuple[str, ...]:
    """What the size symbols are called in kernels, where `d0` and `t0` are coordinates and index tiles."""
    taken = set(names)
    out = []
    for name in names:
        inside = name
        while is_positional(name) and inside in taken:
            inside += "_"
        taken.add(inside)
        out.append(inside)
    return tuple(out)
