"""mlc: a machine-learning framework that is a compiler all the way down.

    @mlc.compile
    def f(x, w):
        return mlc.softmax(x @ w, dim=1)

The names below are imported when they are first used: `import mlc` itself loads nothing.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False            # as typing's, which takes longer to import than all that `mlc --help` does
if TYPE_CHECKING:
    from typing import Any

    # isort: off
    from mlc import cuda, fft, linalg, nn, optim, random
    from mlc.anomaly import detect_anomaly
    from mlc.api import (
        Compiled, checkpoint, compile, cond, custom_jvp, custom_vjp, fori_loop, get_num_threads, grad, hessian,
        hvp, jacfwd, jacrev, jvp, linearize, lower, native_entries, saved_bytes, scan, set_num_threads,
        spec, value_and_grad, vjp, vmap, while_loop,
    )
    from mlc.artifact import load, save
    from mlc.frontend.control import map
    from mlc.frontend.dtypes import (
        DType, bfloat16, bool_, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
        uint8,
    )
    from mlc.frontend.dtypes import bool_ as bool
    from mlc.frontend.functions.compare import allclose, equal
    from mlc.frontend.functions.contract import (
        addbmm, addmm, addmv, addr, baddbmm, bmm, cdist, chain_matmul, corrcoef, cov, cross, dot, einsum, inner,
        kron, matmul, mm, mv, outer, tensordot, trace, vdot,
    )
    from mlc.frontend.functions.create import (
        arange, asarray, clone, contiguous, empty, empty_like, eye, from_dlpack, from_numpy, full, full_like, linspace,
        ones, ones_like, tensor, zeros, zeros_like,
    )
    from mlc.frontend.functions.dynamic import dynamic_slice, dynamic_update_slice
    from mlc.frontend.functions.elementwise import (
        abs, add, addcdiv, addcmul, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or,
        bitwise_right_shift, bitwise_xor, ceil, clamp, clamp_max, clamp_min, copysign, detach, div, eq, erf,
        erfc, exp, exp2, expm1, float_power, floor, floor_divide, fmax, fmin, fmod, frac, ge, gt, heaviside,
        isclose, isfinite, isinf, isnan, isneginf, isposinf, ldexp, le, lerp, log, log10, log1p, log2,
        logaddexp, logaddexp2, logical_and, logical_not, logical_or, logical_xor, logit, lt, masked_fill,
        maximum, minimum, mul, nan_to_num, ne, neg, positive, pow, reciprocal, remainder, round, rsqrt, sigmoid,
        sign, signbit, sqrt, square, sub, trunc, xlogy,
    )
    from mlc.frontend.functions.elementwise import cast_to as cast
    from mlc.frontend.functions.fft import bartlett_window, blackman_window, hamming_window, hann_window
    from mlc.frontend.functions.grids import (
        atleast_1d, atleast_2d, atleast_3d, block_diag, cartesian_prod, column_stack, combinations, diag_embed,
        diagflat, dsplit, dstack, fliplr, flipud, hsplit, meshgrid, ravel, rot90, swapaxes, tensor_split,
        trapezoid, tril_indices, triu_indices, unravel_index, vander, vsplit,
    )
    from mlc.frontend.functions.index import (
        diag, diagonal, embedding, gather, index_select, one_hot, take_along_dim,
    )
    from mlc.frontend.functions.index import take_flat as take
    from mlc.frontend.functions.linalg import det, logdet, matrix_exp, matrix_power, slogdet
    from mlc.frontend.functions.neural import (
        celu, cosine_similarity, layer_norm, log_softmax, pairwise_distance, prelu, relu, rms_norm, selu, softmax,
        threshold,
    )
    from mlc.frontend.functions.ragged import argwhere, masked_select, nonzero, unique, unique_consecutive, where
    from mlc.frontend.functions.random import erfinv
    from mlc.frontend.functions.reduce import (
        all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, dist, logsumexp, max, mean, min, nanmean,
        nansum, norm, prod, std, std_mean, sum, var, var_mean,
    )
    from mlc.frontend.functions.scan import cummax, cummin, cumprod, cumsum, diff, logcumsumexp
    from mlc.frontend.functions.scatter import (
        bincount, index_add, index_copy, index_fill, index_reduce, scatter, scatter_add, scatter_reduce,
    )
    from mlc.frontend.functions.shape import (
        broadcast_tensors, broadcast_to, cat, chunk, expand, flatten, flip, hstack, movedim, narrow, pad, permute,
        repeat_interleave, reshape, roll, select, split, squeeze, stack, t, tile, transpose, tril, triu, unbind,
        unflatten, unsqueeze, vstack,
    )
    from mlc.frontend.functions.sort import (
        argsort, bucketize, histc, isin, kthvalue, median, mode, msort, nanmedian, nanquantile, quantile,
        searchsorted, sort, topk,
    )
    from mlc.frontend.functions.trigonometry import (
        acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, deg2rad, hypot, rad2deg, sin, sinc, sinh, tan,
        tanh,
    )
    from mlc.frontend.functions.contract import outer as ger
    from mlc.frontend.functions.create import asarray as as_tensor
    from mlc.frontend.functions.elementwise import abs as absolute
    from mlc.frontend.functions.elementwise import clamp as clip
    from mlc.frontend.functions.elementwise import div as divide
    from mlc.frontend.functions.elementwise import trunc as fix
    from mlc.frontend.functions.elementwise import gt as greater
    from mlc.frontend.functions.elementwise import ge as greater_equal
    from mlc.frontend.functions.elementwise import lt as less
    from mlc.frontend.functions.elementwise import le as less_equal
    from mlc.frontend.functions.elementwise import mul as multiply
    from mlc.frontend.functions.elementwise import neg as negative
    from mlc.frontend.functions.elementwise import ne as not_equal
    from mlc.frontend.functions.elementwise import sub as subtract
    from mlc.frontend.functions.elementwise import div as true_divide
    from mlc.frontend.functions.linalg import inv as inverse
    from mlc.frontend.functions.shape import cat as concat
    from mlc.frontend.functions.shape import cat as concatenate
    from mlc.frontend.functions.shape import movedim as moveaxis
    from mlc.frontend.functions.shape import transpose as swapdims
    from mlc.frontend.functions.shape import vstack as row_stack
    from mlc.frontend.functions.trigonometry import acos as arccos
    from mlc.frontend.functions.trigonometry import acosh as arccosh
    from mlc.frontend.functions.trigonometry import asin as arcsin
    from mlc.frontend.functions.trigonometry import asinh as arcsinh
    from mlc.frontend.functions.trigonometry import atan as arctan
    from mlc.frontend.functions.trigonometry import atan2 as arctan2
    from mlc.frontend.functions.trigonometry import atanh as arctanh
    from mlc.frontend.tensor import Tensor
    from mlc.gradient_check import gradcheck, gradgradcheck
    from mlc.ir.diag import Error, UserError
    from mlc.nn.init import manual_seed
    # isort: on

__version__ = "0.1.0"

__all__ = [                                  # noqa: RUF022 (in plain alphabetical order, to be read)
    "Compiled", "DType", "Error", "Tensor", "UserError", "abs", "absolute", "acos", "acosh", "add", "addbmm",
    "addcdiv", "addcmul", "addmm", "addmv", "addr", "all", "allclose", "amax", "amin", "aminmax", "any", "arange",
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort",
    "argwhere", "as_tensor", "asarray", "asin", "asinh", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d",
    "atleast_3d", "baddbmm", "bartlett_window", "bfloat16", "bincount", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm",
    "bool", "bool_", "broadcast_tensors", "broadcast_to", "bucketize", "cartesian_prod", "cast", "cat", "cdist",
    "ceil", "celu", "chain_matmul", "checkpoint", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone",
    "column_stack", "combinations", "compile", "concat", "concatenate", "cond", "contiguous", "copysign",
    "corrcoef", "cos", "cosh", "cosine_similarity", "count_nonzero", "cov", "cross", "cuda", "cummax", "cummin",
    "cumprod", "cumsum", "custom_jvp", "custom_vjp", "deg2rad", "det", "detach", "detect_anomaly", "diag",
    "diag_embed", "diagflat", "diagonal", "diff", "dist", "div", "divide", "dot", "dsplit", "dstack",
    "dynamic_slice", "dynamic_update_slice", "einsum", "embedding", "empty", "empty_like", "eq", "equal", "erf",
    "erfc", "erfinv", "exp", "exp2", "expand", "expm1", "eye", "fft", "fix", "flatten", "flip", "fliplr", "flipud",
    "float16", "float32", "float64", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "fori_loop",
    "frac", "from_dlpack", "from_numpy", "full", "full_like", "gather", "ge", "ger", "get_num_threads", "grad",
    "gradcheck", "gradgradcheck", "greater", "greater_equal", "gt", "hamming_window", "hann_window", "heaviside",
    "hessian", "histc", "hsplit", "hstack", "hvp", "hypot", "index_add", "index_copy", "index_fill", "index_reduce",
    "index_select", "inner", "int16", "int32", "int64", "int8", "inverse", "isclose", "isfinite", "isin", "isinf",
    "isnan", "isneginf", "isposinf", "jacfwd", "jacrev", "jvp", "kron", "kthvalue", "layer_norm", "ldexp", "le",
    "lerp", "less", "less_equal", "linalg", "linearize", "linspace", "load", "log", "log10", "log1p", "log2",
    "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logit", "logsumexp", "lower", "lt", "manual_seed", "map", "masked_fill", "masked_select",
    "matmul", "matrix_exp", "matrix_power", "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mm",
    "mode", "moveaxis", "movedim", "msort", "mul", "multiply", "mv", "nan_to_num", "nanmean", "nanmedian",
    "nanquantile", "nansum", "narrow", "native_entries", "ne", "neg", "negative", "nn", "nonzero", "norm",
    "not_equal", "one_hot", "ones", "ones_like", "optim", "outer", "pad", "pairwise_distance", "permute",
    "positive", "pow", "prelu", "prod", "quantile", "rad2deg", "random", "ravel", "reciprocal", "relu", "remainder",
    "repeat_interleave", "reshape", "rms_norm", "roll", "rot90", "round", "row_stack", "rsqrt", "save",
    "saved_bytes", "scan", "scatter", "scatter_add", "scatter_reduce", "searchsorted", "select", "selu",
    "set_num_threads", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "slogdet", "softmax", "sort", "spec",
    "split", "sqrt", "square", "squeeze", "stack", "std", "std_mean", "sub", "subtract", "sum", "swapaxes",
    "swapdims", "t", "take", "take_along_dim", "tan", "tanh", "tensor", "tensor_split", "tensordot", "threshold",
    "tile", "topk", "trace", "transpose", "trapezoid", "tril", "tril_indices", "triu", "triu_indices",
    "true_divide", "trunc", "uint16", "uint32", "uint64", "uint8", "unbind", "unflatten", "unique",
    "unique_consecutive", "unravel_index", "unsqueeze", "value_and_grad", "vander", "var", "var_mean", "vdot",
    "vjp", "vmap", "vsplit", "vstack", "where", "while_loop", "xlogy", "zeros", "zeros_like",
]

_ELSEWHERE = {
    "DType": "mlc.frontend.dtypes", "Tensor": "mlc.frontend.tensor", "Error": "mlc.ir.diag",
    "UserError": "mlc.ir.diag", "load": "mlc.artifact", "manual_seed": "mlc.nn.init", "map": "mlc.frontend.control",
    "save": "mlc.artifact", "detect_anomaly": "mlc.anomaly", "gradcheck": "mlc.gradient_check",
    "gradgradcheck": "mlc.gradient_check",
}
_MODULES = frozenset({"cuda", "extension", "fft", "importer", "linalg", "nn", "optim", "random"})


def __getattr__(name: str) -> Any:
    """A public name, on first use; the compiler's own modules are imported as mlc.ir and so on."""
    if name in _MODULES:
        return importlib.import_module("mlc." + name)
    if name not in __all__:
        raise _absent(name)
    value = _find(name)
    globals()[name] = value
    return value


def _find(name: str) -> Any:
    api = importlib.import_module("mlc.api")               # first: it gives the frontend its compiler
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[name]), name)
    if name in api.__all__:
        return getattr(api, name)
    if name in api.OPERATIONS:
        return api.OPERATIONS[name]
    return getattr(importlib.import_module("mlc.frontend.dtypes"), "bool_" if name == "bool" else name)


def _absent(name: str) -> AttributeError:
    if name.startswith("_"):                               # of Python's own protocols
        return AttributeError(f"module 'mlc' has no attribute {name!r}", name=name)
    absent = importlib.import_module("mlc.frontend.absent")
    return absent.error("mlc", name, absent.PACKAGE.get(name), sys.modules[__name__])  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
