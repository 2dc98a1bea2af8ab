"""Base of schedulers, which set the learning rates of an optimizer that holds parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from mlc.frontend.arguments import coded_methods
from mlc.frontend.location import user_loc
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state as recording
from mlc.ir.diag import UserError, UserTypeError
from mlc.optim.optimizer import Optimizer
from mlc.optim.recorded_step import captures_in_progress

_BETWEEN_STEPS = {"_is_initial": False, "_get_lr_called_within_step": False}
"""Entries of a state of PyTorch's that say that no step is being made."""


def deferred(step: Callable[..., None]) -> Callable[..., None]:
    """`step` of a scheduler: within a function that is recorded, it runs after each call of that."""
    @functools.wraps(step)
    def deferring(self: LRScheduler, *args: Any, **keywords: Any) -> None:
        if recording.trace is None:
            return step(self, *args, **keywords)
        captures = captures_in_progress("step of a scheduler", once=True)
        for x in (*args, *keywords.values()):
            if isinstance(x, Tensor):
                raise refusal("step of a scheduler is given a tensor that is being recorded", code="MLC0723",
                              loc=user_loc(), hint="return the metric, and call step outside of the function")
        captures.effects.append(lambda: step(self, *args, **keywords))
        captures.hosts += self.hosts()

    return deferring


class LRScheduler:
    """Base of learning-rate schedulers: each `step` sets the learning rates of all groups of an optimizer.

    A subclass defines `get_lr`, which computes the rates of `last_epoch`, from `base_lrs` or from the rates that the
    groups have. A new scheduler sets the rates of epoch 0; `initial_lr` in each group keeps the rate that it found.

    Args:
        optimizer: Optimizer that holds parameters.
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Attributes:
        base_lrs: The initial rate of each group.
        last_epoch: Number of steps made.

    Raises:
        UserError: The optimizer holds no parameters or has a schedule of its own (MLC0440), or a group lacks the
            initial rate to go on from (MLC0442).
        UserTypeError: `optimizer` is none (MLC0440).

    Example:
        >>> class Halved(mlc.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = Halved(opt)
        >>> for epoch in range(3):
        ...     print(scheduler.get_last_lr())
        ...     opt.step()
        ...     scheduler.step()
        [0.4]
        [0.2]
        [0.1]
    """

    callables: tuple[str, ...] = ()
    """Attributes that are functions or lists of them, which are no part of the state."""
    unsaved: tuple[str, ...] = ()
    """Attributes that are no part of the state, since the optimizer's has them."""
    last_epoch: int
    base_lrs: list[float]
    _is_initial = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        coded_methods(cls, ("__init__", "step", "load_state_dict"))
        if "step" in vars(cls):
            cls.step = deferred(cls.step)  # type: ignore[method-assign]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked_optimizer(optimizer, type(self).__name__)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise UserError(f"group {i} of the optimizer has no initial_lr, so that {type(self).__name__} cannot "
                                f"go on after epoch {last_epoch}", code="MLC0442", loc=user_loc(),
                                hint="load the state of the optimizer first, or set initial_lr in each group")
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch, self._step_count = last_epoch, 0
        self._begin()

    def hosts(self) -> list[Any]:
        """The objects that a step changes, besides the groups of the optimizer. A function that is compiled and calls
        `step` looks at them in each call.

        Returns:
            The scheduler, and those that it is made of.
        """
        return [self]

    def _begin(self) -> None:
        """Make the first step, which belongs to the construction."""
        self._step_count = 0
        self._is_initial = True
        self.step()
        del self._is_initial

    def get_lr(self) -> list[float]:
        """Compute the learning rates of `last_epoch`; every subclass defines it.

        Returns:
            One rate for each group.

        Raises:
            UserTypeError: The subclass does not define it (MLC0448).
        """
        raise UserTypeError(f"{type(self).__name__} does not define get_lr", code="MLC0448", loc=user_loc())

    def _closed_form(self) -> list[float]:
        """The rates of `last_epoch` if any other epoch may have been the one before."""
        return self.get_lr()

    def get_last_lr(self) -> list[float]:
        """The learning rates that the last step set.

        Returns:
            One rate for each group.

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
            >>> mlc.optim.lr_scheduler.StepLR(opt, step_size=1).get_last_lr()
            [0.4]
        """
        return self._last_lr

    @deferred
    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch.

        Within a compiled function it runs after each call of that, and so changes the rates of the next call.

        Args:
            epoch: Number of an epoch to go to instead.

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
            >>> scheduler = mlc.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.5)
            >>> opt.step()
            >>> scheduler.step()
            >>> opt.param_groups[0]["lr"]
            0.2
        """
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self._closed_form())

    def _set(self, rates: Sequence[float]) -> None:
        """Set the learning rates of the groups."""
        for group, lr in zip(self.optimizer.param_groups, rates):
            if isinstance(group["lr"], Tensor):            # which others may hold, too
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self._last_lr = self._rates()

    def _rates(self) -> list[float]:
        """The learning rates that the groups have."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def _restart(self) -> None:
        """Begin anew at epoch 0, when another schedule has ended."""
        self.last_epoch = 0
        self._set(self._closed_form())

    def _undo(self) -> None:
        """Go back to before the last step, except for the rates."""
        self.last_epoch -= 1

    def state_dict(self) -> dict[str, Any]:
        """Collect the state: all attributes but the optimizer, whose state holds the rates of the groups.

        Returns:
            Dict, in which objects that are called stand by their attributes, and functions as None.

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
            >>> state = mlc.optim.lr_scheduler.StepLR(opt, step_size=3).state_dict()
            >>> state["step_size"], state["last_epoch"], state["base_lrs"]
            (3, 0, [0.4])
        """
        flags = _BETWEEN_STEPS if "_step_count" in vars(self) else {}
        return {**flags, **{name: _saved(x) if name in self.callables else x
                            for name, x in vars(self).items() if name not in ("optimizer", *self.unsaved)}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state. It does not change the rates of the groups: load the state of the optimizer too.

        Args:
            state_dict: Result of `state_dict` of a scheduler of the same class and number of groups.

        Raises:
            UserError: The state is that of another class, or of another number of groups (MLC0444).

        Example:
            >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
            >>> first, other = (mlc.optim.lr_scheduler.StepLR(opt, step_size=3) for _ in range(2))
            >>> opt.step()
            >>> first.step()
            >>> other.load_state_dict(first.state_dict())
            >>> other.last_epoch
            1
        """
        self._check_state(self.state_dict(), state_dict)
        for name, x in state_dict.items():
            if name in _BETWEEN_STEPS:
                continue
            if name not in self.callables:
                setattr(self, name, x)
                continue
            own = getattr(self, name)
            for f, attributes in zip(own if isinstance(own, list) else [own], x if isinstance(x, list) else [x]):
                if attributes is not None:
                    vars(f).update(attributes)

    def _check_state(self, own: Mapping[str, Any], loaded: Mapping[str, Any]) -> None:
        """UserError if a state cannot be that of this scheduler."""
        for name in own.keys() ^ loaded.keys():
            there, here = ("no ", "has one") if name in own else ("", "has none")
            raise UserError(f"the state has {there}{name}, and {type(self).__name__} {here}", code="MLC0444",
                            loc=user_loc(), hint="load the result of state_dict of a scheduler of the same class")
        for name, x in own.items():
            if isinstance(x, list) and len(x) != len(loaded[name]):
                raise UserError(f"{name} of the state has {len(loaded[name])} entries, that of {type(self).__name__} "
                                f"{len(x)}", code="MLC0444", loc=user_loc(),
                                hint="the optimizers must have equally many groups")


def _saved(x: Any) -> Any:
    """The state of a function, or of each of a list."""
    return [_attributes_of(f) for f in x] if isinstance(x, list) else _attributes_of(x)


def _attributes_of(f: Callable[..., Any] | None) -> dict[str, Any] | None:
    """The state of an object that is called; None for a function, which has none."""
    return None if isinstance(f, FunctionType) or not hasattr(f, "__dict__") else dict(vars(f))


def checked_optimizer(optimizer: Any, name: str) -> Optimizer:
    """The optimizer, if a scheduler can set its learning rates."""
    if not isinstance(optimizer, Optimizer):
        raise UserTypeError(f"{name} takes an optimizer, found {type(optimizer).__name__}", code="MLC0440",
                            loc=user_loc(), hint=f"{name}(mlc.optim.Adam(model.parameters(), lr=1e-3), ...)")
    if "param_groups" not in vars(optimizer):
        raise UserError(f"{name} sets the learning rates of an optimizer that holds parameters, and this "
                        f"{type(optimizer).__name__} holds none", code="MLC0440", loc=user_loc(),
                        hint="make it with parameters, as in Adam(model.parameters()); the learning rate of an "
                             "optimizer without them is a schedule of mlc.optim.schedules")
    if any(callable(group["lr"]) for group in optimizer.param_groups):
        raise UserError(f"{name} was given an optimizer whose learning rate is a schedule already", code="MLC0440",
                        loc=user_loc(), hint="make it with a number, as in Adam(model.parameters(), lr=1e-3)")
    return optimizer


def for_each_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for each group, from a list of them or one for all; UserError (MLC0441) for another number."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise UserError(f"{name} has {len(value)} entries, and the optimizer {count} groups", code="MLC0441",
                        loc=user_loc(), hint="give one for each group, or one value for all")
    return list(value)


def require(condition: bool, message: str, code: str = "MLC0441") -> None:
    """Raise UserError with a message unless a condition holds, such as that a setting is in range."""
    if not condition:
        raise UserError(message, code=code, loc=user_loc())


coded_methods(LRScheduler, ("__init__", "step", "load_state_dict"))
