"""Numbers of the standard gamma distribution, with the gradient with respect to its parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlc
from mlc.frontend.autograd.custom_function import Function
from mlc.frontend.tensor import Tensor

_LARGE = 100.0
"""From this concentration on, the cube of a normal variable is close enough to differentiate it instead."""


class _StandardGamma(Function):
    """x with the density x**(a - 1) * exp(-x) / gamma(a); its derivative is -(dF / da) / (dF / dx), as F(x, a) stays.

    (Marsaglia and Tsang 2000, "A Simple Method for Generating Gamma Variables"; Figurnov, Mohamed and Mnih 2018,
    "Implicit Reparameterization Gradients".)
    """

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        a = concentration.detach()
        drawn = _drawn(a)
        ctx.save_for_backward(a, drawn)
        return drawn

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        a, x = ctx.saved_tensors
        found = derivative(np.asarray(x.cpu().numpy(), np.float64), np.asarray(a.cpu().numpy(), np.float64))
        return gradient * mlc.tensor(found).to(a.dtype).to(a.device)


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draw a number for each concentration.

    Args:
        concentration: Positive parameters.

    Returns:
        Tensor of the same shape.
    """
    out: Tensor = _StandardGamma.apply(concentration)
    return out


def _drawn(a: Tensor) -> Tensor:
    """Numbers by rejection: those that are not accepted are drawn again."""
    boosted = mlc.where(a < 1, a + 1, a)
    d = boosted - 1 / 3
    c = 1 / mlc.sqrt(9 * d)
    drawn, pending = mlc.zeros_like(a), mlc.ones_like(a, dtype=mlc.bool)
    while bool(pending.any()):
        x, u = mlc.randn(*a.shape, dtype=a.dtype), 1 - mlc.rand(*a.shape, dtype=a.dtype)
        v = (1 + c * x) ** 3
        positive = v > 0
        bound = 0.5 * x * x + d - d * v + d * mlc.log(mlc.where(positive, v, 1.0))
        accepted = pending & positive & (mlc.log(u) < bound)
        drawn = mlc.where(accepted, d * v, drawn)
        pending = pending & ~accepted
    u = 1 - mlc.rand(*a.shape, dtype=a.dtype)
    return mlc.where(a < 1, drawn * u ** (1 / a), drawn)  # type: ignore[no-any-return]


def derivative(x: Any, a: Any) -> Any:
    """The derivative of a number of the standard gamma distribution with respect to its concentration.

    F(x, a) is the sum of x**(a + n) * exp(-x) / gamma(a + n + 1) over all n from 0, so that dF / da is that of each
    term times (log(x) - digamma(a + n + 1)); it is divided by the density x**(a - 1) * exp(-x) / gamma(a).

    Args:
        x: The numbers, a numpy array.
        a: The concentrations, of the same shape.

    Returns:
        Array of the same shape.
    """
    x = np.maximum(x, np.finfo(np.float64).tiny)
    small_a, small_x = np.minimum(a, _LARGE), np.where(a < _LARGE, x, _LARGE)
    digamma, log_x = _digamma(small_a + 1), np.log(small_x)
    term = small_x / small_a                               # over the density
    total = term * (log_x - digamma)
    for n in range(1, 1000):
        term = term * (small_x / (small_a + n))
        digamma = digamma + 1 / (small_a + n)
        added = term * (log_x - digamma)
        total = total + added
        if np.all((small_a + n > small_x) & (np.abs(added) <= 1e-14 * np.abs(total) + 1e-300)):
            break
    root = np.cbrt(x / a)                                  # x = a * (1 - 1 / (9 a) + z / (3 sqrt(a)))**3 for a normal z
    z = 3 * np.sqrt(a) * (root - 1 + 1 / (9 * a))
    wide = root ** 3 + 3 * a * root ** 2 * (1 / (9 * a * a) - z / (6 * a * np.sqrt(a)))
    return np.where(a < _LARGE, -total, wide)


def _digamma(x: Any) -> Any:
    return np.asarray(mlc.digamma(mlc.tensor(x)).numpy())
