"""Losses of classification."""

from __future__ import annotations

from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import of_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import neural as N
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.losses.regression import of_same_shape, reduced
from mlc.frontend.operands import cast, fail_unless, integer, reals, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import f32, i64


def class_axis(x: Tracer, target: Tracer) -> int:
    """The class axis: 1, or 0 for one sample. The target must have the remaining dimensions."""
    at = 0 if x.ndim == 1 else 1
    rest = x.shape[:at] + x.shape[at + 1:]
    if not x.ndim or target.shape != rest:
        raise UserError(f"the target has shape [{', '.join(map(str, target.shape))}], expected "
                        f"[{', '.join(map(str, rest))}]: one class for each sample", code="MLC0367",
                        symbols=sizes.differing(target.shape, rest),
                        hint="of a column, target.squeeze(1) has the classes; of one-hot rows, target.argmax(1)")
    return at


@operation(autocast="fp32")
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
    x, t = reals(input)[0], tracer(target)
    if not 0 <= label_smoothing <= 1:
        raise UserError(f"label_smoothing = {label_smoothing}, expected a number from 0 to 1", code="MLC0360")
    if t.type.dtype.is_float:
        return _soft_cross_entropy(x, t, weight, reduction, label_smoothing)
    at = class_axis(x, t)
    if weight is None and not label_smoothing:
        return _hard_cross_entropy(x, integer(t, "the target"), at, ignore_index, reduction)
    logs = tracer(N.log_softmax(x, at))
    hard = nll_loss(logs, t, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    scale = label_smoothing / max(1, x.shape[at]) if isinstance(x.shape[at], int) else None
    if scale is None:
        raise UserError("label_smoothing needs a number of classes that is known", code="MLC0365",
                        symbols=sizes.symbols(x.shape[at]))
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
                        "for each class", code="MLC0367", symbols=sizes.symbols(*w.shape, x.shape[at]))
    return w


def _per_class(weight: Operand, x: Tracer, at: int) -> Tracer:
    w = _weights(weight, x, at)
    return reshape(w, [w.shape[0] if i == at else 1 for i in range(x.ndim)])


def _soft_cross_entropy(x: Tracer, target: Tracer, weight: Operand, reduction: str, smoothing: float) -> Tensor:
    a, t = of_same_shape(x, target, "floats are a probability for each class; classes are integers: target.long()")
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
    """Denominator of the mean of a classification loss: the number of valid targets, or their total weight."""
    if weight is None:
        return cast(tracer(R.sum(valid)), x.type.dtype)
    chosen = _of_class(_weights(weight, x, at), t, valid)
    return R.sum(E.where(valid, chosen, 0.0))


def _of_class(w: Tracer, t: Tracer, valid: Tensor) -> Tracer:
    """The weight of each sample's class; of class 0 where the sample is ignored."""
    return typed(Tracer, emit(T.Take, w, E.where(valid, t, 0), 0))


@operation(autocast="fp32")
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
    x, t = reals(input)[0], integer(target, "the target")
    at = class_axis(x, t)
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


@operation(autocast="fp32")
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
        UserAssertionError: an element is no probability (MLC0612).

    Example:
        >>> nn.functional.binary_cross_entropy(mlc.tensor([0.5, 0.9]), mlc.tensor([0.0, 1.0]))
        tensor(0.39925388, dtype=mlc.float32)
    """
    x, t = of_same_shape(input, target)
    if x.type.dtype.is_complex:
        raise UserTypeError(f"probabilities are real, found elements of {of_ir(x.type.dtype).name}", code="MLC0785")
    for what, p in (("input", x), ("target", t)):
        fail_unless(E.logical_and(p >= 0, p <= 1), f"binary_cross_entropy: an element of the {what} is not from 0 to 1")
    dtype = x.type.dtype
    x, t = (cast(v, f32) if dtype.itemsize < f32.itemsize else v for v in (x, t))      # which holds all slopes
    steepest = 1e12
    near, fixed = x * (1 - x) < 1 / steepest, E.detach(x)
    inside = E.where(near, 0.5, x)
    there = -(t * E.maximum(E.log(fixed), -100.0) + (1 - t) * E.maximum(E.log1p(-fixed), -100.0))
    there = there + (x - fixed) * (fixed - t) * steepest   # of the derivative (x - t) / (x (1 - x)), bounded
    loss = tracer(E.where(near, there, -(t * E.log(inside) + (1 - t) * E.log1p(-inside))))
    if weight is None:
        return cast(tracer(reduced(loss, reduction)), dtype)
    return reduced(cast(loss, dtype) * tracer(weight), reduction)


@operation(autocast="fp32")
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
    x, t = of_same_shape(input, target)
    soft = typed(Tensor, emit(T.Softplus, tracer(-x)))
    if pos_weight is None:
        loss = (1 - t) * x + soft
    else:
        loss = (1 - t) * x + (1 + (tracer(pos_weight) - 1) * t) * soft
    return reduced(loss if weight is None else loss * tracer(weight), reduction)
