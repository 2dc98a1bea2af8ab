"""Learning rates as functions of the step: `AdamW(lr=warmup(cosine(1e-3, 1000), 100))`.

A schedule takes the number of updates already made, a number or a tensor, and returns a float64: it runs within a
compiled step, where the optimiser's state counts. `Plateau` is the exception: it watches a loss from outside.
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
    """lr"""
    return lambda step: lr + 0.0 * _number(step)


@coded
def linear(start: float, end: float, steps: int) -> Schedule:
    """From start to end in `steps` equal steps, then end."""
    _check("steps", steps)
    return lambda step: start + (end - start) * _progress(step, steps)


@coded
def cosine(lr: float, steps: int, end: float = 0.0) -> Schedule:
    """From lr to end along half a cosine, then end."""
    _check("steps", steps)
    return lambda step: end + (lr - end) * (1 + cos(math.pi * _progress(step, steps))) / 2


@coded
def cosine_restarts(lr: float, steps: int, end: float = 0.0) -> Schedule:
    """`cosine` again and again, every `steps` steps."""
    _check("steps", steps)
    return lambda step: end + (lr - end) * (1 + cos(math.pi / steps * E.remainder(_number(step), steps))) / 2


@coded
def polynomial(lr: float, steps: int, power: float = 1.0, end: float = 0.0) -> Schedule:
    """From lr to end as (1 - step / steps) ** power, then end."""
    _check("steps", steps)
    return lambda step: end + (lr - end) * E.pow(1 - _progress(step, steps), power)


@coded
def step_decay(lr: float, step_size: int, gamma: float = 0.1) -> Schedule:
    """lr * gamma ** (step // step_size)"""
    _check("step_size", step_size)
    return lambda step: lr * E.pow(gamma, E.floor(_number(step) / step_size))


@coded
def multistep(lr: float, milestones: Sequence[int], gamma: float = 0.1) -> Schedule:
    """lr, multiplied by gamma at each of the milestones"""
    def rate(step: Any) -> Tensor:
        out = lr + 0.0 * _number(step)
        for milestone in milestones:
            out = E.where(_number(step) >= milestone, out * gamma, out)
        return out
    return rate


@coded
def exponential(lr: float, gamma: float) -> Schedule:
    """lr * gamma ** step"""
    return lambda step: lr * E.pow(gamma, _number(step))


@coded
def warmup(schedule: float | Schedule, steps: int, start: float = 0.0) -> Schedule:
    """From the fraction `start` of what the schedule says to all of it in `steps` steps; the schedule itself starts
    at once"""
    _check("steps", steps)
    after = constant(schedule) if isinstance(schedule, int | float) else schedule
    return lambda step: after(step) * (start + (1 - start) * _progress(step, steps))


@coded
def one_cycle(max_lr: float, total_steps: int, pct_start: float = 0.3, anneal_strategy: str = "cos",
              div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False) -> Schedule:
    """Up from max_lr / div_factor to max_lr, and down to that over final_div_factor. As torch's OneCycleLR."""
    _check("total_steps", total_steps)
    if anneal_strategy not in ("cos", "linear"):
        raise UserError(f"anneal_strategy = {anneal_strategy!r}", code="MLC0360", loc=user_loc(),
                        hint='use "cos" or "linear"')
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
    """One schedule after the other, each counting from 0 at its milestone."""
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
    """A learning rate that falls when a loss stops falling, decided outside compiled steps: `lr = plateau.step(loss)`.

    As torch's ReduceLROnPlateau: after more than `patience` steps in a row without an improvement, the rate is
    multiplied by `factor`, and for `cooldown` steps nothing is counted. A loss is an improvement below best *
    (1 - threshold), or with threshold_mode = "abs" below best - threshold; with mode = "max" it is one above
    best * (1 + threshold) or best + threshold.
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
        """The rate after this loss (or other measure)."""
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
