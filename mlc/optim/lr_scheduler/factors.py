"""Schedulers that multiply learning rates: by a function of the epoch, or from epoch to epoch by a ratio."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError
from mlc.optim.lr_scheduler.scheduler import LRScheduler, checked_optimizer, for_each_group, require
from mlc.optim.optimizer import Optimizer

Factor = Callable[[int], float]
"""A factor as a function of the epoch."""


class _OfFunctions(LRScheduler):
    """A scheduler by functions of the epoch, one for each group."""

    callables = ("lr_lambdas",)

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        name = type(self).__name__
        self.lr_lambdas = for_each_group("lr_lambda", lr_lambda, checked_optimizer(optimizer, name))
        for f in self.lr_lambdas:
            if not callable(f):
                raise UserTypeError(f"lr_lambda is a function of the epoch, found {type(f).__name__}", code="MLC0441",
                                    loc=user_loc(), hint=f"{name}(optimizer, lambda epoch: 0.95**epoch)")
        super().__init__(optimizer, last_epoch)


class LambdaLR(_OfFunctions):
    """Initial rate times a function of the epoch: lr(t) = lr(0) * lr_lambda(t).

    The function gives a factor of the initial rate, not the rate. Call `step()` once an epoch (or once a batch, if the
    function counts batches), after the optimizer's.

    Args:
        optimizer: Optimizer that holds parameters.
        lr_lambda: Function of the epoch, or a list with one for each group.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: The number of functions is not that of the groups (MLC0441).
        UserTypeError: `lr_lambda` is no function (MLC0441), or `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1 / (1 + epoch))
        >>> opt.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.2]
    """

    def get_lr(self) -> list[float]:
        return [lr * f(self.last_epoch) for lr, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_OfFunctions):
    """Product of the values of a function: lr(t) = lr(t - 1) * lr_lambda(t).

    Args:
        optimizer: Optimizer that holds parameters.
        lr_lambda: Function of the epoch, or a list with one for each group.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: The number of functions is not that of the groups (MLC0441).
        UserTypeError: `lr_lambda` is no function (MLC0441), or `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
        >>> opt.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.2]
    """

    def get_lr(self) -> list[float]:
        rates = self._rates()
        return rates if self._is_initial else [lr * f(self.last_epoch) for lr, f in zip(rates, self.lr_lambdas)]


class _Scaled(LRScheduler):
    """Rates are the initial ones times `scale` of the epoch. A step multiplies them by the ratio to the epoch before,
    so that several schedulers of one optimizer multiply."""

    in_steps = False
    """Whether the scale is constant but for some epochs; the rate of such an epoch is set also when a scheduler that
    goes on from `last_epoch` is made, as PyTorch's do."""

    def scale(self, epoch: int) -> float:
        """The rate of an epoch as a multiple of the initial one."""
        raise NotImplementedError

    def ratio(self, epoch: int) -> float:
        """The scale of an epoch as a multiple of that of the epoch before."""
        before, now = self.scale(epoch - 1), self.scale(epoch)
        return 1.0 if now == before else now / before

    def get_lr(self) -> list[float]:
        t, rates = self.last_epoch, self._rates()
        if t > 0 and self._is_initial and not self.in_steps:
            return rates
        if t > 0 and self.scale(t - 1) == 0 != self.scale(t):
            return self._closed_form()
        ratio = self.ratio(t) if t > 0 else self.scale(0)
        return [lr * ratio for lr in rates]

    def _closed_form(self) -> list[float]:
        return [lr * self.scale(self.last_epoch) for lr in self.base_lrs]


class _Decayed(_Scaled):
    """The scale is a power of gamma."""

    gamma: float

    def exponent(self, epoch: int) -> int:
        """The exponent of gamma in an epoch."""
        raise NotImplementedError

    def scale(self, epoch: int) -> float:
        return float(self.gamma ** self.exponent(epoch))

    def ratio(self, epoch: int) -> float:
        return float(self.gamma ** (self.exponent(epoch) - self.exponent(epoch - 1)))


class StepLR(_Decayed):
    """Decay by a factor every step_size epochs: lr(t) = lr(0) * gamma ** floor(t / step_size).

    A staircase: the rate stays for `step_size` epochs and is then multiplied by `gamma`. Call `step()` once an epoch,
    after the optimizer's.

    Args:
        optimizer: Optimizer that holds parameters.
        step_size: Number of epochs between two changes.
        gamma: Factor of each change.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: `step_size` is below 1 (MLC0441), or `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
        >>> for epoch in range(3):
        ...     print(scheduler.get_last_lr())
        ...     opt.step()
        ...     scheduler.step()
        [0.4]
        [0.4]
        [0.2]
    """

    in_steps = True

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        require(step_size >= 1, f"step_size = {step_size}, expected at least 1")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def exponent(self, epoch: int) -> int:
        return epoch // self.step_size


class MultiStepLR(_Decayed):
    """Decay by a factor at given epochs: lr(t) = lr(0) * gamma ** (number of milestones <= t).

    A staircase with steps at epochs of one's choice, such as times 0.1 at epochs 30 and 60 of 90. Call `step()` once an
    epoch, after the optimizer's.

    Args:
        optimizer: Optimizer that holds parameters.
        milestones: Epochs of the changes; one that is given twice counts twice.
        gamma: Factor of each change.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 3], gamma=0.5)
        >>> opt.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.2]
    """

    in_steps = True

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones, self.gamma = tuple(sorted(milestones)), gamma
        super().__init__(optimizer, last_epoch)

    def exponent(self, epoch: int) -> int:
        return bisect_right(self.milestones, epoch)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        found = state_dict.get("milestones")
        if isinstance(found, Counter):                     # as PyTorch's class keeps them
            state_dict = {**state_dict, "milestones": tuple(sorted(found.elements()))}
        super().load_state_dict(state_dict)


class ExponentialLR(_Decayed):
    """Exponential decay: lr(t) = lr(0) * gamma ** t.

    The rate is halved every ln(2) / -ln(gamma) epochs: with gamma=0.95, every 13.5. Call `step()` once an epoch, after
    the optimizer's.

    Args:
        optimizer: Optimizer that holds parameters.
        gamma: Factor of each epoch.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
        >>> opt.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.2]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def exponent(self, epoch: int) -> int:
        return epoch


class ConstantLR(_Scaled):
    """Smaller constant rate at the beginning: lr(t) = lr(0) * (factor if t < total_iters else 1).

    Args:
        optimizer: Optimizer that holds parameters.
        factor: Multiple of the initial rate, in [0, 1].
        total_iters: Number of epochs that it holds for.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: `factor` is out of range (MLC0441), or `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.ConstantLR(opt, factor=0.5, total_iters=4)
        >>> scheduler.get_last_lr()
        [0.2]
    """

    in_steps = True

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        require(0 <= factor <= 1, f"factor = {factor} is not in [0, 1]")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def scale(self, epoch: int) -> float:
        return self.factor if epoch < self.total_iters else 1.0


class LinearLR(_Scaled):
    """Linear change: lr(t) = lr(0) * (start_factor + (end_factor - start_factor) * min(t / total_iters, 1)).

    Usually a warm-up, from a fraction of the rate to the whole; afterwards the rate stays at end_factor * lr(0).
    `SequentialLR` continues it with another schedule.

    Args:
        optimizer: Optimizer that holds parameters.
        start_factor: Multiple of the initial rate at first, in (0, 1].
        end_factor: Multiple of the initial rate in the end, in [0, 1].
        total_iters: Number of epochs from the one to the other.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: A setting is out of range (MLC0441), or `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=2)
        >>> for epoch in range(3):
        ...     print(round(scheduler.get_last_lr()[0], 4))
        ...     opt.step()
        ...     scheduler.step()
        0.2
        0.3
        0.4
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        require(0 < start_factor <= 1, f"start_factor = {start_factor} is not in (0, 1]")
        require(0 <= end_factor <= 1, f"end_factor = {end_factor} is not in [0, 1]")
        require(total_iters >= 1, f"total_iters = {total_iters}, expected at least 1")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def scale(self, epoch: int) -> float:
        return self.start_factor + (self.end_factor - self.start_factor) * min(epoch / self.total_iters, 1.0)


class PolynomialLR(_Scaled):
    """Polynomial decay: lr(t) = lr(0) * (1 - min(t / total_iters, 1)) ** power.

    Args:
        optimizer: Optimizer that holds parameters.
        total_iters: Number of epochs until the rate is 0.
        power: The exponent.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: `total_iters` is below 1 (MLC0441), or `optimizer` holds no parameters (MLC0440).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.lr_scheduler.PolynomialLR(opt, total_iters=4)
        >>> opt.step()
        >>> scheduler.step()
        >>> round(scheduler.get_last_lr()[0], 4)
        0.3
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        require(total_iters >= 1, f"total_iters = {total_iters}, expected at least 1")
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def scale(self, epoch: int) -> float:
        return float((1 - min(epoch / self.total_iters, 1.0)) ** self.power)
