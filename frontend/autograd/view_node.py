"""Views in the graph of recorded operations, and writes to them.

A view is recorded as such: it saves nothing, and its gradient is written into the same view of zeros. A write to a view
is a write to the tensor that it is a view of, its base: `CopySlices` becomes the history of the base, and all of the
base's views get a history that begins there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node, edge_to, tensor_of
from mlc.frontend.autograd.tangents import tangent_of
from mlc.frontend.methods import call

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

Array = np.ndarray[Any, Any]
Step = Callable[["Tensor"], "Tensor"]
"""The view that a tensor is of another, as a function that gives the same view of any tensor of that one's shape."""

NOT_DIFFERENTIATED = frozenset({"detach", "Tensor.view"})
"""View operations whose results never require a gradient; the second is `Tensor.view` with a dtype."""


class View:
    """Relation of a view to the tensor that it is a view of.

    base      the tensor, no view itself
    steps     the views that lead to it, one after another
    recorded  whether it was made while operations were recorded
    """

    __slots__ = ("base", "recorded", "steps")

    def __init__(self, base: Tensor, steps: tuple[Step, ...], recorded: bool) -> None:
        self.base, self.steps, self.recorded = base, steps, recorded

    def of(self, x: Tensor) -> Tensor:
        """The same view of another tensor."""
        for step in self.steps:
            x = step(x)
        return x


class ComputedStep:
    """Base of steps that numbers determine which are computed: tensors without dimensions."""

    __slots__ = ("numbers",)
    numbers: tuple[Any, ...]

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def at(self, numbers: Iterator[int]) -> Step:
        """The same step, with the next ones of these numbers in the place of its own."""
        raise NotImplementedError


class ArrayView:
    """Base of steps that are known for arrays, too."""

    __slots__ = ()

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def make(self, array: Array) -> Array:
        """The same view of an array, which shares its memory."""
        raise NotImplementedError

    def back(self, array: Array) -> Array | None:
        """The array that this one is the view of, in the same memory; None if the view leaves out elements."""
        return None


class ViewNode(Node):
    """A recorded view: `steps` lead from the operand to the result.

    name_                 name of the operation, or "AsStrided" where it stands for several
    shape, dtype, device  of the operand; the dtype is numpy's, and None is the CPU
    """

    __slots__ = ("device", "dtype", "name_", "shape", "steps")

    def __init__(self, of: Tensor, result: Tensor, steps: tuple[Step, ...], name: str) -> None:
        self.link([edge_to(of)], (result,))
        array = of._array
        self.shape, self.dtype = array.shape, array.dtype
        self.device = None if type(array) is np.ndarray else of.device
        self.steps, self.name_ = steps, name

    def name(self) -> str:
        return self.name_

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        cotangent, = cotangents
        if cotangent is None:
            return [None]
        if (self.device is None and not mode.enabled and type(cotangent._array) is np.ndarray
                and tangent_of(cotangent) is None):
            moved: Array | None = cotangent._array
            for step in reversed(self.steps):
                moved = step.back(moved) if isinstance(step, ArrayView) and moved is not None else None
            if moved is not None:                          # what nobody writes to may be that of several tensors
                own = moved.flags.c_contiguous and cotangent._storage is None
                return [tensor_of(moved if own else np.array(moved, order="C"), cotangent)]
            zeros = np.zeros(self.shape, self.dtype)
            array: Array | None = zeros
            for step in self.steps:
                array = step.make(array) if isinstance(step, ArrayView) and array is not None else None
            if array is not None and (array is zeros or array.base is zeros):
                array[...] = cotangent._array
                return [tensor_of(zeros, cotangent)]
        whole = call("zeros", self.shape, dtype=self.dtype, device=self.device)
        View(whole, self.steps, True).of(whole).copy_(cotangent)
        return [whole]

    def check_saved(self) -> None:
        """Nothing is saved."""


class CopySlices(Node):
    """A recorded write to a view of a tensor: what the tensor was, and what was written, make its new value."""

    __slots__ = ("of_base", "of_source", "steps")

    def __init__(self, base: Tensor, source: Tensor, steps: tuple[Step, ...]) -> None:
        self.of_base, self.of_source, self.steps = base.requires_grad, source.requires_grad, steps
        super().__init__([x for x in (base, source) if x.requires_grad], [base])

    def name(self) -> str:
        return "CopySlices"

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        cotangent, = cotangents
        if cotangent is None:
            return [None] * len(self.edges)
        rest = cotangent.clone()
        view = View(rest, self.steps, True).of(rest)
        found: list[Any] = []
        written = view.clone() if self.of_source else None
        if self.of_base:
            view.zero_()
            found.append(rest)
        return [*found, written] if self.of_source else found

    def check_saved(self) -> None:
        """Nothing is saved."""
