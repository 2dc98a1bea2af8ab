"""Losses with a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import neural as N
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.losses.classification import class_axis
from mlc.frontend.functions.losses.regression import of_same_shape, reduced
from mlc.frontend.operands import cast, integer, need, reals, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64


@operation(autocast="fp32")
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
    x, t = reals(input, target)
    return reduced(E.where(t != 1, E.clamp_min(margin - x, 0), 0.0) + E.where(t != -1, x, 0.0), reduction)


@operation(autocast="fp32")
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
    a, b = reals(input1, input2)
    return reduced(E.clamp_min(-tracer(target) * (a - b) + margin, 0), reduction)


@operation(autocast="fp32")
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
    x, t = reals(input, target)
    return reduced(typed(Tensor, emit(T.Softplus, tracer(-t * x))), reduction)


@operation(autocast="fp32")
def cosine_embedding_loss(input1: Operand, input2: Operand, target: Operand, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1, else 0, reduced.

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
    a, b = reals(input1, input2)
    dot = R.sum(a * b, -1)
    cos = dot / E.sqrt((R.sum(a * a, -1) + 1e-12) * (R.sum(b * b, -1) + 1e-12))
    t = tracer(target)
    apart = E.where(t == -1, E.clamp_min(cos - margin, 0), 0.0 * cos)
    return reduced(E.where(t == 1, 1 - cos, apart), reduction)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise UserError(f"margin = {margin}, expected a number above 0", code="MLC0360")


@operation(autocast="fp32")
def triplet_margin_loss(anchor: Operand, positive: Operand, negative: Operand, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin), reduced (Schroff, Kalenichenko and Philbin 2015).

    Distances are those of `pairwise_distance`.

    Args:
        anchor: Tensor of floats of shape (..., n).
        positive: Tensor that should be near to `anchor`; it broadcasts.
        negative: Tensor that should be far from it; it broadcasts.
        margin: By how much farther, more than 0.
        p: Exponent of the norm, as in `pairwise_distance`.
        eps: Added to differences, as there.
        swap: Whether |positive - negative| takes the place of |anchor - negative| where it is less.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string or `margin` not positive (MLC0360), or the shapes do not broadcast
            (MLC0111).

    Example:
        >>> nn.functional.triplet_margin_loss(mlc.tensor([0.0, 0.0]), mlc.tensor([0.0, 1.0]), mlc.tensor([0.0, 1.5]))
        tensor(0.49999994, dtype=mlc.float32)
    """
    _check_margin(margin)
    near = N.pairwise_distance(anchor, positive, p, eps)
    far = N.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = E.minimum(far, N.pairwise_distance(positive, negative, p, eps))
    return reduced(E.clamp_min(near - far + margin, 0), reduction)


@operation()
def triplet_margin_with_distance_loss(anchor: Operand, positive: Operand, negative: Operand, *,
                                      distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d, reduced.

    Args:
        anchor: Tensor of floats.
        positive: Tensor that should be near to `anchor`.
        negative: Tensor that should be far from it.
        distance_function: Function of two tensors; None for `pairwise_distance`.
        margin: By how much farther, more than 0.
        swap: Whether d(positive, negative) takes the place of d(anchor, negative) where it is less.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string or `margin` not positive (MLC0360), or the shapes do not broadcast
            (MLC0111).

    Example:
        >>> x, y, z = mlc.tensor([[0.0, 0.0]]), mlc.tensor([[0.0, 1.0]]), mlc.tensor([[0.0, 1.5]])
        >>> nn.functional.triplet_margin_with_distance_loss(x, y, z, distance_function=mlc.dist)
        tensor(0.5, dtype=mlc.float32)
    """
    _check_margin(margin)
    distance = N.pairwise_distance if distance_function is None else distance_function
    near, far = distance(tracer(anchor), tracer(positive)), distance(tracer(anchor), tracer(negative))
    if swap:
        far = E.minimum(far, distance(tracer(positive), tracer(negative)))
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
    x, t = of_same_shape(input, target)
    soft = (1 - t) * x + typed(Tensor, emit(T.Softplus, tracer(-x)))
    return reduced(R.mean(soft if weight is None else soft * tracer(weight), -1), reduction)


@operation(autocast="fp32")
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
    x, t = reals(input)[0], integer(target, "the target")
    if x.ndim == t.ndim == 0:                              # one class
        x, t = reshape(x, [1]), reshape(t, [1])
    if x.ndim not in (1, 2) or x.shape != t.shape:
        raise UserError(f"the input has shape {list(x.shape)}, the target {list(t.shape)}, expected one of them twice: "
                        "[classes] or [n, classes]", code="MLC0367", symbols=sizes.differing(x.shape, t.shape))
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


@operation(autocast="fp32")
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
    x, t = reals(input)[0], cast(integer(target, "the target"), i64)
    if p not in (1, 2):
        raise UserError(f"p = {p}", code="MLC0360", hint="use 1 or 2")
    x = x if x.ndim else reshape(x, [1])
    t = reshape(t, []) if x.ndim == 1 and t.shape == (1,) else t
    at = class_axis(x, t)
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
