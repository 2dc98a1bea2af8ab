"""Random numbers written to a tensor, under PyTorch's names: `x.normal_()`, `x.uniform_(-1, 1)`.

They are drawn from a `Generator`, as by the functions that make tensors (random_sampling.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import DType, float32, int64
from mlc.frontend.element_types import finfo, limits
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import random_sampling as R
from mlc.frontend.functions.trigonometry import tan
from mlc.frontend.generator import Generator
from mlc.frontend.in_place import check_writable
from mlc.frontend.in_place_methods import copy_
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UserError(message, code="MLC0360", loc=user_loc())


def _check_floats(x: Tensor) -> None:
    if not x.dtype.is_floating_point:
        raise UserTypeError(f"floats are drawn, and the tensor is of {x.dtype.name}", code="MLC0360", loc=user_loc())


def _uniform(x: Tensor, generator: Generator | None) -> Tensor:
    """Numbers in [0, 1), one for each element of x, in its dtype; UserTypeError if that is not of floats."""
    _check_floats(x)
    return R.rand(*x.shape, generator=generator, dtype=x.dtype)


def standard_exponential(shape: Sequence[int], dtype: DType, generator: Generator | None = None) -> Tensor:
    """Draw exponentially distributed numbers of rate 1: -ln(1 - u), none of which is 0.

    Of 16-bit floats u would have so few bits that there were many zeros and no large numbers, so it is drawn wider.

    Args:
        shape: Shape of the result.
        dtype: Its dtype, of floats.
        generator: Source; None for the default generator.

    Returns:
        Tensor of positive numbers.
    """
    wide = dtype if dtype.itemsize == 8 else float32
    u = E.clamp(R.rand(*shape, generator=generator, dtype=wide), finfo(wide).eps / 2)
    return E.cast_to(-E.log1p(-u), dtype)


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write normally distributed numbers to the tensor.

    Args:
        mean: Their mean.
        std: Their standard deviation, not negative.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: `std` is negative (MLC0360), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.empty(3).normal_(2, 0)
        tensor([2., 2., 2.], dtype=mlc.float32)
    """
    check_writable(self)
    _check(std >= 0, f"std = {std}")
    return copy_(self, R.randn(*self.shape, generator=generator, dtype=self.dtype) * std + mean)


def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write uniformly distributed numbers of [a, b) to the tensor. PyTorch calls the bounds `from` and `to`.

    Args:
        a: Lower bound.
        b: Upper bound.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: The bounds are in the wrong order (MLC0360), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.empty(3).uniform_(2, 2)
        tensor([2., 2., 2.], dtype=mlc.float32)
    """
    check_writable(self)
    _check(a <= b, f"a = {a}, b = {b}")
    return copy_(self, _uniform(self, generator) * (b - a) + a)


def random_(self: Tensor, a: int | None = None, b: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Write integers of [a, b) to the tensor; of [0, a) if b is None.

    Args:
        a: Lower bound, or the upper one where that is the only argument; by default 0, and the upper bound is as far as
            the dtype represents all integers.
        b: Upper bound.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: There is no such integer, or the dtype has not all of them (MLC0360), or the write would go
            unrecorded (MLC0439).

    Example:
        >>> mlc.empty(3).random_(1)
        tensor([0., 0., 0.], dtype=mlc.float32)
    """
    check_writable(self)
    if a is None:
        mantissa = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
        bits = mantissa.get(self.dtype.name) or 8 * self.dtype.itemsize - (not self.dtype.name.startswith("u"))
        low, high = 0, 2 if self.dtype.name == "bool" else 1 << bits
    else:
        low, high = (0, plain_int(a, "a")) if b is None else (plain_int(a, "a"), plain_int(b, "b"))
        _check(low < high, f"a = {low}, b = {high}")
        least, most = limits(self.dtype)
        _check(least <= low and high - 1 <= most, f"{self.dtype} has not all integers of {low} to {high - 1}")
    drawn = self.dtype if self.dtype.name == "uint64" else int64          # the only one with integers that int64 lacks
    return copy_(self, R.randint(low, high, tuple(self.shape), generator=generator, dtype=drawn))


def bernoulli_(self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with probability p to each element, else 0.

    Args:
        p: Probability, a number or a tensor that broadcasts.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: `p` is no probability (MLC0360), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.empty(3).bernoulli_(1.0)
        tensor([1., 1., 1.], dtype=mlc.float32)
    """
    check_writable(self)
    _check(isinstance(p, Tensor) or 0 <= p <= 1, f"p = {p} is no probability")
    return copy_(self, R.rand(*self.shape, generator=generator, dtype=float32) < p)


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write exponentially distributed numbers to the tensor: -ln(1 - u) / lambd, which are above 0 for u > 0.

    Args:
        lambd: Rate, positive.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: `lambd` is not positive (MLC0360), or the write would go unrecorded (MLC0439).

    Example:
        >>> bool((mlc.empty(3).exponential_() > 0).all())
        True
    """
    check_writable(self)
    _check(lambd > 0, f"lambd = {lambd}")
    _check_floats(self)
    return copy_(self, standard_exponential(self.shape, self.dtype, generator) / lambd)


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write numbers of the Cauchy distribution to the tensor: median + sigma * tan(pi * (u - 1 / 2)).

    Args:
        median: Median.
        sigma: Half the distance of the quartiles, positive.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: `sigma` is not positive (MLC0360), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.empty(3).cauchy_().shape
        (3,)
    """
    check_writable(self)
    _check(sigma > 0, f"sigma = {sigma}")
    return copy_(self, tan((_uniform(self, generator) - 0.5) * math.pi) * sigma + median)


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Write numbers to the tensor whose logarithms are normally distributed.

    Args:
        mean: Mean of the logarithms.
        std: Their standard deviation, positive.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: `std` is not positive (MLC0360), or the write would go unrecorded (MLC0439).

    Example:
        >>> bool((mlc.empty(3).log_normal_() > 0).all())
        True
    """
    check_writable(self)
    _check(std > 0, f"std = {std}")
    normal = R.randn(*self.shape, generator=generator, dtype=self.dtype)
    return copy_(self, E.exp(normal * std + mean))


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Write numbers of trials up to the first success to the tensor: ceil(ln(1 - u) / ln(1 - p)), at least 1.

    Args:
        p: Probability of success, between 0 and 1.
        generator: Source; None for the default generator.

    Returns:
        The tensor itself.

    Raises:
        UserError: `p` is not between 0 and 1 (MLC0360), or the write would go unrecorded (MLC0439).

    Example:
        >>> bool((mlc.empty(3).geometric_(0.5) >= 1).all())
        True
    """
    check_writable(self)
    _check(0 < p < 1, f"p = {p} is not between 0 and 1")
    drawn = E.log1p(-R.rand(*self.shape, generator=generator)) / math.log1p(-p)
    return copy_(self, E.clamp(E.ceil(drawn), 1))


for _f in (normal_, uniform_, random_, bernoulli_, exponential_, cauchy_, log_normal_, geometric_):
    setattr(Tensor, _f.__name__, _f)
