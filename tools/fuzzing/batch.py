"""Work in a process of its own, which may crash or hang: seeds one after the other, and single questions."""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mlc.tools.fuzzing.levels import Failure, key_of

Tell = Callable[[Any], None]
HANGS = 5.0
"""Seconds of one seed after which it counts as hanging: refusing an input takes milliseconds."""


@dataclass
class Done:
    """A batch of seeds: how many came to an end, how it went, and the processor time they took."""

    count: int
    failures: list[tuple[int, Failure]]
    seconds: float


class Child:
    """A forked process that tells things as JSON, a line each."""

    def __init__(self, work: Callable[[Tell], None]) -> None:
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            faulthandler.disable()                         # how it ends is told by its status
            with os.fdopen(writer, "w", encoding="utf-8") as out:
                try:
                    work(lambda told: print(json.dumps(told), file=out, flush=True))
                finally:
                    out.flush()
                    os._exit(0)                            # nothing of the parent's is cleaned up twice
        os.close(writer)
        self.reader, self.rest = reader, b""
        self.status, self.seconds = 0, 0.0

    def told(self, seconds: float) -> Iterator[Any]:
        """What the child tells until its end; TimeoutError where it says nothing for so long."""
        while True:
            while (end := self.rest.find(b"\n")) >= 0:
                line, self.rest = self.rest[:end], self.rest[end + 1:]
                yield json.loads(line)
            if not select.select([self.reader], [], [], seconds)[0]:
                raise TimeoutError
            if not (data := os.read(self.reader, 1 << 16)):
                return
            self.rest += data

    def end(self, kill: bool = False) -> str | None:
        """Wait for the end, or bring it about; the name of the signal that ended the process."""
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reader)
        _, status, used = os.wait4(self.pid, 0)
        self.seconds = used.ru_utime + used.ru_stime
        return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) and not kill else None


def run(examine: Callable[[int], Failure | None], seeds: Sequence[int], seconds: float = HANGS,
        until: float | None = None) -> Done:
    """Examine seeds in a child; what crashes it or takes so long is a failure of that seed, and the others go on.

    until  the value of `time.monotonic` at which no further seed is begun
    """
    done, left = Done(0, [], 0.0), list(seeds)
    while left and (until is None or time.monotonic() < until):
        child = Child(partial(_examine_all, examine, left, until))
        died: str | None = None
        try:
            for told in child.told(seconds):
                if told is not None:
                    done.failures.append((left[0], Failure(**told)))
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


def ask(question: Callable[[], str | None], seconds: float) -> str | None:
    """The answer to one question that may crash or hang: then that is the answer."""
    child = Child(lambda tell: tell(question()))
    try:
        answers = list(child.told(seconds))
    except TimeoutError:
        child.end(kill=True)
        return f"no end within {seconds:g} s"
    return child.end() or next(iter(answers), None)
