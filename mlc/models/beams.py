"""Beam search: the answers with the greatest log-probability, by following several at once, as transformers does.

Each prompt has `num_beams` sequences of the cache. A step gives the likely tokens of each, with log-probabilities. Of
all continuations of a prompt the best ones go on, and those that end with a stop token are kept as answers, ordered by
log-probability / length ** length_penalty. Where a sequence is continued twice, both have the pages that it has filled,
and only the rows of its last one are copied. All sums are float32, in the order of transformers, so that the tokens are
equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.cache import PAGE, pages_for
from mlc.models.generation import Completion, Request
from mlc.models.pages import Page, Pages
from mlc.models.sampling import NOT_FINITE, Kinds, Sampling, not_finite
from mlc.models.slots import Written

if TYPE_CHECKING:
    from mlc.models.language_model import LanguageModel

Array = np.ndarray[Any, Any]

NONE = np.float32(-1e9)
"""The score of a sequence that there is not."""
MOST_PENALTY = 5
"""The greatest power of a length: that of a million tokens, and what is divided by it, are numbers of float32."""
MOST_KEPT = 64
"""Continuations of a sequence that a step finds at most."""


@dataclass(frozen=True)
class BeamSearch:
    """How answers are searched for.

    count           sequences that are followed for each prompt
    length_penalty  power of the length that log-probabilities are divided by: above 0 longer answers are better
    early_stopping  True: the search ends with `count` answers; False: once the best sequence is worse than the worst
                    answer, as if it ended now; "never": once no sequence can become better
    """

    count: int
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False

    def __post_init__(self) -> None:
        if not 2 <= self.count <= MOST_KEPT // 2:
            raise _refused(f"num_beams is {self.count!r}", f"it is from 1 to {MOST_KEPT // 2}")
        if not -MOST_PENALTY <= self.length_penalty <= MOST_PENALTY:
            raise _refused(f"length_penalty is {self.length_penalty!r}",
                           f"it is a number from {-MOST_PENALTY} to {MOST_PENALTY}")
        if self.early_stopping not in (True, False, "never"):
            raise _refused(f"early_stopping is {self.early_stopping!r}", "it is True, False or 'never'")

    def kept(self, request: Request) -> int:
        """How many continuations are kept, so that enough go on if all others end."""
        return max(2, 1 + len(request.stop_tokens)) * self.count


def _refused(what: str, hint: str) -> UserError:
    return UserError(what, code="MLC0993", loc=user_loc(), hint=hint)


class Beams:
    """The sequences of one prompt, and the answers that were found.

    tokens   of each sequence
    scores   sums of their log-probabilities
    answers  that were found, the best first, with their scores
    """

    def __init__(self, request: Request, search: BeamSearch) -> None:
        self.request, self.search = request, search
        self.tokens: list[list[int]] = [[] for _ in range(search.count)]
        self.scores: Array = np.full(search.count, NONE, np.float32)
        self.scores[0] = 0
        self.answers: list[tuple[np.float32, list[int]]] = []
        self.done = False

    def advance(self, best: Array, chances: Array) -> list[int]:
        """Continue with the likely tokens [sequences, any]; the sequence that each of the new ones continues."""
        search, kept = self.search, self.search.kept(self.request)
        sums = (chances + self.scores[:, None]).astype(np.float32).reshape(-1)
        order = np.argsort(-sums, kind="stable")[:kept]
        parents, sums = order // best.shape[1], sums[order]
        texts = [[*self.tokens[p], int(t)] for p, t in zip(parents, best.reshape(-1)[order])]
        length = len(texts[0])
        ended = np.array([t[-1] in self.request.stop_tokens or length == self.request.limit for t in texts])
        self._keep([(s, t) for s, t, e in list(zip(sums, texts, ended))[: search.count] if e], length)
        going = sums + ended.astype(np.float32) * NONE
        on = np.argsort(-going, kind="stable")[: search.count]
        self.tokens, self.scores = [texts[i] for i in on], going[on]
        self.done = bool(ended.all()) or not self._can_improve(length)
        return [int(parents[i]) for i in on]

    def _keep(self, found: list[tuple[np.float32, list[int]]], length: int) -> None:
        full = len(self.answers) == self.search.count
        if full and self.search.early_stopping is True:
            return
        power = np.float32(float(length) ** self.search.length_penalty)
        answers = [*self.answers, *((np.float32(s / power), text) for s, text in found)]
        self.answers = sorted(answers, key=lambda a: -a[0])[: self.search.count]

    def _can_improve(self, length: int) -> bool:
        """Whether a sequence may still become an answer that is better than the worst one."""
        search = self.search
        if len(self.answers) < search.count:
            return True
        if search.early_stopping is True:
            return False
        longest = search.early_stopping == "never" and search.length_penalty > 0
        reached = np.float32(float(self.request.limit if longest else length) ** search.length_penalty)
        return bool(self.scores[0] / reached > self.answers[-1][0])

    def completion(self, model: LanguageModel) -> Completion:
        """The best answer."""
        tokens = self.answers[0][1]
        ended = tokens[-1] in self.request.stop_tokens
        text = "" if model.tokenizer is None else model.tokenizer.decode(tokens[:-1] if ended else tokens)
        return Completion(text, tuple(tokens), "stop" if ended else "length", len(self.request.prompt))


def beam_search(model: LanguageModel, requests: Sequence[Request], search: BeamSearch) -> list[Completion]:
    """The best answers to requests, which are searched for together; each is the one that its request gets alone.

    Raises:
        UserError: A request asks for what only answers that are written token by token can have (MLC0993).
    """
    for request in requests:
        _check(request, search)
    following = Following(model, requests, search)
    with no_grad():
        following.begin()
        while not all(b.done for b in following.beams):
            following.step()
    return [b.completion(model) for b in following.beams]


class Following:
    """All sequences of a search, and their pages.

    beams   of each prompt
    tables  the pages of each sequence, those of a prompt one after the other
    """

    def __init__(self, model: LanguageModel, requests: Sequence[Request], search: BeamSearch) -> None:
        self.model, self.count = model, search.count
        self.beams = [Beams(r, search) for r in requests]
        kinds = Kinds(top=min(max(search.kept(r) for r in requests), model.config.vocabulary))
        capacity = max(len(r.prompt) + r.limit for r in requests)
        prompts = [r.prompt for r in requests for _ in range(search.count)]
        self.state = model.steps.start(prompts, [Sampling()] * len(prompts), capacity, kinds)
        self.pages = Pages(len(prompts) * pages_for(capacity))
        self.tables: list[list[Page]] = [[] for _ in prompts]

    def begin(self) -> None:
        """Read each prompt once, for the first of its sequences."""
        parents = list(range(len(self.tables)))
        for i, b in enumerate(self.beams):
            first, prompt = i * self.count, b.request.prompt
            self._read(first, prompt)
            parents[first: first + self.count] = [first] * self.count
        self._continue(parents, [len(b.request.prompt) - 1 for b in self.beams])

    def step(self) -> None:
        """Continue all sequences by a token; those of prompts that are done stay as they are, and cost the same."""
        texts = [[*b.request.prompt, *own] for b in self.beams for own in b.tokens]
        for i, text in enumerate(texts):
            if len(text) - 1 == self.model.steps.turning_point:        # longrope turns all keys anew from here on
                self._read(i, text)
            self._grow(i, len(text))
        lengths, last = (np.array(x, np.int64) for x in zip(*((len(t), t[-1]) for t in texts)))
        written = Written.of(self.model.steps.write(self.state, last, lengths - 1, lengths * 0))
        assert written.best is not None and written.best_chances is not None
        parents = list(range(len(texts)))
        for i, b in enumerate(self.beams):
            rows = slice(i * self.count, (i + 1) * self.count)
            if not b.done:
                if (written.tokens[rows] == NOT_FINITE).any():
                    raise not_finite(len(texts[rows.start]))
                found = b.advance(written.best[rows, 0], written.best_chances[rows, 0])
                parents[rows] = [rows.start + parent for parent in found]
        self._continue(parents, [len(texts[i * self.count]) for i in range(len(self.beams))])

    def _read(self, sequence: int, text: Sequence[int]) -> None:
        """Have a sequence hold all tokens of a text but the last one, which the next step reads."""
        self._grow(sequence, len(text))
        if not self.model.steps.read(self.state, sequence, text[:-1], 0, len(text)):
            raise not_finite(len(text))

    def _grow(self, sequence: int, length: int) -> None:
        """Have a sequence have pages for a length."""
        table = self.tables[sequence]
        table += [self.pages.take() for _ in range(pages_for(length) - len(table))]
        self._number()

    def _number(self) -> None:
        self.state.tables = [[page.number for page in table] for table in self.tables]

    def _continue(self, parents: Sequence[int], lengths: Sequence[int]) -> None:
        """Have each sequence be the one of its parent, whose rows are those of texts of the lengths of the prompts."""
        for i in set(range(len(parents))).difference(parents):
            self.pages.give_back(self.tables[i])
        tables, copies, continued = list[list[Page]](), list[tuple[Page, Page]](), set[int]()
        for i, parent in enumerate(parents):
            table, (whole, rest) = self.tables[parent], divmod(lengths[i // self.count], PAGE)
            if parent in continued:
                own = [self.pages.share(page) for page in table[:whole]]
                if rest:
                    own.append(self.pages.take())
                    copies.append((table[whole], own[whole]))
                table = own
            continued.add(parent)
            tables.append(table)
        self.tables = tables
        self._number()
        if copies:
            self.model.steps.move(self.state, [a.number for a, _ in copies], [b.number for _, b in copies])


def check_options(options: Mapping[str, Any], draft: Any) -> None:
    """Refuse options that only answers that are written token by token can have."""
    for name, value in {**options, "draft": draft}.items():
        if name not in ("max_tokens", "stop_tokens", "seed") and value is not None and value not in _NEUTRAL[name]:
            raise _refused(f"{name} does not go with num_beams", "beam search takes max_tokens, stop_tokens, "
                           "length_penalty and early_stopping")


_NEUTRAL: Mapping[str, tuple[Any, ...]] = defaultdict(tuple, {
    "temperature": (0.0,), "repetition_penalty": (1.0,), "frequency_penalty": (0.0,), "presence_penalty": (0.0,),
    "logit_bias": ({},), "stop": ((), [])})
"""Values of options that ask for nothing, beside None."""


def _check(request: Request, search: BeamSearch) -> None:
    if request.sampling.repetition_penalty != 1:           # what the folder recommends
        raise _refused("repetition_penalty does not go with num_beams", "pass repetition_penalty=1.0")
    if search.kept(request) > MOST_KEPT:
        raise _refused(f"num_beams is {search.count} with {len(request.stop_tokens)} stop tokens",
                       f"num_beams * (1 + stop tokens) is at most {MOST_KEPT}")
