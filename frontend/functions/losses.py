"""Losses, under the names of torch.nn.functional. Each reduces to its mean unless told otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import neural as N
from mlc.frontend.functions import reduce as R
from mlc.frontend.operands import cast, floating, integer, need, plain_int, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir.diag import UserError
from mlc.ir.types import f32, i64


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of a loss, or each element of it."""
    if reduction == "mean":
        return R.mean(loss)
    if reduction == "sum":
        return R.sum(loss)
    if reduction != "none":
        raise UserError(f"reduction = {reduction!r}", code="MLC0360", hint='use "mean", "sum" or "none"')
    return loss


def _same_shape(a: Operand, b: Operand) -> list[Tracer]:
    xs = together(a, b, floating=True)
    if xs[0].shape != xs[1].shape:
        shapes = " and ".join("[" + ", ".join(map(str, x.shape)) + "]" for x in xs)
        raise UserError(f"the input and the target have shapes {shapes}", code="MLC0367",
                        hint="broadcast one of them first, if that is what is meant")
    return xs


@operation()
def mse_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """(input - target) ** 2, the squared error, reduced.

    Unlike PyTorch's, it does not broadcast.

    Args:
        input: Tensor; integers become float32.
        target: Tensor of the shape of `input`.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes differ (MLC0367).

    Example:
        >>> nn.functional.mse_loss(mlc.tensor([1.0, 2.0]), mlc.tensor([1.5, 4.0]))
        tensor(2.125, dtype=mlc.float32)
    """
    a, b = _same_shape(input, target)
    return reduced(E.square(a - b), reduction)


@operation()
def l1_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """|input - target|, the absolute error, reduced.

    Unlike PyTorch's, it does not broadcast.

    Args:
        input: Tensor; integers become float32.
        target: Tensor of the shape of `input`.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes differ (MLC0367).

    Example:
        >>> nn.functional.l1_loss(mlc.tensor([1.0, 2.0]), mlc.tensor([1.5, 4.0]))
        tensor(1.25, dtype=mlc.float32)
    """
    a, b = _same_shape(input, target)
    return reduced(E.abs(a - b), reduction)


@operation()
def huber_loss(input: Operand, target: Operand, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d ** 2 / 2 where d = |input - target| <= delta, delta * (d - delta / 2) elsewhere, reduced (Huber 1964).

    Args:
        input: Tensor; integers become float32.
        target: Tensor of the shape of `input`.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        delta: Where the loss changes from quadratic to linear.

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
    a, b = _same_shape(input, target)
    d = E.abs(a - b)
    return reduced(E.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


@operation()
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
    a, b = _same_shape(input, target)
    d = E.abs(a - b)
    return reduced(d if beta == 0 else E.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), reduction)


def _classes(x: Tracer, target: Tracer, name: str) -> int:
    """The axis of the classes: 1, or 0 for one sample; the target has the other dimensions."""
    at = 0 if x.ndim == 1 else 1
    rest = x.shape[:at] + x.shape[at + 1:]
    if not x.ndim or target.shape != rest:
        raise UserError(f"the target has shape [{', '.join(map(str, target.shape))}], expected "
                        f"[{', '.join(map(str, rest))}]: one class for each sample", code="MLC0367")
    return at


@operation()
def cross_entropy(input: Operand, target: Operand, weight: Operand = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """-ln(softmax(input)[target]), the cross-entropy of classes, reduced.

    The mean of class targets is weighted: sum of losses / sum of weights of the targets; NaN if all are ignored.

    Args:
        input: Logits of shape (n, classes, ...), or (classes,) for one sample; integers become float32.
        target: Classes, integers of shape (n, ...), or probabilities, floats of the shape of `input`.
        weight: Tensor of one number for each class; None for 1.
        ignore_index: A target that does not count, nor gets a gradient.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        label_smoothing: Part of each target that is spread evenly over all classes (Szegedy et al. 2016).

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), shapes do not fit (MLC0367), `label_smoothing` is not in [0,
            1] (MLC0360), or a class is out of range (MLC0340, an IndexError).

    Example:
        >>> nn.functional.cross_entropy(mlc.tensor([[2.0, 0.0], [0.0, 2.0]]), mlc.tensor([0, 1]))
        tensor(0.12692805, dtype=mlc.float32)
    """
    x, t = floating(input), tracer(target)
    if not 0 <= label_smoothing <= 1:
        raise UserError(f"label_smoothing = {label_smoothing}, expected a number from 0 to 1", code="MLC0360")
    if t.type.dtype.is_float:
        return _soft_cross_entropy(x, t, weight, reduction, label_smoothing)
    at = _classes(x, t, "cross_entropy")
    if weight is None and not label_smoothing:
        return _hard_cross_entropy(x, integer(t, "the target"), at, ignore_index, reduction)
    logs = tracer(N.log_softmax(x, at))
    hard = nll_loss(logs, t, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    scale = label_smoothing / max(1, x.shape[at]) if isinstance(x.shape[at], int) else None
    if scale is None:
        raise UserError("label_smoothing needs a number of classes that is known", code="MLC0365")
    weighted = logs if weight is None else logs * _per_class(weight, x, at)
    valid = t != ignore_index
    smooth = E.where(valid, -R.sum(weighted, at), 0.0)
    if reduction == "mean":
        smooth = R.sum(smooth) / _total_weight(t, valid, weight, x, at)
    elif reduction == "sum":
        smooth = R.sum(smooth)
    return E.add(E.mul(hard, 1 - label_smoothing), E.mul(smooth, scale))


def _hard_cross_entropy(x: Tracer, t: Tracer, at: int, ignore_index: int, reduction: str) -> Tensor:
    wide = x if x.type.dtype.width >= 32 else cast(x, f32)         # a float16 counts to 2048 only
    valid = t != plain_int(ignore_index, "ignore_index")
    each = emit(T.CrossEntropy, wide, cast(tracer(E.where(valid, t, 0)), i64), at, "none")
    loss = E.where(valid, each, 0.0)
    out = R.sum(loss) / R.sum(valid) if reduction == "mean" else reduced(loss, reduction)
    return cast(tracer(out), x.type.dtype)


def _weights(weight: Operand, x: Tracer, at: int) -> Tracer:
    """The weights of the classes, one for each."""
    w = cast(tracer(weight), x.type.dtype)
    if w.shape != (x.shape[at],):
        raise UserError(f"the weight has shape [{', '.join(map(str, w.shape))}], expected [{x.shape[at]}]: one number "
                        "for each class", code="MLC0367")
    return w


def _per_class(weight: Operand, x: Tracer, at: int) -> Tracer:
    w = _weights(weight, x, at)
    return reshape(w, [w.shape[0] if i == at else 1 for i in range(x.ndim)])


def _soft_cross_entropy(x: Tracer, target: Tracer, weight: Operand, reduction: str, smoothing: float) -> Tensor:
    a, t = _same_shape(x, target)
    if not a.ndim:
        raise UserError("a 0-d tensor has no classes", code="MLC0367", hint="give one sample as a vector")
    at = 0 if a.ndim == 1 else 1
    if smoothing:
        n = plain_int(a.shape[at], "the number of classes")
        t = tracer(t * (1 - smoothing) + smoothing / max(1, n))
    logs = N.log_softmax(a, at)
    loss = -R.sum((logs if weight is None else logs * _per_class(weight, a, at)) * t, at)
    if reduction != "mean":
        return reduced(loss, reduction)
    return R.mean(loss)


def _total_weight(t: Tracer, valid: Tensor, weight: Operand, x: Tracer, at: int) -> Tensor:
    """What the mean of a classification loss divides by."""
    if weight is None:
        return cast(tracer(R.sum(valid)), x.type.dtype)
    chosen = _of_class(_weights(weight, x, at), t, valid)
    return R.sum(E.where(valid, chosen, 0.0))


def _of_class(w: Tracer, t: Tracer, valid: Tensor) -> Tracer:
    """The weight of each sample's class; of class 0 where the sample is ignored."""
    return typed(Tracer, emit(T.Take, w, E.where(valid, t, 0), 0))


@operation()
def nll_loss(input: Operand, target: Operand, weight: Operand = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:
    """-input[target], the negative log-likelihood of classes, reduced.

    The mean is weighted: sum of losses / sum of weights of the targets; NaN if all are ignored.

    Args:
        input: Log probabilities of shape (n, classes, ...), or (classes,) for one sample.
        target: Classes, integers of shape (n, ...).
        weight: Tensor of one number for each class; None for 1.
        ignore_index: A target that does not count, nor gets a gradient.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), shapes do not fit (MLC0367), `target` is not of integers
            (MLC0354), or a class is out of range (MLC0340, an IndexError).

    Example:
        >>> nn.functional.nll_loss(mlc.tensor([[-0.5, -1.0], [-3.0, -0.25]]), mlc.tensor([0, 1]))
        tensor(0.375, dtype=mlc.float32)
    """
    x, t = floating(input), integer(target, "the target")
    at = _classes(x, t, "nll_loss")
    t = cast(t, i64)
    valid = t != plain_int(ignore_index, "ignore_index")
    index = reshape(tracer(E.where(valid, t, 0)), [*x.shape[:at], 1, *x.shape[at + 1:]])
    picked = reshape(emit(T.TakeAlong, x, index, at), t.shape)
    loss = -picked
    if weight is not None:
        loss = loss * _of_class(_weights(weight, x, at), t, valid)
    loss = E.where(valid, loss, 0.0)
    if reduction == "mean":
        return R.sum(loss) / _total_weight(t, valid, weight, x, at)
    return reduced(loss, reduction)


@operation()
def binary_cross_entropy(input: Operand, target: Operand, weight: Operand = None, reduction: str = "mean") -> Tensor:
    """-(target * ln(input) + (1 - target) * ln(1 - input)), reduced.

    Logarithms are not below -100, and their derivatives not above 1e12, so that 0 and 1 give finite losses.

    Args:
        input: Probabilities in [0, 1].
        target: Probabilities of the shape of `input`.
        weight: Factor of each loss, which broadcasts; None for 1.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes differ (MLC0367).

    Example:
        >>> nn.functional.binary_cross_entropy(mlc.tensor([0.5, 0.9]), mlc.tensor([0.0, 1.0]))
        tensor(0.39925388, dtype=mlc.float32)
    """
    x, t = _same_shape(input, target)
    loss = -(t * _bounded_log(x, E.log, x) + (1 - t) * _bounded_log(1 - x, E.log1p, -x))
    return reduced(loss if weight is None else loss * tracer(weight), reduction)


def _bounded_log(x: Tensor, log: Callable[[Operand], Tensor], argument: Tensor) -> Tensor:
    """log x = log(argument), but not below -100 and with a derivative of 10^12 at most, as PyTorch has it."""
    steepest = min(1e12, E.LARGEST[tracer(x).type.dtype])
    small = x < 1 / steepest
    beyond = E.detach(E.maximum(log(argument), -100.0)) + (x - E.detach(x)) * steepest
    return E.where(small, beyond, log(E.where(small, 0.5, argument)))


@operation()
def binary_cross_entropy_with_logits(input: Operand, target: Operand, weight: Operand = None,
                                     reduction: str = "mean", pos_weight: Operand = None) -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), without rounding to 0 or 1 on the way, reduced.

    Args:
        input: Logits.
        target: Probabilities of the shape of `input`.
        weight: Factor of each loss, which broadcasts; None for 1.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        pos_weight: Factor of the losses of target 1, which broadcasts; None for 1.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes differ (MLC0367).

    Example:
        >>> nn.functional.binary_cross_entropy_with_logits(mlc.tensor([0.0, 2.0]), mlc.tensor([0.0, 1.0]))
        tensor(0.4100376, dtype=mlc.float32)
    """
    x, t = _same_shape(input, target)
    soft = typed(Tensor, emit(T.Softplus, tracer(-x)))
    if pos_weight is None:
        loss = (1 - t) * x + soft
    else:
        loss = (1 - t) * x + (1 + (tracer(pos_weight) - 1) * t) * soft
    return reduced(loss if weight is None else loss * tracer(weight), reduction)


@operation()
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
    x, t = together(input, target, floating=True)
    loss = E.exp(t) * (t - x) if log_target else E.xlogy(t, t) - t * x
    if reduction == "batchmean":
        rows = tracer(loss).shape[:1] or (1,)
        return R.sum(loss) / E.count(rows[0], x)
    return reduced(loss, reduction)


@operation()
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
    x, t = together(input, target, floating=True)
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
    x, t = together(input, target, floating=True)
    v = cast(tracer(var), x.type.dtype)
    if v.ndim == x.ndim - 1:
        v = reshape(v, [*v.shape, 1])
    v = tracer(v + E.detach(E.maximum(v, eps) - v))        # the derivative passes as if var were not clamped
    loss = 0.5 * (E.log(v) + E.square(x - t) / v)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@operation()
def hinge_embedding_loss(input: Operand, target: Operand, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1, reduced.

    Args:
        input: Distances.
        target: Tensor of 1 and -1 that broadcasts.
        margin: Distance from which a pair counts as dissimilar.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.hinge_embedding_loss(mlc.tensor([0.5, 0.25]), mlc.tensor([1, -1]))
        tensor(0.625, dtype=mlc.float32)
    """
    x, t = together(input, target, floating=True)
    return reduced(E.where(t != 1, E.clamp_min(margin - x, 0), 0.0) + E.where(t != -1, x, 0.0), reduction)


@operation()
def margin_ranking_loss(input1: Operand, input2: Operand, target: Operand, margin: float = 0.0,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin), reduced.

    Args:
        input1: Tensor; integers become float32.
        input2: Tensor that broadcasts.
        target: 1 where `input1` should be greater, -1 where `input2` should; it broadcasts.
        margin: By how much.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.margin_ranking_loss(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 0.0]), mlc.tensor([1, 1]))
        tensor(1., dtype=mlc.float32)
    """
    a, b = together(input1, input2, floating=True)
    return reduced(E.clamp_min(-tracer(target) * (a - b) + margin, 0), reduction)


@operation()
def soft_margin_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """ln(1 + e ** (-target * input)), the logistic loss, reduced.

    Args:
        input: Tensor; integers become float32.
        target: Tensor of 1 and -1 that broadcasts.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.soft_margin_loss(mlc.tensor([0.0, 2.0]), mlc.tensor([1, -1]))
        tensor(1.4100376, dtype=mlc.float32)
    """
    x, t = together(input, target, floating=True)
    return reduced(typed(Tensor, emit(T.Softplus, tracer(-t * x))), reduction)


@operation()
def cosine_embedding_loss(input1: Operand, input2: Operand, target: Operand, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1, reduced.

    Args:
        input1: Tensor of shape (..., n).
        input2: Tensor that broadcasts.
        target: Tensor of 1 and -1 of shape (...).
        margin: Cosine up to which a pair counts as dissimilar.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.cosine_embedding_loss(mlc.tensor([[1.0, 0.0]]), mlc.tensor([[3.0, 4.0]]), mlc.tensor([1]))
        tensor(0.39999998, dtype=mlc.float32)
    """
    a, b = together(input1, input2, floating=True)
    dot = R.sum(a * b, -1)
    cos = dot / E.sqrt((R.sum(a * a, -1) + 2.0 ** -40) * (R.sum(b * b, -1) + 2.0 ** -40))
    t = tracer(target)
    return reduced(E.where(t == 1, 1 - cos, E.clamp_min(cos - margin, 0)), reduction)


@operation()
def triplet_margin_loss(anchor: Operand, positive: Operand, negative: Operand, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin), reduced (Schroff, Kalenichenko and Philbin 2015).

    Distances are those of `pairwise_distance`.

    Args:
        anchor: Tensor of floats of shape (..., n).
        positive: Tensor that should be near to `anchor`; it broadcasts.
        negative: Tensor that should be far from it; it broadcasts.
        margin: By how much farther.
        p: Exponent of the norm, as in `pairwise_distance`.
        eps: Added to differences, as there.
        swap: Whether |positive - negative| takes the place of |anchor - negative| where it is less.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes do not broadcast (MLC0111).

    Example:
        >>> nn.functional.triplet_margin_loss(mlc.tensor([0.0, 0.0]), mlc.tensor([0.0, 1.0]), mlc.tensor([0.0, 1.5]))
        tensor(0.49999994, dtype=mlc.float32)
    """
    near = N.pairwise_distance(anchor, positive, p, eps)
    far = N.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = E.minimum(far, N.pairwise_distance(positive, negative, p, eps))
    return reduced(E.clamp_min(near - far + margin, 0), reduction)


@operation()
def multilabel_soft_margin_loss(input: Operand, target: Operand, weight: Operand = None,
                                reduction: str = "mean") -> Tensor:
    """The mean over the last dimension of `binary_cross_entropy_with_logits`, reduced.

    Args:
        input: Logits of shape (..., classes).
        target: Tensor of 0 and 1 of the shape of `input`.
        weight: Factor of each loss, which broadcasts; None for 1.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), or the shapes differ (MLC0367).

    Example:
        >>> nn.functional.multilabel_soft_margin_loss(mlc.tensor([[0.0, 2.0]]), mlc.tensor([[0.0, 1.0]]))
        tensor(0.4100376, dtype=mlc.float32)
    """
    x, t = _same_shape(input, target)
    soft = (1 - t) * x + typed(Tensor, emit(T.Softplus, tracer(-x)))
    return reduced(R.mean(soft if weight is None else soft * tracer(weight), -1), reduction)


@operation()
def multilabel_margin_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """sum over labels y and other classes i of max(0, 1 - (input[y] - input[i])) / classes, reduced.

    Args:
        input: Scores of shape (classes,) or (n, classes).
        target: Tensor of integers of that shape: the labels of a sample, followed by -1.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), shapes do not fit (MLC0367), `target` is not of integers
            (MLC0354), or a label is out of range (MLC0340, an IndexError).

    Example:
        >>> nn.functional.multilabel_margin_loss(mlc.tensor([0.1, 0.8]), mlc.tensor([1, -1]))
        tensor(0.15, dtype=mlc.float32)
    """
    x, t = floating(input), integer(target, "the target")
    if x.ndim not in (1, 2) or x.shape != t.shape:
        raise UserError(f"the input has shape {list(x.shape)}, the target {list(t.shape)}, expected one of them twice: "
                        "[classes] or [n, classes]", code="MLC0367")
    n = plain_int(x.shape[-1], "the number of classes")
    t = cast(t, i64)
    # A target is a label as long as none before it is negative.
    place = emit(T.Iota, (n, n), 0, i64) >= emit(T.Iota, (n, n), 1, i64)
    ended = R.any(E.logical_and(place, reshape(tracer(t < 0), [*t.shape[:-1], 1, n])), -1)
    is_label = E.logical_not(ended)
    label = E.where(is_label, t, 0)
    score = emit(T.TakeAlong, x, label, x.ndim - 1)
    hot = E.eq(reshape(tracer(label), [*t.shape, 1]), emit(T.Iota, (n,), 0, i64))
    other = E.logical_not(R.any(E.logical_and(hot, reshape(tracer(is_label), [*t.shape, 1])), -2))
    margin = N.relu(1 - (reshape(score, [*x.shape, 1]) - reshape(x, [*x.shape[:-1], 1, n])))
    counts = E.logical_and(reshape(tracer(is_label), [*t.shape, 1]), reshape(tracer(other), [*x.shape[:-1], 1, n]))
    return reduced(R.sum(E.where(counts, margin, 0.0), (-2, -1)) / n, reduction)


@operation()
def multi_margin_loss(input: Operand, target: Operand, p: int = 1, margin: float = 1.0, weight: Operand = None,
                      reduction: str = "mean") -> Tensor:
    """sum over i != target of max(0, margin - input[target] + input[i]) ** p / classes, reduced.

    Args:
        input: Scores of shape (n, classes), or (classes,) for one sample.
        target: Classes, integers of shape (n,).
        p: 1 or 2.
        margin: By how much the target's score should be greater.
        weight: Tensor of one number for each class; None for 1.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), `p` is neither 1 nor 2 (MLC0360), shapes do not fit
            (MLC0367), `target` is not of integers (MLC0354), or a class is out of range (MLC0340, an IndexError).

    Example:
        >>> nn.functional.multi_margin_loss(mlc.tensor([[0.1, 0.8]]), mlc.tensor([0]))
        tensor(0.85, dtype=mlc.float32)
    """
    x, t = floating(input), cast(integer(target, "the target"), i64)
    if p not in (1, 2):
        raise UserError(f"p = {p}", code="MLC0360", hint="use 1 or 2")
    at = _classes(x, t, "multi_margin_loss")
    if x.ndim > 2:
        raise UserError(f"the input has {x.ndim} dimensions, expected 1 or 2", code="MLC0364")
    need(x.shape[at] - 1, "a loss of no classes is not defined")
    index = reshape(t, [*t.shape, 1])
    lacking = N.relu(margin - emit(T.TakeAlong, x, index, at) + x)
    loss = lacking if p == 1 else lacking * lacking
    if weight is not None:
        loss = loss * reshape(emit(T.Take, cast(tracer(weight), x.type.dtype), t, 0), index.shape)
    others = E.ne(index, emit(T.Iota, (x.shape[at],), 0, i64))
    return reduced(R.mean(E.where(others, loss, 0.0), -1), reduction)
