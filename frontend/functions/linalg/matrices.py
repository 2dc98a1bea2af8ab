"""Normalization of the operands of linear algebra: batches of float32 or float64 matrices."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.dialects.tensor.promotion import promote
from mlc.frontend.functions import elementwise as E
from mlc.frontend.operands import broadcast_shapes, broadcast_to, cast, conjugate, floating, reshape, same_shape, tracer
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import f32, f64, i64


def as_matrix(input: Operand, complex: bool = False) -> Tracer:
    """Matrices of float32 or float64, or of complex numbers if the caller is a function of these."""
    x = floating(input)
    if x.ndim < 2:
        raise UserError(f"expected matrices, found {x.ndim} dimensions", code="MLC0364")
    return x if x.type.dtype in (f32, f64) or (complex and x.type.dtype.is_complex) else cast(x, f32)


def as_square(input: Operand, complex: bool = False) -> Tracer:
    x = as_matrix(input, complex)
    if x.shape[-1] != x.shape[-2]:
        raise UserError(f"the matrix has {x.shape[-2]} rows and {x.shape[-1]} columns, which must be equal",
                        code="MLC0367", symbols=sizes.symbols(*x.shape[-2:]))
    return x


def symmetric_from(input: Operand, upper: bool = False, complex: bool = False) -> Tracer:
    """The symmetric matrix given by one triangle of a square matrix, Hermitian if that is complex; its derivative is
    symmetric too."""
    x = as_square(input, complex)
    y = conjugate(matrix_transpose(x))
    row, column = (emit(T.Iota, x.shape[-2:], a, i64) for a in range(2))
    kept = tracer(E.where((row <= column) if upper else (row >= column), x, y))
    even = tracer((x + y) * 0.5)
    kept = tracer(E.where(row == column, even, kept)) if x.type.dtype.is_complex else kept
    return tracer(even + E.detach(kept - even))


def same_type_and_batch(a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    """Matrices of one element type and batch."""
    dtype = promote(a.type.dtype, b.type.dtype)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = cast(a, dtype), cast(b, dtype)
    return broadcast_to(a, [*batch, *a.shape[-2:]]), broadcast_to(b, [*batch, *b.shape[-2:]])


def right_sides(a: Tracer, other: Operand) -> tuple[Tracer, bool]:
    """Right-hand sides as matrices, and whether they were vectors, which follows from the shape as in PyTorch."""
    b = floating(other)
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and same_shape(b.shape, a.shape[:-1]))
    b = reshape(b, [*b.shape, 1]) if vector else b
    if b.ndim < 2 or b.shape[-2] != a.shape[-2]:
        raise UserError(f"right-hand sides of shape [{', '.join(map(str, b.shape))}] do not fit {a.shape[-2]} rows",
                        code="MLC0367", symbols=sizes.symbols(*b.shape[-2:-1], a.shape[-2]))
    return b, vector


def known_size(n: Any, what: str) -> int:
    if not isinstance(n, int):
        raise UserError(f"{what} must be known, found {n}", code="MLC0365", symbols=sizes.symbols(n))
    return n


def identity_like(n: Any, like: Tracer) -> Tracer:
    """The identity as a matrix of the element type."""
    row, column = (emit(T.Iota, (n, n), a, i64) for a in range(2))
    return cast(tracer(row == column), like.type.dtype)


def matrix_transpose(x: Tensor) -> Tracer:
    y = tracer(x)
    return emit(T.Transpose, y, (*range(y.ndim - 2), y.ndim - 1, y.ndim - 2))  # type: ignore[no-any-return]


def representation(x: Tracer) -> Tracer:
    """[[a, -b], [b, a]] for complex matrices a + bi: it has their eigenvalues and singular values, each twice."""
    a, b = emit(T.Real, x), emit(T.Imag, x)
    upper, lower = (emit(T.Concat, pair, x.ndim - 1) for pair in ((a, emit(T.Neg, b)), (b, a)))
    return emit(T.Concat, (upper, lower), x.ndim - 2)  # type: ignore[no-any-return]


def every_second(x: Tracer) -> Tracer:
    """Every second element along the last dimension, from the first."""
    zeros = (0,) * x.ndim
    return emit(T.Slice, x, zeros, x.shape, (*(1 for _ in zeros[1:]), 2))  # type: ignore[no-any-return]


def triangular_solve(a: Tracer, b: Tracer, upper: bool, transposed: bool = False, unit: bool = False) -> Tracer:
    return emit(T.TriangularSolve, a, b, upper, transposed, unit)  # type: ignore[no-any-return]
