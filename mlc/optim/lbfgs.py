"""L-BFGS: steps along directions that the last gradients suggest for the inverse of the Hessian matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import create
from mlc.frontend.functions import shape as S
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.line_search import Point, strong_wolfe
from mlc.optim.optimizer import Optimizer
from mlc.optim.parameter_groups import after_parameters


class LBFGS(Optimizer):
    """L-BFGS, whose `step` calls a closure several times (Nocedal 1980).

    "Updating Quasi-Newton Matrices with Limited Storage". It holds parameters, all in one group, and has no form as a
    function of a step: how often the loss is computed depends on the gradients.

    Args:
        lr: Length of a step, in units of the direction; the first step is not longer than this in the sum of all
            changes.
        max_iter: Number of steps of one call of `step`.
        max_eval: Number of calls of the closure of one call of `step`; None for 1.25 * max_iter.
        tolerance_grad: Largest component of a gradient that counts as 0.
        tolerance_change: Change of the parameters, or of the loss, that counts as none.
        history_size: Number of changes that are kept.
        line_search_fn: None for steps of length `lr`, "strong_wolfe" for a line search that begins with it.

    Raises:
        UserError: A setting is negative (MLC0383), or the line search is unknown (MLC0769).

    Example:
        >>> w = mlc.tensor([3.0, -2.0], requires_grad=True)
        >>> opt = mlc.optim.LBFGS([w], lr=0.5)
        >>> def closure():
        ...     opt.zero_grad()
        ...     loss = ((w - mlc.tensor([1.0, 2.0])) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> for _ in range(3):
        ...     _ = opt.step(closure)
        >>> bool((w - mlc.tensor([1.0, 2.0])).abs().max() < 1e-3)
        True
    """

    counts_updates = False

    @after_parameters
    def __init__(self, lr: float = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None) -> None:
        self.max_iter = max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        super().__init__(lr)

    def validate(self) -> None:
        if self.line_search_fn not in (None, "strong_wolfe"):
            raise UserError(f"there is no line search {self.line_search_fn!r}", code="MLC0769", loc=user_loc(),
                            hint='use "strong_wolfe", or leave line_search_fn out and choose lr')
        for name in ("max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size"):
            self.check(name, getattr(self, name))

    def hold(self, params: Iterable[Any]) -> None:
        """Take parameters, which have to be one group."""
        super().hold(params)
        if len(self.param_groups) > 1:
            raise UserError("LBFGS has one group of parameters, whose directions are one vector", code="MLC0769",
                            loc=user_loc(), hint="pass model.parameters()")

    def rule(self, p: Tensor, g: Tensor, lr: Any, scalars: tuple[Any, ...], *slots: Tensor) -> tuple[Tensor, ...]:
        raise UserError("a step of LBFGS calls a closure, and has no form as a function", code="MLC0769",
                        loc=user_loc(), hint="opt = mlc.optim.LBFGS(model.parameters()); opt.step(closure)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters by up to `max_iter` steps.

        Args:
            closure: Function that resets the gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            The loss at the first call of the closure.

        Raises:
            UserError: There is no closure (MLC0769).
        """
        if closure is None:
            raise UserError("LBFGS computes the loss several times in a step, and needs a closure for that",
                            code="MLC0769", loc=user_loc(), hint="opt.step(closure)")
        with GradMode(False):
            return self._steps(closure)

    def _steps(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = float(group["lr"])
        held = self.state.setdefault(group["params"][0], {"n_iter": 0, "func_evals": 0})
        first = _evaluated(closure)
        loss, gradient = float(first), self._gradient()
        held["func_evals"] += 1
        calls = 1
        if float(gradient.abs().max()) <= group["tolerance_grad"]:
            return first
        for iteration in range(group["max_iter"]):
            held["n_iter"] += 1
            direction = _direction(held, gradient, group["history_size"])
            held["prev_flat_grad"], held["prev_loss"] = gradient, loss
            before, slope = loss, float((gradient * direction).sum())
            t = min(1.0, 1.0 / float(gradient.abs().sum())) * lr if held["n_iter"] == 1 else lr
            held["d"], held["t"] = direction, t
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"]:
                start = Point(0.0, loss, gradient, slope)
                found, used = self._searched(closure, start, direction, t, group["max_eval"] - calls)
                held["t"] = t = found.step
                loss, gradient = found.loss, found.gradient
                self._move(direction * t)
            else:
                self._move(direction * t)
                if iteration + 1 < group["max_iter"]:      # the last one is for the next call to see
                    loss, gradient, used = float(_evaluated(closure)), self._gradient(), 1
            calls += used
            held["func_evals"] += used
            if (calls >= group["max_eval"] or float(gradient.abs().max()) <= group["tolerance_grad"]
                    or float((direction * t).abs().max()) <= group["tolerance_change"]
                    or abs(loss - before) < group["tolerance_change"]):
                break
        return first

    def _searched(self, closure: Callable[[], Any], start: Point, direction: Tensor, step: float,
                  calls: int) -> tuple[Point, int]:
        """The point that a line search finds, and the number of its calls of the closure."""
        params = self.param_groups[0]["params"]
        before = [p.detach().clone() for p in params]

        def at(t: float) -> Point:
            self._move(direction * t)
            loss, gradient = float(_evaluated(closure)), self._gradient()
            for p, x in zip(params, before):
                p.copy_(x)
            return Point(t, loss, gradient, float((gradient * direction).sum()))

        tolerance = self.param_groups[0]["tolerance_change"] / float(direction.abs().max())
        return strong_wolfe(at, start, step, tolerance, calls)

    def _gradient(self) -> Tensor:
        """The gradients of all parameters as one vector."""
        params = self.param_groups[0]["params"]
        return S.cat([(create.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in params])

    def _move(self, change: Tensor) -> None:
        """Add a vector to the parameters."""
        at = 0
        for p in self.param_groups[0]["params"]:
            p.add_(change[at:at + p.numel()].reshape(p.shape))
            at += p.numel()


def _evaluated(closure: Callable[[], Any]) -> Any:
    with GradMode(True):
        return closure()


def _direction(held: dict[str, Any], gradient: Tensor, size: int) -> Tensor:
    """The direction of the next step, after the change of the gradient is taken into the history."""
    if held["n_iter"] == 1:
        held.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return -gradient
    y, s = gradient - held["prev_flat_grad"], held["d"] * held["t"]
    curvature = float((y * s).sum())
    if curvature > 1e-10:                                  # otherwise the estimate would not stay positive definite
        for name, x in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / curvature)):
            held[name] = [*held[name], x][-size:]
        held["H_diag"] = curvature / float((y * y).sum())
    q, past = -gradient, list(zip(held["old_dirs"], held["old_stps"], held["ro"]))
    weights: list[float] = []
    for y, s, ro in reversed(past):
        weights.insert(0, float((s * q).sum()) * ro)
        q = q - y * weights[0]
    r: Tensor = q * held["H_diag"]
    for (y, s, ro), weight in zip(past, weights):
        r = r + s * (weight - float((y * r).sum()) * ro)
    held["al"] = weights
    return r
