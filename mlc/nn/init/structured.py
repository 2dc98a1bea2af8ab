"""Initial values with structure: orthogonal, identity, Dirac and sparse weights."""

from __future__ import annotations

import math

import numpy as np

from mlc.frontend.generator import Generator, default_generator
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.ir.diag import UserError
from mlc.nn.init.distributions import check_deviation
from mlc.nn.init.scaled import fans
from mlc.nn.init.shapes import Shape, as_tensor, sizes, state, zeros_of


def orthogonal(shape: Shape, gain: float = 1.0, dtype: DTypeLike = "float32",
               generator: Generator | None = None) -> Tensor:
    """Orthogonal initialization: gain times a random matrix with orthonormal rows, or columns if these are fewer.

    Dimensions after the first count as one. It is the Q of a QR decomposition of normal numbers, with signs that make
    it uniformly distributed. (Saxe, McClelland and Ganguli 2014, "Exact Solutions to the Nonlinear Dynamics of Learning
    in Deep Linear Neural Networks"; signs: Mezzadri 2007, "How to Generate Random Matrices from the Classical Compact
    Groups".)

    Args:
        shape: Sizes of the result.
        gain: Factor of the matrix.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has fewer than 2 dimensions (MLC0364), or a size is negative (MLC0358).

    Example:
        >>> w = nn.init.orthogonal((2, 3))
        >>> mlc.allclose(w @ w.T, mlc.eye(2), atol=1e-6)
        True
    """
    fans(shape)
    if state.shapes_only:
        return zeros_of(shape, dtype)
    rows, *rest = sizes(shape)
    columns = math.prod(rest)
    a = (generator or default_generator).numpy().normal(size=(max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(a)
    q *= np.sign(np.diag(r))                               # so that all such matrices are equally likely
    return as_tensor(gain * (q if rows >= columns else q.T).reshape(tuple(shape)), dtype)


def eye(shape: Shape, dtype: DTypeLike = "float32") -> Tensor:
    """Identity matrix: 1 on the diagonal, 0 elsewhere.

    Args:
        shape: Sizes of the result, two.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has not 2 dimensions (MLC0364), or a size is negative (MLC0358).

    Example:
        >>> nn.init.eye((2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]], dtype=mlc.float32)
    """
    _rank(shape, (2,))
    rows, columns = sizes(shape)
    return as_tensor(np.eye(rows, columns), dtype)


def dirac(shape: Shape, groups: int = 1, dtype: DTypeLike = "float32") -> Tensor:
    """Dirac delta: the weight of a convolution that copies input channel c to output channel c of each group.

    Args:
        shape: Shape [outputs, inputs, *kernel] of 3 to 5 dimensions.
        groups: Number of groups of the output channels.
        dtype: Dtype of the result.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The outputs are not divisible by `groups` (MLC0358), or the number of dimensions is wrong (MLC0364).

    Example:
        >>> nn.init.dirac((1, 1, 3))
        tensor([[[0., 1., 0.]]], dtype=mlc.float32)
    """
    _rank(shape, (3, 4, 5))
    if groups < 1 or shape[0] % groups:
        raise UserError(f"{shape[0]} output channels are not {groups} equal groups", code="MLC0358", loc=user_loc())
    out = np.zeros(sizes(shape))
    size = shape[0] // groups
    middle = tuple(k // 2 for k in shape[2:])
    for g in range(groups):
        for c in range(min(size, shape[1])):
            out[(g * size + c, c, *middle)] = 1
    return as_tensor(out, dtype)


def sparse(shape: Shape, sparsity: float, std: float = 0.01, dtype: DTypeLike = "float32",
           generator: Generator | None = None) -> Tensor:
    """Sparse initialization: normal numbers, of which in each column ceil(sparsity * rows) are 0.

    (Martens 2010, "Deep Learning via Hessian-free Optimization".)

    Args:
        shape: Sizes of the result, two.
        sparsity: Fraction of zeros, from 0 to 1.
        std: Standard deviation of the others.
        dtype: Dtype of the result.
        generator: Source of the numbers; None for the default generator.

    Returns:
        Tensor of this shape and dtype.

    Raises:
        UserError: The shape has not 2 dimensions (MLC0364), `sparsity` is not in [0, 1] or `std` negative (MLC0360), or
            a size is negative (MLC0358).

    Example:
        >>> (nn.init.sparse((4, 2), 0.5) == 0).sum(0)
        tensor([2, 2], dtype=mlc.int64)
    """
    _rank(shape, (2,))
    check_deviation(std)
    if not 0 <= sparsity <= 1:
        raise UserError(f"sparsity = {sparsity} is no fraction", code="MLC0360", loc=user_loc())
    if state.shapes_only:
        return zeros_of(shape, dtype)
    draw = (generator or default_generator).numpy()
    out = draw.normal(0.0, std, sizes(shape))
    zeros = math.ceil(sparsity * shape[0])
    for column in range(shape[1]):
        out[draw.permutation(shape[0])[:zeros], column] = 0
    return as_tensor(out, dtype)


def _rank(shape: Shape, ranks: tuple[int, ...]) -> None:
    shape = sizes(shape)
    if len(shape) not in ranks:
        raise UserError(f"the shape {list(shape)} has {len(shape)} dimensions, expected "
                        f"{' or '.join(map(str, ranks))}", code="MLC0364", loc=user_loc())
