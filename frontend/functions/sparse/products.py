"""Products with sparse matrices."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.arguments import coded
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.scatter import index_add, scatter_reduce
from mlc.frontend.functions.sparse.convert import as_compressed, as_coo, coo, is_sparse
from mlc.frontend.functions.sparse.positions import compressed, expanded, spread
from mlc.frontend.methods import call
from mlc.frontend.operands import broadcast_to, cast, factors, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.sparse.dispatch import implements, need_sparse, unsupported
from mlc.frontend.sparse.layout import sparse_coo
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import OPERATIONS, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.diag import UserError

REDUCTIONS = ("sum", "mean", "amax", "amin")


@operation(name="_sparse_mm")
def _rows_added(rows: Operand, columns: Operand, values: Operand, dense: Operand, zeros: Operand) -> Tensor:
    """zeros[rows[k]] += values[k] * dense[columns[k]]"""
    x, y = factors(values, dense)
    picked = emit(T.Take, y, tracer(columns), 0)
    return index_add(cast(tracer(zeros), x.type.dtype), 0, rows, reshape(x, [x.shape[0], 1]) * picked)


@operation(name="_sparse_mm_reduce")
def _rows_reduced(rows: Operand, columns: Operand, values: Operand, dense: Operand, zeros: Operand,
                  reduce: str) -> Tensor:
    """The means, maxima or minima of the products whose sums are those of `_rows_added`; 0 of no products."""
    x, y = factors(values, dense)
    into = cast(tracer(zeros), x.type.dtype)
    products = tracer(reshape(x, [x.shape[0], 1]) * emit(T.Take, y, tracer(columns), 0))
    if reduce == "mean":
        counts = index_add(full(0, into, [into.shape[0], 1]), 0, rows, full(1, into, [x.shape[0], 1]))
        return index_add(into, 0, rows, products) / E.maximum(counts, 1)
    index = broadcast_to(reshape(tracer(rows), [x.shape[0], 1]), products.shape)
    return scatter_reduce(into, 0, index, products, reduce, include_self=False)


@operation(name="_sparse_sampled_mm")
def _sampled(rows: Operand, columns: Operand, left: Operand, right: Operand) -> Tensor:
    """The elements of a product of two matrices at given places."""
    a, b = factors(left, right)
    return call("sum", emit(T.Take, a, tracer(rows), 0) * tracer(call("t", emit(T.Take, b, tracer(columns), 1))), 1)


def _check_product(name: str, a: Any, b: Any) -> None:
    """UserError unless there are as many columns of `a` as rows, or elements, of `b`."""
    n, m = a.shape[-1], b.shape[max(0, b.ndim - 2)]
    if n != m:
        raise UserError(f"{name}: {list(a.shape)} by {list(b.shape)}: inner sizes differ: {n} and {m}", code="MLC0367",
                        symbols=sizes.symbols(n, m), hint="the second operand has a row for each column of the first")


def _check_dimensions(name: str, **operands: tuple[Any, int]) -> None:
    """UserError unless operands have as many dimensions as these numbers say."""
    for given, (x, wanted) in operands.items():
        if x.ndim != wanted:
            raise UserError(f"{name}: {given} has {x.ndim} dimensions, expected {wanted}", code="MLC0364")


def _check_added(name: str, given: str, x: Any, product: Any) -> None:
    """UserError if a tensor that is added to a product would make it larger."""
    shape = getattr(x, "shape", ())
    fits = len(shape) <= product.ndim and all(d in (1, n) for d, n in zip(reversed(shape), reversed(product.shape)))
    if not fits and not is_sparse(x):
        raise UserError(f"{name}: {given} of shape {list(shape)} does not broadcast to the product's shape "
                        f"{list(product.shape)}", code="MLC0111",
                        symbols=sizes.differing(shape, product.shape, stretch=True),
                        hint=f"give {given} of the product's shape, or one that broadcasts to it")


def _matrix(x: SparseTensor, name: str) -> SparseTensor:
    """A sparse matrix in the layout COO; UserTypeError for one with dense dimensions or a batch."""
    if len(x.shape) != 2:
        raise UserError(f"{name}: a sparse operand has {len(x.shape)} dimensions, expected 2", code="MLC0364")
    found = as_coo(x)
    if found.sparse_dim() != 2:
        raise unsupported(name, x.layout, "it has dense dimensions", "call to_sparse() of to_dense()")
    return found


def _by_dense(a: SparseTensor, b: Tensor, reduce: str = "sum") -> Tensor:
    """A sparse matrix by a dense one."""
    rows, columns, values = _coordinates(a)
    zeros = call("zeros", a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    if reduce != "sum":
        return _rows_reduced(rows, columns, values, b, zeros, reduce)
    return _rows_added(rows, columns, values, b, zeros)


def _coordinates(a: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows, the columns and the values of the stored elements of a matrix."""
    if a.layout.compressed is None or a.layout.blocked or a.batch_dim() or a.dense_dim():
        x = _matrix(a, "mm")
        rows, columns = x._indices().unbind(0)
        return rows, columns, x.stored
    outer, inner = expanded(a._components[0], a._components[1]), a._components[1]
    return (outer, inner, a.stored) if a.layout.compressed == 0 else (inner, outer, a.stored)


def _by_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The product of two sparse matrices, in the layout of the first one.

    Each stored element of the first meets those of a row of the second, which are one after another.
    """
    x, y = _matrix(a, "mm"), _matrix(b, "mm").coalesce()
    rows, inner = x._indices().unbind(0)
    outer, columns = y._indices().unbind(0)
    ends = compressed(outer, y.shape[0])
    start = ends[inner]
    count = ends[inner + 1] - start
    which, nth = spread(count, "mm")
    place = start[which] + nth
    left, right = (call("index_select", v, 0, at) for v, at in ((x.stored, which), (y.stored, place)))
    found = coo(call("stack", [rows[which], columns[place]]), left * right, (x.shape[0], y.shape[1])).coalesce()
    return found if a.layout is sparse_coo or a.layout.blocked else as_compressed(found, a.layout)


@implements("mm", "spmm", "_sparse.mm")
def mm(input: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices, one of which is sparse at least."""
    how = "sum" if reduce is None else reduce
    if how not in REDUCTIONS:
        raise UserError(f"reduce = {reduce!r}", code="MLC0360", hint="one of " + ", ".join(REDUCTIONS))
    if how != "sum" and (not is_sparse(input) or is_sparse(mat2)):
        raise UserError(f"reduce = {reduce!r} needs a sparse matrix by a dense one", code="MLC0360")
    input, mat2 = (x if isinstance(x, Tensor) else call("asarray", x) for x in (input, mat2))
    _check_dimensions("mm", input=(input, 2), mat2=(mat2, 2))
    _check_product("mm", input, mat2)
    if not is_sparse(input) and not is_sparse(mat2):
        return call("mm", input, mat2)
    if is_sparse(input):
        return _by_sparse(input, mat2) if is_sparse(mat2) else _by_dense(input, mat2, how)
    return call("t", _by_dense(transposed(mat2), call("t", input)))


def transposed(x: SparseTensor) -> SparseTensor:
    """The transpose of a sparse matrix."""
    return call("transpose", x, 0, 1)  # type: ignore[return-value]


@implements("mv")
def mv(input: Any, vec: Any) -> Tensor:
    """A sparse matrix by a vector."""
    if is_sparse(vec):
        raise unsupported("mv", vec.layout, "the vector is sparse")
    _check_dimensions("mv", input=(input, 2), vec=(vec, 1))
    _check_product("mv", input, vec)
    return _by_dense(input, vec.reshape(-1, 1)).reshape(-1)


@implements("matmul")
def matmul(input: Any, other: Any) -> Any:
    """The product of two tensors of which one is sparse at least."""
    if input.ndim == 2 and other.ndim == 2:
        return mm(input, other)
    if input.ndim == 2 and other.ndim == 1:
        return mv(input, other)
    if input.ndim == 1 and other.ndim == 2 and is_sparse(other):
        _check_product("matmul", input, other)
        return mv(transposed(other), input)
    if input.ndim == 3 and other.ndim == 3:
        return bmm(input, other)
    raise unsupported("matmul", (input if is_sparse(input) else other).layout,
                      f"the operands have {input.ndim} and {other.ndim} dimensions")


@implements("bmm")
def bmm(input: Any, mat2: Any) -> Tensor:
    """The products of a batch of sparse matrices by dense ones: one product of a matrix of all rows."""
    if not is_sparse(input) or is_sparse(mat2):
        raise unsupported("bmm", mat2.layout, "only the first operand may be sparse")
    _check_dimensions("bmm", input=(input, 3), mat2=(mat2, 3))
    x = as_coo(input)
    if x.sparse_dim() != 3:
        raise unsupported("bmm", input.layout, "it has dense dimensions")
    if x.shape[0] != mat2.shape[0]:
        raise UserError(f"bmm: batches of {x.shape[0]} and of {mat2.shape[0]} matrices", code="MLC0367",
                        symbols=sizes.symbols(x.shape[0], mat2.shape[0]), hint="give as many matrices in both")
    _check_product("bmm", x, mat2)
    batch, n, k = x.shape
    number, row, column = x._indices().unbind(0)
    zeros = call("zeros", batch * n, mat2.shape[2], dtype=x.dtype, device=x.device)
    dense = mat2.reshape(batch * k, mat2.shape[2])
    return _rows_added(number * n + row, number * k + column, x.stored, dense, zeros).reshape(batch, n, -1)


@implements("addmm", "_sparse.addmm")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2), of which an operand is sparse."""
    product = mm(mat1, mat2) if is_sparse(mat1) or is_sparse(mat2) else call("mm", mat1, mat2)
    _check_added("addmm", "input", input, product)
    return _added(input, product, beta, alpha)


def _added(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta * input + alpha * product, where NaN in what is multiplied by the number 0 does not count."""
    product = product if _is_one(alpha) else product * alpha
    if not isinstance(beta, Tensor) and beta == 0:
        return product
    return (input if _is_one(beta) else input * beta) + product


def _is_one(x: Any) -> bool:
    return not isinstance(x, Tensor) and bool(x == 1)


@implements("addmv")
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat @ vec)"""
    product = mv(mat, vec)
    _check_added("addmv", "input", input, product)
    return _added(input, product, beta, alpha)


@implements("nn.functional.linear", "linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """A sparse batch, or a sparse weight, in a linear layer."""
    product = matmul(input, call("transpose", weight, 0, 1))
    if bias is None:
        return product
    _check_added("linear", "bias", bias, product)
    return product + bias


# -- functions of mlc.sparse and mlc ----------------------------------------------------------------------------------
@coded
def sparse_mm(mat1: Operand, mat2: Operand, reduce: str | None = None) -> Tensor:
    """The product of two matrices of which one is sparse; sparse if both are.

    The gradient by a sparse matrix has its pattern.

    Args:
        mat1: Matrix of shape (n, k).
        mat2: Matrix of shape (k, m).
        reduce: "sum", "mean", "amax" or "amin": what the products of a row are reduced to; None for the sum. The others
            need a sparse matrix by a dense one; only stored elements count.

    Returns:
        Tensor of shape (n, m).

    Raises:
        UserError: The shapes do not fit (MLC0364, MLC0367), `reduce` is another string (MLC0360), or the operands have
            different float dtypes (MLC0420).

    Example:
        >>> s = mlc.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> mlc.sparse.mm(s, mlc.tensor([[1.0], [10.0]]))
        tensor([[20.],
                [ 3.]], dtype=mlc.float32)
    """
    return mm(mat1, mat2, reduce)  # type: ignore[no-any-return]


@coded
def spmm(mat1: Operand, mat2: Operand) -> Tensor:
    """The product of a sparse matrix and a dense one, as `mlc.sparse.mm`.

    Args:
        mat1: Matrix of shape (n, k).
        mat2: Matrix of shape (k, m).

    Returns:
        Tensor of shape (n, m).

    Raises:
        UserError: The shapes do not fit (MLC0364, MLC0367), or the operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.spmm(mlc.eye(2).to_sparse(), mlc.ones(2, 1))
        tensor([[1.],
                [1.]], dtype=mlc.float32)
    """
    return mm(mat1, mat2)  # type: ignore[no-any-return]


@coded
def sparse_addmm(input: Operand, mat1: Operand, mat2: Operand, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), where a matrix is sparse.

    Args:
        input: Dense tensor that broadcasts to the shape of the product.
        mat1: Matrix of shape (n, k).
        mat2: Matrix of shape (k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Tensor of shape (n, m).

    Raises:
        UserError: The shapes do not fit (MLC0364, MLC0367), the shapes do not broadcast (MLC0111), or the operands have
            different float dtypes (MLC0420).

    Example:
        >>> mlc.sparse.addmm(mlc.ones(2, 1), mlc.eye(2).to_sparse(), mlc.ones(2, 1), alpha=3)
        tensor([[4.],
                [4.]], dtype=mlc.float32)
    """
    return addmm(input, mat1, mat2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]


@coded
def smm(input: Operand, mat2: Operand) -> Tensor:
    """The product of a sparse matrix and a dense one as a sparse tensor, whose rows are those of the sparse matrix that
    have stored elements.

    Args:
        input: Sparse matrix of shape (n, k).
        mat2: Dense matrix of shape (k, m).

    Returns:
        Sparse tensor of shape (n, m).

    Raises:
        UserError: The shapes do not fit (MLC0364, MLC0367), `input` is dense (MLC0772), or the operands have different
            float dtypes (MLC0420).

    Example:
        >>> mlc.smm(mlc.eye(2).to_sparse(), mlc.ones(2, 1)).to_dense()
        tensor([[1.],
                [1.]], dtype=mlc.float32)
    """
    rows = _sparse_rows(input, mat2, "smm")
    return as_elements(rows)


@coded
def hspmm(mat1: Operand, mat2: Operand) -> Tensor:
    """The product of a sparse matrix and a dense one as a tensor of one sparse dimension, the rows.

    Args:
        mat1: Sparse matrix of shape (n, k).
        mat2: Dense matrix of shape (k, m).

    Returns:
        Sparse tensor of shape (n, m), with rows as values.

    Raises:
        UserError: The shapes do not fit (MLC0364, MLC0367), `mat1` is dense (MLC0772), or the operands have different
            float dtypes (MLC0420).

    Example:
        >>> mlc.hspmm(mlc.eye(2).to_sparse(), mlc.ones(2, 1)).dense_dim()
        1
    """
    return _sparse_rows(mat1, mat2, "hspmm")


def _sparse_rows(a: Any, b: Any, name: str) -> SparseTensor:
    """A sparse matrix by a dense one, as a tensor of the rows that are not empty."""
    need_sparse(a, name)
    if is_sparse(b):
        raise unsupported(name, b.layout, "the second matrix is sparse", "call to_dense() on it")
    x, b = _matrix(a, name), b if isinstance(b, Tensor) else call("asarray", b)
    _check_dimensions(name, mat2=(b, 2))
    _check_product(name, x, b)
    rows, number = call("unique", x._indices()[0], return_inverse=True)
    zeros = call("zeros", rows.shape[0], b.shape[1], dtype=x.dtype)
    values = _rows_added(number, x._indices()[1], x.stored, b, zeros)
    return coo(rows.reshape(1, -1), values, (x.shape[0], b.shape[1]), True)


def as_elements(x: SparseTensor) -> SparseTensor:
    """A COO tensor without dense dimensions: each element of the values is one of its own."""
    values, nnz = x.stored, x._nnz()
    dense = tuple(values.shape[1:])
    if not dense:
        return x
    parts = [row.reshape(nnz, *[1] * len(dense)) for row in x._indices().unbind(0)]
    parts += [call("arange", n).reshape(1, *[n if k == at else 1 for k in range(len(dense))])
              for at, n in enumerate(dense)]
    indices = [call("expand", part, (nnz, *dense)).reshape(values.numel()) for part in parts]
    return coo(call("stack", indices), values.reshape(values.numel()), x.shape, x.is_coalesced())


@coded
def sspaddmm(input: Operand, mat1: Operand, mat2: Operand, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) as a sparse matrix, of a sparse input.

    Args:
        input: Sparse matrix of shape (n, m).
        mat1: Sparse matrix of shape (n, k).
        mat2: Dense matrix of shape (k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Sparse matrix of shape (n, m).

    Raises:
        UserError: The shapes do not fit (MLC0364, MLC0367), a matrix is dense (MLC0772), or the operands have different
            float dtypes (MLC0420).

    Example:
        >>> s = mlc.eye(2).to_sparse()
        >>> mlc.sspaddmm(s, s, mlc.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]], dtype=mlc.float32)
    """
    return call("add", input * beta, smm(mat1, mat2) * alpha)


@coded
def sampled_addmm(input: Operand, mat1: Operand, mat2: Operand, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the places where the sparse input has elements; no others are computed.

    Args:
        input: Sparse matrix of shape (n, m).
        mat1: Dense matrix of shape (n, k).
        mat2: Dense matrix of shape (k, m).
        beta: Factor of `input`.
        alpha: Factor of the product.

    Returns:
        Sparse tensor of the pattern and the layout of `input`.

    Raises:
        UserError: The shapes do not fit (MLC0364, MLC0367), `input` is dense or a matrix sparse (MLC0772), or the
            operands have different float dtypes (MLC0420).

    Example:
        >>> s = mlc.eye(2).to_sparse_csr()
        >>> mlc.sparse.sampled_addmm(s, mlc.ones(2, 3), mlc.ones(3, 2)).values()
        tensor([4., 4.], dtype=mlc.float32)
    """
    need_sparse(input, "sampled_addmm")
    mat1, mat2 = (x if isinstance(x, Tensor) else call("asarray", x) for x in (mat1, mat2))
    if is_sparse(mat1) or is_sparse(mat2) or input.layout.blocked:
        raise unsupported("sampled_addmm", input.layout, "the matrices are to be dense, and the input has no blocks",
                          "convert them by to_dense() and to_sparse_csr()")
    _check_dimensions("sampled_addmm", mat1=(mat1, 2), mat2=(mat2, 2))
    _check_product("sampled_addmm", mat1, mat2)
    if tuple(input.shape) != (mat1.shape[0], mat2.shape[1]):
        raise UserError(f"sampled_addmm: a product of size {[mat1.shape[0], mat2.shape[1]]} for an input of "
                        f"{list(input.shape)}", code="MLC0367", hint="give an input of the product's shape")
    rows, columns = _matrix(input, "sampled_addmm")._indices().unbind(0)
    product = _sampled(rows, columns, mat1, mat2)
    return input.with_values(input.stored * beta + product * alpha)  # type: ignore[no-any-return]


OPERATIONS.update({"spmm": spmm, "smm": smm, "hspmm": hspmm, "sspaddmm": sspaddmm})
OPERATIONS.update({"_sparse.mm": sparse_mm, "_sparse.addmm": sparse_addmm, "_sparse.sampled_addmm": sampled_addmm})
