"""Reductions of sparse tensors, softmax over stored elements, masks, and matrices of diagonals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.axes import axes, axis
from mlc.frontend.functions.sparse.convert import as_coo, coo, to_sparse
from mlc.frontend.functions.sparse.positions import positions
from mlc.frontend.functions.sparse.shape import same_places
from mlc.frontend.methods import call
from mlc.frontend.sparse.dispatch import implements, need_sparse, unsupported
from mlc.frontend.sparse.layout import layout as Layout
from mlc.frontend.sparse.layout import sparse_csc, sparse_csr
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import OPERATIONS, Dims, DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError


@implements("sum", "_sparse.sum")
def _sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if dim is None or dim == ():
        return call("sum", input.stored, dtype=dtype)
    if not input.is_sparse:
        if not keepdim:
            raise unsupported("sum", input.layout, "dimensions are reduced with keepdim=True only",
                              "pass keepdim=True, or call to_sparse() first")
        return to_sparse(_reduced(as_coo(input), dim, keepdim, dtype), layout=input.layout,
                         blocksize=(1, 1) if input.layout.blocked else None)
    return _reduced(input, dim, keepdim, dtype)


def _reduced(x: SparseTensor, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    n, over = x.sparse_dim(), axes(dim, len(x.shape))
    dense = [d - n + 1 for d in over if d >= n]
    wide = dtype if dtype is not None else x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else "int64"
    values = call("sum", x.stored, dense, keepdim, dtype=wide) if dense else x.stored.to(wide)
    rest = [k for k in range(n) if k not in over]
    shape = [1 if k in over else m for k, m in enumerate(x.shape) if keepdim or k not in over]
    if not rest:
        return call("sum", values, 0).reshape(shape)
    zero = call("zeros", x._nnz(), dtype="int64") if keepdim else None
    rows = [zero if k in over else x._indices()[k] for k in range(n) if keepdim or k not in over]
    return coo(call("stack", rows), values, shape).coalesce()


@implements("any")
def _any(input: SparseTensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim is not None:
        raise unsupported("any", input.layout, "a dimension is given")
    return call("any", input.stored if not input.is_sparse else input.coalesce().stored)


@implements("norm", "linalg.vector_norm")
def _norm(input: SparseTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if dim is not None:
        raise unsupported("norm", input.layout, "a dimension is given")
    if p not in (None, "fro") and not (isinstance(p, int | float) and p >= 0):
        raise unsupported("norm", input.layout, f"p = {p!r}")
    x = input.coalesce() if input.is_sparse else input
    return call("norm", x.stored.reshape(-1), 2 if p in (None, "fro") else p, dtype=dtype)


@implements("is_nonzero")
def _is_nonzero(input: SparseTensor) -> bool:
    return bool(call("sum", input.stored))


# -- softmax ----------------------------------------------------------------------------------------------------------
def _normalized(x: Any, dim: int, dtype: Any, logarithm: bool) -> SparseTensor:
    name = "log_softmax" if logarithm else "softmax"
    need_sparse(x, f"mlc.sparse.{name}", f"mlc.{name} is that of dense tensors")
    found = as_coo(x if dtype is None else x.to(dtype)).coalesce()
    at, n = axis(dim, len(found.shape)), found.sparse_dim()
    if at >= n:
        return found.with_values(OPERATIONS[name](found.stored, at - n + 1))
    # Elements of one line along the dimension are those of one position among the other sparse dimensions.
    others = [k for k in range(n) if k != at]
    shape = [found.shape[k] for k in others]
    place = positions(call("stack", [found._indices()[k] for k in others]), shape) if others else (
        found._indices()[at] * 0)
    values = found.stored
    lines, number = call("unique", place, return_inverse=True)
    size, rest = lines.shape[0], values.shape[1:]
    index = call("expand", number.reshape(-1, *[1] * len(rest)), values.shape)
    least = call("full", (size, *rest), -math.inf, dtype=values.dtype)
    highest = call("scatter_reduce", least, 0, index, values, "amax").detach()
    shifted = values - call("index_select", highest, 0, number)
    powers = call("exp", shifted)
    total = call("index_add", call("zeros", size, *rest, dtype=values.dtype), 0, number, powers)
    sums = call("index_select", total, 0, number)
    return found.with_values(shifted - call("log", sums) if logarithm else powers / sums)


@coded
def sparse_softmax(input: Operand, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """The softmax of the stored elements along a dimension: those that are not stored count as minus infinity.

    Args:
        input: Sparse tensor.
        dim: The dimension.
        dtype: Dtype to compute in.

    Returns:
        Sparse tensor of the same pattern.

    Raises:
        UserError: `input` is dense (MLC0772), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.sparse.softmax(mlc.eye(2).to_sparse(), 1).values()
        tensor([1., 1.], dtype=mlc.float32)
    """
    return _normalized(input, dim, dtype, False)


@coded
def sparse_log_softmax(input: Operand, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """The logarithm of `mlc.sparse.softmax`.

    Args:
        input: Sparse tensor.
        dim: The dimension.
        dtype: Dtype to compute in.

    Returns:
        Sparse tensor of the same pattern.

    Raises:
        UserError: `input` is dense (MLC0772), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.sparse.log_softmax(mlc.eye(2).to_sparse(), 1).values()
        tensor([0., 0.], dtype=mlc.float32)
    """
    return _normalized(input, dim, dtype, True)


@coded
def sparse_sum(input: Operand, dim: Dims = None, dtype: DTypeLike = None) -> Tensor:
    """The sum of a sparse tensor, over all dimensions or some.

    Args:
        input: Sparse tensor.
        dim: A dimension or several; None for all.
        dtype: Dtype of the result.

    Returns:
        Dense tensor if no sparse dimension is left, otherwise a sparse one.

    Raises:
        UserError: `input` is dense (MLC0772), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.sparse.sum(mlc.eye(2).to_sparse())
        tensor(2., dtype=mlc.float32)
    """
    need_sparse(input, "mlc.sparse.sum", "mlc.sum is that of dense tensors")
    return _sum(input, dim, dtype=dtype)  # type: ignore[no-any-return]


# -- masks ------------------------------------------------------------------------------------------------------------
@coded
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places of those that a sparse tensor stores.

    Args:
        input: Dense or sparse tensor.
        mask: Sparse tensor of the same shape; its values do not matter.

    Returns:
        Sparse tensor of the pattern of `mask`.

    Raises:
        UserError: `mask` is dense (MLC0772), or has another shape (MLC0777).

    Example:
        >>> mlc.ones(2, 2).sparse_mask(mlc.eye(2).to_sparse()).values()
        tensor([1., 1.], dtype=mlc.float32)
    """
    if not isinstance(mask, SparseTensor):
        raise unsupported("sparse_mask", mask.layout, "the mask is dense", "call to_sparse() on the mask")
    if tuple(input.shape) != tuple(mask.shape):
        raise UserError(f"a tensor of shape {list(input.shape)} and a mask of {list(mask.shape)}", code="MLC0777")
    if not isinstance(input, SparseTensor):
        found = as_coo(mask)
        n = found.sparse_dim()
        values = input[tuple(found._indices().unbind(0))] if n else input.unsqueeze(0)
        return mask.with_values(values.reshape(mask.stored.shape))
    found = as_coo(mask)
    values = same_places(as_coo(input).coalesce(), found)
    return found.with_values(values) if mask.is_sparse else mask.with_values(values.reshape(mask.stored.shape))


@coded
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Layout | None = None) -> Tensor:
    """The sparse matrix with these diagonals.

    Args:
        diagonals: Matrix with a diagonal in each row, or a vector: element j of it is in column j.
        offsets: Vector of different integers: how far each diagonal is above the main one.
        shape: Numbers of rows and of columns.
        layout: `mlc.sparse_coo`, `mlc.sparse_csr` or `mlc.sparse_csc`; the first by default.

    Returns:
        Sparse matrix.

    Raises:
        UserError: The shapes do not fit, or an offset occurs twice (MLC0774), or the layout is another (MLC0775).

    Example:
        >>> mlc.sparse.spdiags(mlc.ones(2, 3), mlc.tensor([0, 1]), (2, 3)).to_dense()
        tensor([[1., 1., 0.],
                [0., 1., 1.]], dtype=mlc.float32)
    """
    rows = diagonals.reshape(1, -1) if diagonals.ndim == 1 else diagonals
    above = offsets.reshape(-1)
    if rows.ndim != 2 or len(shape) != 2 or rows.shape[0] != above.shape[0]:
        raise UserError(f"diagonals of shape {list(diagonals.shape)}, {above.shape[0]} offsets and shape {list(shape)}",
                        code="MLC0774", hint="each offset has a row of diagonals, and the shape has two sizes")
    if len(set(above.tolist())) != above.shape[0]:
        raise UserError("an offset occurs twice", code="MLC0774")
    if layout is not None and layout.name not in ("sparse_coo", "sparse_csr", "sparse_csc"):
        raise UserError(f"layout = {layout}", code="MLC0775", hint="mlc.sparse_coo, mlc.sparse_csr or mlc.sparse_csc")
    count, width = rows.shape
    column = call("expand", call("arange", width).reshape(1, width), (count, width)).reshape(-1)
    row = column - call("expand", above.reshape(count, 1), (count, width)).reshape(-1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    which = call("nonzero", inside).reshape(-1)
    found = coo(call("stack", [row[which], column[which]]), rows.reshape(-1)[which], tuple(shape))
    return found if layout not in (sparse_csr, sparse_csc) else to_sparse(found, layout=layout)


OPERATIONS["Tensor.sparse_mask"] = sparse_mask
OPERATIONS.update({"_sparse.sum": sparse_sum, "_sparse.softmax": sparse_softmax,
                   "_sparse.log_softmax": sparse_log_softmax, "_sparse.spdiags": spdiags})
