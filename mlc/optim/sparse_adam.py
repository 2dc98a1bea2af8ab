"""SparseAdam: Adam for tables of which each step uses some rows only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.adam import corrections
from mlc.optim.optimizer import Group, Optimizer, Rate
from mlc.optim.parameter_groups import after_parameters


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only the rows that a gradient has are moved, and only their averages are updated.

    m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g**2; p = p - lr * sqrt(1 - beta2**t) /
    (1 - beta1**t) * m / (sqrt(v) + eps), where t counts the updates from 1.

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        betas: Decay rates of the two moving averages, each in [0, 1).
        eps: Added to the denominator.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a parameter is sparse (MLC0378); `step` raises one for
            a dense gradient (MLC0778).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> table = nn.Embedding(4, 2, sparse=True)
        >>> opt = mlc.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(mlc.tensor([1, 1, 3])).sum().backward()
        >>> opt.step()
        >>> table.weight.grad.coalesce().indices()
        tensor([[1, 3]], dtype=mlc.int64)
    """

    slots = ("exp_avg", "exp_avg_sq")
    dynamic_settings = ("betas",)
    takes_sparse = True
    takes_dense = False

    @after_parameters
    def __init__(self, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        self.betas, self.eps, self.maximize = betas, eps, maximize
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("betas[0]", self.betas[0], 1)
        self.check("betas[1]", self.betas[1], 1)
        self.check("eps", self.eps)

    def check_parameter(self, p: Tensor) -> None:
        if p.composite:
            raise UserError("SparseAdam trains dense parameters, and this one is sparse", code="MLC0378",
                            loc=user_loc(), hint="its gradients are sparse, as those of nn.Embedding(..., sparse=True)")

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        first, second = corrections(self.betas, t)
        return E.sqrt(second) / first,

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        m, v = slots
        m = m + (1 - self.betas[0]) * (g - m)
        v = v + (1 - self.betas[1]) * (g * g - v)
        return p - (lr * scalars[0]) * (m / (E.sqrt(v) + self.eps)), m, v
