"""Activations as modules, under the names of torch.nn. Nothing here works in place: `inplace` is taken and ignored."""

from __future__ import annotations

from mlc.frontend.functions import create, neural
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.trigonometry import tanh
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.nn.module import Module


class ReLU(Module):
    """max(x, 0)"""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return neural.relu(x)


class ReLU6(Module):
    """min(max(x, 0), 6)"""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return neural.relu6(x)


class LeakyReLU(Module):
    """x above 0, negative_slope * x below"""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Operand) -> Tensor:
        return neural.leaky_relu(x, self.negative_slope)


class ELU(Module):
    """x above 0, alpha * (e ** x - 1) below"""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha

    def forward(self, x: Operand) -> Tensor:
        return neural.elu(x, self.alpha)


class SELU(Module):
    """elu, scaled so that activations keep mean 0 and variance 1"""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return neural.selu(x)


class CELU(Module):
    """x above 0, alpha * (e ** (x / alpha) - 1) below"""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha

    def forward(self, x: Operand) -> Tensor:
        return neural.celu(x, self.alpha)


class GELU(Module):
    """x * P(X <= x) for a standard normal X"""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Operand) -> Tensor:
        return neural.gelu(x, self.approximate)


class SiLU(Module):
    """x * sigmoid(x)"""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return neural.silu(x)


class Mish(Module):
    """x * tanh(softplus(x))"""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return neural.mish(x)


class Softplus(Module):
    """log(1 + e ** (beta * x)) / beta"""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Operand) -> Tensor:
        return neural.softplus(x, self.beta, self.threshold)


class Sigmoid(Module):
    """1 / (1 + e ** -x)"""

    def forward(self, x: Operand) -> Tensor:
        return E.sigmoid(x)


class LogSigmoid(Module):
    """log(sigmoid(x))"""

    def forward(self, x: Operand) -> Tensor:
        return neural.logsigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Operand) -> Tensor:
        return tanh(x)


class Tanhshrink(Module):
    """x - tanh(x)"""

    def forward(self, x: Operand) -> Tensor:
        return neural.tanhshrink(x)


class Softsign(Module):
    """x / (1 + |x|)"""

    def forward(self, x: Operand) -> Tensor:
        return neural.softsign(x)


class Softshrink(Module):
    """x moved by lambd toward 0, and 0 within lambd of it"""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Operand) -> Tensor:
        return neural.softshrink(x, self.lambd)


class Hardshrink(Module):
    """x, and 0 within lambd of 0"""

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, x: Operand) -> Tensor:
        return neural.hardshrink(x, self.lambd)


class Hardtanh(Module):
    """min(max(x, min_val), max_val)"""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: Operand) -> Tensor:
        return neural.hardtanh(x, self.min_val, self.max_val)


class Hardsigmoid(Module):
    """min(max(x / 6 + 1 / 2, 0), 1)"""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return neural.hardsigmoid(x)


class Hardswish(Module):
    """x * hardsigmoid(x)"""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return neural.hardswish(x)


class Threshold(Module):
    """x above the threshold, value elsewhere"""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold, self.value = threshold, value

    def forward(self, x: Operand) -> Tensor:
        return neural.threshold(x, self.threshold, self.value)


class GLU(Module):
    """a * sigmoid(b), where a and b are the halves of x along dim"""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Operand) -> Tensor:
        return neural.glu(x, self.dim)


class Softmax(Module):
    """e ** x / sum(e ** x) along dim"""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Operand) -> Tensor:
        return neural.softmax(x, self.dim)


class LogSoftmax(Module):
    """log(softmax(x))"""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Operand) -> Tensor:
        return neural.log_softmax(x, self.dim)


class Softmin(Module):
    """softmax(-x)"""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Operand) -> Tensor:
        return neural.softmin(x, self.dim)


class Softmax2d(Module):
    """softmax over the channels of images [n, c, h, w] or [c, h, w]"""

    def forward(self, x: Operand) -> Tensor:
        return neural.softmax(x, -3)


class PReLU(Module):
    """x above 0, weight * x below; one weight, or one for each of dimension 1"""

    _parameters = ("weight",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: DTypeLike = "float32") -> None:
        self.weight = create.full((num_parameters,), init, dtype=dtype)

    def forward(self, x: Operand) -> Tensor:
        return neural.prelu(x, self.weight)
