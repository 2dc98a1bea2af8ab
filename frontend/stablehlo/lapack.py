"""The custom calls of LAPACK that JAX writes for factorizations, `lapack_spotrf_ffi` and others, as mlc's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlc.frontend.dtypes import of_ir
from mlc.frontend.stablehlo.calls import custom
from mlc.frontend.stablehlo.table import Row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


def lapack(name: str) -> Callable[[Row], Row]:
    """Make a function the routine of this name, of all element types."""
    return custom(*(f"lapack_{letter}{name}_ffi" for letter in "sdcz"))


def setting(step: Step, name: str) -> str:
    """A letter of the configuration, such as L for the lower triangle."""
    found = step.op.get("mhlo.backend_config")
    if not isinstance(found, dict) or not isinstance(found.get(name), int):
        step.op.wrong(f"its configuration has no {name}")
    return chr(found[name] & 127)


def success(x: Any) -> Any:
    """Zero for each matrix: the routine has succeeded."""
    return O["zeros"](*x.shape[:-2], dtype="int32") if len(x.shape) > 2 else O["zeros"](1, dtype="int32")[0]


@lapack("potrf")
def cholesky(step: Step, x: Any) -> tuple[Any, ...]:
    upper = setting(step, "uplo") == "U"
    if upper:                                              # mlc reads the lower triangle
        x = O["transpose"](O["conj"](x) if x.dtype.is_complex else x, -1, -2)
    factor, info = O["linalg.cholesky_ex"](x, upper=upper)
    return factor, O["cast"](info, "int32")


@lapack("trsm")
def triangular(step: Step, a: Any, b: Any) -> Any:
    upper, left = setting(step, "uplo") == "U", setting(step, "side") == "L"
    transposed = setting(step, "trans_x")
    if transposed in "TC":
        a, upper = O["transpose"](a, -1, -2), not upper
        if transposed == "C" and a.dtype.is_complex:
            a = O["conj"](a)
    return O["linalg.solve_triangular"](a, b, upper=upper, left=left, unitriangular=setting(step, "diag") == "U")


@lapack("geqrf")
def reflectors(step: Step, x: Any) -> tuple[Any, ...]:
    found, tau = O["geqrf"](x)
    return found, tau


@lapack("orgqr")
@lapack("ungqr")
def product_of_reflectors(step: Step, x: Any, tau: Any) -> Any:
    return O["linalg.householder_product"](x, tau)


@lapack("syevd")
@lapack("heevd")
def eigenvectors(step: Step, x: Any) -> tuple[Any, ...]:
    values, vectors = O["linalg.eigh"](x, UPLO=setting(step, "uplo"))
    return vectors, values, success(x)


@lapack("gesdd")
def singular_values(step: Step, x: Any) -> tuple[Any, ...]:
    mode = setting(step, "mode")
    if mode == "N":
        parts = [O["zeros"](*getattr(t, "shape", ()), dtype=of_ir(getattr(t, "dtype", None)))  # type: ignore[arg-type]
                 for t in step.op.results[2:4]]
        return x, O["linalg.svdvals"](x), *parts, success(x)
    u, s, v = O["linalg.svd"](x, full_matrices=mode == "A")
    return x, s, u, v, success(x)


@lapack("getrf")
def lu(step: Step, x: Any) -> tuple[Any, ...]:
    factors, pivots, info = O["linalg.lu_factor_ex"](x)
    return factors, O["cast"](pivots, "int32"), O["cast"](info, "int32")
