"""Comparison of derivatives with finite differences: `mlc.gradcheck` and `mlc.gradgradcheck`, as in torch.autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlc.frontend import tree
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.differentiable import recorded, root
from mlc.frontend.autograd.engine import gradients_of
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.derivatives import vjp
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Array, Tensor, as_array
from mlc.gradient_problem import Problem, RunProblem, is_float
from mlc.ir.diag import UserError
from mlc.ir.interp import in_parts


class GradcheckError(UserError):
    """A derivative disagrees with finite differences."""

    default_code = "MLC0670"


@coded
def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
              check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool | None = None,
              check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None) -> bool:
    """Check derivatives against central differences: |analytical - numerical| <= atol + rtol * |numerical|.

    numerical = (f(x + eps * e) - f(x - eps * e)) / (2 * eps), for every element of every input and result of floats. At
    a kink, such as relu at 0, the two need not agree: choose inputs off it. As torch.autograd.gradcheck, but that
    floats are converted to float64.

    If arguments require a gradient, the function runs operation by operation, and derivatives by those that do are of
    `backward`. If none does, the function is recorded, and differentiated by all leaves of floats.

    Args:
        func: Function of the inputs.
        inputs: Tuple of arguments, or a single one: arrays, numbers, modules and other trees of them.
        eps: Step of the differences.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: Whether a difference raises an error rather than giving False.
        nondet_tol: How far two computations of one gradient may differ.
        check_undefined_grad: Whether a result without a cotangent is checked to be like one with a cotangent of zeros.
        check_grad_dtypes: Whether gradients are checked to have the dtypes of their inputs.
        check_batched_grad: Whether `vmap` of the pullback is checked.
        check_batched_forward_grad: Whether `vmap` of the Jacobian-vector product is checked.
        check_forward_ad: Whether forward mode is checked beside reverse mode; None for True if the function is
            recorded.
        check_backward_ad: Whether reverse mode is checked.
        fast_mode: Whether only one product of the Jacobian with random vectors on both sides is compared.
        masked: Accepted for PyTorch's sake: it is about sparse tensors.

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
    problem = Problem.of(func, _arguments(inputs))
    forward = not isinstance(problem, RunProblem) if check_forward_ad is None else check_forward_ad
    checks = [*_modes(problem, check_backward_ad, forward, fast_mode, eps, atol, rtol)]
    if check_backward_ad:
        checks += [_repeated(problem, nondet_tol), *([_undefined(problem)] * check_undefined_grad),
                   *([_dtypes(problem)] * check_grad_dtypes)]
    for mode, wanted in (("reverse mode", check_batched_grad), ("forward mode", check_batched_forward_grad)):
        checks += [_batches(problem, mode, atol, rtol)] * wanted
    message = next((message for check in checks for message in check), None)
    if message is not None and raise_exception:
        raise GradcheckError(message, code="MLC0670", loc=user_loc(),
                             hint="at a kink the two need not agree; else the rule of some operation is wrong")
    return message is None


@coded
def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
                  raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
                  check_grad_dtypes: bool = False, check_batched_grad: bool = False,
                  check_fwd_over_rev: bool | None = None, check_rev_over_rev: bool = True, fast_mode: bool = False,
                  masked: bool = False) -> bool:
    """Check second derivatives: `gradcheck` of the pullback of a function, by the inputs and by the cotangents.

    As torch.autograd.gradgradcheck.

    Args:
        func: Function of the inputs.
        inputs: Tuple of arguments, or a single one, as of `gradcheck`.
        grad_outputs: Cotangents with the structure of the result; None for normal numbers.
        eps: Step of the differences.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        gen_non_contig_grad_outputs: Accepted for PyTorch's sake: tensors are contiguous.
        raise_exception: Whether a difference raises an error rather than giving False.
        nondet_tol: As of `gradcheck`.
        check_undefined_grad: As of `gradcheck`.
        check_grad_dtypes: As of `gradcheck`.
        check_batched_grad: As of `gradcheck`.
        check_fwd_over_rev: Whether the derivative of the pullback in forward mode is checked; None for True if the
            function is recorded.
        check_rev_over_rev: Whether its derivative in reverse mode is checked.
        fast_mode: As of `gradcheck`.
        masked: As of `gradcheck`.

    Returns:
        True if all derivatives agree, else False.

    Raises:
        GradcheckError: A derivative differs (MLC0670).
        UserError: No input or no result has floats (MLC0671), or batches are to be checked of a function that is not
            recorded (MLC0732).
        UserTypeError: `func` is no function (MLC0380).

    Example:
        >>> mlc.gradgradcheck(lambda x: x**3, np.array([1.0, 2.0]))
        True
    """
    problem = Problem.of(func, _arguments(inputs))
    if grad_outputs is None:
        cotangents = [Tensor(x) for x in _vectors([y.shape for y in problem.results(problem.points)])]
    else:
        cotangents = [Tensor(np.asarray(in_parts(as_array(x)), np.float64))
                      for x in tree.leaves(grad_outputs) if is_float(x)]
    arguments = [*map(Tensor, problem.points), *cotangents]
    if isinstance(problem, RunProblem):
        if check_batched_grad:
            raise UserError("batches of second derivatives are not computed by backward", code="MLC0732",
                            loc=user_loc(), hint="pass inputs that do not require a gradient, to record it")
        arguments = [x.requires_grad_() for x in arguments]
    return gradcheck(_pullback(problem), tuple(arguments), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
                     check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode)


def _pullback(problem: Problem) -> Callable[..., Any]:
    """The pullback of a function, as a function of the inputs and the cotangents."""
    count = len(problem.points)

    def pulled(*flat: Any) -> Any:
        return vjp(problem.function, *flat[:count])[1](tuple(flat[count:]))

    def pulled_by_backward(*flat: Any) -> Any:
        with GradMode(True):                               # differences call it without, and it takes gradients
            own = [x if x.requires_grad else x.detach().requires_grad_() for x in flat[:count]]
            results = problem.function(*own)
        roots = [root(y, ct) for y, ct in zip(results, flat[count:]) if y.requires_grad]
        found = gradients_of(roots, [recorded(x, "an input") for x in own], True, True)
        return [x for x in found if x is not None]

    return pulled_by_backward if isinstance(problem, RunProblem) else pulled


def _arguments(inputs: Any) -> tuple[Any, ...]:
    """The arguments of the function; several tensors that require a gradient may be in a list, as in PyTorch."""
    if isinstance(inputs, list) and any(type(x) is Tensor and x.requires_grad for x in inputs):
        return tuple(inputs)
    return inputs if isinstance(inputs, tuple) else (inputs,)


def _vectors(shapes: Sequence[tuple[int, ...]], seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


# -- the checks: each yields messages about differences ---------------------------------------------------------------
def _modes(problem: Problem, backward: bool, forward: bool, fast: bool, eps: float, atol: float,
           rtol: float) -> Iterator[Iterator[str]]:
    """The comparisons with differences, one for each mode."""
    modes = [("reverse mode", problem.reverse)] * backward + [("forward mode", problem.forward)] * forward
    if fast:
        yield _fast(problem, [mode for mode, _ in modes], eps, atol, rtol)
        return
    numerical = problem.numerical(eps)
    for mode, analytical in modes:
        yield _differences(problem, mode, analytical(), numerical, atol, rtol)


def _differences(problem: Problem, mode: str, analytical: list[list[Array]], numerical: list[list[Array]],
                 atol: float, rtol: float) -> Iterator[str]:
    for path, x, by_result, expected in zip(problem.paths, problem.points, analytical, numerical):
        for j, (a, n) in enumerate(zip(by_result, expected)):
            bad = ~np.isclose(a, n, rtol=rtol, atol=atol)
            for where in np.argwhere(bad)[:1]:
                at, rank = tuple(map(int, where)), a.ndim - x.ndim
                yield (f"in {mode} the derivative of result {j}{list(at[:rank])} by {path}{list(at[rank:])} is "
                       f"{a[at]:.9g}, differences give {n[at]:.9g} ({int(bad.sum())} of {bad.size} elements differ)")


def _fast(problem: Problem, modes: Sequence[str], eps: float, atol: float, rtol: float) -> Iterator[str]:
    """Compare v @ J @ u for one pair of random vectors."""
    tangents = _vectors([x.shape for x in problem.points])
    sides = [problem.results([x + sign * eps * u for x, u in zip(problem.points, tangents)]) for sign in (1, -1)]
    cotangents = _vectors([y.shape for y in sides[0]], 1)
    expected = sum(float(np.sum(v * (a - b))) / (2 * eps) for v, a, b in zip(cotangents, *sides))
    for mode in modes:
        if mode == "forward mode":
            found = sum(float(np.sum(v * t)) for v, t in zip(cotangents, problem.push(tangents)))
        else:
            found = sum(float(np.sum(u * ct.array)) for u, ct in zip(tangents, problem.pull(cotangents))
                        if ct is not None)
        if not np.isclose(found, expected, rtol=rtol, atol=atol):
            yield (f"in {mode} the Jacobian between two random vectors is {found:.9g}, differences give "
                   f"{expected:.9g}; fast_mode=False tells the element")


def _repeated(problem: Problem, tolerance: float) -> Iterator[str]:
    """Whether a gradient is the same when it is computed again."""
    cotangents: list[Any] = list(_vectors([y.shape for y in problem.results(problem.points)]))
    for path, a, b in zip(problem.paths, problem.pull(cotangents), problem.pull(cotangents)):
        if a is not None and b is not None and not np.allclose(a.array, b.array, rtol=0, atol=tolerance,
                                                               equal_nan=True):
            apart = np.abs(a.array - b.array).max()
            yield f"the derivative by {path} is not deterministic: two computations differ by {apart:.9g}"


def _undefined(problem: Problem) -> Iterator[str]:
    """Whether a result without a cotangent is like one with a cotangent of zeros, which `mlc.vjp` does not tell
    apart."""
    if not isinstance(problem, RunProblem):
        return
    results = problem.results(problem.points)
    cotangents: list[Any] = list(_vectors([y.shape for y in results]))
    for j in range(len(results)) if len(results) > 1 else ():
        without = problem.pull([None if k == j else ct for k, ct in enumerate(cotangents)])
        zeros = problem.pull([np.zeros_like(ct) if k == j else ct for k, ct in enumerate(cotangents)])
        for path, x, a, b in zip(problem.paths, problem.points, without, zeros):
            first, second = (np.zeros_like(x) if ct is None else ct.array for ct in (a, b))
            if not np.allclose(first, second, equal_nan=True):
                yield f"without a cotangent of result {j}, the derivative by {path} is not the one with zeros for it"


def _dtypes(problem: Problem) -> Iterator[str]:
    cotangents: list[Any] = list(_vectors([y.shape for y in problem.results(problem.points)]))
    for path, x, ct in zip(problem.paths, problem.points, problem.pull(cotangents)):
        if ct is not None and ct.array.dtype != x.dtype:
            yield f"the derivative by {path} has dtype {ct.dtype}, the input {x.dtype}"


def _batches(problem: Problem, mode: str, atol: float, rtol: float) -> Iterator[str]:
    """Whether vmap of a product with the Jacobian gives what it gives one by one."""
    forward = mode == "forward mode"
    like = problem.points if forward else problem.results(problem.points)
    batch = _vectors([(2, *x.shape) for x in like])
    found = problem.pushed_batch(batch) if forward else problem.pulled_batch(batch)
    for k in range(2):
        one: Sequence[Any] = problem.push([v[k] for v in batch]) if forward else problem.pull([v[k] for v in batch])
        for i, (a, b) in enumerate(zip(found, one)):
            if b is not None and not np.allclose(a.array[k], np.asarray(b), rtol=rtol, atol=atol):
                yield f"in {mode} vmap gives another derivative {i} than one call for each of a batch"
