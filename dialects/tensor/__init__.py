"""tensor: immutable array values. One module per family; the package re-exports every operation class.

Sizes are static or symbolic. There is no memory and no aliasing. Softmax, layer_norm and losses are composites: named
functions that a pass may decompose (composite.py; activation, along_axis, statistics, loss).
"""

# ruff: noqa: F403, F405
import importlib
import pkgutil
from typing import TYPE_CHECKING

from mlc.ir.core import Op

if TYPE_CHECKING:
    from mlc.dialects.tensor.activation import *
    from mlc.dialects.tensor.along_axis import *
    from mlc.dialects.tensor.assertion import *
    from mlc.dialects.tensor.attention import *
    from mlc.dialects.tensor.binary import *
    from mlc.dialects.tensor.compare import *
    from mlc.dialects.tensor.complex import *
    from mlc.dialects.tensor.composite import *
    from mlc.dialects.tensor.contract import *
    from mlc.dialects.tensor.control import *
    from mlc.dialects.tensor.convolution import *
    from mlc.dialects.tensor.cumulative import *
    from mlc.dialects.tensor.debug import *
    from mlc.dialects.tensor.dynamic import *
    from mlc.dialects.tensor.elementwise import *
    from mlc.dialects.tensor.flash import *
    from mlc.dialects.tensor.flash_grad import *
    from mlc.dialects.tensor.fourier import *
    from mlc.dialects.tensor.index import *
    from mlc.dialects.tensor.linalg import *
    from mlc.dialects.tensor.loss import *
    from mlc.dialects.tensor.map import *
    from mlc.dialects.tensor.packed import *
    from mlc.dialects.tensor.pooling import *
    from mlc.dialects.tensor.quantized import *
    from mlc.dialects.tensor.random import *
    from mlc.dialects.tensor.reduce import *
    from mlc.dialects.tensor.scatter import *
    from mlc.dialects.tensor.shape import *
    from mlc.dialects.tensor.slicing import *
    from mlc.dialects.tensor.sort import *
    from mlc.dialects.tensor.source import *
    from mlc.dialects.tensor.special import *
    from mlc.dialects.tensor.statistics import *
    from mlc.dialects.tensor.transcendental import *
    from mlc.dialects.tensor.trigonometry import *
    from mlc.dialects.tensor.window import *

for _info in pkgutil.iter_modules(__path__):
    _family = importlib.import_module(f"{__name__}.{_info.name}")
    globals().update({_name: _x for _name, _x in vars(_family).items() if isinstance(_x, type) and issubclass(_x, Op)
                      and _x.__module__.startswith(_family.__name__) and not _name.startswith("_")})
