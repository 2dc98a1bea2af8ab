"""Eager operations that are recorded for `Tensor.backward`.

The vector-Jacobian product of an operation is an operation in turn: compiled once per pattern of operands as every
eager operation is, and recorded itself where its own gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlc.frontend import eager, native_calls, tree
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Edge, LeafEdge, Node, alone, edge_to, kept
from mlc.frontend.autograd.pushforward import pushforward_of
from mlc.frontend.autograd.saved_tensors import Packed, save, saving, unpack, with_histories
from mlc.frontend.autograd.tangents import DualLevel, NoTangents, active, duals, tangent_of
from mlc.frontend.autograd.template import Template, placed
from mlc.frontend.autograd.view_node import NOT_DIFFERENTIATED
from mlc.frontend.derivatives import vjp
from mlc.frontend.dispatch import native_call
from mlc.frontend.eager import Call, EagerKernel
from mlc.frontend.recorded_operation import Operation
from mlc.frontend.tensor import Array, Operand, Tensor

PULLBACK = "_backward"
"""Follows the name of an operation in that of its vector-Jacobian product."""
MAX_KERNELS = 8
"""Kernels of a pullback, such as those for one size each, that native calls try one after another."""
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
    if (level := active()) is not None:
        push(level, call, result)
    return result


def push(level: DualLevel, call: Call, result: Any) -> None:
    """Give the result of a call the tangent that those of its operands make."""
    tangents = [level.get(x) for x in call.given]
    if all(t is None for t in tangents) or call.op.name in NOT_DIFFERENTIATED:
        return
    leaves, numbers = differentiable(call, result)
    if not numbers:
        return
    with NoTangents():
        made = pushforward_of(call, tangents, numbers)
        _, found = eager.run(made)
        if made.requires_grad and mode.enabled:
            record(made, found)
    for i, tangent in zip(numbers, found):
        level.put(leaves[i], tangent)


def name_of_node(operation: str) -> str:
    """Name of the node of an operation, such as MulBackward."""
    return "".join(part.capitalize() for part in operation.strip("_").replace(".", "_").split("_")) + "Backward"


def record(call: Call, result: Any) -> None:
    """Make a node of a call, unless it computes nothing that has a gradient."""
    leaves, numbers = differentiable(call, result)
    if numbers:
        record_as(derivative_of(call, numbers), call, [leaves[i] for i in numbers])


def record_as(derivative: Derivative, call: Call, results: Sequence[Tensor]) -> None:
    """Make the node of a call."""
    OperationNode(derivative, [edge_to(call.given[i]) for i in derivative.pullback.wrt], call.given, results)


def differentiable(call: Call, result: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The leaves of a result, and the numbers of those that have a gradient."""
    leaves = [result] if type(result) is Tensor else tree.leaves(result)
    return leaves, tuple(i for i, x in enumerate(leaves) if type(x) is Tensor and x.dtype.ir.is_inexact
                         and not any(x is given for given in call.given))


def recorder(call: Call, result: Any) -> Callable[..., Any] | None:
    """The function that records calls of the pattern of this one, which native code has run; None if there is nothing
    to record."""
    _, numbers = differentiable(call, result)
    if not numbers or call.op.name in NOT_DIFFERENTIATED:
        return None
    template, single = Template.of(call), type(result) is Tensor
    derivatives: dict[int, Derivative] = {}                # by the operands that require a gradient, as bits
    simple = len(call.given) == len(call.args) and not call.keywords and not any(
        type(x) in (list, tuple) for x in call.args)       # then the operands are the arguments

    def recorded(out: Any, *args: Any, **keywords: Any) -> Any:
        if not mode.enabled:
            return out
        given = args if simple else Call(call_op, args, keywords).given
        wrt = 0
        edges: list[Edge] = []                             # list[Edge]() would take longer
        for i, x in enumerate(given):
            if type(x) is Tensor and (meta := x._autograd) is not None and meta.requires_grad:
                wrt |= 1 << i
                edges.append(LeafEdge(meta, x) if meta.node is None else meta)
        if wrt:
            derivative = derivatives.get(wrt)
            if derivative is None:
                among = tuple(i for i in range(len(given)) if wrt >> i & 1)
                derivative = derivatives[wrt] = Derivative(pullback_of(template, among, numbers))
            OperationNode(derivative, edges, given, [out] if single else [out[i] for i in numbers])
        return out

    call_op = call.op
    return recorded


class OperationNode(Node):
    """A recorded call of an operation.

    operands  the operands or their arrays, zeros in place of those that the gradient does not depend on; None once
              dropped
    """

    __slots__ = ("derivative", "operands")

    def __init__(self, derivative: Derivative, edges: list[Edge], given: Sequence[Any],
                 results: Sequence[Tensor]) -> None:
        self.link(edges, results)
        self.derivative = derivative
        self.operands: list[Any] | None = (save(given, _without(derivative.unused, given)) if saving.hooks else
                                           _saved(given, derivative.unused))

    def name(self) -> str:
        return name_of_node(self.derivative.pullback.forward.name)

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        derivative, operands = self.derivative, self.operands
        assert operands is not None
        if derivative.native is not None and not mode.enabled and duals.level is None:
            found: Sequence[Tensor | None] | None = derivative.native(cotangents, operands)
            if found is not None:
                return found
        return derivative.pull(cotangents, with_histories(unpack(operands), derivative.pullback.wrt, self.edges))

    def release(self) -> None:
        derivative = self.derivative
        if derivative.saves_nothing and self.operands is not None:
            self.operands = _without(derivative.unused, self.operands)
        else:
            self.released, self.operands = True, None


class Derivative:
    """How calls of one pattern are differentiated.

    pullback       their vector-Jacobian product
    native         the same by compiled code, of cotangents and operands; None if there is none, and what it returns for
                   others than those of the pattern
    unused         the operands whose elements it does not depend on; none before it has run
    saves_nothing  whether these are all that have elements
    """

    __slots__ = ("kernels", "native", "pullback", "saves_nothing", "unused")

    def __init__(self, pullback: Pullback) -> None:
        self.pullback = pullback
        self.unused: frozenset[int] = frozenset()
        self.saves_nothing = False
        self.native: Callable[..., Any] | None = None
        self.kernels: list[EagerKernel] = []               # that have run, of which `native` tries each

    def pull(self, cotangents: Sequence[Tensor | None], operands: Sequence[Any]) -> Sequence[Tensor | None]:
        """The cotangents of the operands that require a gradient."""
        call = _call(self.pullback, cotangents, _without(self.unused, operands))
        kernel, found = eager.run(call)
        if len(self.kernels) < MAX_KERNELS and not kernel.is_timed and kernel not in self.kernels and all(
                x is not None for x in cotangents):
            self._learn(call, kernel, len(cotangents))
            if mode.enabled:
                call = _call(self.pullback, cotangents, _without(self.unused, operands))
        if call.requires_grad and mode.enabled:
            record(call, found)
        if (level := active()) is not None:
            push(level, call, found)
        return found  # type: ignore[no-any-return]

    def _learn(self, call: Call, kernel: EagerKernel, count: int) -> None:
        """Find out what the pullback does not depend on, and make calls of its kernel native."""
        if not self.kernels:
            self.unused = frozenset(i - count for i in kernel.unused if i >= count)
            self.saves_nothing = all(i in self.unused or type(x) in (int, float)
                                     for i, x in enumerate(call.given[count:]))
        self.kernels.append(kernel)
        if kernel.entry is None:
            self.native = self.native or _copying(kernel, count)
        elif kernel.computes_all and kernel.is_plain:
            pattern = native_calls.pattern_of(call, kernel)
            if pattern is not None:
                self.native = native_call(kernel.entry, pattern, self.native or _not_native, None) or self.native


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
    return Call(pullback, (list(cotangents), list(operands)), {})


def _saved(given: Sequence[Any], unused: frozenset[int]) -> list[Any]:
    """The operands as a node keeps them: of a tensor the array alone, unless that may be written to. Its history is at
    the end of an edge."""
    dual = duals.level is not None
    out = list(given)
    for i, x in enumerate(given):
        if type(x) is Tensor:
            array = x._array
            if type(array) is not np.ndarray or (dual and i not in unused and tangent_of(x) is not None):
                out[i] = kept(x)
            elif i in unused:
                out[i] = _zeros_like(array)
            else:
                out[i] = array if x._storage is None else kept(x)
        elif type(x) is np.ndarray:
            out[i] = kept(x)
    return out


def _without(unused: frozenset[int], operands: Sequence[Any]) -> list[Any]:
    """The operands with zeros in place of those tensors whose elements do not matter. Those of a device are kept."""
    out = list(operands)
    for i in unused:
        x = out[i]
        array = x._array if type(x) is Tensor else x
        if type(array) is np.ndarray or (type(x) is Packed and x.on_host):
            out[i] = _zeros_like(array)
    return out


_zeros: dict[tuple[tuple[int, ...], np.dtype[Any]], Array] = {}


def _zeros_like(x: Array | Packed) -> Array:
    """Zeros of a shape and type, without memory of their own, for all operands of these that are not needed."""
    key = x.shape, x.dtype
    found = _zeros.get(key)
    if found is None:
        if len(_zeros) >= eager.MAX_SHAPES:
            _zeros.clear()
        found = _zeros[key] = np.broadcast_to(np.zeros((), x.dtype), x.shape)
    return found


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
