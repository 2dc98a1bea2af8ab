"""Piecewise activations as modules: rectifiers, shrinkage and clipping, under the names of torch.nn."""

from __future__ import annotations

from typing import Any

from mlc.frontend.functions import create, neural
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.nn.dropout import Keyed
from mlc.nn.module import Module


class ReLU(Module):
    """Rectified linear unit: max(x, 0).

    Integers keep their dtype; a bool tensor becomes int64. The derivative at 0 is 0.

    Shape:
        Any shape -> the same shape.

    Args:
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.ReLU()(mlc.tensor([-1.0, 2.0]))
        tensor([0., 2.], dtype=mlc.float32)
    """

    _shown = ("inplace?",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.relu(input, inplace=self.inplace)


class ReLU6(Module):
    """Rectified linear unit with an upper bound: min(max(x, 0), 6).

    Integers keep their dtype. The derivative is 0 at 0 and at 6.
    (Krizhevsky 2010, "Convolutional Deep Belief Networks on CIFAR-10".)

    Shape:
        Any shape -> the same shape.

    Args:
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.ReLU6()(mlc.tensor([-1.0, 2.0, 9.0]))
        tensor([0., 2., 6.], dtype=mlc.float32)
    """

    _shown = ("inplace?",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.relu6(input, inplace=self.inplace)


class LeakyReLU(Module):
    """Leaky rectified linear unit: x if x > 0, else negative_slope * x.

    Integers become float32. (Maas, Hannun and Ng 2013, "Rectifier Nonlinearities Improve Neural Network Acoustic
    Models".)

    Shape:
        Any shape -> the same shape.

    Args:
        negative_slope: Slope for x <= 0.
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.LeakyReLU(0.1)(mlc.tensor([-1.0, 2.0]))
        tensor([-0.1,  2. ], dtype=mlc.float32)
    """

    _shown = ("negative_slope", "inplace?")

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.leaky_relu(input, self.negative_slope, inplace=self.inplace)


class ELU(Module):
    """Exponential linear unit: x if x > 0, else alpha * (exp(x) - 1).

    Integers become float32. (Clevert, Unterthiner and Hochreiter 2016, "Fast and Accurate Deep Network Learning by
    Exponential Linear Units".)

    Shape:
        Any shape -> the same shape.

    Args:
        alpha: Minus the limit for x -> -inf.
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.ELU()(mlc.tensor([-1.0, 2.0]))
        tensor([-0.63212055,  2.        ], dtype=mlc.float32)
    """

    _shown = ("alpha", "inplace?")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.elu(input, self.alpha, inplace=self.inplace)


class SELU(Module):
    """Scaled exponential linear unit: scale * (x if x > 0, else alpha * (exp(x) - 1)).

    scale = 1.0507009873554805 and alpha = 1.6732632423543772 make mean 0 and variance 1 a fixed point for the
    activations of layers whose weights have mean 0 and variance 1 / fan_in. Integers become float32. (Klambauer,
    Unterthiner, Mayr and Hochreiter 2017, "Self-Normalizing Neural Networks".)

    Shape:
        Any shape -> the same shape.

    Args:
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.SELU()(mlc.tensor([-1.0, 2.0]))
        tensor([-1.1113307,  2.101402 ], dtype=mlc.float32)
    """

    _shown = ("inplace?",)

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.selu(input, inplace=self.inplace)


class CELU(Module):
    """Continuously differentiable exponential linear unit: x if x > 0, else alpha * (exp(x / alpha) - 1).

    Integers become float32. (Barron 2017, "Continuously Differentiable Exponential Linear Units".)

    Shape:
        Any shape -> the same shape.

    Args:
        alpha: Minus the limit for x -> -inf; not 0.
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.CELU(2.0)(mlc.tensor([-1.0, 2.0]))
        tensor([-0.78693867,  2.        ], dtype=mlc.float32)
    """

    _shown = ("alpha", "inplace?")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.celu(input, self.alpha, inplace=self.inplace)


class Softshrink(Module):
    """Soft shrinkage: x - lambd if x > lambd, x + lambd if x < -lambd, else 0.

    It is the proximal operator of lambd * |x|. Integers become float32.

    Shape:
        Any shape -> the same shape.

    Args:
        lambd: Half of the width of the interval that becomes 0. Unlike PyTorch, negative numbers are not refused.

    Example:
        >>> nn.Softshrink()(mlc.tensor([-1.0, 0.25, 2.0]))
        tensor([-0.5,  0. ,  1.5], dtype=mlc.float32)
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)

    def forward(self, input: Operand) -> Tensor:
        return neural.softshrink(input, self.lambd)


class Hardshrink(Module):
    """Hard shrinkage: x if |x| > lambd, else 0.

    Integers become float32.

    Shape:
        Any shape -> the same shape.

    Args:
        lambd: Half of the width of the interval that becomes 0.

    Example:
        >>> nn.Hardshrink()(mlc.tensor([-1.0, 0.25, 2.0]))
        tensor([-1.,  0.,  2.], dtype=mlc.float32)
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)

    def forward(self, input: Operand) -> Tensor:
        return neural.hardshrink(input, self.lambd)


class Hardtanh(Module):
    """Clipping to an interval: min(max(x, min_val), max_val).

    Integers become float32. The derivative is 0 at both ends.

    Shape:
        Any shape -> the same shape.

    Args:
        min_val: Lower bound.
        max_val: Upper bound, which is not checked to be above the lower one.
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.Hardtanh()(mlc.tensor([-2.0, 0.5, 2.0]))
        tensor([-1. ,  0.5,  1. ], dtype=mlc.float32)
    """

    _shown = ("min_val", "max_val", "inplace?")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val, self.max_val = min_val, max_val
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.hardtanh(input, self.min_val, self.max_val, inplace=self.inplace)


class Hardsigmoid(Module):
    """Piecewise linear sigmoid: min(max(x / 6 + 1/2, 0), 1).

    Integers become float32. (Howard et al. 2019, "Searching for MobileNetV3".)

    Shape:
        Any shape -> the same shape.

    Args:
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.Hardsigmoid()(mlc.tensor([-4.0, 0.0, 1.5]))
        tensor([0.  , 0.5 , 0.75], dtype=mlc.float32)
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.hardsigmoid(input, inplace=self.inplace)


class Hardswish(Module):
    """Swish with a piecewise linear sigmoid: x * min(max(x / 6 + 1/2, 0), 1).

    Integers become float32. (Howard et al. 2019, "Searching for MobileNetV3".)

    Shape:
        Any shape -> the same shape.

    Args:
        inplace: Whether the result is written to the input.

    Example:
        >>> nn.Hardswish()(mlc.tensor([-4.0, 1.5, 4.0]))
        tensor([0.   , 1.125, 4.   ], dtype=mlc.float32)
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.hardswish(input, inplace=self.inplace)


class Threshold(Module):
    """Threshold: x if x > threshold, else value.

    The result has the dtype of the input.

    Shape:
        Any shape -> the same shape.

    Args:
        threshold: Elements up to it, inclusive, are replaced.
        value: Number in their place; for a tensor of integers an integer.
        inplace: Whether the result is written to the input.

    Raises:
        UserTypeError: The dtype of the input does not have `value` (MLC0352).

    Example:
        >>> nn.Threshold(0.5, 9.0)(mlc.tensor([0.0, 1.0]))
        tensor([9., 1.], dtype=mlc.float32)
    """

    _shown = ("threshold", "value", "inplace?")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold, self.value = threshold, value
        self.inplace = inplace

    def forward(self, input: Operand) -> Tensor:
        return neural.threshold(input, self.threshold, self.value, inplace=self.inplace)


class PReLU(Module):
    """Parametric rectified linear unit: x if x > 0, else weight * x, with a trained weight.

    (He, Zhang, Ren and Sun 2015, "Delving Deep into Rectifiers".)

    Shape:
        [n, num_parameters, ...] -> the same shape; any shape if num_parameters is 1.

    Attributes:
        weight: Parameter [num_parameters], `init` everywhere at first.

    Args:
        num_parameters: 1, or the size of dimension 1 of the input, for one weight per channel.
        init: Initial value of the weights.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the weights; None for float32.

    Raises:
        UserError: The input has another number of channels than there are weights (MLC0367), or a size is negative
            (MLC0358).

    Example:
        >>> nn.PReLU()(mlc.tensor([-1.0, 2.0]))
        tensor([-0.25,  2.  ], dtype=mlc.float32, grad_fn=<PreluBackward>)
    """

    _parameters = ("weight",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None,
                 dtype: DTypeLike = None) -> None:
        self.init = init
        self.weight = create.full((num_parameters,), init, dtype=dtype or "float32")
        self.to(device=device)

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.PReLU().reset_parameters()
        """
        self.weight.data.fill_(self.init)

    def extra_repr(self) -> str:
        return f"num_parameters={self.weight.numel()}"

    def forward(self, input: Operand) -> Tensor:
        return neural.prelu(input, self.weight)


class RReLU(Keyed):
    """Randomized leaky ReLU: x where x > 0, slope * x elsewhere.

    In training the slope is drawn from [lower, upper) for each element; in evaluation it is their mean. The layer holds
    the key that it draws with, as `Dropout` does. (Xu, Wang, Chen and Li 2015, "Empirical Evaluation of Rectified
    Activations in Convolutional Network".)

    Shape:
        Any shape -> the same shape.

    Attributes:
        key: Buffer, uint32 [2], the key of its own, which `state_dict` leaves out.

    Args:
        lower: Least slope.
        upper: Greatest slope.
        inplace: Whether the result is written to the input.

    Raises:
        UserError: `lower` is above `upper` (MLC0360).

    Example:
        >>> nn.RReLU(0.25, 0.75).eval()(mlc.tensor([-8.0, 2.0]))
        tensor([-4.,  2.], dtype=mlc.float32)
    """

    _shown = ("lower", "upper", "inplace?")

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Operand) -> Tensor:
        key = self.next_key() if self.training else None
        return neural.rrelu(input, self.lower, self.upper, self.training, self.inplace, key=key)
