"""The compiled steps of generation: one that reads tokens of a prompt, one that reads the last of them and writes the
first token of the answer, one that writes the next tokens, and one that verifies tokens that were guessed.

All take the cache as donated arguments and write it in place. Sizes that differ from call to call (the tokens of a
prompt or guess, the pages of the cache, those that are attended to, how many tokens are written) are symbols: each
step is compiled once per number of sequences, and those that choose tokens once per kinds of options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import mlc
from mlc.frontend.tensor import Tensor
from mlc.models.cache import PAGE, Cache, CacheType, Seen, pages_for, shapes, table_of
from mlc.models.folder import CausalLM
from mlc.models.quantized import integer_products
from mlc.models.sampling import IN_PROMPT, NOT_FINITE, Chosen, Kinds, Sampling, Settings, choose

Array = np.ndarray[Any, Any]
Masks = tuple[Array, Array]

CHUNK = 256
"""Tokens of a prompt that one call reads at most: the scores of attention take memory for each of them."""


@dataclass
class State:
    """Sequences in the memory of a model.

    cache     keys and values
    tables    the numbers of the pages of each sequence
    kinds     of options in use
    settings  options of the sequences
    counts    of tokens, for penalties; None without them
    bias      of scores; None without one
    """

    cache: Cache
    tables: Sequence[Sequence[int]]
    kinds: Kinds
    settings: Settings
    counts: Tensor | None
    bias: Tensor | None

    @property
    def room(self) -> Array:
        """Array without content whose size says how many pages there are."""
        return np.zeros(int(self.cache[0][0].shape[0]) // PAGE, np.int8)


class Steps:
    """The compiled steps of a model, for any number of sequences.

    integers  whether `write` multiplies with quantised weights by integers
    dtype     of the cache
    """

    def __init__(self, model: CausalLM, integers: bool = False, dtype: CacheType = "float32") -> None:
        self.model, self.integers, self.dtype = model, integers, dtype
        self._compiled: dict[Any, Any] = {}
        rotary = getattr(model.config, "rotary", None)
        self.turning_point = rotary.trained if rotary is not None and rotary.kind == "longrope" else -1
        """The position from which on longrope turns all keys of a sequence by other angles: then it is read again."""

    def start(self, prompts: Sequence[Sequence[int]], options: Sequence[Sampling], capacity: int, kinds: Kinds
              ) -> State:
        """Memory for sequences that begin with prompts, of which nothing is read yet; each has pages of its own."""
        config, batch, each = self.model.config, len(prompts), pages_for(capacity)
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
        tables = [range(1 + i * each, 1 + (i + 1) * each) for i in range(batch)]
        return State(self.cache(batch * each), tables, kinds, settings, counts, bias)

    def cache(self, pages: int) -> Cache:
        """Empty memory for sequences: a number of pages, besides page 0."""
        config = self.model.config
        of_layer = shapes(1 + pages, config.kv_heads, config.head_size, self.dtype)
        return [tuple(mlc.from_numpy(np.zeros(shape, dtype)) for shape, dtype in of_layer)
                for _ in range(config.layers)]

    def read(self, state: State, sequence: int, tokens: Sequence[int], start: int, whole: int) -> bool:
        """Have a sequence contain tokens from a position on, in chunks; `whole` is the length of its prompt.

        Whether all numbers were finite.
        """
        step, finite = self._step("read", self._read, state), True
        for at in range(0, len(tokens), CHUNK):
            chunk = np.array([tokens[at: at + CHUNK]], np.int64)
            table = table_of(start + at + chunk.shape[1], state.tables[sequence])
            state.cache, sound = step(state.cache, chunk, np.int64(start + at), np.array([whole], np.int64), table,
                                      state.room)
            finite = finite and bool(sound)
        return finite

    def begin(self, state: State, sequence: int, tokens: Sequence[int], start: int, number: int = 0,
              mask: Array | None = None) -> Chosen:
        """Have a sequence contain the last tokens of its prompt, at most a chunk, and choose the one behind them.

        It is the token that `write` would choose, which reads the last token alone: here all tokens take one reading of
        the weights. The tokens of the result are [1, 1]; the settings and the bias of the state are of this sequence.

        start   position of the first of the tokens
        number  of the token that is chosen, in its answer
        mask    whether each token may be chosen [1, vocabulary], under a constraint
        """
        step, end = self._step("begin", self._begin, state), start + len(tokens)
        state.cache, state.counts, chosen = step(
            state.cache, state.counts, np.array([tokens], np.int64), np.int64(sequence), np.int64(start),
            np.array([number], np.int64), table_of(end, state.tables[sequence]), state.room, state.settings,
            state.bias, mask)
        return chosen  # type: ignore[no-any-return]

    def write(self, state: State, tokens: Array, positions: Array, numbers: Array, *, count: int = 1,
              limits: Array | None = None, ends: Array | None = None, masks: Masks | None = None) -> Chosen:
        """Add a token to each of the first sequences at its position, and choose the next one; `count` times.

        The tokens of the result are [sequences, count], -1 behind the last one of a sequence.

        numbers  of the tokens that are chosen first, in their answers
        limits   how many tokens each sequence gets at most, 0 for none
        ends     tokens after which a sequence gets no more [sequences, any]
        masks    for constraints: whether each token may be chosen [sequences, masks, vocabulary], the first mask to
                 begin with, and the number of the mask behind it, -1 where the sequence gets no more
        """
        step = self._step("write", self._write, state, len(tokens))
        limits = np.full(len(tokens), count, np.int64) if limits is None else limits
        table = table_of(int((positions + np.maximum(limits, 1)).max()), *state.tables[: len(tokens)])
        ends = np.full((len(tokens), 1), -1, np.int64) if ends is None else ends
        state.cache, state.counts, chosen = step(
            state.cache, state.counts, tokens, positions, numbers, limits, ends, np.zeros(count, np.int8), table,
            state.room, state.settings, state.bias, masks)
        return chosen  # type: ignore[no-any-return]

    def verify(self, state: State, tokens: Array, positions: Array, numbers: Array, *, limits: Array | None = None
               ) -> Chosen:
        """Add several tokens to each of the first sequences, the first of them certain, and choose those that follow.

        A token is certain if it is the one that was chosen before it. The tokens of the result [sequences, n] are those
        that follow certain ones, and -1 behind them: the same that `write` gives.

        tokens     [sequences, n], the first ones at their positions
        numbers    of the tokens that are chosen first
        limits     how many tokens each sequence gets at most, 0 for none
        """
        step = self._step("verify", self._verify, state, len(tokens))
        table = table_of(int(positions.max()) + tokens.shape[1], *state.tables[: len(tokens)])
        limits = np.full(len(tokens), tokens.shape[1], np.int64) if limits is None else limits
        state.cache, state.counts, chosen = step(state.cache, state.counts, tokens, positions, numbers, limits, table,
                                                 state.room, state.settings, state.bias)
        return chosen  # type: ignore[no-any-return]

    def move(self, state: State, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Copy some pages over others; all are read before any is written."""
        step = self._step("move", self._move, state)
        state.cache = step(state.cache, np.array(sources, np.int64), np.array(targets, np.int64), state.room)

    def _step(self, name: str, function: Any, state: State, batch: int = 0) -> Any:
        key = (name if name in ("read", "move") else (name, state.kinds) if name == "begin" else
               (name, batch, state.kinds))
        if key not in self._compiled:
            self._compiled[key] = self._compile(name, function, batch, state.kinds)
        return self._compiled[key]

    def _compile(self, name: str, function: Any, batch: int, kinds: Kinds) -> Any:
        config = self.model.config
        of_layer = shapes("P", config.kv_heads, config.head_size, self.dtype)
        cache = [tuple(mlc.spec(*shape, dtype=dtype) for shape, dtype in of_layer)] * config.layers
        room = mlc.spec("P", dtype="int8")
        if name == "move":
            some = mlc.spec("C", dtype="int64")
            return mlc.compile(function, donate=("cache",), args=[cache, some, some, room])
        number, one, some = mlc.spec(dtype="int64"), mlc.spec(1, dtype="int64"), mlc.spec(1, "N", dtype="int64")
        table = mlc.spec(batch or 1, "T", dtype="int64")
        if name == "read":
            return mlc.compile(function, donate=("cache",), args=[cache, some, number, one, table, room])
        if name == "begin":
            mask = mlc.spec(1, config.vocabulary, dtype="bool") if kinds.masks else None
            return mlc.compile(partial(function, kinds), donate=("cache", "counts"), args=[
                cache, None, some, number, number, one, table, room, None, None, mask])
        each = mlc.spec(batch, dtype="int64")
        several = mlc.spec(batch, "N", dtype="int64")
        masks = tuple(mlc.spec(batch, "M", config.vocabulary, dtype=dtype)
                      for dtype in ("bool", "int8")) if kinds.masks else None
        own = ([several, each, each, each, table, room, None, None] if name == "verify" else
               [each, each, each, each, several, mlc.spec("K", dtype="int8"), table, room, None, None, masks])
        return mlc.compile(partial(function, kinds), donate=("cache", "counts"), args=[cache, None, *own])

    def _read(self, cache: Cache, tokens: Tensor, start: Tensor, whole: Tensor, table: Tensor, room: Tensor
              ) -> tuple[Cache, Tensor]:
        seen = Seen(start + mlc.arange(tokens.shape[1])[None], whole, table.shape[1] * PAGE, table)
        with integer_products(self.integers):
            hidden, cache = self.model.hidden(tokens, seen, cache)
        return cache, mlc.isfinite(hidden).all()

    def _begin(self, kinds: Kinds, cache: Cache, counts: Tensor | None, tokens: Tensor, sequence: Tensor,
               start: Tensor, numbers: Tensor, table: Tensor, room: Tensor, settings: Settings, bias: Tensor | None,
               mask: Tensor | None) -> tuple[Cache, Tensor | None, Chosen]:
        positions, vocabulary = start + mlc.arange(tokens.shape[1])[None], self.model.config.vocabulary
        seen = Seen(positions, positions[:, -1] + 1, table.shape[1] * PAGE, table)
        with integer_products(self.integers):
            hidden, cache = self.model.hidden(tokens, seen, cache)
            scores = self.model.scores(hidden[:, -1])
        row = sequence * vocabulary
        own = None if counts is None else mlc.dynamic_slice(counts, (row,), (vocabulary,))[None]
        chosen = choose(scores, kinds, settings, numbers, own, bias, mask)
        chosen = replace(chosen, tokens=mlc.where(mlc.isfinite(hidden).all(), chosen.tokens, NOT_FINITE))
        if counts is not None:
            at = row + mlc.clamp(chosen.tokens, min=0)
            counts = mlc.index_put(counts, (at,), mlc.ones(1, dtype="int32"), accumulate=True)
        return cache, counts, chosen.grouped(1)

    def _move(self, cache: Cache, sources: Tensor, targets: Tensor, room: Tensor) -> Cache:
        sources, targets = (x[:, None] * PAGE + mlc.arange(PAGE) for x in (sources, targets))
        return [tuple(mlc.index_put(x, (targets,), x[sources]) for x in layer) for layer in cache]

    def _write(self, kinds: Kinds, cache: Cache, counts: Tensor | None, tokens: Tensor, positions: Tensor,
               numbers: Tensor, limits: Tensor, ends: Tensor, repeats: Tensor, table: Tensor, room: Tensor,
               settings: Settings, bias: Tensor | None, masks: tuple[Tensor, Tensor] | None
               ) -> tuple[Cache, Tensor | None, Chosen]:
        count, every = repeats.shape[0], mlc.arange(tokens.shape[0])

        def goes_on(run: Run) -> Tensor:
            out: Tensor = (run.number < count) & run.going.any()
            return out

        def one(run: Run) -> Run:
            after = self._choose(kinds, run.cache, run.counts, run.tokens[:, None], run.positions, numbers + run.number,
                                 table, settings, bias, None if masks is None else masks[0][every, run.masks])
            cache, counted, chosen = after
            new = chosen.tokens[:, 0]
            known = mlc.clamp(new, min=0)
            if counted is not None:
                at = every * self.model.config.vocabulary + known
                counted = mlc.index_put(counted, (at,), run.going.to("int32"), accumulate=True)
            going = run.going & (run.number + 1 < limits) & (new >= 0) & ~(new[:, None] == ends).any(-1)
            follow = run.masks
            if masks is not None:
                follow = masks[1][every, run.masks, known].long()
                going = going & (follow >= 0)
            return Run(run.number + 1, cache, counted, mlc.where(going, new, run.tokens), run.positions + going.long(),
                       going, mlc.where(going, follow, run.masks),
                       run.chosen.with_column(run.number, chosen, run.going))

        start = Run(mlc.zeros((), dtype="int64"), cache, counts, tokens, positions, limits > 0, every * 0,
                    Chosen.nothing(tokens.shape[0], count, kinds.top))
        end: Run = mlc.while_loop(goes_on, one, start)
        return end.cache, end.counts, end.chosen

    def _verify(self, kinds: Kinds, cache: Cache, counts: Tensor | None, tokens: Tensor, positions: Tensor,
                numbers: Tensor, limits: Tensor, table: Tensor, room: Tensor, settings: Settings, bias: Tensor | None
                ) -> tuple[Cache, Tensor | None, Chosen]:
        cache, counted, chosen = self._choose(kinds, cache, counts, tokens, positions, numbers, table, settings, bias,
                                              None)
        new = chosen.tokens
        right = (tokens[:, 1:] == new[:, :-1]).long()
        certain = mlc.cat([mlc.ones(new.shape[0], 1, dtype="int64"), mlc.cumprod(right, 1)], 1)
        certain = mlc.where(mlc.arange(new.shape[1])[None] < limits[:, None], certain, 0)
        if counted is not None:
            at = mlc.arange(new.shape[0])[:, None] * self.model.config.vocabulary + mlc.clamp(new, min=0)
            counted = mlc.index_put(counted, (at,), certain.to("int32"), accumulate=True)
        return cache, counted, replace(chosen, tokens=mlc.where(certain > 0, new, -1))

    def _choose(self, kinds: Kinds, cache: Cache, counts: Tensor | None, tokens: Tensor, positions: Tensor,
                numbers: Tensor, table: Tensor, settings: Settings, bias: Tensor | None, masks: Tensor | None
                ) -> tuple[Cache, Tensor | None, Chosen]:
        """Add tokens [batch, n] to sequences, and choose the one that follows each, as if all before it were right."""
        batch, n = tokens.shape
        steps = mlc.arange(n)[None]
        at = positions[:, None] + steps
        seen = Seen(at, at[:, -1] + 1, table.shape[1] * PAGE, table)
        with integer_products(self.integers):
            hidden, cache = self.model.hidden(tokens, seen, cache)
            scores = self.model.scores(hidden)
        vocabulary = scores.shape[-1]

        def each(x: Tensor) -> Tensor:
            """Values of sequences [batch, ...] as those of each of their tokens [batch * n, ...]."""
            out: Tensor = x[:, None].expand(batch, n, *x.shape[1:]).reshape(batch * n, *x.shape[1:])
            return out

        counted = None
        if counts is not None:
            own = (tokens[..., None] == mlc.arange(vocabulary)) & (steps > 0)[..., None]
            counted = counts.reshape(-1, 1, vocabulary)[:batch] + mlc.cumsum(own.to("int32"), 1, dtype="int32")
            counted = counted.reshape(batch * n, vocabulary)
        chosen = choose(scores.reshape(batch * n, vocabulary), kinds, {k: each(x) for k, x in settings.items()},
                        (numbers[:, None] + steps).reshape(batch * n), counted, None if bias is None else each(bias),
                        None if masks is None else each(masks))
        return cache, counts, chosen.grouped(batch)


@dataclass(frozen=True)
class Run:
    """Sequences between two tokens of a loop.

    number     of tokens that were chosen
    tokens     that are read next, and
    positions  of these
    going      whether a sequence gets more
    masks      numbers of those of constraints
    chosen     so far
    """

    number: Tensor
    cache: Cache
    counts: Tensor | None
    tokens: Tensor
    positions: Tensor
    going: Tensor
    masks: Tensor
    chosen: Chosen


def settings_of(options: Sequence[Sampling]) -> Settings:
    """The options of sequences as arrays."""
    settings = {name: mlc.from_numpy(np.array([getattr(o, name) for o in options], dtype)) for name, dtype in (
        ("temperature", np.float32), ("top_p", np.float32), ("min_p", np.float32), ("top_k", np.int64),
        ("repetition_penalty", np.float32), ("frequency_penalty", np.float32), ("presence_penalty", np.float32))}
    settings["keys"] = mlc.from_numpy(np.array([[o.seed >> 32, o.seed & 0xFFFFFFFF] for o in options], np.uint32))
    return settings
