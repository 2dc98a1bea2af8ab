"""Conversions between layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.functions.sparse.positions import coalesced as _coalesced
from mlc.frontend.functions.sparse.positions import (
    columns,
    compressed,
    expanded,
    in_order,
    positions,
    scattered,
    stored_in,
    strides_of,
)
from mlc.frontend.methods import call
from mlc.frontend.sparse.dispatch import implements, unsupported
from mlc.frontend.sparse.layout import layout as Layout
from mlc.frontend.sparse.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.ir.diag import UserError


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(x, SparseTensor)


def coo(indices: Tensor, values: Tensor, shape: Sequence[Any], coalesced: bool = False) -> SparseTensor:
    """The COO tensor of these components."""
    return SparseTensor((indices, values), shape, sparse_coo, coalesced)


@implements("coalesce")
def coalesce(input: SparseTensor) -> SparseTensor:
    """The tensor with indices in order and the values of equal ones added up."""
    found, sums = _coalesced(input._indices(), input.stored, strides_of(input.shape[: input.sparse_dim()]))
    return coo(found, sums, input.shape, True)


# -- dense tensors ----------------------------------------------------------------------------------------------------
@implements("Tensor.to_dense")
def _dense(input: SparseTensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    x = as_coo(input)
    n = x.sparse_dim()
    shape, dense = x.shape[:n], x.shape[n:]
    zeros = call("zeros", math.prod(shape), *dense, dtype=x.dtype, device=x.device)
    out = scattered(positions(x._indices(), shape), x.stored, zeros) if n else _all_added(x.stored)
    out = out.reshape(x.shape)
    return out if dtype is None else out.to(dtype)


def _all_added(x: Tensor) -> Any:
    """The sum along the first dimension, of the same dtype."""
    return call("any", x, 0) if x.dtype.ir.is_bool else call("sum", x, 0, dtype=x.dtype)


@coded
def to_dense(input: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """All elements, as a dense tensor; a dense tensor itself.

    Args:
        input: Tensor.
        dtype: Dtype of the result.
        masked_grad: Accepted for PyTorch's sake: the gradient has the pattern of the tensor.

    Returns:
        Dense tensor.

    Example:
        >>> mlc.sparse_coo_tensor([[1, 1]], [3.0, 4.0], (2,)).to_dense()
        tensor([0., 7.], dtype=mlc.float32)
    """
    if isinstance(input, SparseTensor):
        return _dense(input, dtype, masked_grad=masked_grad)
    return input if dtype is None else input.to(dtype)


def _from_dense(input: Tensor, sparse_dim: int) -> SparseTensor:
    if not 0 <= sparse_dim <= input.ndim or (not sparse_dim and input.ndim):
        raise UserError(f"sparse_dim = {sparse_dim} for a tensor of {input.ndim} dimensions", code="MLC0775",
                        hint=f"it may be 1 to {input.ndim}")
    found, values = stored_in(input, sparse_dim)
    return coo(found, values, input.shape, True)


# -- COO --------------------------------------------------------------------------------------------------------------
def as_coo(x: SparseTensor) -> SparseTensor:
    """A sparse tensor in the layout COO."""
    if x.is_sparse:
        return x
    batch, kind = x.batch_dim(), x.layout
    outer, inner = (part.to("int64") for part in x._components[:2])
    values, lead = x.stored, list[Tensor]()
    if batch:
        outer, inner, values, lead = _unbatched(x, outer, inner, values)
    else:
        outer = expanded(outer, inner)
    pair = [outer, inner] if kind.compressed == 0 else [inner, outer]
    if kind.blocked:
        return _blocks_apart(x, lead, pair, values)
    return coo(call("stack", [*lead, *pair]), values, x.shape, kind.compressed == 0)


def _unbatched(x: SparseTensor, outer: Tensor, inner: Tensor, values: Tensor) -> Any:
    """The rows, columns and values of a batch, one after another, and the indices of the batch itself."""
    batch = x.batch_dim()
    count, nnz = math.prod(x.shape[:batch]), inner.shape[-1]
    ends, inner = outer.reshape(count, outer.shape[-1]), inner.reshape(count * nnz)
    # The rows of all matrices follow each other, as those of one.
    starts = call("arange", count).reshape(count, 1) * nnz
    whole = call("cat", [(ends[:, :-1] + starts).reshape(-1), call("arange", count * nnz, count * nnz + 1)])
    rows = expanded(whole, inner)
    per = outer.shape[-1] - 1
    lead = columns(rows // per, x.shape[:batch])
    return rows % per, inner, values.reshape(count * nnz, *values.shape[batch + 1:]), list(lead.unbind(0))


def _blocks_apart(x: SparseTensor, lead: list[Tensor], pair: list[Tensor], values: Tensor) -> SparseTensor:
    """The COO tensor of the elements of blocks."""
    nnz, (height, width) = values.shape[0], x.blocksize() or (1, 1)
    grid = [nnz, height, width]
    row = pair[0].reshape(nnz, 1, 1) * height + call("arange", height).reshape(1, height, 1)
    column = pair[1].reshape(nnz, 1, 1) * width + call("arange", width).reshape(1, 1, width)
    parts = [part.reshape(nnz, 1, 1) for part in lead] + [row, column]
    indices = call("stack", [call("expand", part, grid).reshape(nnz * height * width) for part in parts])
    return coo(indices, values.reshape(nnz * height * width, *values.shape[3:]), x.shape)


# -- compressed layouts -----------------------------------------------------------------------------------------------
def as_compressed(x: SparseTensor, layout: Layout, blocksize: Sequence[int] | None = None) -> SparseTensor:
    """A COO tensor of two sparse dimensions, and of a batch before them, in a compressed layout."""
    n = x.sparse_dim()
    if n != 2:
        raise unsupported("to_sparse", x.layout, f"{n} sparse dimensions are not compressed, only 2",
                          "compress the matrices one by one")
    if layout.blocked:
        return _blocked(x, layout, blocksize)
    x = x.coalesce()
    values, (rows, other) = x.stored, x._indices().unbind(0)
    if layout.compressed == 1:
        found, values = in_order(call("stack", [other, rows]), values, strides_of(x.shape[1::-1]))
        rows, other = found.unbind(0)
    return SparseTensor((compressed(rows, x.shape[layout.compressed or 0]), other, values), x.shape, layout)


def _blocked(x: SparseTensor, layout: Layout, blocksize: Sequence[int] | None) -> SparseTensor:
    """A matrix in a layout of blocks: the blocks with a stored element are stored."""
    if blocksize is None or len(blocksize) != 2 or any(b <= 0 or n % b for n, b in zip(x.shape, blocksize)):
        raise UserError(f"blocksize = {blocksize} for a tensor of size {list(x.shape[:2])}", code="MLC0775",
                        hint="the sizes of blocks divide those of the tensor")
    x = x.coalesce()
    height, width = blocksize
    dense = x.shape[2:]
    row, column = x._indices().unbind(0)
    grid = (x.shape[0] // height, x.shape[1] // width)
    pair = [row // height, column // width]
    order = (grid, pair) if layout.compressed == 0 else (grid[::-1], pair[::-1])
    place = positions(call("stack", order[1]), order[0])
    different, number = call("unique", place, return_inverse=True)
    within = (row % height) * width + column % width
    zeros = call("zeros", different.shape[0] * height * width, *dense, dtype=x.dtype)
    blocks = scattered(number * (height * width) + within, x.stored, zeros)
    outer, inner = columns(different, order[0]).unbind(0)
    return SparseTensor((compressed(outer, order[0][0]), inner,
                         blocks.reshape(different.shape[0], height, width, *dense)), x.shape, layout)


# -- the methods ------------------------------------------------------------------------------------------------------
@coded
def to_sparse(input: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None,
              blocksize: Sequence[int] | None = None, dense_dim: int | None = None) -> Tensor:
    """The tensor in a sparse layout, which stores the elements that are not zero.

    Args:
        input: Tensor.
        sparse_dim: Number of dimensions that have indices in the layout COO; all by default.
        layout: Layout of the result; `mlc.sparse_coo` by default.
        blocksize: Sizes of blocks, in the layouts BSR and BSC.
        dense_dim: Number of last dimensions of each value, in the compressed layouts.

    Returns:
        Tensor of that layout; itself if it has it.

    Raises:
        UserError: A number of dimensions or a size of blocks does not fit, or the layout is not sparse (MLC0775); more
            than two dimensions are to be compressed (MLC0772).

    Example:
        >>> mlc.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse()
        tensor(indices=tensor([[0, 1],
                               [1, 1]]),
               values=tensor([2., 3.]),
               size=(2, 2), nnz=2, dtype=mlc.float32, layout=mlc.sparse_coo)
    """
    wanted: Any = sparse_coo if layout is None else layout
    if not isinstance(wanted, Layout) or wanted is strided:
        raise UserError(f"layout = {wanted}, expected a sparse one", code="MLC0775")
    if blocksize is not None and not wanted.blocked:
        raise UserError(f"layout {wanted} has no blocks", code="MLC0775", hint="leave out blocksize")
    if not isinstance(input, SparseTensor):
        n = sparse_dim if sparse_dim is not None else input.ndim - (dense_dim or 0)
        found = _from_dense(input, n)
        return found if wanted is sparse_coo else as_compressed(found, wanted, blocksize)
    if wanted is input.layout and (blocksize is None or tuple(blocksize) == input.blocksize()):
        if sparse_dim not in (None, input.sparse_dim()):
            raise unsupported("to_sparse", input.layout, "the number of sparse dimensions is not changed")
        return input
    found = as_coo(input)
    if wanted is sparse_coo:
        return found.coalesce()
    return as_compressed(found, wanted, blocksize or input.blocksize())


def _to_layout(layout: Layout) -> Any:
    """The method that converts to a layout."""
    def convert(input: Tensor, dense_dim: int | None = None) -> Tensor:
        """`to_sparse` in a layout of rows or columns."""
        return to_sparse(input, layout=layout, dense_dim=dense_dim)

    def convert_blocks(input: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
        """`to_sparse` in a layout of blocks."""
        return to_sparse(input, layout=layout, blocksize=blocksize, dense_dim=dense_dim)

    return coded(convert_blocks if layout.blocked else convert)


OPERATIONS["Tensor.to_dense"], OPERATIONS["Tensor.to_sparse"] = to_dense, to_sparse
OPERATIONS["Tensor.to_sparse_coo"] = to_sparse
for _layout in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
    OPERATIONS[f"Tensor.to_{_layout.name}"] = _to_layout(_layout)
