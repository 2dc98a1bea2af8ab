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
from mlc.ir import sizes
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
                        symbols=sizes.differing(xs[0].shape, xs[1].shape),
                        hint="broadcast one of them first, if that is what is meant")
    return xs


@operation()
def mse_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """(input - target) ** 2"""
    a, b = _same_shape(input, target)
    return reduced(E.square(a - b), reduction)


@operation()
def l1_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """|input - target|"""
    a, b = _same_shape(input, target)
    return reduced(E.abs(a - b), reduction)


@operation()
def huber_loss(input: Operand, target: Operand, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d ** 2 / 2 within delta of the target, delta * (|d| - delta / 2) beyond"""
    if not delta > 0:
        raise UserError(f"delta = {delta}, expected more than 0", code="MLC0360")
    a, b = _same_shape(input, target)
    d = E.abs(a - b)
    return reduced(E.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


@operation()
def smooth_l1_loss(input: Operand, target: Operand, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """huber_loss / beta"""
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
                        f"[{', '.join(map(str, rest))}]: one class for each sample", code="MLC0367",
                        symbols=sizes.differing(target.shape, rest))
    return at


@operation()
def cross_entropy(input: Operand, target: Operand, weight: Operand = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """-log_softmax(input)[target], where dimension 1 holds the classes; the target may also be probabilities"""
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
    """-input[target], where dimension 1 holds the classes' log probabilities"""
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
    """-(target * log(input) + (1 - target) * log(1 - input)); logarithms are not below -100"""
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
    """binary_cross_entropy(sigmoid(input), target), without rounding to 0 or 1 on the way"""
    x, t = _same_shape(input, target)
    soft = typed(Tensor, emit(T.Softplus, tracer(-x)))
    if pos_weight is None:
        loss = (1 - t) * x + soft
    else:
        loss = (1 - t) * x + (1 + (tracer(pos_weight) - 1) * t) * soft
    return reduced(loss if weight is None else loss * tracer(weight), reduction)


@operation()
def kl_div(input: Operand, target: Operand, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log(target) - input): input holds log probabilities, target probabilities"""
    x, t = together(input, target, floating=True)
    loss = E.exp(t) * (t - x) if log_target else E.xlogy(t, t) - t * x
    if reduction == "batchmean":
        rows = tracer(loss).shape[:1] or (1,)
        return R.sum(loss) / E.count(rows[0], x)
    return reduced(loss, reduction)


@operation()
def poisson_nll_loss(input: Operand, target: Operand, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:
    """e ** input - target * input, or input - target * log(input + eps)"""
    x, t = together(input, target, floating=True)
    loss = E.exp(x) - t * x if log_input else x - t * E.log(x + eps)
    if full:
        stirling = t * E.log(E.where(t > 1, t, 1.0)) - t + 0.5 * E.log(2 * math.pi * E.where(t > 1, t, 1.0))
        loss = loss + E.where(t > 1, stirling, 0.0)
    return reduced(loss, reduction)


@operation()
def gaussian_nll_loss(input: Operand, target: Operand, var: Operand, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """(log(var) + (input - target) ** 2 / var) / 2, with var at least eps"""
    x, t = together(input, target, floating=True)
    v = cast(tracer(var), x.type.dtype)
    if v.ndim == x.ndim - 1:
        v = reshape(v, [*v.shape, 1])
    v = tracer(v + E.detach(E.maximum(v, eps) - v))        # the derivative passes as if var were not clamped
    loss = 0.5 * (E.log(v) + E.square(x - t) / v)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@operation()
def hinge_embedding_loss(input: Operand, target: Operand, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """input where the target is 1, max(0, margin - input) where it is -1"""
    x, t = together(input, target, floating=True)
    return reduced(E.where(t != 1, E.clamp_min(margin - x, 0), 0.0) + E.where(t != -1, x, 0.0), reduction)


@operation()
def margin_ranking_loss(input1: Operand, input2: Operand, target: Operand, margin: float = 0.0,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin)"""
    a, b = together(input1, input2, floating=True)
    return reduced(E.clamp_min(-tracer(target) * (a - b) + margin, 0), reduction)


@operation()
def soft_margin_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """log(1 + e ** (-target * input))"""
    x, t = together(input, target, floating=True)
    return reduced(typed(Tensor, emit(T.Softplus, tracer(-t * x))), reduction)


@operation()
def cosine_embedding_loss(input1: Operand, input2: Operand, target: Operand, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1"""
    a, b = together(input1, input2, floating=True)
    dot = R.sum(a * b, -1)
    cos = dot / E.sqrt((R.sum(a * a, -1) + 2.0 ** -40) * (R.sum(b * b, -1) + 2.0 ** -40))
    t = tracer(target)
    return reduced(E.where(t == 1, 1 - cos, E.clamp_min(cos - margin, 0)), reduction)


@operation()
def triplet_margin_loss(anchor: Operand, positive: Operand, negative: Operand, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin); with swap, the smaller of the latter distance and
    |positive - negative|"""
    near = N.pairwise_distance(anchor, positive, p, eps)
    far = N.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = E.minimum(far, N.pairwise_distance(positive, negative, p, eps))
    return reduced(E.clamp_min(near - far + margin, 0), reduction)


@operation()
def multilabel_soft_margin_loss(input: Operand, target: Operand, weight: Operand = None,
                                reduction: str = "mean") -> Tensor:
    """The mean over the last dimension of binary_cross_entropy_with_logits"""
    x, t = _same_shape(input, target)
    soft = (1 - t) * x + typed(Tensor, emit(T.Softplus, tracer(-x)))
    return reduced(R.mean(soft if weight is None else soft * tracer(weight), -1), reduction)


@operation()
def multilabel_margin_loss(input: Operand, target: Operand, reduction: str = "mean") -> Tensor:
    """The sum over labels y and other classes i of max(0, 1 - (input[y] - input[i])) / classes

    The labels of a sample are the classes before the first -1 of its target.
    """
    x, t = floating(input), integer(target, "the target")
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


@operation()
def multi_margin_loss(input: Operand, target: Operand, p: int = 1, margin: float = 1.0, weight: Operand = None,
                      reduction: str = "mean") -> Tensor:
    """The mean over the classes i of max(0, margin - input[target] + input[i]) ** p, without the target itself"""
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
