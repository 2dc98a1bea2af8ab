"""Reduction of learning rates when a metric has stopped improving."""

from __future__ import annotations

import math
from typing import Any, Literal

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError
from mlc.optim.lr_scheduler.scheduler import LRScheduler, checked_optimizer, for_each_group, require
from mlc.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Reduction on a plateau: lr = max(lr * factor, min_lr) after more than `patience` epochs without improvement.

    The metric, such as the loss on validation data, is the argument of `step`, called once an epoch. In mode "min" an
    epoch improves if metric < best * (1 - threshold), or best - threshold with "abs"; in mode "max" the other way
    round.

    Args:
        optimizer: Optimizer that holds parameters.
        mode: Whether the metric improves as it gets smaller ("min") or greater ("max").
        factor: Factor of each reduction, below 1.
        patience: Number of epochs without improvement that are let pass.
        threshold: How much better than the best so far counts as an improvement.
        threshold_mode: Whether the threshold is a fraction of the best ("rel") or a difference ("abs").
        cooldown: Number of epochs after a reduction that are let pass in any case.
        min_lr: The least rate, or a list with one for each group.
        eps: A reduction by no more than this is not made.

    Raises:
        UserError: A setting is unknown or out of range, or there is another number of rates than of groups (MLC0441).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     scheduler.step(loss)
        ...     print(scheduler.get_last_lr())
        [0.4]
        [0.4]
        [0.4]
        [0.2]
    """

    unsaved = ("base_lrs",)

    def __init__(self, optimizer: Optimizer, mode: Literal["min", "max"] = "min", factor: float = 0.1,
                 patience: int = 10, threshold: float = 1e-4, threshold_mode: Literal["rel", "abs"] = "rel",
                 cooldown: int = 0, min_lr: list[float] | float = 0, eps: float = 1e-8) -> None:
        require(factor < 1, f"factor = {factor}, expected less than 1")
        require(mode in ("min", "max"), f"mode = {mode!r}, expected 'min' or 'max'")
        require(threshold_mode in ("rel", "abs"), f"threshold_mode = {threshold_mode!r}, expected 'rel' or 'abs'")
        self.optimizer = checked_optimizer(optimizer, type(self).__name__)
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.min_lrs = for_each_group("min_lr", min_lr, optimizer)
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.best = self.mode_worse = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self.base_lrs = self._last_lr = self._rates()

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was made at most `cooldown` epochs ago, so that the metric does not count.

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.5)
            >>> scheduler = mlc.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, cooldown=2)
            >>> scheduler.step(1.0)
            >>> scheduler.step(1.0)
            >>> scheduler.in_cooldown
            True
        """
        return self.cooldown_counter > 0

    def get_lr(self) -> list[float]:
        """Compute the rates of the groups after a reduction: max(lr * factor, min_lr), or lr if they differ by at
        most `eps`.

        Returns:
            One rate for each group.

        Raises:
            UserError: The optimizer has more groups than `min_lr` rates (MLC0441).
        """
        if len(self.min_lrs) < (count := len(self.optimizer.param_groups)):
            if self.default_min_lr is None:
                raise UserError(f"min_lr has {len(self.min_lrs)} rates, and the optimizer {count} groups",
                                code="MLC0441", loc=user_loc(), hint="give one number for all, or append to min_lrs")
            self.min_lrs = [self.default_min_lr] * count
        reduced = [max(lr * self.factor, least) for lr, least in zip(self._rates(), self.min_lrs)]
        return [new if lr - new > self.eps else lr for lr, new in zip(self._rates(), reduced)]

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Reduce the learning rates if the metric has not improved for long enough. NaN is no improvement.

        Args:
            metrics: The metric of this epoch, a number or a tensor of one element.
            epoch: Number of the epoch; None for the next.

        Raises:
            UserTypeError: The metric is missing (MLC0321) or no number (MLC0421).
            UserError: The metric is a tensor of several elements (MLC0344).

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.5)
            >>> scheduler = mlc.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)
            >>> scheduler.step(1.0)
            >>> scheduler.step(mlc.tensor(1.0))
            >>> scheduler.get_last_lr()
            [0.05]
        """
        if not hasattr(type(metrics), "__float__"):
            raise UserTypeError(f"the metric is {type(metrics).__name__} {metrics!r}, expected a number"[:200],
                                code="MLC0421", loc=user_loc(), hint="pass the loss of this epoch")
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._improves(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        reduces = self.num_bad_epochs > self.patience
        if reduces:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._set(self.get_lr() if reduces else self._rates())

    def _improves(self, metric: float) -> bool:
        """Whether a metric is better than the best so far."""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "abs":
            return sign * metric < sign * self.best - self.threshold
        return sign * metric < sign * self.best * (1 - sign * self.threshold)
