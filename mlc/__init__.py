"""mlc: a machine-learning framework that is a compiler all the way down.

    @mlc.compile
    def f(x, w):
        return mlc.softmax(x @ w, dim=1)

The names below are imported when they are first used: `import mlc` itself loads nothing.
"""

# ruff: noqa: F403, F405
from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False            # importing it from typing would take longer than all of `mlc --help`
if TYPE_CHECKING:
    from typing import Any

    # isort: off
    from mlc import (
        autograd as autograd, cuda as cuda, fft as fft, func as func, linalg as linalg, nn as nn, optim as optim,
        random as random, signal as signal, special as special, utils as utils,
    )
    from mlc.anomaly import detect_anomaly as detect_anomaly
    from mlc.api import (
        Compiled as Compiled, checkpoint as checkpoint, compile as compile, cond as cond, custom_jvp as custom_jvp,
        custom_vjp as custom_vjp, fori_loop as fori_loop, get_num_threads as get_num_threads, grad as grad,
        hessian as hessian, hvp as hvp, jacfwd as jacfwd, jacrev as jacrev, jvp as jvp, linearize as linearize,
        lower as lower, native_entries as native_entries, saved_bytes as saved_bytes, scan as scan,
        set_num_threads as set_num_threads, spec as spec, value_and_grad as value_and_grad, vjp as vjp, vmap as vmap,
        while_loop as while_loop,
    )
    from mlc.artifact import load as load, save as save
    from mlc.frontend.autograd.grad_mode import (
        enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled,
        no_grad as no_grad, set_grad_enabled as set_grad_enabled,
    )
    from mlc.frontend.control import map as map
    from mlc.frontend.dtypes import (
        DType as DType, bfloat16 as bfloat16, bool_ as bool_, float16 as float16, float32 as float32,
        float64 as float64, int16 as int16, int32 as int32, int64 as int64, int8 as int8, uint16 as uint16,
        uint32 as uint32, uint64 as uint64, uint8 as uint8,
    )
    from mlc.frontend.functions.ragged import (
        argwhere as argwhere, masked_select as masked_select, nonzero as nonzero, unique as unique,
        unique_consecutive as unique_consecutive, where as where,
    )
    from mlc.frontend.functions.calculus import *
    from mlc.frontend.functions.compare import *
    from mlc.frontend.functions.contract import *
    from mlc.frontend.functions.create import *
    from mlc.frontend.functions.divisors import *
    from mlc.frontend.functions.dynamic import *
    from mlc.frontend.functions.elementwise import *  # type: ignore[assignment]  # its `where` takes two choices only
    from mlc.frontend.functions.grids import *
    from mlc.frontend.functions.reduce import *
    from mlc.frontend.functions.replace import *
    from mlc.frontend.functions.scan import *
    from mlc.frontend.functions.scatter import *
    from mlc.frontend.functions.shape import *
    from mlc.frontend.functions.sort import *
    from mlc.frontend.functions.trigonometry import *
    from mlc.frontend.functions.fft import (
        bartlett_window as bartlett_window, blackman_window as blackman_window, hamming_window as hamming_window,
        hann_window as hann_window,
    )
    from mlc.frontend.functions.index import (
        diag as diag, diagonal as diagonal, embedding as embedding, gather as gather, index_select as index_select,
        one_hot as one_hot, take_along_dim as take_along_dim, take_flat,
    )
    from mlc.frontend.functions.linalg import (
        chain_matmul as chain_matmul, cholesky as cholesky, cholesky_inverse as cholesky_inverse,
        cholesky_solve as cholesky_solve, det as det, logdet as logdet, matrix_exp as matrix_exp,
        matrix_power as matrix_power, pinverse as pinverse, slogdet as slogdet, solve_by_lu, thin_qr,
    )
    from mlc.frontend.functions.neural import (
        celu as celu, cosine_similarity as cosine_similarity, layer_norm as layer_norm, log_softmax as log_softmax,
        pairwise_distance as pairwise_distance, prelu as prelu, relu as relu, rms_norm as rms_norm, selu as selu,
        softmax as softmax, threshold as threshold,
    )
    from mlc.frontend.functions.random import erfinv as erfinv
    from mlc.frontend.functions.special import (
        digamma as digamma, i0 as i0, lgamma as lgamma, mvlgamma as mvlgamma, polygamma as polygamma,
    )
    from mlc.frontend.functions.linalg import inv
    from mlc.frontend.tensor import Tensor as Tensor
    from mlc.gradient_check import gradcheck as gradcheck, gradgradcheck as gradgradcheck
    from mlc.ir.diag import Error as Error, UserError as UserError
    from mlc.nn.init import manual_seed as manual_seed
    # isort: on

    absolute = abs
    arccos = acos
    arccosh = acosh
    arcsin = asin
    arcsinh = asinh
    arctan = atan
    arctan2 = atan2
    arctanh = atanh
    as_tensor = asarray
    bool = bool_
    cast = cast_to
    clip = clamp
    concat = cat
    concatenate = cat
    divide = div
    fix = trunc
    ger = outer
    greater = gt
    greater_equal = ge
    inverse = inv
    less = lt
    less_equal = le
    lu_solve = solve_by_lu
    moveaxis = movedim
    multiply = mul
    negative = neg
    not_equal = ne
    qr = thin_qr
    row_stack = vstack
    sgn = sign
    subtract = sub
    swapdims = transpose
    take = take_flat
    trapz = trapezoid
    true_divide = div
    unsafe_chunk = chunk
    unsafe_split = split

__version__ = "0.1.0"

_API = (
    "Compiled", "bfloat16", "bool", "bool_", "checkpoint", "compile", "cond", "custom_jvp", "custom_vjp", "float16",
    "float32", "float64", "fori_loop", "get_num_threads", "grad", "hessian", "hvp", "int16", "int32", "int64", "int8",
    "jacfwd", "jacrev", "jvp", "linearize", "lower", "native_entries", "saved_bytes", "scan", "set_num_threads", "spec",
    "uint16", "uint32", "uint64", "uint8", "value_and_grad", "vjp", "vmap", "while_loop",
)
"""Public names other than the functions on tensors, which are in frontend/functions."""
_ELSEWHERE = {
    "DType": "mlc.frontend.dtypes", "Tensor": "mlc.frontend.functions", "Error": "mlc.ir.diag",
    "UserError": "mlc.ir.diag", "load": "mlc.artifact", "manual_seed": "mlc.nn.init", "map": "mlc.frontend.control",
    "save": "mlc.artifact", "detect_anomaly": "mlc.anomaly", "gradcheck": "mlc.gradient_check",
    "gradgradcheck": "mlc.gradient_check",
    **dict.fromkeys(("enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"),
                    "mlc.autograd.grad_mode"),
}
_MODULES = frozenset({"autograd", "cuda", "extension", "fft", "func", "importer", "linalg", "nn", "optim", "random",
                      "signal", "special", "utils"})


def __getattr__(name: str) -> Any:
    """A public name, on first use; the compiler's own modules are imported as mlc.ir and so on."""
    if name in _MODULES:
        return importlib.import_module("mlc." + name)
    if name == "__all__":
        importlib.import_module("mlc.api")
        functions = importlib.import_module("mlc.frontend.functions")
        value = sorted({*_API, *_ELSEWHERE, *(_MODULES - {"extension", "importer"}), *functions.PUBLIC})
    elif name.startswith("_") or (value := _find(name)) is None:
        raise _absent(name)
    globals()[name] = value
    return value


def _find(name: str) -> Any:
    """Object that a public name denotes; None if there is no such name."""
    if name == "Tensor":                                   # its operators need the compiler
        importlib.import_module("mlc.api")
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[name]), name)
    api = importlib.import_module("mlc.api")               # first, since it registers the compiler with the frontend
    if name in _API:
        where = api if name in api.__all__ else importlib.import_module("mlc.frontend.dtypes")
        return getattr(where, "bool_" if name == "bool" else name)
    return importlib.import_module("mlc.frontend.functions").PUBLIC.get(name)


def _absent(name: str) -> AttributeError:
    if name.startswith("_"):                               # of Python's own protocols
        return AttributeError(f"module 'mlc' has no attribute {name!r}", name=name)
    table = importlib.import_module("mlc.frontend.unsupported_api")
    return table.error("mlc", name, table.PACKAGE.get(name), sys.modules[__name__])  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return sorted({*globals(), *sys.modules[__name__].__all__})
