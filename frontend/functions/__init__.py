"""Functions on tensors under PyTorch's names, by family. Importing this fills `OPERATIONS`."""

from mlc.frontend.arguments import coded_methods
from mlc.frontend.functions import (
    compare,
    contract,
    convolution,
    create,
    dynamic,
    elementwise,
    fft,
    grids,
    index,
    linalg,
    losses,
    neural,
    normalization,
    pooling,
    ragged,
    random,
    reduce,
    resize,
    scan,
    scatter,
    shape,
    sort,
    trigonometry,
)
from mlc.frontend.methods import Methods
from mlc.frontend.tensor import OPERATIONS, Tensor

MODULES = (compare, contract, convolution, create, dynamic, elementwise, fft, grids, index, linalg, losses, neural,
           normalization, pooling, ragged, random, reduce, resize, scan, scatter, shape, sort, trigonometry)

ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "as_tensor": "asarray", "clip": "clamp", "concat": "cat",
    "concatenate": "cat", "det": "linalg.det", "divide": "div", "fix": "trunc", "ger": "outer", "greater": "gt",
    "greater_equal": "ge", "inverse": "linalg.inv", "less": "lt", "less_equal": "le",
    "matrix_exp": "linalg.matrix_exp", "matrix_power": "linalg.matrix_power", "moveaxis": "movedim",
    "multiply": "mul", "negative": "neg", "not_equal": "ne", "row_stack": "vstack", "slogdet": "linalg.slogdet",
    "subtract": "sub", "swapdims": "transpose", "true_divide": "div",
}
"""Second names that PyTorch has for functions."""
OPERATIONS.update({name: OPERATIONS[of] for name, of in ALIASES.items()})
for _class in (Methods, Tensor):
    coded_methods(_class)
