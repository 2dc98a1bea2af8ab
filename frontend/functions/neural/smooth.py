"""Smooth activation functions, and softmax."""

from __future__ import annotations

from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.trigonometry import tanh
from mlc.frontend.operands import floating, rounded_once, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.diag import UserError


@operation()
def elu(input: Operand, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, alpha * (e ** x - 1) elsewhere (Clevert, Unterthiner and Hochreiter 2016).

    Args:
        input: Tensor or number; integers become float32.
        alpha: Minus the limit for x to -inf.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.elu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.63212055,  0.        ,  2.        ], dtype=mlc.float32)
    """
    return typed(Tensor, emit(T.Elu, floating(input), float(alpha)))


@operation()
def selu(input: Operand, inplace: bool = False) -> Tensor:
    """1.0507 * elu(x, 1.6733), with which activations keep mean 0 and variance 1 (Klambauer et al. 2017).

    Args:
        input: Tensor or number; integers become float32.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.selu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113307,  0.       ,  2.101402 ], dtype=mlc.float32)
    """
    return rounded_once(lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772), floating(input))


@operation()
def celu(input: Operand, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, alpha * (e ** (x / alpha) - 1) elsewhere (Barron 2017).

    Args:
        input: Tensor or number; integers become float32.
        alpha: Minus the limit for x to -inf.
        inplace: Whether the result is written to `input`, which is returned.

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

    Results of 16 bits are within 0.53 units of the last place, but 0 for x < -13.

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
def silu(input: Operand, inplace: bool = False) -> Tensor:
    """x * sigmoid(x), for each element; also called swish (Ramachandran, Zoph and Le 2017).

    Args:
        input: Tensor or number; integers become float32.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.silu(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.26894143,  0.        ,  1.7615942 ], dtype=mlc.float32)
    """
    return typed(Tensor, emit(T.Silu, floating(input)))


@operation()
def mish(input: Operand, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)), for each element (Misra 2020).

    Smooth, close to x for large x and to 0 for very negative x, with a least value of about -0.309 near x = -1.19. At
    -inf it is NaN.

    Args:
        input: Tensor or number; integers become float32.
        inplace: Whether the result is written to `input`, which is returned.

    Returns:
        Tensor of floats, of the shape of `input`.

    Example:
        >>> nn.functional.mish(mlc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.30340147,  0.        ,  1.943959  ], dtype=mlc.float32)
    """
    return rounded_once(lambda x: x * tanh(softplus(x)), floating(input))


@operation(autocast="fp32_on_cuda")
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

    def sharper(x: Tensor) -> Tensor:
        scaled = x * beta
        return E.where(scaled > threshold, x, typed(Tensor, emit(T.Softplus, tracer(scaled))) / beta)

    return rounded_once(sharper, x)


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

    Between -1 and 1 as tanh, but it approaches the limits as 1 / |x| rather than exponentially. The derivative is 1 /
    (1 + |x|)^2.

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

    Close to x^3 / 3 near 0, and to x - sign(x) far from it. The derivative is tanh(x)^2.

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
def glu(input: Operand, dim: int = -1) -> Tensor:
    """a * sigmoid(b), for the halves a and b of a dimension: gated linear unit (Dauphin et al. 2017).

    Args:
        input: Tensor; integers become float32.
        dim: The dimension, of even size; negative ones count from the last.

    Returns:
        Tensor of floats, with half the size along `dim`.

    Raises:
        UserError: the size is odd (MLC0358), `dim` is out of range (MLC0356), or `input` has no dimensions (MLC0364).

    Example:
        >>> nn.functional.glu(mlc.tensor([4.0, 0.0]))
        tensor([2.], dtype=mlc.float32)
    """
    x = floating(input)
    at = axis(dim, x.ndim, scalar=False)
    n = x.shape[at]
    if n % 2 != 0:
        raise UserError(f"dimension {at} has size {n}, which has no halves", code="MLC0358", symbols=sizes.symbols(n))
    return rounded_once(lambda a, b: a * E.sigmoid(b), S.sliced(x, at, 0, n // 2), S.sliced(x, at, n // 2, n))


@operation(autocast="fp32_on_cuda")
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


@operation(autocast="fp32_on_cuda")
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


@operation(autocast="fp32_on_cuda")
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
