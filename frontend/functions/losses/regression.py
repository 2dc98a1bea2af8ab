"""Losses of regression, and negative log-likelihoods of distributions."""

from __future__ import annotations

import math

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.operands import cast, reals, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of a loss, or each element of it."""
    if reduction == "mean":
        return R.mean(loss)
    if reduction == "sum":
        return R.sum(loss)
    if reduction != "none":
        raise UserError(f"reduction = {reduction!r}", code="MLC0360", hint='use "mean", "sum" or "none"')
    return loss


def weighted(loss: Tensor, weight: Operand, reduction: str, by_weights: bool = True) -> Tensor:
    """The losses times weights of their shape, reduced; "mean" divides by the sum of the weights, or by their number
    where `by_weights` is false."""
    if weight is None:
        return reduced(loss, reduction)
    a, b = of_same_shape(loss, weight)
    loss = a * b
    return R.sum(loss) / R.sum(b) if by_weights and reduction == "mean" else reduced(loss, reduction)


def of_same_shape(a: Operand, b: Operand, hint: str = "broadcast one of them first, if that is what is meant"
                  ) -> list[Tracer]:
    xs = together(a, b, floating=True)
    if xs[0].shape != xs[1].shape:
        shapes = " and ".join("[" + ", ".join(map(str, x.shape)) + "]" for x in xs)
        raise UserError(f"the input and the target have shapes {shapes}", code="MLC0367",
                        symbols=sizes.differing(xs[0].shape, xs[1].shape),
                        hint=hint)
    return xs


@operation(autocast="fp32")
def mse_loss(input: Operand, target: Operand, reduction: str = "mean", weight: Operand = None) -> Tensor:
    """(input - target) ** 2, the squared error, reduced.

    Unlike PyTorch's, it does not broadcast.

    Args:
        input: Tensor; integers become float32.
        target: Tensor of the shape of `input`.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        weight: Factor of each loss, of the same shape; "mean" is the sum over that of the weights then. None for 1.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes differ (MLC0367).

    Example:
        >>> nn.functional.mse_loss(mlc.tensor([1.0, 2.0]), mlc.tensor([1.5, 4.0]))
        tensor(2.125, dtype=mlc.float32)
    """
    a, b = reals(*of_same_shape(input, target))
    return weighted(E.square(a - b), weight, reduction)


@operation(autocast="fp32")
def l1_loss(input: Operand, target: Operand, reduction: str = "mean", weight: Operand = None) -> Tensor:
    """|input - target|, the absolute error, reduced.

    Unlike PyTorch's, it does not broadcast.

    Args:
        input: Tensor; integers become float32.
        target: Tensor of the shape of `input`.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        weight: Factor of each loss, of the same shape; "mean" is the sum over that of the weights then. None for 1.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes differ (MLC0367).

    Example:
        >>> nn.functional.l1_loss(mlc.tensor([1.0, 2.0]), mlc.tensor([1.5, 4.0]))
        tensor(1.25, dtype=mlc.float32)
    """
    a, b = of_same_shape(input, target)
    return weighted(E.abs(a - b), weight, reduction)


@operation(autocast="fp32")
def huber_loss(input: Operand, target: Operand, reduction: str = "mean", delta: float = 1.0,
               weight: Operand = None) -> Tensor:
    """d ** 2 / 2 where d = |input - target| <= delta, delta * (d - delta / 2) elsewhere, reduced (Huber 1964).

    Args:
        input: Tensor; integers become float32.
        target: Tensor of the shape of `input`.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        delta: Where the loss changes from quadratic to linear.
        weight: Factor of each loss, of the same shape; "mean" is the mean of the weighted losses then. None for 1.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), the shapes differ (MLC0367), or `delta` is not positive
            (MLC0360).

    Example:
        >>> nn.functional.huber_loss(mlc.tensor([1.0, 2.0]), mlc.tensor([1.5, 4.0]))
        tensor(0.8125, dtype=mlc.float32)
    """
    if not delta > 0:
        raise UserError(f"delta = {delta}, expected more than 0", code="MLC0360")
    a, b = of_same_shape(input, target)
    d = E.abs(a - b)
    near = E.where(d <= delta, d, 0.0)                     # whose square is finite, as its derivative has to be
    return weighted(E.where(d <= delta, 0.5 * near * near, delta * (d - 0.5 * delta)), weight, reduction, False)


@operation(autocast="fp32")
def smooth_l1_loss(input: Operand, target: Operand, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d ** 2 / (2 beta) where d = |input - target| < beta, d - beta / 2 elsewhere, reduced (Girshick 2015).

    Args:
        input: Tensor; integers become float32.
        target: Tensor of the shape of `input`.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        beta: Where the loss changes from quadratic to linear; 0 for `l1_loss`.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), the shapes differ (MLC0367), or `beta` is negative
            (MLC0360).

    Example:
        >>> nn.functional.smooth_l1_loss(mlc.tensor([1.0, 2.0]), mlc.tensor([1.5, 4.0]))
        tensor(0.8125, dtype=mlc.float32)
    """
    if not beta >= 0:
        raise UserError(f"beta = {beta}, expected at least 0", code="MLC0360")
    a, b = of_same_shape(input, target)
    d = E.abs(a - b)
    near = E.where(d < beta, d, 0.0)
    return reduced(d if beta == 0 else E.where(d < beta, 0.5 * near * near / beta, d - 0.5 * beta), reduction)


@operation(autocast="fp32")
def kl_div(input: Operand, target: Operand, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (ln(target) - input), the pointwise Kullback-Leibler divergence, reduced.

    The divergence itself is the sum for each sample: use "batchmean".

    Args:
        input: Log probabilities.
        target: Probabilities, or log probabilities with `log_target`; both broadcast.
        reduction: "mean" or "sum" of the losses, "batchmean" for the sum divided by the first size, or "none".
        log_target: Whether `target` holds logarithms.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.kl_div(mlc.tensor([-1.0, -0.5]), mlc.tensor([0.5, 0.5]), reduction="sum")
        tensor(0.05685282, dtype=mlc.float32)
    """
    x, t = reals(input, target)
    loss = E.exp(t) * (t - x) if log_target else E.xlogy(t, t) - t * x
    if reduction == "batchmean":
        rows = tracer(loss).shape[:1] or (1,)
        return R.sum(loss) / E.count(rows[0], x)
    return reduced(loss, reduction)


@operation(autocast="fp32")
def poisson_nll_loss(input: Operand, target: Operand, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:
    """e ** input - target * input, the negative log-likelihood of Poisson's distribution, reduced.

    Args:
        input: Tensor; integers become float32.
        target: Tensor; both broadcast.
        log_input: Whether `input` is the logarithm of the rate; otherwise the loss is input - target * ln(input + eps).
        full: Whether to add Stirling's approximation of ln(target!) where target > 1.
        eps: Added to the rate.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.poisson_nll_loss(mlc.tensor([0.0, 1.0]), mlc.tensor([1.0, 3.0]))
        tensor(0.35914087, dtype=mlc.float32)
    """
    x, t = reals(input, target)
    loss = E.exp(x) - t * x if log_input else x - t * E.log(x + eps)
    if full:
        stirling = t * E.log(E.where(t > 1, t, 1.0)) - t + 0.5 * E.log(2 * math.pi * E.where(t > 1, t, 1.0))
        loss = loss + E.where(t > 1, stirling, 0.0)
    return reduced(loss, reduction)


@operation()
def gaussian_nll_loss(input: Operand, target: Operand, var: Operand, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """(ln(var) + (input - target) ** 2 / var) / 2, the negative log-likelihood of normal distributions, reduced.

    Args:
        input: Means.
        target: Samples; both broadcast.
        var: Variances, of the shape of `input`, or without its last dimension.
        full: Whether to add ln(2 pi) / 2.
        eps: Least variance; where it takes effect, derivatives pass as if it did not.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.gaussian_nll_loss(mlc.tensor([0.0, 1.0]), mlc.tensor([1.0, 3.0]), mlc.ones(2))
        tensor(1.25, dtype=mlc.float32)
    """
    x, t = reals(input, target)
    v = cast(tracer(var), x.type.dtype)
    if v.ndim == x.ndim - 1:
        v = reshape(v, [*v.shape, 1])
    v = tracer(v + E.detach(E.maximum(v, eps) - v))        # the derivative passes as if var were not clamped
    loss = 0.5 * (E.log(v) + E.square(x - t) / v)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)
