"""Processing of gradients before an update: clipping, and accumulation over several batches."""

from __future__ import annotations

from typing import Any

from mlc.frontend import tree
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.location import user_loc
from mlc.frontend.operators import is_operand
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError, UserTypeError
from mlc.optim.optimizer import Optimizer


@coded
def global_norm(grads: Any) -> Tensor:
    """Global norm: sqrt(sum of g**2 over all elements of all tensors of a tree).

    Args:
        grads: Tree of floats, such as gradients; float16 and bfloat16 are summed in float32.

    Returns:
        Tensor of no dimensions, float32, or float64 if a tensor is.

    Raises:
        UserTypeError: A leaf is no array (MLC0353).

    Example:
        >>> mlc.optim.global_norm({"w": mlc.tensor([3.0]), "b": mlc.tensor([4.0])})
        tensor(5., dtype=mlc.float32)
    """
    total: Any = create.zeros()
    for g in map(_gradient, tree.leaves(grads)):
        wide = g if g.dtype.itemsize >= 4 else g.float()
        total = total + R.sum(wide * wide)
    return E.sqrt(total)


@coded
def clip_by_global_norm(grads: Any, max_norm: Operand) -> tuple[Any, Tensor]:
    """Scale gradients to a global norm of at most max_norm: g * min(1, max_norm / (norm + 1e-6)).

    The sum 1e-6 is that of torch.nn.utils.clip_grad_norm_; unlike it, this returns new gradients. (Pascanu, Mikolov and
    Bengio 2013, "On the Difficulty of Training Recurrent Neural Networks", algorithm 1.)

    Args:
        grads: Tree of gradients.
        max_norm: Largest norm, a number or a tensor of one element.

    Returns:
        The scaled gradients, and the norm before, a tensor of no dimensions.

    Raises:
        UserTypeError: A leaf is no array (MLC0353).

    Example:
        >>> mlc.optim.clip_by_global_norm(mlc.tensor([3.0, 4.0]), 1.0)
        (tensor([0.5999999 , 0.79999983], dtype=mlc.float32), tensor(5., dtype=mlc.float32))
    """
    norm = global_norm(grads)
    scale = E.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree.map(lambda g: _gradient(g) * scale, grads), norm


@coded
def clip_by_value(grads: Any, clip_value: float) -> Any:
    """Clip every element of gradients: min(max(g, -clip_value), clip_value).

    Args:
        grads: Tree of gradients.
        clip_value: Largest magnitude.

    Returns:
        Tree of the same structure.

    Raises:
        UserTypeError: A leaf is no array (MLC0353).

    Example:
        >>> mlc.optim.clip_by_value(mlc.tensor([3.0, -0.5]), 1.0)
        tensor([ 1. , -0.5], dtype=mlc.float32)
    """
    return tree.map(lambda g: E.clamp(_gradient(g), -float(clip_value), float(clip_value)), grads)


def _gradient(x: Any) -> Tensor:
    """Check that a leaf of gradients is an array."""
    if not is_operand(x):
        raise UserTypeError(f"a leaf of the gradients is a {type(x).__name__}, expected an array", code="MLC0353",
                            loc=user_loc())
    return x if isinstance(x, Tensor) else create.asarray(x)


class Accumulated:
    """Gradient accumulation: one update of an optimizer in `steps` calls, by the mean of their gradients.

    Args:
        optimizer: Optimizer that makes the updates.
        steps: Number of calls for one update.

    Raises:
        UserError: `steps` is below 1 (MLC0383).

    Example:
        >>> opt, w = mlc.optim.Accumulated(mlc.optim.SGD(0.5), steps=2), mlc.tensor([1.0])
        >>> state = opt.init(w)
        >>> for g in (1.0, 3.0):
        ...     w, state = opt.update(mlc.tensor([g]), state, w)
        ...     print(w)
        tensor([1.], dtype=mlc.float32)
        tensor([0.], dtype=mlc.float32)
    """

    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        if steps < 1:
            raise UserError(f"steps = {steps}, expected at least 1", code="MLC0383", loc=user_loc())
        self.optimizer, self.steps = optimizer, steps

    def init(self, params: Any) -> dict[str, Any]:
        """Make the state: that of the optimizer, the sum of the gradients, and their number.

        Args:
            params: Tree of parameters.

        Returns:
            Dict with "optimizer", "grads" and "count".
        """
        return {"optimizer": self.optimizer.init(params), "count": create.zeros(dtype="int64"),
                "grads": tree.map(create.zeros_like, tree.trained_part(params))}

    def update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand = None) -> tuple[Any, dict[str, Any]]:
        """Add gradients; in the last of `steps` calls, move the parameters.

        Args:
            grads: Tree like the parameters.
            state: Result of `init` or of the last `update`.
            params: Tree of parameters.
            lr: Learning rate in place of the optimizer's.

        Returns:
            New parameters and new state.
        """
        total = tree.map(E.add, state["grads"], grads)
        count = state["count"] + 1
        due = count == self.steps
        moved = self.optimizer.update(tree.map(lambda g: g / self.steps, total), state["optimizer"], params, lr)
        params, inner = tree.map(lambda new, old: new if new is old else E.where(due, new, old), moved,
                                 (params, state["optimizer"]))
        return params, {"optimizer": inner, "count": E.where(due, 0, count),
                        "grads": tree.map(lambda g: E.where(due, 0.0, g), total)}


coded_methods(Accumulated, ("__init__", "init", "update"))
