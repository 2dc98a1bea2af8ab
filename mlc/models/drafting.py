"""Speculative decoding: tokens that are guessed cheaply, and verified by one step of the model for all of them.

The step chooses a token behind each guessed one, as `write` would: by the scores there, the options and the random
number of its place. A guess is right if it is the token that was chosen, and the first choice behind the right ones is
the next token whether or not it was guessed. The tokens so are those without guesses, to the bit, whatever guesses: the
same for greedy answers and for drawn ones, whose distribution cannot change as the tokens themselves do not. A draft
model draws with the same random numbers, so that it guesses what the model draws wherever their distributions agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.generation import Answer
from mlc.models.pages import common
from mlc.models.sampling import Kinds
from mlc.models.slots import KINDS, Slots

if TYPE_CHECKING:
    from mlc.models.language_model import LanguageModel


@dataclass(frozen=True)
class PromptLookup:
    """Guesses what followed the last few tokens where they stood before, in the prompt or in the answer.

    It costs nothing but the verification, and helps where an answer repeats its prompt: summaries, corrections, code.

    Args:
        tokens: How many tokens are guessed at a time.
        longest: How many tokens have to be the same at most; fewer are tried next, down to one.

    Raises:
        UserError: A number is out of its range (MLC0992).

    Example:
        >>> model = mlc.models.load("examples/assistant")
        >>> found = mlc.generate(model, "mlc.cumsum mlc.cumsum", max_tokens=4, draft=mlc.models.PromptLookup())
        >>> found == mlc.generate(model, "mlc.cumsum mlc.cumsum", max_tokens=4)
        True
    """

    tokens: int = 8
    longest: int = 3

    def __post_init__(self) -> None:
        _check_count("tokens", self.tokens)
        _check_count("longest", self.longest)


@dataclass(frozen=True)
class DraftModel:
    """Guesses what a smaller model of the same vocabulary answers.

    Args:
        model: The smaller model, of `mlc.models.load`.
        tokens: How many tokens are guessed at a time.

    Raises:
        UserError: `tokens` is out of its range, or the model is one whose rows depend on the length of the text
            (MLC0992).

    Example:
        >>> model = mlc.models.load("examples/assistant")
        >>> mlc.models.DraftModel(model, tokens=3).tokens
        3
    """

    model: LanguageModel
    tokens: int = 4

    def __post_init__(self) -> None:
        _check_count("tokens", self.tokens)
        check_model(self.model)


Draft = PromptLookup | DraftModel


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 64:
        raise UserError(f"{name} is {value!r}", code="MLC0992", loc=user_loc(), hint="it is an integer from 1 to 64")


def check_model(model: LanguageModel) -> None:
    """Refuse a model that takes no guesses, or makes none: its keys are turned by the length of the text."""
    rotary = getattr(model.decoder.config, "rotary", None)
    if rotary is not None and rotary.kind in ("dynamic", "longrope"):
        raise UserError(f"{model.origin} turns its keys by the length of the text ({rotary.kind}): there is no "
                        "speculative decoding for it", code="MLC0992", loc=user_loc(), hint="leave out draft")


class Drafter(Protocol):
    """Guesses tokens for the answers in the slots of a scheduler."""

    def guess(self, answers: Sequence[Answer | None]) -> list[list[int]]:
        """Tokens that may follow each answer; none for None."""

    def warm_up(self) -> Iterator[tuple[int, Kinds]]:
        """Compile the steps that guess, one by one; each that is about to be compiled."""

    def clear(self) -> None:
        """Forget all answers, and have memory that no step has a hand on."""


def drafter(draft: Draft, model: LanguageModel, count: int, capacity: int) -> Drafter:
    """The drafter for a model with some slots.

    Raises:
        UserError: The draft model has another vocabulary, or the model takes no guesses (MLC0992).
    """
    check_model(model)
    if isinstance(draft, PromptLookup):
        return Lookups(draft)
    own, other = model.config.vocabulary, draft.model.config.vocabulary
    texts = [m.tokenizer.rules.get_vocab() for m in (model, draft.model) if m.tokenizer is not None]
    if own != other or (len(texts) == 2 and texts[0] != texts[1]):
        raise UserError(f"the draft model {draft.model.origin} has another vocabulary ({other} tokens) than "
                        f"{model.origin} ({own})", code="MLC0992", loc=user_loc(),
                        hint="a draft model is a smaller one of the same family")
    return Drafts(draft, count, min(capacity, draft.model.config.context))


def left(answer: Answer) -> int:
    """How many tokens may be guessed: the last one of an answer comes from the step that verifies."""
    return answer.request.limit - len(answer.tokens) - 1


class Lookups:
    """Guesses by lookup: a table of the places of all runs of tokens, which grows with each answer."""

    def __init__(self, draft: PromptLookup) -> None:
        self.draft = draft
        self._tables = dict[int, Table]()                  # by slot

    def guess(self, answers: Sequence[Answer | None]) -> list[list[int]]:
        out = list[list[int]]()
        for i, answer in enumerate(answers):
            if answer is None:
                out.append([])
                continue
            if i not in self._tables or self._tables[i].answer is not answer:
                self._tables[i] = Table(answer, self.draft.longest)
            out.append(self._tables[i].guess(min(self.draft.tokens, left(answer))))
        return out

    def warm_up(self) -> Iterator[tuple[int, Kinds]]:
        return iter(())

    def clear(self) -> None:
        self._tables.clear()


class Table:
    """Where each run of tokens of an answer and its prompt was last, but at the end."""

    def __init__(self, answer: Answer, longest: int) -> None:
        self.answer, self.longest = answer, longest
        self.text = list[int]()
        self.ends = dict[tuple[int, ...], int]()

    def guess(self, count: int) -> list[int]:
        """The tokens behind the last place of the longest run that the text ends with.

        Where the text ends before there are enough, it is taken to repeat what is behind that place.
        """
        text, known = self.text, len(self.text)
        text += (*self.answer.request.prompt, *self.answer.tokens)[known:]
        for end in range(max(1, known), len(text)):        # runs that end before the last token
            for n in range(1, min(self.longest, end) + 1):
                self.ends[tuple(text[end - n: end])] = end
        for n in range(min(self.longest, len(text)), 0, -1):
            if (at := self.ends.get(tuple(text[-n:]))) is not None:
                return [text[at + i % (len(text) - at)] for i in range(count)]
        return []


class Drafts:
    """Guesses by a model: it has slots of its own, whose rows follow those of the model that verifies."""

    def __init__(self, draft: DraftModel, count: int, capacity: int) -> None:
        self.draft, self.capacity = draft, capacity
        self.slots = Slots(draft.model.steps, count, capacity)
        self._own = dict[int, tuple[Answer, Answer]]()     # by slot: the answer, and the same for the draft model

    def guess(self, answers: Sequence[Answer | None]) -> list[list[int]]:
        rows = [None if a is None or a.length + self.draft.tokens > self.capacity or left(a) < 1 else
                self._answer(i, a) for i, a in enumerate(answers)]
        for i, own in enumerate(rows):
            if own is None:
                continue
            text, held = (*own.request.prompt, *own.tokens), self.slots.contents[i]
            del held[common(held, text[:-1]):]             # the guesses that were wrong
            while len(held) < len(text) - 1:
                self.slots.read(i, text[:-1], len(text))
        if not any(rows):
            return [[] for _ in rows]
        found = self.slots.write(rows, None, self.draft.tokens)
        return [[] if row is None else [int(t) for t in tokens if t >= 0] for row, tokens in zip(rows, found.tokens)]

    def warm_up(self) -> Iterator[tuple[int, Kinds]]:
        return self.slots.warm_up([k for k in KINDS if k.top is None])     # nothing is reported

    def clear(self) -> None:
        self.slots.clear()
        self._own.clear()

    def _answer(self, slot: int, answer: Answer) -> Answer:
        """The answer as the draft model sees it: the same tokens and random numbers, without penalties."""
        if slot not in self._own or self._own[slot][0] is not answer:
            request = answer.request
            sampling = replace(request.sampling, repetition_penalty=1.0, frequency_penalty=0.0, presence_penalty=0.0)
            own = Answer(replace(request, sampling=sampling, constraint=None, limit=request.limit - 1), None,
                         answer.tokens)
            if slot in self._own:
                self.slots.leave(slot)
            taken = self.slots.take(slot, own.request)
            assert taken is not None, "each slot has room for a request"
            self._own[slot] = answer, own
        return self._own[slot][1]
