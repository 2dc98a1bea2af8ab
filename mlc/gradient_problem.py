"""Functions whose derivatives are compared with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlc.api import compile, vmap
from mlc.frontend import tree
from mlc.frontend.autograd.differentiable import recorded, root
from mlc.frontend.autograd.engine import gradients_of
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.derivatives import vjp
from mlc.frontend.forward import jvp
from mlc.frontend.location import user_loc
from mlc.frontend.methods import OPERATIONS
from mlc.frontend.operators import is_operand
from mlc.frontend.tensor import Array, Tensor, as_array
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.interp import in_parts


@dataclass
class Problem:
    """A function of float64 arrays, which gives a tuple of them. Its derivatives are those of the recorded function.

    points    where to check its derivatives, one array for each input
    paths     the caller's path of each input
    """

    function: Callable[..., tuple[Any, ...]]
    points: list[Array]
    paths: list[str]

    @staticmethod
    def of(func: Callable[..., Any], inputs: tuple[Any, ...]) -> Problem:
        """The problem of a call: if arguments require a gradient, by all leaves that do, and by backward."""
        leaves, structure = tree.flatten(inputs)
        runs = any(type(x) is Tensor and x.requires_grad for x in inputs)
        where = [i for i, x in enumerate(leaves) if runs and type(x) is Tensor and x.requires_grad]
        kind = RunProblem if runs else Problem
        floats = [i for i, x in enumerate(leaves) if is_float(x)]
        where = where or floats
        if not callable(func):
            raise UserTypeError(f"func is a {type(func).__name__}, expected a function", code="MLC0380", loc=user_loc())
        if not any(np.size(as_array(leaves[i])) for i in where):
            raise UserError("no input has elements of a floating-point type", code="MLC0671", loc=user_loc(),
                            hint="pass arrays of floats: gradcheck converts them to float64")
        for i in floats:
            if i not in where and isinstance(leaves[i], Tensor):
                leaves[i] = Tensor(np.array(as_array(leaves[i]), np.float64))

        pairs = {i for i in where if as_array(leaves[i]).dtype.kind == "c"}

        def function(*floats: Any) -> tuple[Any, ...]:
            given = list(leaves)
            for i, x in zip(where, floats):
                given[i] = OPERATIONS["view_as_complex"](x) if i in pairs else x
            found = [y for y in tree.leaves(func(*structure.unflatten(given))) if isinstance(y, Tensor)]
            return tuple(OPERATIONS["view_as_real"](y) if y.is_complex() else y for y in found
                         if y.is_floating_point() or y.is_complex())

        paths = tree.paths(inputs, "inputs")
        return kind(function, [np.array(in_parts(as_array(leaves[i])), np.float64) for i in where],
                    [paths[i] for i in where])

    def __post_init__(self) -> None:
        function = self.function
        self._called = compile(lambda *xs: function(*xs), dynamic=False)
        self._pulled = compile(lambda xs, cts: vjp(function, *xs)[1](cts), dynamic=False)
        self._pushed = compile(lambda xs, ts: jvp(function, xs, ts)[1], dynamic=False)

    def call(self, points: Sequence[Array]) -> Sequence[Any]:
        """The results as tensors."""
        return self._called(*points)  # type: ignore[no-any-return]

    def results(self, points: Sequence[Array]) -> list[Array]:
        found = [np.asarray(y.array) for y in self.call(points)]
        if not found:
            raise UserError("no result is of a floating-point type", code="MLC0671", loc=user_loc(),
                            hint="return an array of floats")
        return found

    def pull(self, cotangents: Sequence[Array | None]) -> list[Any]:
        """The cotangents of the inputs, None for zeros."""
        results = self.results(self.points)
        given = tuple(np.zeros_like(y) if ct is None else ct for y, ct in zip(results, cotangents))
        return list(self._pulled(tuple(self.points), given))

    def push(self, tangents: Sequence[Array]) -> list[Array]:
        """The tangents of the results."""
        return [np.asarray(t.array) for t in self._pushed(tuple(self.points), tuple(tangents))]

    # -- Jacobians: [input][result], of shape (*result.shape, *input.shape) -------------------------------------------
    def numerical(self, eps: float) -> list[list[Array]]:
        """By differences."""
        def of(i: int, at: tuple[int, ...]) -> list[Array]:
            sides = []
            for sign in (1, -1):
                moved = [p.copy() for p in self.points]
                moved[i][at] += sign * eps
                sides.append(self.results(moved))
            return [(a - b) / (2 * eps) for a, b in zip(*sides)]

        return [self._stacked([of(i, at) for at in np.ndindex(x.shape)], x) for i, x in enumerate(self.points)]

    def forward(self) -> list[list[Array]]:
        """In forward mode: one tangent for each element of an input."""
        return [self._stacked([self.push([direction if k == i else np.zeros_like(p) for k, p in enumerate(self.points)])
                               for direction in units(x.shape)], x) for i, x in enumerate(self.points)]

    def reverse(self) -> list[list[Array]]:
        """In reverse mode: one cotangent for each element of a result."""
        results = self.results(self.points)
        out: list[list[Array]] = [[np.empty((*y.shape, *x.shape)) for y in results] for x in self.points]
        for j, y in enumerate(results):
            for at, direction in zip(np.ndindex(y.shape), units(y.shape)):
                for i, ct in enumerate(self.pull([direction if k == j else None for k in range(len(results))])):
                    out[i][j][at] = 0.0 if ct is None else ct.array
        return out

    def _stacked(self, columns: list[list[Array]], x: Array) -> list[Array]:
        shapes = [y.shape for y in self.results(self.points)] if not columns else [c.shape for c in columns[0]]
        return [np.moveaxis(np.asarray([c[j] for c in columns]).reshape((*x.shape, *shape)), range(x.ndim),
                            range(-x.ndim, 0)) for j, shape in enumerate(shapes)]

    # -- batches ------------------------------------------------------------------------------------------------------
    def pulled_batch(self, cotangents: Sequence[Array]) -> list[Any]:
        """The cotangents of the inputs for a batch of those of the results, by vmap."""
        return list(vmap(lambda *cts: vjp(self.function, *self.points)[1](cts))(*cotangents))

    def pushed_batch(self, tangents: Sequence[Array]) -> list[Any]:
        """The tangents of the results for a batch of those of the inputs, by vmap."""
        points = tuple(map(Tensor, self.points))
        return list(vmap(lambda *ts: jvp(self.function, points, ts)[1])(*tangents))


@dataclass
class RunProblem(Problem):
    """A function that runs operation by operation, whose derivatives are those of backward."""

    graph: tuple[list[Any], tuple[Any, ...]] | None = field(default=None, init=False)

    def call(self, points: Sequence[Array]) -> Sequence[Any]:
        with GradMode(False):
            return self.function(*(Tensor(p.copy()) for p in points))

    def pull(self, cotangents: Sequence[Array | None]) -> list[Any]:
        if self.graph is None:
            inputs = [Tensor(p.copy()).requires_grad_() for p in self.points]
            with GradMode(True):
                self.graph = inputs, self.function(*inputs)
        inputs, results = self.graph
        roots = [root(y, Tensor(ct)) for y, ct in zip(results, cotangents) if ct is not None and y.requires_grad]
        return gradients_of(roots, [recorded(x, "an input") for x in inputs], True, False)


def units(shape: tuple[int, ...]) -> Iterator[Array]:
    """The arrays of the standard basis: 1 at one element and 0 elsewhere."""
    for at in np.ndindex(shape):
        out = np.zeros(shape)
        out[at] = 1.0
        yield out


def is_float(x: Any) -> bool:
    """Whether a leaf has floats, or complex numbers."""
    if isinstance(x, Tensor):
        return x.is_floating_point() or x.is_complex()
    return isinstance(x, float | complex) or (
        is_operand(x) and not isinstance(x, bool | int) and as_array(x).dtype.kind in "fc")
