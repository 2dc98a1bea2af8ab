"""vector: values of fixed shape in registers, with upstream's names, syntax and semantics.

A vector access is along the last dimension of a memref, which must be contiguous; it must stay within that dimension,
except for lanes that are masked off. There is no float sum over lanes, as its order would be unspecified.
"""

from mlc.dialects.vector.access import Access, Gather, Load, MaskedLoad, MaskedStore, Store
from mlc.dialects.vector.lanes import CreateMask, Reduction, Step, join_lanes, lane_count, splat
from mlc.dialects.vector.shape import Bitcast, Broadcast, Extract, FromElements, Insert, Shuffle, Transpose

__all__ = [
    "Access", "Bitcast", "Broadcast", "CreateMask", "Extract", "FromElements", "Gather", "Insert", "Load",
    "MaskedLoad", "MaskedStore", "Reduction", "Shuffle", "Step", "Store", "Transpose", "join_lanes", "lane_count",
    "splat",
]
