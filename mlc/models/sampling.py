"""The choice of the next token, as part of the compiled step.

A step takes the options of each sequence as arrays, so that sequences with different options share one compilation;
only which kinds of options are in use at all (`Kinds`) is a part of the code. Everything is computed per sequence: a
sequence draws the same token alone and in any batch, from the key of its seed and the number of the token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import mlc
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError


@dataclass(frozen=True)
class Sampling:
    """How the tokens of one sequence are chosen.

    The order of the steps is that of transformers: bias, penalties, temperature, top-k, top-p, min-p.

    Args:
        temperature: Divisor of the scores; 0, as all below 1e-5, for the token of the highest score.
        top_k: How many of the most likely tokens may be drawn; 0 for all.
        top_p: The least probability that the most likely tokens, of which one is drawn, have together; 1 for all.
        min_p: The least probability of a token, as a part of that of the most likely one; 0 for any.
        repetition_penalty: Divisor of the positive scores, and factor of the negative ones, of tokens that are in the
            text already; 1 for none.
        frequency_penalty: Subtracted from the score of a token for each time that it was generated.
        presence_penalty: Subtracted from the scores of tokens that were generated.
        logit_bias: What is added to the scores of tokens, by their number.
        seed: Of the random numbers.

    Raises:
        UserError: A number is out of its range (MLC0916).

    Example:
        >>> from mlc.models.sampling import Sampling
        >>> Sampling(temperature=0.7, top_p=0.9).top_k
        0
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("temperature", 0.0, 1e6), ("top_k", 0, 1 << 40), ("top_p", 0.0, 1.0),
                                ("min_p", 0.0, 1.0), ("repetition_penalty", 1e-6, 1e6),
                                ("frequency_penalty", -1e6, 1e6), ("presence_penalty", -1e6, 1e6),
                                ("seed", 0, 2**64 - 1)):
            check_number(name, getattr(self, name), low, high, Integral if isinstance(low, int) else Real)
        for token, value in self.logit_bias.items():
            check_number(f"logit_bias of {token!r}", value, -1e6, 1e6, Real)


def check_number(name: str, value: Any, low: float, high: float, kind: type) -> None:
    """UserError (MLC0916) if an option is no number of a kind, Integral or Real, in its range."""
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:  # type: ignore[operator]
        what = "an integer" if kind is Integral else "a number"
        raise UserError(f"{name} is {value!r}", code="MLC0916", loc=user_loc(),
                        hint=f"it is {what} from {low:g} to {high:g}")


@dataclass(frozen=True)
class Kinds:
    """Which kinds of options the sequences of a step use: what is not used costs nothing.

    draws      a temperature that is not 0
    filters    top-k, top-p or min-p
    penalties  penalties of tokens that are in the text
    bias       a bias of scores
    masks      tokens that may not be chosen, because of a constraint
    top        how many of the most likely tokens are reported, with their log-probabilities; None for no probabilities
    """

    draws: bool = False
    filters: bool = False
    penalties: bool = False
    bias: bool = False
    masks: bool = False
    top: int | None = None

    def covers(self, needed: Kinds) -> bool:
        """Whether a step of these kinds serves sequences that need others."""
        flags = ("draws", "filters", "penalties", "bias", "masks")
        return all(getattr(self, f) or not getattr(needed, f) for f in flags) and (
            needed.top is None or (self.top is not None and self.top >= needed.top))


def kinds_of(options: Sequence[Sampling], top: int | None, masks: bool = False) -> Kinds:
    """The kinds of options that sequences use."""
    draws = any(o.temperature > 0 for o in options)
    return Kinds(draws, draws and any(o.top_k > 0 or o.top_p < 1 or o.min_p > 0 for o in options),
                 any(o.repetition_penalty != 1 or o.frequency_penalty or o.presence_penalty for o in options),
                 any(o.logit_bias for o in options), masks, top)


@dataclass(frozen=True)
class Chosen:
    """The tokens that a step chooses.

    tokens         one per sequence [batch], or several [batch, count], -1 where there is none, and NOT_FINITE where
                   the scores are no numbers to choose by
    log_chances    of the tokens, of the same shape; None if they were not asked for
    best           the most likely tokens [..., top], and
    best_chances   their log-probabilities [..., top]
    """

    tokens: Tensor
    log_chances: Tensor | None = None
    best: Tensor | None = None
    best_chances: Tensor | None = None

    @classmethod
    def nothing(cls, batch: int, count: int, top: int | None) -> Chosen:
        """Room for tokens [batch, count], none of which is chosen yet."""
        tokens = mlc.zeros(batch, count, dtype="int64") - 1
        if top is None:
            return cls(tokens)
        chances = mlc.zeros(batch, count)
        if top == 0:
            return cls(tokens, chances)
        return cls(tokens, chances, mlc.zeros(batch, count, top, dtype="int64"), mlc.zeros(batch, count, top))

    def with_column(self, number: Tensor, chosen: Chosen, rows: Tensor) -> Chosen:
        """The same with a column of some rows [batch] replaced by what was chosen [batch, 1]."""
        here = (mlc.arange(self.tokens.shape[1])[None] == number) & rows[:, None]

        def placed(old: Tensor | None, new: Tensor | None) -> Tensor | None:
            if old is None or new is None:
                return None
            out: Tensor = mlc.where(here if len(old.shape) == 2 else here[..., None], new, old)
            return out

        return Chosen(mlc.where(here, chosen.tokens, self.tokens), placed(self.log_chances, chosen.log_chances),
                      placed(self.best, chosen.best), placed(self.best_chances, chosen.best_chances))

    def grouped(self, batch: int) -> Chosen:
        """The same of [batch * n] sequences as [batch, n]."""
        def group(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.reshape(batch, x.shape[0] // batch, *x.shape[1:])

        return Chosen(self.tokens.reshape(batch, -1), group(self.log_chances), group(self.best),
                      group(self.best_chances))


Settings = dict[str, Tensor]
"""The options of all sequences, as arrays [batch] by their names, and `keys` [batch, 2]."""


def choose(scores: Tensor, kinds: Kinds, settings: Settings, numbers: Tensor, counts: Tensor | None,
           bias: Tensor | None, masks: Tensor | None = None) -> Chosen:
    """The next token of each sequence.

    scores    of the tokens [batch, vocabulary]
    settings  of the sequences
    numbers   how many tokens each has generated [batch]
    counts    how often each token was generated, and 2^24 more where it is in the prompt [batch, vocabulary]; for
              penalties
    bias      added to the scores [batch, vocabulary]
    masks     whether a token may be chosen [batch, vocabulary]; not all are False
    """
    plain = scores
    if kinds.bias and bias is not None:
        scores = scores + bias
    if kinds.penalties and counts is not None:
        scores = _penalised(scores, settings, counts)
    if kinds.masks and masks is not None:
        scores = mlc.where(masks, scores, float("-inf"))
    greedy = mlc.argmax(scores, dim=-1)
    tokens = greedy
    if kinds.draws:
        cold = settings["temperature"] < COLD
        heat = mlc.where(cold, 1.0, settings["temperature"])[:, None]
        draw = mlc.vmap(lambda key, number: mlc.random.uniform(mlc.random.fold_in(key, number)))
        drawn = (_drawn_filtered if kinds.filters else _drawn)(scores / heat, settings,
                                                               draw(settings["keys"], numbers))
        tokens = mlc.where(cold, greedy, drawn)
    named = mlc.where(mlc.isfinite(plain.amax(-1)), tokens, NOT_FINITE)
    if kinds.top is None:
        return Chosen(named)
    chances = mlc.log_softmax(plain, dim=-1)
    own = mlc.gather(chances, 1, tokens[:, None])[:, 0]
    if kinds.top == 0:
        return Chosen(named, own)
    return Chosen(named, own, *_best(chances, kinds.top))


def _best(chances: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The most likely tokens [batch, count] and their chances: a few passes, cheaper than any order of all."""
    places, tokens, values = mlc.arange(chances.shape[-1])[None], list[Tensor](), list[Tensor]()
    for _ in range(count):
        at = mlc.argmax(chances, dim=-1)[:, None]
        tokens.append(at)
        values.append(mlc.gather(chances, 1, at))
        chances = mlc.where(places == at, float("-inf"), chances)
    return mlc.cat(tokens, 1), mlc.cat(values, 1)


COLD = 1e-5
"""Temperatures below are 0: scores divided by them would overflow."""
NOT_FINITE = -2
"""The token of a sequence whose scores are NaN, or infinite: its answer ends with an error."""
IN_PROMPT = 1 << 24
"""This is added to the count of a token that is in the prompt."""


def not_finite(length: int) -> UserError:
    """The error of a text behind whose tokens, so many, the model has no numbers."""
    return UserError(f"the model's scores behind {length} tokens are infinite or NaN", code="MLC0924", loc=user_loc(),
                     hint="look for weights that are not finite, or too large for float32 products: its file may be "
                          "damaged")


def _penalised(scores: Tensor, settings: Settings, counts: Tensor) -> Tensor:
    """Scores after the penalties of repetition, for all of the text, and of frequency and presence, for the answer."""
    penalty = settings["repetition_penalty"][:, None]
    scores = mlc.where(counts > 0, mlc.where(scores > 0, scores / penalty, scores * penalty), scores)
    generated = counts % IN_PROMPT
    present = mlc.where(generated > 0, settings["presence_penalty"][:, None], 0.0)
    out: Tensor = scores - generated.float() * settings["frequency_penalty"][:, None] - present
    return out


def _drawn(scores: Tensor, settings: Settings, uniform: Tensor) -> Tensor:
    """A token by its probability, to the bit the one that filters which leave all tokens draw."""
    return _at(mlc.exp(mlc.clamp(scores - scores.amax(-1, keepdim=True), min=_LEAST)), uniform)


def _drawn_filtered(scores: Tensor, settings: Settings, uniform: Tensor) -> Tensor:
    """The same of the tokens that top-k, top-p and min-p leave.

    Nothing is sorted: the least score that is left is found by bisection, in some passes over the scores. Tokens whose
    scores are the same, up to the last bits, are left or not together.
    """
    below = mlc.clamp(scores - scores.amax(-1, keepdim=True), min=_LEAST)
    top_k = mlc.where(settings["top_k"] > 0, mlc.clamp(settings["top_k"], max=scores.shape[-1]), scores.shape[-1])
    least = _greatest(lambda bound: (below >= bound).long().sum(-1) >= top_k, uniform)
    chances = mlc.where(below >= least, mlc.exp(below), 0.0)
    enough = settings["top_p"] * chances.sum(-1)
    least = _greatest(lambda bound: mlc.where(below >= bound, chances, 0.0).sum(-1) >= enough, uniform)
    least = mlc.where(settings["top_p"][:, None] < 1.0, least, _LEAST)           # sums of all would lose the smallest
    kept = (below >= least) & (chances >= settings["min_p"][:, None]) | (below == 0)
    return _at(mlc.where(kept, chances, 0.0), uniform)


_LEAST = -128.0
"""Scores below the best one by more than this have the probability 0 in float32."""
_HALVINGS = 31


def _greatest(holds: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """The greatest bound [batch, 1] of each sequence that a condition holds for, which holds for all below it."""
    def halved(i: Tensor, bounds: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        low, high = bounds
        middle = (low + high) * 0.5
        held = holds(middle)[:, None]
        return mlc.where(held, middle, low), mlc.where(held, high, middle)

    nothing = like[:, None] * 0
    low: Tensor
    low, _ = mlc.fori_loop(0, _HALVINGS, halved, (nothing + _LEAST, nothing))
    return low


def _at(chances: Tensor, uniform: Tensor) -> Tensor:
    """The first position at which the sum of probabilities [batch, n] exceeds a part of that of all."""
    sums = mlc.cumsum(chances, -1)
    reached = (sums <= uniform[:, None] * sums[:, -1:]).long().sum(-1)
    return mlc.minimum(reached, (sums < sums[:, -1:]).long().sum(-1))          # rounding may not lead beyond the last
