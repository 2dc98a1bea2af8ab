"""Einstein's convention."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.contract.products import check_inner_sizes, dot_general
from mlc.frontend.methods import listed
from mlc.frontend.operands import broadcast_to, factors, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, Operand, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Size


@coded
def einsum(equation: str, *operands: Operand) -> Tensor:
    """Products of elements, summed over every letter that the result does not have (Einstein's convention).

    Each letter names a dimension; one that an operand repeats takes its diagonal, and "..." stands for dimensions that
    broadcast. Without "->" the result has the letters that occur once, in alphabetical order. A size of 1 stands for
    any size. Operands are contracted in pairs, the cheapest first. What only exchanges dimensions of one operand, or
    takes diagonals, is a view of it.

    Args:
        equation: The letters of each operand, separated by commas, and of the result: "bij,bjk->bik".
        operands: Tensors, as separate arguments or as one list.

    Returns:
        Tensor of the dimensions that the equation names, in the promoted dtype.

    Raises:
        UserError: the equation does not fit the operands (MLC0368), sizes of a letter differ (MLC0367), there is no
            operand (MLC0421), they have different float dtypes (MLC0420), or bools are multiplied (MLC0113).

    Example:
        >>> mlc.einsum("ij,jk->ik", mlc.tensor([[1.0, 2.0]]), mlc.tensor([[3.0], [4.0]]))
        tensor([[11.]], dtype=mlc.float32)
        >>> mlc.einsum("ii->i", mlc.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 4.], dtype=mlc.float32)
    """
    xs = listed(operands)
    if len(xs) == 1 and isinstance(xs[0], Tensor) and isinstance(equation, str):
        inputs, output = _parse(equation, [xs[0].ndim])
        if set(inputs[0]) == set(output):
            return _rearranged(xs[0], inputs[0], output)
    return _einsum(equation, *operands)


@operation(name="einsum", autocast="lower_precision")
def _einsum(equation: str, *operands: Operand) -> Tensor:
    if not operands or not isinstance(equation, str):
        raise UserTypeError(f"the equation is {equation!r}, for {len(operands)} operands"[:200], code="MLC0421",
                            hint='as in mlc.einsum("ij,jk->ik", a, b)')
    xs = factors(*listed(operands))
    inputs, output = _parse(equation, [x.ndim for x in xs])
    parts = [_diagonals(x, letters) for x, letters in zip(xs, inputs)]
    while len(parts) > 1:
        i, j = _cheapest(parts)
        (x, letters), (y, others) = parts[i], parts[j]
        parts = [p for k, p in enumerate(parts) if k not in (i, j)]
        needed = set(output).union(*(p[1] for p in parts))
        parts.append(_pair(x, letters, y, others, needed))
    x, letters = parts[0]
    gone = tuple(i for i, c in enumerate(letters) if c not in output)
    if gone:
        x, letters = tracer(R.sum(x, gone)), [c for c in letters if c in output]
    return _rearranged(x, letters, output)


OPERATIONS["einsum"] = einsum


def _cheapest(parts: Sequence[tuple[Tracer, list[str]]]) -> tuple[int, int]:
    """The two operands whose product takes the fewest multiplications; a symbolic size counts as a large one."""
    def work(pair: tuple[int, int]) -> int:
        found = {c: d for k in pair for c, d in zip(parts[k][1], parts[k][0].shape)}
        return math.prod(d if isinstance(d, int) else _MANY for d in found.values())
    return min(itertools.combinations(range(len(parts)), 2), key=work)


_MANY = 1024


def _parse(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand and of the result; an ellipsis is expanded to letters of its own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise UserError(f"{equation!r} is about {len(terms)} operands, got {len(ranks)}", code="MLC0368")
    spread = max([rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks) if "..." in t], default=0)
    dots = [f"#{i}" for i in range(spread)]

    def letters(term: str, rank: int | None) -> list[str]:
        head, ellipsis, tail = term.partition("...")
        if not (head + tail).isalpha() and head + tail:
            raise UserError(f"{equation!r}: {term!r} has more than letters and '...'", code="MLC0368")
        count = spread if rank is None else rank - len(head + tail)
        if count < 0 or (not ellipsis and rank is not None and count):
            raise UserError(f"{equation!r}: {term!r} does not fit {rank} dimensions", code="MLC0368")
        return [*head, *(dots[spread - count:] if ellipsis else ()), *tail]

    inputs = [letters(t, rank) for t, rank in zip(terms, ranks)]
    every = [c for term in inputs for c in term]
    once = sorted(c for c in set(every) if every.count(c) == 1 and not c.startswith("#"))
    output = letters(right, None) if arrow else dots + once
    if len(set(output)) != len(output) or not set(output) <= set(every):
        raise UserError(f"{equation!r}: the result names a letter twice, or one that no operand has", code="MLC0368")
    return inputs, output


def _diagonals(x: Any, letters: list[str]) -> tuple[Any, list[str]]:
    """Make the letters of x unique: a repeated letter takes the diagonal."""
    from mlc.frontend.functions.index import diagonal
    from mlc.frontend.functions.shape import coordinates
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            check_inner_sizes(x.shape[i], x.shape[j])
            if isinstance(x.shape[i], Size):               # the length of a view has to be known
                x = tracer(R.sum(E.where(coordinates(x, i) == coordinates(x, j), x, 0), j, dtype=x.dtype))
                letters = letters[:j] + letters[j + 1:]
            else:
                x = diagonal(x, 0, i, j)                   # whose dimension comes last
                letters = [*letters[:i], *letters[i + 1:j], *letters[j + 1:], c]
    return x, letters


def _rearranged(x: Tensor, letters: list[str], output: list[str]) -> Tensor:
    """The view of one operand with the dimensions of the result."""
    from mlc.frontend.functions.shape import permute
    y, found = _diagonals(x, letters)
    return permute(y, [found.index(c) for c in output])


def _pair(a: Tracer, left: list[str], b: Tracer, right: list[str], needed: set[str]) -> tuple[Tracer, list[str]]:
    """The product of two operands, summed over the letters that do not occur later."""
    a, left = _sum_own(a, left, right, needed)
    b, right = _sum_own(b, right, left, needed)
    shared = [c for c in left if c in right]
    stretched = [c for c in shared if a.shape[left.index(c)] != b.shape[right.index(c)]]
    for c in stretched:                                     # a size of 1 stands for any
        m, n = a.shape[left.index(c)], b.shape[right.index(c)]
        if m != 1 and n != 1:
            raise UserError(f"sizes of {c!r} differ: {m} and {n}", code="MLC0367", symbols=sizes.symbols(m, n))
        a = broadcast_to(a, [n if k == c and m == 1 else d for k, d in zip(left, a.shape)])
        b = broadcast_to(b, [m if k == c and n == 1 else d for k, d in zip(right, b.shape)])
    batch = [c for c in shared if c in needed]
    summed = [c for c in shared if c not in needed]
    out = dot_general(a, b, tuple((left.index(c), right.index(c)) for c in batch),
                      tuple((left.index(c), right.index(c)) for c in summed))
    return out, batch + [c for c in left if c not in shared] + [c for c in right if c not in shared]


def _sum_own(x: Tracer, letters: list[str], other: list[str], needed: set[str]) -> tuple[Tracer, list[str]]:
    gone = tuple(i for i, c in enumerate(letters) if c not in other and c not in needed)
    return (tracer(R.sum(x, gone, dtype=x.dtype)), [c for i, c in enumerate(letters) if i not in gone]) if gone else (
        x, letters)
