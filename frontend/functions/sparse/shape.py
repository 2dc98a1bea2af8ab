"""Functions of sparse tensors that move elements, pick some, or join tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.axes import axes, axis, plain_int
from mlc.frontend.functions.sparse.convert import as_coo, coo
from mlc.frontend.functions.sparse.positions import positions, spread
from mlc.frontend.methods import call
from mlc.frontend.sparse.dispatch import implements, unsupported
from mlc.frontend.sparse.layout import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr, strided
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import Dims, Tensor
from mlc.ir.diag import UserError, UserIndexError

OPPOSITE = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}
"""The layout of the transpose of a matrix, which has the same components."""


@implements("transpose")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Two dimensions swapped, both sparse or both dense ones."""
    i, k = axis(dim0, len(input.shape)), axis(dim1, len(input.shape))
    order = list(range(len(input.shape)))
    order[i], order[k] = order[k], order[i]
    return permute(input, order)


@implements("t")
def t(input: SparseTensor) -> SparseTensor:
    """The transpose of a sparse matrix, or a vector itself."""
    if len(input.shape) > 2:
        raise UserError(f"the tensor has {len(input.shape)} dimensions, expected 2 at most", code="MLC0364")
    return transpose(input, 0, 1) if len(input.shape) == 2 else input


@implements("permute")
def permute(input: SparseTensor, dims: Sequence[int]) -> SparseTensor:
    """The dimensions in another order."""
    order = [axis(d, len(input.shape), "dims") for d in dims]
    if sorted(order) != list(range(len(input.shape))):
        raise UserError(f"dims = {tuple(dims)} is no order of {len(input.shape)} dimensions", code="MLC0357")
    if order == sorted(order):
        return input.with_values(input.stored.clone())
    shape = [input.shape[k] for k in order]
    if not input.is_sparse:
        return _transposed(input, order, shape)
    n = input.sparse_dim()
    if any(k >= n for k in order[:n]):
        raise unsupported("permute", input.layout, "a sparse dimension would be swapped with a dense one")
    indices = call("stack", [input._indices()[k] for k in order[:n]]) if n else input._indices()
    values = input.stored.clone()                          # as in PyTorch: it is no view
    if order[n:] != list(range(n, len(order))):
        values = call("permute", values, (0, *(k - n + 1 for k in order[n:])))
    return coo(indices, values, shape, order[:n] == list(range(n)) and input.is_coalesced())


def _transposed(x: SparseTensor, order: list[int], shape: list[Any]) -> SparseTensor:
    """The transpose of matrices in a compressed layout, which has the opposite one."""
    at = x.batch_dim()
    swapped = list(range(len(order)))
    swapped[at], swapped[at + 1] = at + 1, at
    if order != swapped:
        raise unsupported("permute", x.layout, "only the two sparse dimensions can be swapped")
    outer, inner, values = x._components
    if x.layout.blocked:
        values = call("transpose", values, at + 1, at + 2)
    return SparseTensor((outer, inner, values), shape, OPPOSITE[x.layout])


@implements("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """A dimension of size 1 inserted."""
    x, rank = _as_coo(input, "unsqueeze"), len(input.shape)
    at, n = axis(dim, rank + 1), x.sparse_dim()
    shape = [*x.shape[:at], 1, *x.shape[at:]]
    if at > n:
        return coo(x._indices(), call("unsqueeze", x.stored, at - n + 1), shape, x.is_coalesced())
    zeros = call("zeros", 1, x._nnz(), dtype="int64")
    where = call("cat", [x._indices()[:at], zeros, x._indices()[at:]])
    return coo(where, x.stored.clone(), shape, x.is_coalesced())


@implements("squeeze")
def squeeze(input: SparseTensor, dim: Dims = None) -> Any:
    """Dimensions of size 1 left out."""
    out: Any = input
    for at in reversed(axes(dim, len(input.shape))):
        out = call("select", out, at, 0) if input.shape[at] == 1 else out
    return out


def _as_coo(x: SparseTensor, name: str) -> SparseTensor:
    if not x.is_sparse:
        raise unsupported(name, x.layout, hint="convert it first, by to_sparse() or to_dense()")
    return x


def _without(x: Tensor, at: int) -> Tensor:
    """Rows of indices without one."""
    return call("cat", [x[:at], x[at + 1:]])


@implements("select")
def select(input: SparseTensor, dim: int, index: int) -> Any:
    """A slice of a sparse tensor; dense where no sparse dimension is left."""
    x, at = as_coo(input), axis(dim, len(input.shape), scalar=False)
    k, size = plain_int(index, "index"), x.shape[at]
    if not -size <= k < size:
        raise UserIndexError(f"index {k} is out of range for dimension {at} of size {size}", code="MLC0340")
    k %= size
    n, shape = x.sparse_dim(), [*x.shape[:at], *x.shape[at + 1:]]
    if at >= n:
        return coo(x._indices(), call("select", x.stored, at - n + 1, k), shape, x.is_coalesced())
    which = call("nonzero", x._indices()[at] == k).reshape(-1)
    values = call("index_select", x.stored, 0, which)
    if n == 1:
        return call("sum", values, 0, dtype=values.dtype)
    return coo(_without(x._indices(), at)[:, which], values, shape, x.is_coalesced())


@implements("narrow")
def narrow(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """A range of a dimension."""
    x, at = _as_coo(input, "narrow"), axis(dim, len(input.shape), scalar=False)
    size, n = x.shape[at], x.sparse_dim()
    start = start + size if start < 0 else start
    if length < 0 or not 0 <= start <= size - length:
        raise UserError(f"{length} elements from {start} on, of {size}", code="MLC0363")
    shape = [*x.shape[:at], length, *x.shape[at + 1:]]
    if at >= n:
        return coo(x._indices(), call("narrow", x.stored, at - n + 1, start, length), shape, x.is_coalesced())
    row = x._indices()[at]
    which = call("nonzero", call("logical_and", row >= start, row < start + length)).reshape(-1)
    where = x._indices()[:, which]
    moved = call("cat", [where[:at], where[at: at + 1] - start, where[at + 1:]])
    return coo(moved, call("index_select", x.stored, 0, which), shape, x.is_coalesced())


@implements("narrow_copy")
def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """A range of a dimension."""
    return narrow(input, dim, start, length)


@implements("getitem")
def getitem(input: SparseTensor, key: Any) -> Any:
    """A subscript of integers and full slices."""
    keys = key if isinstance(key, tuple) else (key,)
    if Ellipsis in [k for k in keys if k is Ellipsis]:
        at = [k is Ellipsis for k in keys].index(True)
        keys = (*keys[:at], *[slice(None)] * (len(input.shape) - len(keys) + 1), *keys[at + 1:])
    out: Any = input
    at = 0
    for k in keys:
        if isinstance(k, slice) and (k.step is None or k.step == 1):
            if k != slice(None):
                start, stop, _ = k.indices(out.shape[at])
                out = call("narrow", out, at, start, max(stop - start, 0))
            at += 1
        elif isinstance(k, int) and not isinstance(k, bool):
            out = call("select", out, at, k)
        else:
            raise unsupported("a subscript other than integers and ranges", input.layout)
    return out


@implements("index_select")
def index_select(input: SparseTensor, dim: int, index: Any) -> SparseTensor:
    """The slices of a dimension at given indices, which may repeat."""
    x, at = _as_coo(input, "index_select"), axis(dim, len(input.shape), scalar=False)
    n, count = x.sparse_dim(), index.shape[0] if index.ndim else 1
    index = index.reshape(-1).to("int64")
    shape = [*x.shape[:at], count, *x.shape[at + 1:]]
    if at >= n:
        return coo(x._indices(), call("index_select", x.stored, at - n + 1, index), shape, x.is_coalesced())
    if count and (int(index.max()) >= x.shape[at] or int(index.min()) < 0):
        raise UserIndexError(f"an index is out of range for dimension {at} of size {x.shape[at]}", code="MLC0340")
    # Each stored element occurs as often as its index does among those given, which are in order here.
    given = call("argsort", index, stable=True)
    line, row = index[given], x._indices()[at]
    start = call("searchsorted", line, row)
    times = call("searchsorted", line, row, right=True) - start
    which, nth = spread(times, "index_select")
    place = given[start[which] + nth]
    where = x._indices()[:, which]
    moved = call("cat", [where[:at], place.reshape(1, -1), where[at + 1:]])
    return coo(moved, call("index_select", x.stored, 0, which), shape)


@implements("cat")
def cat(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Sparse tensors joined along a dimension."""
    if not all(isinstance(x, SparseTensor) and x.is_sparse for x in tensors):
        layouts = ", ".join(dict.fromkeys(str(getattr(x, "layout", strided)) for x in tensors))
        raise unsupported("cat", layouts, "all tensors are to be of layout mlc.sparse_coo", "convert them first")
    first, at = tensors[0], axis(dim, len(tensors[0].shape))
    n = first.sparse_dim()
    if any(x.sparse_dim() != n or [*x.shape[:at], *x.shape[at + 1:]] != [*first.shape[:at], *first.shape[at + 1:]]
           for x in tensors):
        raise UserError("sparse tensors of other shapes, or other numbers of sparse dimensions, are joined",
                        code="MLC0777", hint="only the sizes along dim may differ")
    total = sum(x.shape[at] for x in tensors)
    shape = [*first.shape[:at], total, *first.shape[at + 1:]]
    if at >= n:
        return _joined_values(tensors, at - n + 1, shape)
    parts, before = [], 0
    for x in tensors:
        where = x._indices()
        parts.append(call("cat", [where[:at], where[at: at + 1] + before, where[at + 1:]]))
        before += x.shape[at]
    return coo(call("cat", parts, 1), call("cat", [x.stored for x in tensors]), shape)


def _joined_values(tensors: Sequence[SparseTensor], at: int, shape: list[Any]) -> SparseTensor:
    """Tensors joined along a dense dimension: each has zeros where the others have their elements."""
    parts, before = [], 0
    for x in tensors:
        here, rest = x.stored.shape[at], shape[at - 1 + x.sparse_dim()]
        around = [[*x.stored.shape[:at], n, *x.stored.shape[at + 1:]] for n in (before, rest - before - here)]
        ends = [call("zeros", *size, dtype=x.dtype) for size in around]
        parts.append(call("cat", [ends[0], x.stored, ends[1]], at))
        before += here
    return coo(call("cat", [x._indices() for x in tensors], 1), call("cat", parts), shape)


@implements("stack")
def stack(tensors: Sequence[Any], dim: int = 0) -> SparseTensor:
    """Sparse tensors joined along a new dimension."""
    return cat([call("unsqueeze", x, dim) for x in tensors], axis(dim, len(tensors[0].shape) + 1))


@implements("sparse_resize_")
def sparse_resize_(input: SparseTensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
    """A COO tensor of another shape, in place."""
    x = _as_coo(input, "sparse_resize_")
    n = x.sparse_dim()
    shape = tuple(size)
    if len(shape) != sparse_dim + dense_dim:
        raise UserError(f"size = {list(shape)} for {sparse_dim} sparse and {dense_dim} dense dimensions",
                        code="MLC0774")
    if x._nnz() and (sparse_dim != n or dense_dim != x.dense_dim() or any(
            a < b for a, b in zip(shape, x.shape))):
        raise UserError(f"a tensor of size {list(x.shape)} with stored elements would become {list(shape)}",
                        code="MLC0774", hint="sizes may only grow; select the elements first")
    if not x._nnz():
        x._components = (call("zeros", sparse_dim, 0, dtype="int64"), call("zeros", 0, *shape[sparse_dim:],
                                                                           dtype=x.dtype))
    elif shape[n:] != tuple(x.stored.shape[1:]):
        pads = [p for old, new in zip(x.shape[:n - 1:-1], shape[:n - 1:-1]) for p in (0, new - old)]
        x._components = (x._indices(), call("pad", x.stored, pads))
    x._sizes = shape
    return x


def same_places(x: SparseTensor, wanted: SparseTensor) -> Tensor:
    """The values of a sparse tensor at the places of another one, zeros where it stores none."""
    n = wanted.sparse_dim()
    shape = x.shape[:n]
    here, there = positions(wanted._indices(), shape), positions(x._indices(), shape)
    if not x._nnz():
        return call("zeros", wanted._nnz(), *x.stored.shape[1:], dtype=x.dtype)
    place = call("clamp", call("searchsorted", there, here), max=x._nnz() - 1)
    hit = (there[place] == here).reshape(-1, *[1] * (x.stored.ndim - 1))
    return call("where", hit, call("index_select", x.stored, 0, place), 0)


