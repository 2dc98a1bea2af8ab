"""Elementwise functions of sparse tensors."""

from __future__ import annotations

from typing import Any

from mlc.frontend.functions.sparse.convert import as_compressed, as_coo, coo, is_sparse
from mlc.frontend.functions.sparse.positions import positions
from mlc.frontend.methods import call
from mlc.frontend.sparse.dispatch import implements, unsupported
from mlc.frontend.sparse.layout import layout as Layout
from mlc.frontend.sparse.layout import sparse_coo, strided
from mlc.frontend.sparse.tensor import SparseTensor
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.ir.diag import UserError

LINEAR = ("neg", "positive", "deg2rad", "rad2deg", "conj", "real", "clone", "detach", "cast", "_cast")
"""Functions that are applied to the values as they are, coalesced or not."""
KEEPING_ZERO = ("abs", "asin", "asinh", "atan", "atanh", "ceil", "erf", "erfinv", "expm1", "floor", "frac", "isinf",
                "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "relu", "round", "sign", "signbit", "sin",
                "sinh", "sqrt", "square", "tan", "tanh", "trunc", "angle")
"""Functions that are 0 at 0, and so are applied to the stored elements."""


def _of_values(name: str, coalesces: bool) -> None:
    @implements(name)
    def apply(input: SparseTensor, *args: Any, **keywords: Any) -> SparseTensor:
        x = input.coalesce() if coalesces and input.is_sparse else input
        return x.with_values(OPERATIONS[name](x.stored, *args, **keywords))


for _name in LINEAR:
    _of_values(_name, False)
for _name in KEEPING_ZERO:
    _of_values(_name, True)


def _is_number(x: Any) -> bool:
    return not getattr(x, "ndim", 0) and not is_sparse(x)


@implements("pow")
def _pow(input: Any, exponent: Any) -> SparseTensor:
    if not is_sparse(input) or not isinstance(exponent, int | float) or exponent <= 0:
        raise unsupported("pow", "sparse", "the exponent is to be a positive number, so that zeros stay zeros")
    x = input.coalesce() if input.is_sparse else input
    return x.with_values(call("pow", x.stored, exponent))  # type: ignore[no-any-return]


def _divides(name: str) -> None:
    @implements(name)
    def divide(input: Any, other: Any, **keywords: Any) -> SparseTensor:
        if not is_sparse(input) or not _is_number(other):
            layout = (input if is_sparse(input) else other).layout
            raise unsupported(name, layout, "only a number or a 0-d tensor may be the divisor",
                              "multiply by the reciprocal of the dense tensor, or call to_dense() first")
        rounds = name != "div" or keywords.get("rounding_mode") is not None
        x = input.coalesce() if rounds and input.is_sparse else input
        return x.with_values(OPERATIONS[name](x.stored, other, **keywords))  # type: ignore[no-any-return]


for _name in ("div", "floor_divide"):
    _divides(_name)


# -- sums -------------------------------------------------------------------------------------------------------------
@implements("add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """A sum of two sparse tensors, or of a dense tensor and a sparse one."""
    if is_sparse(input) and is_sparse(other):
        return _sum(input, other, alpha)
    sparse, dense = (input, other) if is_sparse(input) else (other, input)
    if tuple(dense.shape if isinstance(dense, Tensor) else ()) != tuple(sparse.shape) or (
            is_sparse(input) and sparse.is_sparse):
        raise unsupported("add", sparse.layout, "a dense tensor is added to it, or a number",
                          "write a dense tensor of the same shape first, as in dense + sparse, or call to_dense()")
    full = OPERATIONS["Tensor.to_dense"](sparse)
    return call("add", dense, full * alpha) if sparse is other else call("add", full, dense * alpha)


def _sum(a: SparseTensor, b: SparseTensor, alpha: Any) -> SparseTensor:
    if tuple(a.shape) != tuple(b.shape):
        raise UserError(f"sparse tensors of shapes {list(a.shape)} and {list(b.shape)} cannot be added", code="MLC0777",
                        hint="sparse tensors do not broadcast in a sum")
    if a.layout is not b.layout:
        raise unsupported("add", f"{a.layout} and {b.layout}", hint="convert one of them, by to_sparse(layout=...)")
    x, y = as_coo(a), as_coo(b)
    if x.sparse_dim() != y.sparse_dim():
        raise UserError(f"tensors of {x.sparse_dim()} and {y.sparse_dim()} sparse dimensions cannot be added",
                        code="MLC0777",
                        hint="make their values alike, by to_dense().to_sparse(n)")
    values = call("cat", [x.stored, y.stored if not isinstance(alpha, Tensor) and alpha == 1 else y.stored * alpha])
    out = coo(call("cat", [x._indices(), y._indices()], 1), values, x.shape)
    if not a.is_sparse:
        return as_compressed(out.coalesce(), a.layout, a.blocksize())
    return out.coalesce() if a.is_coalesced() and b.is_coalesced() else out


@implements("sub")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """A difference of two sparse tensors, or of a dense tensor and a sparse one."""
    return add(input, other, alpha=-alpha)


# -- products ---------------------------------------------------------------------------------------------------------
@implements("mul")
def mul(input: Any, other: Any) -> Any:
    """A product, whose pattern is that of the sparse factor, or common to both."""
    x, y = (input, other) if is_sparse(input) else (other, input)
    if _is_number(y):
        return x.with_values(call("mul", x.stored, y))
    if not is_sparse(y):
        return _by_dense(x, call("as_tensor", y))
    if tuple(x.shape) != tuple(y.shape):
        raise UserError(f"sparse tensors of shapes {list(x.shape)} and {list(y.shape)} are multiplied", code="MLC0777",
                        hint="sparse tensors do not broadcast against each other")
    if x.layout is not y.layout:
        raise unsupported("mul", f"{x.layout} and {y.layout}", hint="convert one of them, by to_sparse(layout=...)")
    out = _common(as_coo(x), as_coo(y))
    return out if x.is_sparse else as_compressed(out, x.layout, x.blocksize())


def _by_dense(x: SparseTensor, y: Tensor) -> SparseTensor:
    """The elements of a dense tensor at the places of those of a sparse one are its factors."""
    if y.ndim > len(x.shape) or any(n not in (1, m) for n, m in zip(y.shape[::-1], x.shape[::-1])):
        raise UserError(f"a sparse tensor of shape {list(x.shape)} by a dense one of {list(y.shape)}", code="MLC0777",
                        hint="only the dense tensor may broadcast")
    found = as_coo(x)
    n = found.sparse_dim()
    wide = call("expand", y, x.shape)
    factors = wide[tuple(found._indices().unbind(0))] if n else wide.unsqueeze(0)
    if x.is_sparse:
        return x.with_values(call("mul", x.stored, factors))
    if x.layout.blocked:
        return as_compressed(found.with_values(found.stored * factors), x.layout, x.blocksize())
    return x.with_values(call("mul", x.stored, factors.reshape(x.stored.shape)))


def _common(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The product of two COO tensors: the elements that both store."""
    if a.sparse_dim() != b.sparse_dim():
        raise UserError(f"tensors of {a.sparse_dim()} and {b.sparse_dim()} sparse dimensions are multiplied",
                        code="MLC0777", hint="make their values alike, by to_dense().to_sparse(n)")
    a, b = a.coalesce(), b.coalesce()
    shape = a.shape[: a.sparse_dim()]
    here, there = positions(a._indices(), shape), positions(b._indices(), shape)
    if not there.shape[0] or not here.shape[0]:
        empty = call("zeros", 0, *a.stored.shape[1:], dtype=call("mul", a.stored[:0], b.stored[:0]).dtype)
        return coo(a._indices()[:, :0], empty, a.shape, True)
    place = call("searchsorted", there, here)
    place = call("clamp", place, max=there.shape[0] - 1)
    which = call("nonzero", there[place] == here).reshape(-1)
    return coo(a._indices()[:, which], a.stored[which] * b.stored[place[which]], a.shape, True)


def _zeros(name: str) -> None:
    @implements(name)
    def create(input: SparseTensor, *, dtype: Any = None, layout: Layout | None = None, **keywords: Any) -> Tensor:
        wanted, dtype = layout or input.layout, dtype or input.dtype
        if wanted is strided:
            return call("zeros", input.shape, dtype=dtype, device=input.device)
        if wanted is sparse_coo:
            n = input.sparse_dim() + input.batch_dim()
            values = call("zeros", 0, *input.shape[n:], dtype=dtype)
            return coo(call("zeros", n, 0, dtype="int64"), values, input.shape, True)
        if wanted.blocked and not input.layout.blocked:
            raise unsupported(name, input.layout, "the sizes of blocks are not known", "convert the tensor first")
        at = input.batch_dim()
        batch, block = tuple(input.shape[:at]), (input.blocksize() if wanted.blocked else None) or ()
        count = input.shape[at + (wanted.compressed or 0)] // (block[wanted.compressed or 0] if block else 1)
        values = call("zeros", *batch, 0, *block, *input.shape[at + 2:], dtype=dtype)
        parts = [call("zeros", *batch, n, dtype="int64") for n in (count + 1, 0)]
        return SparseTensor((*parts, values), input.shape, wanted)


for _name in ("zeros_like", "empty_like"):
    _zeros(_name)


@implements("random.randn_like")
def _randn_like(key: Any, input: SparseTensor, **keywords: Any) -> SparseTensor:
    return input.with_values(OPERATIONS["random.randn_like"](key, input.stored, **keywords))
