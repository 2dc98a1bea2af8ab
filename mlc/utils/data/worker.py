"""The process of a worker: it receives indices, and sends batches or the errors that occurred."""

from __future__ import annotations

import multiprocessing.process
import operator
import os
import queue
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

import mlc.api
from mlc.frontend.arguments import coded
from mlc.frontend.generator import manual_seed
from mlc.frontend.location import user_loc
from mlc.ir.diag import UNKNOWN, Error
from mlc.utils.data.fetch import EXHAUSTED, Fetching
from mlc.utils.data.shared_memory import Packed, SharedMemory

GRACE = 2.0
"""Seconds that a worker has to end by itself after the main process has closed the connection, or has died."""


class WorkerError(Error, RuntimeError):
    """A worker of a data loader has failed. It is a RuntimeError, as in PyTorch."""

    default_code = "MLC0706"


@dataclass(frozen=True)
class WorkerInfo:
    """The worker that runs: its number, how many there are, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


@coded
def get_worker_info() -> WorkerInfo | None:
    """Information about the worker of a `DataLoader` that this process is.

    Returns:
        Object with `id`, `num_workers`, `seed` (the seed of the epoch plus `id`) and `dataset`; None in any other
        process.

    Example:
        >>> mlc.utils.data.get_worker_info() is None
        True
    """
    return _info


# -- messages ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Fetch:
    """Request for the batch of an index; its answer is a Batch, Exhausted or Failure of the same number."""

    number: int
    index: Any


@dataclass(frozen=True)
class Restart:
    """Request to begin another pass over the dataset."""


@dataclass(frozen=True)
class Batch:
    """A batch, with its large arrays in shared memory `slot`."""

    number: int
    slot: int
    data: Packed


@dataclass(frozen=True)
class Exhausted:
    """The worker's part of an iterable-style dataset has no more samples."""

    number: int


@dataclass(frozen=True)
class Failure:
    """An error in a worker, by the name of its class, since not every exception can be passed to another process."""

    number: int
    module: str
    name: str
    text: str
    error: dict[str, Any]

    @staticmethod
    def of(error: Exception, number: int, worker: int) -> Failure:
        kind, details = type(error), dict[str, Any]()
        text = f"{kind.__name__} in worker {worker} of the data loader\n"
        if isinstance(error, Error):
            text += "Traceback (most recent call last):\n" + "".join(traceback.format_tb(error.__traceback__))
            # the nearest frame that is not mlc's is in multiprocessing, unless the dataset or collate_fn is to blame
            loc = UNKNOWN if error.loc.file == multiprocessing.process.__file__ else error.loc
            details = {"message": error.message, "code": error.code, "loc": loc, "hint": error.hint,
                       "notes": (*error.notes, text.rstrip())}
        else:
            text += "".join(traceback.format_exception(error))
        return Failure(number, kind.__module__.replace("__mp_main__", "__main__"), kind.__qualname__, text, details)

    def exception(self) -> Exception:
        """An exception of the same class whose text has the worker's traceback; a WorkerError if there can be none."""
        unknown, details = WorkerError(self.text, code="MLC0708"), dict(self.error)
        if details and not details["loc"].file:
            details["loc"] = user_loc()
        try:
            kind = operator.attrgetter(self.name)(sys.modules[self.module])
        except (KeyError, AttributeError):                 # a class that was made in the worker
            return unknown
        if not issubclass(kind, Exception) or issubclass(kind, StopIteration):      # which would only end the loop
            return unknown
        try:
            error: Exception = kind(**details) if details else kind(_Text(self.text))
        except (TypeError, ValueError, AttributeError, LookupError):                # it takes other arguments
            return unknown
        return error


class _Text(str):
    """Text that is its own representation: a KeyError shows that."""

    __slots__ = ()
    __repr__ = str.__str__


# -- the process ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Job:
    """Everything that a worker is given when it starts."""

    id: int
    num_workers: int
    seed: int
    fetching: Fetching
    init: Callable[[int], Any] | None
    tasks: Connection
    results: Connection
    slots: list[SharedMemory]


def run(job: Job) -> None:
    """Answer the requests of the main process until it asks to stop, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)           # Ctrl-C is for the main process, which stops its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)          # by this, whatever the program does when it gets it
    requests = queue.SimpleQueue[Any]()
    threading.Thread(target=_receive, args=(job.tasks, requests), daemon=True).start()
    try:
        _answer_all(job, requests)
    except BrokenPipeError:                                # the main process wants no more results
        return


def _receive(tasks: Connection, requests: queue.SimpleQueue[Any]) -> None:
    """Pass requests on as they come, so that the main process never has to wait for a busy worker."""
    try:
        while (request := tasks.recv()) is not None:
            requests.put(request)
    except (EOFError, OSError):
        requests.put(None)
        time.sleep(GRACE)
        os._exit(1)                                        # the dataset does not return, and nobody waits for it
    requests.put(None)


def _answer_all(job: Job, requests: queue.SimpleQueue[Any]) -> None:
    fetch, failure, turn = None, None, 0
    try:
        _prepare(job)
    except Exception as error:
        failure = error
    while (request := requests.get()) is not None:
        if isinstance(request, Restart):
            fetch = None
            continue
        try:
            if failure is not None:
                raise failure
            fetch = fetch or job.fetching.start()
            batch = fetch(request.index)
            answer: Any = (Exhausted(request.number) if batch is EXHAUSTED
                           else Batch(request.number, turn, job.slots[turn].pack(batch)))
        except Exception as error:
            answer = Failure.of(error, request.number, job.id)
        job.results.send(answer)
        turn = (turn + 1) % len(job.slots)                 # the main process has read it: it has asked for more


def _prepare(job: Job) -> None:
    """Seed every generator for this worker, and let the user's function do the rest."""
    global _info
    seed = job.seed + job.id
    _info = WorkerInfo(job.id, job.num_workers, seed, job.fetching.dataset)
    random.seed(seed)
    np.random.seed(np.random.SeedSequence([job.seed, job.id]).generate_state(4))
    manual_seed(seed)
    mlc.api.set_num_threads(1)                             # there are as many processes as the user wants at work
    if job.init is not None:
        job.init(job.id)
