"""Comparison of derivatives with finite differences: `mlc.gradcheck` and `mlc.gradgradcheck`, as in torch.autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.api import compile
from mlc.frontend import tree
from mlc.frontend.arguments import coded
from mlc.frontend.derivatives import vjp
from mlc.frontend.forward import jvp
from mlc.frontend.location import user_loc
from mlc.frontend.operators import is_operand
from mlc.frontend.tensor import Array, Tensor, as_array
from mlc.ir.diag import UserError, UserTypeError


class GradcheckError(UserError):
    """A derivative disagrees with finite differences."""

    default_code = "MLC0670"


@coded
def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, check_forward_ad: bool = True) -> bool:
    """Check derivatives against central differences: |analytical - numerical| <= atol + rtol * |numerical|.

    numerical = (f(x + eps * e) - f(x - eps * e)) / (2 * eps), for every element of every input and result of floats. At
    a kink, such as relu at 0, the two need not agree: choose inputs off it. As torch.autograd.gradcheck, but that
    floats are converted to float64.

    Args:
        func: Function of the inputs.
        inputs: Tuple of arguments, or a single one: arrays, numbers, modules and other trees of them.
        eps: Step of the differences.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: Whether a difference raises an error rather than giving False.
        check_forward_ad: Whether forward mode is checked beside reverse mode.

    Returns:
        True if all derivatives agree, else False.

    Raises:
        GradcheckError: A derivative differs (MLC0670).
        UserError: No input or no result has floats (MLC0671).
        UserTypeError: `func` is no function (MLC0380).

    Example:
        >>> mlc.gradcheck(lambda x, w: mlc.tanh(x @ w), (np.ones((2, 3)), np.ones((3, 4))))
        True
    """
    problem = _Problem.of(func, inputs if isinstance(inputs, tuple) else (inputs,))
    numerical = problem.numerical(eps)
    modes = [("reverse mode", problem.reverse())] + ([("forward mode", problem.forward())] if check_forward_ad else [])
    for mode, analytical in modes:
        for message in _differences(problem, mode, analytical, numerical, atol, rtol):
            if raise_exception:
                raise GradcheckError(message, code="MLC0670", loc=user_loc(),
                                     hint="at a kink the two need not agree; else the rule of some operation is wrong")
            return False
    return True


@coded
def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
                  check_forward_ad: bool = True) -> bool:
    """Check second derivatives: `gradcheck` of the pullback of a function, by the inputs and by the cotangents.

    As torch.autograd.gradgradcheck.

    Args:
        func: Function of the inputs.
        inputs: Tuple of arguments, or a single one, as of `gradcheck`.
        grad_outputs: Cotangents with the structure of the result; None for normal numbers.
        eps: Step of the differences.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: Whether a difference raises an error rather than giving False.
        check_forward_ad: Whether forward mode is checked beside reverse mode.

    Returns:
        True if all derivatives agree, else False.

    Raises:
        GradcheckError: A derivative differs (MLC0670).
        UserError: No input or no result has floats (MLC0671).
        UserTypeError: `func` is no function (MLC0380).

    Example:
        >>> mlc.gradgradcheck(lambda x: x**3, np.array([1.0, 2.0]))
        True
    """
    primals = inputs if isinstance(inputs, tuple) else (inputs,)
    problem = _Problem.of(func, primals)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = [Tensor(rng.standard_normal(y.shape)) for y in problem.results(problem.points)]
    else:
        grad_outputs = [Tensor(np.asarray(as_array(x), np.float64)) for x in tree.leaves(grad_outputs)
                        if _is_float(x)]
    count = len(problem.points)

    def pulled(*flat: Any) -> Any:
        return vjp(problem.function, *flat[:count])[1](tuple(flat[count:]))

    return gradcheck(pulled, (*map(Tensor, problem.points), *grad_outputs), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, check_forward_ad=check_forward_ad)


@dataclass
class _Problem:
    """A function of float64 arrays, which gives a tuple of them.

    points    where to check its derivatives, one array for each input
    paths     the caller's path of each input
    """

    function: Callable[..., tuple[Any, ...]]
    points: list[Array]
    paths: list[str]

    @staticmethod
    def of(func: Callable[..., Any], inputs: tuple[Any, ...]) -> _Problem:
        leaves, structure = tree.flatten(inputs)
        where = [i for i, x in enumerate(leaves) if _is_float(x)]
        if not callable(func):
            raise UserTypeError(f"func is a {type(func).__name__}, expected a function", code="MLC0380", loc=user_loc())
        if not any(np.size(as_array(leaves[i])) for i in where):
            raise UserError("no input has elements of a floating-point type", code="MLC0671", loc=user_loc(),
                            hint="pass arrays of floats: gradcheck converts them to float64")

        def function(*floats: Any) -> tuple[Any, ...]:
            given = list(leaves)
            for i, x in zip(where, floats):
                given[i] = x
            found = tree.leaves(func(*structure.unflatten(given)))
            return tuple(y for y in found if isinstance(y, Tensor) and y.is_floating_point())

        paths = tree.paths(inputs, "inputs")
        return _Problem(function, [np.array(as_array(leaves[i]), np.float64) for i in where], [paths[i] for i in where])

    def results(self, points: Sequence[Array]) -> list[Array]:
        found = [np.asarray(y.array) for y in self.compiled(*points)]
        if not found:
            raise UserError("no result is of a floating-point type", code="MLC0671", loc=user_loc(),
                            hint="return an array of floats")
        return found

    def __post_init__(self) -> None:
        function = self.function
        self.compiled = compile(lambda *xs: function(*xs), dynamic=False)
        self._pulled = compile(lambda xs, cts: vjp(function, *xs)[1](cts), dynamic=False)
        self._pushed = compile(lambda xs, ts: jvp(function, xs, ts)[1], dynamic=False)

    def numerical(self, eps: float) -> list[list[Array]]:
        """[input][result]: the derivative of each element of the result by each of the input, by differences."""
        out = []
        for i, x in enumerate(self.points):
            columns = []
            for at in np.ndindex(x.shape):
                sides = []
                for sign in (1, -1):
                    moved = [p.copy() for p in self.points]
                    moved[i][at] += sign * eps
                    sides.append(self.results(moved))
                columns.append([(a - b) / (2 * eps) for a, b in zip(*sides)])
            out.append(self._stacked(columns, x))
        return out

    def forward(self) -> list[list[Array]]:
        """The same in forward mode: one tangent for each element of an input."""
        points = tuple(self.points)
        out = []
        for i, x in enumerate(self.points):
            columns = []
            for direction in _units(x.shape):
                tangents = tuple(direction if k == i else np.zeros_like(p) for k, p in enumerate(points))
                columns.append([np.asarray(t.array) for t in self._pushed(points, tangents)])
            out.append(self._stacked(columns, x))
        return out

    def reverse(self) -> list[list[Array]]:
        """The same in reverse mode: one cotangent for each element of a result."""
        points, results = tuple(self.points), self.results(self.points)
        out: list[list[Array]] = [[np.empty((*y.shape, *x.shape)) for y in results] for x in points]
        for j, y in enumerate(results):
            for at, direction in zip(np.ndindex(y.shape), _units(y.shape)):
                cotangents = tuple(direction if k == j else np.zeros_like(r) for k, r in enumerate(results))
                for i, ct in enumerate(self._pulled(points, cotangents)):
                    out[i][j][at] = 0.0 if ct is None else ct.array
        return out

    def _stacked(self, columns: list[list[Array]], x: Array) -> list[Array]:
        shapes = [y.shape for y in self.results(self.points)] if not columns else [c.shape for c in columns[0]]
        return [np.moveaxis(np.asarray([c[j] for c in columns]).reshape((*x.shape, *shape)), range(x.ndim),
                            range(-x.ndim, 0)) for j, shape in enumerate(shapes)]


def _units(shape: tuple[int, ...]) -> Iterator[Array]:
    """The arrays of the standard basis: 1 at one element and 0 elsewhere."""
    for at in np.ndindex(shape):
        out = np.zeros(shape)
        out[at] = 1.0
        yield out


def _differences(problem: _Problem, mode: str, analytical: list[list[Array]], numerical: list[list[Array]],
                 atol: float, rtol: float) -> Iterator[str]:
    for path, x, by_result, expected in zip(problem.paths, problem.points, analytical, numerical):
        for j, (a, n) in enumerate(zip(by_result, expected)):
            bad = ~np.isclose(a, n, rtol=rtol, atol=atol)
            for where in np.argwhere(bad)[:1]:
                at, rank = tuple(map(int, where)), a.ndim - x.ndim
                yield (f"in {mode} the derivative of result {j}{list(at[:rank])} by {path}{list(at[rank:])} is "
                       f"{a[at]:.9g}, differences give {n[at]:.9g} ({int(bad.sum())} of {bad.size} elements differ)")


def _is_float(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.is_floating_point()
    return isinstance(x, float) or (is_operand(x) and not isinstance(x, bool | int) and as_array(x).dtype.kind == "f")
