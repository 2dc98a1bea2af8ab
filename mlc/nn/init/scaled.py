"""Initial values scaled by the fan-in and fan-out of a weight."""

from __future__ import annotations

import math

from mlc.frontend.generator import Generator
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.ir.diag import UserError
from mlc.nn.init.distributions import normal, uniform
from mlc.nn.init.shapes import Shape, sizes

_GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
          "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2),
          "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Gain of a nonlinearity: the factor of the deviation of weights that keeps the variance of activations.

    1 for linear maps, convolutions and "sigmoid", 5/3 for "tanh", sqrt(2) for "relu", sqrt(2 / (1 + param**2)) for
    "leaky_relu" and 3/4 for "selu", as in PyTorch. (He, Zhang, Ren and Sun 2015, "Delving Deep into Rectifiers".)

    Args:
        nonlinearity: Name of a function, or of a layer such as "conv2d".
        param: Negative slope of "leaky_relu"; None for 0.01.

    Returns:
        The gain, a float.

    Raises:
        UserError: The name is unknown (MLC0360).

    Example:
        >>> nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise UserError(f"nonlinearity = {nonlinearity!r}", code="MLC0360", loc=user_loc(),
                        hint="one of leaky_relu, " + ", ".join(_GAINS))
    return _GAINS[nonlinearity]


def kaiming_uniform(shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Kaiming initialization: uniform numbers in [-b, b) with b = gain * sqrt(3 / fan).

    (He, Zhang, Ren and Sun 2015, "Delving Deep into Rectifiers", section 2.2.)

    Args:
        shape: Sizes of the result.
        a: Negative slope, where the nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: As of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: `mode` or `nonlinearity` is unknown (MLC0360), the shape has fewer than 2 dimensions (MLC0364), or a
            size is negative (MLC0358).

    Example:
        >>> nn.init.kaiming_uniform((4, 3), nonlinearity="relu").shape
        (4, 3)
    """
    bound = math.sqrt(3) * calculate_gain(nonlinearity, a) / math.sqrt(max(1, _fan(shape, mode)))
    return uniform(shape, -bound, bound, dtype, generator)


def kaiming_normal(shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                   dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Kaiming initialization: normal numbers with deviation gain / sqrt(fan).

    (He, Zhang, Ren and Sun 2015, "Delving Deep into Rectifiers", section 2.2.)

    Args:
        shape: Sizes of the result.
        a: Negative slope, where the nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: As of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: `mode` or `nonlinearity` is unknown (MLC0360), the shape has fewer than 2 dimensions (MLC0364), or a
            size is negative (MLC0358).

    Example:
        >>> nn.init.kaiming_normal((4, 3), nonlinearity="relu").shape
        (4, 3)
    """
    return normal(shape, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(max(1, _fan(shape, mode))), dtype, generator)


def xavier_uniform(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
                   generator: Generator | None = None) -> Tensor:
    """Xavier initialization: uniform numbers in [-b, b) with b = gain * sqrt(6 / (fan_in + fan_out)).

    (Glorot and Bengio 2010, "Understanding the Difficulty of Training Deep Feedforward Neural Networks", equation 16.)

    Args:
        shape: Sizes of the result.
        gain: Factor, such as that of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364), or a size is negative (MLC0358).

    Example:
        >>> nn.init.xavier_uniform((4, 3)).shape
        (4, 3)
    """
    bound = gain * math.sqrt(6 / max(1, sum(fans(shape))))
    return uniform(shape, -bound, bound, dtype, generator)


def xavier_normal(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
                  generator: Generator | None = None) -> Tensor:
    """Xavier initialization: normal numbers with deviation gain * sqrt(2 / (fan_in + fan_out)).

    (Glorot and Bengio 2010, "Understanding the Difficulty of Training Deep Feedforward Neural Networks", equation 16.)

    Args:
        shape: Sizes of the result.
        gain: Factor, such as that of `calculate_gain`.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364), or a size is negative (MLC0358).

    Example:
        >>> nn.init.xavier_normal((4, 3)).shape
        (4, 3)
    """
    return normal(shape, 0.0, gain * math.sqrt(2 / max(1, sum(fans(shape)))), dtype, generator)


def fans(shape: Shape) -> tuple[int, int]:
    """Fan-in and fan-out of a weight: inputs * kernel elements, and outputs * kernel elements.

    Args:
        shape: Shape [outputs, inputs, *kernel] of the weight.

    Returns:
        The pair of integers.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364), or a size is negative (MLC0358).

    Example:
        >>> nn.init.fans((8, 3, 5, 5))
        (75, 200)
    """
    shape = sizes(shape)
    if len(shape) < 2:
        raise UserError(f"a weight of shape {list(shape)} has no inputs and outputs to count", code="MLC0364",
                        loc=user_loc())
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _fan(shape: Shape, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise UserError(f"mode = {mode!r}", code="MLC0360", loc=user_loc(), hint='use "fan_in" or "fan_out"')
    return fans(shape)[mode == "fan_out"]


def bound(inputs: int) -> float:
    """Bound of the uniform distribution that linear layers and convolutions begin with: 1 / sqrt(max(1, inputs)).

    Args:
        inputs: Fan-in of the weight.

    Returns:
        The bound, a float.

    Raises:
        UserError: `inputs` is negative (MLC0358).

    Example:
        >>> nn.init.bound(4)
        0.5
    """
    return 1 / math.sqrt(max(1, *sizes((inputs,))))
