"""SGD and Lion: a step along the gradient, and along its sign."""

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


class SGD(Optimizer):
    """Stochastic gradient descent: p = p - lr * v, v = momentum * v + (1 - dampening) * g.

    The first v is g. With nesterov, p = p - lr * (g + momentum * v). (Momentum: Polyak 1964, "Some Methods of Speeding
    up the Convergence of Iteration Methods"; nesterov: Sutskever, Martens, Dahl and Hinton 2013, "On the Importance of
    Initialization and Momentum in Deep Learning".)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        momentum: Factor of the last v; without it, the state has no "momentum_buffer".
        dampening: Fraction of the gradient that does not enter v.
        weight_decay: Factor of p that is added to the gradient.
        nesterov: Whether to look ahead; needs a momentum and no dampening.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.
        fused: As in PyTorch, without effect.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.SGD(lr=0.1, momentum=0.9)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.9, -1.6], dtype=mlc.float32)
    """
    trains_complex = True

    flags = ("foreach", "differentiable", "fused")
    takes_sparse = True
    counts_updates = False
    dynamic_settings = ("momentum", "weight_decay")

    @after_parameters
    def __init__(self, lr: Rate = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        self.momentum, self.dampening, self.weight_decay = momentum, dampening, weight_decay
        self.nesterov, self.maximize = nesterov, maximize
        super().__init__(lr, groups)

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("momentum_buffer",) if self.enabled(self.momentum) else ()

    def validate(self) -> None:
        self.check("momentum", self.momentum)
        self.check("weight_decay", self.weight_decay)
        if self.nesterov and (not self.momentum or self.dampening):
            raise UserError("nesterov needs a momentum and no dampening", code="MLC0383", loc=user_loc(),
                            hint="SGD(..., momentum=0.9, nesterov=True)")

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        return (t == 1,) if self.dampening else ()

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.enabled(self.weight_decay) else g
        if not slots:
            return p - lr * g,
        v = self.momentum * slots[0] + (1 - self.dampening) * g
        if self.dampening:
            v = E.where(scalars[0], g, v)
        return p - lr * (g + self.momentum * v if self.nesterov else v), v


class ASGD(Optimizer):
    """SGD with averaging: p = p * (1 - lambd * eta) - eta * g, and ax = ax + mu * (p - ax), the averaged parameter.

    After that eta = lr / (1 + lambd * lr * t)**alpha and mu = 1 / max(1, t - t0), where t counts the updates from 1.
    (Polyak and Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging".)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        lambd: Rate at which parameters and eta decay.
        alpha: Exponent of the decay of eta.
        t0: Update from which on parameters are averaged; before it, ax is p.
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
        >>> opt = mlc.optim.ASGD(lr=0.1, lambd=0.0)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.9, -1.6], dtype=mlc.float32)
    """
    trains_complex = True

    flags = ("foreach", "capturable", "differentiable")
    slots = ("eta", "mu", "ax")
    dynamic_settings = ("weight_decay",)

    @after_parameters
    def __init__(self, lr: Rate = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0, maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        self.lambd, self.alpha, self.t0 = lambd, alpha, t0
        self.weight_decay, self.maximize = weight_decay, maximize
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("weight_decay", self.weight_decay)

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        first = E.cast_to(self.rate(self.lr, create.zeros(dtype="int64")), "float64")
        return create.zeros(dtype="float64") + first, create.ones(dtype="float64"), create.zeros_like(p)

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        return t.double(), 1 / E.maximum(t.double() - self.t0, 1.0)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        t, weight = scalars
        eta, mu, average = slots
        g = -g if self.maximize else g
        g = g + self.weight_decay * p if self.enabled(self.weight_decay) else g
        p = p * (1 - self.lambd * eta) - eta * g
        average = E.where(mu == 1, p, average + mu * (p - average))
        return p, lr / E.pow(1 + self.lambd * lr * t, self.alpha), weight, average


class Lion(Optimizer):
    """Lion: p = p * (1 - lr * weight_decay) - lr * sign(beta1 * m + (1 - beta1) * g).

    After that m = beta2 * m + (1 - beta2) * g. Steps are larger than those of Adam: take a 3 to 10 times smaller lr.
    (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2.)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        betas: Weights of m in the step and in its own update, each in [0, 1).
        weight_decay: Factor of lr * p that is subtracted from p.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.

    Raises:
        UserError: A setting is negative or unknown (MLC0383).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.Lion(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.9, -1.9], dtype=mlc.float32)
    """

    slots = ("exp_avg",)
    dynamic_settings = ("betas", "weight_decay")

    @after_parameters
    def __init__(self, lr: Rate = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0,
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
