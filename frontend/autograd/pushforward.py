"""`Pushforward`: the Jacobian-vector product of an eager operation, as an operation in turn.

It is compiled once per pattern of operands as every eager operation is, and recorded where a gradient of the tangents
is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlc.frontend import eager, tree
from mlc.frontend.autograd.template import Template, placed
from mlc.frontend.eager import Call
from mlc.frontend.forward import jvp
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.tensor import Operand, Tensor

PUSHFORWARD = "_forward"
"""Follows the name of an operation in that of its Jacobian-vector product."""
_of_patterns: dict[Any, Pushforward] = {}
_of_calls: dict[Any, Pushforward] = {}


class Pushforward(Operation):
    """The Jacobian-vector product of an operation for one pattern of arguments.

    wrt      the positions of the operands that have a tangent
    numbers  the leaves of the result that get one
    """

    def __init__(self, of: Template, wrt: tuple[int, ...], numbers: tuple[int, ...]) -> None:
        super().__init__(self.push, (), {}, of.op.name + PUSHFORWARD)
        self.of, self.wrt, self.numbers = of, wrt, numbers

    def static_operands(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
        of = self.of
        return of.op.static_operands(*placed(of.op, of.args, of.keywords, iter(args[1])))

    def push(self, tangents: Sequence[Operand], operands: Sequence[Operand]) -> tuple[Tensor, ...]:
        """The tangents of the results `numbers`."""
        of = self.of

        def forward(*given: Tensor) -> tuple[Tensor, ...]:
            leaves = tree.leaves(of.op.record(*placed(of.op, of.args, of.keywords, iter(given))))
            return tuple(leaves[i] for i in self.numbers)

        moving: list[Any] = [None] * len(operands)
        for i, tangent in zip(self.wrt, tangents):
            moving[i] = tangent
        found: tuple[Tensor, ...] = jvp(forward, tuple(operands), tuple(moving))[1]
        return found


def pushforward_of(call: Call, tangents: Sequence[Tensor | None], numbers: tuple[int, ...]) -> Call:
    """The call that gives the tangents of the results `numbers` of a call from those of its operands."""
    wrt = tuple(i for i, t in enumerate(tangents) if t is not None)
    key = call.key, wrt, numbers
    found = _of_calls.get(key)
    if found is None:
        if len(_of_calls) >= eager.MAX_SHAPES:
            _of_calls.clear()
        of = Template.of(call)
        pattern = of.pattern, wrt, numbers
        found = _of_patterns.get(pattern)
        if found is None:
            found = _of_patterns[pattern] = Pushforward(of, wrt, numbers)
        _of_calls[key] = found
    return Call(found, ([tangents[i] for i in wrt], list(call.given)), {})
