"""Sparse tensors of given indices and values."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from mlc.frontend.functions.create.public import creation
from mlc.frontend.functions.sparse.invariants import check_compressed, check_coo, checking
from mlc.frontend.functions.variant import variant
from mlc.frontend.operands import shape_of
from mlc.frontend.sparse.layout import layout as Layout
from mlc.frontend.sparse.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import OPERATIONS, DTypeLike, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError


def _tensor(x: Any, dtype: DTypeLike, requires_grad: bool) -> Tensor:
    """A component: the tensor itself, or one of the elements of something else."""
    found = x if isinstance(x, Tensor) else OPERATIONS["tensor"](x)
    if dtype is not None:
        found = found.to(dtype)
    # Otherwise a gradient required of one of the two tensors would be required of the other.
    return found.detach() if requires_grad or (not isinstance(found, Tracer) and not found.requires_grad) else found


def _integers(x: Any) -> Tensor:
    found = x if isinstance(x, Tensor) else OPERATIONS["tensor"](x)
    if found.dtype.is_floating_point and (isinstance(x, Tensor) or found.numel()):       # but for empty lists
        raise UserTypeError(f"indices of {found.dtype}, expected integers", code="MLC0354")
    return found.to("int64") if found.dtype.name != "int32" else found


@creation
def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *, dtype: DTypeLike = None,
                      device: Any = None, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> Tensor:
    """A sparse tensor of coordinates: element [indices[0, k], indices[1, k], ...] is values[k].

    Values of the same coordinates add up. The tensor shares the memory of `values`, and gradients flow to them.

    Args:
        indices: Integers of shape (sparse_dim, nnz), a tensor or data of one; or, without `values`, the size.
        values: The elements, of shape (nnz, *dense sizes), a tensor or data of one.
        size: The shape; None for the smallest one.
        dtype: Dtype of the values; None for that of `values`.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.
        check_invariants: Whether the indices are checked; None for what `mlc.sparse.check_sparse_tensor_invariants`
            says.
        is_coalesced: Whether the indices are known to be in order and different.

    Returns:
        Tensor of layout `mlc.sparse_coo`.

    Raises:
        UserError: The shapes of indices, values and size do not fit, or an index is out of range (MLC0774), or no
            integer (MLC0354).

    Example:
        >>> mlc.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        tensor(indices=tensor([[0, 1],
                               [2, 0]]),
               values=tensor([3., 4.]),
               size=(2, 3), nnz=2, dtype=mlc.float32, layout=mlc.sparse_coo)
    """
    if values is None:
        shape = shape_of(indices if size is None else size)
        zeros = OPERATIONS["zeros"](0, dtype=dtype or "float32")
        return SparseTensor((OPERATIONS["zeros"](len(shape), 0, dtype="int64"), zeros), shape, sparse_coo)
    where, x = _integers(indices).to("int64"), _tensor(values, dtype, requires_grad)
    size = None if size is None else shape_of(size)
    if where.ndim == 1 and not where.shape[0]:
        where = where.reshape(0 if size is None else len(size), 0)
    if where.ndim != 2 or not x.ndim or not _same(where.shape[1], x.shape[0]):
        raise UserError(f"indices of shape {list(where.shape)} and values of shape {list(x.shape)}, expected "
                        "(sparse_dim, nnz) and (nnz, ...)", code="MLC0774")
    if size is None:
        size = (*_smallest(where), *x.shape[1:])
    shape = shape_of(size)
    if len(shape) != where.shape[0] + x.ndim - 1 or shape[where.shape[0]:] != tuple(x.shape[1:]):
        raise UserError(f"indices of {where.shape[0]} dimensions and values of shape {list(x.shape)} do not make "
                        f"a tensor of size {list(shape)}", code="MLC0774")
    if checking(check_invariants):
        check_coo(where, shape, bool(is_coalesced))
    return SparseTensor((where, x), shape, sparse_coo, bool(is_coalesced))


def _same(a: Any, b: Any) -> bool:
    """Whether two sizes are equal, or only the run will tell."""
    return not (isinstance(a, int) and isinstance(b, int)) or a == b


def _smallest(indices: Tensor) -> list[int]:
    """The smallest sizes for columns of indices."""
    if isinstance(indices, Tracer):
        raise UserError("the size of a sparse tensor cannot be found from indices while a function is recorded",
                        code="MLC0774", hint="pass size")
    if not indices.shape[1]:
        return [0] * indices.shape[0]
    if indices.array.min() < 0:
        raise UserError(f"an index is {indices.array.min()}", code="MLC0774")
    return [int(n) + 1 for n in indices.array.max(axis=1)]


@creation
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
                             dtype: DTypeLike = None, layout: Layout | None = None, device: Any = None,
                             requires_grad: bool = False, check_invariants: bool | None = None) -> Tensor:
    """A sparse matrix in a compressed layout: the stored elements of row or column i are those from
    compressed_indices[i] to compressed_indices[i + 1].

    Args:
        compressed_indices: Integers of shape (*batch, n + 1), where n is the number of rows or columns, of blocks in
            the blocked layouts.
        plain_indices: Integers of shape (*batch, nnz): the column or row of each stored element or block.
        values: The elements, of shape (*batch, nnz, *block sizes, *dense sizes).
        size: The shape; None for the smallest one.
        dtype: Dtype of the values; None for that of `values`.
        layout: `mlc.sparse_csr`, `mlc.sparse_csc`, `mlc.sparse_bsr` or `mlc.sparse_bsc`.
        device: Device of the result; the CPU by default.
        requires_grad: Whether operations on the result are recorded for `Tensor.backward`.
        check_invariants: Whether the indices are checked; None for what `mlc.sparse.check_sparse_tensor_invariants`
            says.

    Returns:
        Tensor of that layout.

    Raises:
        UserError: The layout is not compressed (MLC0775), the shapes do not fit, or an index is wrong (MLC0774) or no
            integer (MLC0354).

    Example:
        >>> mlc.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], layout=mlc.sparse_csr).to_dense()
        tensor([[0., 3.],
                [4., 0.]], dtype=mlc.float32)
    """
    if not isinstance(layout, Layout) or layout.compressed is None:
        raise UserError(f"layout = {layout}, expected one of the compressed layouts", code="MLC0775",
                        hint="mlc.sparse_csr, for example")
    outer, inner = _integers(compressed_indices), _integers(plain_indices)
    if outer.dtype is not inner.dtype:
        outer, inner = outer.to("int64"), inner.to("int64")
    x = _tensor(values, dtype, requires_grad)
    batch = outer.ndim - 1
    if outer.ndim != inner.ndim or 0 in (outer.ndim, *outer.shape[-1:]) or (
            x.ndim < batch + 1 + 2 * layout.blocked or not all(map(_same, inner.shape, x.shape))
            or tuple(outer.shape[:batch]) != tuple(inner.shape[:batch])):
        raise UserError(f"compressed indices of shape {list(outer.shape)}, plain indices of shape {list(inner.shape)} "
                        f"and values of shape {list(x.shape)} do not fit", code="MLC0774")
    block = tuple(x.shape[batch + 1: batch + 3]) if layout.blocked else (1, 1)
    dense = tuple(x.shape[batch + 1 + 2 * layout.blocked:])
    if size is None:
        if isinstance(inner, Tracer):
            raise UserError("the size of a sparse tensor cannot be found from indices while a function is recorded",
                            code="MLC0774", hint="pass size")
        other = int(inner.array.max()) + 1 if inner.array.size else 0
        pair = [outer.shape[-1] - 1, other]
        pair = pair if layout.compressed == 0 else pair[::-1]
        size = (*outer.shape[:batch], pair[0] * block[0], pair[1] * block[1], *dense)
    shape = shape_of(size)
    if len(shape) != batch + 2 + len(dense) or 0 in block or any(
            n % b for n, b in zip(shape[batch:], block)):
        raise UserError(f"values of shape {list(x.shape)} in layout {layout} do not make a tensor of size "
                        f"{list(shape)}", code="MLC0774")
    if checking(check_invariants):
        check_compressed(outer, inner, shape, layout, block)
    return SparseTensor((outer, inner, x), shape, layout)


def _of_layout(layout: Layout, first: str, second: str, example: str) -> Any:
    """The public function that creates tensors of a compressed layout, with names of its own for the indices."""
    body = variant(sparse_compressed_tensor, f"{layout.name}_tensor", f"A sparse tensor of layout `{layout}`, as "
                   "`mlc.sparse_compressed_tensor`.", example, layout=layout)
    names = {first: "compressed_indices", second: "plain_indices"}

    @functools.wraps(body)
    def create(*args: Any, **keywords: Any) -> Tensor:
        return body(*args, **{names.get(name, name): x for name, x in keywords.items()})  # type: ignore[no-any-return]

    own = {old: new for new, old in names.items()}
    signature = inspect.signature(body)
    create.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p.replace(name=own.get(p.name, p.name)) for p in signature.parameters.values()])
    for old, new in own.items():
        create.__doc__ = (create.__doc__ or "").replace(old, new)
    OPERATIONS[body.__name__] = create
    return create


sparse_csr_tensor = _of_layout(sparse_csr, "crow_indices", "col_indices",
                               "mlc.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).is_sparse_csr -> True")
sparse_csc_tensor = _of_layout(sparse_csc, "ccol_indices", "row_indices",
                               "mlc.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).shape -> (2, 2)")
sparse_bsr_tensor = _of_layout(sparse_bsr, "crow_indices", "col_indices",
                               "mlc.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0, 3.0]]]).shape -> (1, 3)")
sparse_bsc_tensor = _of_layout(sparse_bsc, "ccol_indices", "row_indices",
                               "mlc.sparse_bsc_tensor([0, 1], [0], [[[1.0, 2.0, 3.0]]]).shape -> (1, 3)")


def _of_dtype(name: str, dtype: str, shown: str) -> Any:
    """The function of a legacy type, which creates COO tensors of a dtype."""
    return variant(sparse_coo_tensor, name, f"A COO tensor of {dtype}, as `mlc.sparse_coo_tensor`.",
                   f"mlc.sparse.{name}([[0]], [{shown}], (1,)).dtype -> mlc.{dtype}", dtype=dtype)


FloatTensor, DoubleTensor = _of_dtype("FloatTensor", "float32", "1.5"), _of_dtype("DoubleTensor", "float64", "1.5")
HalfTensor, BFloat16Tensor = _of_dtype("HalfTensor", "float16", "1.5"), _of_dtype("BFloat16Tensor", "bfloat16", "1.5")
LongTensor, IntTensor = _of_dtype("LongTensor", "int64", "1"), _of_dtype("IntTensor", "int32", "1")
ShortTensor, CharTensor = _of_dtype("ShortTensor", "int16", "1"), _of_dtype("CharTensor", "int8", "1")
ByteTensor = _of_dtype("ByteTensor", "uint8", "1")
