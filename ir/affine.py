"""Affine maps, and folds over affine expressions.

An affine expression is an `int` or a polynomial of `ir/sizes.py` over dimensions (`AffineDim`), index tiles
(`IndexTile`) and named symbols, with floor division and modulo. It is kept in a normal form, so equal expressions
compare equal. Unlike upstream, a product of dimensions is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Generic, TypeVar

from mlc.ir.diag import IRError
from mlc.ir.sizes import AffineDim, Dim, IndexTile, Leaf, Monomial, Quotient, Size, leaves, of_atom, substitute

AffineExpr = Dim
T = TypeVar("T")


def dim(position: int) -> Size:
    """The coordinate of a dimension, as an expression."""
    return of_atom(AffineDim(position))


def tile(position: int) -> Size:
    """The element of an index tile, as an expression."""
    return of_atom(IndexTile(position))


def dims_of(*exprs: AffineExpr) -> set[int]:
    """The dimensions that expressions depend on."""
    return {d.position for e in exprs for d in leaves(e, AffineDim)}


def tiles_of(*exprs: AffineExpr) -> set[int]:
    """The index tiles that expressions depend on."""
    return {t.position for e in exprs for t in leaves(e, IndexTile)}


def is_multiple_of(expr: AffineExpr, n: int) -> bool:
    """Whether every term of an expression is a multiple of `n`, for all values of its dimensions and symbols.

    >>> is_multiple_of(8 * dim(0) + 4, 4), is_multiple_of(dim(0), 4)
    (True, False)
    """
    return expr % n == 0 if isinstance(expr, int) else all(c % n == 0 for _, c in expr.terms)


def step_along(expr: AffineExpr, position: int, run: int = 1) -> AffineExpr | None:
    """The increment of `expr` per step along a dimension, or None if it depends on the dimension.

    Steps are those within runs of `run` coordinates, the first of which is a multiple of that: a quotient by a multiple
    of it is then the same for all of them.

    >>> step_along(3 * dim(0) + dim(1), 0), step_along(dim(0) % 2, 0), step_along(dim(0) % 16 + dim(0) // 16, 0, run=8)
    (3, None, 1)
    """
    if position not in dims_of(expr):
        return 0
    if run > 1:
        expr = _within_run(expr, position, run)
    step = substitute(expr, {AffineDim(position): dim(position) + 1}) - expr
    return None if position in dims_of(step) else step


def _within_run(expr: AffineExpr, position: int, run: int) -> AffineExpr:
    """An expression with the same steps within runs, without the quotients that these do not depend on."""
    out: AffineExpr = 0
    for monomial, coefficient in () if isinstance(expr, int) else expr.terms:
        term: AffineExpr = coefficient
        for atom, power in monomial:
            factor: AffineExpr = of_atom(atom)
            others = [of_atom(other) for other, _ in monomial if other is not atom]
            if isinstance(atom, Quotient) and position in dims_of(atom.num) and power == 1 and (
                    position not in dims_of(*others)):
                rest = atom.num - dim(position)
                if (isinstance(atom.den, int) and atom.den % run == 0 and position not in dims_of(rest)
                        and is_multiple_of(rest, run)):
                    factor = 0 if atom.op == "floordiv" else dim(position)
                elif position not in dims_of(_within_run(atom.num, position, run), atom.den):
                    factor = 0
            for _ in range(power):
                term = term * factor
        out = out + term
    return expr if isinstance(expr, int) else out


# -- recursion over expressions ---------------------------------------------------------------------------------------
class Algebra(Generic[T]):
    """Interpretation of affine expressions by `fold`: as numbers, as bounds, or as operations that compute them.

    `sum` and `product` take iterators, so that an algebra that emits operations determines their order: it can combine
    parts as soon as two are available, or after evaluating all of them.
    """

    def constant(self, value: int) -> T:
        raise NotImplementedError

    def leaf(self, leaf: Leaf) -> T:
        """Interpret a symbol, a dimension or an index tile."""
        raise NotImplementedError

    def quotient(self, quotient: Quotient, num: T, den: T) -> T:
        """Interpret `num floordiv den` or `num mod den`, depending on `quotient.op`."""
        raise NotImplementedError

    def add(self, a: T, b: T) -> T:
        raise NotImplementedError

    def multiply(self, a: T, b: T) -> T:
        raise NotImplementedError

    def expression(self, expr: AffineExpr) -> T:
        """Interpret an expression, or an operand of a quotient; override it to memoize."""
        return fold(expr, self)

    def sum(self, terms: Iterator[T]) -> T:
        return reduce(self.add, terms)

    def product(self, coefficient: int, factors: Iterator[T]) -> T:
        """Interpret a term: its factors, then its coefficient unless that is 1."""
        out: T | None = None
        for factor in factors:
            out = factor if out is None else self.multiply(out, factor)
        if out is None:
            return self.constant(coefficient)
        return out if coefficient == 1 else self.multiply(out, self.constant(coefficient))


def fold(expr: AffineExpr, algebra: Algebra[T]) -> T:
    """Interpret an expression in an algebra.

    A power of an atom interprets the atom once.
    """
    if isinstance(expr, int):
        return algebra.constant(expr)
    return algebra.sum(algebra.product(c, _factors(m, algebra)) for m, c in expr.terms)


def _factors(monomial: Monomial, algebra: Algebra[T]) -> Iterator[T]:
    for atom, power in monomial:
        if isinstance(atom, Quotient):
            value = algebra.quotient(atom, algebra.expression(atom.num), algebra.expression(atom.den))
        else:
            value = algebra.leaf(atom)
        for _ in range(power):
            yield value


class Numbers(Algebra[Any]):
    """Evaluates expressions to numbers or numpy arrays; `of` is the value of a leaf.

    >>> fold(2 * dim(0) + 1, Numbers({AffineDim(0): 3}.__getitem__))
    7
    """

    def __init__(self, of: Callable[[Leaf], Any]) -> None:
        self.of = of

    def leaf(self, leaf: Leaf) -> Any:
        return self.of(leaf)

    def constant(self, value: int) -> int:
        return value

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def multiply(self, a: Any, b: Any) -> Any:
        return a * b

    def quotient(self, quotient: Quotient, num: Any, den: Any) -> Any:
        return num // den if quotient.op == "floordiv" else num % den


def _plain(expr: AffineExpr) -> str:
    """The text of a result, without the parentheses around a single quotient."""
    if isinstance(expr, Size) and len(expr.terms) == 1:
        (monomial, coefficient), = expr.terms
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0][0], Quotient) and monomial[0][1] == 1:
            return str(expr)[1:-1]
    return str(expr)


# -- maps -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class AffineMap:
    """`affine_map<(d0, d1, t0)[B] -> (t0, d1 + B)>`: expressions over the dimensions of an iteration domain.

    dims     number of dimensions
    tiles    number of index tiles, which follow the dimensions in the text
    symbols  size symbols that results may use: those of a kernel, bound by name and not by position
    results  the expressions

    Raises IRError if a result depends on anything else. `AffineMap.get` collects the symbols.
    """

    dims: int
    tiles: int
    symbols: tuple[str, ...]
    results: tuple[AffineExpr, ...]
    leaves: frozenset[Leaf] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        used = frozenset[Leaf]().union(*[leaves(e) for e in self.results])
        object.__setattr__(self, "leaves", used)
        for leaf in used:
            if not (leaf in self.symbols if isinstance(leaf, str) else
                    0 <= leaf.position < (self.dims if isinstance(leaf, AffineDim) else self.tiles)):
                raise IRError(f"{leaf} is not a dimension, index tile or symbol of {self}", code="MLC0155")

    @staticmethod
    def get(dims: int, results: Iterable[AffineExpr], tiles: int = 0) -> AffineMap:
        """The map to `results`, with the symbols that they use.

        >>> str(AffineMap.get(2, (dim(1), 4 * dim(0))))
        'affine_map<(d0, d1) -> (d1, 4*d0)>'
        """
        results = tuple(results)
        return AffineMap(dims, tiles, tuple(sorted({n for e in results for n in leaves(e, str)})), results)

    @staticmethod
    def identity(dims: int) -> AffineMap:
        return AffineMap(dims, 0, (), tuple(map(dim, range(dims))))

    def __str__(self) -> str:
        taken = ", ".join(map(str, (*map(AffineDim, range(self.dims)), *map(IndexTile, range(self.tiles)))))
        symbols = f"[{', '.join(self.symbols)}]" if self.symbols else ""
        return f"affine_map<({taken}){symbols} -> ({', '.join(map(_plain, self.results))})>"

    @property
    def result(self) -> AffineExpr:
        """The only result."""
        expr, = self.results
        return expr

    @property
    def used_dims(self) -> frozenset[int]:
        """The dimensions that results depend on."""
        return frozenset(leaf.position for leaf in self.leaves if isinstance(leaf, AffineDim))

    @property
    def is_identity(self) -> bool:
        """Whether the results are the dimensions in order."""
        return self.results == tuple(map(dim, range(self.dims)))

    def substitute(self, env: Mapping[str, AffineExpr]) -> AffineMap:
        """The map with symbols replaced."""
        return AffineMap.get(self.dims, [substitute(e, env) for e in self.results], self.tiles)

    def replace_dims(self, replacements: Mapping[int, AffineExpr], dims: int | None = None) -> AffineMap:
        """The map with dimensions replaced; `dims` is its new number of dimensions, by default the old one.

        >>> str(AffineMap.identity(2).replace_dims({1: dim(0)}, dims=1))
        'affine_map<(d0) -> (d0, d0)>'
        """
        env: dict[Leaf, AffineExpr] = {AffineDim(d): e for d, e in replacements.items()}
        return AffineMap.get(self.dims if dims is None else dims, [substitute(e, env) for e in self.results],
                             self.tiles)

    def compose(self, other: AffineMap) -> AffineMap:
        """x -> self(other(x)): the results of `other` are the dimensions of this map. Its index tiles come first.

        >>> transposed = AffineMap.get(2, (dim(1), dim(0)))
        >>> transposed.compose(transposed).is_identity
        True
        """
        if len(other.results) != self.dims:
            raise IRError(f"{self} takes {self.dims} dimensions, not the {len(other.results)} results of {other}",
                          code="MLC0155")
        env: dict[Leaf, AffineExpr] = {AffineDim(d): e for d, e in enumerate(other.results)}
        env |= {IndexTile(t): tile(other.tiles + t) for t in range(self.tiles)}
        return AffineMap.get(other.dims, [substitute(e, env) for e in self.results], other.tiles + self.tiles)

    def drop_result(self, position: int) -> AffineMap:
        """The map without one of its results."""
        return AffineMap.get(self.dims, self.results[:position] + self.results[position + 1:], self.tiles)

    def evaluate(self, dims: Sequence[Any], tiles: Sequence[Any] = (), symbols: Mapping[str, int] | None = None
                 ) -> tuple[Any, ...]:
        """Evaluate the results; coordinates and elements of index tiles are numbers or numpy arrays.

        >>> AffineMap.get(2, (dim(1), 4 * dim(0))).evaluate((2, 3))
        (3, 8)
        """
        numbers = Numbers(lambda leaf: (symbols or {})[leaf] if isinstance(leaf, str) else
                          (dims if isinstance(leaf, AffineDim) else tiles)[leaf.position])
        return tuple(fold(e, numbers) for e in self.results)
