"""SGD and Lion: a step along the gradient, and along its sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.optimizer import Group, Optimizer, Rate


class SGD(Optimizer):
    """v = momentum * v + (1 - dampening) * g;  p = p - lr * v

    With weight_decay, g has weight_decay * p added; with nesterov, p moves by g + momentum * v; with maximize, the
    other way. The first v is g. As torch.optim.SGD.
    """

    def __init__(self, lr: Rate = 1e-3, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        self.momentum, self.dampening, self.weight_decay = momentum, dampening, weight_decay
        self.nesterov, self.maximize = nesterov, maximize
        self.slots = ("momentum_buffer",) if momentum else ()
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("momentum", self.momentum)
        self.check("weight_decay", self.weight_decay)
        if self.nesterov and (not self.momentum or self.dampening):
            raise UserError("nesterov needs a momentum and no dampening", code="MLC0383", loc=user_loc())
        self.same_slots("momentum", "momentum_buffer", bool(self.momentum))

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        return (t == 1,) if self.dampening else ()

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.weight_decay else g
        if not self.momentum:
            return p - lr * g, *slots
        v = self.momentum * slots[0] + (1 - self.dampening) * g
        if self.dampening:
            v = E.where(scalars[0], g, v)
        return p - lr * (g + self.momentum * v if self.nesterov else v), v


class Lion(Optimizer):
    """p = p * (1 - lr * weight_decay) - lr * sign(lerp(g, m, beta1));  m = lerp(g, m, beta2)

    (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023.)
    """

    slots = ("exp_avg",)

    def __init__(self, lr: Rate = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0,
                 groups: Sequence[Group] = ()) -> None:
        self.betas, self.weight_decay = betas, weight_decay
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("betas[0]", self.betas[0], 1)
        self.check("betas[1]", self.betas[1], 1)
        self.check("weight_decay", self.weight_decay)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        m, = slots
        direction = E.sign(self.betas[0] * m + (1 - self.betas[0]) * g)
        return p * (1 - lr * self.weight_decay) - lr * direction, self.betas[1] * m + (1 - self.betas[1]) * g
