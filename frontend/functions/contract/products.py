"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any
from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.operands import broadcast_shapes, broadcast_to, conjugate, factors, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError

Pairs = tuple[tuple[int, int], ...]


def dot_general(a: Tracer, b: Tracer, batch: Pairs, contract: Pairs) -> Tracer:
    """The result dimensions are the batch dimensions, the free ones of a, and the free ones of b."""
    return typed(Tracer, emit(T.DotGeneral, a, b, batch, contract))


def check_ranks(*wanted: tuple[Tracer, int]) -> None:
    for i, (x, rank) in enumerate(wanted):
        if x.ndim != rank:
            raise UserError(f"operand {i} has {x.ndim} dimensions, expected {rank}", code="MLC0364")


def check_inner_sizes(a: Any, b: Any) -> None:
    if a != b:
        raise UserError(f"inner sizes differ: {a} and {b}", code="MLC0367", symbols=sizes.symbols(a, b))


@operation(autocast="lower_precision")
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
    check_inner_sizes(a.shape[-1], b.shape[-2 if b.ndim > 1 else 0])
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


@operation(autocast="lower_precision")
def mm(input: Operand, mat2: Operand) -> Tensor:
    """The product of two matrices: result[i, j] = sum_k input[i, k] * mat2[k, j].

    Sums of float16 and bfloat16 are kept in float32. Both operands must be matrices; `mlc.matmul` takes vectors and
    batches too.

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
    check_ranks((a, 2), (b, 2))
    return matmul(a, b)


@operation(autocast="lower_precision")
def bmm(input: Operand, mat2: Operand) -> Tensor:
    """The products of matrices in a batch: result[b, i, j] = sum_k input[b, i, k] * mat2[b, k, j].

    Sums of float16 and bfloat16 are kept in float32. The batch sizes must be equal, as nothing is broadcast:
    `mlc.matmul` does that.

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
    check_ranks((a, 3), (b, 3))
    if a.shape[0] != b.shape[0]:
        raise UserError(f"batch sizes differ: {a.shape[0]} and {b.shape[0]}", code="MLC0367",
                        symbols=sizes.symbols(a.shape[0], b.shape[0]))
    return matmul(a, b)


@operation()
def mv(input: Operand, vec: Operand) -> Tensor:
    """The product of a matrix and a vector: result[i] = sum_k input[i, k] * vec[k].

    Sums of float16 and bfloat16 are kept in float32. The derivative by the matrix is the outer product of the cotangent
    and `vec`.

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
    check_ranks((a, 2), (b, 1))
    return matmul(a, b)


@operation()
def dot(input: Operand, tensor: Operand) -> Tensor:
    """sum_i input[i] * tensor[i], the dot product of two vectors.

    Both are 1-D and of one size: unlike NumPy's `dot`, nothing is broadcast and no matrices are multiplied. Complex
    numbers are not conjugated; see `mlc.vdot`.

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
    check_ranks((a, 1), (b, 1))
    return matmul(a, b)


@operation()
def vdot(input: Operand, other: Operand) -> Tensor:
    """sum_i conj(input[i]) * other[i], the dot product of two vectors, the first of which is conjugated.

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
    return dot(conjugate(tracer(input)), other)


@operation()
def inner(input: Operand, other: Operand) -> Tensor:
    """Products summed over the last dimensions: sum_k input[i..., k] * other[j..., k].

    Of vectors it is the dot product, of matrices input @ other.T. A number times a tensor multiplies its elements.

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
    check_inner_sizes(a.shape[-1], b.shape[-1])
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
    check_ranks((a, 1), (b, 1))
    return E.mul(reshape(a, [a.shape[0], 1]), b)


@operation(autocast="lower_precision")
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
            length (MLC0357), the operands have different float dtypes (MLC0420), or a dimension is named twice
            (MLC0114).

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
        check_inner_sizes(x.shape[i], y.shape[j])
    return dot_general(x, y, (), tuple(zip(left, right)))


@operation()
def kron(input: Operand, other: Operand) -> Tensor:
    """The Kronecker product: result[i * m + k, j * n + l] = input[i, j] * other[k, l], for (m, n) the shape of other.

    The tensor `other` times each element of `input`, in blocks. Sizes multiply: (a, b) and (m, n) give (a * m, b * n).
    Of shapes of different lengths, the shorter one is preceded by ones.

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


@operation(autocast="fp32")
def trace(input: Operand) -> Tensor:
    """sum_i x[i, i], the trace of a matrix.

    The sum runs over i < min(n, m), so the matrix need not be square. The derivative is the identity matrix.

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
    check_ranks((x, 2))
    from mlc.frontend.functions.shape import coordinates
    return R.sum(E.where(coordinates(x, 0) == coordinates(x, 1), x, 0 if not R.is_float(x) else 0.0))
