"""RMSprop, Adagrad, Adadelta: a step for each number by the size of its own gradients. As in torch.optim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.tensor import Tensor
from mlc.optim.optimizer import Group, Optimizer, Rate


class RMSprop(Optimizer):
    """v = lerp(g ** 2, v, alpha);  p = p - lr * g / (sqrt(v) + eps)

    With centered, sqrt(v - a ** 2) where a = lerp(g, a, alpha); with momentum, p moves by lr * b where
    b = momentum * b + the quotient.
    """

    def __init__(self, lr: Rate = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
                 momentum: float = 0.0, centered: bool = False, maximize: bool = False,
                 groups: Sequence[Group] = ()) -> None:
        self.alpha, self.eps, self.weight_decay, self.momentum = alpha, eps, weight_decay, momentum
        self.centered, self.maximize = bool(centered), maximize
        self.slots = ("square_avg", *["grad_avg"] * self.centered, *["momentum_buffer"] * bool(momentum))
        super().__init__(lr, groups)

    def validate(self) -> None:
        for name in ("alpha", "eps", "weight_decay", "momentum"):
            self.check(name, getattr(self, name))
        self.same_slots("centered", "grad_avg", self.centered)
        self.same_slots("momentum", "momentum_buffer", bool(self.momentum))

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.weight_decay else g
        v = self.alpha * slots[0] + (1 - self.alpha) * (g * g)
        size, new = v, [v]
        if self.centered:
            new.append(slots[1] + (1 - self.alpha) * (g - slots[1]))
            size = v - new[1] * new[1]
        step = g / (E.sqrt(size) + self.eps)
        if self.momentum:
            step = self.momentum * slots[-1] + step
            new.append(step)
        return p - lr * step, *new


class Adagrad(Optimizer):
    """v = v + g ** 2;  p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(v) + eps)"""

    slots = ("sum",)

    def __init__(self, lr: Rate = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10, maximize: bool = False,
                 groups: Sequence[Group] = ()) -> None:
        self.lr_decay, self.weight_decay, self.eps, self.maximize = lr_decay, weight_decay, eps, maximize
        self.initial_accumulator_value = initial_accumulator_value
        super().__init__(lr, groups)

    def validate(self) -> None:
        for name in ("lr_decay", "weight_decay", "initial_accumulator_value", "eps"):
            self.check(name, getattr(self, name))

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        return create.full_like(p, self.initial_accumulator_value),

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        return 1 + (t.double() - 1) * self.lr_decay,

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.weight_decay else g
        v = slots[0] + g * g
        return p - (lr / scalars[0]) * (g / (E.sqrt(v) + self.eps)), v


class Adadelta(Optimizer):
    """v = lerp(g ** 2, v, rho);  d = sqrt(u + eps) / sqrt(v + eps) * g;  u = lerp(d ** 2, u, rho);  p = p - lr * d"""

    slots = ("square_avg", "acc_delta")

    def __init__(self, lr: Rate = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0,
                 maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        self.rho, self.eps, self.weight_decay, self.maximize = rho, eps, weight_decay, maximize
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("rho", self.rho, 1)
        self.check("eps", self.eps)
        self.check("weight_decay", self.weight_decay)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.weight_decay else g
        v = self.rho * slots[0] + (1 - self.rho) * (g * g)
        delta = E.sqrt(slots[1] + self.eps) / E.sqrt(v + self.eps) * g
        return p - lr * delta, v, self.rho * slots[1] + (1 - self.rho) * (delta * delta)
