"""The context of a call of a `Function`: what forward leaves to backward."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from mlc.frontend.autograd.graph import AutogradMeta, Node, kept
from mlc.frontend.autograd.saved_tensors import save, unpack
from mlc.frontend.autograd.tangents import put_tangent, tangent_of
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError


class FunctionCtx:
    """First argument of the forward and the backward of a `Function`: what forward stores in it, backward finds.

    Any attribute may be assigned; tensors are better saved by `save_for_backward`.

    Attributes:
        needs_input_grad: For each argument of forward, whether its gradient is needed.

    Example:
        >>> class Scaled(mlc.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, factor):
        ...         ctx.factor = factor
        ...         return factor * x
        ...     @staticmethod
        ...     def backward(ctx, gradient):
        ...         return ctx.factor * gradient, None
        >>> x = mlc.tensor(2.0, requires_grad=True)
        >>> Scaled.apply(x, 5.0).backward()
        >>> x.grad
        tensor(5., dtype=mlc.float32)
    """

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._kept = Kept()

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors for backward, which finds them in `saved_tensors`; to be called once, by forward.

        Args:
            tensors: Tensors, or None.

        Raises:
            UserTypeError: One is no tensor (MLC0726).

        Example:
            >>> class Square(mlc.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.save_for_backward(x)
            ...         return x * x
            ...     @staticmethod
            ...     def backward(ctx, gradient):
            ...         x, = ctx.saved_tensors
            ...         return 2 * x * gradient
            >>> x = mlc.tensor(3.0, requires_grad=True)
            >>> Square.apply(x).backward()
            >>> x.grad
            tensor(6., dtype=mlc.float32)
        """
        _check_tensors("save_for_backward", tensors)
        self._kept.tensors = list(tensors)

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for jvp, which finds them in `saved_tensors`; to be called by forward.

        Args:
            tensors: Tensors, or None.

        Raises:
            UserTypeError: One is no tensor (MLC0726).

        Example:
            >>> class Square(mlc.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.save_for_forward(x)
            ...         return x * x
            ...     @staticmethod
            ...     def jvp(ctx, tangent):
            ...         x, = ctx.saved_tensors
            ...         return 2 * x * tangent
            >>> with mlc.autograd.forward_ad.dual_level():
            ...     x = mlc.autograd.forward_ad.make_dual(mlc.tensor(3.0), mlc.tensor(1.0))
            ...     mlc.autograd.forward_ad.unpack_dual(Square.apply(x)).tangent
            tensor(6., dtype=mlc.float32)
        """
        _check_tensors("save_for_forward", tensors)
        self._kept.for_forward = list(tensors)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that forward saved, in their order.

        Raises:
            UserError: backward has dropped them (MLC0431): it runs a second time without `retain_graph`.
        """
        return self._kept.given_back()

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare results of forward to have no gradient. Those that are not of floats never have one.

        Args:
            tensors: Tensors that forward returns.

        Example:
            >>> class Rounded(mlc.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         y = mlc.round(x)
            ...         ctx.mark_non_differentiable(y)
            ...         return y
            ...     @staticmethod
            ...     def backward(ctx, gradient):
            ...         return None
            >>> Rounded.apply(mlc.tensor([1.4], requires_grad=True)).requires_grad
            False
        """
        self._kept.constant = [*tensors]

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare arguments of forward to have been changed in place, which is not supported.

        Args:
            tensors: The arguments.

        Raises:
            UserError: Always (MLC0729).
        """
        raise UserError("a Function cannot declare its arguments to have been changed in place", code="MLC0729",
                        loc=user_loc(), hint="return a new tensor instead, and leave out mark_dirty")

    def set_materialize_grads(self, value: bool) -> None:
        """Choose what backward is given for a result that nothing depends on.

        Args:
            value: Whether it is zeros, as it is by default, and not None.

        Example:
            >>> class Both(mlc.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.set_materialize_grads(False)
            ...         return x * 2, x * 3
            ...     @staticmethod
            ...     def backward(ctx, first, second):
            ...         print(second)
            ...         return first * 2
            >>> Both.apply(mlc.tensor(1.0, requires_grad=True))[0].backward()
            None
        """
        self._kept.materializes = bool(value)


def _check_tensors(name: str, tensors: Sequence[Any]) -> None:
    """UserTypeError if one is neither a tensor nor None."""
    for i, x in enumerate(tensors):
        if x is not None and not isinstance(x, Tensor):
            raise UserTypeError(f"{name} takes tensors, and argument {i} is a {type(x).__name__}",
                                code="MLC0726", loc=user_loc(), hint="assign it to an attribute: ctx.name = value")


class Kept:
    """Contents of a context other than the attributes that the program assigns.

    tensors       as given to save_for_backward; once the call has been recorded, those that were packed
    for_forward   as given to save_for_forward
    in_forward    whether jvp runs, which is given those
    constant      results that were declared to have no gradient
    materializes  whether backward is given zeros in place of None
    outputs       of `tensors`, those that are results: position, and the number of the output of the node
    node          the node that recorded the call, which owns the context
    """

    def __init__(self) -> None:
        self.tensors: list[Any] | None = []
        self.for_forward: list[Any] = []
        self.in_forward = False
        self.constant: list[Any] = []
        self.materializes = True
        self.outputs: dict[int, int] = {}
        self.node: weakref.ref[Node] | None = None

    def given_back(self) -> tuple[Any, ...]:
        """The saved tensors; results belong to the node, which their own history would keep alive."""
        if self.in_forward:
            return tuple(self.for_forward)
        node = None if self.node is None else self.node()
        if self.tensors is None:
            assert node is not None
            Node.check_saved(node)                         # whose own one leaves it to this
        found = unpack(self.tensors or [])
        for i, number in self.outputs.items():
            found[i] = kept(found[i])
            found[i]._autograd = AutogradMeta(True, node, number)
        return tuple(found)

    def pack(self, node: Node, given: Sequence[Any], numbers: dict[int, int]) -> None:
        """Save the tensors, once the call on `given` has been recorded; `numbers` are those of results, by id."""
        assert self.tensors is not None
        self.node = weakref.ref(node)
        inputs = {id(x) for x in given}
        self.outputs = {i: numbers[id(x)] for i, x in enumerate(self.tensors) if id(x) in numbers.keys() - inputs}
        self.tensors = save([_detached(x) if i in self.outputs else x for i, x in enumerate(self.tensors)])


def _detached(x: Tensor) -> Tensor:
    """A tensor without its history that has its tangent."""
    out = x.detach()
    put_tangent(out, tangent_of(x))
    return out
