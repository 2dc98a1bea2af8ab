"""Calls of the code of a graph on the memory of PyTorch's tensors, without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.api import native_code
from mlc.code import Placement
from mlc.frontend.fx.refusing import CODE
from mlc.ir.diag import UserError
from mlc.ir.sizes import Size, evaluate
from mlc.torch.memory import Layout
from mlc.torch.recording import Recording

RECENT = 256
"""Number of sizes that layouts are kept for."""
Layouts = tuple[list[tuple[int, Layout]], list[Layout], list[tuple[str, Any]]]
"""Those of the tensors among the arguments, with their numbers; those of the results; and the outputs."""


class Specialization:
    """Code of a recorded graph.

    The caller warrants the types of the arguments, as the guards of `torch.compile` do; strides are looked at.

    binders  per symbolic size: number and dimension of the argument that has it; no dimension if it is that argument
    """

    def __init__(self, recording: Recording, placement: Placement) -> None:
        self.draws = recording.draws
        self.layouts: Layouts = recording.inputs, recording.results, recording.outputs
        self.known: dict[tuple[int, ...], Layouts] = {}
        self.binders: list[tuple[int, int | None]] = []
        self.unread = [0] * len(recording.sizes)
        self.entry: Any = None
        if recording.results:
            self.entry = native_code(recording.module, placement).entry("main")
            for name in self.entry.interface.symbols:
                if name not in self.entry.interface.binders:
                    raise UserError(f"no argument has the size {name}", code=CODE)
                number, axis = self.entry.interface.binders[name]
                first = len(recording.inputs) + recording.draws
                if number >= first:
                    self.binders.append((recording.sizes[number - first], None))
                    continue
                argument, layout = recording.inputs[number]
                self.binders.append((argument, layout.order[axis]))

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """The results of the graph."""
        numbers = tuple([arguments[i] if d is None else arguments[i].shape[d] for i, d in self.binders])
        inputs, layouts, outputs = self.layouts if not numbers else self.known.get(numbers) or self._layouts(numbers)
        kept, pointers = list[Any](), list[int]()
        for i, layout in inputs:
            x = arguments[i]
            if not layout.fits(x):
                x = layout.copy_of(x)
                kept.append(x)
            pointers.append(x.data_ptr())
        if self.draws:
            kept.append(_key())
            pointers.append(kept[-1].data_ptr())
        results = [layout.new() for layout in layouts]
        if self.entry is not None:
            self.entry.enter(pointers + self.unread, [x.data_ptr() for x in results], numbers)
        return [results[x] if kind == "result" else arguments[x] if kind == "argument" else
                view_of(results[x[0]], *x[1]) if kind == "view" else x for kind, x in outputs]

    def _layouts(self, numbers: tuple[int, ...]) -> Layouts:
        """The layouts for these values of the symbolic sizes."""
        env = dict(zip(self.entry.interface.symbols, numbers))
        self.entry.result_shapes(numbers)                  # checks them

        def at(layout: Layout) -> Layout:
            return layout.at([evaluate(n, env) for n in layout.sizes])

        inputs, results, outputs = self.layouts
        found = ([(i, at(x)) for i, x in inputs], [at(x) for x in results],
                 [(kind, evaluate(x, env) if isinstance(x, Size) else x) for kind, x in outputs])
        self.known[numbers] = found
        if len(self.known) > RECENT:
            del self.known[next(iter(self.known))]
        return found


def view_of(x: Any, dtype: Any, sizes: Sequence[int], strides: Sequence[int], offset: int, conjugated: bool) -> Any:
    """A tensor in the memory of another, such as the real parts of complex numbers."""
    if x.dtype is dtype:
        out = x.as_strided(sizes, strides, offset)
        return out.conj() if conjugated else out
    import torch
    return torch.empty(0, dtype=dtype).set_(x.untyped_storage(), offset, sizes, strides)


def _key() -> Any:
    """A random key from PyTorch's generator."""
    import torch
    return torch.randint(-2**31, 2**31, (2,), dtype=torch.int32)
