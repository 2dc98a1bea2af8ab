"""The memory of a scheduler: slots of one cache, what their rows hold, and the steps that run the first of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import mlc
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.models.generation import Answer, Request
from mlc.models.sampling import IN_PROMPT, Chosen, Kinds, Sampling, Settings, kinds_of
from mlc.models.steps import CHUNK, State, Steps, rounded_up, settings_of

Array = np.ndarray[Any, Any]

MOST_LIKELY = (20, 64)
"""How many likely tokens the step that reports log-probabilities finds: one of these."""
_ALL = {"draws": True, "filters": True, "penalties": True, "bias": True, "masks": True}
KINDS = (Kinds(), Kinds(**_ALL), *(Kinds(**_ALL, top=top) for top in MOST_LIKELY))
"""The kinds of options that the step is compiled for, the cheap ones first."""
_NO_SAMPLING = Sampling()


class Slots:
    """Slots of one cache.

    steps     the compiled steps
    count     number of slots
    capacity  tokens that each has room for
    """

    def __init__(self, steps: Steps, count: int, capacity: int) -> None:
        self.steps, self.count, self.capacity = steps, count, capacity
        self.sizes: list[int] = [*(4 ** i for i in range(16) if 4 ** i < count), count]
        rotary = getattr(steps.model.config, "rotary", None)
        self.reusable = rotary is None or rotary.kind not in ("dynamic", "longrope")
        """Whether rows depend on the tokens before them alone: these two turn keys by the length of the text."""
        self.clear()

    def clear(self) -> None:
        """Forget all rows, and have memory that no step has a hand on."""
        self.contents: list[list[int]] = [[] for _ in range(self.count)]
        self._state = State(self.steps.cache(self.count, rounded_up(self.capacity)), rounded_up(self.capacity),
                            KINDS[0], {}, None, None)
        self._counts: Any = None
        self._batch: tuple[list[Answer | None], Settings, Array] | None = None

    @property
    def nbytes(self) -> int:
        """The size of the cache."""
        config = self.steps.model.config
        size: int = 2 * config.layers * config.kv_heads * config.head_size * 4        # float32
        return size * self.count * self._state.capacity

    def size_for(self, slot: int) -> int:
        """The number of sequences of the smallest step that includes a slot."""
        return next(size for size in self.sizes if size > slot)

    def shared(self, slot: int, prompt: Sequence[int]) -> int:
        """How many tokens of a prompt have their rows in a slot already; the last token has none."""
        if not self.reusable:
            return 0
        held, wanted = self.contents[slot], prompt[:-1]
        return next((i for i, (a, b) in enumerate(zip(held, wanted)) if a != b), min(len(held), len(wanted)))

    def take(self, slot: int, request: Request) -> int:
        """Give a slot to a request; how many tokens of the prompt are in it already."""
        reused = self.shared(slot, request.prompt)
        del self.contents[slot][reused:]
        if self._counts is not None:
            self._count(slot, request.prompt)
        return reused

    def read(self, slot: int, tokens: Sequence[int], whole: int) -> int:
        """Have a slot read the next of the tokens of a text of a length; how many these are."""
        held = self.contents[slot]
        chunk = tokens[len(held): len(held) + CHUNK]
        self.steps.read(self._state, slot, chunk, len(held), whole)
        held += chunk
        return len(chunk)

    def write(self, answers: Sequence[Answer | None], top: int | None) -> Chosen:
        """The next tokens of the answers in the first slots; None for slots without one, whose rows stay as they are.

        top  how many of the most likely tokens are reported for each
        """
        self._state.kinds = kinds = self._kinds([a for a in answers if a is not None], top)
        self._options(answers)
        self._state.counts = self._counts_of(answers) if kinds.penalties else None
        masks = self._masks(answers) if kinds.masks else None
        tokens = np.array([0 if a is None else a.last for a in answers], np.int64)
        for held, a in zip(self.contents, answers):
            if a is None:
                del held[self.capacity - 1:]               # a row is written anyway: behind those that are kept
        positions = np.array([len(self.contents[i]) for i in range(len(answers))], np.int64)
        numbers = np.array([0 if a is None else len(a.tokens) for a in answers], np.int64)
        chosen = self.steps.write(self._state, tokens, positions, numbers, masks)
        if kinds.penalties:
            self._counts = self._state.counts
        for i, a in enumerate(answers):
            if a is not None:
                self.contents[i].append(a.last)
        return chosen

    def warm_up(self) -> Iterator[tuple[int, Kinds]]:
        """Compile the steps, one by one; each that is about to be compiled."""
        self.read(0, [0], 1)
        for size in self.sizes:
            for kinds in KINDS[:-1]:
                yield size, kinds
                request = Request((0,), Sampling(temperature=1.0 if kinds.draws else 0.0), 1)
                with no_grad():
                    self.write([Answer(request, None)] * size, kinds.top)
        self.clear()

    def _kinds(self, answers: Sequence[Answer], top: int | None) -> Kinds:
        needed = kinds_of([a.request.sampling for a in answers], top, any(a.matcher is not None for a in answers))
        if needed == KINDS[0]:
            return needed
        return next(k for k in KINDS[1:] if needed.top is None or (k.top is not None and k.top >= needed.top))

    def _options(self, answers: Sequence[Answer | None]) -> None:
        """Have the state hold the options of answers, as arrays that are made anew when other answers come."""
        known = [] if self._batch is None else self._batch[0]
        if self._batch is None or len(known) != len(answers) or any(a is not b for a, b in zip(known, answers)):
            options = [_NO_SAMPLING if a is None else a.request.sampling for a in answers]
            bias: Array = np.zeros((len(answers), self.steps.model.config.vocabulary), np.float32)
            for i, o in enumerate(options):
                for token, value in o.logit_bias.items():
                    bias[i, token] = value
            self._batch = list(answers), settings_of(options), bias
        _, self._state.settings, bias = self._batch
        self._state.bias = mlc.from_numpy(bias) if self._state.kinds.bias else None

    def _masks(self, answers: Sequence[Answer | None]) -> Array:
        masks: Array = np.ones((len(answers), self.steps.model.config.vocabulary), np.bool_)
        for i, a in enumerate(answers):
            if a is not None and a.matcher is not None:
                masks[i] = a.mask()
        return masks

    def _counts_of(self, answers: Sequence[Answer | None]) -> Any:
        """The counts of tokens, which are kept from the first request with penalties on."""
        if self._counts is None:
            self._counts = mlc.from_numpy(np.zeros(self.count * self.steps.model.config.vocabulary, np.int32))
            for i, a in enumerate(answers):
                if a is not None:
                    self._count(i, a.request.prompt, a.tokens)
        return self._counts

    def _count(self, slot: int, prompt: Sequence[int], answer: Sequence[int] = ()) -> None:
        size = self.steps.model.config.vocabulary
        table = self._counts.numpy().copy()
        row = table[slot * size: (slot + 1) * size]
        row[:] = 0
        row[list(prompt)] = IN_PROMPT
        np.add.at(row, list(answer), 1)
        self._counts = mlc.from_numpy(table)

