"""The order of the work of a rank: schedules of pipelines.

    gpipe        forward of all microbatches, then backward of all
    1f1b         as few forwards as keep all ranks busy, and then one backward and one forward in turns
    interleaved  the same, where each rank has several stages: rank r of n has r, r + n, ..., whose work is smaller

Backward is in the order of the microbatches, as forward is, so that gradients are added in this order under each
schedule. With 1f1b a rank holds the values of at most as many microbatches as there are ranks behind it and itself,
with gpipe those of all. A rank waits for others in (n - 1) / (m + n - 1) of the time, for m microbatches; interleaved
stages, v on each rank, make the wait v times shorter, for as many times more messages.

With gpipe and 1f1b there may be more stages than ranks: consecutive ones are one stage of a rank (`position`).

The orders are those of GPipe (Huang et al. 2019) and of Megatron-LM (Narayanan et al. 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Task:
    """Forward or backward of a microbatch at a stage."""

    stage: int
    backward: bool
    microbatch: int


def gpipe(rank: int, ranks: int, stages: int, microbatches: int) -> list[Task]:
    """Forward of all microbatches, then backward."""
    own = range(rank, stages, ranks)
    return [*(Task(s, False, i) for s in own for i in range(microbatches)),
            *(Task(s, True, i) for s in reversed(own) for i in range(microbatches))]


def one_forward_one_backward(rank: int, ranks: int, stages: int, microbatches: int) -> list[Task]:
    """Forwards until the first backward can begin, then backwards and forwards in turns."""
    ahead = min(ranks - rank - 1, microbatches)
    return _in_turns([Task(rank, False, i) for i in range(microbatches)],
                     [Task(rank, True, i) for i in range(microbatches)], ahead)


def interleaved(rank: int, ranks: int, stages: int, microbatches: int) -> list[Task]:
    """The same, of the stages of a rank in turns: each takes as many microbatches as there are ranks."""
    own = list(range(rank, stages, ranks))
    rounds = range(0, microbatches, ranks)
    forward = [Task(s, False, i) for start in rounds for s in own for i in range(start, start + ranks)]
    backward = [Task(s, True, i) for start in rounds for s in reversed(own) for i in range(start, start + ranks)]
    ahead = min(2 * (ranks - rank - 1) + (len(own) - 1) * ranks, len(forward))
    return _in_turns(forward, backward, ahead)


def _in_turns(forward: list[Task], backward: list[Task], ahead: int) -> list[Task]:
    """Some tasks of the first list, then one of each in turns, and what is left of the second."""
    turns = [task for pair in zip(forward[ahead:], backward) for task in pair]
    return [*forward[:ahead], *turns, *backward[len(forward) - ahead:]]


Schedule = Callable[[int, int, int, int], list[Task]]
SCHEDULES: dict[str, Schedule] = {"gpipe": gpipe, "1f1b": one_forward_one_backward, "interleaved": interleaved}
DEFAULT = "1f1b"


def order(schedule: str, rank: int, ranks: int, stages: int, microbatches: int, backward: bool) -> list[Task]:
    """The tasks of a rank in their order; without a backward part, the forward ones."""
    tasks = SCHEDULES[schedule](rank, ranks, stages, microbatches)
    return tasks if backward else [task for task in tasks if not task.backward]


def problem(schedule: str, ranks: int, stages: int, microbatches: int) -> str | None:
    """The reason why there is no such schedule; None if there is one."""
    if schedule not in SCHEDULES:
        return f"there is no schedule {schedule!r}; there are {', '.join(SCHEDULES)}"
    if stages < ranks:
        return f"schedule {schedule} needs a stage for each of {ranks} ranks, and there are {stages}"
    if schedule == "interleaved" and stages % ranks:
        return f"{stages} stages are no multiple of {ranks} ranks"
    if schedule == "interleaved" and microbatches % ranks:
        return f"schedule interleaved takes rounds of {ranks} microbatches, and there are {microbatches}"
    return None


def position(schedule: str, stage: int, ranks: int, stages: int) -> int:
    """The position of a stage among the ranks of a pipeline: in turns if it is interleaved, else in blocks."""
    return stage % ranks if schedule == "interleaved" else stage * ranks // stages
