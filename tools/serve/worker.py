"""The thread of a language model: it loads the model, and runs the steps of its scheduler; nothing else does."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from mlc.ir.diag import Error
from mlc.models import Piece, Scheduler, load
from mlc.models.cache import PAGE, CacheType
from mlc.models.generation import Request
from mlc.models.language_model import LanguageModel, draft_named
from mlc.models.scheduler import Ticket
from mlc.tools.serve.errors import ApiError

log = logging.getLogger("mlc.serve")

IDLE_SECONDS = 0.05
"""How long a thread without work sleeps: deadlines of requests are noticed by then."""


@dataclass(frozen=True)
class Limits:
    """Limits of a server; each has an option of the command.

    slots       requests that a model runs at once
    queue       requests that may wait
    context     tokens of a request, the answer included; None for the scheduler's default
    max_tokens  tokens of an answer
    seconds     that an answer may take
    body        bytes of a request
    warm_up     whether all steps are compiled before the first request
    draft       what guesses tokens: "lookup", or the folder of a smaller model; None for nothing
    cache_dtype type of the numbers of caches
    integers    whether quantised weights are multiplied by integers
    memory      tokens that a cache has room for; None for the context of each slot
    """

    slots: int = 8
    queue: int = 64
    context: int | None = None
    max_tokens: int = 4096
    seconds: float = 600.0
    body: int = 8 << 20
    warm_up: bool = True
    draft: str | None = None
    cache_dtype: CacheType = "float32"
    integers: bool = False
    memory: int | None = None


class LanguageWorker:
    """A language model that is served.

    name    of the model in requests
    path    its folder
    limits  of the server
    """

    kind = "language model"

    def __init__(self, name: str, path: str, limits: Limits) -> None:
        self.name, self.path, self.limits = name, path, limits
        self.created = int(time.time())
        self.state = "loading"
        self.reason = ""
        self.lock = threading.Lock()                       # of what makes requests: tokenizer, automata, seeds
        self._model: LanguageModel | None = None
        self._scheduler: Scheduler | None = None
        self._calls = deque[tuple[Callable[[], Any], Future[Any]]]()
        self._callers = 0                                  # requests whose calls are not all answered
        self._wake = threading.Event()
        self._lost = False                                 # whether the memory of the model has to be renewed
        self._stop: str | None = None                      # the reason that running requests are told; "" for none
        self._thread = threading.Thread(target=self._run, name=f"mlc-{name}", daemon=True)

    def start(self) -> None:
        """Load the model, in its thread."""
        self._thread.start()

    @property
    def model(self) -> LanguageModel:
        """The model, once it is loaded."""
        assert self._model is not None
        return self._model

    @property
    def scheduler(self) -> Scheduler:
        """Its scheduler; an encoder has none."""
        assert self._scheduler is not None
        return self._scheduler

    @property
    def ready(self) -> bool:
        """Whether it takes requests."""
        return self.state == "ready"

    # -- for the event loop -------------------------------------------------------------------------------------------
    async def prepare(self, make: Callable[[LanguageModel], Any]) -> Any:
        """The result of a function of the model that takes some time, such as to make tokens of a text."""
        def locked() -> Any:
            with self.lock:
                return make(self.model)

        return await asyncio.to_thread(locked)

    async def call(self, *functions: Callable[[], Any]) -> list[Any]:
        """The results of functions that run the model, in its thread: of one at a time, between two steps."""
        self.check_ready()
        if self._callers >= self.limits.queue:
            raise ApiError(429, f"{self._callers} requests wait already", None, "MLC0918")
        self._callers += 1
        try:
            return [await self._call(function) for function in functions]
        finally:
            self._callers -= 1
            self._wake.set()

    async def _call(self, function: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        self._calls.append((function, future))
        if self.state == "stopped":                        # after the thread has refused those that it found
            self._refuse_calls()
        self._wake.set()
        return await asyncio.wrap_future(future)

    def check_generates(self) -> None:
        """Refuse a request for an answer that an encoder cannot give."""
        if not self.model.generates:
            raise ApiError(400, f"{self.name} is an encoder, which gives embeddings only: use /v1/embeddings", "model",
                           "MLC0990")

    def check_ready(self) -> None:
        """Refuse a request that the model cannot take now."""
        if self.state != "ready":
            raise ApiError(503, f"the model {self.name} is {self.state}" + (f": {self.reason}" if self.reason else ""))

    def submit(self, requests: Sequence[Request], top: int | None) -> Stream:
        """Have requests answered together; all are taken or none."""
        self.check_ready()
        if len(requests) > (most := self.limits.slots + self.limits.queue):
            raise ApiError(400, f"a request asks for {len(requests)} answers, and the server takes {most} at most", "n")
        stream = Stream(self, len(requests))
        try:
            for i, request in enumerate(requests):
                stream.tickets.append(self.scheduler.submit(
                    request.limited(self.limits.max_tokens), stream.receiver(i), top=top, seconds=self.limits.seconds))
        except Error:
            stream.cancel()
            raise
        self._wake.set()
        return stream

    def wake(self) -> None:
        """Have the thread look for something to do."""
        self._wake.set()

    def stop(self, reason: str = "") -> None:
        """End the thread once its requests are answered, or, with a reason, now; each is told the reason."""
        self.state = "stopping" if self.state != "failed" else self.state
        self._stop = reason
        self._wake.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread."""
        if self._thread.ident is not None:
            self._thread.join(seconds)

    # -- the thread ---------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._load()
        except Exception as error:                         # whatever it is, requests are told, and the server goes on
            self.state, self.reason = "failed", error.message if isinstance(error, Error) else str(error)
            log.error("model %s: %s", self.name, error, exc_info=not isinstance(error, Error | OSError | MemoryError))
            return
        while self._stop is None or (self._stop == "" and (self._callers or self._answers())):
            try:
                self._turn()
            except Exception:                              # such as that of a client whose loop has ended
                log.exception("model %s: its thread goes on", self.name)
                time.sleep(IDLE_SECONDS)
        if self._scheduler is not None:
            self._scheduler.close(self._stop or "cancelled")
        self.state = "stopped"
        self._refuse_calls()

    def _refuse_calls(self) -> None:
        while (found := self._next_call()) is not None:
            found[1].set_exception(ApiError(503, f"the model {self.name} stops"))

    def _next_call(self) -> tuple[Callable[[], Any], Future[Any]] | None:
        """The call that has waited longest and that anybody still waits for."""
        while self._calls:
            try:
                function, future = self._calls.popleft()
            except IndexError:                             # another thread, which refuses calls, was faster
                return None
            if future.set_running_or_notify_cancel():
                return function, future
        return None

    def _answers(self) -> bool:
        """Whether requests are being answered, or wait to be."""
        return self._scheduler is not None and bool(self._scheduler.waiting or self._scheduler.running)

    def _load(self) -> None:
        started = time.perf_counter()
        self._model = load(self.path, integer_products=self.limits.integers, cache_dtype=self.limits.cache_dtype)
        if self.limits.warm_up:
            self.model.embed([0])
        if not self.model.generates:
            self.state = "ready" if self._stop is None else self.state
            log.info("model %s is ready after %.1f s: an encoder", self.name, time.perf_counter() - started)
            return
        self._scheduler = Scheduler(self.model, slots=self.limits.slots, capacity=self.limits.context,
                                    memory=self.limits.memory, queue=self.limits.queue,
                                    draft=draft_named(self.limits.draft))
        for _ in self.scheduler.warm_up() if self.limits.warm_up else ():
            if self._stop is not None:
                return
        if self._stop is None:
            self.state = "ready"
            slots = self.scheduler.slots
            log.info("model %s is ready after %.1f s: %d requests of at most %d tokens at once, a cache of %d tokens, "
                     "%.1f MB", self.name, time.perf_counter() - started, slots.count, slots.capacity,
                     slots.pages.count * PAGE, slots.nbytes / 1e6)

    def _turn(self) -> None:
        """A call that waits, and a step; an error ends the requests that it concerns, and not the thread."""
        if (found := self._next_call()) is not None:
            function, future = found
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)
        try:
            if self._lost and self._answers():             # if even that fails, it is tried again for the next request
                self.scheduler.clear()
                self._lost = False
            busy = self._scheduler is not None and self._scheduler.step()
        except Exception:
            log.exception("model %s: a step failed; its requests end", self.name)
            self._lost = True
            self.scheduler.close("error")
            return
        if not busy and not self._calls:
            self._wake.wait(IDLE_SECONDS)
            self._wake.clear()


class Stream:
    """The pieces of some requests, as they come, for one task of the event loop.

    tickets  of the requests
    """

    def __init__(self, worker: LanguageWorker, count: int) -> None:
        self.worker, self.count = worker, count
        self.tickets: list[Ticket] = []
        self._loop = asyncio.get_running_loop()
        self._queue = asyncio.Queue[tuple[int, Piece]]()

    def receiver(self, number: int) -> Callable[[Piece], None]:
        """The function that the scheduler calls with the pieces of a request."""
        def receive(piece: Piece) -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._queue.put_nowait, (number, piece))

        return receive

    async def pieces(self) -> AsyncIterator[tuple[int, Piece]]:
        """The pieces with the numbers of their requests, until all have ended."""
        left = self.count
        try:
            while left:
                number, piece = await self._queue.get()
                left -= piece.finish_reason is not None
                yield number, piece
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End what has not ended."""
        for ticket in self.tickets:
            if ticket.answer.finished is None:
                self.worker.scheduler.cancel(ticket)
        self.worker.wake()
