"""Vector products, distances, covariances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.contract.products import check_inner_sizes, dot_general
from mlc.frontend.operands import (
    broadcast_shapes,
    broadcast_to,
    conjugate,
    fail_unless,
    full,
    integer,
    reshape,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim


@operation()
def cross(input: Operand, other: Operand, dim: int | None = None) -> Tensor:
    """The vector product of vectors in space, elementwise over the other dimensions.

    result = (a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 - a2 b1): perpendicular to both vectors, and as long as the area of
    the parallelogram that they span.

    Args:
        input: Tensor that has 3 elements along `dim`.
        other: Tensor whose shape broadcasts with that of `input`.
        dim: Dimension of the vectors; by default the first of size 3. `mlc.linalg.cross` of PyTorch takes the last.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the vectors have not 3 elements (MLC0367), `dim` is out of range (MLC0356), there are no dimensions
            (MLC0364), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.cross(mlc.tensor([1.0, 0.0, 0.0]), mlc.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.], dtype=mlc.float32)
    """
    a, b = together(input, other)
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    at = axis(_of_size_3(shape) if dim is None else dim, a.ndim)
    if not a.ndim:
        raise UserError("0-d tensors have no vector product", code="MLC0364")
    if a.shape[at] != 3:
        raise UserError(f"vectors of {a.shape[at]} elements, expected 3", code="MLC0367",
                        symbols=sizes.symbols(a.shape[at]))
    from mlc.frontend.functions.shape import roll
    return roll(a, -1, at) * roll(b, -2, at) - roll(a, -2, at) * roll(b, -1, at)


def _of_size_3(shape: Sequence[Dim]) -> int:
    """The first dimension of size 3, or the last one; UserError if that depends on a size that is a symbol."""
    for i, n in enumerate(shape):
        if not isinstance(n, int):
            raise UserError(f"whether {n} is 3 decides along which dimension the vectors lie", code="MLC0367",
                            symbols=sizes.symbols(n), hint="say which it is: mlc.cross(a, b, dim=-1)")
        if n == 3:
            return i
    return -1


@operation(autocast="fp32")
def cdist(x1: Operand, x2: Operand, p: float = 2.0,
          compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Distances of all pairs of points: result[..., i, j] = (sum_k |x1[..., i, k] - x2[..., j, k]| ** p) ** (1 / p).

    The derivative at a distance of 0 is 0.

    Args:
        x1: Tensor of floats of shape (..., n, k).
        x2: Tensor of shape (..., m, k); the dimensions before broadcast.
        p: Exponent of the norm, as in `mlc.norm`.
        compute_mode: Accepted for PyTorch's sake; no product of matrices is used.

    Returns:
        Tensor of shape (..., n, m) in the promoted dtype.

    Raises:
        UserError: an operand has fewer than 2 dimensions (MLC0364), the points have different sizes (MLC0367), or
            elements are no floats (MLC0359).

    Example:
        >>> mlc.cdist(mlc.tensor([[0.0, 0.0]]), mlc.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]], dtype=mlc.float32)
    """
    a, b = together(x1, x2)
    if a.ndim < 2 or b.ndim < 2:
        raise UserError("cdist takes matrices of points", code="MLC0364")
    check_inner_sizes(a.shape[-1], b.shape[-1])
    if a.shape[-1] == 0:
        shape = (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-2])
        return full(0, a, shape)
    rows = reshape(a, [*a.shape[:-1], 1, a.shape[-1]])
    columns = reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    return R.norm(E.sub(rows, columns), p, -1)


@operation(autocast="fp32_on_cuda")
def pdist(input: Operand, p: float = 2.0) -> Tensor:
    """Distances of all pairs of points, without repetition: those of `cdist` above the diagonal, row by row.

    Args:
        input: Tensor of floats of shape (n, k).
        p: Exponent of the norm, as in `mlc.norm`.

    Returns:
        Tensor of shape (n (n - 1) / 2,).

    Raises:
        UserError: `input` is no matrix (MLC0364), the number of points is symbolic (MLC0365), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.pdist(mlc.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
        tensor([5.       , 1.       , 4.2426405], dtype=mlc.float32)
    """
    x = tracer(input)
    if x.ndim != 2:
        raise UserError(f"pdist takes a matrix of points, found {x.ndim} dimensions", code="MLC0364")
    count = x.shape[0]
    if not isinstance(count, int):
        raise UserError(f"pdist needs a size that is known, found {count}", code="MLC0365",
                        symbols=sizes.symbols(count))
    rows, columns = (emit(T.Constant, i.astype(np.int64)) for i in np.triu_indices(count, 1))
    if x.shape[1] == 0:
        return full(0, x, rows.shape)
    return R.norm(E.sub(emit(T.Take, x, rows, 0), emit(T.Take, x, columns, 0)), p, 1)


@operation()
def cov(input: Operand, *, correction: float = 1, fweights: Operand = None, aweights: Operand = None) -> Tensor:
    """The covariance matrix of variables, one a row, from observations, one a column.

    result[i, j] = sum_k w[k] (x[i, k] - m[i]) (x[j, k] - m[j]) / N, with m the weighted means. Without `aweights` N is
    sum(w) - correction, with it sum(w) - correction * sum(w * a) / sum(w), as in numpy.

    Args:
        input: Tensor of shape (variables, observations), or (observations,) of one variable; integers become float32.
        correction: Bessel's correction.
        fweights: How often each observation occurs, integers of shape (observations,); 1 by default.
        aweights: Weight of each observation, of shape (observations,); 1 by default.

    Returns:
        Tensor of shape (variables, variables), 0-d for one variable.

    Raises:
        UserError: `input` has more than 2 dimensions (MLC0364), weights are no vector of as many elements as there are
            observations (MLC0367), or `fweights` are no integers (MLC0354).
        UserAssertionError: A weight is negative.

    Example:
        >>> mlc.cov(mlc.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]], dtype=mlc.float32)
    """
    x = tracer(input)
    if x.ndim > 2:
        raise UserError(f"cov takes at most 2 dimensions, found {x.ndim}", code="MLC0364")
    x = x if x.ndim == 2 else reshape(x, [1, sizes.product(x.shape)])
    found = tracer(_covariances(x, correction, fweights, aweights))
    return reshape(found, []) if sizes.is_equal(x.shape[0], 1) else found


def _check_weights(x: Tracer, weights: Operand, name: str) -> None:
    w = tracer(weights)
    if w.ndim != 1 or not sizes.is_equal(w.shape[0], x.shape[1]):
        raise UserError(f"{name} have shape {list(w.shape)}, expected [{x.shape[1]}]", code="MLC0367",
                        symbols=sizes.symbols(*w.shape, x.shape[1]))
    fail_unless(w >= 0, f"{name} are negative")


def _covariances(x: Tracer, correction: float, fweights: Operand, aweights: Operand) -> Tensor:
    if fweights is not None:
        _check_weights(x, integer(fweights, "fweights"), "fweights")
    if aweights is not None:
        _check_weights(x, aweights, "aweights")
    x = x if x.type.dtype.is_inexact else tracer(E.mul(x, 1.0))
    given = [w for w in (fweights, aweights) if w is not None]
    weight: Any = None
    for w in given:
        weight = tracer(w) if weight is None else weight * w
    if weight is None:
        centred = tracer(x - R.mean(x, 1, keepdim=True))
        count: Any = E.maximum(tracer(x.shape[1]) - correction, 0)
        return E.div(dot_general(centred, conjugate(centred), (), ((1, 1),)), count)
    total = R.sum(weight)
    spent = total if aweights is None else R.sum(weight * aweights) / total
    mean = R.sum(x * weight, 1, keepdim=True) / total
    centred = tracer(x - mean)
    count = E.maximum(total - correction * spent if aweights is not None else total - correction, 0)
    return E.div(dot_general(tracer(centred * weight), conjugate(centred), (), ((1, 1),)), count)


@operation()
def corrcoef(input: Operand) -> Tensor:
    """Pearson's correlation coefficients of variables, one a row, from observations, one a column.

    result[i, j] = c[i, j] / sqrt(c[i, i] c[j, j]) for the covariances c, limited to [-1, 1].

    Args:
        input: Tensor of shape (variables, observations), or (observations,); integers become float32.

    Returns:
        Tensor of shape (variables, variables), 0-d for one variable; NaN for a variable that does not vary.

    Raises:
        UserError: `input` has more than 2 dimensions (MLC0364).

    Example:
        >>> mlc.corrcoef(mlc.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]], dtype=mlc.float32)
    """
    c = tracer(cov(input))
    from mlc.frontend.functions.index import diagonal
    if not c.ndim:
        return c / c
    scale = tracer(E.sqrt(diagonal(c)))
    n = c.shape[0]
    found = tracer(c / reshape(scale, [n, 1]) / reshape(scale, [1, n]))
    if found.type.dtype.is_complex:
        return E.complex(*(E.clamp(emit(part, found), -1.0, 1.0) for part in (T.Real, T.Imag)))
    return E.clamp(found, -1.0, 1.0)
