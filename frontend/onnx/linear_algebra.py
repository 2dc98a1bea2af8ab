"""Products of matrices, sums of products, determinants."""

from __future__ import annotations

from typing import Any

from mlc.frontend.onnx import integer_products
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import StepsOf
from mlc.frontend.tensor import OPERATIONS as O


@row("MatMul")
def matmul(x: Any, y: Any, *, steps_of: StepsOf) -> Any:
    out = integer_products.product(x, y, None, steps_of)
    return O["matmul"](x, y) if out is None else out


@row("Gemm")
def gemm(a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
         broadcast: int = 1, steps_of: StepsOf) -> Any:
    if not transA and alpha == beta == 1 and (c is None or c.ndim == 1):
        out = integer_products.product(a, b, c, steps_of, transposed=bool(transB))
        if out is not None:
            return out
    product = O["matmul"](O["transpose"](a, 0, 1) if transA else a, O["transpose"](b, 0, 1) if transB else b)
    dtype = product.dtype
    if not dtype.is_floating_point and not (alpha.is_integer() and beta.is_integer()):
        product = O["cast"](product, "float64")            # and the sum is rounded toward zero
    elif not dtype.is_floating_point:
        alpha, beta = int(alpha), int(beta)
    product = product if alpha == 1 else product * alpha
    return O["cast"](product if c is None else product + (c if beta == 1 else c * beta), dtype)


@row("Einsum")
def einsum(*xs: Any, equation: str) -> Any:
    return O["einsum"](equation.replace(" ", ""), *xs)


@row("Det")
def det(x: Any) -> Any:
    return O["det"](x)
