"""Linear algebra of vectors and of tensors as matrices."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions import contract, index
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.linalg.solving import inv, solve
from mlc.frontend.functions.shape import movedim, stack
from mlc.frontend.operands import cast, conjugate, floating, full, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64


@operation(name="linalg.cross")
def cross(input: Operand, other: Operand, *, dim: int = -1) -> Tensor:
    """The vector product of vectors in space, as `mlc.cross`, but along the last dimension by default.

    Args:
        input: Tensor that has 3 elements along `dim`.
        other: Tensor of as many dimensions whose shape broadcasts with that of `input`.
        dim: Dimension of the vectors; negative ones count from the last.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: the vectors have not 3 elements (MLC0367), `dim` is out of range (MLC0356), or the operands have
            different numbers of dimensions, or none (MLC0364).

    Example:
        >>> mlc.linalg.cross(mlc.tensor([1.0, 0.0, 0.0]), mlc.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.], dtype=mlc.float32)
    """
    a, b = tracer(input), tracer(other)
    if a.ndim != b.ndim:
        raise UserError(f"operands of {a.ndim} and {b.ndim} dimensions, expected as many", code="MLC0364")
    at = axis(dim, a.ndim, scalar=False)
    for x in (a, b):
        if x.shape[at] != 3:
            raise UserError(f"vectors of {x.shape[at]} elements, expected 3", code="MLC0367",
                            symbols=sizes.symbols(x.shape[at]))
    return contract.cross(a, b, at)


@operation(name="linalg.diagonal")
def diagonal(A: Operand, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The elements of a diagonal of matrices, as `mlc.diagonal`, but of the last two dimensions by default.

    Args:
        A: Tensor of at least 2 dimensions.
        offset: The diagonal: index in `dim2` less index in `dim1`.
        dim1: First of the dimensions; negative ones count from the last.
        dim2: Second of them.

    Returns:
        Tensor of the dtype of `A`, without `dim1` and `dim2`, with the diagonal as its last dimension.

    Raises:
        UserError: a dimension is out of range (MLC0356), both are the same (MLC0357), or a size is symbolic (MLC0365).

    Example:
        >>> mlc.linalg.diagonal(mlc.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))
        tensor([[1, 4],
                [5, 8]], dtype=mlc.int64)
    """
    return index.diagonal(A, offset, dim1, dim2)


@operation(name="linalg.vecdot", autocast="lower_precision")
def vecdot(x: Operand, y: Operand, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along a dimension: sum_i x[i] * y[i].

    Args:
        x: Tensor.
        y: Tensor whose shape broadcasts with that of `x`.
        dim: Dimension of the vectors in the broadcast shape; negative ones count from the last.

    Returns:
        Tensor of the promoted dtype, without the dimension.

    Raises:
        UserError: `dim` is out of range (MLC0356), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.linalg.vecdot(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), mlc.tensor([1.0, 10.0]))
        tensor([21., 43.], dtype=mlc.float32)
    """
    products = tracer(E.mul(conjugate(tracer(x)), y))
    return cast(tracer(R.sum(products, axis(dim, products.ndim))), products.type.dtype)


@operation(name="linalg.vander")
def vander(x: Operand, *, N: int | None = None) -> Tensor:
    """The Vandermonde matrices of vectors, with increasing powers: result[..., i, j] = x[..., i] ** j.

    Args:
        x: Tensor of shape (..., n); a number is a vector of one element if `N` is given.
        N: Number of columns, at least 2; n by default.

    Returns:
        Tensor of shape (..., n, N) and the dtype of `x`; integers and bools become int64.

    Raises:
        UserError: `x` has no dimension and `N` is not given (MLC0364), or `N` is below 2 (MLC0358) or not known
            (MLC0365).

    Example:
        >>> mlc.linalg.vander(mlc.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [1, 2, 4],
                [1, 3, 9]], dtype=mlc.int64)
    """
    base = tracer(x)
    base = base if base.type.dtype.is_inexact else cast(base, i64)
    base = reshape(base, [1]) if N is not None and not base.ndim else base
    count = base.shape[axis(-1, base.ndim, scalar=False)] if N is None else plain_int(N, "N")
    if not isinstance(count, int):
        raise UserError(f"the number of powers must be known, found {count}", code="MLC0365",
                        symbols=sizes.symbols(count))
    if N is not None and not 2 <= count <= 1 << 16:
        raise UserError(f"N = {count}, expected 2 to {1 << 16}", code="MLC0358")
    if count == 0:
        return full(0, base, [*base.shape, 0])
    powers: list[Tensor] = [full(1, base, base.shape)]
    for _ in range(count - 1):
        powers.append(powers[-1] * base)
    return stack(powers, -1)


@operation(name="linalg.tensorinv", autocast="fp32")
def tensorinv(A: Operand, ind: int = 2) -> Tensor:
    """The inverse of a tensor for `tensordot`: of the matrix that its first `ind` dimensions and the others make.

    Args:
        A: Tensor of floats.
        ind: Number of dimensions that make the rows, at least 1.

    Returns:
        Tensor of shape A.shape[ind:] + A.shape[:ind].

    Raises:
        UserError: `ind` is not positive (MLC0360), or the matrix is not square (MLC0367).

    Example:
        >>> mlc.linalg.tensorinv(mlc.tensor([[[2.0, 0.0], [0.0, 4.0]]]).reshape(2, 1, 2), 1).shape
        (1, 2, 2)
    """
    x, n = floating(A), plain_int(ind, "ind")
    if n < 1:
        raise UserError(f"ind = {n}, expected at least 1", code="MLC0360")
    rows, columns = x.shape[:n], x.shape[n:]
    matrix = reshape(x, [sizes.product(rows), sizes.product(columns)])
    return reshape(tracer(inv(matrix)), [*columns, *rows])


@operation(name="linalg.tensorsolve", autocast="fp32")
def tensorsolve(A: Operand, B: Operand, dims: Sequence[int] | None = None) -> Tensor:
    """The solution X of tensordot(A, X, X.ndim) = B.

    Args:
        A: Tensor of floats whose dimensions are those of `B`, then those of the result, of as many elements.
        B: Tensor of floats.
        dims: Dimensions of `A` that are moved to the end first; None for none.

    Returns:
        Tensor of the shape of `A` without the dimensions of `B`.

    Raises:
        UserError: the elements of `B` and the result differ in number (MLC0367), or `dims` is out of range (MLC0356).

    Example:
        >>> mlc.linalg.tensorsolve(mlc.eye(6).reshape(2, 3, 6), mlc.ones(2, 3))
        tensor([1., 1., 1., 1., 1., 1.], dtype=mlc.float32)
    """
    a, b = together(A, B, floating=True)
    if dims is not None:
        at = [axis(d, a.ndim) for d in dims]
        a = tracer(movedim(a, at, tuple(range(a.ndim - len(at), a.ndim))))
    rest, count = a.shape[b.ndim:], sizes.product(b.shape)
    matrix = reshape(a, [count, sizes.product(rest)]) if sizes.is_equal(
        sizes.product(a.shape), count * sizes.product(rest)) else a
    if matrix.ndim != 2 or not sizes.is_equal(matrix.shape[0], matrix.shape[1]):
        raise UserError(f"{count} equations for {sizes.product(rest)} unknowns", code="MLC0367")
    return reshape(tracer(solve(matrix, reshape(b, [count]))), rest)
