"""memref: memory with a shape, strides and an offset, with upstream's names, syntax and semantics.

In the interpreter a memref is a numpy view of its buffer. All bits of uninitialized memory are set, which is NaN in
every float type and -1 in every integer type, to expose reads before writes. An access out of bounds is an error.
"""

from mlc.dialects.memref.access import Alloc, Alloca, Allocate, AtomicRMW, Dealloc, Load, Prefetch, Store
from mlc.dialects.memref.globals import GetGlobal, Global, fill_shape, get_global, held_global
from mlc.dialects.memref.layout import DYNAMIC, Array, Mixed, check_bounds, check_indices, fresh, row_major, strides_of
from mlc.dialects.memref.view import (
    Address,
    Cast,
    Dim,
    ReinterpretCast,
    SubView,
    View,
    ViewLike,
    Windowed,
    reinterpret,
    subview,
    subview_type,
)

__all__ = [
    "DYNAMIC", "Address", "Alloc", "Alloca", "Allocate", "Array", "AtomicRMW", "Cast", "Dealloc", "Dim",
    "GetGlobal", "Global", "Load", "Mixed", "Prefetch", "ReinterpretCast", "Store", "SubView", "View", "ViewLike",
    "Windowed", "check_bounds", "check_indices", "fill_shape", "fresh", "get_global", "held_global", "reinterpret",
    "row_major", "strides_of", "subview", "subview_type",
]
