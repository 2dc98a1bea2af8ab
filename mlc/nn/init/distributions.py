"""Initial values without structure: independent random numbers, and constants."""

from __future__ import annotations

import math

import numpy as np

from mlc.frontend.generator import Generator, default_generator
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.ir.diag import UserError
from mlc.nn.init.shapes import Shape, as_tensor, sizes, state, zeros_of


def uniform(shape: Shape, low: float = 0.0, high: float = 1.0, dtype: DTypeLike = "float32",
            generator: Generator | None = None) -> Tensor:
    """Uniform distribution: numbers in [low, high).

    Args:
        shape: Sizes of the result.
        low: Lower bound.
        high: Upper bound.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), the shape is too large (MLC0328), or `low` is above `high` or infinite
            (MLC0360).

    Example:
        >>> nn.init.uniform((2, 3), -1.0, 1.0).shape
        (2, 3)
    """
    if not -math.inf < low <= high < math.inf:
        raise UserError(f"the numbers lie between {low} and {high}, which is no interval", code="MLC0360",
                        loc=user_loc())
    if state.shapes_only:
        return zeros_of(shape, dtype)
    return as_tensor((generator or default_generator).numpy().uniform(low, high, sizes(shape)), dtype)


def normal(shape: Shape, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike = "float32",
           generator: Generator | None = None) -> Tensor:
    """Normal distribution: numbers of density exp(-((x - mean) / std)**2 / 2) / (std * sqrt(2 * pi)).

    Args:
        shape: Sizes of the result.
        mean: Mean.
        std: Standard deviation.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), the shape is too large (MLC0328), or `std` is negative (MLC0360).

    Example:
        >>> nn.init.normal((2, 3), std=0.02).shape
        (2, 3)
    """
    check_deviation(std)
    if state.shapes_only:
        return zeros_of(shape, dtype)
    return as_tensor((generator or default_generator).numpy().normal(mean, std, sizes(shape)), dtype)


def check_deviation(std: float) -> None:
    """UserError (MLC0360) for a standard deviation that is negative or NaN."""
    if not std >= 0:
        raise UserError(f"std = {std}, expected a number of at least 0", code="MLC0360", loc=user_loc())


def trunc_normal(shape: Shape, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                 dtype: DTypeLike = "float32", generator: Generator | None = None) -> Tensor:
    """Truncated normal distribution: numbers of `normal` in [a, b]; others are drawn again.

    Args:
        shape: Sizes of the result.
        mean: Mean before the truncation.
        std: Standard deviation before the truncation.
        a: Lower bound, in absolute terms.
        b: Upper bound.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: a is not below b, less than one number in a hundred lies between them, or `std` is not positive
            (MLC0360), or a size is negative (MLC0358).

    Example:
        >>> nn.init.trunc_normal((100,)).abs().max() <= 2
        tensor(True, dtype=mlc.bool)
    """
    if not a < b:
        raise UserError(f"the numbers lie between a = {a} and b = {b}, which is no interval", code="MLC0360",
                        loc=user_loc())
    check_deviation(std)
    if std == 0:
        raise UserError("std = 0, which leaves nothing to be drawn", code="MLC0360", loc=user_loc(),
                        hint="nn.init.constant fills with the mean")
    below, above = (0.5 * (1 + math.erf((x - mean) / (std * math.sqrt(2)))) for x in (a, b))
    if above - below < 0.01:
        raise UserError(f"less than one number in a hundred of mean {mean} and deviation {std} lies from {a} to {b}",
                        code="MLC0360", loc=user_loc())
    if state.shapes_only:
        return zeros_of(shape, dtype)
    draw = (generator or default_generator).numpy()
    out = draw.normal(mean, std, sizes(shape))
    while (outside := (out < a) | (out > b)).any():
        out[outside] = draw.normal(mean, std, int(outside.sum()))
    return as_tensor(out, dtype)


def constant(shape: Shape, value: float, dtype: DTypeLike = "float32") -> Tensor:
    """Constant: `value` everywhere.

    Args:
        shape: Sizes of the result.
        value: The number.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.constant((2,), 0.5)
        tensor([0.5, 0.5], dtype=mlc.float32)
    """
    if state.shapes_only:
        return zeros_of(shape, dtype)
    return as_tensor(np.full(sizes(shape), value, np.float64), dtype)


def zeros(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """Zeros.

    Args:
        shape: Sizes of the result.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.zeros((2,))
        tensor([0., 0.], dtype=mlc.float32)
    """
    return constant(shape, 0.0, dtype)


def ones(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """Ones.

    Args:
        shape: Sizes of the result.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).

    Example:
        >>> nn.init.ones((2,))
        tensor([1., 1.], dtype=mlc.float32)
    """
    return constant(shape, 1.0, dtype)
