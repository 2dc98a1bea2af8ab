"""Cosine annealing of learning rates, with and without restarts."""

from __future__ import annotations

import math

from mlc.optim.lr_scheduler.scheduler import LRScheduler, require
from mlc.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Cosine annealing: lr(t) = eta_min + (lr(0) - eta_min) * (1 + cos(pi * t / T_max)) / 2.

    Beyond T_max the rate rises again. (Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm
    Restarts", equation 5, without restarts.)

    Args:
        optimizer: Optimizer that holds parameters.
        T_max: Number of epochs until the rate is least.
        eta_min: The least rate.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: `T_max` is below 1 (MLC0441), or `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
        >>> opt.step()
        >>> scheduler.step()
        >>> round(scheduler.get_last_lr()[0], 4)
        0.2
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        require(T_max >= 1, f"T_max = {T_max}, expected at least 1")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, rates = self.last_epoch, self._rates()
        if self._is_initial:
            return rates
        now, before = self._height(t), self._height(t - 1)
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:                 # the height before is 0
            return [lr + (base - self.eta_min) * now for lr, base in zip(rates, self.base_lrs)]
        return [self.eta_min + (lr - self.eta_min) * (now / before) for lr in rates]

    def _height(self, epoch: int) -> float:
        """Where the rate of an epoch is between eta_min, which is 0, and the initial rate, which is 1."""
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def _closed_form(self) -> list[float]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing with restarts: lr = eta_min + (lr(0) - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2.

    T_cur is the number of epochs since the last restart, which is at T_cur = T_i; T_i is T_0 at first, and T_mult times
    as long after each restart. (Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts",
    equation 5.)

    Args:
        optimizer: Optimizer that holds parameters.
        T_0: Number of epochs until the first restart.
        T_mult: Factor of the length after a restart, an integer.
        eta_min: The least rate.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: `T_0` or `T_mult` is no integer of at least 1 (MLC0441), or `optimizer` holds no parameters
            (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
        >>> for epoch in range(4):
        ...     print(round(scheduler.get_last_lr()[0], 4))
        ...     opt.step()
        ...     scheduler.step()
        0.4
        0.2
        0.4
        0.2
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        for name, x in ("T_0", T_0), ("T_mult", T_mult):
            require(type(x) is int and x >= 1, f"{name} = {x}, expected an integer of at least 1")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next epoch, or of any.

        Args:
            epoch: Number of an epoch to go to instead, which may be a fraction, such as epoch + batch / batches.

        Raises:
            UserError: `epoch` is negative (MLC0441).

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
            >>> scheduler = mlc.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=1)
            >>> scheduler.step(7.5)
            >>> round(scheduler.get_last_lr()[0], 4)
            0.2
        """
        if epoch is None and not self._is_initial:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = self.last_epoch + 1 if epoch is None else epoch
            require(epoch >= 0, f"epoch = {epoch}, expected at least 0")
            self.T_cur, self.T_i = epoch, self.T_0
            if self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())
