"""Continuous batching: requests join and leave the sequences that a model runs, between two steps.

The memory is fixed from the start: a number of slots, and pages for their rows. A request waits until a slot is free,
and pages for all tokens that it may come to: none that has begun is ever stopped for want of memory. Its prompt is read
in chunks, of which each step reads one, the last of them with the first token of the answer, and then it gets tokens
from each step: several where they take little time, or where a draft guesses them (drafting.py). The step is compiled
for a few numbers of sequences and kinds of options, so that what joins compiles nothing; it runs the first slots, up to
the last one in use. Pages that a prompt has filled are shared with other prompts that begin with the same tokens, also
at the same time, and those of a finished request stay until their memory is needed (pages.py): the next turn of a
conversation, or a common instruction, is read once.

An answer is, to the bit, the one that the request gets alone (sampling.py says why).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.drafting import Draft, Drafter, drafter
from mlc.models.generation import Answer, Piece, Request
from mlc.models.sampling import NOT_FINITE, Kinds, kinds_of, not_finite
from mlc.models.slots import Slots, Written
from mlc.models.steps import CHUNK
from mlc.models.text import Unfolding

if TYPE_CHECKING:
    from mlc.models.language_model import LanguageModel

Deliver = Callable[[Piece], None]

MOST_TOKENS = 16
"""Tokens that an answer gets in one step at most, if there is no draft,"""
STEP_SECONDS = 0.03
"""and the time that such a step may take."""
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
    reused    number of tokens whose rows were there
    cancelled whether nobody wants the answer any more
    error     that ended it
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
    error: UserError | None = None


@dataclass
class Counters:
    """Numbers of what a scheduler has done, for metrics.

    prompt_tokens   read, those that were reused not included
    reused_tokens   of prompts, whose rows were there
    tokens          of answers
    steps           that wrote tokens
    drafted         tokens that were guessed, and
    accepted        those of them that were right
    finished        requests by the reason of their end
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    finished: dict[str, int] = field(default_factory=dict)


class Scheduler:
    """Answers many requests with one model; `submit` and `cancel` may be called from any thread, `step` from one.

    Args:
        model: A model that `mlc.models.load` returns.
        slots: How many requests run at once.
        capacity: Tokens of a request, the answer included; by default those that the model sees, 4096 at most.
        memory: Tokens that the cache has room for, in whole pages of 64; by default the capacity of each slot. With
            less, requests wait until what they may come to fits, and no request has more than these.
        queue: How many requests may wait, besides one for each free slot.
        draft: What guesses tokens: a `PromptLookup` or a `DraftModel`; None for nothing. Answers are the same.
        kinds: The kinds of options of all requests, where all are known before the first step: the prompts are read
            before anything is written, and the step is compiled for these kinds and for all slots.

    Raises:
        UserError: A number is out of its range (MLC0916), or the draft is none for the model (MLC0992).

    Example:
        >>> from mlc.models.scheduler import Scheduler
        >>> model = mlc.models.load("examples/assistant")
        >>> scheduler = Scheduler(model, slots=1)
        >>> requests, _ = model.requests(["The tensor dialect"], max_tokens=3)
        >>> [piece.finish_reason for piece in scheduler.stream(requests[0])]
        [None, None, 'length']
    """

    def __init__(self, model: LanguageModel, *, slots: int = 8, capacity: int | None = None, memory: int | None = None,
                 queue: int = 64, draft: Draft | None = None, kinds: Kinds | None = None) -> None:
        if slots < 1 or queue < 0 or any(x is not None and x < 2 for x in (capacity, memory)):
            raise UserError(f"slots is {slots}, capacity {capacity}, memory {memory} and queue {queue}", code="MLC0916",
                            loc=user_loc(), hint="a scheduler has at least one slot, and room for two tokens")
        self.model, self.limit = model, queue
        capacity = min(capacity or CAPACITY, model.config.context)
        capacity = capacity if memory is None else min(capacity, memory)
        self._drafter: Drafter | None = drafter(draft, model, slots, capacity) if draft is not None else None
        self.slots = Slots(model.steps, slots, capacity, memory=memory, guesses=draft is not None,
                           fixed=kinds)
        self.batch = kinds is not None                     # all prompts are read before anything is written
        self._pace = 1                                     # tokens that each answer gets in a step
        self.counters = Counters()
        self._lock = threading.Lock()
        self._waiting = deque[Ticket]()
        self._running: list[Ticket | None] = [None] * slots
        self._clock = itertools.count(1)

    # -- from any thread ----------------------------------------------------------------------------------------------
    def submit(self, request: Request, deliver: Deliver, *, top: int | None = None, seconds: float = 86400.0) -> Ticket:
        """Take a request.

        Args:
            request: What `LanguageModel.requests` makes of a prompt and options.
            deliver: Is called with each `Piece` of the answer, in the thread that calls `step`; the last piece has a
                `finish_reason`, which may be "cancelled", "timeout", "constraint" (no token satisfies it) or
                "not_finite" (scores are infinite or NaN) too. It must not raise.
            top: How many likely tokens are reported for each token; None for no log-probabilities.
            seconds: The longest time that the answer may take, waiting included.

        Returns:
            The ticket, for `cancel`.

        Raises:
            QueueFull: Too many requests wait (MLC0918).
            UserError: The prompt is longer than a slot (MLC0915), or an option is of none of the `kinds` of the
                scheduler (MLC0916).
        """
        capacity = self.slots.capacity
        if len(request.prompt) >= capacity:
            raise UserError(f"a prompt has {len(request.prompt)} tokens, and a slot of the scheduler {capacity}, the "
                            "answer included", code="MLC0915", loc=user_loc(), hint="shorten it")
        needed = kinds_of([request.sampling], top, request.constraint is not None)
        if not any(k.covers(needed) for k in self.slots.kinds):
            raise UserError(f"a request needs {needed}, and the scheduler has steps for {self.slots.kinds}",
                            code="MLC0916", loc=user_loc(), hint="make the scheduler without kinds, or with these")
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
            begun = None
            if unread:
                begun, slot = min(unread, key=lambda pair: pair[0].number)
                self._read_chunk(begun, slot)
                if self.batch:
                    return True
            rows = [t if t is not None and t is not begun and self._ready(t, i) and self._goes_on(t) else None
                    for i, t in enumerate(self._running)]
            if any(rows):
                self._write(rows, alone=not unread)
        return True

    def _ready(self, ticket: Ticket, slot: int) -> bool:
        """Whether all tokens but the last are in the slot: the step that writes the next one reads that."""
        return len(self.slots.contents[slot]) == ticket.answer.length - 1

    def _goes_on(self, ticket: Ticket) -> bool:
        """Whether any token may come next; a request whose constraint the vocabulary cannot keep ends, and no other."""
        try:
            ticket.answer.mask()
        except UserError as error:
            ticket.error = error
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

        Raises:
            UserError: No token satisfies the constraint (MLC0919), or scores are infinite or NaN (MLC0924): behind the
                pieces that were found before.
        """
        pieces = deque[Piece]()
        ticket = self.submit(request, pieces.append, top=top)
        try:
            while True:
                while pieces:
                    piece = pieces.popleft()
                    if ticket.error is not None and piece.finish_reason is not None:
                        raise ticket.error
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

    def warm_up(self) -> Iterator[tuple[int, Kinds]]:
        """Compile the steps, those of a draft model too, so that requests compile nothing.

        Steps that report more than 20 likely tokens are left out.

        Returns:
            Iterator of the number of sequences and the kinds of options of each step that is about to be compiled.
        """
        yield from self.slots.warm_up()
        if self._drafter is not None:
            yield from self._drafter.warm_up()

    def clear(self) -> None:
        """Forget all that was read, after a step that failed: it may have taken the memory with it.

        Returns:
            Nothing; `close` ends the requests first.
        """
        self.slots.clear()
        if self._drafter is not None:
            self._drafter.clear()

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

    def _fail(self, ticket: Ticket) -> None:
        """End a request whose scores are no numbers to choose by."""
        ticket.error = not_finite(ticket.answer.length)
        if ticket.slot is not None:
            self.slots.contents[ticket.slot].clear()       # nobody else is to have the rows
        self._finish(ticket, "not_finite")

    def _leave(self, ticket: Ticket) -> None:
        reason = ticket.answer.finished or ""
        self.counters.finished[reason] = self.counters.finished.get(reason, 0) + 1
        if ticket.slot is not None:
            self.slots.leave(ticket.slot)
            self._running[ticket.slot] = None

    def _admit(self) -> None:
        """Give free slots to the requests that have waited longest: of those that make the step no larger, the first.
        """
        while (free := [i for i, t in enumerate(self._running) if t is None]) and self._waiting:
            slot, ticket = free[0], self._waiting[0]       # which only this thread takes away
            if (reused := self.slots.take(slot, ticket.request)) is None:
                return                                     # those behind it do not overtake it
            with self._lock:
                self._waiting.popleft()
            ticket.slot, ticket.reused, self._running[slot] = slot, reused, ticket
            self.counters.reused_tokens += reused

    def _read_chunk(self, ticket: Ticket, slot: int) -> None:
        """Read the next tokens of a prompt, or of a text whose keys are turned again; the last bring another."""
        text = (*ticket.request.prompt, *ticket.answer.tokens)
        reused = self.slots.adopt(slot, text[:-1])         # of a prompt that was read meanwhile
        ticket.reused += reused
        self.counters.reused_tokens += reused
        left = len(text) - len(self.slots.contents[slot])
        if left > CHUNK:
            if (count := self.slots.read(slot, text[:-1], len(text))) is None:
                return self._fail(ticket)
            self.counters.prompt_tokens += count
        elif self._goes_on(ticket):
            self.counters.prompt_tokens += left - 1        # as where a step that writes reads the last one
            self.counters.steps += 1
            self._add(ticket, 0, 0, self.slots.begin(slot, ticket.answer, ticket.top), ())

    def _write(self, rows: list[Ticket | None], alone: bool) -> None:
        """Add tokens to each of the requests, which are in the order of their slots; one while prompts are read."""
        last = max(i for i, t in enumerate(rows) if t is not None)
        rows = rows[: self.slots.size_for(last)]
        top = max((t.top for t in rows if t is not None and t.top is not None), default=None)
        answers = [None if t is None else t.answer for t in rows]
        constrained = any(a is not None and a.matcher is not None for a in answers)
        guesses = [] if self._drafter is None or constrained else self._drafter.guess(answers)
        started = time.perf_counter()
        if any(guesses):
            written = self.slots.write(answers, top, guesses=guesses)
        else:
            guesses = [[]] * len(rows)
            written = self.slots.write(answers, top, self._pace if alone else 1)
            self._keep_pace(time.perf_counter() - started, written.tokens.shape[1])
        self.counters.steps += 1
        for number in range(written.tokens.shape[1]):
            for i, t in enumerate(rows):
                if t is not None and t.answer.finished is None and written.tokens[i, number] != -1:
                    self._add(t, i, number, written, guesses[i])

    def _keep_pace(self, seconds: float, count: int) -> None:
        """Have steps write as many tokens as make their cost in Python small, and do not keep a reader waiting."""
        if count == self._pace:
            self._pace = max(1, min(MOST_TOKENS, count * 2 if seconds < STEP_SECONDS / 2 else
                                    count // 2 if seconds > STEP_SECONDS else count))

    def _add(self, ticket: Ticket, row: int, number: int, written: Written, guess: Sequence[int]) -> None:
        token = int(written.tokens[row, number])
        if token == NOT_FINITE:
            return self._fail(ticket)
        chance = None if ticket.top is None else written.log_probability(row, number, ticket.top)
        right = number < len(guess) and guess[number] == token
        text = ticket.answer.add(token)
        self.counters.tokens += 1
        self.counters.drafted += len(guess) if number == 0 else 0
        self.counters.accepted += right
        if ticket.answer.finished is not None:
            self._leave(ticket)
        elif ticket.answer.length - 1 == self.model.steps.turning_point and ticket.slot is not None:
            self.slots.contents[ticket.slot].clear()       # all keys are turned by other angles from here on
        ticket.deliver(Piece(0, text, token, chance, ticket.answer.finished, right))


def pieces(model: LanguageModel, requests: Sequence[Request], top: int | None, draft: Draft | None = None
           ) -> Iterator[Piece]:
    """The answers to requests, computed together, piece by piece.

    top  how many of the most likely tokens are reported for each token; None for no log-probabilities
    """
    kinds = kinds_of([r.sampling for r in requests], top, any(r.constraint is not None for r in requests))
    scheduler = Scheduler(model, slots=len(requests), capacity=max(len(r.prompt) + r.limit for r in requests), queue=0,
                          draft=draft, kinds=kinds)
    found = deque[Piece]()
    tickets = [scheduler.submit(r, lambda piece, i=i: found.append(replace(piece, prompt=i)),  # type: ignore[misc]
                                top=top) for i, r in enumerate(requests)]
    while scheduler.step():
        while found:
            piece = found.popleft()
            if (error := tickets[piece.prompt].error) is not None and piece.finish_reason is not None:
                raise error
            yield piece
