"""Schedules of profiles: in which steps of a program calls are recorded."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError


class ProfilerAction(Enum):
    """The state of a profile in a step; see `schedule`."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


@coded
def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
             ) -> Callable[[int], ProfilerAction]:
    """Make a function that says in which steps a profile records: cycles of `wait`, `warmup` and `active` steps.

    Args:
        wait: Number of steps in which nothing happens.
        warmup: Number of steps that take the paths of a profile, and are not recorded.
        active: Number of steps that are recorded; after the last one the trace is ready.
        repeat: Number of cycles; 0 for any.
        skip_first: Number of steps before the first cycle.

    Returns:
        Function of the number of a step, which returns a `ProfilerAction`.

    Raises:
        UserError: A number is below 0, or no step is active (MLC0796).

    Example:
        >>> f = mlc.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [f(i).name for i in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise UserError("schedule: numbers of steps are at least 0, and at least one step is active", code="MLC0796",
                        loc=user_loc())

    def action(step: int) -> ProfilerAction:
        cycle, at = divmod(step - skip_first, wait + warmup + active)
        if step < skip_first or (repeat and cycle >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        last = at == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action
