"""Muon: momentum whose matrix is replaced by a nearly orthogonal one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.contract import matmul
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.optimizer import Group, Optimizer, Rate
from mlc.optim.parameter_groups import after_parameters

_ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    """Momentum orthogonalized by Newton-Schulz: p = p * (1 - lr * weight_decay) - c * lr * orthogonal(m).

    m = momentum * m + (1 - momentum) * g; with nesterov, momentum * m + (1 - momentum) * g of the new m stands in for
    m. Each of `ns_steps` iterations is X = a * X + (b * X @ X.T + c * (X @ X.T)**2) @ X in bfloat16, from X = m /
    norm(m). Parameters are matrices; others are trained by another optimizer. (Jordan et al. 2024, "Muon: An optimizer
    for hidden layers in neural networks"; "match_rms_adamw": Liu et al. 2025, "Muon is Scalable for LLM Training".)

    Args:
        lr: Learning rate: a number, a tensor of one element, or a schedule (`mlc.optim.schedules`).
        weight_decay: Factor of lr * p that is subtracted from p.
        momentum: Decay rate of the moving average m.
        nesterov: Whether to look ahead.
        ns_coefficients: The numbers a, b and c.
        eps: Lower bound of norm(m).
        ns_steps: Number of iterations, below 100.
        adjust_lr_fn: What c is for a matrix of shape [A, B]: "original" or None for sqrt(max(1, A / B)),
            "match_rms_adamw" for 0.2 * sqrt(max(A, B)).
        groups: Pairs (predicate of a parameter's name, dict of settings that differ); the first that fits counts.

    Raises:
        UserError: A setting is out of range or unknown (MLC0383), or a parameter is no matrix (MLC0378).
        UserTypeError: `lr` is no learning rate, such as a list of parameters (MLC0383).

    Example:
        >>> opt = mlc.optim.Muon(lr=0.1)
        >>> w = mlc.ones(2, 2)
        >>> w, state = opt.update(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]), opt.init(w), w)
        >>> bool(w[0, 0] < w[0, 1]), list(state)
        (True, ['step', 'momentum_buffer'])
    """

    counts_updates = False
    slots = ("momentum_buffer",)
    dynamic_settings = ("weight_decay",)

    @after_parameters
    def __init__(self, lr: Rate = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
                 ns_steps: int = 5, adjust_lr_fn: str | None = None, groups: Sequence[Group] = ()) -> None:
        self.weight_decay, self.momentum, self.nesterov = weight_decay, momentum, nesterov
        self.ns_coefficients, self.eps, self.ns_steps = ns_coefficients, eps, ns_steps
        self.adjust_lr_fn = adjust_lr_fn
        super().__init__(lr, groups)

    def validate(self) -> None:
        for name in ("weight_decay", "momentum", "eps"):
            self.check(name, getattr(self, name))
        self.check("ns_steps", self.ns_steps, 100)
        if self.adjust_lr_fn not in _ADJUSTMENTS:
            raise UserError(f"adjust_lr_fn = {self.adjust_lr_fn!r}", code="MLC0383", loc=user_loc(),
                            hint='use "original" or "match_rms_adamw"')

    def check_parameter(self, p: Tensor) -> None:
        if p.ndim != 2:
            raise UserError(f"Muon trains matrices, and a parameter has shape {list(p.shape)}", code="MLC0378",
                            loc=user_loc(), hint="train the others by another optimizer: "
                                                 "AdamW([p for p in model.parameters() if p.ndim != 2])")

    def fresh(self, p: Tensor) -> tuple[Tensor, ...]:
        self.check_parameter(p)
        return super().fresh(p)

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        m = slots[0] + (1 - self.momentum) * (g - slots[0])
        direction = self._orthogonal(g + self.momentum * (m - g) if self.nesterov else m)
        rows, columns = p.shape
        ratio = 0.2 * math.sqrt(max(rows, columns)) if self.adjust_lr_fn == "match_rms_adamw" else math.sqrt(
            max(1.0, rows / columns))
        p = p * (1 - lr * self.weight_decay) if self.enabled(self.weight_decay) else p
        return p - (lr * ratio) * direction.to(p.dtype), m

    def _orthogonal(self, m: Tensor) -> Tensor:
        """A matrix of the singular vectors of m, with singular values near 1."""
        a, b, c = self.ns_coefficients
        tall = m.shape[0] > m.shape[1]
        x = _rounded(m.T if tall else m)
        x = _rounded(x / E.maximum(_rounded(R.norm(x)), self.eps))
        for _ in range(self.ns_steps):
            gram = _rounded(matmul(x, x.T))
            x = _rounded(a * x + matmul(_rounded(b * gram + c * matmul(gram, gram)), x))
        return x.T if tall else x


def _rounded(x: Tensor) -> Tensor:
    """A matrix of float32 that are numbers of bfloat16, so that each sum of products is rounded once."""
    return E.cast_to(E.cast_to(x, "bfloat16"), "float32")
