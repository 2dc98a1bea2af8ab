"""Iterations over a dataset: in this process, or by workers, whose batches come back in order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.ir.profiling import timed
from mlc.utils.data.fetch import EXHAUSTED, Fetching
from mlc.utils.data.pool import Pool
from mlc.utils.data.worker import Exhausted, Failure, WorkerError

AWAITED = object()
"""In place of a batch that a worker was asked for."""


@dataclass
class Progress:
    """Position in a pass over a dataset: the state at its start, and the number of batches given out since."""

    start: dict[str, Any]
    batches: int = 0
    finished: bool = False


class Batches(Iterator[Any]):
    """An iteration whose batches are events of a profile."""

    def __next__(self) -> Any:
        return timed("data", "DataLoader", self.next_batch)

    def next_batch(self) -> Any:
        """The next batch; StopIteration after the last one."""
        raise NotImplementedError


class InThisProcess(Batches):
    """The batches of these indices, each made when it is asked for."""

    def __init__(self, fetching: Fetching, indices: Iterator[Any], progress: Progress) -> None:
        self._fetch = fetching.start()
        self._indices = indices
        self._progress = progress

    def next_batch(self) -> Any:
        if self._progress.finished or (index := next(self._indices, EXHAUSTED)) is EXHAUSTED:
            self._progress.finished = True
            raise StopIteration
        self._progress.batches += 1
        try:
            batch = self._fetch(index)
        except StopIteration as error:
            raise UserError("the dataset, or collate_fn, raised StopIteration, which would end the loop over the data "
                            "loader", code="MLC0708", loc=user_loc()) from error
        if batch is EXHAUSTED:
            self._progress.batches -= 1
            self._progress.finished = True
            raise StopIteration
        return batch


class ByWorkers(Batches):
    """The batches of these indices, made by workers ahead of their use.

    At most `pool.prefetch` batches per worker are being made or wait to be given out. Workers take turns, so the order
    of an iterable-style dataset depends on nothing but their number.

    Args:
        pool: The workers.
        indices: An index for each batch; endless for an iterable-style dataset.
        progress: Where to count the batches.
        in_order: Whether batches are given out in the order of their indices; otherwise as they come.
        timeout: Seconds to wait for a batch; 0 for any time.
        keep: Whether the workers stay after the last batch.
    """

    def __init__(self, pool: Pool, indices: Iterator[Any], progress: Progress, *, in_order: bool, timeout: float,
                 keep: bool) -> None:
        self._pool = pool
        self._indices = indices
        self._progress = progress
        self._in_order = in_order
        self._timeout = timeout
        self._keep = keep
        self._turns = list(range(len(pool.channels)))      # the workers that have not reached the end of their part
        self._pending: dict[int, Any] = {}                 # answers by the numbers of their requests
        self._over = False
        self._user = pool.begin()
        self._request()

    def next_batch(self) -> Any:
        if self._over:
            raise StopIteration
        if self._pool.user is not self._user:
            raise UserError("this iteration has ended: a later one over the same loader has taken its persistent "
                            "workers", code="MLC0714", loc=user_loc(),
                            hint="make a second loader to iterate twice at the same time")
        if not self._pool.usable:
            raise UserError("this iteration has workers of the process that this one was forked from", code="MLC0714",
                            loc=user_loc(), hint="begin the iteration in this process")
        try:
            batch = self._next()
        except BaseException:                              # Ctrl-C too: an iterator in a traceback would keep workers
            self._over = True
            self._pool.close()
            raise
        if batch is EXHAUSTED:
            self._over = self._progress.finished = True
            if not self._keep:
                self._pool.close()
            raise StopIteration
        self._progress.batches += 1
        if isinstance(batch, Failure):                     # its worker goes on, and the program may do so too
            raise batch.exception()
        return batch

    def _next(self) -> Any:
        """The next batch or Failure; EXHAUSTED after the last one."""
        deadline = time.monotonic() + self._timeout if self._timeout else None
        self._receive(0)                                   # a worker's death is noticed while others are ahead, too
        while self._pending or self._turns:                # nothing is pending while all finish an earlier iteration
            first = next(iter(self._pending), None)
            arrived = (n for n, batch in self._pending.items() if batch is not AWAITED)
            due = first if self._in_order else next(arrived, first)
            if due is None or self._pending[due] is AWAITED:
                self._receive(None if deadline is None else max(0.0, deadline - time.monotonic()))
                late = due is None or self._pending[due] is AWAITED
                if late and deadline is not None and time.monotonic() >= deadline:
                    raise WorkerError(f"the workers of the data loader have made no batch for {self._timeout} s",
                                      code="MLC0707", loc=user_loc(),
                                      hint="raise `timeout`, or look for what the dataset waits for")
                continue
            batch = self._pending.pop(due)
            self._request()
            if not isinstance(batch, Exhausted):
                return batch
        return EXHAUSTED

    def _receive(self, timeout: float | None) -> None:
        for worker, (number, answer) in self._pool.receive(timeout):
            if number in self._pending:                    # otherwise of an earlier iteration
                self._pending[number] = answer
                if isinstance(answer, Exhausted) and worker in self._turns:
                    self._turns.remove(worker)
        self._request()

    def _request(self) -> None:
        """Ask for as many batches as may be under way."""
        while len(self._pending) < self._pool.prefetch * len(self._turns):
            turn = next((i for i, worker in enumerate(self._turns) if self._pool.free(worker)), None)
            if turn is None or (turn and self._in_order):
                return
            if (index := next(self._indices, EXHAUSTED)) is EXHAUSTED:
                self._turns = []
                return
            worker = self._turns.pop(turn)
            self._turns.append(worker)
            self._pending[self._pool.request(worker, index)] = AWAITED
