"""Runs batches of seeds in a child process, which may crash or hang."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from mlc.tools.child import Child, Tell
from mlc.tools.fuzzing.levels import Failure, key_of

HANGS = 5.0
"""Seconds after which a seed counts as hanging; rejecting an input takes milliseconds."""
BUSY = 6
"""Factor by which a seed may take longer by the clock, where other work takes the processors."""


@dataclass
class Done:
    """Result of a batch of seeds: the number completed, the failures, and the processor time."""

    count: int
    failures: list[tuple[int, Failure]]
    seconds: float


def run(examine: Callable[[int], Failure | None], seeds: Sequence[int], seconds: float = HANGS,
        until: float | None = None) -> Done:
    """Examine seeds in a child process; a crash or timeout is a failure of its seed, and the others continue.

    until  the value of `time.monotonic` at which no further seed is begun
    """
    done, left = Done(0, [], 0.0), list(seeds)
    while left and (until is None or time.monotonic() < until):
        child = Child(partial(_examine_all, examine, left, until))
        died: str | None = None
        try:
            for answer in child.answers(seconds, BUSY):
                if answer is not None:
                    done.failures.append((left[0], Failure(**answer)))
                done.count += 1
                left = left[1:]
            died = child.end()
        except TimeoutError:
            child.end(kill=True)
            died = f"no end within {seconds:g} s"
        done.seconds += child.seconds
        if died is None:
            break
        done.failures.append((left[0], Failure(died, f"seed {left[0]} ends with {died}")))
        done.count, left = done.count + 1, left[1:]
    return done


def _examine_all(examine: Callable[[int], Failure | None], seeds: Sequence[int], until: float | None,
                 tell: Tell) -> None:
    warnings.simplefilter("ignore")                        # numpy and PyTorch have views of what they are given
    for seed in seeds:
        if until is not None and time.monotonic() > until:
            return
        try:
            found = examine(seed)
        except Exception as error:                         # of making the program, say: a finding like others
            place = traceback.extract_tb(error.__traceback__)[-1]
            found = Failure(key_of(error, f"{Path(place.filename).name} {place.name}"),
                            f"{type(error).__name__}: {error}")
        tell(asdict(found) if found is not None else None)
