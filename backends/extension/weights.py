"""The weights of an extension module: embedded in its file, or in a separate safetensors file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ALIGN = 64
"""Alignment of the arrays in a module."""


@dataclass(frozen=True)
class Weights:
    """content  bytes of all arrays
    places   per function: offsets of its arrays
    beside   name of the file that contains them; "" if they are embedded
    """

    content: bytes
    places: Sequence[Sequence[int]]
    beside: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def inside(arrays: Sequence[Sequence[Array]]) -> Weights:
    """Concatenate the arrays of functions; an array used several times is stored once."""
    content, places, known = bytearray(), list[list[int]](), dict[int, int]()
    for held in arrays:
        places.append([])
        for array in held:
            if id(array) not in known:
                content += bytes(-len(content) % ALIGN)
                known[id(array)] = len(content)
                content += np.ascontiguousarray(array).tobytes()
            places[-1].append(known[id(array)])
    return Weights(bytes(content), places)
