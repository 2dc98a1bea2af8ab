"""Targets of meshes: none of their own. The segments of a rank's program are code for its processor."""

from __future__ import annotations

from mlc.backends.target import Target

TARGETS: dict[str, Target] = {}
"""Targets of this vendor by name."""
DEFAULT = "host"
"""Default target without a device."""
DLPACK = 0
"""No device of DLPack: an array on a mesh is in several memories."""
