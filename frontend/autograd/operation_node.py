"""Eager operations that are recorded for `Tensor.backward`.

The vector-Jacobian product of an operation is an operation in turn: compiled once per pattern of operands as every
eager operation is, and recorded itself where its own gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from mlc.frontend import eager, native_calls, tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node, alone
from mlc.frontend.autograd.saved_tensors import Packed, save, unpack
from mlc.frontend.derivatives import vjp
from mlc.frontend.devices import BackingArray
from mlc.frontend.dispatch import native_call
from mlc.frontend.eager import Call, EagerKernel, with_operands, without_shapes
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.tensor import Operand, Tensor

PULLBACK = "_backward"
"""Follows the name of an operation in that of its vector-Jacobian product."""
NOT_DIFFERENTIATED = frozenset({"detach"})
"""Operations whose results never require a gradient."""
_pullbacks: dict[Any, Pullback] = {}
"""By the pattern of a call."""
_derivatives: dict[Any, Derivative] = {}
"""By the shapes of a call."""


def run(op: Operation, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run an operation eagerly, and record it if an operand requires a gradient."""
    return run_call(Call(op, args, keywords))


def run_call(call: Call) -> Any:
    """Run a call eagerly, and record it if an operand requires a gradient."""
    kernel, result = eager.run(call)
    if kernel.is_new:
        native_calls.offer(call, kernel, lambda: recorder(call, result))
    if call.requires_grad and mode.enabled and call.op.name not in NOT_DIFFERENTIATED:
        record(call, result)
    return result


def name_of_node(operation: str) -> str:
    """Name of the node of an operation, such as MulBackward."""
    return "".join(part.capitalize() for part in operation.strip("_").replace(".", "_").split("_")) + "Backward"


def record(call: Call, result: Any) -> None:
    """Make a node of a call, unless it computes nothing that has a gradient."""
    leaves, numbers = differentiable(call, result)
    if numbers:
        OperationNode(derivative_of(call, numbers), call.given, [leaves[i] for i in numbers])


def differentiable(call: Call, result: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The leaves of a result, and the numbers of those that have a gradient."""
    leaves = [result] if type(result) is Tensor else tree.leaves(result)
    return leaves, tuple(i for i, x in enumerate(leaves) if type(x) is Tensor and x.dtype.is_floating_point
                         and not any(x is given for given in call.given))


def recorder(call: Call, result: Any) -> Callable[..., Any] | None:
    """The function that records calls of the pattern of this one, which native code has run; None if there is nothing
    to record."""
    _, numbers = differentiable(call, result)
    if not numbers or call.op.name in NOT_DIFFERENTIATED:
        return None
    template, single = Template.of(call), type(result) is Tensor
    derivatives: dict[tuple[int, ...], Derivative] = {}
    simple = len(call.given) == len(call.args) and not call.keywords

    def recorded(out: Any, *args: Any, **keywords: Any) -> Any:
        if not mode.enabled:
            return out
        given = args if simple else Call(call_op, args, keywords).given
        wrt = tuple([i for i, x in enumerate(given) if type(x) is Tensor and (meta := x._autograd) is not None
                     and meta.requires_grad])
        if wrt:
            found = derivatives.get(wrt)
            if found is None:
                found = derivatives[wrt] = Derivative(pullback_of(template, wrt, numbers))
            OperationNode(found, given, [out] if single else [out[i] for i in numbers])
        return out

    call_op = call.op
    return recorded


class OperationNode(Node):
    """A recorded call of an operation.

    operands  the operands, with `Forgotten` in place of those that the gradient does not depend on; None once dropped
    """

    __slots__ = ("derivative", "operands")

    def __init__(self, derivative: Derivative, given: Sequence[Any], results: Sequence[Tensor]) -> None:
        super().__init__([given[i] for i in derivative.pullback.wrt], results)
        self.derivative = derivative
        self.operands: Sequence[Any] | None = save(given, _without(derivative.unused, given))

    def name(self) -> str:
        return name_of_node(self.derivative.pullback.forward.name)

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        assert self.operands is not None
        return self.derivative.pull(cotangents, unpack(self.operands))

    def release(self) -> None:
        unused = self.derivative.unused
        if unused and self.operands is not None:
            left = _without(unused, self.operands)
            if not any(isinstance(x, Tensor | np.ndarray | Packed) for x in left):
                self.operands = left
                return                                     # nothing was saved that could be dropped
        self.released, self.operands = True, None


class Derivative:
    """How calls of one pattern are differentiated.

    pullback  their vector-Jacobian product
    unused    the operands whose elements it does not depend on; none before it has run
    """

    __slots__ = ("copied", "known", "native", "pullback", "unused")

    def __init__(self, pullback: Pullback) -> None:
        self.pullback = pullback
        self.unused: frozenset[int] = frozenset()
        self.known = False
        self.native: Callable[..., Any] | None = None
        self.copied: tuple[int | None, ...] | None = None

    def pull(self, cotangents: Sequence[Tensor | None], operands: Sequence[Any]) -> Sequence[Tensor | None]:
        """The cotangents of the operands that require a gradient."""
        if self.native is not None and not mode.enabled:
            found = self.native(cotangents, [x.zeros if type(x) is Forgotten else x for x in operands])
            if found is not None:
                return found  # type: ignore[no-any-return]
        call = _call(self.pullback, cotangents, _without(self.unused, operands))
        kernel, found = eager.run(call)
        if not self.known and all(x is not None for x in cotangents):
            self._learn(call, kernel, len(cotangents))
            if mode.enabled:
                call = _call(self.pullback, cotangents, _without(self.unused, operands))
        if call.requires_grad and mode.enabled:
            record(call, found)
        return found  # type: ignore[no-any-return]

    def _learn(self, call: Call, kernel: EagerKernel, count: int) -> None:
        """Find out what the pullback does not depend on, and make calls of its kernel native."""
        self.unused, self.known = frozenset(i - count for i in kernel.unused if i >= count), True
        if kernel.entry is None:
            self.native = _copying(kernel, count)
        elif kernel.computes_all and not self.pullback.forward.static:
            pattern = native_calls.pattern_of(call, kernel)
            if pattern is not None:
                self.native = native_call(kernel.entry, pattern, _not_native, None)


def _not_native(*args: Any) -> None:
    """Stands for the result of calls that a native callable does not take."""


def _copying(kernel: EagerKernel, count: int) -> Callable[..., Any] | None:
    """The kernel as a function of cotangents and operands, if its results are cotangents."""
    if not kernel.outputs or not all(kind == "copy" and x < count for kind, x in kernel.outputs):
        return None
    numbers = [x for _, x in kernel.outputs]

    def copies(cotangents: Sequence[Tensor | None], operands: Sequence[Any]) -> Sequence[Tensor] | None:
        if any(x is None for x in cotangents):
            return None
        return [alone(cotangents[x]) for x in numbers]

    return copies


def _call(pullback: Pullback, cotangents: Sequence[Tensor | None], operands: Sequence[Any]) -> Call:
    given = [x.zeros if type(x) is Forgotten else x for x in operands]
    return Call(pullback, (list(cotangents), given), {})


def _without(unused: frozenset[int], operands: Sequence[Any]) -> Sequence[Any]:
    """The operands with those tensors forgotten whose elements do not matter. Those of a device are kept."""
    if not unused:
        return operands
    return [x if i not in unused else forgotten(x._array) if type(x) is Tensor and type(x._array) is np.ndarray
            else forgotten(x) if type(x) is Packed and x.on_host else x for i, x in enumerate(operands)]


class Forgotten:
    """Stands for an operand whose elements the gradient does not depend on.

    zeros  an array of its type, without memory of its own
    """

    __slots__ = ("zeros",)

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.zeros = np.broadcast_to(np.zeros((), dtype), shape)


_forgotten: dict[tuple[tuple[int, ...], np.dtype[Any]], Forgotten] = {}


def forgotten(x: BackingArray | Packed) -> Forgotten:
    """What stands for an operand of this shape and type."""
    key = x.shape, x.dtype
    found = _forgotten.get(key)
    if found is None:
        if len(_forgotten) >= eager.MAX_SHAPES:
            _forgotten.clear()
        found = _forgotten[key] = Forgotten(*key)
    return found


class Template(NamedTuple):
    """A call without its operands.

    args, keywords  with a placeholder for each operand
    pattern         the key of the call, without shapes
    """

    op: Operation
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    pattern: Any

    @staticmethod
    def of(call: Call) -> Template:
        """The template of a call; what the program does to its lists concerns later calls."""
        args, keywords = placed(call.op, call.args, call.keywords, repeat(_PLACE))
        return Template(call.op, tuple(map(native_calls.own, args)),
                        {name: native_calls.own(x) for name, x in keywords.items()}, without_shapes(call.key))


def placed(op: Operation, args: tuple[Any, ...], keywords: dict[str, Any], pending: Any) -> Any:
    """Arguments with those of `pending` in place of the operands."""
    return (tuple(with_operands(x, op, op.parameter(i), pending) for i, x in enumerate(args)),
            {name: with_operands(x, op, name, pending) for name, x in keywords.items()})


class Pullback(Operation):
    """The vector-Jacobian product of an operation for one pattern of arguments.

    wrt      the positions of the operands that require a gradient
    numbers  the leaves of the result that have one
    """

    forgets = True

    def __init__(self, of: Template, wrt: tuple[int, ...], numbers: tuple[int, ...]) -> None:
        super().__init__(self.pull, (), {}, of.op.name + PULLBACK)
        self.forward, self.wrt, self.numbers = of.op, wrt, numbers
        self.args, self.keywords = of.args, of.keywords

    def static_operands(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
        return self.forward.static_operands(*placed(self.forward, self.args, self.keywords, iter(args[1])))

    def pull(self, cotangents: Sequence[Operand], operands: Sequence[Operand]) -> tuple[Tensor, ...]:
        """The cotangents of the operands `wrt`."""

        def forward(*given: Tensor) -> tuple[Tensor, ...]:
            leaves = tree.leaves(self.forward.record(*placed(self.forward, self.args, self.keywords, iter(given))))
            return tuple(leaves[i] for i in self.numbers)

        _, pullback = vjp(forward, *operands)
        found = pullback(tuple(cotangents))
        return tuple(found[i] for i in self.wrt)


_PLACE = object()


def pullback_of(of: Template, wrt: tuple[int, ...], numbers: tuple[int, ...]) -> Pullback:
    """The vector-Jacobian product of calls of a template."""
    key = of.pattern, wrt, numbers
    found = _pullbacks.get(key)
    if found is None:
        found = _pullbacks[key] = Pullback(of, wrt, numbers)
    return found


def derivative_of(call: Call, numbers: tuple[int, ...]) -> Derivative:
    """How calls of the shapes of this one are differentiated."""
    wrt = tuple(i for i, x in enumerate(call.given) if type(x) is Tensor and x.requires_grad)
    key = call.key, wrt, numbers
    found = _derivatives.get(key)
    if found is None:
        if len(_derivatives) >= eager.MAX_SHAPES:
            _derivatives.clear()
        found = _derivatives[key] = Derivative(pullback_of(Template.of(call), wrt, numbers))
    return found
