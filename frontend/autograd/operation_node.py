"""Eager operations that are recorded for `Tensor.backward`.

The vector-Jacobian product of an operation is an operation in turn: compiled once per pattern of operands as every
eager operation is, and recorded itself where its own gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from mlc.frontend import eager, tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node
from mlc.frontend.autograd.saved_tensors import Packed, save, unpack
from mlc.frontend.derivatives import vjp
from mlc.frontend.devices import BackingArray
from mlc.frontend.eager import Call, with_operands, without_shapes
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.tensor import Operand, Tensor

PULLBACK = "_backward"
"""Follows the name of an operation in that of its vector-Jacobian product."""
NOT_DIFFERENTIATED = frozenset({"detach"})
"""Operations whose results never require a gradient."""
_pullbacks: dict[Any, Pullback] = {}
"""By the pattern of a call."""
_known: dict[Any, tuple[Pullback, frozenset[int]]] = {}
"""By the shapes of a call: its pullback, and the operands whose elements that does not depend on."""
_UNKNOWN: tuple[Pullback | None, frozenset[int]] = (None, frozenset())


def run(op: Operation, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run an operation eagerly, and record it if an operand requires a gradient."""
    return run_call(Call(op, args, keywords))


def run_call(call: Call) -> Any:
    """Run a call eagerly, and record it if an operand requires a gradient."""
    result = eager.run(call)
    if call.requires_grad and mode.enabled and call.op.name not in NOT_DIFFERENTIATED:
        record(call, result)
    return result


def name_of_node(operation: str) -> str:
    """Name of the node of an operation, such as MulBackward."""
    return "".join(part.capitalize() for part in operation.strip("_").replace(".", "_").split("_")) + "Backward"


def record(call: Call, result: Any) -> None:
    """Make a node of a call, unless it computes nothing that has a gradient."""
    leaves = [result] if type(result) is Tensor else tree.leaves(result)
    numbers = tuple(i for i, x in enumerate(leaves) if type(x) is Tensor and x.dtype.is_floating_point
                    and not any(x is given for given in call.given))
    if numbers:
        OperationNode(call, [leaves[i] for i in numbers], numbers)


class OperationNode(Node):
    """A recorded call of an operation.

    call      the call, unless it is known what its pullback depends on
    pullback  the pullback, if that is known
    operands  the operands, with `Forgotten` in place of those that it does not depend on; None once dropped
    wrt       the positions of the operands that require a gradient
    """

    __slots__ = ("call", "key", "op", "operands", "pullback", "wrt")

    def __init__(self, call: Call, results: Sequence[Tensor], numbers: tuple[int, ...]) -> None:
        self.wrt = tuple(i for i, x in enumerate(call.given) if type(x) is Tensor and x.requires_grad)
        super().__init__([call.given[i] for i in self.wrt], results)
        self.op = call.op
        self.key = call.key, self.wrt, numbers
        self.pullback, unused = _known.get(self.key, _UNKNOWN)
        self.call: Call | None = None
        if self.pullback is None:                          # what the program does to its lists concerns later calls
            self.call = call
            call.args, call.keywords = _own(call.args), {name: _own(x) for name, x in call.keywords.items()}
        self.operands: Sequence[Any] | None = save(call.given, _without(unused, call.given))

    def name(self) -> str:
        return name_of_node(self.op.name)

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        assert self.operands is not None
        pullback = self.pullback
        if pullback is None:
            assert self.call is not None
            pullback = _pullback_of(self.call, self.wrt, self.key[2])
        operands = unpack(self.operands)
        call = _call(pullback, cotangents, operands)
        found: Sequence[Tensor | None] = eager.run(call)
        if self.pullback is None and all(x is not None for x in cotangents):
            if len(_known) >= eager.MAX_SHAPES:
                _known.clear()
            of_kernel = eager.kernel_of(call).unused
            unused = frozenset(i - len(cotangents) for i in of_kernel if i >= len(cotangents))
            _known[self.key] = pullback, unused
            if mode.enabled:
                call = _call(pullback, cotangents, _without(unused, operands))
        if call.requires_grad and mode.enabled:
            record(call, found)
        return found

    def release(self) -> None:
        pullback, unused = _known.get(self.key, _UNKNOWN)
        if pullback is not None and self.operands is not None:
            left = _without(unused, self.operands)
            if not any(isinstance(x, Tensor | np.ndarray | Packed) for x in left):
                self.pullback, self.operands, self.call = pullback, left, None
                return                                     # nothing was saved that could be dropped
        super().release()
        self.call = self.operands = None


def _own(x: Any) -> Any:
    """An argument with containers of its own."""
    if isinstance(x, list | tuple) and not hasattr(x, "_fields"):
        return type(x)(map(_own, x))
    return {key: _own(v) for key, v in x.items()} if type(x) is dict else x


def _call(pullback: Pullback, cotangents: Sequence[Tensor | None], operands: Sequence[Any]) -> Call:
    given = [x.zeros() if type(x) is Forgotten else x for x in operands]
    return Call(pullback, (list(cotangents), given), {})


def _without(unused: frozenset[int], operands: Sequence[Any]) -> Sequence[Any]:
    """The operands with those tensors forgotten whose elements do not matter. Those of a device are kept."""
    if not unused:
        return operands
    return [x if i not in unused else Forgotten(x._array) if type(x) is Tensor and type(x._array) is np.ndarray
            else Forgotten(x) if type(x) is Packed and x.on_host else x for i, x in enumerate(operands)]


class Forgotten:
    """Stands for an operand whose elements the gradient does not depend on."""

    __slots__ = ("dtype", "shape")

    def __init__(self, array: BackingArray | Packed) -> None:
        self.shape, self.dtype = array.shape, array.dtype

    def zeros(self) -> BackingArray:
        """An array of its type, without memory of its own."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)


class Pullback(Operation):
    """The vector-Jacobian product of an operation for one pattern of arguments.

    args, keywords  the arguments of the operation, with a placeholder for each operand
    """

    forgets = True

    def __init__(self, call: Call, wrt: tuple[int, ...], numbers: tuple[int, ...]) -> None:
        super().__init__(self.pull, (), {}, call.op.name + PULLBACK)
        self.forward, self.wrt, self.numbers = call.op, wrt, numbers
        self.args, self.keywords = self._with(call.args, call.keywords, repeat(_PLACE))

    def static_operands(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
        return self.forward.static_operands(*self._with(self.args, self.keywords, iter(args[1])))

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
