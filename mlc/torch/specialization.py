"""Calls of the code of a graph on the memory of PyTorch's tensors, without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.api import native_code
from mlc.code import Placement
from mlc.torch.recording import Recording


class Specialization:
    """Code of a recorded graph.

    The caller warrants the types of the arguments, as the guards of `torch.compile` do; strides are looked at.
    """

    def __init__(self, recording: Recording, precision: str | None = None) -> None:
        self.inputs, self.draws = recording.inputs, recording.draws
        self.outputs, self.results = recording.outputs, recording.results
        self.entry: Any = None
        if self.results:
            self.entry = native_code(recording.module, Placement(precision=precision)).entry("main")

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """The results of the graph."""
        kept, pointers = list[Any](), list[int]()
        for i, layout in self.inputs:
            x = arguments[i]
            if not layout.fits(x):
                x = layout.copy_of(x)
                kept.append(x)
            pointers.append(x.data_ptr())
        if self.draws:
            kept.append(_key())
            pointers.append(kept[-1].data_ptr())
        results = [layout.new() for layout in self.results]
        if self.entry is not None:
            self.entry.enter(pointers, [x.data_ptr() for x in results])
        return [results[x] if kind == "result" else arguments[x] if kind == "argument" else x
                for kind, x in self.outputs]


def _key() -> Any:
    """A random key from PyTorch's generator."""
    import torch
    return torch.randint(-2**31, 2**31, (2,), dtype=torch.int32)
