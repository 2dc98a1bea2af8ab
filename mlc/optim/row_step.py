"""Steps of optimizers along sparse gradients: the rows that a gradient has are moved, and no others."""

from __future__ import annotations

from typing import Any

from mlc.frontend.functions import create
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.recorded_step import advance


def step_of_rows(optimizer: Any, group: dict[str, Any], rule: Any, p: Tensor) -> None:
    """Update a parameter that has a sparse gradient, in place.

    Args:
        optimizer: Optimizer that holds it.
        group: Its group.
        rule: The optimizer under the settings of the group.
        p: The parameter.

    Raises:
        UserError: The optimizer, or its weight decay, needs a dense gradient (MLC0778).
    """
    name = type(rule).__name__
    if not rule.takes_sparse or p.composite:
        raise UserError(f"{name} is given a sparse gradient" if not p.composite else f"{name}: a parameter is sparse",
                        code="MLC0778", loc=user_loc(),
                        hint="use SparseAdam, SGD or Adagrad, or layers with sparse=False")
    if rule.enabled(getattr(rule, "weight_decay", 0)):
        raise UserError(f"{name}: a weight decay would make a sparse gradient dense", code="MLC0778", loc=user_loc(),
                        hint="leave out weight_decay, or use layers with sparse=False")
    held, gradient = optimizer.state[p], p.grad.coalesce()  # type: ignore[union-attr]
    count = int(held["step"])
    lr = group["lr"](count) if callable(group["lr"]) else group["lr"]
    tensors = [p.detach(), *(held[slot] for slot in rule.slots)]
    if "momentum_buffer" in rule.slots:                    # which moves all rows
        rows, given, index = tensors, gradient.to_dense(), None
    else:
        index, given = tuple(gradient.indices().unbind(0)), gradient.values()
        rows = [x[index] for x in tensors]
    state = {"step": create.tensor(count), **{slot: [x] for slot, x in zip(rule.slots, rows[1:])}}
    moved, after = rule.update([given], state, [rows[0]], lr)
    for x, new in zip([p, *tensors[1:]], [moved[0], *(after[slot][0] for slot in rule.slots)]):
        if index is None:
            x.copy_(new)
        else:
            x[index] = new
    advance(optimizer.state, [p], count + 1)
