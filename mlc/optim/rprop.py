"""Rprop: steps whose sizes depend on the signs of gradients alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.optimizer import Group, Optimizer, Rate
from mlc.optim.parameter_groups import after_parameters


class Rprop(Optimizer):
    """Resilient backpropagation: p = p - s * sign(g), where s grows while g keeps its sign.

    s = s * etas[1] if g times the last g is positive, s * etas[0] if it is negative, within `step_sizes`. After a
    change of sign, g counts as 0 in this step and in the next. (Riedmiller and Braun 1993, "A Direct Adaptive Method
    for Faster Backpropagation Learning", in the variant that keeps the last step.)

    Args:
        lr: First step size: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        etas: Factors of the step size, the first in (0, 1), the second above 1.
        step_sizes: Bounds of the step size.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        capturable: As in PyTorch, without effect.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.

    Raises:
        UserError: A setting is out of range or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.Rprop(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> for _ in range(2):
        ...     w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.78, -1.78], dtype=mlc.float32)
    """

    flags = ("foreach", "capturable", "differentiable")
    slots = ("prev", "step_size")

    @after_parameters
    def __init__(self, lr: Rate = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), maximize: bool = False,
                 groups: Sequence[Group] = ()) -> None:
        self.etas, self.step_sizes, self.maximize = etas, step_sizes, maximize
        super().__init__(lr, groups)

    def validate(self) -> None:
        if not 0 < self.etas[0] < 1 < self.etas[1]:
            raise UserError(f"etas = {self.etas}, expected 0 < etas[0] < 1 < etas[1]", code="MLC0383", loc=user_loc())
        self.check("step_sizes[0]", self.step_sizes[0])
        self.check("step_sizes[1]", self.step_sizes[1])

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        first = self.rate(self.lr, create.zeros(dtype="int64"))
        return create.zeros_like(p), create.zeros_like(p) + E.cast_to(first, p.dtype)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        previous, size = slots
        g = -g if self.maximize else g
        agreement = g * previous
        factor = E.where(agreement > 0, self.etas[1], E.where(agreement < 0, self.etas[0], 1.0))
        size = E.clamp(size * factor, *self.step_sizes)
        g = E.where(agreement < 0, 0.0, g)
        return p - E.sign(g) * size, g, size
