"""differentiate, activity: differentiation requests, the functions generated for them, and active values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import has_cotangent
from mlc.dialects.func import Func
from mlc.ir.core import Block, Op, Symbol, Value

PASS_NAME = "grad"
"""Name of the pass in the locations of derivative operations."""


@dataclass(frozen=True)
class VjpRequest:
    """A request for cotangents of arguments `wrt` of a function, given those of its results `of`; both ascending."""

    callee: Symbol
    wrt: tuple[int, ...]
    of: tuple[int, ...]


@dataclass(frozen=True)
class VjpFunctions:
    """The forward and the backward function of a request.

    saved  positions, in (primals, results of forward), of the values that backward takes after the cotangents
    """

    request: VjpRequest
    forward: Func
    backward: Func
    saved: tuple[int, ...]

    def call_backward(self, primals: Sequence[Value], results: Sequence[Value],
                      cotangents: Sequence[Value]) -> Sequence[Value]:
        """The cotangents of the primals `wrt`, given those of the results `of`, at the insertion point."""
        values = (*primals, *results)
        return func.call(self.backward, (*cotangents, *(values[i] for i in self.saved)))


class Activity:
    """Activity analysis of operations of a block: the values that depend on those `wrt` and lead to those `of`."""

    def __init__(self, ops: Sequence[Op], wrt: Iterable[Value], of: Iterable[Value]) -> None:
        self.active: set[Value] = set(wrt)
        for op in ops:
            if not op.blocks_gradient and any(v in self.active for v in reads(op)):
                self.active.update(r for r in op.results if has_cotangent(r.type))
        self.useful: set[Value] = set(of)
        for op in reversed(ops):
            if any(r in self.useful for r in op.results):
                self.useful.update(reads(op))

    @staticmethod
    def of_function(function: Func, request: VjpRequest) -> Activity:
        """The values of a function that depend on its arguments `wrt` and lead to its results `of`."""
        block = function.block
        returned = block.terminator.operands
        return Activity([*block], [block.args[i] for i in request.wrt], [returned[j] for j in request.of])

    def concerns(self, op: Op) -> bool:
        """Whether a cotangent may propagate from a result of `op` to an operand."""
        return any(r in self.active and r in self.useful for r in op.results)

    def request(self, call: func.Call) -> VjpRequest | None:
        """The request for the callee of a call in this function; None if no cotangent passes through the call."""
        wrt = tuple(i for i, v in enumerate(call.operands) if v in self.active and has_cotangent(v.type))
        of = tuple(j for j, r in enumerate(call.results) if r in self.useful and has_cotangent(r.type))
        return VjpRequest(call.callee, wrt, of) if wrt and of else None

    def replaced(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        """Record that the values `new` replace `old`."""
        for a, b in zip(old, new):
            for values in (self.active, self.useful):
                if a in values:
                    values.add(b)


def reads(op: Op) -> Iterator[Value]:
    """The operands of an operation and of all operations nested in it."""
    yield from op.operands
    if op.regions:
        for inner in op.walk():
            if inner is not op:
                yield from inner.operands


def backwards(block: Block) -> Iterator[Op]:
    """The operations of a block in reverse order; an operation may be erased once it has been yielded."""
    op = block.last
    while op is not None:
        previous = op.prev
        yield op
        op = previous
