"""Symbolic sizes: integer polynomials over named symbols, closed under floor division and modulo.

A size is a Python `int` or a `Size`. Arithmetic keeps a normal form, so two sizes are provably equal exactly when they
compare equal; otherwise a run-time guard has to decide. `Size` is also the affine expression of access maps
(ir/affine.py), over dimensions and index tiles as well as symbols.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar, Union, overload

from mlc.ir.diag import UserError
from mlc.ir.insertion import builder, caller_loc

Dim = Union[int, "Size"]

MAX_TERMS = 1024
MAX_POWER = 64
"""Largest exponent of an atom in a term."""
MAX_DEPTH = 64
"""Deepest nesting of quotients."""
MAX_LENGTH = 1 << 12
"""Most symbols in the text of a quotient, which repeated substitution can double with every operation."""


class Position:
    """An atom identified by a position instead of a name; interned, so that comparison is by identity."""

    __slots__ = ("position", "text")
    letter: ClassVar[str]
    made: ClassVar[dict[tuple[str, int], Position]] = {}
    position: int
    text: str

    def __new__(cls, position: int) -> Self:
        found = cls.made.get((cls.letter, position))
        if found is None:
            found = super().__new__(cls)
            found.position, found.text = position, f"{cls.letter}{position}"
            found = cls.made.setdefault((cls.letter, position), found)
        return found  # type: ignore[return-value]

    def __reduce__(self) -> tuple[type[Position], tuple[int]]:
        return type(self), (self.position,)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.position})"


class AffineDim(Position):
    """A dimension of an iteration domain, its coordinate in affine expressions: `d0`."""

    __slots__ = ()
    letter = "d"


class IndexTile(Position):
    """An operand of an access that has an index per point, as in a gather: `t0`."""

    __slots__ = ()
    letter = "t"


@dataclass(frozen=True, slots=True)
class Quotient:
    """An irreducible num floordiv den or num mod den: an atom of a polynomial."""

    op: str                                    # "floordiv" or "mod"
    num: Dim
    den: Dim
    depth: int = field(init=False, compare=False, repr=False)
    length: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        depth, length = 0, 2
        for monomial, _ in (*_terms(self.num), *_terms(self.den)):
            for atom, power in monomial:
                if isinstance(atom, Quotient):
                    depth = max(depth, atom.depth)
                    length += atom.length * power
                else:
                    length += power
        if depth >= MAX_DEPTH:
            raise _too_large(f"has more than {MAX_DEPTH} nested divisions")
        if length > MAX_LENGTH:
            raise _too_large(f"divides an expression of more than {MAX_LENGTH} symbols")
        object.__setattr__(self, "depth", depth + 1)
        object.__setattr__(self, "length", length)

    def __str__(self) -> str:
        return f"({_operand(self.num)} {self.op} {_operand(self.den)})"


Leaf = str | AffineDim | IndexTile
"""Leaves of an expression: named symbols, dimensions, index tiles."""
L = TypeVar("L", bound=Leaf)
Atom = Leaf | Quotient
Monomial = tuple[tuple[Atom, int], ...]        # ((atom, power), ...), sorted by text; () is the constant term


@lru_cache(1 << 14)
def _monomial_key(m: Monomial) -> tuple[int, str]:
    return (-sum(p for _, p in m), "*".join(str(a) for a, p in m for _ in range(p)))


class Size:
    """A non-constant polynomial, immutable and hashable; built with `sym` and arithmetic."""

    __slots__ = ("_hash", "terms")
    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __add__(self, other: Dim) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return _combine(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return _combine(self, other, -1)

    def __rsub__(self, other: int) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return _combine(other, self, -1)

    def __neg__(self) -> Dim:
        return _combine(0, self, -1)

    def __mul__(self, other: Dim) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        if not isinstance(other, Size):
            return Size(tuple([(m, c * other) for m, c in self.terms])) if other else 0
        if len(self.terms) * len(other.terms) > 16 * MAX_TERMS:      # refused before time and memory are spent
            raise _too_large(f"multiplies {len(self.terms)} by {len(other.terms)} terms")
        out: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in other.terms:
                powers: dict[Atom, int] = dict(m)
                for atom, power in n:
                    powers[atom] = power = powers.get(atom, 0) + power
                    if power > MAX_POWER:
                        raise _too_large(f"has a power of more than {MAX_POWER}")
                key = tuple(sorted(powers.items(), key=lambda kv: str(kv[0])))
                out[key] = out.get(key, 0) + c * d
        return _make(out)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return divide(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return divide(other, self)

    def __mod__(self, other: Dim) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return modulo(self, other)

    def __rmod__(self, other: int) -> Dim:
        if not isinstance(other, _DIM):
            return NotImplemented
        return modulo(other, self)

    def __lt__(self, other: Dim) -> bool:
        if not isinstance(other, _DIM):
            return NotImplemented
        return _less(self, other)

    def __gt__(self, other: Dim) -> bool:
        if not isinstance(other, _DIM):
            return NotImplemented
        return _less(other, self)

    def __le__(self, other: Dim) -> bool:
        if not isinstance(other, _DIM):
            return NotImplemented
        return not _less(other, self)

    def __ge__(self, other: Dim) -> bool:
        if not isinstance(other, _DIM):
            return NotImplemented
        return not _less(self, other)

    def __bool__(self) -> bool:
        return not is_equal(self, 0)

    def __index__(self) -> int:
        raise _unknown(f"the size {self}", self)

    __int__ = __index__

    def __float__(self) -> float:
        raise _unknown(f"the size {self}", self)

    def __str__(self) -> str:
        out = ""
        for m, c in self.terms:
            factors = [f"{a}" for a, p in m for _ in range(p)]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            out += (" - " if c < 0 else " + ") + "*".join(factors)
        return out[3:] if out.startswith(" + ") else "-" + out[3:]

    def __repr__(self) -> str:
        return f"Size({self})"


_DIM = (int, Size)
"""Operand types of size arithmetic; other types, such as tensors, may define the reflected operation."""


@lru_cache(1 << 14)
def sym(name: str) -> Size:
    """The symbol `name` as a size."""
    return Size(((((name, 1),), 1),))


@lru_cache(1 << 14)
def of_atom(atom: Atom) -> Size:
    """A single atom as a size."""
    return Size(((((atom, 1),), 1),))


def symbol_name(x: Dim) -> str | None:
    """The name of a size that is a single symbol."""
    return atom if isinstance(atom := _only_atom(x), str) else None


def _only_atom(x: Dim) -> Atom | None:
    """The symbol, position or quotient that a size is, if it is nothing else."""
    if isinstance(x, Size) and len(x.terms) == 1 and x.terms[0][1] == 1 and len(x.terms[0][0]) == 1:
        (atom, power), = x.terms[0][0]
        return atom if power == 1 else None
    return None


def _terms(x: Dim) -> tuple[tuple[Monomial, int], ...]:
    return x.terms if isinstance(x, Size) else (((), x),)


def _count(x: Dim) -> int:
    """Number of terms; zero has none."""
    return len(_terms(x)) if x != 0 else 0


def _make(terms: Mapping[Monomial, int]) -> Dim:
    kept = [m for m, c in terms.items() if c]
    if not kept:
        return 0
    if kept == [()]:
        return terms[()]
    if len(kept) > 1:
        if len(kept) > MAX_TERMS:
            raise _too_large(f"has {len(kept)} terms, more than {MAX_TERMS}")
        kept.sort(key=_monomial_key)
    return Size(tuple([(m, terms[m]) for m in kept]))


def _combine(a: Dim, b: Dim, sign: int) -> Dim:
    if b == 0:
        return a
    if isinstance(b, int) and isinstance(a, Size):           # the constant term is the last one
        *rest, (last, number) = a.terms
        if last != ():
            return Size((*a.terms, ((), sign * b)))
        number += sign * b
        return Size((*rest, ((), number))) if number else Size(tuple(rest))
    out = dict(_terms(a))
    for m, c in _terms(b):
        out[m] = out.get(m, 0) + sign * c
    return _make(out)


def _operand(x: Dim) -> str:
    text = str(x)
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def divide(a: Dim, b: Dim) -> Dim:
    """floor(a / b), for b > 0. Terms of `a` that are divisible by `b` are moved out of the quotient."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    whole, rest = _split(a, b)
    if rest == 0 or (isinstance(rest, int) and isinstance(b, int)):
        return whole + (rest // b if isinstance(b, int) else 0)
    inner = _only_atom(rest)
    if isinstance(inner, Quotient) and inner.op == "floordiv":
        return whole + divide(inner.num, inner.den * b)
    if isinstance(inner, Quotient) and _split(inner.den, b)[1] == 0:
        return whole + modulo(divide(inner.num, b), divide(inner.den, b))
    return whole + of_atom(Quotient("floordiv", rest, b))


def modulo(a: Dim, b: Dim) -> Dim:
    """a - b * floor(a / b), for b > 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    _, rest = _split(a, b)
    if rest == 0 or (isinstance(rest, int) and isinstance(b, int)):
        return rest % b if isinstance(b, int) else 0
    inner = _only_atom(rest)
    if isinstance(inner, Quotient) and inner.op == "mod" and _split(inner.den, b)[1] == 0:
        return modulo(inner.num, b)
    return of_atom(Quotient("mod", rest, b))


def _split(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """(q, r) with a == b * q + r, where q has every term that is divisible by the single term `b`."""
    b_terms = _terms(b)
    if len(b_terms) != 1:
        return (1, 0) if a == b else (0, a)
    (b_monomial, b_coefficient), = b_terms
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, c in _terms(a):
        powers = dict(m)
        for atom, power in b_monomial:
            powers[atom] = powers.get(atom, 0) - power
        if c % b_coefficient == 0 and all(p >= 0 for p in powers.values()):
            quotient[tuple((x, p) for x, p in powers.items() if p)] = c // b_coefficient
        else:
            rest[m] = c
    return _make(quotient), _make(rest)


def joined(x: Dim) -> Dim:
    """Simplify b * (a floordiv b) + a mod b to a, and b * ((a floordiv b) mod c) + a mod b to a mod (b * c)."""
    while (fewer := _joined_once(x)) is not None:
        x = fewer
    return x


def _joined_once(x: Dim) -> Dim | None:
    for monomial, coefficient in _terms(x):
        for atom, power in monomial:
            if not isinstance(atom, Quotient) or atom.op != "mod" or power != 1:
                continue
            factor = _make({tuple(f for f in monomial if f[0] is not atom): coefficient})
            rest = x - Size(((monomial, coefficient),))
            above = divide(atom.num, atom.den)
            sums = [(above, atom.num)] + [(of_atom(q), modulo(atom.num, atom.den * q.den)) for q in quotients(x)
                                          if q.op == "mod" and q.num == above]
            for whole, both in sums:
                gone = whole * atom.den * factor
                if _count(rest - gone) == _count(rest) - _count(gone):
                    return rest - gone + factor * both
    return None


def product(dims: Iterable[Dim]) -> Dim:
    return math.prod(dims)


def symbols(*xs: Dim) -> set[str]:
    """Names of the symbols in sizes."""
    return set[str]().union(*(leaves(x, str) for x in xs))


def differing(a: Sequence[Dim], b: Sequence[Dim], stretch: bool = False) -> set[str]:
    """Symbols of the last pair of sizes in which shapes differ; callers resolve one pair at a time.

    stretch  whether a size 1 of `a` broadcasts
    """
    return next((found for d, e in zip(reversed(a), reversed(b))
                 if d != e and not (stretch and d == 1) and (found := symbols(d, e))), set())


@overload
def leaves(x: Dim) -> set[Leaf]: ...


@overload
def leaves(x: Dim, kind: type[L]) -> set[L]: ...


def leaves(x: Dim, kind: Any = (str, Position)) -> set[Any]:
    """Symbols, dimensions and index tiles of `x`, or those of one class."""
    out: set[Any] = set()
    work: list[Dim] = [x]
    while work:
        for m, _ in _terms(work.pop()):
            for atom, _ in m:
                if isinstance(atom, Quotient):
                    work += [atom.num, atom.den]
                elif isinstance(atom, kind):
                    out.add(atom)
    return out


def quotients(x: Dim) -> Iterator[Quotient]:
    """Quotients in `x`, innermost first."""
    if isinstance(x, Size):
        for monomial, _ in x.terms:
            for atom, _ in monomial:
                if isinstance(atom, Quotient):
                    yield from quotients(atom.num)
                    yield from quotients(atom.den)
                    yield atom


def substitute(x: Dim, env: Mapping[Any, Dim] | Callable[[Leaf], Dim]) -> Dim:
    """Substitute symbols, dimensions and index tiles, or quotients; those missing from the mapping are unchanged."""
    if isinstance(x, int):
        return x
    out: dict[Monomial, int] = {}
    for m, c in x.terms:
        term: Dim = c
        for atom, power in m:
            if not callable(env) and atom in env:
                value = env[atom]
            elif isinstance(atom, Quotient):
                num, den = substitute(atom.num, env), substitute(atom.den, env)
                value = divide(num, den) if atom.op == "floordiv" else modulo(num, den)
            else:
                value = env(atom) if callable(env) else of_atom(atom)
            for _ in range(power):
                term = term * value
        for n, d in _terms(term):
            out[n] = out.get(n, 0) + d
    return _make(out)


def evaluate(x: Dim, env: Mapping[Any, int]) -> int:
    """Evaluate `x`; raises KeyError for a symbol without a value."""
    return sum(math.prod((_value(atom, env) ** power for atom, power in m), start=c) for m, c in _terms(x))


def _value(atom: Any, env: Mapping[Any, int]) -> int:
    if not isinstance(atom, Quotient):
        return env[atom]
    num, den = evaluate(atom.num, env), evaluate(atom.den, env)
    return num // den if atom.op == "floordiv" else num % den


def is_natural(x: Dim) -> bool:
    """Whether `x` is provably non-negative for all non-negative values of its symbols."""
    return all(c >= 0 and all(not isinstance(a, Quotient) or a.op == "mod" or (is_natural(a.num) and is_natural(a.den))
                              for a, _ in m) for m, c in _terms(x))


def is_equal(a: Dim, b: Dim) -> bool:
    """Whether a == b for all values of the symbols; raises UserError if it depends on them."""
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    if is_natural(difference - 1) or is_natural(-difference - 1):
        return False
    raise _unknown(f"whether {a} == {b}", difference)


def _too_large(what: str) -> UserError:
    return UserError(f"a size {what}", code="MLC0450", loc=builder.loc or caller_loc(),
                     hint="make some of the sizes that it depends on static")


def _unknown(what: str, size: Dim) -> UserError:
    return UserError(f"{what} is known only when the compiled function runs", code="MLC0408", loc=caller_loc(),
                     hint="give the sizes as numbers (dynamic=False), or compute with them as tensors",
                     symbols=symbols(size))


def _less(a: Dim, b: Dim) -> bool:
    """Whether a < b for all values of the symbols; raises UserError if it depends on them."""
    difference = b - a
    if isinstance(difference, int):
        return difference > 0
    if is_natural(difference - 1):
        return True
    if is_natural(-difference):
        return False
    raise _unknown(f"whether {a} < {b}", difference)
