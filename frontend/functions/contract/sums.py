"""Products that are added to a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.contract.products import bmm, check_inner_sizes, check_ranks, dot_general, mm, mv, outer
from mlc.frontend.operands import broadcast_shapes, factors, together
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim


def _weighted(input: Operand, product: Operand, beta: float, alpha: float) -> Tensor:
    """beta * input + alpha * product, in the shape of the product; with beta = 0, NaN in the input does not count"""
    x, y = together(input, product if alpha == 1 else E.mul(product, alpha))
    if broadcast_shapes(x.shape, y.shape) != y.shape:
        raise UserError(f"the input of shape {_listed(x.shape)} does not broadcast to the product's "
                        f"{_listed(y.shape)}", code="MLC0111", symbols=sizes.differing(x.shape, y.shape, stretch=True))
    return y if beta == 0 else E.add(x if beta == 1 else E.mul(x, beta), y)


def _listed(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


@operation(autocast="lower_precision")
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
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), `input` does
            not broadcast (MLC0111), or the operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.addmm(mlc.ones(2), mlc.eye(2), mlc.eye(2), alpha=0.5)
        tensor([[1.5, 1. ],
                [1. , 1.5]], dtype=mlc.float32)
    """
    return _weighted(input, mm(mat1, mat2), beta, alpha)


@operation(autocast="lower_precision")
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
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), `input` does
            not broadcast (MLC0111), or the operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.baddbmm(mlc.ones(1), mlc.ones(2, 1, 3), mlc.ones(2, 3, 1), alpha=0.5)
        tensor([[[2.5]],
        <BLANKLINE>
                [[2.5]]], dtype=mlc.float32)
    """
    return _weighted(input, bmm(batch1, batch2), beta, alpha)


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
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), `input` does
            not broadcast (MLC0111), or the operands have different float dtypes (MLC0420).

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


@operation(autocast="lower_precision")
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
        UserError: an operand has the wrong number of dimensions (MLC0364), inner sizes differ (MLC0367), `input` does
            not broadcast (MLC0111), or the operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.addbmm(mlc.ones(1), mlc.ones(2, 1, 3), mlc.ones(2, 3, 1), alpha=0.5)
        tensor([[4.]], dtype=mlc.float32)
    """
    a, b = factors(batch1, batch2)
    check_ranks((a, 3), (b, 3))
    for i, j in ((0, 0), (2, 1)):
        check_inner_sizes(a.shape[i], b.shape[j])
    return _weighted(input, dot_general(a, b, (), ((0, 0), (2, 1))), beta, alpha)
