"""mlc: a machine-learning framework that is a compiler all the way down.

    @mlc.compile
    def f(x, w):
        return mlc.softmax(x @ w, dim=1)

The names below are imported when they are first used: `import mlc` itself loads nothing.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False            # as typing's, which takes longer to import than all that `mlc --help` does
if TYPE_CHECKING:
    from typing import Any

    # isort: off
    from mlc import nn, optim
    from mlc.api import Compiled, compile, grad, lower, native_entries, spec, value_and_grad, vjp
    from mlc.frontend.dtypes import (
        DType, bfloat16, bool_, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    )
    from mlc.frontend.dtypes import bool_ as bool
    from mlc.frontend.functions.contract import (
        addmm, baddbmm, bmm, dot, einsum, inner, kron, matmul, mm, mv, outer, tensordot, trace, vdot,
    )
    from mlc.frontend.functions.create import (
        arange, asarray, eye, from_dlpack, from_numpy, full, full_like, linspace, ones, ones_like, tensor, zeros,
        zeros_like,
    )
    from mlc.frontend.functions.elementwise import (
        abs, acosh, add, addcdiv, addcmul, asinh, atanh, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or,
        bitwise_right_shift, bitwise_xor, ceil, clamp, copysign, cos, cosh, deg2rad, detach, div, eq, erf, erfc, exp,
        exp2, expm1, floor, floor_divide, fmax, fmin, fmod, frac, ge, gt, heaviside, hypot, isclose, isfinite, isinf,
        isnan, ldexp, le, lerp, log, log1p, log2, log10, logaddexp, logical_and, logical_not, logical_or, logical_xor,
        logit, lt, masked_fill, maximum, minimum, mul, nan_to_num, ne, neg, positive, pow, rad2deg, reciprocal,
        remainder, round, rsqrt, sigmoid, sign, sin, sinh, sqrt, square, sub, tan, tanh, trunc, where, xlogy,
    )
    from mlc.frontend.functions.elementwise import cast_to as cast
    from mlc.frontend.functions.index import diag, diagonal, embedding, gather, index_select, one_hot, take_along_dim
    from mlc.frontend.functions.index import take_flat as take
    from mlc.frontend.functions.neural import (
        celu, cosine_similarity, layer_norm, log_softmax, pairwise_distance, prelu, relu, rms_norm, selu, softmax,
        threshold,
    )
    from mlc.frontend.functions.reduce import (
        all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, logsumexp, max, mean, min, norm, prod, std,
        std_mean, sum, var, var_mean,
    )
    from mlc.frontend.functions.shape import (
        broadcast_tensors, broadcast_to, cat, chunk, expand, flatten, flip, hstack, movedim, narrow, pad, permute,
        repeat_interleave, reshape, roll, select, split, squeeze, stack, t, tile, transpose, tril, triu, unbind,
        unflatten, unsqueeze, vstack,
    )
    from mlc.frontend.tensor import Tensor
    from mlc.ir.diag import Error, UserError
    from mlc.nn.init import manual_seed
    # isort: on

__version__ = "0.1.0"

__all__ = [                                  # noqa: RUF022 (in plain alphabetical order, to be read)
    "Compiled", "DType", "Error", "Tensor", "UserError", "abs", "acosh", "add", "addcdiv", "addcmul", "addmm",
    "all", "amax", "amin", "aminmax", "any", "arange", "argmax", "argmin", "asarray", "asinh", "atanh", "baddbmm",
    "bfloat16", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "bmm", "bool", "bool_", "broadcast_tensors", "broadcast_to", "cast", "cat", "ceil", "celu",
    "chunk", "clamp", "compile", "copysign", "cos", "cosh", "cosine_similarity", "count_nonzero", "deg2rad",
    "detach", "diag", "diagonal", "div", "dot", "einsum", "embedding", "eq", "erf", "erfc", "exp", "exp2", "expand",
    "expm1", "eye", "flatten", "flip", "float16", "float32", "float64", "floor", "floor_divide", "fmax", "fmin",
    "fmod", "frac", "from_dlpack", "from_numpy", "full", "full_like", "gather", "ge", "grad", "gt", "heaviside",
    "hstack", "hypot", "index_select", "inner", "int16", "int32", "int64", "int8", "isclose", "isfinite", "isinf",
    "isnan", "kron", "layer_norm", "ldexp", "le", "lerp", "linspace", "log", "log10", "log1p", "log2",
    "log_softmax", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logsumexp",
    "lower", "lt", "manual_seed", "masked_fill", "matmul", "max", "maximum", "mean", "min", "minimum", "mm",
    "movedim", "mul", "mv", "nan_to_num", "narrow", "native_entries", "ne", "neg", "nn", "norm", "one_hot", "ones",
    "ones_like", "optim", "outer", "pad", "pairwise_distance", "permute", "positive", "pow", "prelu", "prod",
    "rad2deg", "reciprocal", "relu", "remainder", "repeat_interleave", "reshape", "rms_norm", "roll", "round",
    "rsqrt", "select", "selu", "sigmoid", "sign", "sin", "sinh", "softmax", "spec", "split", "sqrt", "square",
    "squeeze", "stack", "std", "std_mean", "sub", "sum", "t", "take", "take_along_dim", "tan", "tanh", "tensor",
    "tensordot", "threshold", "tile", "trace", "transpose", "tril", "triu", "trunc", "uint16", "uint32", "uint64",
    "uint8", "unbind", "unflatten", "unsqueeze", "value_and_grad", "var", "var_mean", "vdot", "vjp", "vstack",
    "where", "xlogy", "zeros", "zeros_like",
]

_ELSEWHERE = {
    "DType": "mlc.frontend.dtypes", "Tensor": "mlc.frontend.tensor", "Error": "mlc.ir.diag",
    "UserError": "mlc.ir.diag", "manual_seed": "mlc.nn.init",
}
_MODULES = frozenset({"nn", "optim"})


def __getattr__(name: str) -> Any:
    """A public name, on first use; the compiler's own modules are imported as mlc.ir and so on."""
    if name in _MODULES:
        return importlib.import_module("mlc." + name)
    if name not in __all__:
        raise AttributeError(f"module 'mlc' has no attribute {name!r}")
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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
