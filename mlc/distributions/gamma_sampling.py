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
    """x with the density x**(a - 1) * exp(-x) / gamma(a), times a number that a whole row may have.

    The derivative of log(x) is -(dF / da) / (x * dF / dx), as F(x, a) stays. (Marsaglia and Tsang 2000, "A Simple
    Method for Generating Gamma Variables"; Figurnov, Mohamed and Mnih 2018, "Implicit Reparameterization Gradients".)
    """

    @staticmethod
    def forward(ctx: Any, concentration: Tensor, in_rows: bool) -> Tensor:
        a = concentration.detach()
        wide = a.double() if a.dtype.itemsize == 8 else a.float()      # 16 bits are too few for a logarithm
        factor, shift = _drawn(wide)
        common = mlc.amax(shift, -1, keepdim=True) if in_rows else 0.0
        drawn = (factor * mlc.exp(shift - common)).to(a.dtype)
        ctx.save_for_backward(wide, mlc.log(factor) + shift, drawn)
        return drawn if in_rows else drawn.clamp(min=mlc.finfo(a.dtype).tiny)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        a, log_x, drawn = ctx.saved_tensors
        found = _derivative_of_log(*(np.asarray(x.cpu().numpy(), np.float64) for x in (log_x, a)))
        return gradient * drawn * mlc.tensor(found).to(drawn.dtype).to(a.device), None


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draw a number of the standard gamma distribution for each concentration.

    Args:
        concentration: Positive parameters.

    Returns:
        Tensor of the same shape, of positive numbers.
    """
    out: Tensor = _StandardGamma.apply(concentration, False)
    return out


def gamma_proportions(concentration: Tensor) -> Tensor:
    """Draw numbers in proportion to those of the standard gamma distribution, along the last dimension.

    Where all concentrations of a row are small, so are all its numbers: for 0.01 half of them are below 1e-30. These
    are scaled so that the greatest can be represented.

    Args:
        concentration: Positive parameters.

    Returns:
        Tensor of the same shape.
    """
    out: Tensor = _StandardGamma.apply(concentration, True)
    return out


def _drawn(a: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of concentrations of at least 1, and logarithms of what they have to be multiplied with.

    Those that are not accepted are drawn again; a number of a + 1 times u**(1 / a) is one of a.
    """
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
    return drawn, mlc.where(a < 1, mlc.log(1 - mlc.rand(*a.shape, dtype=a.dtype)) / a, 0.0)


def derivative(x: Any, a: Any) -> Any:
    """The derivative of a number of the standard gamma distribution with respect to its concentration.

    Args:
        x: The numbers, a numpy array.
        a: The concentrations, of the same shape.

    Returns:
        Array of the same shape.
    """
    return x * _derivative_of_log(np.log(np.maximum(x, np.finfo(np.float64).tiny)), a)


def _derivative_of_log(log_x: Any, a: Any) -> Any:
    """The derivative of log(x) with respect to the concentration.

    F(x, a) is the sum of x**(a + n) * exp(-x) / gamma(a + n + 1) over all n from 0, so that dF / da is that of each
    term times (log(x) - digamma(a + n + 1)); it is divided by x times the density, x**a * exp(-x) / gamma(a).
    """
    small_a, small_log = np.minimum(a, _LARGE), np.where(a < _LARGE, log_x, np.log(_LARGE))
    digamma, small_x = _digamma(small_a + 1), np.exp(small_log)
    term = 1 / small_a
    total = term * (small_log - digamma)
    for n in range(1, 1000):
        term = term * (small_x / (small_a + n))
        digamma = digamma + 1 / (small_a + n)
        added = term * (small_log - digamma)
        total = total + added
        if np.all((small_a + n > small_x) & (np.abs(added) <= 1e-14 * np.abs(total) + 1e-300)):
            break
    x = np.exp(np.where(a < _LARGE, 0.0, log_x))
    root = np.cbrt(x / a)                                  # x = a * (1 - 1 / (9 a) + z / (3 sqrt(a)))**3 for a normal z
    z = 3 * np.sqrt(a) * (root - 1 + 1 / (9 * a))
    wide = root ** 3 + 3 * a * root ** 2 * (1 / (9 * a * a) - z / (6 * a * np.sqrt(a)))
    return np.where(a < _LARGE, -total, wide / x)


def _digamma(x: Any) -> Any:
    return np.asarray(mlc.digamma(mlc.tensor(x)).numpy())
