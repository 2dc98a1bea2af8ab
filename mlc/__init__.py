"""mlc: a machine-learning framework that is a compiler all the way down.

    @mlc.compile
    def f(x, w):
        return mlc.softmax(x @ w, dim=1)

The names below are imported when they are first used: `import mlc` itself loads nothing.
"""

# ruff: noqa: F403, F405
from __future__ import annotations

import gc
import importlib
import os
import sys

TYPE_CHECKING = False            # importing it from typing would take longer than all of `mlc --help`
if TYPE_CHECKING:
    from typing import Any

    # isort: off
    from mlc import (
        accelerator as accelerator, array_api as array_api, autograd as autograd, backends as backends, cuda as cuda,
        debug as debug,
        distributed as distributed, fft as fft, func as func, hub as hub, linalg as linalg, masked as masked,
        models as models, multiprocessing as multiprocessing, nn as nn, optim as optim, profiler as profiler,
        quantization as quantization,
        random as random, signal as signal, sparse as sparse, special as special, tree as tree, utils as utils,
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
    from mlc.frontend.memory_format import (
        channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format,
        memory_format as memory_format, preserve_format as preserve_format,
    )
    from mlc.frontend.dtypes import (
        DType as DType, bfloat16 as bfloat16, bool_ as bool_, complex64 as complex64, complex128 as complex128,
        float16 as float16, float32 as float32,
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
    from mlc.frontend.functions.copies import *
    from mlc.frontend.functions.counting import (
        histogram as histogram, histogramdd as histogramdd, nonzero_static as nonzero_static,
    )
    from mlc.frontend.functions.create import *
    from mlc.frontend.functions.divisors import *
    from mlc.frontend.functions.dynamic import *
    from mlc.frontend.functions.elementwise import *  # type: ignore[assignment]  # its `where` takes two choices only
    from mlc.frontend.functions.grids import *
    from mlc.frontend.functions.lowrank import pca_lowrank as pca_lowrank, svd_lowrank as svd_lowrank
    from mlc.frontend.functions.native import (
        constant_pad_nd as constant_pad_nd, native_batch_norm as native_batch_norm,
        native_group_norm as native_group_norm, native_layer_norm as native_layer_norm,
    )
    from mlc.frontend.functions.reduce import *
    from mlc.frontend.functions.replace import *
    from mlc.frontend.functions.scan import *
    from mlc.frontend.functions.scatter import *
    from mlc.frontend.functions.segments import (
        repeat_interleave as repeat_interleave, segment_reduce as segment_reduce,
    )
    from mlc.frontend.functions.shape import *
    from mlc.frontend.functions.sort import *
    from mlc.frontend.functions.strided import (
        as_strided as as_strided, as_strided_scatter as as_strided_scatter, empty_permuted as empty_permuted,
        empty_strided as empty_strided,
    )
    from mlc.frontend.functions.sparse import *
    from mlc.frontend.functions.trigonometry import *
    from mlc.frontend.functions.fft import (
        bartlett_window as bartlett_window, blackman_window as blackman_window, hamming_window as hamming_window,
        hann_window as hann_window, istft as istft, kaiser_window as kaiser_window, stft as stft,
    )
    from mlc.frontend.functions.index import (
        diag as diag, diagonal as diagonal, gather as gather, index_select as index_select,
        one_hot as one_hot, take_along_dim as take_along_dim, take_flat,
    )
    from mlc.frontend.functions.linalg import (
        chain_matmul as chain_matmul, cholesky_factor, cholesky_inverse as cholesky_inverse,
        cholesky_solve as cholesky_solve, det as det, geqrf as geqrf,
        householder_product, logdet as logdet, lu_unpack as lu_unpack, matrix_exp as matrix_exp,
        matrix_power as matrix_power, ormqr as ormqr, packed_lu, pinverse as pinverse, slogdet as slogdet,
        solve_by_lu, solve_by_triangle, thin_qr, thin_svd,
    )
    from mlc.frontend.functions.neural import (
        bilinear as bilinear, celu as celu, cosine_similarity as cosine_similarity, dropout as dropout,
        embedding as embedding, hardshrink as hardshrink, layer_norm as layer_norm, log_softmax as log_softmax,
        pairwise_distance as pairwise_distance, prelu as prelu, relu as relu, rms_norm as rms_norm, rrelu as rrelu,
        selu as selu, softmax as softmax, threshold as threshold,
    )
    from mlc.frontend.functions.convolution import (
        conv1d as conv1d, conv2d as conv2d, conv3d as conv3d, conv_transpose1d as conv_transpose1d,
        conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d,
    )
    from mlc.frontend.functions.normalization import group_norm as group_norm
    from mlc.frontend.functions.pooling import (
        adaptive_avg_pool1d as adaptive_avg_pool1d, avg_pool1d as avg_pool1d, max_pool1d as max_pool1d,
        max_pool2d as max_pool2d, max_pool3d as max_pool3d,
    )
    from mlc.frontend.functions.resize import (
        channel_shuffle as channel_shuffle, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle,
    )
    from mlc.frontend.functions.random import erfinv as erfinv
    from mlc.frontend.functions.special import (
        digamma as digamma, i0 as i0, igamma as igamma, igammac as igammac, lgamma as lgamma, mvlgamma as mvlgamma,
        polygamma as polygamma,
    )
    from mlc.frontend.functions.linalg import inv
    from mlc.frontend.functions.random_sampling import *
    from mlc.frontend.functions.random_trials import *
    from mlc.frontend.device import device as device
    from mlc.frontend.element_types import (
        BFloat16Tensor as BFloat16Tensor, BoolTensor as BoolTensor, ByteTensor as ByteTensor, CharTensor as CharTensor,
        DoubleTensor as DoubleTensor, FloatTensor as FloatTensor, HalfTensor as HalfTensor, IntTensor as IntTensor,
        LongTensor as LongTensor, ShortTensor as ShortTensor, can_cast as can_cast, finfo as finfo,
        get_default_dtype as get_default_dtype, iinfo as iinfo, promote_types as promote_types,
        result_type as result_type, set_default_dtype as set_default_dtype,
    )
    from mlc.frontend.inspection import (
        broadcast_shapes as broadcast_shapes, is_complex as is_complex, is_conj as is_conj,
        is_floating_point as is_floating_point, is_neg as is_neg, is_nonzero as is_nonzero,
        is_same_size as is_same_size, is_signed as is_signed, is_tensor as is_tensor, numel as numel,
        scalar_tensor as scalar_tensor, set_printoptions as set_printoptions, typename as typename,
    )
    from mlc.frontend.size import Size as Size
    from mlc.frontend.sparse.layout import (
        layout as layout, sparse_bsc as sparse_bsc, sparse_bsr as sparse_bsr, sparse_coo as sparse_coo,
        sparse_csc as sparse_csc, sparse_csr as sparse_csr, strided as strided,
    )
    from mlc.frontend.generator import (
        Generator as Generator, default_generator as default_generator, get_rng_state as get_rng_state,
        initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state,
    )
    from mlc.frontend.tensor import Tensor as Tensor
    from mlc.gradient_check import gradcheck as gradcheck, gradgradcheck as gradgradcheck
    from mlc.ir.diag import Error as Error, UserError as UserError
    from mlc.model_summary import summary as summary
    from mlc.models.language_model import generate as generate
    from mlc.trainer import Trainer as Trainer
    # isort: on

    absolute = abs
    alias_copy = clone
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
    cdouble = complex128
    cfloat = complex64
    clip = clamp
    concat = cat
    cholesky = cholesky_factor
    concatenate = cat
    conj_physical = conj
    divide = div
    fix = trunc
    ger = outer
    greater = gt
    greater_equal = ge
    inverse = inv
    less = lt
    less_equal = le
    lu = packed_lu
    lu_solve = solve_by_lu
    moveaxis = movedim
    multiply = mul
    negative = neg
    not_equal = ne
    orgqr = householder_product
    qr = thin_qr
    row_stack = vstack
    subtract = sub
    svd = thin_svd
    swapdims = transpose
    take = take_flat
    trapz = trapezoid
    triangular_solve = solve_by_triangle
    true_divide = div
    unsafe_chunk = chunk
    unsafe_split = split
    unsafe_split_with_sizes = split_with_sizes
    double = float64
    dtype = DType
    float = float32
    half = float16
    int = int32
    long = int64
    short = int16

__version__ = "0.1.0"
e, pi, inf, nan = 2.718281828459045, 3.141592653589793, 1e400, 1e400 - 1e400
newaxis = None

_API = (
    "Compiled", "bfloat16", "bool_", "checkpoint", "compile", "complex128", "complex64", "cond", "custom_jvp",
    "custom_vjp", "float16", "float32", "float64", "fori_loop", "get_num_threads", "grad", "hessian", "hvp", "int16",
    "int32", "int64", "int8", "jacfwd", "jacrev", "jvp", "linearize", "lower", "native_entries", "saved_bytes", "scan",
    "set_num_threads", "spec", "uint16", "uint32", "uint64", "uint8", "value_and_grad", "vjp", "vmap", "while_loop",
)
"""Public names other than the functions on tensors, which are in frontend/functions."""
_DTYPES = {"bool": "bool_", "cdouble": "complex128", "cfloat": "complex64", "double": "float64", "dtype": "DType",
           "float": "float32", "half": "float16", "int": "int32", "long": "int64", "short": "int16"}
"""PyTorch's second names of dtypes, and of their class."""
_ELSEWHERE = {
    "DType": "mlc.frontend.dtypes", "Tensor": "mlc.frontend.functions", "Error": "mlc.ir.diag",
    "UserError": "mlc.ir.diag", "OutOfMemoryError": "mlc.frontend.arguments", "load": "mlc.artifact",
    "map": "mlc.frontend.control",
    "save": "mlc.artifact", "detect_anomaly": "mlc.anomaly", "gradcheck": "mlc.gradient_check",
    "gradgradcheck": "mlc.gradient_check", "summary": "mlc.model_summary", "generate": "mlc.models.language_model",
    "Size": "mlc.frontend.size", "Trainer": "mlc.trainer", "device": "mlc.frontend.device",
    **dict.fromkeys(("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
                     "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "can_cast", "finfo", "get_default_dtype",
                     "iinfo", "promote_types", "result_type", "set_default_dtype"), "mlc.frontend.element_types"),
    **dict.fromkeys(("channels_last", "channels_last_3d", "contiguous_format", "memory_format", "preserve_format"),
                    "mlc.frontend.memory_format"),
    **dict.fromkeys(("layout", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr", "strided"),
                    "mlc.frontend.sparse.layout"),
    **dict.fromkeys(("broadcast_shapes", "is_complex", "is_conj", "is_floating_point", "is_neg", "is_nonzero",
                     "is_same_size", "is_signed", "is_tensor",
                     "numel", "scalar_tensor", "set_printoptions", "typename"), "mlc.frontend.inspection"),
    **dict.fromkeys(("Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed",
                     "set_rng_state"), "mlc.frontend.generator"),
    **dict.fromkeys(("are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
                     "use_deterministic_algorithms"), "mlc.frontend.determinism"),
    **dict.fromkeys(("enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"),
                    "mlc.autograd.grad_mode"),
    **dict.fromkeys(("autocast", "get_autocast_dtype", "is_autocast_cache_enabled", "is_autocast_enabled",
                     "set_autocast_dtype", "set_autocast_enabled"), "mlc.frontend.autocast"),
}
_MODULES = frozenset({"accelerator", "amp", "array_api", "autograd", "backends", "cpu", "cuda", "debug", "distributed",
                      "distributions", "extension", "fft", "func", "hub", "importer", "linalg", "masked",
                      "models", "multiprocessing", "nn", "onnx", "optim", "profiler", "quantization", "random",
                      "serialization", "signal", "sparse", "special", "stablehlo", "torch", "tree", "utils"})


def __getattr__(name: str) -> Any:
    """A public name, on first use; the compiler's own modules are imported as mlc.ir and so on."""
    if name in _MODULES:
        return _imported("mlc." + name)
    if name == "__all__":
        _imported("mlc.api")
        functions = importlib.import_module("mlc.frontend.functions")
        internal = {"backends", "extension", "importer", "stablehlo", "torch"}
        value = sorted({*_API, *_DTYPES, *_ELSEWHERE, *(_MODULES - internal), *functions.PUBLIC})
    elif name.startswith("_") or (value := _find(name)) is None:
        raise _absent(name)
    globals()[name] = value
    return value


def _find(name: str) -> Any:
    """Object that a public name denotes; None if there is no such name."""
    if name == "Tensor":                                   # its operators need the compiler
        _imported("mlc.api")
    if name in _ELSEWHERE:
        return getattr(_imported(_ELSEWHERE[name]), name)
    api = _imported("mlc.api")                             # first, since it registers the compiler with the frontend
    if name in _DTYPES:
        return getattr(importlib.import_module("mlc.frontend.dtypes"), _DTYPES[name])
    if name in _API:
        where = api if name in api.__all__ else importlib.import_module("mlc.frontend.dtypes")
        return getattr(where, name)
    return importlib.import_module("mlc.frontend.functions").PUBLIC.get(name)


def _imported(name: str) -> Any:
    """A module of this package. What importing makes stays, so that to look for garbage meanwhile only takes time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if collects:
            gc.enable()


def _absent(name: str) -> AttributeError:
    if name.startswith("_"):                               # of Python's own protocols
        return AttributeError(f"module 'mlc' has no attribute {name!r}", name=name)
    table = importlib.import_module("mlc.frontend.unsupported_api")
    return table.error("mlc", name, table.PACKAGE.get(name), sys.modules[__name__])  # type: ignore[no-any-return]


def load_ipython_extension(shell: Any) -> None:
    """Bring the magics `%mlc` and `%%mlc`: IPython calls this for `%load_ext mlc`.

    Args:
        shell: IPython's shell.

    Example:
        >>> mlc.load_ipython_extension.__name__
        'load_ipython_extension'
    """
    importlib.import_module("mlc.tools.notebook").load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *sys.modules[__name__].__all__})


if "MLC_LOGS_OUT" in os.environ:                           # which is named from the folder that the program begins in
    importlib.import_module("mlc.ir.logs")
