"""RMSprop, Adagrad, Adadelta: a step for each number by the size of its own gradients. As in torch.optim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.tensor import Tensor
from mlc.optim.optimizer import Group, Optimizer, Rate
from mlc.optim.parameter_groups import after_parameters


class RMSprop(Optimizer):
    """RMSprop: p = p - lr * g / (sqrt(v) + eps), v = alpha * v + (1 - alpha) * g**2.

    With centered, v - a**2 stands in for v, where a = alpha * a + (1 - alpha) * g; with momentum, p = p - lr * b where
    b = momentum * b + g / (sqrt(v) + eps). (Hinton 2012, "Neural Networks for Machine Learning", lecture 6e; centered:
    Graves 2013, "Generating Sequences with Recurrent Neural Networks".)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        alpha: Decay rate of the averages.
        eps: Added to the denominator.
        weight_decay: Factor of p that is added to the gradient.
        momentum: Factor of the last step; without it, the state has no "momentum_buffer".
        centered: Whether the variance of the gradient is used; the state then has a slot "grad_avg".
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        capturable: As in PyTorch, without effect.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.RMSprop(lr=0.01)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.90000004, -1.9       ], dtype=mlc.float32)
    """

    takes_parts = True
    flags = ("foreach", "capturable", "differentiable")
    dynamic_settings = ("momentum", "weight_decay")

    @after_parameters
    def __init__(self, lr: Rate = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, maximize: bool = False,
                 groups: Sequence[Group] = ()) -> None:
        self.alpha, self.eps, self.weight_decay, self.momentum = alpha, eps, weight_decay, momentum
        self.centered, self.maximize = bool(centered), maximize
        super().__init__(lr, groups)

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("square_avg", *["grad_avg"] * self.centered, *["momentum_buffer"] * self.enabled(self.momentum))

    def validate(self) -> None:
        for name in ("alpha", "eps", "weight_decay", "momentum"):
            self.check(name, getattr(self, name))

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.enabled(self.weight_decay) else g
        v = self.alpha * slots[0] + (1 - self.alpha) * (g * g)
        size, new = v, [v]
        if self.centered:
            new.append(slots[1] + (1 - self.alpha) * (g - slots[1]))
            size = v - new[1] * new[1]
        step = g / (E.sqrt(size) + self.eps)
        if self.enabled(self.momentum):
            step = self.momentum * slots[-1] + step
            new.append(step)
        return p - lr * step, *new


class Adagrad(Optimizer):
    """Adagrad: p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(v) + eps), v = v + g**2.

    t counts the updates from 1. (Duchi, Hazan and Singer 2011, "Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization", with the diagonal of the matrix.)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        lr_decay: Rate at which the learning rate falls.
        weight_decay: Factor of p that is added to the gradient.
        initial_accumulator_value: v before the first update.
        eps: Added to the denominator.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.
        fused: As in PyTorch, without effect.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.Adagrad(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.9, -1.9], dtype=mlc.float32)
    """

    flags = ("foreach", "differentiable", "fused")
    takes_sparse = True
    slots = ("sum",)
    dynamic_settings = ("weight_decay",)

    @after_parameters
    def __init__(self, lr: Rate = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, maximize: bool = False,
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
        g = g + self.weight_decay * p if self.enabled(self.weight_decay) else g
        v = slots[0] + g * g
        return p - (lr / scalars[0]) * (g / (E.sqrt(v) + self.eps)), v


class Adadelta(Optimizer):
    """Adadelta: p = p - lr * d, d = sqrt(u + eps) / sqrt(v + eps) * g.

    v = rho * v + (1 - rho) * g**2 before, and u = rho * u + (1 - rho) * d**2 after it. (Zeiler 2012, "ADADELTA: An
    Adaptive Learning Rate Method", algorithm 1, which has no lr.)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        rho: Decay rate of the averages, in [0, 1).
        eps: Added under both roots.
        weight_decay: Factor of p that is added to the gradient.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        capturable: As in PyTorch, without effect.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.Adadelta()
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.99683774, -1.9968377 ], dtype=mlc.float32)
    """

    takes_parts = True
    flags = ("foreach", "capturable", "differentiable")
    slots = ("square_avg", "acc_delta")
    dynamic_settings = ("weight_decay",)

    @after_parameters
    def __init__(self, lr: Rate = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
                 maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        self.rho, self.eps, self.weight_decay, self.maximize = rho, eps, weight_decay, maximize
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("rho", self.rho, 1)
        self.check("eps", self.eps)
        self.check("weight_decay", self.weight_decay)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.enabled(self.weight_decay) else g
        v = self.rho * slots[0] + (1 - self.rho) * (g * g)
        delta = E.sqrt(slots[1] + self.eps) / E.sqrt(v + self.eps) * g
        return p - lr * delta, v, self.rho * slots[1] + (1 - self.rho) * (delta * delta)
