"""The arrays that functions of an extension module hold themselves: in the file, or in one of safetensors beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ALIGN = 64
"""Every array inside a module starts at a multiple of this."""


@dataclass(frozen=True)
class Weights:
    """content  bytes with all arrays
    places   per function: where its arrays are among them
    beside   the name of the file that has them; "" for the module itself
    """

    content: bytes
    places: Sequence[Sequence[int]]
    beside: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def inside(arrays: Sequence[Sequence[Array]]) -> Weights:
    """All arrays of some functions one after the other; one that several take is there once."""
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
