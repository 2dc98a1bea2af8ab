"""The memory of a scheduler: slots for requests, the pages of a cache that they have, and the steps that run the first
of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlc
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.models.cache import PAGE, pages_for
from mlc.models.generation import Answer, LogProbability, Request
from mlc.models.pages import Page, Pages
from mlc.models.sampling import IN_PROMPT, NOT_FINITE, Chosen, Kinds, Sampling, Settings, kinds_of
from mlc.models.steps import CHUNK, Masks, State, Steps, settings_of

Array = np.ndarray[Any, Any]

MOST_LIKELY = (20, 64)
"""How many likely tokens the step that reports log-probabilities finds: one of these."""
_ALL = {"draws": True, "filters": True, "penalties": True, "bias": True, "masks": True}
KINDS = (Kinds(), Kinds(**_ALL), *(Kinds(**_ALL, top=top) for top in MOST_LIKELY))
"""The kinds of options that the step is compiled for, the cheap ones first."""
_NO_SAMPLING = Sampling()
LEAST_COPIED = 8
"""Tokens of a page that are copied rather than read again: a copy is a call of its own."""


@dataclass(frozen=True)
class Written:
    """The arrays of the `Chosen` of a step, whose tokens are -1 where a sequence got none, or NOT_FINITE."""

    tokens: Array
    log_chances: Array | None
    best: Array | None
    best_chances: Array | None

    @classmethod
    def of(cls, chosen: Chosen) -> Written:
        """The arrays of the tensors that a step gives."""
        arrays = (None if x is None else x.numpy() for x in (chosen.log_chances, chosen.best, chosen.best_chances))
        return cls(chosen.tokens.numpy(), *arrays)

    def log_probability(self, slot: int, number: int, top: int) -> LogProbability | None:
        """That of a token, with those of the `top` most likely ones."""
        if self.log_chances is None:
            return None
        best = () if self.best is None or self.best_chances is None else tuple(
            (int(t), float(p)) for t, p in zip(self.best[slot, number, :top], self.best_chances[slot, number, :top]))
        return LogProbability(int(self.tokens[slot, number]), float(self.log_chances[slot, number]), best)


class Slots:
    """Slots of one cache. A slot has pages for all that its request may come to, from the start.

    steps     the compiled steps
    count     number of slots
    capacity  tokens of a request at most
    memory    tokens that there is room for together, in whole pages; None: the capacity of each slot
    guesses   whether tokens may be guessed
    fixed     the kinds of options of all requests, for which there is one step that runs all slots; None for steps of
              some sizes and kinds, so that any requests may come
    """

    def __init__(self, steps: Steps, count: int, capacity: int, *, memory: int | None = None,
                 guesses: bool = False, fixed: Kinds | None = None) -> None:
        self.steps, self.count, self.capacity, self.guesses = steps, count, capacity, guesses
        self.page_count = count * pages_for(capacity) if memory is None else pages_for(max(memory, capacity))
        self.sizes: list[int] = [count] if fixed else [*(4 ** i for i in range(16) if 4 ** i < count), count]
        self.kinds = KINDS if fixed is None else (fixed,)
        rotary = getattr(steps.model.config, "rotary", None)
        self.reusable = rotary is None or rotary.kind not in ("dynamic", "longrope")
        """Whether rows depend on the tokens before them alone: these two turn keys by the length of the text."""
        self.clear()

    def clear(self) -> None:
        """Forget all rows, and have memory that no step has a hand on."""
        self.contents: list[list[int]] = [[] for _ in range(self.count)]
        self.pages = Pages(self.page_count)
        self._tables: list[list[Page]] = [[] for _ in range(self.count)]
        self._state = State([], (), self.kinds[0], {}, None, None)     # what there is goes before the new memory comes
        self._state.cache = cache = self.steps.cache(self.page_count)
        self.nbytes = sum(int(np.prod(x.shape)) * x.dtype.itemsize for layer in cache for x in layer)
        """The size of the cache, which other threads ask for while a step has its tensors."""
        self._counts: Any = None
        self._requests: list[Request | None] = [None] * self.count     # that took each slot last
        self._batch: tuple[list[Answer | None], Settings, Array, Array] | None = None

    def size_for(self, slot: int) -> int:
        """The number of sequences of the smallest step that includes a slot."""
        return next(size for size in self.sizes if size > slot)

    def take(self, slot: int, request: Request) -> int | None:
        """Give a slot to a request; how many tokens of the prompt are in it already. None if there is no memory."""
        text = request.prompt[:-1]                         # the last token is read for what follows
        count = pages_for(min(len(request.prompt) + request.limit, self.capacity))
        known, part, common = self.pages.find(text) if self.reusable else ([], None, 0)
        table = [self.pages.share(page) for page in known]
        missing = count - len(known)
        if missing > self.pages.free:
            self.pages.give_back(table)
            return None
        held = len(known) * PAGE
        if part is not None and common >= LEAST_COPIED:
            self.pages.share(part)                         # so that it stays while the others are taken
            own = [self.pages.take() for _ in range(min(missing, self.pages.free))]
            if len(own) == missing:
                self.steps.move(self._state, [part.number], [own[0].number])
                self.pages.give_back([part])
            else:                                          # it is the one that is missing
                self.pages.forget(part)
                own.insert(0, part)
            held += common
        else:
            own = [self.pages.take() for _ in range(missing)]
        self._tables[slot], self.contents[slot] = table + own, list(text[:held])
        self._requests[slot] = request
        if self._counts is not None:
            self._count(slot, request.prompt)
        return held

    def adopt(self, slot: int, text: Sequence[int]) -> int:
        """Have a slot that is to read a text have the rows of it that are known by now; how many it had not."""
        held, table = self.contents[slot], self._tables[slot]
        before = len(held)
        if not self.reusable or before % PAGE or before >= len(text):
            return 0
        known, part, count = self.pages.find(text)
        for i in range(before // PAGE, len(known)):
            own, table[i] = table[i], self.pages.share(known[i])
            self.pages.give_back([own])
        if part is not None and count >= LEAST_COPIED and len(known) * PAGE >= before:
            self.steps.move(self._state, [part.number], [table[len(known)].number])
        else:
            count = 0
        held += text[before: len(known) * PAGE + count]
        return len(held) - before

    def leave(self, slot: int) -> None:
        """Take a slot from its request; what its rows hold is known to those that come."""
        if self.reusable:
            self.pages.know(self._tables[slot], self.contents[slot])
        self.pages.give_back(self._tables[slot])
        self._tables[slot], self.contents[slot] = [], []

    def read(self, slot: int, tokens: Sequence[int], whole: int) -> int | None:
        """Have a slot read the next of the tokens of a text of a length; how many these are. None if the numbers of the
        model are not finite."""
        held = self.contents[slot]
        chunk = tokens[len(held): len(held) + CHUNK]
        self._state.tables = self._numbers()
        finite = self.steps.read(self._state, slot, chunk, len(held), whole)
        held += chunk
        if not finite:
            return None
        self._know(slot)
        return len(chunk)

    def begin(self, slot: int, answer: Answer, top: int | None) -> Written:
        """Have a slot read what is left of the text of an answer, and the token behind it, the only one that is given.

        top  how many of the most likely tokens are reported
        """
        self._state.kinds = kinds = self._kinds([answer], top)
        held, text, sampling = self.contents[slot], (*answer.request.prompt, *answer.tokens), answer.request.sampling
        self._state.settings = settings_of([sampling])
        self._state.bias = mlc.from_numpy(self._biases([sampling])) if kinds.bias else None
        self._state.counts = self._counts_of(()) if kinds.penalties else None
        mask = self._masks([answer], 1)[0][:, 0] if kinds.masks else None
        self._state.tables = self._numbers()
        chosen = self.steps.begin(self._state, slot, text[len(held):], len(held), len(answer.tokens), mask)
        if kinds.penalties:
            self._counts = self._state.counts
        held += text[len(held):]
        written = Written.of(chosen)
        if written.tokens[0, 0] != NOT_FINITE:
            self._know(slot)
        return written

    def write(self, answers: Sequence[Answer | None], top: int | None, count: int = 1,
              guesses: Sequence[Sequence[int]] = ()) -> Written:
        """The next tokens of the answers in the first slots; None for slots without one, for which page 0 is written.

        top      how many of the most likely tokens are reported for each
        count    how many tokens each gets at most; under a constraint as many as masks are known for
        guesses  of the next tokens of each: those that are right come at once, with the one behind. Rows beyond those
                 of a request's own pages, of tokens that it can not get, are written to page 0
        """
        self._state.kinds = kinds = self._kinds([a for a in answers if a is not None], top)
        ends = self._options(answers)
        self._state.counts = self._counts_of(answers) if kinds.penalties else None
        self._state.tables = self._numbers([a is not None for a in answers])
        tokens = np.array([0 if a is None else a.last for a in answers], np.int64)
        positions = np.array([0 if a is None else len(self.contents[i]) for i, a in enumerate(answers)], np.int64)
        numbers = np.array([0 if a is None else len(a.tokens) for a in answers], np.int64)
        longest = max(map(len, guesses), default=0)
        most = longest + 1 if guesses else count
        limits = np.array([0 if a is None else self._limit(a, most) for a in answers], np.int64)
        if guesses:
            rows = [[t, *g, *[0] * (longest - len(g))] for t, g in zip(tokens.tolist(), guesses)]
            chosen = self.steps.verify(self._state, np.array(rows, np.int64), positions, numbers, limits=limits)
        else:
            masks = self._masks(answers, count) if kinds.masks else None
            chosen = self.steps.write(self._state, tokens, positions, numbers, count=count, limits=limits, ends=ends,
                                      masks=masks)
        if kinds.penalties:
            self._counts = self._state.counts
        written = Written.of(chosen)
        for held, a, new in zip(self.contents, answers, written.tokens):
            if a is not None:
                held += [a.last, *new[new >= 0].tolist()[:-1]]         # the last one is read by the next step
        return written

    def _numbers(self, written: Sequence[bool] = ()) -> list[list[int]]:
        """The numbers of the pages of each slot; none for a slot that is not to be written."""
        return [[p.number for p in table] if all(written[i: i + 1]) else [] for i, table in enumerate(self._tables)]

    def _know(self, slot: int) -> None:
        """Have other requests find the whole pages of what a slot has read, which stays as it is."""
        if self.reusable:
            held = self.contents[slot]
            self.pages.know(self._tables[slot], held[: len(held) // PAGE * PAGE])

    def _limit(self, answer: Answer, count: int) -> int:
        """How many tokens an answer may get in one step: longrope turns all keys anew at a position."""
        left = min(count, answer.request.limit - len(answer.tokens))
        turning = self.steps.turning_point - (answer.length - 1)
        return min(left, turning) if turning > 0 else left

    def warm_up(self, some: Sequence[Kinds] | None = None) -> Iterator[tuple[int, Kinds]]:
        """Compile the steps for some kinds of options, one by one; each that is about to be compiled.

        If no kinds are given, these are all but the last of several: more than 20 likely tokens are rarely reported.
        If some are, these are those of guesses: no answer begins with one.
        """
        self.read(0, [0], 1)
        if self.reusable:
            self.steps.move(self._state, [0], [0])
        for size in self.sizes:
            for kinds in (self.kinds[:-1] or self.kinds) if some is None else some:
                yield size, kinds
                request = Request((0,), Sampling(temperature=1.0 if kinds.draws else 0.0), 1)
                with no_grad():
                    if some is None and size == self.sizes[0]:
                        self.contents[0].clear()
                        self.begin(0, Answer(request, None), kinds.top)
                    self.write([Answer(request, None)] * size, kinds.top)
                    if self.guesses:
                        self.write([Answer(request, None)] * size, kinds.top, guesses=[[0]] * size)
        self.clear()

    def _kinds(self, answers: Sequence[Answer], top: int | None) -> Kinds:
        needed = kinds_of([a.request.sampling for a in answers], top, any(a.matcher is not None for a in answers))
        return next(k for k in self.kinds if k.covers(needed))

    def _options(self, answers: Sequence[Answer | None]) -> Array:
        """Have the state hold the options of answers, as arrays that are made anew when other answers come.

        The tokens that end the answers [answers, any].
        """
        known = [] if self._batch is None else self._batch[0]
        if self._batch is None or len(known) != len(answers) or any(a is not b for a, b in zip(known, answers)):
            options = [_NO_SAMPLING if a is None else a.request.sampling for a in answers]
            stops = [[] if a is None else sorted(a.request.stop_tokens) for a in answers]
            widest = max(1, *map(len, stops))
            ends = np.array([[*s, *[-1] * (widest - len(s))] for s in stops], np.int64)
            self._batch = list(answers), settings_of(options), self._biases(options), ends
        _, self._state.settings, bias, ends = self._batch
        self._state.bias = mlc.from_numpy(bias) if self._state.kinds.bias else None
        return ends

    def _biases(self, options: Sequence[Sampling]) -> Array:
        """The numbers that options add to the scores of tokens [options, vocabulary]."""
        bias: Array = np.zeros((len(options), self.steps.model.config.vocabulary), np.float32)
        for i, o in enumerate(options):
            for token, value in o.logit_bias.items():
                bias[i, token] = value
        return bias

    def _masks(self, answers: Sequence[Answer | None], count: int) -> Masks:
        """Masks of answers, as many as the one with most has; one without a constraint has one that allows all."""
        found = [None if a is None else a.masks_ahead(count) for a in answers]
        shape = len(answers), max(1 if f is None else len(f[0]) for f in found), self.steps.model.config.vocabulary
        masks, follow = np.ones(shape, np.bool_), np.zeros(shape, np.int8)
        for i, f in enumerate(found):
            if f is not None:
                masks[i, : len(f[0])], follow[i, : len(f[0])] = f
        return masks, follow

    def _counts_of(self, answers: Sequence[Answer | None]) -> Any:
        """The counts of tokens, which are kept from the first request with penalties on; those that are still being
        read have theirs from here on too."""
        if self._counts is None:
            self._counts = mlc.from_numpy(np.zeros(self.count * self.steps.model.config.vocabulary, np.int32))
            for i, request in enumerate(self._requests):
                a = answers[i] if i < len(answers) else None
                if a is not None:
                    self._count(i, a.request.prompt, a.tokens)
                elif request is not None:
                    self._count(i, request.prompt)
        return self._counts

    def _count(self, slot: int, prompt: Sequence[int], answer: Sequence[int] = ()) -> None:
        size = self.steps.model.config.vocabulary
        table = self._counts.numpy().copy()
        row = table[slot * size: (slot + 1) * size]
        row[:] = 0
        row[list(prompt)] = IN_PROMPT
        np.add.at(row, list(answer), 1)
        self._counts = mlc.from_numpy(table)

