"""Activations as modules, under the names of torch.nn."""

from __future__ import annotations

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import neural
from mlc.frontend.functions.trigonometry import tanh
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module


class GELU(Module):
    """Gaussian error linear unit: x * P(X <= x) for a standard normal X, which is x / 2 * (1 + erf(x / sqrt(2))).

    Integers become float32. (Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".)

    Shape:
        Any shape -> the same shape.

    Args:
        approximate: "none", or "tanh" for x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))).

    Raises:
        UserError: `approximate` is neither of these; found when the layer is called (MLC0360).

    Example:
        >>> nn.GELU()(mlc.tensor([-1.0, 2.0]))
        tensor([-0.15865526,  1.9544997 ], dtype=mlc.float32)
    """

    _shown = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Operand) -> Tensor:
        return neural.gelu(input, self.approximate)


class SiLU(Module):
    """Sigmoid linear unit, or swish: x / (1 + exp(-x)).

    Integers become float32. (Elfwing, Uchibe and Doya 2018, "Sigmoid-Weighted Linear Units"; Ramachandran, Zoph and Le
    2017, "Searching for Activation Functions".)

    Shape:
        Any shape -> the same shape.

    Args:
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.SiLU()(mlc.tensor([-1.0, 2.0]))
        tensor([-0.26894143,  1.7615942 ], dtype=mlc.float32)
    """

    _shown = ("inplace?",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.silu(input, inplace=self.inplace)


class Mish(Module):
    """Mish: x * tanh(log(1 + exp(x))).

    Integers become float32. (Misra 2019, "Mish: A Self Regularized Non-Monotonic Activation Function".)

    Shape:
        Any shape -> the same shape.

    Args:
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.Mish()(mlc.tensor([-1.0, 2.0]))
        tensor([-0.30340147,  1.943959  ], dtype=mlc.float32)
    """

    _shown = ("inplace?",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.mish(input, inplace=self.inplace)


class Softplus(Module):
    """Smooth rectifier: log(1 + exp(beta * x)) / beta.

    Integers become float32. Nothing overflows: the formula is evaluated as max(x, 0) + log1p(exp(-|x|)).
    (Dugas et al. 2001, "Incorporating Second-Order Functional Knowledge for Better Option Pricing".)

    Shape:
        Any shape -> the same shape.

    Args:
        beta: Sharpness of the bend; not 0.
        threshold: Where beta * x is above it, the result is x.

    Example:
        >>> nn.Softplus()(mlc.tensor([-1.0, 2.0]))
        tensor([0.3132617, 2.126928 ], dtype=mlc.float32)
    """

    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Operand) -> Tensor:
        return neural.softplus(input, self.beta, self.threshold)


class Sigmoid(Module):
    """Logistic function: 1 / (1 + exp(-x)).

    Integers become float32.

    Shape:
        Any shape -> the same shape.

    Example:
        >>> nn.Sigmoid()(mlc.tensor([-1.0, 2.0]))
        tensor([0.26894143, 0.8807971 ], dtype=mlc.float32)
    """

    def forward(self, input: Operand) -> Tensor:
        return E.sigmoid(input)


class LogSigmoid(Module):
    """Logarithm of the logistic function: -log(1 + exp(-x)), computed without overflow.

    Integers become float32.

    Shape:
        Any shape -> the same shape.

    Example:
        >>> nn.LogSigmoid()(mlc.tensor([-100.0, 2.0]))
        tensor([-100.        ,   -0.12692802], dtype=mlc.float32)
    """

    def forward(self, input: Operand) -> Tensor:
        return neural.logsigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent: (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    Integers become float32.

    Shape:
        Any shape -> the same shape.

    Example:
        >>> nn.Tanh()(mlc.tensor([-1.0, 2.0]))
        tensor([-0.7615942,  0.9640276], dtype=mlc.float32)
    """

    def forward(self, input: Operand) -> Tensor:
        return tanh(input)


class Tanhshrink(Module):
    """Remainder of the hyperbolic tangent: x - tanh(x).

    Integers become float32.

    Shape:
        Any shape -> the same shape.

    Example:
        >>> nn.Tanhshrink()(mlc.tensor([-1.0, 2.0]))
        tensor([-0.23840582,  1.0359724 ], dtype=mlc.float32)
    """

    def forward(self, input: Operand) -> Tensor:
        return neural.tanhshrink(input)


class Softsign(Module):
    """Softsign: x / (1 + |x|).

    Integers become float32. An infinity gives NaN, as in PyTorch. (Turian, Bergstra and Bengio 2009, "Quadratic
    Features and Deep Architectures for Chunking".)

    Shape:
        Any shape -> the same shape.

    Example:
        >>> nn.Softsign()(mlc.tensor([-1.0, 3.0]))
        tensor([-0.5 ,  0.75], dtype=mlc.float32)
    """

    def forward(self, input: Operand) -> Tensor:
        return neural.softsign(input)


class GLU(Module):
    """Gated linear unit: a * sigmoid(b), where a and b are the first and the second half of x along `dim`.

    Integers become float32. (Dauphin, Fan, Auli and Grangier 2017, "Language Modeling with Gated Convolutional
    Networks".)

    Shape:
        [..., 2 * n, ...] -> [..., n, ...], with these sizes at `dim`.

    Args:
        dim: Axis to halve; negative numbers count from the last.

    Raises:
        UserError: The size along `dim` is odd (MLC0358), or the input has no dimensions (MLC0364).
        UserIndexError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.GLU()(mlc.tensor([1.0, 2.0, 0.0, 10.0]))
        tensor([0.5      , 1.9999092], dtype=mlc.float32)
    """

    _shown = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Operand) -> Tensor:
        return neural.glu(input, self.dim)


class Softmax(Module):
    """Softmax along an axis: exp(x_i) / sum_j exp(x_j).

    The maximum is subtracted first, so that large elements do not overflow. Integers become float32. Unlike in PyTorch,
    `dim` has no default.

    Shape:
        Any shape -> the same shape; sums along `dim` are 1.

    Args:
        dim: Axis to normalize along; negative numbers count from the last.

    Raises:
        UserIndexError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.Softmax(0)(mlc.tensor([0.0, 0.0]))
        tensor([0.5, 0.5], dtype=mlc.float32)
    """

    _shown = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, input: Operand) -> Tensor:
        return neural.softmax(input, self.dim)


class LogSoftmax(Module):
    """Logarithm of the softmax along an axis: x_i - log(sum_j exp(x_j)).

    It is more accurate than the logarithm of `Softmax`, and does not overflow. Integers become float32.

    Shape:
        Any shape -> the same shape.

    Args:
        dim: Axis to normalize along; negative numbers count from the last.

    Raises:
        UserIndexError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.LogSoftmax(0)(mlc.tensor([0.0, 0.0]))
        tensor([-0.6931472, -0.6931472], dtype=mlc.float32)
    """

    _shown = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, input: Operand) -> Tensor:
        return neural.log_softmax(input, self.dim)


class Softmin(Module):
    """Softmin along an axis: exp(-x_i) / sum_j exp(-x_j).

    Integers become float32.

    Shape:
        Any shape -> the same shape; sums along `dim` are 1.

    Args:
        dim: Axis to normalize along; negative numbers count from the last.

    Raises:
        UserIndexError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.Softmin(0)(mlc.tensor([0.0, 1.0]))
        tensor([0.7310586 , 0.26894143], dtype=mlc.float32)
    """

    _shown = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, input: Operand) -> Tensor:
        return neural.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of images, for each pixel.

    The axis is the third from the end. Unlike in PyTorch, other numbers of dimensions than 3 and 4 are not refused.

    Shape:
        [n, c, h, w] or [c, h, w] -> the same shape; sums over c are 1.

    Raises:
        UserIndexError: The input has fewer than 3 dimensions (MLC0356).

    Example:
        >>> nn.Softmax2d()(mlc.zeros(4, 1, 1)).flatten()
        tensor([0.25, 0.25, 0.25, 0.25], dtype=mlc.float32)
    """

    def forward(self, input: Operand) -> Tensor:
        return neural.softmax(input, -3)
