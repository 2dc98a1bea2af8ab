"""Constraints on the sizes of a call beyond those of argument types: an analysis for constrain_sizes and bufferize.

Symbolic sizes are polynomials. Whether `x[:10]` is within N elements, `N - 3` is non-negative or a divisor is positive
depends on the call, so the caller of compiled code checks it; compiled code does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mlc.dialects import arith, func, scf, tensor
from mlc.dialects.autodiff import Derivative, Vmap
from mlc.dialects.tensor.base import TensorOp
from mlc.dialects.tensor.control import BindSize, Extent, bounds_in
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir import sizes
from mlc.ir.bounds import LARGEST, MAX_ELEMENTS, certainly_natural, magnitude, most
from mlc.ir.core import Op
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import TensorType, Type, bind_symbols

SizeConstraints = Mapping[Dim, tuple[str, Loc]]
"""Sizes that must be non-negative, each with its message and the location of the operation that requires it."""

DATA_DEPENDENT = 1 << 14

CALLS = (func.Call, Derivative, Vmap)
"""Operations that call a function on arguments of known sizes."""


def size_constraints(function: Op, callees: Mapping[str, tuple[Sequence[Type], SizeConstraints]] = MappingProxyType({})
                    ) -> dict[Dim, tuple[str, Loc]]:
    """The constraints of a function; `callees` gives the argument types and the constraints of those that it calls."""
    out: dict[Dim, tuple[str, Loc]] = {}
    bounds = bounds_in(function)
    representable = _Representable(function)

    def need(op: Op, size: Dim, message: str, loc: Loc) -> None:
        if isinstance(size, Size) and not certainly_natural(size, bounds) and not _where_it_runs(op, size):
            if magnitude(size, lambda _: 1) > 2 * LARGEST:                 # further from 0 than any sizes of a call
                raise UserError(message, code="MLC0328", loc=loc)
            out.setdefault(size, (message, loc))

    bound = set[str]()                                     # sizes that depend on data
    for op in function.walk():
        if isinstance(op, BindSize):
            bound.add(str(op.size))
        if isinstance(op, CALLS) and op.callee in callees:
            for size, message, loc in _of_call(op, *callees[op.callee]):
                need(op, size, message, loc)
        for size, message in (*_of(op), *representable.constraints(op)):
            need(op, size, message, op.loc)
    of_call = [size for size in out if sizes.symbols(size).isdisjoint(bound)]
    for size in [size for size in out if not sizes.symbols(size).isdisjoint(bound)]:
        if any(certainly_natural(size - known, bounds) for known in of_call):
            del out[size]                                  # it is at least as large as one that each call checks
    return out


def _where_it_runs(op: Op, size: Dim) -> bool:
    """Whether a size is non-negative wherever `op` runs, as N - 1 in a loop over N."""
    around = op.parent_op
    while around is not None:
        if isinstance(around, scf.For) and isinstance(around.upper.op, Extent):
            lower = arith.constant_value(around.lower)
            if lower is not None and sizes.is_natural(size - (around.upper.op.value - int(lower) - 1)):
                return True
        around = around.parent_op
    return False


def _of_call(call: Op, inputs: Sequence[Type], constraints: SizeConstraints) -> Iterator[tuple[Dim, str, Loc]]:
    """Constraints of a callee, in terms of the sizes at one call."""
    env = bind_symbols(inputs, _argument_types(call, len(inputs)))
    for size, (message, loc) in constraints.items():
        here = sizes.substitute(size, env)
        values = ", ".join(f"{n} = {env[n]}" for n in sorted(sizes.symbols(size)) if str(env[n]) != n)
        message = f"{message} ({values} in this call)" if values else message
        if isinstance(here, int) and here < 0:
            raise UserError(f"@{call.attrs['callee']} cannot be called with these sizes: {loc}: {message}",
                            code="MLC0328", loc=call.loc)
        if isinstance(here, Size) and not sizes.is_natural(here):
            yield here, message, loc


def _argument_types(call: Op, count: int) -> list[Type]:
    """Argument types of a callee at a call: of `vmap`, those of one batch element."""
    types = [v.type for v in call.operands][:count]                # cotangents and tangents come after the primals
    if not isinstance(call, Vmap):
        return types
    return [t.with_shape(t.shape[1:]) if i in call.batched and isinstance(t, TensorType) else t
            for i, t in enumerate(types)]


def _of(op: Op) -> Iterator[tuple[Dim, str]]:
    """Constraints of one operation, in an order in which they can be evaluated."""
    for size in op_sizes(op):
        for atom in sizes.quotients(size):
            yield atom.den - 1, f"{op.name}: the size {size} divides by {atom.den}, which is not positive"
    if isinstance(op, tensor.ConstrainSize):
        yield op.size, op.message
    if isinstance(op, TensorOp):
        yield from ((size, f"{op.name}: {message}") for size, message in op.size_constraints())
    for type in [] if isinstance(op, Kernel) else tensor_types(op):          # its results are those of its body
        yield from ((d, f"{op.name}: the size {d} is negative") for d in type.shape)


class _Representable:
    """The constraints that keep what compiled code computes of sizes within 64 bits, as `d * 2**40` may not be.

    Few sizes need one: an argument is in memory, so a product of some of its sizes is small.
    """

    def __init__(self, function: Op) -> None:
        self.dependent = {str(op.size) for op in function.inside(tensor.BindSize)}
        self.bounds = bounds_in(function)
        self.counts = [a.type.size for region in function.regions for block in region.blocks for a in block.args
                       if isinstance(a.type, TensorType)]
        self.seen: set[Size] = set()

    def largest(self, name: str) -> int:
        """The largest value that is assumed of a symbol. A data-dependent one is not checked before it is computed
        with, so it is refused only where a small number of elements would do."""
        return DATA_DEPENDENT if name in self.dependent else MAX_ELEMENTS

    def magnitude(self, size: Size) -> int:
        """Upper bound of the absolute value of a size and its terms, also by the bounds of data-dependent sizes."""
        total = 0
        for monomial, coefficient in size.terms:
            term = Size(((monomial, abs(coefficient)),)) if monomial else abs(coefficient)
            found = magnitude(term, self.largest, self.counts)
            if not sizes.symbols(term).isdisjoint(self.bounds) and sizes.is_natural(term):
                largest = most(term, self.bounds)
                found = found if largest is None else min(found, magnitude(largest, self.largest, self.counts))
            total += found
        return total

    def constraints(self, op: Op) -> Iterator[tuple[Dim, str]]:
        for size in op_sizes(op):
            if size in self.seen or isinstance(op, tensor.ConstrainSize):
                continue
            self.seen.add(size)
            if self.magnitude(size) <= LARGEST:
                continue
            message = f"{op.name}: the size {size} is beyond 64 bits"
            if magnitude(size, lambda _: 1) > LARGEST:
                raise UserError(message, code="MLC0328", loc=op.loc)
            yield LARGEST - size, message
            yield LARGEST + size, message


def op_sizes(op: Op) -> Iterator[Size]:
    """Every size with symbols in an operation's attributes and result types."""
    work: list[Any] = [*op.attrs.values(), *(d for type in tensor_types(op) for d in type.shape)]
    while work:
        item = work.pop()
        if isinstance(item, Size):
            yield item
        elif isinstance(item, tuple):
            work += item


def tensor_types(op: Op) -> list[TensorType]:
    return [v.type for v in op.results if isinstance(v.type, TensorType)]
