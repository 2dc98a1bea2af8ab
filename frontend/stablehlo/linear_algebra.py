"""Factorizations, triangular systems, Fourier transforms, and the normalization of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.elementwise import full
from mlc.frontend.stablehlo.gathering import at_axis
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


def _wide(x: Any) -> Any:
    """Floats of 16 bits in float32, which linear algebra is computed in."""
    return O["cast"](x, "float32") if x.dtype.name in ("float16", "bfloat16") else x


@row("stablehlo.cholesky")
def cholesky(step: Step, x: Any) -> Any:
    """The factor; the other triangle of the result is 0, where the specification leaves it open."""
    lower = bool(step.op.get("lower", False))
    wide = _wide(x)
    if not lower:                                          # mlc reads the lower triangle
        wide = O["conj"](O["transpose"](wide, -1, -2)) if wide.dtype.is_complex else O["transpose"](wide, -1, -2)
    return O["cast"](O["linalg.cholesky"](wide, upper=not lower), x.dtype)


@row("stablehlo.triangular_solve")
def triangular_solve(step: Step, a: Any, b: Any) -> Any:
    op = step.op
    lower, left = bool(op.get("lower", False)), bool(op.get("left_side", False))
    transposed = op.get("transpose_a", "NO_TRANSPOSE")
    matrix, right = _wide(a), _wide(b)
    if transposed in ("TRANSPOSE", "ADJOINT"):
        matrix, lower = O["transpose"](matrix, -1, -2), not lower
        if transposed == "ADJOINT" and matrix.dtype.is_complex:
            matrix = O["conj"](matrix)
    found = O["linalg.solve_triangular"](matrix, right, upper=not lower, left=left,
                                         unitriangular=bool(op.get("unit_diagonal", False)))
    return O["cast"](found, b.dtype)


@row("stablehlo.fft")
def fft(step: Step, x: Any) -> Any:
    lengths, kind = step.op.ints("fft_length"), step.op.need("fft_type")
    axes = list(range(len(x.shape) - len(lengths), len(x.shape)))
    names = {"FFT": "fft.fftn", "IFFT": "fft.ifftn", "RFFT": "fft.rfftn", "IRFFT": "fft.irfftn"}
    if kind not in names or not 1 <= len(lengths) <= 3 or axes[0] < 0:
        step.op.wrong(f"there is no transform {kind} of {len(lengths)} dimensions")
    shape = tuple(step.op.array.shape)
    if any(n == 0 for n in (*shape, *x.shape)):
        from mlc.frontend.dtypes import of_ir
        return O["zeros"](*shape, dtype=of_ir(step.op.array.dtype)) if shape else x
    return O[names[kind]](x, s=lengths, dim=axes)


def _along(step: Step, x: Any, *columns: Any) -> tuple[Any, ...]:
    """Columns as tensors that broadcast along the dimension of the features."""
    axis = step.op.need("feature_index")
    if not isinstance(axis, int) or not 0 <= axis < len(x.shape):
        step.op.wrong(f"there is no dimension {axis}")
    return tuple(at_axis(c, [axis], len(x.shape)) for c in columns)


def _others(step: Step, x: Any) -> list[int]:
    return [a for a in range(len(x.shape)) if a != step.op.need("feature_index")]


@row("stablehlo.batch_norm_inference")
def batch_norm_inference(step: Step, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    scale, offset, mean, variance = _along(step, x, scale, offset, mean, variance)
    deviation = O["sqrt"](O["add"](variance, full(step.op.need("epsilon"), x)))
    return O["add"](O["mul"](scale, O["div"](O["sub"](x, mean), deviation)), offset)


@row("stablehlo.batch_norm_training")
def batch_norm_training(step: Step, x: Any, scale: Any, offset: Any) -> tuple[Any, ...]:
    axes = _others(step, x)
    mean = O["mean"](x, axes)
    around, = _along(step, x, mean)
    variance = O["mean"](O["square"](O["sub"](x, around)), axes)
    return batch_norm_inference(step, x, scale, offset, mean, variance), mean, variance


@row("stablehlo.batch_norm_grad")
def batch_norm_grad(step: Step, x: Any, scale: Any, mean: Any, variance: Any, ct: Any) -> tuple[Any, ...]:
    axes = _others(step, x)
    scales, means, variances = _along(step, x, scale, mean, variance)
    deviation = O["sqrt"](O["add"](variances, full(step.op.need("epsilon"), x)))
    normal = O["div"](O["sub"](x, means), deviation)
    of_offset = O["sum"](ct, axes)
    of_scale = O["sum"](O["mul"](ct, normal), axes)
    first, = _along(step, x, O["mean"](ct, axes))
    second, = _along(step, x, O["mean"](O["mul"](ct, normal), axes))
    rest = O["sub"](O["sub"](ct, first), O["mul"](normal, second))
    return O["mul"](O["div"](scales, deviation), rest), of_scale, of_offset
