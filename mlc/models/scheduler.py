"""Continuous batching: requests join and leave the sequences that a model runs, between two steps.

The memory is fixed from the start: a number of slots, each with room for `capacity` tokens. A request waits until a
slot is free, has its prompt read in chunks, of which each step reads one, and then gets a token from each step. The
step is compiled for a few numbers of sequences and kinds of options, so that what joins compiles nothing; it runs the
first slots of the memory, up to the last one in use. The rows of a finished request stay: a prompt that begins with the
same tokens, as the next turn of a conversation does, takes over the slot and is read from where it differs.

An answer is, to the bit, the one that the request gets alone (sampling.py says why).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.cache import STEP
from mlc.models.generation import Answer, LogProbability, Piece, Request, log_probability
from mlc.models.slots import Slots
from mlc.models.text import Unfolding

if TYPE_CHECKING:
    from mlc.models.language_model import LanguageModel

Deliver = Callable[[Piece], None]

CAPACITY = 4096
"""Tokens that a slot has room for, unless more or less is asked for."""


class QueueFull(UserError):
    """No more requests may wait: the caller should try again later (MLC0918)."""


@dataclass(eq=False)
class Ticket:
    """A request that a scheduler has taken.

    number    of the request, in the order in which they came
    request   what is asked
    deliver   is called with each piece of the answer, in the thread that calls `step`
    top       how many likely tokens are reported for each token; None for no log-probabilities
    deadline  time (of time.monotonic) at which the answer ends
    answer    as it grows
    slot      where its rows are; None while it waits
    reused    number of tokens whose rows were there before
    cancelled whether nobody wants the answer any more
    """

    number: int
    request: Request
    deliver: Deliver
    top: int | None
    deadline: float
    answer: Answer
    slot: int | None = None
    reused: int = 0
    cancelled: bool = False

    @property
    def length(self) -> int:
        """The number of tokens of the prompt and the answer so far."""
        return len(self.request.prompt) + len(self.answer.tokens)


@dataclass
class Counters:
    """Numbers of what a scheduler has done, for metrics.

    prompt_tokens   read, those that were reused not included
    reused_tokens   of prompts, whose rows were there
    tokens          of answers
    steps           that wrote tokens
    finished        requests by the reason of their end
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    tokens: int = 0
    steps: int = 0
    finished: dict[str, int] = field(default_factory=dict)


class Scheduler:
    """Answers many requests with one model; `submit` and `cancel` may be called from any thread, `step` from one.

    Args:
        model: A model that `mlc.models.load` returns.
        slots: How many requests run at once.
        capacity: Tokens of a request, the answer included; by default those that the model sees, 4096 at most.
        queue: How many requests may wait.

    Raises:
        UserError: A number is out of its range (MLC0916).

    Example:
        >>> from mlc.models.scheduler import Scheduler
        >>> model = mlc.models.load("examples/assistant")
        >>> scheduler = Scheduler(model, slots=1)
        >>> requests, _ = model.requests(["The tensor dialect"], max_tokens=3)
        >>> [piece.finish_reason for piece in scheduler.stream(requests[0])]
        [None, None, 'length']
    """

    def __init__(self, model: LanguageModel, *, slots: int = 8, capacity: int | None = None, queue: int = 64) -> None:
        if slots < 1 or queue < 0 or (capacity is not None and capacity < 2):
            raise UserError(f"slots is {slots}, capacity {capacity} and queue {queue}", code="MLC0916", loc=user_loc(),
                            hint="a scheduler has at least one slot, of two tokens")
        self.model = model
        self.slots = Slots(model.steps, slots, min(capacity or CAPACITY, model.config.context))
        self.limit = queue
        self.counters = Counters()
        self._lock = threading.Lock()
        self._waiting = deque[Ticket]()
        self._running: list[Ticket | None] = [None] * slots
        self._used = [0] * slots                           # when a slot was last in use
        self._clock = itertools.count(1)

    # -- from any thread ----------------------------------------------------------------------------------------------
    def submit(self, request: Request, deliver: Deliver, *, top: int | None = None, seconds: float = 86400.0) -> Ticket:
        """Take a request.

        Args:
            request: What `LanguageModel.requests` makes of a prompt and options.
            deliver: Is called with each `Piece` of the answer, in the thread that calls `step`; the last piece has a
                `finish_reason`, which may be "cancelled" or "timeout" too.
            top: How many likely tokens are reported for each token; None for no log-probabilities.
            seconds: The longest time that the answer may take, waiting included.

        Returns:
            The ticket, for `cancel`.

        Raises:
            QueueFull: Too many requests wait (MLC0918).
            UserError: The prompt is longer than a slot (MLC0915).
        """
        capacity = self.slots.capacity
        if len(request.prompt) >= capacity:
            raise UserError(f"a prompt has {len(request.prompt)} tokens, and a slot of the scheduler {capacity}, the "
                            "answer included", code="MLC0915", loc=user_loc(), hint="shorten it")
        request = request.limited(capacity - len(request.prompt))
        text = Unfolding(self.model.tokenizer) if self.model.tokenizer is not None else None
        ticket = Ticket(next(self._clock), request, deliver, top, time.monotonic() + seconds, Answer(request, text))
        with self._lock:
            if len(self._waiting) - self._running.count(None) >= self.limit:
                raise QueueFull(f"{len(self._waiting)} requests wait already", code="MLC0918", loc=user_loc(),
                                hint="try again later, or allow more to wait")
            self._waiting.append(ticket)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """End an answer that nobody wants any more, before the next step.

        Args:
            ticket: What `submit` returned; one that has finished is left as it is.

        Returns:
            Nothing; the last piece is delivered by the next `step`.
        """
        ticket.cancelled = True

    @property
    def waiting(self) -> int:
        """How many requests have no slot yet."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many requests have a slot."""
        return sum(t is not None for t in self._running)

    # -- from the thread of the model ---------------------------------------------------------------------------------
    def step(self) -> bool:
        """Read a chunk of a prompt, and write a token of each request that is read.

        Returns:
            Whether there was anything to do.
        """
        self._end_unwanted()
        self._admit()
        if not self.running:
            return False
        with no_grad():
            unread = [(t, i) for i, t in enumerate(self._running) if t is not None and not self._ready(t, i)]
            if unread:
                self._read_chunk(*min(unread, key=lambda pair: pair[0].number))
            rows = [t if t is not None and self._ready(t, i) and self._goes_on(t) else None
                    for i, t in enumerate(self._running)]
            if any(rows):
                self._write(rows)
        return True

    def _ready(self, ticket: Ticket, slot: int) -> bool:
        """Whether all tokens but the last are in the slot: the step that writes reads that one."""
        return len(self.slots.contents[slot]) == ticket.length - 1

    def _goes_on(self, ticket: Ticket) -> bool:
        """Whether any token may come next; a request whose constraint the vocabulary cannot keep ends, and no other."""
        try:
            ticket.answer.mask()
        except UserError:
            self._finish(ticket, "constraint")
            return False
        return True

    def stream(self, request: Request, *, top: int | None = None) -> Iterator[Piece]:
        """Answer one request piece by piece, in this thread, beside whatever else was submitted.

        Args:
            request: What `LanguageModel.requests` makes of a prompt and options.
            top: As of `submit`.

        Returns:
            Iterator of pieces; if it is closed early, the request is cancelled.
        """
        pieces = deque[Piece]()
        ticket = self.submit(request, pieces.append, top=top)
        try:
            while True:
                while pieces:
                    piece = pieces.popleft()
                    yield piece
                    if piece.finish_reason is not None:
                        return
                self.step()
        finally:
            self.cancel(ticket)
            self._end_unwanted()

    def close(self, reason: str = "cancelled") -> None:
        """End all requests.

        Args:
            reason: The reason that they are told.

        Returns:
            Nothing.
        """
        with self._lock:
            waiting, self._waiting = list(self._waiting), deque()
        for ticket in [*waiting, *(t for t in self._running if t is not None)]:
            self._finish(ticket, reason)

    def _end_unwanted(self) -> None:
        now = time.monotonic()
        with self._lock:
            unwanted = [t for t in (*self._waiting, *self._running) if t and (t.cancelled or now > t.deadline)]
            self._waiting = deque(t for t in self._waiting if t not in unwanted)
        for ticket in unwanted:
            self._finish(ticket, "cancelled" if ticket.cancelled else "timeout")

    def _finish(self, ticket: Ticket, reason: str) -> None:
        """End a request with a piece without a token."""
        ticket.answer.finished = reason
        self._leave(ticket)
        ticket.deliver(Piece(0, "", None, None, reason))

    def _leave(self, ticket: Ticket) -> None:
        reason = ticket.answer.finished or ""
        self.counters.finished[reason] = self.counters.finished.get(reason, 0) + 1
        if ticket.slot is not None:
            self._used[ticket.slot] = next(self._clock)
            self._running[ticket.slot] = None

    def _admit(self) -> None:
        """Give free slots to the requests that have waited longest."""
        while (free := [i for i, t in enumerate(self._running) if t is None]) and self._waiting:
            with self._lock:
                ticket = self._waiting.popleft()
            slot = self._best_slot(ticket, free)
            ticket.slot, self._running[slot] = slot, ticket
            ticket.reused = self.slots.take(slot, ticket.request)
            self.counters.reused_tokens += ticket.reused

    def _best_slot(self, ticket: Ticket, free: list[int]) -> int:
        """The slot with the longest equal beginning; if none is worth it, one that makes the step no larger, and of
        those the one that was not used for longest."""
        shared = {i: self.slots.shared(i, ticket.request.prompt) for i in free}
        best = max(free, key=lambda i: shared[i])
        if shared[best] >= min(STEP // 2, len(ticket.request.prompt) - 1) > 0:
            return best
        return min(free, key=lambda i: (self.slots.size_for(i), self._used[i], i))

    def _read_chunk(self, ticket: Ticket, slot: int) -> None:
        """Read the next tokens of a prompt; of a whole text, where its keys have to be turned again."""
        text = (*ticket.request.prompt, *ticket.answer.tokens)
        self.counters.prompt_tokens += self.slots.read(slot, text[:-1], len(text))

    def _write(self, rows: list[Ticket | None]) -> None:
        """Add a token to each of the requests, which are in the order of their slots."""
        last = max(i for i, t in enumerate(rows) if t is not None)
        rows = rows[: self.slots.size_for(last)]
        top = max((t.top for t in rows if t is not None and t.top is not None), default=None)
        chosen = self.slots.write([None if t is None else t.answer for t in rows], top)
        found = chosen.tokens.numpy()
        self.counters.steps += 1
        for i, t in enumerate(rows):
            if t is not None:
                self._add(t, int(found[i]), None if t.top is None else log_probability(chosen, i, t.top))

    def _add(self, ticket: Ticket, token: int, chance: LogProbability | None) -> None:
        text = ticket.answer.add(token)
        self.counters.tokens += 1
        if ticket.answer.finished is not None:
            self._leave(ticket)
        elif ticket.length - 1 == self.model.steps.turning_point and ticket.slot is not None:
            self.slots.contents[ticket.slot].clear()       # all keys are turned by other angles from here on
        ticket.deliver(Piece(0, text, token, chance, ticket.answer.finished))
