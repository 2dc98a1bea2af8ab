"""Products that sum over shared dimensions: matrix products and einsum, all by tensor.dot_general."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any
from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.operands import (
    axis,
    broadcast_shapes,
    broadcast_to,
    factors,
    full,
    plain_int,
    reshape,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim

Pairs = tuple[tuple[int, int], ...]


def dot_general(a: Tracer, b: Tracer, batch: Pairs, contract: Pairs) -> Tracer:
    """Batch dimensions, then what is free of a, then what is free of b."""
    return typed(Tracer, emit(T.DotGeneral, a, b, batch, contract))


def _need(*wanted: tuple[Tracer, int]) -> None:
    for i, (x, rank) in enumerate(wanted):
        if x.ndim != rank:
            raise UserError(f"operand {i} has {x.ndim} dimensions, expected {rank}", code="MLC0364")


def _inner(a: Any, b: Any) -> None:
    if a != b:
        raise UserError(f"inner sizes differ: {a} and {b}", code="MLC0367")


@operation()
def matmul(input: Operand, other: Operand) -> Tensor:
    """The matrix product over the last dimensions: sum_k input[..., i, k] * other[..., k, j].

    Sums of float16 and bfloat16 are kept in float32. Floats of two dtypes are refused, as in PyTorch; integers take on
    the dtype of floats.

    Args:
        input: Tensor; a 1-D one is a row, and its dimension is gone in the result.
        other: Tensor; a 1-D one is a column, likewise. The dimensions before the last two broadcast.

    Returns:
        Tensor of shape (..., i, j) in the promoted dtype.

    Raises:
        UserError: inner sizes differ (MLC0367), a tensor has no dimensions (MLC0364), or the operands have different
            float dtypes (MLC0420).

    Example:
        >>> mlc.matmul(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), mlc.tensor([1.0, 1.0]))
        tensor([3., 7.], dtype=mlc.float32)
    """
    a, b = factors(input, other)
    if not a.ndim or not b.ndim:
        raise UserError("0-d tensors have no matrix product", code="MLC0364", hint="use *")
    _inner(a.shape[-1], b.shape[-2 if b.ndim > 1 else 0])
    if a.ndim <= 2 and b.ndim <= 2:
        return dot_general(a, b, (), ((a.ndim - 1, 0),))
    if b.ndim <= 2:                                        # one matrix for all: fold the batch into the rows
        rows = reshape(a, [sizes.product(a.shape[:-1]), a.shape[-1]])
        return reshape(dot_general(rows, b, (), ((1, 0),)), [*a.shape[:-1], *b.shape[1:]])
    vector = a.ndim == 1
    a = reshape(a, [1, a.shape[0]]) if vector else a
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2]) if a.ndim > 2 else b.shape[:-2]
    a = broadcast_to(a, [*batch, *a.shape[-2:]])
    b = broadcast_to(b, [*batch, *b.shape[-2:]])
    n = len(batch)
    out = dot_general(a, b, tuple((i, i) for i in range(n)), ((n + 1, n),))
    return reshape(out, [*batch, out.shape[-1]]) if vector else out


@operation()
def mm(input: Operand, mat2: Operand) -> Tensor:
    """The product of two matrices: result[i, j] = sum_k input[i, k] * mat2[k, j].

    Args:
        input: Tensor of shape (n, k).
        mat2: Tensor of shape (k, m).

    Returns:
        Tensor of shape (n, m) in the promoted dtype.

    Raises:
        UserError: one is no matrix (MLC0364), inner sizes differ (MLC0367), or the operands have different float dtypes
            (MLC0420).

    Example:
        >>> mlc.mm(mlc.tensor([[1.0, 2.0]]), mlc.tensor([[3.0], [4.0]]))
        tensor([[11.]], dtype=mlc.float32)
    """
    a, b = factors(input, mat2)
    _need((a, 2), (b, 2))
    return matmul(a, b)


@operation()
def bmm(input: Operand, mat2: Operand) -> Tensor:
    """The products of matrices in a batch: result[b, i, j] = sum_k input[b, i, k] * mat2[b, k, j].

    Args:
        input: Tensor of shape (batch, n, k).
        mat2: Tensor of shape (batch, k, m).

    Returns:
        Tensor of shape (batch, n, m) in the promoted dtype.

    Raises:
        UserError: one has not 3 dimensions (MLC0364), sizes differ (MLC0367), or the operands have different float
            dtypes (MLC0420).

    Example:
        >>> mlc.bmm(mlc.ones(2, 1, 3), mlc.ones(2, 3, 1))
        tensor([[[3.]],
        <BLANKLINE>
                [[3.]]], dtype=mlc.float32)
    """
    a, b = factors(input, mat2)
    _need((a, 3), (b, 3))
    if a.shape[0] != b.shape[0]:
        raise UserError(f"batch sizes differ: {a.shape[0]} and {b.shape[0]}", code="MLC0367")
    return matmul(a, b)


@operation()
def mv(input: Operand, vec: Operand) -> Tensor:
    """The product of a matrix and a vector: result[i] = sum_k input[i, k] * vec[k].

    Args:
        input: Tensor of shape (n, k).
        vec: Tensor of shape (k,).

    Returns:
        Tensor of shape (n,) in the promoted dtype.

    Raises:
        UserError: the numbers of dimensions are not 2 and 1 (MLC0364), inner sizes differ (MLC0367), or the operands
            have different float dtypes (MLC0420).

    Example:
        >>> mlc.mv(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), mlc.tensor([1.0, 1.0]))
        tensor([3., 7.], dtype=mlc.float32)
    """
    a, b = factors(input, vec)
    _need((a, 2), (b, 1))
    return matmul(a, b)


@operation()
def dot(input: Operand, tensor: Operand) -> Tensor:
    """sum_i input[i] * tensor[i], the dot product of two vectors.

    Args:
        input: Tensor of shape (n,).
        tensor: Tensor of shape (n,).

    Returns:
        0-d tensor of the promoted dtype.

    Raises:
        UserError: one is no vector (MLC0364), sizes differ (MLC0367), or the operands have different float dtypes
            (MLC0420).

    Example:
        >>> mlc.dot(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]))
        tensor(11., dtype=mlc.float32)
    """
    a, b = factors(input, tensor)
    _need((a, 1), (b, 1))
    return matmul(a, b)


@operation()
def vdot(input: Operand, other: Operand) -> Tensor:
    """sum_i input[i] * other[i], the dot product of two vectors.

    It is `dot`: there are no complex numbers to conjugate.

    Args:
        input: Tensor of shape (n,).
        other: Tensor of shape (n,).

    Returns:
        0-d tensor of the promoted dtype.

    Raises:
        UserError: one is no vector (MLC0364), sizes differ (MLC0367), or the operands have different float dtypes
            (MLC0420).

    Example:
        >>> mlc.vdot(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]))
        tensor(11., dtype=mlc.float32)
    """
    return dot(input, other)


@operation()
def inner(input: Operand, other: Operand) -> Tensor:
    """Products summed over the last dimensions: sum_k input[i..., k] * other[j..., k].

    Args:
        input: Tensor of shape (i..., k), or a number.
        other: Tensor of shape (j..., k), or a number, by which elements are multiplied.

    Returns:
        Tensor of shape (i..., j...) in the promoted dtype.

    Raises:
        UserError: the last sizes differ (MLC0367), or the operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.inner(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), mlc.tensor([1.0, 1.0]))
        tensor([3., 7.], dtype=mlc.float32)
    """
    a, b = factors(input, other)
    if not a.ndim or not b.ndim:
        return E.mul(a, b)
    _inner(a.shape[-1], b.shape[-1])
    return dot_general(a, b, (), ((a.ndim - 1, b.ndim - 1),))


@operation()
def outer(input: Operand, vec2: Operand) -> Tensor:
    """The outer product of two vectors: result[i, j] = input[i] * vec2[j].

    Args:
        input: Tensor of shape (n,).
        vec2: Tensor of shape (m,).

    Returns:
        Tensor of shape (n, m) in the promoted dtype.

    Raises:
        UserError: one is no vector (MLC0364).

    Example:
        >>> mlc.outer(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]], dtype=mlc.float32)
    """
    a, b = together(input, vec2)
    _need((a, 1), (b, 1))
    return E.mul(reshape(a, [a.shape[0], 1]), b)


def _weighted(input: Operand, product: Operand, beta: float, alpha: float) -> Tensor:
    """beta * input + alpha * product, in the shape of the product; with beta = 0, NaN in the input does not count"""
    x, y = together(input, product if alpha == 1 else E.mul(product, alpha))
    if broadcast_shapes(x.shape, y.shape) != y.shape:
        raise UserError(f"the input of shape {_listed(x.shape)} does not broadcast to the product's "
                        f"{_listed(y.shape)}", code="MLC0111")
    return y if beta == 0 else E.add(x if beta == 1 else E.mul(x, beta), y)


def _listed(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


@operation()
def addmm(input: Operand, mat1: Operand, mat2: Operand, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2.

    With `beta` 0, NaN and infinities of `input` do not count.

    Args:
        input: Tensor or number whose shape broadcasts to (n, m).
        mat1: Tensor of shape (n, k).
        mat2: Tensor of shape (k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Tensor of shape (n, m) in the promoted dtype.

    Raises:
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), or `input`
            does not broadcast (MLC0111).

    Example:
        >>> mlc.addmm(mlc.ones(2), mlc.eye(2), mlc.eye(2), alpha=0.5)
        tensor([[1.5, 1. ],
                [1. , 1.5]], dtype=mlc.float32)
    """
    return _weighted(input, mm(mat1, mat2), beta, alpha)


@operation()
def baddbmm(input: Operand, batch1: Operand, batch2: Operand, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * batch1 @ batch2.

    With `beta` 0, NaN and infinities of `input` do not count.

    Args:
        input: Tensor or number whose shape broadcasts to (batch, n, m).
        batch1: Tensor of shape (batch, n, k).
        batch2: Tensor of shape (batch, k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Tensor of shape (batch, n, m) in the promoted dtype.

    Raises:
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), or `input`
            does not broadcast (MLC0111).

    Example:
        >>> mlc.baddbmm(mlc.ones(1), mlc.ones(2, 1, 3), mlc.ones(2, 3, 1), alpha=0.5)
        tensor([[[2.5]],
        <BLANKLINE>
                [[2.5]]], dtype=mlc.float32)
    """
    return _weighted(input, bmm(batch1, batch2), beta, alpha)


@operation()
def tensordot(a: Operand, b: Operand, dims: Any = 2) -> Tensor:
    """Products of elements, summed over pairs of dimensions.

    A dimension of size 1 stands for any size.

    Args:
        a: Tensor.
        b: Tensor.
        dims: Number of dimensions, the last of `a` and the first of `b`, or two lists that name them in pairs.

    Returns:
        Tensor with the other dimensions of `a`, then those of `b`, in the promoted dtype.

    Raises:
        UserError: sizes of a pair differ (MLC0367), a dimension is out of range (MLC0356), the lists are not of one
            length (MLC0357), or the operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.tensordot(mlc.ones(2, 3), mlc.ones(3, 4), 1).shape
        (2, 4)
        >>> mlc.tensordot(mlc.tensor([[1.0, 2.0]]), mlc.tensor([[3.0, 4.0]]), ((0, 1), (0, 1)))
        tensor(11., dtype=mlc.float32)
    """
    x, y = factors(a, b)
    if not isinstance(dims, tuple | list):
        dims = plain_int(dims, "dims")
        if not 0 <= dims <= min(x.ndim, y.ndim):
            raise UserError(f"dims = {dims} for {x.ndim} and {y.ndim} dimensions", code="MLC0356")
        left, right = list(range(x.ndim - dims, x.ndim)), list(range(dims))
    else:
        if len(dims) != 2 or not all(isinstance(d, tuple | list) for d in dims):
            raise UserTypeError(f"dims = {dims}, expected an integer or two lists of dimensions"[:200], code="MLC0357")
        left, right = [axis(d, x.ndim, "dims[0]") for d in dims[0]], [axis(d, y.ndim, "dims[1]") for d in dims[1]]
    if len(left) != len(right):
        raise UserError(f"dims = {dims} names {len(left)} and {len(right)} dimensions", code="MLC0357")
    for i, j in zip(left, right):                           # a size of 1 stands for any
        if x.shape[i] == 1 != y.shape[j]:
            y = tracer(R.sum(y, j, keepdim=True, dtype=y.dtype))
        elif y.shape[j] == 1 != x.shape[i]:
            x = tracer(R.sum(x, i, keepdim=True, dtype=x.dtype))
        _inner(x.shape[i], y.shape[j])
    return dot_general(x, y, (), tuple(zip(left, right)))


@operation()
def kron(input: Operand, other: Operand) -> Tensor:
    """The Kronecker product: result[i * m + k, j * n + l] = input[i, j] * other[k, l], for (m, n) the shape of other.

    Args:
        input: Tensor or number of any shape.
        other: Tensor or number; leading dimensions that one lacks are 1.

    Returns:
        Tensor whose sizes are the products of both, in the promoted dtype.

    Raises:
        UserError: dtypes have no common one (MLC0341).

    Example:
        >>> mlc.kron(mlc.eye(2), mlc.tensor([[1.0, 2.0]]))
        tensor([[1., 2., 0., 0.],
                [0., 0., 1., 2.]], dtype=mlc.float32)
    """
    a, b = together(input, other)
    rank = max(a.ndim, b.ndim)
    left, right = [1] * (rank - a.ndim) + list(a.shape), [1] * (rank - b.ndim) + list(b.shape)
    out = E.mul(reshape(a, [d for n in left for d in (n, 1)]), reshape(b, [d for n in right for d in (1, n)]))
    return reshape(tracer(out), [m * n for m, n in zip(left, right)])


@operation()
def trace(input: Operand) -> Tensor:
    """sum_i x[i, i], the trace of a matrix.

    Args:
        input: Tensor of shape (n, m).

    Returns:
        0-d tensor; integers are summed as int64.

    Raises:
        UserError: `input` is no matrix (MLC0364).

    Example:
        >>> mlc.trace(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(5., dtype=mlc.float32)
    """
    x = tracer(input)
    _need((x, 2))
    from mlc.frontend.functions.shape import coordinates
    return R.sum(E.where(coordinates(x, 0) == coordinates(x, 1), x, 0 if not R.is_float(x) else 0.0))


@operation()
def addmv(input: Operand, mat: Operand, vec: Operand, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * mat @ vec.

    With `beta` 0, NaN and infinities of `input` do not count.

    Args:
        input: Tensor or number whose shape broadcasts to (n,).
        mat: Tensor of shape (n, k).
        vec: Tensor of shape (k,).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Tensor of shape (n,) in the promoted dtype.

    Raises:
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), or `input`
            does not broadcast (MLC0111).

    Example:
        >>> mlc.addmv(mlc.ones(2), mlc.eye(2), mlc.tensor([3.0, 4.0]), alpha=0.5)
        tensor([2.5, 3. ], dtype=mlc.float32)
    """
    return _weighted(input, mv(mat, vec), beta, alpha)


@operation()
def addr(input: Operand, vec1: Operand, vec2: Operand, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2).

    With `beta` 0, NaN and infinities of `input` do not count.

    Args:
        input: Tensor or number whose shape broadcasts to (n, m).
        vec1: Tensor of shape (n,).
        vec2: Tensor of shape (m,).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Tensor of shape (n, m) in the promoted dtype.

    Raises:
        UserError: an operand has the wrong number of dimensions (MLC0364), or `input` does not broadcast (MLC0111).

    Example:
        >>> mlc.addr(mlc.zeros(2, 2), mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]), alpha=0.5)
        tensor([[1.5, 2. ],
                [3. , 4. ]], dtype=mlc.float32)
    """
    return _weighted(input, outer(vec1, vec2), beta, alpha)


@operation()
def addbmm(input: Operand, batch1: Operand, batch2: Operand, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * sum_b batch1[b] @ batch2[b].

    With `beta` 0, NaN and infinities of `input` do not count.

    Args:
        input: Tensor or number whose shape broadcasts to (n, m).
        batch1: Tensor of shape (batch, n, k).
        batch2: Tensor of shape (batch, k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Tensor of shape (n, m) in the promoted dtype.

    Raises:
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), or `input`
            does not broadcast (MLC0111).

    Example:
        >>> mlc.addbmm(mlc.ones(1), mlc.ones(2, 1, 3), mlc.ones(2, 3, 1), alpha=0.5)
        tensor([[4.]], dtype=mlc.float32)
    """
    a, b = factors(batch1, batch2)
    _need((a, 3), (b, 3))
    for i, j in ((0, 0), (2, 1)):
        _inner(a.shape[i], b.shape[j])
    return _weighted(input, dot_general(a, b, (), ((0, 0), (2, 1))), beta, alpha)


@operation()
def chain_matmul(*matrices: Operand) -> Tensor:
    """matrices[0] @ matrices[1] @ ..., in the order that takes the fewest multiplications.

    The order is found by dynamic programming, as in `mlc.linalg.multi_dot`.

    Args:
        matrices: Tensors of shapes (n0, n1), (n1, n2) and so on.

    Returns:
        Tensor of shape (n0, n_last) in the promoted dtype.

    Raises:
        UserError: there is no matrix (MLC0353), or inner sizes differ (MLC0367).

    Example:
        >>> mlc.chain_matmul(mlc.ones(2, 3), mlc.ones(3, 4), mlc.ones(4, 1))
        tensor([[12.],
                [12.]], dtype=mlc.float32)
    """
    from mlc.frontend.functions.linalg import multi_dot
    if not matrices:
        raise UserTypeError("expected a matrix, found none", code="MLC0353")
    return tracer(matrices[0]) if len(matrices) == 1 else multi_dot(matrices)


@operation()
def cross(input: Operand, other: Operand, dim: int | None = None) -> Tensor:
    """The vector product of vectors in space, elementwise over the other dimensions.

    Args:
        input: Tensor that has 3 elements along `dim`.
        other: Tensor whose shape broadcasts with that of `input`.
        dim: Dimension of the vectors; by default the first of size 3. `mlc.linalg.cross` of PyTorch takes the last.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the vectors have not 3 elements (MLC0367), `dim` is out of range (MLC0356), or there are no
            dimensions (MLC0364).

    Example:
        >>> mlc.cross(mlc.tensor([1.0, 0.0, 0.0]), mlc.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.], dtype=mlc.float32)
    """
    a, b = together(input, other)
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    at = axis(next((i for i, n in enumerate(shape) if n == 3), -1) if dim is None else dim, a.ndim)
    if not a.ndim:
        raise UserError("0-d tensors have no vector product", code="MLC0364")
    if a.shape[at] != 3:
        raise UserError(f"vectors of {a.shape[at]} elements, expected 3", code="MLC0367")
    from mlc.frontend.functions.shape import roll
    return roll(a, -1, at) * roll(b, -2, at) - roll(a, -2, at) * roll(b, -1, at)


@operation()
def cdist(x1: Operand, x2: Operand, p: float = 2.0) -> Tensor:
    """Distances of all pairs of points: result[..., i, j] = (sum_k |x1[..., i, k] - x2[..., j, k]| ** p) ** (1 / p).

    The derivative at a distance of 0 is 0.

    Args:
        x1: Tensor of floats of shape (..., n, k).
        x2: Tensor of shape (..., m, k); the dimensions before broadcast.
        p: Exponent of the norm, as in `mlc.norm`.

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
    _inner(a.shape[-1], b.shape[-1])
    if a.shape[-1] == 0:
        shape = (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-2])
        return full(0, a, shape)
    rows = reshape(a, [*a.shape[:-1], 1, a.shape[-1]])
    columns = reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    return R.norm(E.sub(rows, columns), p, -1)


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
        UserError: `input` has more than 2 dimensions (MLC0364).

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


def _covariances(x: Tracer, correction: float, fweights: Operand, aweights: Operand) -> Tensor:
    x = x if R.is_float(x) else tracer(E.mul(x, 1.0))
    given = [w for w in (fweights, aweights) if w is not None]
    weight: Any = None
    for w in given:
        weight = tracer(w) if weight is None else weight * w
    if weight is None:
        centred = tracer(x - R.mean(x, 1, keepdim=True))
        count: Any = E.maximum(tracer(x.shape[1]) - correction, 0)
        return E.div(dot_general(centred, centred, (), ((1, 1),)), count)
    total = R.sum(weight)
    spent = total if aweights is None else R.sum(weight * aweights) / total
    mean = R.sum(x * weight, 1, keepdim=True) / total
    centred = tracer(x - mean)
    count = E.maximum(total - correction * spent if aweights is not None else total - correction, 0)
    return E.div(dot_general(tracer(centred * weight), centred, (), ((1, 1),)), count)


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
    return E.clamp(c / reshape(scale, [n, 1]) / reshape(scale, [1, n]), -1.0, 1.0)


# -- einsum -----------------------------------------------------------------------------------------------------------
@operation()
def einsum(equation: str, *operands: Operand) -> Tensor:
    """Products of elements, summed over every letter that the result does not have (Einstein's convention).

    Each letter names a dimension; one that an operand repeats takes its diagonal, and "..." stands for dimensions that
    broadcast. Without "->" the result has the letters that occur once, in alphabetical order. A size of 1 stands for
    any size. Operands are contracted in pairs, the cheapest first.

    Args:
        equation: The letters of each operand, separated by commas, and of the result: "bij,bjk->bik".
        operands: Tensors, as separate arguments or as one list.

    Returns:
        Tensor of the dimensions that the equation names, in the promoted dtype.

    Raises:
        UserError: the equation does not fit the operands (MLC0368), sizes of a letter differ (MLC0367), there is no
            operand (MLC0421), or they have different float dtypes (MLC0420).

    Example:
        >>> mlc.einsum("ij,jk->ik", mlc.tensor([[1.0, 2.0]]), mlc.tensor([[3.0], [4.0]]))
        tensor([[11.]], dtype=mlc.float32)
        >>> mlc.einsum("ii->i", mlc.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 4.], dtype=mlc.float32)
    """
    if not operands or not isinstance(equation, str):
        raise UserTypeError(f"the equation is {equation!r}, for {len(operands)} operands"[:200], code="MLC0421",
                            hint='as in mlc.einsum("ij,jk->ik", a, b)')
    xs = factors(*(operands[0] if len(operands) == 1 and isinstance(operands[0], tuple | list) else operands))
    inputs, output = _parse(equation, [x.ndim for x in xs])
    parts = [_diagonal(x, letters) for x, letters in zip(xs, inputs)]
    while len(parts) > 1:
        i, j = _cheapest(parts)
        (x, letters), (y, others) = parts[i], parts[j]
        parts = [p for k, p in enumerate(parts) if k not in (i, j)]
        needed = set(output).union(*(p[1] for p in parts))
        parts.append(_pair(x, letters, y, others, needed))
    x, letters = parts[0]
    gone = tuple(i for i, c in enumerate(letters) if c not in output)
    if gone:
        x, letters = tracer(R.sum(x, gone)), [c for c in letters if c in output]
    from mlc.frontend.functions.shape import permute
    return permute(x, [letters.index(c) for c in output])


def _cheapest(parts: Sequence[tuple[Tracer, list[str]]]) -> tuple[int, int]:
    """The two operands whose product takes the fewest multiplications; a size that is not known counts as many."""
    def work(pair: tuple[int, int]) -> int:
        found = {c: d for k in pair for c, d in zip(parts[k][1], parts[k][0].shape)}
        return math.prod(d if isinstance(d, int) else _MANY for d in found.values())
    return min(itertools.combinations(range(len(parts)), 2), key=work)


_MANY = 1024


def _parse(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand and of the result; an ellipsis becomes as many letters as it stands for."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise UserError(f"{equation!r} is about {len(terms)} operands, got {len(ranks)}", code="MLC0368")
    spread = max([rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks) if "..." in t], default=0)
    dots = [f"#{i}" for i in range(spread)]

    def letters(term: str, rank: int | None) -> list[str]:
        head, ellipsis, tail = term.partition("...")
        if not (head + tail).isalpha() and head + tail:
            raise UserError(f"{equation!r}: {term!r} has more than letters and '...'", code="MLC0368")
        count = spread if rank is None else rank - len(head + tail)
        if count < 0 or (not ellipsis and rank is not None and count):
            raise UserError(f"{equation!r}: {term!r} does not fit {rank} dimensions", code="MLC0368")
        return [*head, *(dots[spread - count:] if ellipsis else ()), *tail]

    inputs = [letters(t, rank) for t, rank in zip(terms, ranks)]
    every = [c for term in inputs for c in term]
    once = sorted(c for c in set(every) if every.count(c) == 1 and not c.startswith("#"))
    output = letters(right, None) if arrow else dots + once
    if len(set(output)) != len(output) or not set(output) <= set(every):
        raise UserError(f"{equation!r}: the result names a letter twice, or one that no operand has", code="MLC0368")
    return inputs, output


def _diagonal(x: Tracer, letters: list[str]) -> tuple[Tracer, list[str]]:
    """x with every letter once: a repeated one takes the diagonal."""
    from mlc.frontend.functions.shape import coordinates
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            _inner(x.shape[i], x.shape[j])
            x = tracer(R.sum(E.where(coordinates(x, i) == coordinates(x, j), x, 0), j, dtype=x.dtype))
            letters = letters[:j] + letters[j + 1:]
    return x, letters


def _pair(a: Tracer, left: list[str], b: Tracer, right: list[str], needed: set[str]) -> tuple[Tracer, list[str]]:
    """The product of two operands, summed over the letters that are not needed any more."""
    a, left = _sum_own(a, left, right, needed)
    b, right = _sum_own(b, right, left, needed)
    shared = [c for c in left if c in right]
    stretched = [c for c in shared if a.shape[left.index(c)] != b.shape[right.index(c)]]
    for c in stretched:                                     # a size of 1 stands for any
        m, n = a.shape[left.index(c)], b.shape[right.index(c)]
        if m != 1 and n != 1:
            raise UserError(f"sizes of {c!r} differ: {m} and {n}", code="MLC0367")
        a = broadcast_to(a, [n if k == c and m == 1 else d for k, d in zip(left, a.shape)])
        b = broadcast_to(b, [m if k == c and n == 1 else d for k, d in zip(right, b.shape)])
    batch = [c for c in shared if c in needed]
    summed = [c for c in shared if c not in needed]
    out = dot_general(a, b, tuple((left.index(c), right.index(c)) for c in batch),
                      tuple((left.index(c), right.index(c)) for c in summed))
    return out, batch + [c for c in left if c not in shared] + [c for c in right if c not in shared]


def _sum_own(x: Tracer, letters: list[str], other: list[str], needed: set[str]) -> tuple[Tracer, list[str]]:
    gone = tuple(i for i, c in enumerate(letters) if c not in other and c not in needed)
    return (tracer(R.sum(x, gone, dtype=x.dtype)), [c for i, c in enumerate(letters) if i not in gone]) if gone else (
        x, letters)
