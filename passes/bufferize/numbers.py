"""Numbers of sizes as index values, and the names of the symbols they are made of."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith, loop
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.diag import IRError
from mlc.ir.sizes import Dim, Quotient, Size
from mlc.ir.types import TensorType, index


class SizeBuilder:
    """Numbers of sizes as index values of one function."""

    def __init__(self, symbols: dict[str, Value]) -> None:
        self.symbols = symbols
        self.known: dict[Dim, Value] = {}

    def value(self, size: Dim) -> Value:
        """The index value of a size; built once, at the current insertion point."""
        if size not in self.known:
            self.known[size] = self._build(size)
        return self.known[size]

    def _build(self, size: Dim) -> Value:
        if isinstance(size, int):
            return arith.constant(size, index)
        total: Value | None = None
        for monomial, coefficient in size.terms:
            term: Value | None = None
            for atom, power in monomial:
                if isinstance(atom, str):
                    factor = self.symbols[atom]
                else:
                    factor = quotient(atom, self.value(atom.num), self.value(atom.den))
                for _ in range(power):
                    term = factor if term is None else arith.MulI(term, factor).result
            if term is None or coefficient != 1:
                number = self.value(coefficient)
                term = number if term is None else arith.MulI(term, number).result
            total = term if total is None else arith.AddI(total, term).result
        assert total is not None
        return total


def quotient(atom: Quotient, num: Value, den: Value) -> Value:
    """num floordiv den or num mod den, rounded down also where num is negative; den is positive."""
    if sizes.is_natural(atom.num):
        return (arith.DivUI if atom.op == "floordiv" else arith.RemUI)(num, den).result
    down = arith.FloorDivSI(num, den).result
    return down if atom.op == "floordiv" else arith.SubI(num, arith.MulI(down, den).result).result


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
        while loop.is_reserved(name) and inside in taken:
            inside += "_"
        taken.add(inside)
        out.append(inside)
    return tuple(out)
