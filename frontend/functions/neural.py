"""Activations, normalisation and layers as functions, under the names of torch.nn.functional."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.functions import contract as C
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import random
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.index import rows_of
from mlc.frontend.functions.trigonometry import tanh
from mlc.frontend.operands import (
    axis,
    cast,
    factors,
    floating,
    full,
    integer,
    number,
    parameter,
    plain_int,
    reshape,
    rounded_once,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import f64


@operation()
def relu(input: Operand) -> Tensor:
    """max(input, 0)"""
    x = tracer(input)
    return typed(Tensor, emit(T.Relu, x)) if x.type.dtype.is_float else E.clamp(x, 0)


@operation()
def relu6(input: Operand) -> Tensor:
    """min(max(input, 0), 6), with derivative 0 at 0 and 6"""
    x = tracer(input)
    return hardtanh(x, 0.0, 6.0) if x.type.dtype.is_float else E.clamp(x, 0, 6)


@operation()
def leaky_relu(input: Operand, negative_slope: float = 0.01) -> Tensor:
    """input above 0, negative_slope * input below"""
    x = floating(input)
    return E.where(x > 0, x, x * negative_slope)


@operation()
def prelu(input: Operand, weight: Operand) -> Tensor:
    """input above 0, weight * input below; one weight, or one for each of dimension 1"""
    x, w = together(input, weight, floating=True)
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or (w.ndim and w.shape[0] not in (1, channels)):
        raise UserError(f"a weight of shape {list(w.shape)} for {channels} channels, expected one, or one for each",
                        code="MLC0367", symbols=sizes.symbols(*w.shape, channels))
    if w.ndim:
        w = reshape(w, [w.shape[0] if i == 1 else 1 for i in range(x.ndim)])
    return E.where(x > 0, x, x * w)


@operation()
def elu(input: Operand, alpha: float = 1.0) -> Tensor:
    """input above 0, alpha * (e ** input - 1) below"""
    return typed(Tensor, emit(T.Elu, floating(input), float(alpha)))


@operation()
def selu(input: Operand) -> Tensor:
    """elu, scaled so that activations keep mean 0 and variance 1"""
    return rounded_once(lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772), floating(input))


@operation()
def celu(input: Operand, alpha: float = 1.0) -> Tensor:
    """input above 0, alpha * (e ** (input / alpha) - 1) below"""
    return rounded_once(lambda x: E.where(x > 0, x, alpha * E.expm1(E.where(x > 0, 0.0, x) / alpha)), floating(input))


@operation()
def gelu(input: Operand, approximate: str = "none") -> Tensor:
    """input * P(X <= input) for a standard normal X; approximate = "tanh" is the usual formula with tanh"""
    if approximate not in ("none", "tanh"):
        raise UserError(f"approximate = {approximate!r}", code="MLC0360", hint='use "none" or "tanh"')
    return typed(Tensor, emit(T.Gelu, floating(input), approximate))


@operation()
def silu(input: Operand) -> Tensor:
    """input * sigmoid(input)"""
    return typed(Tensor, emit(T.Silu, floating(input)))


@operation()
def mish(input: Operand) -> Tensor:
    """input * tanh(softplus(input))"""
    return rounded_once(lambda x: x * tanh(softplus(x)), floating(input))


@operation()
def softplus(input: Operand, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + e ** (beta * input)) / beta; input itself where beta * input is above the threshold"""
    x = floating(input)
    if beta == 1:
        soft = typed(Tensor, emit(T.Softplus, x))
        return E.where(x > threshold, x, soft)
    scaled = x * beta
    return E.where(scaled > threshold, x, typed(Tensor, emit(T.Softplus, tracer(scaled))) / beta)


@operation()
def logsigmoid(input: Operand) -> Tensor:
    """log(sigmoid(input))"""
    return typed(Tensor, emit(T.LogSigmoid, floating(input)))


@operation()
def softsign(input: Operand) -> Tensor:
    """input / (1 + |input|)"""
    x = floating(input)
    return x / (1 + E.abs(x))


@operation()
def tanhshrink(input: Operand) -> Tensor:
    """input - tanh(input)"""
    x = floating(input)
    return x - tanh(x)


@operation()
def softshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """input moved by lambd toward 0, and 0 within lambd of it"""
    x = floating(input)
    return E.where(E.abs(x) <= lambd, 0.0, E.where(x > 0, x - lambd, x + lambd))


@operation()
def hardshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """input, and 0 within lambd of 0"""
    x = floating(input)
    return E.where(E.abs(x) <= lambd, 0.0, x)


@operation()
def hardtanh(input: Operand, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """min(max(input, min_val), max_val)"""
    x = floating(input)
    return E.where(x <= min_val, min_val, E.where(x >= max_val, max_val, x))


@operation()
def hardsigmoid(input: Operand) -> Tensor:
    """min(max(input / 6 + 1 / 2, 0), 1)"""
    return rounded_once(lambda x: E.where(x <= -3, 0.0, E.where(x >= 3, 1.0, x / 6 + 0.5)), floating(input))


@operation()
def hardswish(input: Operand) -> Tensor:
    """input * hardsigmoid(input)"""
    def steps(x: Tracer) -> Tensor:
        between = E.where(E.abs(x) < 3, x, 0.0)            # no infinity where it is not taken
        return E.where(x <= -3, 0.0, E.where(x >= 3, x, E.where(E.isnan(x), x, between * (between + 3) / 6)))
    return rounded_once(steps, floating(input))


@operation()
def threshold(input: Operand, threshold: float, value: float) -> Tensor:
    """input above the threshold, value elsewhere"""
    x = tracer(input)
    return E.where(x <= threshold, cast(number(value, x.type.dtype), x.type.dtype), x)


@operation()
def glu(input: Operand, dim: int = -1) -> Tensor:
    """a * sigmoid(b), where a and b are the halves of input along `dim`"""
    x = floating(input)
    at = axis(dim, x.ndim, scalar=False)
    n = x.shape[at]
    if n % 2 != 0:
        raise UserError(f"dimension {at} has size {n}, which has no halves", code="MLC0358", symbols=sizes.symbols(n))
    return rounded_once(lambda a, b: a * E.sigmoid(b), S.sliced(x, at, 0, n // 2), S.sliced(x, at, n // 2, n))


@operation()
def softmax(input: Operand, dim: int, dtype: DTypeLike = None) -> Tensor:
    """e ** input / sum(e ** input) along `dim`"""
    x = floating(input, dtype)
    return typed(Tensor, emit(T.Softmax, x, axis(dim, x.ndim))) if x.ndim else E.exp(x - x)


@operation()
def log_softmax(input: Operand, dim: int, dtype: DTypeLike = None) -> Tensor:
    """log(softmax(input))"""
    x = floating(input, dtype)
    return typed(Tensor, emit(T.LogSoftmax, x, axis(dim, x.ndim))) if x.ndim else x - x


@operation()
def softmin(input: Operand, dim: int, dtype: DTypeLike = None) -> Tensor:
    """softmax(-input)"""
    return softmax(-floating(input), dim, dtype)


@operation()
def layer_norm(input: Operand, normalized_shape: Sequence[Dim], weight: Operand = None, bias: Operand = None,
               eps: float = 1e-5) -> Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over the last dimensions, which have normalized_shape"""
    x, shape = _last_dimensions(input, normalized_shape)
    extra = [_of_shape(p, x, shape, name) for name, p in (("weight", weight), ("bias", bias))]
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return typed(Tensor, emit(T.LayerNorm, x, extra[0], extra[1], axes, eps))


def _last_dimensions(input: Operand, normalized_shape: Sequence[Dim]) -> tuple[Tracer, tuple[Dim, ...]]:
    x = floating(input)
    shape = tuple(normalized_shape) if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
    if not shape or x.shape[x.ndim - len(shape):] != shape or len(shape) > x.ndim:
        raise UserError(f"normalized_shape {list(shape)} is not the end of shape {list(x.shape)}", code="MLC0367",
                        symbols=sizes.differing(shape, x.shape))
    return x, shape


@operation()
def rms_norm(input: Operand, normalized_shape: Sequence[Dim], weight: Operand = None,
             eps: float | None = None) -> Tensor:
    """input / sqrt(mean(input ** 2) + eps) * weight over the last dimensions"""
    x, shape = _last_dimensions(input, normalized_shape)
    if eps is None:
        eps = 2.0 ** -52 if x.type.dtype == f64 else 2.0 ** -23    # that of the type it is computed in
    scale = _of_shape(weight, x, shape, "weight")

    def normalized(x: Tracer, *scale: Tracer) -> Tensor:
        power = R.mean(x * x, tuple(range(x.ndim - len(shape), x.ndim)), keepdim=True)
        return math.prod(scale, start=x * E.rsqrt(power + eps))
    return rounded_once(normalized, x, *([] if scale is None else [scale]))


def _of_shape(p: Operand, x: Tracer, shape: tuple[Dim, ...], name: str) -> Tracer | None:
    """A parameter of the dimensions that are normalised, in the element type of x; None of None."""
    out = None if p is None else parameter(p, x, name)
    if out is not None and out.shape != shape:
        raise UserError(f"the {name} has shape {list(out.shape)}, expected {list(shape)}", code="MLC0367",
                        symbols=sizes.differing(out.shape, shape))
    return out


@operation()
def normalize(input: Operand, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """input / max(norm(input, p), eps) along `dim`"""
    return rounded_once(lambda x: x / E.maximum(R.norm(x, p, dim, True), eps), floating(input))


@operation()
def linear(input: Operand, weight: Operand, bias: Operand = None) -> Tensor:
    """input @ weight.T + bias"""
    x, w = factors(input, weight)
    if w.ndim not in (1, 2) or not x.ndim:
        raise UserError(f"the weight has {w.ndim} dimensions, the input {x.ndim}", code="MLC0364")
    if x.shape[-1] != w.shape[-1]:
        raise UserError(f"inner sizes differ: the input has {x.shape[-1]} features, the weight takes {w.shape[-1]}",
                        code="MLC0367", symbols=sizes.symbols(x.shape[-1], w.shape[-1]))
    out = C.dot_general(x, w, (), ((x.ndim - 1, w.ndim - 1),))
    return out if bias is None else out + tracer(bias)


@operation()
def bilinear(input1: Operand, input2: Operand, weight: Operand, bias: Operand = None) -> Tensor:
    """result[..., k] = input1 @ weight[k] @ input2 + bias[k]"""
    a, b, w = factors(input1, input2, weight)
    if w.ndim != 3 or a.shape[:-1] != b.shape[:-1] or (a.shape[-1:], b.shape[-1:]) != (w.shape[1:2], w.shape[2:]):
        raise UserError(f"the inputs have shapes {list(a.shape)} and {list(b.shape)}, the weight {list(w.shape)}: "
                        "expected [..., m], [..., n] and [k, m, n]", code="MLC0367",
                        symbols=sizes.differing((*a.shape, *b.shape[-1:]), (*b.shape[:-1], *w.shape[1:])))
    half = C.dot_general(a, w, (), ((a.ndim - 1, 1),))                     # [..., k, n]
    out = R.sum(half * reshape(b, [*b.shape[:-1], 1, b.shape[-1]]), -1)
    return out if bias is None else out + tracer(bias)


@operation()
def embedding_bag(input: Operand, weight: Operand, mode: str = "mean", per_sample_weights: Operand = None,
                  padding_idx: int | None = None) -> Tensor:
    """The sum, mean or max of the rows of weight at each bag of indices [bags, size], without those at padding_idx"""
    at, table = integer(input, "input"), tracer(weight)
    if at.ndim != 2 or table.ndim != 2:
        raise UserError(f"the input has {at.ndim} dimensions, the weight {table.ndim}, expected 2 and 2",
                        code="MLC0364")
    if mode not in ("sum", "mean", "max"):
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint='use "sum", "mean" or "max"')
    if per_sample_weights is not None and mode != "sum":
        raise UserError("per_sample_weights needs mode = \"sum\"", code="MLC0360")
    rows: Tensor = rows_of(table, at)
    if per_sample_weights is not None:
        rows = rows * reshape(tracer(per_sample_weights), [*at.shape, 1])
    if at.shape[1] == 0 or (mode == "sum" and padding_idx is None):
        return R.sum(rows, 1)                              # zeros if bags are empty, as of nothing but padding
    if padding_idx is None:
        return R.amax(rows, 1) if mode == "max" else R.sum(rows, 1) / E.maximum(E.count(at.shape[1], table), 1)
    pad, n = plain_int(padding_idx, "padding_idx"), table.shape[0]
    if isinstance(n, int) and not -n <= pad < n:
        raise UserError(f"padding_idx = {pad} is no row of {n}", code="MLC0356")
    counted = reshape(tracer(at != (pad if pad >= 0 else n + pad)), [*at.shape, 1])
    if mode == "max":
        highest = R.amax(E.where(counted, rows, -math.inf), 1)
        return E.where(R.any(counted, 1), highest, 0.0)
    total = R.sum(E.where(counted, rows, 0.0), 1)
    return total if mode == "sum" else total / E.maximum(R.sum(counted, 1), 1)


@operation()
def cosine_similarity(x1: Operand, x2: Operand, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along `dim`"""
    a, b = together(x1, x2, floating=True)
    a, b = (tracer(x) for x in S.broadcast_tensors(a, b))

    def cosine(a: Tracer, b: Tracer) -> Tensor:
        left = E.maximum(R.norm(a, 2, dim, True), eps)
        right = E.maximum(R.norm(b, 2, dim, True), eps)
        return R.sum((a / left) * (b / right), dim)
    return rounded_once(cosine, a, b)


@operation()
def pairwise_distance(x1: Operand, x2: Operand, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """norm(x1 - x2 + eps, p) along the last dimension"""
    return R.norm(E.sub(x1, x2) + eps, p, -1, keepdim)


# -- dropout ----------------------------------------------------------------------------------------------------------
def _dropped(p: float, training: bool, key: Operand) -> bool:
    """Whether there is anything to drop; UserError if it is not said how."""
    if not 0 <= p <= 1:
        raise UserError(f"p = {p} is no probability", code="MLC0360")
    if training and p and key is None:
        raise UserError("dropout in training needs a key to draw with", code="MLC0353",
                        hint="pass key=mlc.random.key(seed), and another one every time: see mlc.random.split; a "
                             "module nn.Dropout keeps one of its own")
    return training and p > 0


@operation()
def dropout(input: Operand, p: float = 0.5, training: bool = True, *, key: Operand = None) -> Tensor:
    """Each element 0 with probability p, else input / (1 - p); input itself if not training"""
    return random.dropout(key, input, p) if _dropped(p, training, key) else tracer(input)


@operation()
def feature_dropout(input: Operand, p: float = 0.5, training: bool = True, spatial: int = 2, *,
                    key: Operand = None) -> Tensor:
    """dropout of whole channels, which come before the last `spatial` dimensions"""
    x = floating(input)
    if not _dropped(p, training, key):
        return x
    lead = x.ndim - spatial
    if lead not in (1, 2):
        raise UserError(f"the input has {x.ndim} dimensions, expected {spatial + 1} or {spatial + 2}", code="MLC0364")
    return x * random.dropout(key, full(1.0, x, [*x.shape[:lead], *[1] * spatial]), p)


@operation()
def alpha_dropout(input: Operand, p: float = 0.5, training: bool = True, *, key: Operand = None) -> Tensor:
    """dropout after selu: elements take on selu's lowest value, and mean and variance stay 0 and 1"""
    x = floating(input)
    if not _dropped(p, training, key):
        return x
    if p == 1:
        return x * 0.0
    lowest = -1.7580993408473766
    scale = ((lowest * lowest * p + 1) * (1 - p)) ** -0.5
    kept = random.bernoulli(key, 1 - p, x.shape)
    out: Tensor = scale * E.where(kept, x, lowest) - scale * lowest * p
    return out
