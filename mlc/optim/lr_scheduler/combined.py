"""Schedulers made of schedulers: one after another, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError
from mlc.optim.lr_scheduler.plateau import ReduceLROnPlateau
from mlc.optim.lr_scheduler.scheduler import LRScheduler, checked_optimizer, require
from mlc.optim.optimizer import Optimizer


class _Combined(LRScheduler):
    """A scheduler made of others, whose states are part of its own."""

    unsaved: tuple[str, ...] = ("base_lrs",)
    _schedulers: list[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Any) -> None:
        """Keep the schedulers, which have to be of one optimizer."""
        name = type(self).__name__
        self._schedulers = list(schedulers)
        require(bool(schedulers), f"{name} was given no schedulers")
        for i, scheduler in enumerate(schedulers):
            if not isinstance(scheduler, LRScheduler):
                raise UserTypeError(f"scheduler {i} of {name} is a {type(scheduler).__name__}", code="MLC0441",
                                    loc=user_loc(), hint="schedulers are those of mlc.optim.lr_scheduler")
            require(not isinstance(scheduler, ReduceLROnPlateau), f"scheduler {i} of {name} is a ReduceLROnPlateau, "
                    "whose step takes a metric, so that it has to be called by itself")
        self.optimizer = checked_optimizer(schedulers[0].optimizer if optimizer is None else optimizer, name)
        for i, scheduler in enumerate(schedulers):
            require(scheduler.optimizer is self.optimizer, f"scheduler {i} of {name} is of another optimizer")
        self.base_lrs = [float(group["initial_lr"]) for group in self.optimizer.param_groups]

    def hosts(self) -> list[Any]:
        return [self, *(host for scheduler in self._schedulers for host in scheduler.hosts())]

    def _undo(self) -> None:
        super()._undo()
        for scheduler in self._schedulers:
            scheduler._undo()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self._check_state(self.state_dict(), state_dict)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)
        vars(self).update({name: x for name, x in state_dict.items() if name != "_schedulers"})


class SequentialLR(_Combined):
    """Schedulers one after another: the one after the first milestone begins at its epoch 0 there, and so on.

    At most one schedule is active in an epoch: warm-up for some epochs and decay afterwards, for example.
    `ChainedScheduler` applies all of its schedules in every epoch instead.

    Args:
        optimizer: Optimizer that holds parameters.
        schedulers: Schedulers of this optimizer.
        milestones: Epochs at which the next one takes over, one less than there are schedulers.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: There are no schedulers, or some of another optimizer, or the number of milestones does not fit
            (MLC0441).
        UserTypeError: One is no scheduler (MLC0441).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> warmup = mlc.optim.lr_scheduler.ConstantLR(opt, factor=0.5, total_iters=2)
        >>> decay = mlc.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
        >>> scheduler = mlc.optim.lr_scheduler.SequentialLR(opt, [warmup, decay], milestones=[2])
        >>> for epoch in range(4):
        ...     print(scheduler.get_last_lr())
        ...     opt.step()
        ...     scheduler.step()
        [0.2]
        [0.2]
        [0.4]
        [0.2]
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
                 last_epoch: int = -1) -> None:
        self._take(schedulers, optimizer)
        require(len(milestones) == len(schedulers) - 1, f"{len(schedulers)} schedulers have {len(schedulers) - 1} "
                f"milestones between them, found {len(milestones)}")
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        for group, lr in zip(optimizer.param_groups, self.base_lrs):
            group["lr"] = lr
        for scheduler in schedulers:
            scheduler._undo()
        self._first()._begin()
        self._last_lr = self._rates()

    def _first(self) -> LRScheduler:
        """The scheduler of epoch 0."""
        return self._schedulers[bisect_right(self._milestones, 0)]

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch.

        Args:
            epoch: None: the schedulers may have been at any epoch in any other.

        Raises:
            UserError: `epoch` is a number (MLC0441).
        """
        require(epoch is None, "SequentialLR cannot go to any epoch")
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        if self.last_epoch in self._milestones:
            self._schedulers[number]._restart()
        else:
            self._schedulers[number].step()
        self._last_lr = self._rates()

    def _restart(self) -> None:
        self.last_epoch = 0
        self._first()._restart()
        self._last_lr = self._rates()

    def _begin(self) -> None:
        self.last_epoch += 1
        self._first()._begin()
        self._last_lr = self._rates()


class ChainedScheduler(_Combined):
    """Schedulers all at once: each step makes a step of each, on the rates that the ones before have set.

    Args:
        schedulers: Schedulers of one optimizer.
        optimizer: Their optimizer; None for that of the first.

    Raises:
        UserError: There are no schedulers, or some of another optimizer (MLC0441).
        UserTypeError: One is no scheduler (MLC0441).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> warmup = mlc.optim.lr_scheduler.ConstantLR(opt, factor=0.5, total_iters=2)
        >>> decay = mlc.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
        >>> scheduler = mlc.optim.lr_scheduler.ChainedScheduler([warmup, decay])
        >>> for epoch in range(3):
        ...     print(scheduler.get_last_lr())
        ...     opt.step()
        ...     scheduler.step()
        [0.2]
        [0.1]
        [0.1]
    """

    unsaved = ("base_lrs", "last_epoch")

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)
        self.last_epoch = self._schedulers[0].last_epoch
        self._last_lr = self._rates()

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch.

        Args:
            epoch: None: schedulers that go to any epoch do not multiply.

        Raises:
            UserError: `epoch` is a number (MLC0441).
        """
        require(epoch is None, "ChainedScheduler cannot go to any epoch")
        for scheduler in self._schedulers:
            scheduler.step()
        self.last_epoch += 1
        self._last_lr = self._rates()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.last_epoch = self._schedulers[0].last_epoch

    def _begin(self) -> None:
        for scheduler in self._schedulers:
            scheduler._begin()
        self.last_epoch += 1
        self._last_lr = self._rates()

    def _restart(self) -> None:
        for group, lr in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = lr
        for scheduler in self._schedulers:
            scheduler.last_epoch = -1
            scheduler._begin()
        self.last_epoch = 0
        self._last_lr = self._rates()
