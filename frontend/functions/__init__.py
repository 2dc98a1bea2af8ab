"""Functions on tensors under PyTorch's names, by family. Importing this fills `OPERATIONS`."""

import inspect

from mlc.frontend import in_place_methods, shared_memory  # noqa: F401 (the second has methods of tensors)
from mlc.frontend.arguments import coded_methods
from mlc.frontend.autograd.differentiable import Differentiable
from mlc.frontend.conversions import Conversions
from mlc.frontend.dimensions import Dimensions
from mlc.frontend.functions import (
    attention,
    calculus,
    compare,
    contract,
    convolution,
    copies,
    counting,
    create,
    divisors,
    dynamic,
    elementwise,
    fft,
    grids,
    index,
    linalg,
    losses,
    lowrank,
    masked,
    native,
    neural,
    normalization,
    pooling,
    ragged,
    random,
    random_in_place,  # noqa: F401 (methods of tensors)
    random_sampling,
    random_trials,
    recurrent,
    reduce,
    reinterpret,
    replace,
    resize,
    sampling,
    scan,
    scatter,
    segments,
    shape,
    sort,
    sparse,
    special,
    strided,
    trigonometry,
)
from mlc.frontend.memory_layout import MemoryLayout
from mlc.frontend.methods import Methods
from mlc.frontend.python_numbers import PythonNumbers
from mlc.frontend.tensor import OPERATIONS, Tensor

MODULES = (attention, calculus, compare, contract, convolution, copies, counting, create, divisors, dynamic,
           elementwise, fft, grids, index, linalg, losses, lowrank, masked, native, neural, normalization, pooling,
           ragged, random, random_sampling, random_trials, recurrent, reduce, reinterpret, replace, resize, sampling,
           scan, scatter, segments, shape, sort, sparse, special, strided, trigonometry)

ALIASES = {
    "absolute": "abs", "alias_copy": "clone", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "as_tensor": "asarray",
    "clip": "clamp", "concat": "cat", "concatenate": "cat", "conj_physical": "conj",
    "det": "linalg.det", "divide": "div", "fix": "trunc", "ger": "outer", "greater": "gt", "greater_equal": "ge",
    "inverse": "linalg.inv", "less": "lt", "less_equal": "le", "matrix_exp": "linalg.matrix_exp",
    "matrix_power": "linalg.matrix_power", "moveaxis": "movedim", "multiply": "mul", "negative": "neg",
    "not_equal": "ne", "orgqr": "linalg.householder_product",
    "row_stack": "vstack", "slogdet": "linalg.slogdet", "subtract": "sub", "swapdims": "transpose",
    "trapz": "trapezoid", "true_divide": "div", "unsafe_chunk": "chunk", "unsafe_split": "split",
    "unsafe_split_with_sizes": "split_with_sizes",
}
"""PyTorch's aliases of functions."""
OPERATIONS.update({name: OPERATIONS[of] for name, of in ALIASES.items()})
NETWORKS = (attention, convolution, losses, neural, normalization, pooling, recurrent, resize, sampling)
"""Modules whose functions are found in mlc.nn.functional, but for those that PyTorch has among its own, too."""
ALSO_PUBLIC = frozenset({
    "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "dropout", "embedding",
    "group_norm", "hardshrink", "layer_norm", "log_softmax", "max_pool1d", "max_pool2d", "max_pool3d",
    "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu", "rms_norm", "rrelu", "selu", "softmax",
    "threshold"})
NOT_PUBLIC = frozenset({
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "getitem",
    "fftfreq", "hamming", "hann", "kaiser", "key", "nuttall", "rfftfreq"})
"""Operations that belong to a namespace such as mlc.linalg, or are operators."""
PUBLIC = {name: f for name, f in OPERATIONS.items()
          if name in ALSO_PUBLIC or not ("." in name or name.startswith("_") or name in NOT_PUBLIC
                                         or f.__module__.startswith(tuple(m.__name__ for m in NETWORKS)))}
"""The functions that are names of mlc itself."""
NO_METHODS = frozenset({"cast", "histogramdd", "std_mean", "var_mean"})
"""Functions of one tensor that are not methods in PyTorch."""
for _module in (counting, divisors, elementwise, fft, linalg, trigonometry, reduce, scan, special):
    for _name, _f in PUBLIC.items():
        if _f.__module__.startswith(_module.__name__) and not hasattr(Tensor, _name) and _name not in NO_METHODS and (
                next(iter(inspect.signature(_f).parameters)) == "input"):
            setattr(Methods, _name, _f)                    # a method that methods.py does not declare
for _name, _method in vars(Methods).items():
    _of = OPERATIONS.get(_name) or OPERATIONS.get(f"Tensor.{_name}")
    if not _name.startswith("_") and inspect.isfunction(_method) and not _method.__doc__ and _of is not None:
        _method.__doc__ = _of.__doc__                      # which calls the tensor `input`
in_place_methods.describe()
for _class in (Conversions, Differentiable, Dimensions, MemoryLayout, Methods, PythonNumbers, Tensor):
    coded_methods(_class)
