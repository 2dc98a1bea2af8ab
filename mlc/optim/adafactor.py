"""Adafactor: adaptive steps whose second moments of a matrix are one factor per row and one per column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlc.frontend.element_types import finfo
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.optimizer import Group, Optimizer, Rate
from mlc.optim.parameter_groups import after_parameters


class Adafactor(Optimizer):
    """Adafactor: p = p - max(eps2, rms(p)) * min(lr, 1 / sqrt(t)) * u / max(1, rms(u) / d), u = g / sqrt(v).

    The second moment v of a parameter of two dimensions or more is row * column / mean(row), where row and column are
    moving averages of the means of g**2 over the last dimension and over the one before, with the weight t**beta2_decay
    of the new one; for other parameters v is the moving average of g**2 itself. (Shazeer and Stern 2018, "Adafactor:
    Adaptive Learning Rates with Sublinear Memory Cost", algorithms 4 and 5, with weight decay as in `AdamW`.)

    Args:
        lr: Upper bound of the relative learning rate: a number, a tensor of one element, or a schedule
            (`mlc.optim.schedules`).
        beta2_decay: Exponent of the weight of a new gradient, at most 0.
        eps: Lower bounds of sqrt(v) and of rms(p); None in the first place is the machine epsilon of the dtype.
        d: Threshold of rms(u) above which an update is clipped, at least 1.
        weight_decay: Factor of lr * p that is subtracted from p.
        maximize: Whether to go up the gradient.
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.
        foreach: As in PyTorch, without effect: all parameters are updated by one compiled function.

    Raises:
        UserError: A setting is out of range or unknown (MLC0383).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.Adafactor(lr=0.1)
        >>> w = mlc.tensor([1.0, -2.0])
        >>> state = opt.init(w)
        >>> w, state = opt.update(mlc.tensor([1.0, -4.0]), state, w)
        >>> w
        tensor([ 0.8418861, -1.8418862], dtype=mlc.float32)
    """

    flags = ("foreach",)
    slots = ("row_var", "col_var", "variance")
    dynamic_settings = ("weight_decay",)

    @after_parameters
    def __init__(self, lr: Rate = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
                 d: float = 1.0, weight_decay: float = 0.0, maximize: bool = False,
                 groups: Sequence[Group] = ()) -> None:
        self.beta2_decay, self.eps, self.d = beta2_decay, eps, d
        self.weight_decay, self.maximize = weight_decay, maximize
        super().__init__(lr, groups)

    def validate(self) -> None:
        self.check("-beta2_decay", -self.beta2_decay)
        self.check("eps[0]", 0.0 if self.eps[0] is None else self.eps[0])
        self.check("eps[1]", self.eps[1])
        self.check("weight_decay", self.weight_decay)
        if not self.d >= 1:
            raise UserError(f"d = {self.d}, expected at least 1", code="MLC0383", loc=user_loc())

    def slots_of(self, p: Tensor) -> tuple[str, ...]:
        return self.slots[:2] if p.ndim > 1 else self.slots[2:]

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        none = create.zeros((0,), dtype=p.dtype)
        if p.ndim > 1:
            rows, columns = (*p.shape[:-1], 1), (*p.shape[:-2], 1, p.shape[-1])
            return create.zeros(rows, dtype=p.dtype), create.zeros(columns, dtype=p.dtype), none
        return none, none, create.zeros_like(p)

    def scalars(self, t: Tensor) -> tuple[Any, ...]:
        number = t.double()
        return E.pow(number, self.beta2_decay), E.rsqrt(number)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        weight, slowest = scalars
        least, smallest = finfo(p.dtype).eps if self.eps[0] is None else self.eps[0], self.eps[1]
        g = -g if self.maximize else g
        size = E.maximum(_rms(p), smallest) * E.minimum(lr, slowest)
        p = p * (1 - lr * self.weight_decay) if self.enabled(self.weight_decay) else p
        rows, columns, v = slots
        if p.ndim > 1:
            rows = rows + weight * (R.mean(g * g, -1, True) - rows)
            columns = columns + weight * (R.mean(g * g, -2, True) - columns)
            moment = rows * columns / E.maximum(R.mean(rows, -2, True), least)
        else:
            moment = v = v + weight * (g * g - v)
        u = g * E.rsqrt(E.maximum(moment, least * least))
        return p - (size / E.maximum(_rms(u) / self.d, 1.0)) * u, rows, columns, v


def _rms(x: Tensor) -> Tensor:
    """Root of the mean of the squares."""
    return E.sqrt(R.sum(x * x)) / math.sqrt(math.prod(x.shape))
