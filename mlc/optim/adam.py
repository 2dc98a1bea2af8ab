"""Adam and its relatives: moving averages of the gradient and of its square, corrected for starting at 0.

As the optimisers of these names in torch.optim. Powers of beta are float64, as Python's are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.tensor import Tensor
from mlc.optim.optimizer import Group, Optimizer, Rate
from mlc.optim.parameter_groups import after_parameters


class _Adaptive(Optimizer):
    """Settings that all of them have."""

    slots: tuple[str, ...] = ("exp_avg", "exp_avg_sq")
    dynamic_settings = ("betas", "weight_decay")

    flags: tuple[str, ...] = ("foreach", "capturable", "differentiable")
    decoupled_weight_decay = False

    def __init__(self, lr: Rate, betas: tuple[float, float], eps: float, weight_decay: float, maximize: bool,
                 groups: Sequence[Group]) -> None:
        self.betas, self.eps, self.weight_decay, self.maximize = betas, eps, weight_decay, maximize
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("betas[0]", self.betas[0], 1)
        self.check("betas[1]", self.betas[1], 1)
        self.check("eps", self.eps)
        self.check("weight_decay", self.weight_decay)

    def decayed(self, p: Tensor, g: Tensor, lr: Any) -> tuple[Tensor, Tensor]:
        """(parameter, gradient) with the weight decay in one of them."""
        g = -g if self.maximize else g
        if not self.enabled(self.weight_decay):
            return p, g
        return (p * (1 - lr * self.weight_decay), g) if self.decoupled_weight_decay else (p, g + self.weight_decay * p)

    def averages(self, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        beta1, beta2 = self.betas
        return m + (1 - beta1) * (g - m), v * beta2 + (1 - beta2) * (g * g)


class Adam(_Adaptive):
    """Adam: p = p - lr * m' / (sqrt(v') + eps), with moving averages of the gradient and of its square.

    m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g**2; m' = m / (1 - beta1**t); v' = v / (1 -
    beta2**t), where t counts the updates from 1. With amsgrad, v is its largest value so far. (Kingma and Ba 2015,
    "Adam", algorithm 1; amsgrad: Reddi, Kale and Kumar 2018, "On the Convergence of Adam and Beyond", algorithm 2.)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        betas: Decay rates of the two moving averages, each in [0, 1).
        eps: Added to the denominator.
        weight_decay: Factor of p that is added to the gradient or, if decoupled, of lr * p that is subtracted from p.
        amsgrad: Whether the largest v so far is used; the state has a third slot, "max_exp_avg_sq".
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        decoupled_weight_decay: Whether the weight decay is that of `AdamW`.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        capturable: As in PyTorch, without effect.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.
        fused: As in PyTorch, without effect.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.Adam(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.9, -1.9], dtype=mlc.float32)
    """

    takes_parts = True
    flags = ("foreach", "capturable", "differentiable", "fused")

    @after_parameters
    def __init__(self, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, maximize: bool = False,
                 groups: Sequence[Group] = (), decoupled_weight_decay: bool = False) -> None:
        self.amsgrad, self.decoupled_weight_decay = amsgrad, decoupled_weight_decay
        super().__init__(lr, betas, eps, weight_decay, maximize, groups)

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * bool(self.amsgrad))

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        first, second = corrections(self.betas, t)
        return first, E.rsqrt(second)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        first, scale = scalars
        p, g = self.decayed(p, g, lr)
        m, v = self.averages(g, *slots[:2])
        largest = (E.maximum(slots[2], v),) if self.amsgrad else ()
        size = E.sqrt(largest[0] if largest else v) * scale + self.eps
        return p - (lr / first) * (m / size), m, v, *largest


class AdamW(Adam):
    """Adam with decoupled weight decay: p = p * (1 - lr * weight_decay) - lr * m' / (sqrt(v') + eps), as in `Adam`.

    (Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2 with lr in both terms, as in
    PyTorch.)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        betas: Decay rates of the two moving averages, each in [0, 1).
        eps: Added to the denominator.
        weight_decay: Factor of lr * p that is subtracted from p.
        amsgrad: Whether the largest v so far is used; the state has a third slot, "max_exp_avg_sq".
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        capturable: As in PyTorch, without effect.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.
        fused: As in PyTorch, without effect.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.AdamW(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.899, -1.898], dtype=mlc.float32)
    """

    @after_parameters
    def __init__(self, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, maximize: bool = False,
                 groups: Sequence[Group] = ()) -> None:
        super().__init__(lr, betas, eps, weight_decay, amsgrad, maximize, groups, decoupled_weight_decay=True)


class Adamax(_Adaptive):
    """Adam with the infinity norm: p = p - lr / (1 - beta1**t) * m / u, u = max(beta2 * u, |g| + eps).

    m = beta1 * m + (1 - beta1) * g. (Kingma and Ba 2015, "Adam", algorithm 2, which has no eps.)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        betas: Decay rates of the moving average and of the norm, each in [0, 1).
        eps: Added to the magnitude of the gradient.
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
        >>> opt = mlc.optim.Adamax(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.9, -1.9], dtype=mlc.float32)
    """

    takes_parts = True
    slots = ("exp_avg", "exp_inf")

    @after_parameters
    def __init__(self, lr: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        super().__init__(lr, betas, eps, weight_decay, maximize, groups)

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        return corrections(self.betas, t)[:1]

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        p, g = self.decayed(p, g, lr)
        m = slots[0] + (1 - self.betas[0]) * (g - slots[0])
        u = E.maximum(slots[1] * self.betas[1], E.abs(g) + self.eps)
        return p - (lr / scalars[0]) * (m / u), m, u


class NAdam(_Adaptive):
    """Adam with Nesterov momentum: p = p - lr * (a * g + b * m) / (sqrt(v') + eps), with m, v and v' as in `Adam`.

    mu(t) = beta1 * (1 - 0.96**(t * momentum_decay) / 2), a = (1 - mu(t)) / (1 - mu(1) ... mu(t)) and b = mu(t + 1) / (1
    - mu(1) ... mu(t + 1)). (Dozat 2016, "Incorporating Nesterov Momentum into Adam".)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        betas: Decay rates of the two moving averages, each in [0, 1).
        eps: Added to the denominator.
        weight_decay: Factor of p that is added to the gradient or, if decoupled, of lr * p that is subtracted from p.
        momentum_decay: Rate at which the momentum grows to beta1.
        decoupled_weight_decay: Whether the weight decay is that of `AdamW`.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        capturable: As in PyTorch, without effect.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.NAdam(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.8943548, -1.8943548], dtype=mlc.float32)
    """

    slots = ("exp_avg", "exp_avg_sq", "mu_product")

    @after_parameters
    def __init__(self, lr: Rate = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False,
                 maximize: bool = False, groups: Sequence[Group] = ()) -> None:
        self.momentum_decay, self.decoupled_weight_decay = momentum_decay, decoupled_weight_decay
        super().__init__(lr, betas, eps, weight_decay, maximize, groups)

    def validate(self) -> None:
        super().validate()
        self.check("momentum_decay", self.momentum_decay)

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        return create.zeros_like(p), create.zeros_like(p), create.ones(dtype="float64")

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        now, following = (self.betas[0] * (1 - 0.5 * E.pow(0.96, x.double() * self.momentum_decay))
                          for x in (t, t + 1))
        return now, following, E.rsqrt(corrections(self.betas, t)[1])

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        now, following, scale = scalars
        p, g = self.decayed(p, g, lr)
        m, v = self.averages(g, *slots[:2])
        product = slots[2] * now
        size = E.sqrt(v) * scale + self.eps
        p = p - (lr * (1 - now) / (1 - product)) * (g / size)
        return p - (lr * following / (1 - product * following)) * (m / size), m, v, product


class RAdam(_Adaptive):
    """Adam with a rectified step: p = p - lr * m' * r / (sqrt(v') + eps) once rho > 5, before that p - lr * m'.

    m' and v' are those of `Adam`; rho_inf = 2 / (1 - beta2) - 1, rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t) and
    r = sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)). As in PyTorch, eps is added
    before the correction of v. (Liu et al. 2020, "On the Variance of the Adaptive Learning Rate and Beyond", algorithm
    2.)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        betas: Decay rates of the two moving averages, each in [0, 1).
        eps: Added to the denominator.
        weight_decay: Factor of p that is added to the gradient or, if decoupled, of lr * p that is subtracted from p.
        decoupled_weight_decay: Whether the weight decay is that of `AdamW`.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.
        capturable: As in PyTorch, without effect.
        differentiable: As in PyTorch, and not supported: `update` is the form that has derivatives.

    Raises:
        UserError: A setting is negative or unknown (MLC0383), or a flag is not supported (MLC0780).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.RAdam(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.9, -1.6], dtype=mlc.float32)
    """

    takes_parts = True

    @after_parameters
    def __init__(self, lr: Rate = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, maximize: bool = False,
                 groups: Sequence[Group] = ()) -> None:
        self.decoupled_weight_decay = decoupled_weight_decay
        super().__init__(lr, betas, eps, weight_decay, maximize, groups)

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        first, second = corrections(self.betas, t)
        limit = 2 / (1 - self.betas[1]) - 1
        rho = limit - 2 * t.double() * (1 - second) / second
        certain = rho > 5
        safe = E.where(certain, rho, 6.0)
        rectified = E.sqrt((safe - 4) * (safe - 2) * limit / ((limit - 4) * (limit - 2) * safe))
        return first, certain, rectified * E.sqrt(second)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        first, certain, scale = scalars
        p, g = self.decayed(p, g, lr)
        m, v = self.averages(g, *slots)
        return p - (lr / first) * m * E.where(certain, scale / (E.sqrt(v) + self.eps), 1.0), m, v


def corrections(betas: tuple[float, float], t: Tensor) -> tuple[Tensor, Tensor]:
    """Bias corrections 1 - beta**t of both averages: the total weight of t updates of one that began at 0.

    Args:
        betas: The two decay rates.
        t: Number of updates, an int64 tensor of no dimensions.

    Returns:
        Two float64 tensors of no dimensions.

    Example:
        >>> mlc.optim.adam.corrections((0.5, 0.75), mlc.tensor(2))
        (tensor(0.75, dtype=mlc.float64), tensor(0.4375, dtype=mlc.float64))
    """
    first, second = (1 - E.pow(beta, t.double()) for beta in betas)
    return first, second
