"""Eager operations that are recorded for `Tensor.backward`.

The vector-Jacobian product of an operation is an operation in turn: compiled once per pattern of operands as every
eager operation is, and recorded itself where its own gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from mlc.frontend import eager, tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node
from mlc.frontend.derivatives import vjp
from mlc.frontend.eager import Call, with_operands, without_shapes
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.tensor import Operand, Tensor

NOT_DIFFERENTIATED = frozenset({"detach"})
"""Operations whose results never require a gradient."""
_pullbacks: dict[Any, Pullback] = {}


def run(op: Operation, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run an operation eagerly, and record it if an operand requires a gradient."""
    call = Call(op, args, keywords)
    result = eager.run(call)
    if call.requires_grad and mode.enabled and op.name not in NOT_DIFFERENTIATED:
        _record(call, result)
    return result


def _record(call: Call, result: Any) -> None:
    """Make a node of a call, unless it computes nothing that has a gradient."""
    leaves = [result] if type(result) is Tensor else tree.leaves(result)
    numbers = tuple(i for i, x in enumerate(leaves) if type(x) is Tensor and x.dtype.is_floating_point
                    and not any(x is given for given in call.given))
    if numbers:
        OperationNode(call, [leaves[i] for i in numbers], numbers)


class OperationNode(Node):
    """A recorded call of an operation.

    call     the call, with its operands; None once they have been dropped
    wrt      the positions of the operands that require a gradient
    numbers  the positions of the results that do, among all that the operation returns
    """

    __slots__ = ("call", "numbers", "op", "wrt")

    def __init__(self, call: Call, results: Sequence[Tensor], numbers: tuple[int, ...]) -> None:
        self.wrt = tuple(i for i, x in enumerate(call.given) if type(x) is Tensor and x.requires_grad)
        super().__init__([call.given[i] for i in self.wrt], results)
        self.call: Call | None = call
        self.op = call.op
        self.numbers = numbers

    def name(self) -> str:
        return "".join(part.capitalize() for part in self.op.name.strip("_").replace(".", "_").split("_")) + "Backward"

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        assert self.call is not None
        pullback = _pullback_of(self.call, self.wrt, self.numbers)
        found: Sequence[Tensor | None] = run(pullback, (list(cotangents), self.call.given), {})
        return found

    def release(self) -> None:
        super().release()
        self.call = None


class Pullback(Operation):
    """The vector-Jacobian product of an operation for one pattern of arguments.

    args, keywords  the arguments of the operation, with a placeholder for each operand
    """

    def __init__(self, call: Call, wrt: tuple[int, ...], numbers: tuple[int, ...]) -> None:
        super().__init__(self.pull, (), {}, f"{call.op.name}_backward")
        self.forward, self.wrt, self.numbers = call.op, wrt, numbers
        self.args, self.keywords = self._with(call.args, call.keywords, repeat(_PLACE))

    def pull(self, cotangents: Sequence[Operand], operands: Sequence[Operand]) -> tuple[Tensor, ...]:
        """The cotangents of the operands `wrt`."""

        def forward(*given: Tensor) -> tuple[Tensor, ...]:
            leaves = tree.leaves(self.forward.record(*self._with(self.args, self.keywords, iter(given))))
            return tuple(leaves[i] for i in self.numbers)

        _, pullback = vjp(forward, *operands)
        found = pullback(tuple(cotangents))
        return tuple(found[i] for i in self.wrt)

    def _with(self, args: tuple[Any, ...], keywords: dict[str, Any], pending: Any) -> Any:
        op = self.forward
        return (tuple(with_operands(x, op, op.parameter(i), pending) for i, x in enumerate(args)),
                {name: with_operands(x, op, name, pending) for name, x in keywords.items()})


_PLACE = object()


def _pullback_of(call: Call, wrt: tuple[int, ...], numbers: tuple[int, ...]) -> Pullback:
    """The vector-Jacobian product of calls like this one."""
    key = without_shapes(call.key), wrt, numbers
    found = _pullbacks.get(key)
    if found is None:
        found = _pullbacks[key] = Pullback(call, wrt, numbers)
    return found
