"""Generation: prompts in, tokens and text out, one by one or at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.autograd.grad_mode import no_grad
from mlc.models.constraints.automaton import Automaton, Matcher
from mlc.models.sampling import Chosen, Sampling, kinds_of
from mlc.models.text import Tokenizer, Unfolding

if TYPE_CHECKING:
    from mlc.models.steps import Steps

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LogProbability:
    """How likely a model found a token, before temperature, penalties and the like.

    Args:
        token: The token.
        value: The natural logarithm of its probability.
        best: The most likely tokens in its place, each with its log-probability.

    Example:
        >>> mlc.models.LogProbability(17, -0.5).best
        ()
    """

    token: int
    value: float
    best: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Piece:
    """A part of the answer to a prompt: what one step adds.

    Args:
        prompt: Number of the prompt.
        text: Text that is certain now; a part of a character, or of a stop text, comes later or not at all.
        token: The token; None for the text that was held back until the end.
        log_probability: Of the token, if it was asked for.
        finish_reason: None, or why this is the last piece: "stop" (a stop token or text) or "length".

    Example:
        >>> mlc.models.Piece(0, "Hello", 17).finish_reason is None
        True
    """

    prompt: int
    text: str
    token: int | None
    log_probability: LogProbability | None = None
    finish_reason: str | None = None


@dataclass(frozen=True)
class Completion:
    """The answer to a prompt.

    Args:
        text: The text, without what stopped it.
        tokens: The tokens, with the one that stopped it, if one did.
        finish_reason: "stop" (a stop token or text) or "length".
        prompt_tokens: Number of tokens of the prompt.
        log_probabilities: Of the tokens, if they were asked for.

    Example:
        >>> mlc.models.Completion("Hello", (17, 2), "stop", 5).finish_reason
        'stop'
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    log_probabilities: tuple[LogProbability, ...] = ()


@dataclass(frozen=True)
class Request:
    """A prompt, and what is wanted of the answer.

    prompt       its tokens
    sampling     how tokens are chosen
    limit        greatest number of tokens of the answer
    stop         texts that end the answer, which they are not a part of
    stop_tokens  tokens that do
    constraint   of the text of the answer, for the model's vocabulary
    """

    prompt: tuple[int, ...]
    sampling: Sampling
    limit: int
    stop: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()
    constraint: Automaton | None = None

    def limited(self, limit: int) -> Request:
        """The same request, with an answer of no more tokens than this."""
        return replace(self, limit=min(limit, self.limit))


@dataclass
class Answer:
    """The answer to a request, as it grows."""

    request: Request
    text: Unfolding | None
    tokens: list[int] = field(default_factory=list)
    held: str = ""                                         # text that may be the start of a stop text
    finished: str | None = None
    matcher: Matcher | None = None
    allowed: Array | None = None                           # the mask of the next token, once it is asked for

    def __post_init__(self) -> None:
        if self.request.constraint is not None:
            self.matcher = Matcher(self.request.constraint, self.request.stop_tokens)

    @property
    def last(self) -> int:
        """The token that the next step reads."""
        return self.tokens[-1] if self.tokens else self.request.prompt[-1]

    def mask(self) -> Array | None:
        """Which tokens may come next; None if all may."""
        if self.allowed is None and self.matcher is not None:
            self.allowed = self.matcher.mask(self.request.limit - len(self.tokens))
        return self.allowed

    def add(self, token: int) -> str:
        """The text that is certain after another token."""
        self.tokens.append(token)
        self.allowed = None
        if self.matcher is not None and token not in self.request.stop_tokens:
            self.matcher.advance(token)
            if self.matcher.complete:
                self.finished = "stop"
                return self._let_go((self.text.add(token) + self.text.rest()) if self.text is not None else "")
        if token in self.request.stop_tokens:
            self.finished = "stop"
            return self._let_go(self.text.rest() if self.text is not None and self.text.tokens else "")
        new = self.text.add(token) if self.text is not None else ""
        if len(self.tokens) == self.request.limit:
            self.finished = "length"
            return self._let_go(new + (self.text.rest() if self.text is not None else ""))
        self.held += new
        if self._cut():
            return self._given(len(self.held))
        return self._given(len(self.held) - self._could_stop())

    def _let_go(self, new: str) -> str:
        self.held += new
        self._cut()
        return self._given(len(self.held))

    def _cut(self) -> bool:
        """Drop what is from the first stop text on."""
        places = [at for stop in self.request.stop if (at := self.held.find(stop)) >= 0]
        if places:
            self.held, self.finished = self.held[: min(places)], "stop"
        return bool(places)

    def _could_stop(self) -> int:
        """The length of the end of the text that a stop text may begin with."""
        return max((n for stop in self.request.stop for n in range(1, min(len(stop), len(self.held) + 1))
                    if self.held.endswith(stop[:n])), default=0)

    def _given(self, length: int) -> str:
        given, self.held = self.held[:length], self.held[length:]
        return given


def pieces(steps: Steps, requests: Sequence[Request], tokenizer: Tokenizer | None, top: int | None) -> Iterator[Piece]:
    """The answers to requests, computed together, piece by piece.

    top  how many of the most likely tokens are reported for each token; None for no log-probabilities
    """
    answers = [Answer(r, Unfolding(tokenizer) if tokenizer else None) for r in requests]
    options = [r.sampling for r in requests]
    with no_grad():
        kinds = kinds_of(options, top, any(a.matcher is not None for a in answers))
        state = steps.start([r.prompt for r in requests], options, max(len(r.prompt) + r.limit for r in requests),
                            kinds)
        for i, r in enumerate(requests):                   # the last token is read by the step that writes the next
            steps.read(state, i, r.prompt[:-1], 0, len(r.prompt))
    tokens = np.array([r.prompt[-1] for r in requests], np.int64)
    positions = np.array([len(r.prompt) - 1 for r in requests], np.int64)
    numbers = np.zeros(len(requests), np.int64)
    while not all(a.finished for a in answers):
        running = [i for i, a in enumerate(answers) if not a.finished]
        with no_grad():                                    # not around a yield, which is the caller's code
            for i in running:
                if positions[i] == steps.turning_point and numbers[i] > 0:
                    seen = (*answers[i].request.prompt, *answers[i].tokens)
                    steps.read(state, i, seen[:-1], 0, len(seen))
            masks = _masks(answers) if state.kinds.masks else None
            chosen = steps.write(state, tokens, positions, numbers, masks)
        found = chosen.tokens.numpy()
        for i in running:
            text = answers[i].add(int(found[i]))
            chance = None if top is None else log_probability(chosen, i, top)
            yield Piece(i, text, int(found[i]), chance, answers[i].finished)
        goes_on = np.array([a.finished is None for a in answers])
        tokens = np.where(goes_on, found, tokens)
        positions, numbers = positions + goes_on, numbers + goes_on


def _masks(answers: Sequence[Answer]) -> Array:
    vocabulary = next(len(a.matcher.automaton.vocabulary) for a in answers if a.matcher is not None)
    masks: Array = np.ones((len(answers), vocabulary), np.bool_)
    for row, a in zip(masks, answers):
        if a.finished is None and (mask := a.mask()) is not None:
            row[:] = mask
    return masks


def log_probability(chosen: Chosen, i: int, top: int) -> LogProbability | None:
    """That of the token of a sequence, with those of the `top` most likely ones."""
    if chosen.log_chances is None:
        return None
    best = () if chosen.best is None or chosen.best_chances is None else tuple(
        (int(t), float(p)) for t, p in zip(chosen.best.numpy()[i, :top], chosen.best_chances.numpy()[i, :top]))
    return LogProbability(int(chosen.tokens.numpy()[i]), float(chosen.log_chances.numpy()[i]), best)


def completions(found: Iterator[Piece], requests: Sequence[Request]) -> list[Completion]:
    """The answers to requests, at their ends."""
    texts, reasons = [""] * len(requests), ["length"] * len(requests)
    tokens: list[list[int]] = [[] for _ in requests]
    chances: list[list[LogProbability]] = [[] for _ in requests]
    for piece in found:
        texts[piece.prompt] += piece.text
        if piece.token is not None:
            tokens[piece.prompt].append(piece.token)
        if piece.log_probability is not None:
            chances[piece.prompt].append(piece.log_probability)
        reasons[piece.prompt] = piece.finish_reason or reasons[piece.prompt]
    return [Completion(text, tuple(t), reason, len(r.prompt), tuple(c))
            for text, t, reason, r, c in zip(texts, tokens, reasons, requests, chances)]
