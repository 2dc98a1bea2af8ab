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
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import f64


@operation()
def relu(input: Operand) -> Tensor:
    """max(x, 0), for each element (rectified linear unit). The derivative at 0 is 0.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> mlc.relu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    return typed(Tensor, emit(T.Relu, x)) if x.type.dtype.is_float else E.clamp(x, 0)


@operation()
def relu6(input: Operand) -> Tensor:
    """min(max(x, 0), 6), for each element (Howard et al. 2017). The derivative at 0 and 6 is 0.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> nn.functional.relu6(mlc.tensor([-1.0, 2.0, 9.0]))
        tensor([0., 2., 6.], dtype=mlc.float32)
    """
    x = tracer(input)
    return hardtanh(x, 0.0, 6.0) if x.type.dtype.is_float else E.clamp(x, 0, 6)


@operation()
def leaky_relu(input: Operand, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, negative_slope * x elsewhere (Maas, Hannun and Ng 2013).

    Args:
        input: Tensor or number; integers become float32.
        negative_slope: Slope below 0.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.leaky_relu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.01,  0.  ,  2.  ], dtype=mlc.float32)
    """
    x = floating(input)
    return E.where(x > 0, x, x * negative_slope)


@operation()
def prelu(input: Operand, weight: Operand) -> Tensor:
    """x where x > 0, weight * x elsewhere (He et al. 2015).

    Args:
        input: Tensor; integers become float32.
        weight: The slope below 0: one number, or one for each channel (dimension 1).

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `weight` has another shape (MLC0367).

    Example:
        >>> mlc.prelu(mlc.tensor([[-1.0, -1.0]]), mlc.tensor([0.5, 0.25]))
        tensor([[-0.5 , -0.25]], dtype=mlc.float32)
    """
    x, w = together(input, weight, floating=True)
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or (w.ndim and w.shape[0] not in (1, channels)):
        raise UserError(f"a weight of shape {list(w.shape)} for {channels} channels, expected one, or one for each",
                        code="MLC0367")
    if w.ndim:
        w = reshape(w, [w.shape[0] if i == 1 else 1 for i in range(x.ndim)])
    return E.where(x > 0, x, x * w)


@operation()
def elu(input: Operand, alpha: float = 1.0) -> Tensor:
    """x where x > 0, alpha * (e ** x - 1) elsewhere (Clevert, Unterthiner and Hochreiter 2016).

    Args:
        input: Tensor or number; integers become float32.
        alpha: Minus the limit for x to -inf.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.elu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.63212055,  0.        ,  2.        ], dtype=mlc.float32)
    """
    return typed(Tensor, emit(T.Elu, floating(input), float(alpha)))


@operation()
def selu(input: Operand) -> Tensor:
    """1.0507 * elu(x, 1.6733), with which activations keep mean 0 and variance 1 (Klambauer et al. 2017).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.selu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113307,  0.       ,  2.101402 ], dtype=mlc.float32)
    """
    return rounded_once(lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772), floating(input))


@operation()
def celu(input: Operand, alpha: float = 1.0) -> Tensor:
    """x where x > 0, alpha * (e ** (x / alpha) - 1) elsewhere (Barron 2017).

    Args:
        input: Tensor or number; integers become float32.
        alpha: Minus the limit for x to -inf.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.celu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.63212055,  0.        ,  2.        ], dtype=mlc.float32)
    """
    return rounded_once(lambda x: E.where(x > 0, x, alpha * E.expm1(E.where(x > 0, 0.0, x) / alpha)), floating(input))


@operation()
def gelu(input: Operand, approximate: str = "none") -> Tensor:
    """x * P(X <= x) for a standard normal X (Hendrycks and Gimpel 2016).

    Args:
        input: Tensor or number; integers become float32.
        approximate: "none" for x / 2 * (1 + erf(x / sqrt(2))), "tanh" for x / 2 * (1 + tanh(sqrt(2 / pi) * (x +
            0.044715 x ** 3))).

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `approximate` is another string (MLC0360).

    Example:
        >>> nn.functional.gelu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.15865526,  0.        ,  1.9544997 ], dtype=mlc.float32)
    """
    if approximate not in ("none", "tanh"):
        raise UserError(f"approximate = {approximate!r}", code="MLC0360", hint='use "none" or "tanh"')
    return typed(Tensor, emit(T.Gelu, floating(input), approximate))


@operation()
def silu(input: Operand) -> Tensor:
    """x * sigmoid(x), for each element; also called swish (Ramachandran, Zoph and Le 2017).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.silu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.26894143,  0.        ,  1.7615942 ], dtype=mlc.float32)
    """
    return typed(Tensor, emit(T.Silu, floating(input)))


@operation()
def mish(input: Operand) -> Tensor:
    """x * tanh(softplus(x)), for each element (Misra 2020).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.mish(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.30340147,  0.        ,  1.943959  ], dtype=mlc.float32)
    """
    return rounded_once(lambda x: x * tanh(softplus(x)), floating(input))


@operation()
def softplus(input: Operand, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """ln(1 + e ** (beta * x)) / beta, for each element: a smooth relu.

    Args:
        input: Tensor or number; integers become float32.
        beta: How sharp the bend is.
        threshold: Where beta * x is above it, the result is x itself.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.softplus(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3132617, 0.6931472, 2.126928 ], dtype=mlc.float32)
    """
    x = floating(input)
    if beta == 1:
        soft = typed(Tensor, emit(T.Softplus, x))
        return E.where(x > threshold, x, soft)
    scaled = x * beta
    return E.where(scaled > threshold, x, typed(Tensor, emit(T.Softplus, tracer(scaled))) / beta)


@operation()
def logsigmoid(input: Operand) -> Tensor:
    """ln(1 / (1 + e ** -x)), for each element, without overflow.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.logsigmoid(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.3132617 , -0.6931472 , -0.12692802], dtype=mlc.float32)
    """
    return typed(Tensor, emit(T.LogSigmoid, floating(input)))


@operation()
def softsign(input: Operand) -> Tensor:
    """x / (1 + |x|), for each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.softsign(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.5      ,  0.       ,  0.6666667], dtype=mlc.float32)
    """
    x = floating(input)
    return x / (1 + E.abs(x))


@operation()
def tanhshrink(input: Operand) -> Tensor:
    """x - tanh(x), for each element.

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.tanhshrink(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.23840582,  0.        ,  1.0359724 ], dtype=mlc.float32)
    """
    x = floating(input)
    return x - tanh(x)


@operation()
def softshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """x - lambd where x > lambd, x + lambd where x < -lambd, 0 between.

    Args:
        input: Tensor or number; integers become float32.
        lambd: Half of the interval that becomes 0.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.softshrink(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.5,  0. ,  1.5], dtype=mlc.float32)
    """
    x = floating(input)
    return E.where(E.abs(x) <= lambd, 0.0, E.where(x > 0, x - lambd, x + lambd))


@operation()
def hardshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, 0 elsewhere.

    Args:
        input: Tensor or number; integers become float32.
        lambd: Half of the interval that becomes 0.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.hardshrink(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.,  0.,  2.], dtype=mlc.float32)
    """
    x = floating(input)
    return E.where(E.abs(x) <= lambd, 0.0, x)


@operation()
def hardtanh(input: Operand, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """min(max(x, min_val), max_val), for each element. The derivative at both limits is 0.

    Args:
        input: Tensor or number; integers become float32.
        min_val: Lower limit.
        max_val: Upper limit.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.hardtanh(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.], dtype=mlc.float32)
    """
    x = floating(input)
    return E.where(x <= min_val, min_val, E.where(x >= max_val, max_val, x))


@operation()
def hardsigmoid(input: Operand) -> Tensor:
    """min(max(x / 6 + 1 / 2, 0), 1), for each element (Courbariaux, Bengio and David 2015).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.hardsigmoid(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3333333, 0.5      , 0.8333334], dtype=mlc.float32)
    """
    return rounded_once(lambda x: E.where(x <= -3, 0.0, E.where(x >= 3, 1.0, x / 6 + 0.5)), floating(input))


@operation()
def hardswish(input: Operand) -> Tensor:
    """x * hardsigmoid(x), for each element (Howard et al. 2019).

    Args:
        input: Tensor or number; integers become float32.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.hardswish(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.33333334,  0.        ,  1.6666666 ], dtype=mlc.float32)
    """
    def steps(x: Tracer) -> Tensor:
        between = E.where(E.abs(x) < 3, x, 0.0)            # no infinity where it is not taken
        return E.where(x <= -3, 0.0, E.where(x >= 3, x, E.where(E.isnan(x), x, between * (between + 3) / 6)))
    return rounded_once(steps, floating(input))


@operation()
def threshold(input: Operand, threshold: float, value: float) -> Tensor:
    """x where x > threshold, `value` elsewhere.

    Args:
        input: Tensor or number.
        threshold: The threshold.
        value: Number in place of elements that are not above it.

    Returns:
        Tensor of the shape of `input`.

    Example:
        >>> mlc.threshold(mlc.tensor([-1.0, 0.5, 2.0]), 0.5, 9.0)
        tensor([9., 9., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    return E.where(x <= threshold, cast(number(value, x.type.dtype), x.type.dtype), x)


@operation()
def glu(input: Operand, dim: int = -1) -> Tensor:
    """a * sigmoid(b), for the halves a and b of a dimension: gated linear unit (Dauphin et al. 2017).

    Args:
        input: Tensor; integers become float32.
        dim: The dimension, of even size; negative ones count from the last.

    Returns:
        Tensor of floats, with half the size along `dim`.

    Raises:
        UserError: the size is odd (MLC0358), or `dim` is out of range (MLC0356).

    Example:
        >>> nn.functional.glu(mlc.tensor([4.0, 0.0]))
        tensor([2.], dtype=mlc.float32)
    """
    x = floating(input)
    at = axis(dim, x.ndim, scalar=False)
    n = x.shape[at]
    if n % 2 != 0:
        raise UserError(f"dimension {at} has size {n}, which has no halves", code="MLC0358")
    return rounded_once(lambda a, b: a * E.sigmoid(b), S.sliced(x, at, 0, n // 2), S.sliced(x, at, n // 2, n))


@operation()
def softmax(input: Operand, dim: int, dtype: DTypeLike = None) -> Tensor:
    """e ** x[i] / sum_j e ** x[j] along a dimension.

    The maximum is subtracted first, so large elements do not overflow. A slice that holds NaN gives NaN.

    Args:
        input: Tensor or number; integers become float32.
        dim: The dimension; negative ones count from the last.
        dtype: Float dtype that elements are cast to first; that of `input` by default.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.softmax(mlc.tensor([0.0, 1.0]), dim=0)
        tensor([0.26894143, 0.7310586 ], dtype=mlc.float32)
    """
    x = floating(input, dtype)
    return typed(Tensor, emit(T.Softmax, x, axis(dim, x.ndim))) if x.ndim else E.exp(x - x)


@operation()
def log_softmax(input: Operand, dim: int, dtype: DTypeLike = None) -> Tensor:
    """x[i] - ln(sum_j e ** x[j]) along a dimension: the logarithm of `softmax`.

    It does not overflow, nor is it -inf where `softmax` rounds to 0.

    Args:
        input: Tensor or number; integers become float32.
        dim: The dimension; negative ones count from the last.
        dtype: Float dtype that elements are cast to first; that of `input` by default.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.log_softmax(mlc.tensor([0.0, 1.0]), dim=0)
        tensor([-1.3132616 , -0.31326166], dtype=mlc.float32)
    """
    x = floating(input, dtype)
    return typed(Tensor, emit(T.LogSoftmax, x, axis(dim, x.ndim))) if x.ndim else x - x


@operation()
def softmin(input: Operand, dim: int, dtype: DTypeLike = None) -> Tensor:
    """e ** -x[i] / sum_j e ** -x[j] along a dimension: softmax(-x).

    Args:
        input: Tensor or number; integers become float32.
        dim: The dimension; negative ones count from the last.
        dtype: Float dtype that elements are cast to first; that of `input` by default.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.functional.softmin(mlc.tensor([0.0, 1.0]), dim=0)
        tensor([0.7310586 , 0.26894143], dtype=mlc.float32)
    """
    return softmax(-floating(input), dim, dtype)


@operation()
def layer_norm(input: Operand, normalized_shape: Sequence[Dim], weight: Operand = None, bias: Operand = None,
               eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions (Ba, Kiros and Hinton 2016).

    Mean and variance (without Bessel's correction) are those of all elements of `normalized_shape`.

    Args:
        input: Tensor of shape (..., *normalized_shape); integers become float32.
        normalized_shape: Sizes of the last dimensions.
        weight: Tensor of shape `normalized_shape`; None for 1.
        bias: Tensor of shape `normalized_shape`; None for 0.
        eps: Added to the variance.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: shapes do not fit (MLC0367), or a parameter is of a wider float dtype than `input` (MLC0420).

    Example:
        >>> mlc.layer_norm(mlc.tensor([1.0, 3.0]), (2,))
        tensor([-0.999995,  0.999995], dtype=mlc.float32)
    """
    x, shape = _last_dimensions(input, normalized_shape)
    extra = [_of_shape(p, x, shape, name) for name, p in (("weight", weight), ("bias", bias))]
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return typed(Tensor, emit(T.LayerNorm, x, extra[0], extra[1], axes, eps))


def _last_dimensions(input: Operand, normalized_shape: Sequence[Dim]) -> tuple[Tracer, tuple[Dim, ...]]:
    x = floating(input)
    shape = tuple(normalized_shape) if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
    if not shape or x.shape[x.ndim - len(shape):] != shape or len(shape) > x.ndim:
        raise UserError(f"normalized_shape {list(shape)} is not the end of shape {list(x.shape)}", code="MLC0367")
    return x, shape


@operation()
def rms_norm(input: Operand, normalized_shape: Sequence[Dim], weight: Operand = None,
             eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x ** 2) + eps) * weight over the last dimensions (Zhang and Sennrich 2019).

    Args:
        input: Tensor of shape (..., *normalized_shape); integers become float32.
        normalized_shape: Sizes of the last dimensions.
        weight: Tensor of shape `normalized_shape`; None for 1.
        eps: Added to the mean; by default the epsilon of the dtype in which it is computed.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: shapes do not fit (MLC0367), or `weight` is float32 for an `input` of float64 (MLC0420).

    Example:
        >>> mlc.rms_norm(mlc.tensor([3.0, 4.0]), (2,))
        tensor([0.84852815, 1.1313709 ], dtype=mlc.float32)
    """
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
        raise UserError(f"the {name} has shape {list(out.shape)}, expected {list(shape)}", code="MLC0367")
    return out


@operation()
def normalize(input: Operand, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x / max(norm(x, p), eps) along a dimension.

    Args:
        input: Tensor; integers become float32.
        p: Exponent of the norm, as in `mlc.norm`.
        dim: The dimension; negative ones count from the last.
        eps: Least divisor.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.functional.normalize(mlc.tensor([[3.0, 4.0]]))
        tensor([[0.6, 0.8]], dtype=mlc.float32)
    """
    return rounded_once(lambda x: x / E.maximum(R.norm(x, p, dim, True), eps), floating(input))


@operation()
def linear(input: Operand, weight: Operand, bias: Operand = None) -> Tensor:
    """input @ weight.T + bias, a linear layer.

    Args:
        input: Tensor of shape (..., in_features).
        weight: Tensor of shape (out_features, in_features), or (in_features,) for one number each.
        bias: Tensor of shape (out_features,); None for 0.

    Returns:
        Tensor of shape (..., out_features).

    Raises:
        UserError: inner sizes differ (MLC0367), a number of dimensions is wrong (MLC0364), or the float dtypes differ
            (MLC0420).

    Example:
        >>> nn.functional.linear(mlc.tensor([1.0, 2.0]), mlc.tensor([[3.0, 4.0], [5.0, 6.0]]), mlc.tensor([0.0, 1.0]))
        tensor([11., 18.], dtype=mlc.float32)
    """
    x, w = factors(input, weight)
    if w.ndim not in (1, 2) or not x.ndim:
        raise UserError(f"the weight has {w.ndim} dimensions, the input {x.ndim}", code="MLC0364")
    if x.shape[-1] != w.shape[-1]:
        raise UserError(f"inner sizes differ: the input has {x.shape[-1]} features, the weight takes {w.shape[-1]}",
                        code="MLC0367")
    out = C.dot_general(x, w, (), ((x.ndim - 1, w.ndim - 1),))
    return out if bias is None else out + tracer(bias)


@operation()
def bilinear(input1: Operand, input2: Operand, weight: Operand, bias: Operand = None) -> Tensor:
    """input1 @ weight[k] @ input2 + bias[k], for each k.

    Args:
        input1: Tensor of shape (..., m).
        input2: Tensor of shape (..., n).
        weight: Tensor of shape (k, m, n).
        bias: Tensor of shape (k,); None for 0.

    Returns:
        Tensor of shape (..., k).

    Raises:
        UserError: shapes do not fit (MLC0367), or the float dtypes differ (MLC0420).

    Example:
        >>> nn.functional.bilinear(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]), mlc.ones(1, 2, 2))
        tensor([21.], dtype=mlc.float32)
    """
    a, b, w = factors(input1, input2, weight)
    if w.ndim != 3 or a.shape[:-1] != b.shape[:-1] or (a.shape[-1:], b.shape[-1:]) != (w.shape[1:2], w.shape[2:]):
        raise UserError(f"the inputs have shapes {list(a.shape)} and {list(b.shape)}, the weight {list(w.shape)}: "
                        "expected [..., m], [..., n] and [k, m, n]", code="MLC0367")
    half = C.dot_general(a, w, (), ((a.ndim - 1, 1),))                     # [..., k, n]
    out = R.sum(half * reshape(b, [*b.shape[:-1], 1, b.shape[-1]]), -1)
    return out if bias is None else out + tracer(bias)


@operation()
def embedding_bag(input: Operand, weight: Operand, mode: str = "mean", per_sample_weights: Operand = None,
                  padding_idx: int | None = None) -> Tensor:
    """The sum, mean or maximum of rows of a table, for each bag of indices.

    PyTorch's `offsets` are not taken: all bags have one size, and are filled up with `padding_idx`.

    Args:
        input: Tensor of integers of shape (bags, size).
        weight: Tensor of shape (n, features).
        mode: "sum", "mean" or "max".
        per_sample_weights: Factors of rows, of the shape of `input`, for mode "sum"; None for 1.
        padding_idx: Index that does not count, nor gets a gradient; a negative one counts from the end.

    Returns:
        Tensor of shape (bags, features); 0 for bags of nothing but padding.

    Raises:
        UserError: `input` is not of integers (MLC0354) or out of range (MLC0340, an IndexError), a number of dimensions
            is wrong (MLC0364), `mode` is another string or does not go with weights (MLC0360).

    Example:
        >>> nn.functional.embedding_bag(mlc.tensor([[0, 1]]), mlc.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[2., 3.]], dtype=mlc.float32)
    """
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
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along a dimension.

    Args:
        x1: Tensor; integers become float32.
        x2: Tensor whose shape broadcasts with that of `x1`.
        dim: The dimension of the broadcast shape; negative ones count from the last.
        eps: Least norm to divide by.

    Returns:
        Tensor of floats in [-1, 1], up to rounding, without the dimension.

    Raises:
        UserError: `dim` is out of range (MLC0356), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.cosine_similarity(mlc.tensor([1.0, 0.0]), mlc.tensor([3.0, 4.0]), dim=0)
        tensor(0.6, dtype=mlc.float32)
    """
    a, b = together(x1, x2, floating=True)
    a, b = (tracer(x) for x in S.broadcast_tensors(a, b))

    def cosine(a: Tracer, b: Tracer) -> Tensor:
        left = E.maximum(R.norm(a, 2, dim, True), eps)
        right = E.maximum(R.norm(b, 2, dim, True), eps)
        return R.sum((a / left) * (b / right), dim)
    return rounded_once(cosine, a, b)


@operation()
def pairwise_distance(x1: Operand, x2: Operand, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """norm(x1 - x2 + eps, p) along the last dimension.

    Args:
        x1: Tensor of floats of shape (..., n).
        x2: Tensor whose shape broadcasts with that of `x1`.
        p: Exponent of the norm, as in `mlc.norm`.
        eps: Added to the differences, so that the derivative is defined where they are 0.
        keepdim: Whether the last dimension stays, with size 1.

    Returns:
        Tensor without the last dimension.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.pairwise_distance(mlc.tensor([1.0, 2.0]), mlc.tensor([4.0, 6.0]))
        tensor(4.9999986, dtype=mlc.float32)
    """
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
    """Each element 0 with probability p, otherwise input / (1 - p), in training (Srivastava et al. 2014).

    Unlike PyTorch's, it draws with a key that is given: equal keys drop the same elements. `nn.Dropout` keeps a key of
    its own.

    Args:
        input: Tensor.
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        key: Random key, needed in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), or the key is missing (MLC0353).

    Example:
        >>> nn.functional.dropout(mlc.ones(3), 0.0, key=mlc.random.key(0))
        tensor([1., 1., 1.], dtype=mlc.float32)
    """
    return random.dropout(key, input, p) if _dropped(p, training, key) else tracer(input)


@operation()
def feature_dropout(input: Operand, p: float = 0.5, training: bool = True, spatial: int = 2, *,
                    key: Operand = None) -> Tensor:
    """Dropout of whole channels: all elements of a channel become 0, or are divided by 1 - p (Tompson et al. 2015).

    PyTorch's dropout1d, dropout2d and dropout3d are this for `spatial` 1, 2 and 3.

    Args:
        input: Tensor of shape (channels, *image) or (n, channels, *image).
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        spatial: Number of the dimensions of an image.
        key: Random key, needed in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), the key is missing (MLC0353), or the number of dimensions is wrong
            (MLC0364).

    Example:
        >>> nn.functional.feature_dropout(mlc.ones(1, 2, 2), 0.0, key=mlc.random.key(0))
        tensor([[[1., 1.],
                 [1., 1.]]], dtype=mlc.float32)
    """
    x = floating(input)
    if not _dropped(p, training, key):
        return x
    lead = x.ndim - spatial
    if lead not in (1, 2):
        raise UserError(f"the input has {x.ndim} dimensions, expected {spatial + 1} or {spatial + 2}", code="MLC0364")
    return x * random.dropout(key, full(1.0, x, [*x.shape[:lead], *[1] * spatial]), p)


@operation()
def alpha_dropout(input: Operand, p: float = 0.5, training: bool = True, *, key: Operand = None) -> Tensor:
    """Dropout for `selu`: elements become its limit of -1.7581 with probability p, and all are scaled.

    Mean 0 and variance 1 are kept (Klambauer et al. 2017).

    Args:
        input: Tensor; integers become float32.
        p: Probability, a Python number from 0 to 1.
        training: Whether to drop anything; otherwise the result is `input`.
        key: Random key, needed in training.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `p` is no probability (MLC0360), or the key is missing (MLC0353).

    Example:
        >>> nn.functional.alpha_dropout(mlc.ones(3), training=False)
        tensor([1., 1., 1.], dtype=mlc.float32)
    """
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
