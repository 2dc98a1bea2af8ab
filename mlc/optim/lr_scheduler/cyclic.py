"""Schedulers that raise and lower learning rates, and momenta the other way round."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from mlc.optim.lr_scheduler.scheduler import LRScheduler, checked_optimizer, for_each_group, require
from mlc.optim.optimizer import Optimizer

PerGroup = float | list[float]
"""A number for all groups, or one for each."""


class _Cyclic(LRScheduler):
    """A scheduler of learning rates and momenta: of "momentum", or of the first of "betas"."""

    cycle_momentum: bool

    def _take_momentums(self, cycle_momentum: bool, base: PerGroup, most: PerGroup, begins: bool
                        ) -> tuple[list[float], list[float]]:
        """The range of the momenta of each group, if they are to change; the groups keep it too, as it was given when
        the schedule began."""
        self.cycle_momentum = bool(cycle_momentum)
        if not cycle_momentum:
            return [], []
        self.use_beta1 = "betas" in self.optimizer.defaults
        ranges = (for_each_group("base_momentum", base, self.optimizer),
                  for_each_group("max_momentum", most, self.optimizer))
        for group, least, greatest in zip(self.optimizer.param_groups, *ranges):
            require("betas" in group or "momentum" in group, f"{type(self.optimizer).__name__} has neither momentum "
                    "nor betas, so that cycle_momentum has to be False")
            if begins or "max_momentum" not in group:
                group["max_momentum"], group["base_momentum"] = greatest, least
        return ranges

    def _set_momentums(self, momentums: list[float]) -> None:
        for group, x in zip(self.optimizer.param_groups, momentums):
            if "betas" in group:
                group["betas"] = (x, *group["betas"][1:])
            else:
                group["momentum"] = x


class CyclicLR(_Cyclic):
    """Cycles between two rates: lr = base_lr + (max_lr - base_lr) * h * s.

    h goes linearly from 0 to 1 in step_size_up steps, and back to 0 in step_size_down; s is 1 ("triangular"), 1 / 2 **
    (cycle - 1) ("triangular2"), where cycles count from 1, or gamma ** t ("exp_range"). The momentum is max_momentum -
    (max_momentum - base_momentum) * h * s. (Smith 2017, "Cyclical Learning Rates for Training Neural Networks".)

    The momentum is an argument of the compiled step, as the learning rate is: changing it does not compile anything.

    Args:
        optimizer: Optimizer that holds parameters.
        base_lr: The least rate, or a list with one for each group; it becomes the rate of the groups.
        max_lr: The greatest rate, or a list with one for each group.
        step_size_up: Number of steps up.
        step_size_down: Number of steps down; None for as many.
        mode: "triangular", "triangular2" or "exp_range".
        gamma: Base of s in "exp_range".
        scale_fn: Function that computes s in place of `mode`, of the cycle or of t.
        scale_mode: What `scale_fn` is a function of: "cycle" or "iterations".
        cycle_momentum: Whether the momentum changes too: "momentum", or the first of "betas".
        base_momentum: The least momentum, or a list with one for each group.
        max_momentum: The greatest momentum, or a list with one for each group.
        last_epoch: Number of the last step, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: A setting is unknown or out of range, the optimizer has no momentum, or there is another number of
            values than of groups (MLC0441).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.1, momentum=0.9)
        >>> scheduler = mlc.optim.lr_scheduler.CyclicLR(opt, base_lr=0.1, max_lr=0.5, step_size_up=2)
        >>> opt.step()
        >>> scheduler.step()
        >>> round(scheduler.get_last_lr()[0], 4), round(opt.param_groups[0]["momentum"], 4)
        (0.3, 0.85)
    """

    callables = ("_scale_fn_custom",)

    def __init__(self, optimizer: Optimizer, base_lr: PerGroup, max_lr: PerGroup, step_size_up: int = 2000,
                 step_size_down: int | None = None,
                 mode: Literal["triangular", "triangular2", "exp_range"] = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None,
                 scale_mode: Literal["cycle", "iterations"] = "cycle", cycle_momentum: bool = True,
                 base_momentum: PerGroup = 0.8, max_momentum: PerGroup = 0.9, last_epoch: int = -1) -> None:
        self.optimizer = checked_optimizer(optimizer, type(self).__name__)
        require(scale_fn is not None or mode in ("triangular", "triangular2", "exp_range"),
                f"mode = {mode!r}, expected 'triangular', 'triangular2' or 'exp_range', or a scale_fn")
        require(scale_mode in ("cycle", "iterations"), f"scale_mode = {scale_mode!r}, expected 'cycle' or 'iterations'")
        down = step_size_up if step_size_down is None else step_size_down
        require(step_size_up >= 1 and down >= 1, f"{step_size_up} steps up and {down} down, expected at least 1")
        self.total_size = step_size_up + down
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        base_lrs = for_each_group("base_lr", base_lr, optimizer)
        self.max_lrs = for_each_group("max_lr", max_lr, optimizer)
        momentums = self._take_momentums(cycle_momentum, base_momentum, max_momentum, last_epoch == -1)
        if cycle_momentum:
            self.base_momentums, self.max_momentums = momentums
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                group["lr"] = lr
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs                           # another scheduler may have set initial_lr before
        self._set(self.get_lr())

    def scale_fn(self, x: float) -> float:
        """Compute how much of the height of the first cycle is reached.

        Args:
            x: The cycle from 1, or the number of steps, as `scale_mode` says.

        Returns:
            A factor.
        """
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma ** x)

    def get_lr(self) -> list[float]:
        at = self.last_epoch / self.total_size
        cycle = math.floor(1 + at)
        x = 1.0 + at - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            self._set_momentums([most - (most - base) * height
                                 for base, most in zip(self.base_momentums, self.max_momentums)])
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]


class OneCycleLR(_Cyclic):
    """One cycle: from max_lr / div_factor up to max_lr, and down to max_lr / div_factor / final_div_factor.

    The momentum goes from max_momentum to base_momentum and back. `step` is called after each batch, and not more than
    total_steps times. (Smith and Topin 2018, "Super-Convergence: Very Fast Training of Neural Networks Using Large
    Learning Rates".)

    The momentum is an argument of the compiled step, as the learning rate is: changing it does not compile anything.

    Args:
        optimizer: Optimizer that holds parameters.
        max_lr: The greatest rate, or a list with one for each group.
        total_steps: Number of steps; None for epochs * steps_per_epoch.
        epochs: Number of epochs.
        steps_per_epoch: Number of steps of each.
        pct_start: Fraction of the steps that go up, in [0, 1].
        anneal_strategy: Shape of the ways: "cos" or "linear".
        cycle_momentum: Whether the momentum changes too: "momentum", or the first of "betas".
        base_momentum: The least momentum, or a list with one for each group.
        max_momentum: The greatest momentum, or a list with one for each group.
        div_factor: The greatest rate as a multiple of the first.
        final_div_factor: The first rate as a multiple of the last.
        three_phase: Whether the way down is as long as that up, and a third one leads from the first rate to the last.
        last_epoch: Number of the last step, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: A setting is missing, unknown or out of range, the optimizer has no momentum, or there is another
            number of values than of groups (MLC0441), or `step` is called too often (MLC0443).

    Example:
        >>> opt = mlc.optim.Adam([mlc.ones(2, requires_grad=True)])
        >>> scheduler = mlc.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.5, total_steps=5, pct_start=0.4)
        >>> for _ in range(5):
        ...     print(round(scheduler.get_last_lr()[0], 4), opt.param_groups[0]["betas"][0])
        ...     opt.step()
        ...     scheduler.step()
        0.02 0.95
        0.5 0.85
        0.375 0.875
        0.125 0.925
        0.0 0.95
    """

    def __init__(self, optimizer: Optimizer, max_lr: PerGroup, total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: Literal["cos", "linear"] = "cos", cycle_momentum: bool = True,
                 base_momentum: PerGroup = 0.85, max_momentum: PerGroup = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1) -> None:
        self.optimizer = checked_optimizer(optimizer, type(self).__name__)
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = epochs * steps_per_epoch
        require(total_steps is not None and total_steps >= 1, "OneCycleLR takes total_steps, or epochs and "
                "steps_per_epoch, each at least 1")
        require(0 <= pct_start <= 1, f"pct_start = {pct_start} is not in [0, 1]")
        require(div_factor > 0 and final_div_factor > 0, f"div_factor = {div_factor} and final_div_factor = "
                f"{final_div_factor}, expected numbers above 0")
        require(anneal_strategy in ("cos", "linear"), f"anneal_strategy = {anneal_strategy!r}, expected 'cos' or "
                "'linear'")
        self.total_steps, self._anneal_func_type = total_steps or 0, anneal_strategy
        top = float(pct_start * self.total_steps) - 1
        ends = [(top, "max_lr", "base_momentum"), *[(2 * top, "initial_lr", "max_momentum")] * bool(three_phase),
                (self.total_steps - 1, "min_lr", "max_momentum")]
        starts = [("initial_lr", "max_momentum"), *((lr, momentum) for _, lr, momentum in ends)]
        self._schedule_phases: list[dict[str, Any]] = [
            {"end_step": end, "start_lr": a, "end_lr": b, "start_momentum": m, "end_momentum": n}
            for (end, b, n), (a, m) in zip(ends, starts)]
        self._take_momentums(cycle_momentum, base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for most, group in zip(for_each_group("max_lr", max_lr, optimizer), optimizer.param_groups):
                first = most / div_factor
                group.update(initial_lr=first, max_lr=most, min_lr=first / final_div_factor)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        phase, fraction = self._position()
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            self._set_momentums([self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], fraction)
                                 for group in groups])
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], fraction) for group in groups]

    def _position(self) -> tuple[dict[str, Any], float]:
        """The phase of the step, and the fraction of it that is over."""
        t, start, phases = self.last_epoch, 0.0, self._schedule_phases
        require(t <= self.total_steps, f"step was called {t} times, and OneCycleLR has {self.total_steps} steps",
                "MLC0443")
        while len(phases) > 1 and t > phases[0]["end_step"]:
            start, phases = phases[0]["end_step"], phases[1:]
        length = phases[0]["end_step"] - start
        return phases[0], (t - start) / length if length else 1.0

    def _between(self, start: float, end: float, fraction: float) -> float:
        """The value at a fraction of the way from the one to the other."""
        if self._anneal_func_type == "linear":
            return start + (end - start) * fraction
        return end + (start - end) / 2 * (1 + math.cos(math.pi * fraction))
