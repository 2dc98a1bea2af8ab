"""Speculative decoding: answers are those without a draft, whatever it guesses, and what it guessed is counted."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.models import DraftModel, PromptLookup, Scheduler
from mlc.models.drafting import Table
from mlc.models.generation import Answer, Piece, Request, completions
from mlc.models.sampling import IN_PROMPT, Kinds, Sampling
from tests.language_models import CASES, write_folder

PROMPTS = [[3, 4, 5, 3, 4], [9], [7, 8] * 9]
ALL: dict[str, Any] = {"temperature": 0.7, "top_p": 0.95, "repetition_penalty": 1.1, "presence_penalty": 0.2,
                       "logit_bias": {5: 2.0}, "logprobs": 2}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[mlc.models.LanguageModel, mlc.models.LanguageModel]:
    """A model of two layers, and one that is its first."""
    large, small = (mlc.models.load(write_folder({**CASES["llama"], "num_hidden_layers": n},
                                                 tmp_path_factory.mktemp(f"llama{n}"))) for n in (2, 1))
    return large, small


def test_an_answer_is_that_without_a_draft(models: tuple[Any, Any]) -> None:
    model, small = models
    plain = mlc.generate(model, PROMPTS[0], max_tokens=24, logprobs=0)
    for draft in (DraftModel(small, tokens=3), PromptLookup(tokens=5), small):
        drafted = mlc.generate(model, PROMPTS[0], max_tokens=24, logprobs=0, draft=draft)
        assert drafted == plain                            # log-probabilities too, to the last bit
        assert 0 < drafted.guessed_tokens < 24


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, ALL])
@pytest.mark.parametrize("kind", ["lookup", "model"])
def test_answers_in_a_batch_are_those_without_a_draft(models: tuple[Any, Any], kind: str, options: dict[str, Any]
                                                      ) -> None:
    model, small = models
    draft = PromptLookup(tokens=5) if kind == "lookup" else DraftModel(small, tokens=3)
    plain = mlc.generate(model, PROMPTS, max_tokens=24, seed=[1, 2, 3], **options)
    drafted = mlc.generate(model, PROMPTS, max_tokens=24, seed=[1, 2, 3], draft=draft, **options)
    assert drafted == plain
    right = sum(a.guessed_tokens for a in drafted)
    assert right < 3 * 24 and (right > 0 or (options and kind == "lookup"))
    assert mlc.generate(model, PROMPTS[0], max_tokens=24, seed=1, draft=draft, **options) == plain[0]


@pytest.mark.slow
def test_a_model_guesses_what_it_draws_itself(models: tuple[Any, Any]) -> None:
    model, _ = models
    request, _ = model.requests([PROMPTS[0]], max_tokens=13, temperature=1.0, seed=3)
    scheduler, found = Scheduler(model, slots=1, draft=DraftModel(model, tokens=3)), list[Piece]()
    scheduler.submit(request[0], found.append)
    while scheduler.step():
        pass
    assert tuple(p.token for p in found) == model.generate(PROMPTS[0], max_tokens=13, temperature=1.0, seed=3).tokens
    done = scheduler.counters
    assert (done.drafted, done.accepted, done.steps) == (9, 9, 4)      # the prompt's, then 3 and 1 each
    assert [p.guessed for p in found] == [False, *[True, True, True, False] * 3]


@pytest.mark.slow
def test_drawn_tokens_are_distributed_as_those_of_the_model(tmp_path: Path) -> None:
    """Pairs of tokens of a vocabulary of 5, by a draft of other weights, against the model's probabilities."""
    folders = [write_folder({**CASES["llama"], "vocab_size": 5, "num_hidden_layers": n}, tmp_path / str(n))
               for n in (2, 1)]
    model, small = map(mlc.models.load, folders)
    count = 1024
    found = mlc.generate(model, [[1]] * count, max_tokens=2, temperature=1.0, seed=list(range(count)),
                         draft=DraftModel(small, tokens=1))
    pairs = np.bincount([5 * a.tokens[0] + a.tokens[1] for a in found], minlength=25)
    with mlc.no_grad():
        first = mlc.softmax(model.module(mlc.tensor([[1]]))[0, -1], dim=-1).numpy()
        second = mlc.softmax(model.module(mlc.tensor([[1, t] for t in range(5)]))[:, -1], dim=-1).numpy()
    wanted = count * (first[:, None] * second).reshape(-1)
    assert ((pairs - wanted) ** 2 / wanted).sum() < 51.2   # chi-squared of 24 degrees: 0.1 % are above
    assert 0.2 * count < sum(a.guessed_tokens for a in found) < 0.99 * count


def test_what_stops_an_answer_stops_a_guessed_one(models: tuple[Any, Any]) -> None:
    model, _ = models
    whole = mlc.generate(model, PROMPTS[0], max_tokens=20).tokens
    for draft in (None, PromptLookup(), DraftModel(model, tokens=5)):
        ended = mlc.generate(model, PROMPTS[0], max_tokens=20, stop_tokens=[whole[4]], draft=draft)
        assert ended.tokens == whole[: whole.index(whole[4]) + 1] and ended.finish_reason == "stop"
        assert len(mlc.generate(model, [1] * 120, max_tokens=50, draft=draft).tokens) == 8       # the context's end


@pytest.mark.slow
def test_guesses_for_one_request_count_no_token_of_another(models: tuple[Any, Any]) -> None:
    """A prompt that is still read, whose request has penalties, beside one that is written with guesses."""
    model, _ = models
    requests, _ = model.requests([PROMPTS[0], [9]], max_tokens=20, repetition_penalty=1.01, frequency_penalty=9.0)
    scheduler = Scheduler(model, slots=2, draft=DraftModel(model, tokens=3))
    for slot, request in enumerate(requests):
        scheduler.slots.take(slot, request)
    scheduler.slots.read(0, PROMPTS[0][:-1], len(PROMPTS[0]))
    written = scheduler.slots.write([Answer(requests[0], None), None], None, guesses=[[1, 2], []])
    assert written.tokens[0, 0] >= 0 and (written.tokens[1] == -1).all()
    row = scheduler.slots._counts.numpy().reshape(2, -1)[1]
    assert {t: int(n) for t, n in enumerate(row) if n} == {9: IN_PROMPT}


def test_a_draft_model_is_warmed_up_and_has_new_memory_after_a_failed_step(
        models: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, small = models
    monkeypatch.setattr("mlc.models.drafting.KINDS", (Kinds(),))       # the others take a while
    scheduler = Scheduler(model, slots=1, draft=DraftModel(small, tokens=3), kinds=Kinds())
    request = model.requests([PROMPTS[0]], max_tokens=9)[0][0]
    small.steps._compiled.clear()                          # what other tests compiled
    list(scheduler.warm_up())
    known = [set(m.steps._compiled) for m in models]
    wanted = [p.token for p in scheduler.stream(request)]
    assert [set(m.steps._compiled) for m in models] == known

    key = next(k for k in small.steps._compiled if k[0] == "write")
    step = small.steps._compiled[key]

    def failing(*given: Any) -> None:
        step(*given)                                       # takes the cache
        raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setitem(small.steps._compiled, key, failing)
        list(scheduler.stream(request))
    scheduler.close("error")
    scheduler.clear()
    assert [p.token for p in scheduler.stream(request)] == wanted


@pytest.mark.slow
def test_requests_of_all_kinds_beside_each_other() -> None:
    """One with a constraint is not guessed, one with a stop text drops what was guessed behind it."""
    model = mlc.models.load("examples/assistant")
    asked = model.chat_tokens([{"role": "user", "content": "What does mlc.cumsum do?"}])
    jobs: list[tuple[Any, dict[str, Any]]] = [
        (asked, {}), ("Its shape is ", {"constraint": mlc.models.Constraint.regex(r"\[[0-9]+(, [0-9]+)*\]")}),
        (asked, {"temperature": 1.0, "seed": 3, "logprobs": 2}), (asked, {"stop": [": Run"], "max_tokens": 30}),
        (asked, {"repetition_penalty": 1.3, "max_tokens": 40})]
    scheduler = Scheduler(model, slots=4, draft=PromptLookup())
    found: list[list[Piece]] = [[] for _ in jobs]
    made = [model.requests([prompt], **options) for prompt, options in jobs]
    for (requests, top), pieces in zip(made, found):
        scheduler.submit(requests[0], pieces.append, top=top)
        scheduler.step()
    while scheduler.step():
        pass
    for (prompt, options), (requests, _), pieces in zip(jobs, made, found):
        assert completions(iter(pieces), requests) == [model.generate(prompt, **options)]
    assert 0 < scheduler.counters.accepted < scheduler.counters.drafted


def test_tables_find_the_last_place_of_the_longest_run() -> None:
    answer = Answer(Request((1, 2, 3, 4, 2, 3, 5, 1, 2, 3), Sampling(), 9), None)
    table = Table(answer, 3)
    assert table.guess(2) == [4, 2]                        # behind 1 2 3, and not behind the later 2 3
    answer.tokens += [5]
    assert table.guess(2) == [1, 2]
    answer.tokens += [8]
    assert table.guess(2) == []
    answer.tokens += [9, 8, 9]
    assert table.guess(5) == [8, 9, 8, 9, 8]               # the text goes on repeating itself


def test_refused_drafts(models: tuple[Any, Any], tmp_path: Path) -> None:
    model, _ = models
    other = mlc.models.load(write_folder({**CASES["llama"], "vocab_size": 50}, tmp_path / "other"))
    turning = mlc.models.load(write_folder(CASES["llama-dynamic"], tmp_path / "dynamic"))
    for make, message in ((lambda: mlc.generate(model, [1], draft=other), "another vocabulary"),
                          (lambda: mlc.generate(turning, [1], draft=PromptLookup()), "by the length of the text"),
                          (lambda: DraftModel(turning), "by the length of the text"),
                          (lambda: DraftModel(model, tokens=0), "tokens is 0"),
                          (lambda: DraftModel(model, tokens=2.5), "tokens is 2.5"),  # type: ignore[arg-type]
                          (lambda: PromptLookup(tokens=2.5), "tokens is 2.5"),  # type: ignore[arg-type]
                          (lambda: PromptLookup(longest=65), "longest is 65"),
                          (lambda: mlc.generate(model, [1], draft=3),  # type: ignore[arg-type]
                           "draft is int")):
        with pytest.raises(mlc.UserError, match=message) as caught:
            make()
        assert caught.value.code == "MLC0992"
