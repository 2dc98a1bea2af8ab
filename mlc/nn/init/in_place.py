"""PyTorch's functions that write initial values into a tensor: `normal_(w)` returns w with other elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.generator import Generator
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserTypeError
from mlc.nn.init import distributions, scaled, shapes, structured


def _filled(tensor: Tensor, values: Callable[..., Tensor], **arguments: Any) -> Tensor:
    """The tensor, with elements that `values` makes for its shape and dtype."""
    given: object = tensor
    if not isinstance(given, Tensor):
        raise UserTypeError(f"initial values are written into a tensor, found {type(given).__name__}", code="MLC0421",
                            loc=user_loc())
    if state.trace is not None or isinstance(tensor, Tracer):
        raise UserTypeError("initial values cannot be written into a tensor while a function is recorded",
                            code="MLC0718", loc=user_loc(),
                            hint="do so outside of the function, or make a new tensor, as in mlc.nn.init.normal(shape)")
    made = values(tensor.shape, dtype=tensor.dtype, **arguments).to_device(tensor.device)
    if shapes.state.shapes_only:
        tensor.replace_elements(made)                      # which take no memory
    else:
        with no_grad():
            tensor.copy_(made)                             # so that what shares the memory has them, too
    return tensor


@coded
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a tensor with numbers uniformly distributed in [a, b).

    Args:
        tensor: The tensor, whose elements are replaced.
        a: Lower bound.
        b: Upper bound.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `a` is above `b` or infinite (MLC0360), or `tensor` is recorded (MLC0718).

    Example:
        >>> nn.init.uniform_(mlc.empty(2, 3)).shape
        (2, 3)
    """
    return _filled(tensor, distributions.uniform, low=a, high=b, generator=generator)


@coded
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a tensor with numbers of a normal distribution.

    Args:
        tensor: The tensor, whose elements are replaced.
        mean: Mean.
        std: Standard deviation.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `std` is negative (MLC0360), or `tensor` is recorded (MLC0718).

    Example:
        >>> nn.init.normal_(mlc.empty(2, 3), std=0.02).shape
        (2, 3)
    """
    return _filled(tensor, distributions.normal, mean=mean, std=std, generator=generator)


@coded
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:
    """Fill a tensor with numbers of a normal distribution that lie in [a, b], as `trunc_normal`.

    Args:
        tensor: The tensor, whose elements are replaced.
        mean: Mean before the truncation.
        std: Standard deviation before the truncation.
        a: Lower bound, in absolute terms.
        b: Upper bound.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: a is not below b, less than one number in a hundred lies between them, or `std` is not positive
            (MLC0360), or `tensor` is recorded (MLC0718).

    Example:
        >>> nn.init.trunc_normal_(mlc.empty(100)).abs().max() <= 2
        tensor(True, dtype=mlc.bool)
    """
    return _filled(tensor, distributions.trunc_normal, mean=mean, std=std, a=a, b=b, generator=generator)


@coded
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with one number.

    tensor[i...] = val, in the dtype of the tensor. The write is not recorded, so a parameter stays a leaf.

    Args:
        tensor: The tensor, whose elements are replaced.
        val: The number.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` is recorded (MLC0718).

    Example:
        >>> nn.init.constant_(mlc.empty(2), 0.5)
        tensor([0.5, 0.5], dtype=mlc.float32)
    """
    return _filled(tensor, distributions.constant, value=val)


@coded
def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros.

    The write is not recorded, so a parameter stays a leaf. It is the usual initial value of biases.

    Args:
        tensor: The tensor, whose elements are replaced.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` is recorded (MLC0718).

    Example:
        >>> nn.init.zeros_(mlc.ones(2))
        tensor([0., 0.], dtype=mlc.float32)
    """
    return _filled(tensor, distributions.zeros)


@coded
def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones.

    The write is not recorded, so a parameter stays a leaf. It is the initial scale of normalization layers.

    Args:
        tensor: The tensor, whose elements are replaced.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` is recorded (MLC0718).

    Example:
        >>> nn.init.ones_(mlc.empty(2))
        tensor([1., 1.], dtype=mlc.float32)
    """
    return _filled(tensor, distributions.ones)


@coded
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity matrix.

    tensor[i, j] = (i == j), so that a linear layer passes on as many inputs as it can. The matrix need not be square.

    Args:
        tensor: The tensor, whose elements are replaced.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` has not 2 dimensions (MLC0364), or is recorded (MLC0718).

    Example:
        >>> nn.init.eye_(mlc.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]], dtype=mlc.float32)
    """
    return _filled(tensor, structured.eye)


@coded
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it copies its channels, as `dirac`.

    Args:
        tensor: The tensor, whose elements are replaced.
        groups: Number of groups of the output channels.

    Returns:
        `tensor`.

    Raises:
        UserError: The outputs are not divisible by `groups` (MLC0358), the number of dimensions is wrong (MLC0364), or
            `tensor` is recorded (MLC0718).

    Example:
        >>> nn.init.dirac_(mlc.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]], dtype=mlc.float32)
    """
    return _filled(tensor, structured.dirac, groups=groups)


@coded
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight with uniform numbers scaled by its fan-in and fan-out, as `xavier_uniform`.

    Args:
        tensor: The tensor, whose elements are replaced.
        gain: Factor, such as that of `calculate_gain`.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` has fewer than 2 dimensions (MLC0364), or is recorded (MLC0718).

    Example:
        >>> nn.init.xavier_uniform_(mlc.empty(4, 3)).shape
        (4, 3)
    """
    return _filled(tensor, scaled.xavier_uniform, gain=gain, generator=generator)


@coded
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight with normal numbers scaled by its fan-in and fan-out, as `xavier_normal`.

    Args:
        tensor: The tensor, whose elements are replaced.
        gain: Factor, such as that of `calculate_gain`.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` has fewer than 2 dimensions (MLC0364), or is recorded (MLC0718).

    Example:
        >>> nn.init.xavier_normal_(mlc.empty(4, 3)).shape
        (4, 3)
    """
    return _filled(tensor, scaled.xavier_normal, gain=gain, generator=generator)


@coded
def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:
    """Fill a weight with uniform numbers scaled for a nonlinearity, as `kaiming_uniform`.

    Args:
        tensor: The tensor, whose elements are replaced.
        a: Negative slope, where the nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: As of `calculate_gain`.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `mode` or `nonlinearity` is unknown (MLC0360), `tensor` has fewer than 2 dimensions (MLC0364), or is
            recorded (MLC0718).

    Example:
        >>> nn.init.kaiming_uniform_(mlc.empty(4, 3), nonlinearity="relu").shape
        (4, 3)
    """
    return _filled(tensor, scaled.kaiming_uniform, a=a, mode=mode, nonlinearity=nonlinearity, generator=generator)


@coded
def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:
    """Fill a weight with normal numbers scaled for a nonlinearity, as `kaiming_normal`.

    Args:
        tensor: The tensor, whose elements are replaced.
        a: Negative slope, where the nonlinearity is "leaky_relu".
        mode: "fan_in" to keep the variance of activations, "fan_out" that of gradients.
        nonlinearity: As of `calculate_gain`.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `mode` or `nonlinearity` is unknown (MLC0360), `tensor` has fewer than 2 dimensions (MLC0364), or is
            recorded (MLC0718).

    Example:
        >>> nn.init.kaiming_normal_(mlc.empty(4, 3), nonlinearity="relu").shape
        (4, 3)
    """
    return _filled(tensor, scaled.kaiming_normal, a=a, mode=mode, nonlinearity=nonlinearity, generator=generator)


@coded
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight with a random matrix of orthonormal rows or columns, as `orthogonal`.

    Args:
        tensor: The tensor, whose elements are replaced.
        gain: Factor of the matrix.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` has fewer than 2 dimensions (MLC0364), or is recorded (MLC0718).

    Example:
        >>> w = nn.init.orthogonal_(mlc.empty(2, 3))
        >>> mlc.allclose(w @ w.T, mlc.eye(2), atol=1e-6)
        True
    """
    return _filled(tensor, structured.orthogonal, gain=gain, generator=generator)


@coded
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal numbers of which a part is 0 in each column, as `sparse`.

    Args:
        tensor: The tensor, whose elements are replaced.
        sparsity: Fraction of zeros, from 0 to 1.
        std: Standard deviation of the others.
        generator: Source of the numbers; None for the default generator.

    Returns:
        `tensor`.

    Raises:
        UserError: `tensor` has not 2 dimensions (MLC0364), `sparsity` is not in [0, 1] or `std` negative
            (MLC0360), or `tensor` is recorded (MLC0718).

    Example:
        >>> (nn.init.sparse_(mlc.empty(4, 2), 0.5) == 0).sum(0)
        tensor([2, 2], dtype=mlc.int64)
    """
    return _filled(tensor, structured.sparse, sparsity=sparsity, std=std, generator=generator)
