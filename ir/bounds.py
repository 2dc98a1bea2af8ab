"""Upper and lower bounds of sizes, given upper bounds of some of their symbols.

A data-dependent size may have an upper bound. Sizes computed from it are unknown before the program runs, but bounded:
memory is planned for the upper bound, and size constraints are proved from the lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlc.ir import sizes
from mlc.ir.sizes import Atom, Dim, Monomial, Quotient, Size, is_natural, of_atom, symbols

MAX_ELEMENTS = 1 << 48
"""Limit on the elements of a tensor, and on the sizes of an empty one. A process can address 2**47 bytes."""
LARGEST = 1 << 61
"""Largest number that compiled code computes of sizes: comparing another with it takes no more than 64 bits."""

Bounds = Mapping[str, Dim]
"""Upper bound of each symbol, in symbols without a bound and those that precede it."""


def most(x: Dim, bounds: Bounds) -> Dim | None:
    """Upper bound of x in the unbounded symbols; None if there is none."""
    out: Dim | None = x
    for name in reversed(list(bounds)):
        if out is not None:
            out = _without(out, name, bounds[name])
    return out


def least(x: Dim, bounds: Bounds) -> Dim | None:
    """Lower bound of x in the unbounded symbols; None if there is none."""
    found = most(-x, bounds)
    return None if found is None else -found


def certainly_natural(x: Dim, bounds: Bounds) -> bool:
    """Whether x is provably non-negative for all values of its symbols."""
    found = least(x, bounds), least(_by_remainders(x), bounds)
    return any(size is not None and is_natural(size) for size in found)


def _by_remainders(x: Dim) -> Dim:
    """Rewrite b * (a floordiv b) to a - a mod b, for constants b."""
    if isinstance(x, int):
        return x
    total: Dim = 0
    for monomial, coefficient in x.terms:
        term: Dim = coefficient
        for atom, power in monomial:
            factor = of_atom(atom)
            for _ in range(power):
                whole = isinstance(atom, Quotient) and atom.op == "floordiv" and isinstance(atom.den, int)
                if whole and isinstance(term, int) and term % atom.den == 0:  # type: ignore[union-attr]
                    term = term // atom.den * (atom.num - atom.num % atom.den)  # type: ignore[union-attr]
                else:
                    term = term * factor
        total = total + term
    return total


def _without(x: Dim, name: str, bound: Dim) -> Dim | None:
    """Eliminate a symbol with 0 <= name <= bound from an upper bound of x, term by term."""
    if isinstance(x, int) or name not in symbols(x):
        return x
    total: Dim = 0
    for monomial, coefficient in x.terms:
        if not any(name in symbols(of_atom(a)) for a, _ in monomial):
            total = total + sizes.Size(((monomial, coefficient),)) if monomial else total + coefficient
            continue
        found = _greatest(monomial, name, bound) if coefficient > 0 else _smallest(monomial, name, bound)
        if found is None:
            return None
        total = total + coefficient * found
    return total


def _greatest(monomial: Monomial, name: str, bound: Dim) -> Dim | None:
    if (alone := _alone(monomial, name)) is not None:
        num = _without(alone.num, name, bound)
        return None if num is None else num // alone.den
    if not _is_product_of_naturals(monomial):
        return None
    out: Dim = 1
    for atom, power in monomial:
        found: Dim | None = bound if atom == name else of_atom(atom)
        if isinstance(atom, Quotient) and name in symbols(of_atom(atom)):
            found = _greatest_quotient(atom, name, bound)
        if found is None:
            return None
        for _ in range(power):
            out = out * found
    return out


def _smallest(monomial: Monomial, name: str, bound: Dim) -> Dim | None:
    if (alone := _alone(monomial, name)) is not None:
        num = _without(-alone.num, name, bound)
        return None if num is None else -num // alone.den
    return 0 if _is_product_of_naturals(monomial) else None


def _alone(monomial: Monomial, name: str) -> Quotient | None:
    """The quotient of a monomial that is a single floordiv, monotonic in its numerator; otherwise None."""
    (atom, power), *rest = monomial
    is_alone = isinstance(atom, Quotient) and atom.op == "floordiv" and power == 1 and not rest
    return atom if is_alone and name not in symbols(atom.den) else None  # type: ignore[union-attr, return-value]


def _is_product_of_naturals(monomial: Monomial) -> bool:
    return all(is_natural(of_atom(a)) for a, _ in monomial)


def _greatest_quotient(atom: Quotient, name: str, bound: Dim) -> Dim | None:
    """Upper bound of num floordiv den or num mod den, where den is at least 1."""
    if atom.op == "mod":
        den = _without(atom.den, name, bound)
        return None if den is None else den - 1
    num = _without(atom.num, name, bound)
    return num if num is None or name in symbols(atom.den) else num // atom.den


def magnitude(x: Dim, largest: Callable[[str], int], counts: Sequence[Dim] = ()) -> int:
    """Upper bound of abs(x), and of each of its terms, where no symbol exceeds `largest` of it.

    counts  numbers of elements of tensors, which are no more than MAX_ELEMENTS
    """
    if isinstance(x, int):
        return abs(x)
    total = 0
    for monomial, coefficient in x.terms:
        bound = 1
        for atom, power in monomial:
            bound *= _magnitude_of_atom(atom, largest, counts) ** power
        for count in counts:
            if isinstance(count, Size) and len(count.terms) == 1:
                (others, factor), = count.terms
                if set(monomial) <= set(others):
                    bound = min(bound, max(MAX_ELEMENTS // abs(factor), 1))
        total += abs(coefficient) * bound
    return total


def _magnitude_of_atom(atom: Atom, largest: Callable[[str], int], counts: Sequence[Dim]) -> int:
    if isinstance(atom, Quotient):                      # its operands are computed too, and one is added for rounding
        return max(magnitude(atom.num, largest, counts), magnitude(atom.den, largest, counts)) + 1
    assert isinstance(atom, str), "sizes are made of symbols"
    return largest(atom)
