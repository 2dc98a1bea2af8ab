"""The two compiled steps of generation: one that reads tokens of a prompt, and one that writes the next token.

Both take the cache as donated arguments and write it in place. Sizes that differ from call to call (the tokens of a
prompt, the rows of the cache, the window that is attended to) are symbols: each step is compiled once per number of
sequences, and the writing step once per kinds of options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlc
from mlc.frontend.tensor import Tensor
from mlc.models.cache import STEP, Cache, Seen
from mlc.models.folder import CausalLM
from mlc.models.quantized import integer_products
from mlc.models.sampling import IN_PROMPT, Chosen, Kinds, Sampling, Settings, choose

Array = np.ndarray[Any, Any]

CHUNK = 256
"""Tokens of a prompt that one call reads at most: the scores of attention take memory for each of them."""


@dataclass
class State:
    """Sequences in the memory of a model.

    cache     keys and values
    capacity  rows of each sequence
    kinds     of options in use
    settings  options of the sequences
    counts    of tokens, for penalties; None without them
    bias      of scores; None without one
    """

    cache: Cache
    capacity: int
    kinds: Kinds
    settings: Settings
    counts: Tensor | None
    bias: Tensor | None

    @property
    def sequences(self) -> int:
        """How many there are room for."""
        return int(self.cache[0][0].shape[0]) // self.capacity


class Steps:
    """The compiled steps of a model, for any number of sequences.

    integers  whether `write` multiplies with quantised weights by integers
    """

    def __init__(self, model: CausalLM, integers: bool = False) -> None:
        self.model, self.integers = model, integers
        self._compiled: dict[Any, Any] = {}
        rotary = getattr(model.config, "rotary", None)
        self.turning_point = rotary.trained if rotary is not None and rotary.kind == "longrope" else -1
        """The position from which on longrope turns all keys of a sequence by other angles: then it is read again."""

    def start(self, prompts: Sequence[Sequence[int]], options: Sequence[Sampling], capacity: int, kinds: Kinds
              ) -> State:
        """Memory for sequences that begin with prompts, of which nothing is read yet."""
        config, batch = self.model.config, len(prompts)
        capacity = rounded_up(capacity)
        settings = settings_of(options)
        counts = bias = None
        if kinds.penalties:
            table: Array = np.zeros((batch, config.vocabulary), np.int32)
            for i, prompt in enumerate(prompts):
                table[i, list(prompt)] = IN_PROMPT
            counts = mlc.from_numpy(table.reshape(-1))
        if kinds.bias:
            biases: Array = np.zeros((batch, config.vocabulary), np.float32)
            for i, option in enumerate(options):
                for token, value in option.logit_bias.items():
                    biases[i, token] = value
            bias = mlc.from_numpy(biases)
        return State(self.cache(batch, capacity), capacity, kinds, settings, counts, bias)

    def cache(self, sequences: int, capacity: int) -> Cache:
        """Empty memory for sequences."""
        config = self.model.config
        shape = (sequences * capacity, config.kv_heads, config.head_size)
        return [(mlc.from_numpy(np.zeros(shape, np.float32)), mlc.from_numpy(np.zeros(shape, np.float32)))
                for _ in range(config.layers)]

    def read(self, state: State, sequence: int, tokens: Sequence[int], start: int, whole: int) -> None:
        """Have a sequence contain tokens from a position on, in chunks; `whole` is the length of its prompt."""
        step = self._step("read", self._read, state)
        for at in range(0, len(tokens), CHUNK):
            chunk = np.array([tokens[at: at + CHUNK]], np.int64)
            window = self._window(state, start + at + chunk.shape[1])
            state.cache = step(state.cache, chunk, np.int64(sequence * state.capacity), np.int64(start + at),
                               np.array([whole], np.int64), window)

    def write(self, state: State, tokens: Array, positions: Array, numbers: Array, masks: Array | None = None
              ) -> Chosen:
        """Add a token to each of the first sequences at its position, and choose the next one, the `numbers`-th.

        masks  whether each token may be chosen [sequences, vocabulary], for constraints
        """
        step = self._step("write", self._write, state, len(tokens))
        window = self._window(state, int(positions.max()) + 1)
        room = np.zeros(state.capacity, np.int8)
        state.cache, state.counts, chosen = step(state.cache, state.counts, tokens, positions, numbers, window, room,
                                                 state.settings, state.bias, masks)
        return chosen  # type: ignore[no-any-return]

    def _window(self, state: State, length: int) -> Array:
        return np.zeros(min(rounded_up(length), state.capacity), np.int8)

    def _step(self, name: str, function: Any, state: State, batch: int = 0) -> Any:
        key = (name, batch, state.sequences, state.kinds) if name == "write" else name
        if key not in self._compiled:
            self._compiled[key] = self._compile(name, function, batch, state.sequences, state.kinds)
        return self._compiled[key]

    def _compile(self, name: str, function: Any, batch: int, sequences: int, kinds: Kinds) -> Any:
        config = self.model.config
        count = f"{sequences}*S" if name == "write" and sequences > 1 else "S"
        rows = mlc.spec(count, config.kv_heads, config.head_size)
        cache, window, room = [(rows, rows)] * config.layers, mlc.spec("T", dtype="int8"), mlc.spec("S", dtype="int8")
        if name == "read":
            number = mlc.spec(dtype="int64")

            def read(cache: Cache, tokens: Tensor, first: Tensor, start: Tensor, whole: Tensor, window: Tensor
                     ) -> Cache:
                out: Cache = function(cache, tokens, first, start, whole, window)
                return out

            return mlc.compile(read, donate=("cache",), args=[
                cache, mlc.spec(1, "N", dtype="int64"), number, number, mlc.spec(1, dtype="int64"), window])

        def write(cache: Cache, counts: Tensor | None, tokens: Tensor, positions: Tensor, numbers: Tensor,
                  window: Tensor, room: Tensor, settings: Settings, bias: Tensor | None,
                  masks: Tensor | None
                  ) -> tuple[Cache, Tensor | None, Chosen]:
            out: tuple[Cache, Tensor | None, Chosen] = function(cache, counts, tokens, positions, numbers, window, room,
                                                                settings, bias, masks, kinds)
            return out

        each = mlc.spec(batch, dtype="int64")
        return mlc.compile(write, donate=("cache", "counts"), args=[cache, None, each, each, each, window, room, None,
                                                                    None, None])

    def _read(self, cache: Cache, tokens: Tensor, first: Tensor, start: Tensor, whole: Tensor, window: Tensor) -> Cache:
        positions = start + mlc.arange(tokens.shape[1])[None]
        seen = Seen(positions, whole, window.shape[0], first + positions, first)
        return self.model.hidden(tokens, seen, cache)[1]

    def _write(self, cache: Cache, counts: Tensor | None, tokens: Tensor, positions: Tensor, numbers: Tensor,
               window: Tensor, room: Tensor, settings: Settings, bias: Tensor | None, masks: Tensor | None,
               kinds: Kinds) -> tuple[Cache, Tensor | None, Chosen]:
        batch, capacity = tokens.shape[0], room.shape[0]
        slots = mlc.arange(batch)[:, None] * capacity + positions[:, None]
        seen = Seen(positions[:, None], positions + 1, window.shape[0], slots, capacity=capacity)
        with integer_products(self.integers):
            hidden, cache = self.model.hidden(tokens[:, None], seen, cache)
            scores = self.model.scores(hidden[:, 0])
        table = None if counts is None else counts.reshape(-1, scores.shape[1])[:batch]
        chosen = choose(scores, kinds, settings, numbers, table, bias, masks)
        if counts is not None:
            at = mlc.arange(batch) * scores.shape[1] + chosen.tokens
            counts = mlc.index_put(counts, (at,), mlc.ones(batch, dtype="int32"), accumulate=True)
        return cache, counts, chosen


def rounded_up(length: int) -> int:
    """The next multiple of the step of windows."""
    return -(-length // STEP) * STEP


def settings_of(options: Sequence[Sampling]) -> Settings:
    """The options of sequences as arrays."""
    settings = {name: mlc.from_numpy(np.array([getattr(o, name) for o in options], dtype)) for name, dtype in (
        ("temperature", np.float32), ("top_p", np.float32), ("min_p", np.float32), ("top_k", np.int64),
        ("repetition_penalty", np.float32), ("frequency_penalty", np.float32), ("presence_penalty", np.float32))}
    settings["keys"] = mlc.from_numpy(np.array([[o.seed >> 32, o.seed & 0xFFFFFFFF] for o in options], np.uint32))
    return settings
