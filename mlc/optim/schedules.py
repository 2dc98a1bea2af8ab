"""Learning rates as functions of the step.

A schedule takes the number of updates already made, a number or a tensor, and returns a float64: it runs within a
compiled step, where the optimizer's state counts: `AdamW(lr=warmup(cosine(1e-3, 1000), 100))`. `Plateau` is the
exception: it watches a loss from outside.

Example:
    >>> rate = mlc.optim.schedules.warmup(mlc.optim.schedules.cosine(1e-3, 1000), 100)
    >>> round(float(rate(0)), 6), round(float(rate(50)), 6), round(float(rate(100)), 6)
    (0.0, 0.000497, 0.000976)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.trigonometry import cos
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.optim.optimizer import Schedule


@coded
def constant(lr: float) -> Schedule:
    """Constant rate: lr.

    Args:
        lr: The rate.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Example:
        >>> rate = mlc.optim.schedules.constant(0.1)
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [0.1, 0.1, 0.1]
    """
    return lambda step: lr + 0.0 * _number(step)


@coded
def linear(start: float, end: float, steps: int) -> Schedule:
    """Linear interpolation: start + (end - start) * min(step / steps, 1).

    Args:
        start: Rate at step 0.
        end: Rate from step `steps` on.
        steps: Length of the way.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: `steps` is below 1 (MLC0383).

    Example:
        >>> rate = mlc.optim.schedules.linear(1.0, 0.0, 10)
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [1.0, 0.5, 0.0]
    """
    _check("steps", steps)
    return lambda step: start + (end - start) * _progress(step, steps)


@coded
def cosine(lr: float, steps: int, end: float = 0.0) -> Schedule:
    """Cosine annealing: end + (lr - end) * (1 + cos(pi * min(step / steps, 1))) / 2.

    (Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts", equation 5, without restarts.)

    Args:
        lr: Rate at step 0.
        steps: Length of the way.
        end: Rate from step `steps` on.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: `steps` is below 1 (MLC0383).

    Example:
        >>> rate = mlc.optim.schedules.cosine(1.0, 10)
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [1.0, 0.5, 0.0]
    """
    _check("steps", steps)
    return lambda step: end + (lr - end) * (1 + cos(math.pi * _progress(step, steps))) / 2


@coded
def cosine_restarts(lr: float, steps: int, end: float = 0.0) -> Schedule:
    """Cosine annealing with warm restarts: as `cosine`, of step % steps.

    (Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts", equation 5.)

    Args:
        lr: Rate at the start of each period.
        steps: Length of a period.
        end: Rate that the end of a period comes near.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: `steps` is below 1 (MLC0383).

    Example:
        >>> rate = mlc.optim.schedules.cosine_restarts(1.0, 10)
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [1.0, 0.5, 1.0]
    """
    _check("steps", steps)
    return lambda step: end + (lr - end) * (1 + cos(math.pi / steps * E.remainder(_number(step), steps))) / 2


@coded
def polynomial(lr: float, steps: int, power: float = 1.0, end: float = 0.0) -> Schedule:
    """Polynomial decay: end + (lr - end) * (1 - min(step / steps, 1))**power.

    Args:
        lr: Rate at step 0.
        steps: Length of the way.
        power: Exponent.
        end: Rate from step `steps` on.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: `steps` is below 1 (MLC0383).

    Example:
        >>> rate = mlc.optim.schedules.polynomial(1.0, 10, power=2.0)
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [1.0, 0.25, 0.0]
    """
    _check("steps", steps)
    return lambda step: end + (lr - end) * E.pow(1 - _progress(step, steps), power)


@coded
def step_decay(lr: float, step_size: int, gamma: float = 0.1) -> Schedule:
    """Step decay: lr * gamma**floor(step / step_size).

    Args:
        lr: Rate at step 0.
        step_size: Steps from one decay to the next.
        gamma: Factor of a decay.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: `step_size` is below 1 (MLC0383).

    Example:
        >>> rate = mlc.optim.schedules.step_decay(1.0, 5)
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [1.0, 0.1, 0.01]
    """
    _check("step_size", step_size)
    return lambda step: lr * E.pow(gamma, E.floor(_number(step) / step_size))


@coded
def multistep(lr: float, milestones: Sequence[int], gamma: float = 0.1) -> Schedule:
    """Decay at milestones: lr * gamma**(number of milestones <= step).

    Args:
        lr: Rate at step 0.
        milestones: Steps at which the rate is multiplied.
        gamma: Factor of a decay.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Example:
        >>> rate = mlc.optim.schedules.multistep(1.0, [5, 8])
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [1.0, 0.1, 0.01]
    """
    def rate(step: Any) -> Tensor:
        out = lr + 0.0 * _number(step)
        for milestone in milestones:
            out = E.where(_number(step) >= milestone, out * gamma, out)
        return out
    return rate


@coded
def exponential(lr: float, gamma: float) -> Schedule:
    """Exponential decay: lr * gamma**step.

    Args:
        lr: Rate at step 0.
        gamma: Factor of a step.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Example:
        >>> rate = mlc.optim.schedules.exponential(1.0, 0.5)
        >>> [round(rate(step).item(), 4) for step in (0, 1, 2)]
        [1.0, 0.5, 0.25]
    """
    return lambda step: lr * E.pow(gamma, _number(step))


@coded
def warmup(schedule: float | Schedule, steps: int, start: float = 0.0) -> Schedule:
    """Linear warmup: schedule(step) * (start + (1 - start) * min(step / steps, 1)).

    The schedule itself counts from step 0, and not from the end of the warmup. (Goyal et al. 2017, "Accurate, Large
    Minibatch SGD".)

    Args:
        schedule: Schedule, or a number for a constant one.
        steps: Length of the warmup.
        start: Fraction of the rate at step 0.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: `steps` is below 1 (MLC0383).

    Example:
        >>> rate = mlc.optim.schedules.warmup(1.0, 10)
        >>> [round(rate(step).item(), 4) for step in (0, 5, 10)]
        [0.0, 0.5, 1.0]
    """
    _check("steps", steps)
    after = constant(schedule) if isinstance(schedule, int | float) else schedule
    return lambda step: after(step) * (start + (1 - start) * _progress(step, steps))


@coded
def one_cycle(max_lr: float, total_steps: int, pct_start: float = 0.3, anneal_strategy: str = "cos",
              div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False) -> Schedule:
    """One-cycle policy: up from max_lr / div_factor to max_lr, then down to max_lr / div_factor / final_div_factor.

    As torch.optim.lr_scheduler.OneCycleLR, without its momentum. (Smith and Topin 2018, "Super-Convergence".)

    Args:
        max_lr: Highest rate, at step pct_start * total_steps - 1.
        total_steps: Length of the cycle.
        pct_start: Fraction of the cycle in which the rate rises.
        anneal_strategy: "cos" or "linear".
        div_factor: Highest rate divided by the first one.
        final_div_factor: First rate divided by the last one.
        three_phase: Whether the rate falls to the first one as long as it has risen, and then to the last one.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: `total_steps` is below 1, or a factor is not positive (MLC0383), or `anneal_strategy` is unknown
            (MLC0360).

    Example:
        >>> rate = mlc.optim.schedules.one_cycle(1.0, 10)
        >>> [round(rate(step).item(), 4) for step in (0, 2, 9)]
        [0.04, 1.0, 0.0]
    """
    _check("total_steps", total_steps)
    if anneal_strategy not in ("cos", "linear"):
        raise UserError(f"anneal_strategy = {anneal_strategy!r}", code="MLC0360", loc=user_loc(),
                        hint='use "cos" or "linear"')
    if not (div_factor > 0 and final_div_factor > 0):
        raise UserError(f"div_factor = {div_factor}, final_div_factor = {final_div_factor}", code="MLC0383",
                        loc=user_loc(), hint="both are above 0")
    first, last = max_lr / div_factor, max_lr / div_factor / final_div_factor
    peak = pct_start * total_steps - 1
    phases = [(peak, first, max_lr), (2 * peak, max_lr, first), (total_steps - 1, first, last)] if three_phase else [
        (peak, first, max_lr), (total_steps - 1, max_lr, last)]

    def rate(step: Any) -> Tensor:
        t, begin = _number(step), 0.0
        pieces: list[tuple[float, Tensor]] = []
        for end, a, b in phases:
            part = E.clamp((t - begin) / (end - begin), 0, 1)
            along = (1 - cos(math.pi * part)) / 2 if anneal_strategy == "cos" else part
            pieces.append((end, a + (b - a) * along))
            begin = end
        out = pieces[-1][1]
        for end, piece in reversed(pieces[:-1]):
            out = E.where(t <= end, piece, out)
        return out

    return rate


@coded
def sequential(schedules: Sequence[Schedule], milestones: Sequence[int]) -> Schedule:
    """Schedules one after the other, each counting from 0 at its milestone.

    Args:
        schedules: The schedules.
        milestones: Step at which each but the first begins.

    Returns:
        Function of the number of updates already made, a number or a tensor, that gives a float64 of no dimensions.

    Raises:
        UserError: The milestones are not one fewer than the schedules (MLC0383).

    Example:
        >>> rate = mlc.optim.schedules.sequential([lambda step: 1.0, lambda step: 0.5**step], [5])
        >>> [round(rate(step).item(), 4) for step in (0, 5, 6)]
        [1.0, 1.0, 0.5]
    """
    if len(milestones) != len(schedules) - 1:
        raise UserError(f"{len(schedules)} schedules change at {len(schedules) - 1} milestones, found "
                        f"{len(milestones)}", code="MLC0383", loc=user_loc())

    def rate(step: Any) -> Tensor:
        t = _number(step)
        out: Tensor = schedules[0](t)
        for milestone, schedule in zip(milestones, schedules[1:]):
            out = E.where(t >= milestone, schedule(E.maximum(t - milestone, 0.0)), out)
        return out

    return rate


class Plateau:
    """Decay on plateaus: lr = lr * factor after more than `patience` steps in a row without an improvement.

    As torch.optim.lr_scheduler.ReduceLROnPlateau. It holds state and decides outside of compiled steps; pass the rate
    to `Optimizer.update`. A loss is an improvement below best * (1 - threshold), or with threshold_mode "abs" below
    best - threshold; with mode "max" above best * (1 + threshold) or best + threshold.

    Args:
        lr: First rate.
        mode: "min" or "max": which losses are better.
        factor: Factor of a decay.
        patience: Steps without an improvement that are tolerated.
        threshold: How much better a loss has to be.
        threshold_mode: "rel" or "abs".
        cooldown: Steps after a decay in which nothing is counted.
        min_lr: Lower bound of the rate.
        eps: Smallest decay that is made.

    Raises:
        UserError: `mode` or `threshold_mode` is unknown (MLC0360).

    Example:
        >>> plateau = mlc.optim.schedules.Plateau(1.0, patience=1)
        >>> [plateau.step(loss) for loss in (3.0, 3.0, 3.0, 2.0)]
        [1.0, 1.0, 0.1, 0.1]
    """

    def __init__(self, lr: float, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0, eps: float = 1e-8) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise UserError(f"mode = {mode!r}, threshold_mode = {threshold_mode!r}", code="MLC0360", loc=user_loc(),
                            hint='use "min" or "max", and "rel" or "abs"')
        self.lr, self.sign, self.factor, self.patience = lr, 1 if mode == "min" else -1, factor, patience
        self.threshold, self.relative = threshold, threshold_mode == "rel"
        self.cooldown, self.min_lr, self.eps = cooldown, min_lr, eps
        self.best, self.bad, self.cooling = math.inf * self.sign, 0, 0

    def step(self, loss: Any) -> float:
        """Take account of a loss.

        Args:
            loss: A number or a tensor of one element.

        Returns:
            The rate from now on.
        """
        value = float(loss.item() if isinstance(loss, Tensor) else loss)
        margin = self.sign * self.threshold
        bound = self.best * (1 - margin) if self.relative else self.best - margin
        if self.sign * (bound - value) > 0:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.cooling:
            self.cooling, self.bad = self.cooling - 1, 0
        if self.bad > self.patience:
            self.cooling, self.bad = self.cooldown, 0
            lower = max(self.lr * self.factor, self.min_lr)
            self.lr = lower if self.lr - lower > self.eps else self.lr
        return self.lr


def _number(step: Any) -> Tensor:
    return E.cast_to(step, "float64")


def _progress(step: Any, steps: int) -> Tensor:
    """step / steps, at most 1."""
    return E.minimum(_number(step) / steps, 1.0)


def _check(name: str, value: int) -> None:
    if value < 1:
        raise UserError(f"{name} = {value}, expected at least 1", code="MLC0383", loc=user_loc())
