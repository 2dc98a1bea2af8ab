"""What is done with gradients before an update: clipping, and adding up over several batches."""

from __future__ import annotations

from typing import Any

from mlc.frontend import tree
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor, is_operand
from mlc.ir.diag import UserError, UserTypeError
from mlc.optim.optimizer import Optimizer


@coded
def global_norm(grads: Any) -> Tensor:
    """The square root of the sum of the squares of all numbers in a tree, in float32 or more."""
    total: Any = create.zeros()
    for g in map(_gradient, tree.leaves(grads)):
        wide = g if g.dtype.itemsize >= 4 else g.float()
        total = total + R.sum(wide * wide)
    return E.sqrt(total)


@coded
def clip_by_global_norm(grads: Any, max_norm: Operand) -> tuple[Any, Tensor]:
    """(gradients scaled so that their global norm is at most max_norm, the norm before). As clip_grad_norm_."""
    norm = global_norm(grads)
    scale = E.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree.map(lambda g: _gradient(g) * scale, grads), norm


@coded
def clip_by_value(grads: Any, clip_value: float) -> Any:
    """Every number brought between -clip_value and clip_value."""
    return tree.map(lambda g: E.clamp(_gradient(g), -float(clip_value), float(clip_value)), grads)


def _gradient(x: Any) -> Tensor:
    """A leaf of gradients, which are arrays."""
    if not is_operand(x):
        raise UserTypeError(f"a leaf of the gradients is a {type(x).__name__}, expected an array", code="MLC0353",
                            loc=user_loc())
    return x if isinstance(x, Tensor) else create.asarray(x)


class Accumulated:
    """An optimiser that updates once in `steps` calls, by the mean of the gradients since the last update."""

    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        if steps < 1:
            raise UserError(f"steps = {steps}, expected at least 1", code="MLC0383", loc=user_loc())
        self.optimizer, self.steps = optimizer, steps

    def init(self, params: Any) -> dict[str, Any]:
        """The state of the optimiser, the sum of the gradients, and how many there are in it."""
        return {"optimizer": self.optimizer.init(params), "count": create.zeros(dtype="int64"),
                "grads": tree.map(create.zeros_like, tree.trained_part(params))}

    def update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand = None) -> tuple[Any, dict[str, Any]]:
        """As the optimiser's; the parameters stay as they are until the last of `steps` calls."""
        total = tree.map(E.add, state["grads"], grads)
        count = state["count"] + 1
        due = count == self.steps
        moved = self.optimizer.update(tree.map(lambda g: g / self.steps, total), state["optimizer"], params, lr)
        params, inner = tree.map(lambda new, old: new if new is old else E.where(due, new, old), moved,
                                 (params, state["optimizer"]))
        return params, {"optimizer": inner, "count": E.where(due, 0, count),
                        "grads": tree.map(lambda g: E.where(due, 0.0, g), total)}


coded_methods(Accumulated, ("__init__", "init", "update"))
