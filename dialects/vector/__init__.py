"""vector: values of fixed shape in registers, with upstream's names, syntax and meaning.

A vector access goes along the last dimension of a memref, whose elements are adjacent; it may not leave that
dimension, except in lanes that a mask switches off. There is no float sum over lanes: its order would be left open.
"""

from mlc.dialects.vector.access import Access, Gather, Load, MaskedLoad, MaskedStore, Store
from mlc.dialects.vector.lanes import CreateMask, Reduction, Step, join_lanes, lane_count, splat
from mlc.dialects.vector.shape import Bitcast, Broadcast, Extract, FromElements, Insert, Shuffle, Transpose

__all__ = [
    "Access", "Bitcast", "Broadcast", "CreateMask", "Extract", "FromElements", "Gather", "Insert", "Load",
    "MaskedLoad", "MaskedStore", "Reduction", "Shuffle", "Step", "Store", "Transpose", "join_lanes", "lane_count",
    "splat",
]
