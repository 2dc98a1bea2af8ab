"""Generation: prompts in, tokens and text out, one by one or at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.models.sampling import Sampling
from mlc.models.text import Unfolding

if TYPE_CHECKING:
    from mlc.models.constraints.automaton import Automaton, Matcher

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
        guessed: Whether a draft had guessed the token.

    Example:
        >>> mlc.models.Piece(0, "Hello", 17).finish_reason is None
        True
    """

    prompt: int
    text: str
    token: int | None
    log_probability: LogProbability | None = None
    finish_reason: str | None = None
    guessed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Completion:
    """The answer to a prompt.

    Args:
        text: The text, without what stopped it.
        tokens: The tokens, with the one that stopped it, if one did.
        finish_reason: "stop" (a stop token or text) or "length".
        prompt_tokens: Number of tokens of the prompt.
        log_probabilities: Of the tokens, if they were asked for.
        guessed_tokens: How many of the tokens a draft had guessed.

    Example:
        >>> mlc.models.Completion("Hello", (17, 2), "stop", 5).finish_reason
        'stop'
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    log_probabilities: tuple[LogProbability, ...] = ()
    guessed_tokens: int = field(default=0, compare=False)


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
            from mlc.models.constraints.automaton import Matcher
            self.matcher = Matcher(self.request.constraint, self.request.stop_tokens)

    @property
    def last(self) -> int:
        """The token that the next step reads."""
        return self.tokens[-1] if self.tokens else self.request.prompt[-1]

    @property
    def length(self) -> int:
        """The number of tokens of the prompt and the answer so far."""
        return len(self.request.prompt) + len(self.tokens)

    def mask(self) -> Array | None:
        """Which tokens may come next; None if all may."""
        if self.allowed is None and self.matcher is not None:
            self.allowed = self.matcher.mask(self.request.limit - len(self.tokens))
        return self.allowed

    def masks_ahead(self, count: int) -> tuple[Array, Array] | None:
        """Which of the next tokens may come, as far as that is known for `count` of them; None if all may."""
        if (mask := self.mask()) is None or self.matcher is None:
            return None
        from mlc.models.constraints.lookahead import masks_ahead
        return masks_ahead(self.matcher, mask, self.request.limit - len(self.tokens), count)

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


def completions(found: Iterator[Piece], requests: Sequence[Request]) -> list[Completion]:
    """The answers to requests, at their ends."""
    texts, reasons = [""] * len(requests), ["length"] * len(requests)
    tokens: list[list[int]] = [[] for _ in requests]
    chances: list[list[LogProbability]] = [[] for _ in requests]
    guessed = [0] * len(requests)
    for piece in found:
        texts[piece.prompt] += piece.text
        guessed[piece.prompt] += piece.guessed
        if piece.token is not None:
            tokens[piece.prompt].append(piece.token)
        if piece.log_probability is not None:
            chances[piece.prompt].append(piece.log_probability)
        reasons[piece.prompt] = piece.finish_reason or reasons[piece.prompt]
    return [Completion(text, tuple(t), reason, len(r.prompt), tuple(c), g)
            for text, t, reason, r, c, g in zip(texts, tokens, reasons, requests, chances, guessed)]
