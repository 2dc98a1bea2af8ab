"""The scheduler: each answer is the one of its request alone, requests join and leave, and what was read is kept."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mlc
from mlc.models.constraints import Constraint
from mlc.models.generation import Answer, Piece, Request, completions
from mlc.models.sampling import IN_PROMPT, Kinds
from mlc.models.scheduler import QueueFull, Scheduler
from mlc.models.steps import CHUNK
from tests.language_models import CASES, write_folder, write_tokenizer

ALL = {"temperature": 0.8, "top_p": 0.9, "repetition_penalty": 1.2, "logit_bias": {5: 2.0}}
KINDS = [{}, {"logprobs": 3}, {"temperature": 1.0}, ALL, {**ALL, "presence_penalty": 0.5, "logprobs": 1}]
LENGTHS = [1, 40, 3, 70, 9]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> mlc.models.LanguageModel:
    folder = write_folder({**CASES["llama"], "num_hidden_layers": 1}, tmp_path_factory.mktemp("llama"))
    write_tokenizer(folder)
    return mlc.models.load(folder)


@pytest.fixture(scope="module")
def scheduler(model: mlc.models.LanguageModel) -> Scheduler:
    return Scheduler(model, slots=2, queue=5)


def request(model: mlc.models.LanguageModel, prompt: list[int], **options: object) -> tuple[Request, int | None]:
    requests, top = model.requests([prompt], **options)    # type: ignore[arg-type]
    return requests[0], top


def run(scheduler: Scheduler) -> None:
    while scheduler.step():
        pass


@pytest.mark.parametrize("kinds", [[{}] * 5, pytest.param(KINDS, marks=pytest.mark.slow)])
def test_answers_are_those_of_each_alone(model: mlc.models.LanguageModel, scheduler: Scheduler,
                                         kinds: list[dict[str, Any]]) -> None:
    found: list[list[Piece]] = [[] for _ in kinds]
    requests = []
    for i, (options, length) in enumerate(zip(kinds, LENGTHS)):
        prompt = [(7 * i + 3 * j) % 90 for j in range(length)]
        own, top = request(model, prompt, max_tokens=6 + 5 * i, seed=i, **options)
        scheduler.submit(own, found[i].append, top=top)
        requests.append((prompt, own))
        scheduler.step()                                   # so that the next one joins a batch that runs
    run(scheduler)
    for i, (prompt, own) in enumerate(requests):
        alone = model.generate(prompt, max_tokens=6 + 5 * i, seed=i, **kinds[i])
        assert completions(iter(found[i]), [own]) == [alone]       # log-probabilities too, to the last bit


def test_a_step_writes_several_tokens_under_a_constraint(model: mlc.models.LanguageModel,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the masks of what may follow are known; the tokens are those of steps of one token."""
    constraint = Constraint.json_schema({"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 5})
    options: list[dict[str, Any]] = [{"constraint": constraint, "temperature": 1.0}, {"temperature": 1.0}]
    both = [request(model, [3, 4], max_tokens=60, seed=5, **o)[0] for o in options]

    def answers(most: int) -> tuple[list[list[Piece]], int, int]:
        monkeypatch.setattr("mlc.models.scheduler.MOST_TOKENS", most)
        scheduler, found = Scheduler(model, slots=2), list[list[Piece]]()
        for own in (both[:1], both):                       # alone, and beside one without a constraint
            pieces: list[list[Piece]] = [[] for _ in own]
            for one, receiver in zip(own, pieces):
                scheduler.submit(one, receiver.append)
            run(scheduler)
            found += pieces
        return found, scheduler.counters.steps, scheduler.counters.tokens

    single, steps, tokens = answers(1)
    several, fewer, same = answers(16)
    assert several == single and single[0] == single[1] and tokens == same
    assert fewer < steps / 3


def test_penalties_of_a_prompt_that_is_read_when_the_first_request_with_penalties_writes(
        model: mlc.models.LanguageModel) -> None:
    slots = Scheduler(model, slots=2).slots
    one, two = (request(model, prompt, repetition_penalty=1.5)[0] for prompt in ([1, 2], [7, 8, 8]))
    slots.take(0, one), slots.take(1, two)
    slots.read(0, [1], 2)
    slots.write([Answer(one, None)], None)                 # makes the table
    row = slots._counts.numpy().reshape(2, -1)[1]
    assert {t: int(n) for t, n in enumerate(row) if n} == {7: IN_PROMPT, 8: IN_PROMPT}


@pytest.mark.parametrize("options", [{}, {**ALL, "presence_penalty": 0.5, "logprobs": 2},
                                     {"constraint": Constraint.regex("[a-z]+")}])
def test_the_step_that_begins_gives_what_reading_and_writing_gives(model: mlc.models.LanguageModel,
                                                                   options: dict[str, Any]) -> None:
    own, top = request(model, [(3 * i) % 90 for i in range(40)], seed=3, **options)
    whole, parts = (Scheduler(model, slots=2).slots for _ in range(2))
    for slots in (whole, parts):
        slots.take(0, request(model, [9])[0]), slots.take(1, own)
    parts.read(1, own.prompt[:-1], len(own.prompt))
    found = [whole.begin(1, Answer(own, None), top), parts.write([None, Answer(own, None)], top)]
    for name in ("tokens", "log_chances", "best", "best_chances"):
        one, other = (getattr(x, name) for x in found)
        assert one is other is None or one[0].tolist() == other[1].tolist()
    tables = [slots._counts for slots in (whole, parts)]
    assert tables == [None, None] or (tables[0].numpy() == tables[1].numpy()).all()
    aliases = model.steps._compiled["begin", whole._state.kinds].compiled.entries[-1].interface.aliases
    assert sum(a >= 0 for a in aliases) == 2 * model.config.layers + (tables[0] is not None)   # written in place
    texts = whole.contents[1], parts.contents[1]
    assert texts == (list(own.prompt), list(own.prompt))


def test_few_steps_are_compiled(model: mlc.models.LanguageModel, scheduler: Scheduler) -> None:
    for prompt in ([1], [2, 3]):
        scheduler.submit(request(model, prompt, max_tokens=3)[0], lambda piece: None)
    run(scheduler)
    of_scheduler = [key for key in model.steps._compiled if key[0] == "write" and key[2] in scheduler.slots.kinds]
    assert 1 <= len(of_scheduler) <= 2 * 3                 # numbers of sequences, and kinds of options
    for key in of_scheduler:                               # the cache is written in place
        aliases = model.steps._compiled[key].compiled.entries[0].interface.aliases
        assert sum(a >= 0 for a in aliases) >= 2 * model.config.layers


def test_a_conversation_reads_what_is_new(model: mlc.models.LanguageModel, scheduler: Scheduler) -> None:
    prompt = [5, 6] * 20
    for turn in range(3):
        reused = scheduler.counters.reused_tokens
        own, _ = request(model, prompt, max_tokens=6)
        pieces = list(scheduler.stream(own))
        assert completions(iter(pieces), [own]) == [model.generate(prompt, max_tokens=6)]
        assert (scheduler.counters.reused_tokens - reused > 30) == (turn > 0)
        prompt = [*prompt, *(p.token for p in pieces if p.token is not None), 9]


def test_a_constraint_that_the_vocabulary_cannot_keep_ends_its_own_request(model: mlc.models.LanguageModel,
                                                                           scheduler: Scheduler) -> None:
    reasons = dict[int, str | None]()
    constraint = mlc.models.Constraint.json_schema({"const": "\N{EURO SIGN}"})
    given: list[dict[str, object]] = [{"max_tokens": 3}, {"max_tokens": 3, "constraint": constraint}]
    for i, options in enumerate(given):
        def deliver(piece: Piece, i: int = i) -> None:
            reasons[i] = piece.finish_reason

        scheduler.submit(request(model, [1, 2], **options)[0], deliver)
    run(scheduler)
    assert reasons == {0: "length", 1: "constraint"}


def test_temperatures_near_zero_are_zero(model: mlc.models.LanguageModel) -> None:
    cold, tiny = (model.generate([1, 2, 3], max_tokens=4, temperature=t) for t in (0.0, 1e-40))
    assert tiny.tokens == cold.tokens


def test_cancelled_late_and_refused_requests(model: mlc.models.LanguageModel) -> None:
    scheduler = Scheduler(model, slots=1, queue=1, capacity=32)
    own, _ = request(model, [1, 2, 3], max_tokens=100)
    assert own.limit == 100
    pieces: list[Piece] = []
    first = scheduler.submit(own, pieces.append)
    second = scheduler.submit(own, pieces.append, seconds=-1.0)
    with pytest.raises(QueueFull, match="MLC0918"):
        scheduler.submit(own, pieces.append)
    scheduler.step()
    assert second.answer.finished == "timeout" and first.slot == 0
    scheduler.cancel(first)
    assert not scheduler.step() and pieces[-1].finish_reason == "cancelled"
    scheduler.submit(own, pieces.append)
    run(scheduler)
    with pytest.raises(mlc.UserError, match=r"MLC0916.*draws=True"):
        Scheduler(model, kinds=Kinds()).submit(request(model, [1], temperature=1.0)[0], pieces.append)
    assert pieces[-1].finish_reason == "length" and pieces[-1].token is not None
    assert scheduler.counters.finished == {"timeout": 1, "cancelled": 1, "length": 1}
    with pytest.raises(mlc.UserError, match="MLC0915"):
        scheduler.submit(request(model, [1] * 40)[0], pieces.append)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama-dynamic", "phi3-long", "gpt2", "qwen2-moe", "gemma3"])
def test_other_architectures(name: str, tmp_path: Path) -> None:
    model = mlc.models.load(write_folder(CASES[name], tmp_path))
    scheduler = Scheduler(model, slots=2)
    for prompt in ([3, 4, 5], [3, 4, 5, 6, 7, 8, 9, 10], [3, 4, 5, 6, 7, 8, 9, 10, 11]):
        own, _ = request(model, prompt, max_tokens=18)     # beyond what longrope and dynamic scaling were trained with
        assert completions(scheduler.stream(own), [own]) == [model.generate(prompt, max_tokens=18)]


NAN = 77
"""A token whose embedding is NaN."""


@pytest.fixture(scope="module", params=["float32", pytest.param("int8", marks=pytest.mark.slow)])
def unsound(request: Any, tmp_path_factory: pytest.TempPathFactory) -> mlc.models.LanguageModel:
    case = {**CASES["llama"], "num_hidden_layers": 2, "max_position_embeddings": 512}
    folder = write_folder(case, tmp_path_factory.mktemp("unsound"))
    write_tokenizer(folder)
    model = mlc.models.load(folder, cache_dtype=request.param)
    with mlc.no_grad():
        model.module.get_parameter("model.embed_tokens.weight")[[0, NAN]] = float("nan")
    return model


def test_numbers_that_are_not_finite_end_their_own_request(unsound: mlc.models.LanguageModel) -> None:
    """While a prompt is read, where it ends, and where an answer is written. Others that begin in the same way, have
    their pages later, or run beside them are not disturbed; token 0 is read where nothing is asked for."""
    common = [(3 * i) % 60 + 1 for i in range(70)]
    sound = [[1, 2, 3], [*common, 5, 6], [*common[:10], 7], common]
    spoiled = [[*common, NAN] + [6] * CHUNK, [*common[:10], NAN, 6], [5, 6, NAN]]
    never = {0: -100.0, NAN: -100.0}
    given = [request(unsound, prompt, max_tokens=6, logit_bias=never)[0]
             for pair in zip(spoiled, sound) for prompt in pair]
    given.append(request(unsound, [4, 5], max_tokens=40, logit_bias={9: 100.0, 8: 90.0, NAN: 80.0},
                         presence_penalty=50.0)[0])
    given.append(request(unsound, sound[3], max_tokens=30, logit_bias=never)[0])
    alone = [mlc.generate(unsound, list(r.prompt), max_tokens=r.limit, logit_bias=never).tokens
             for r in (*given[1:6:2], given[-1])]
    for draft in (None, mlc.models.PromptLookup(tokens=4)):
        scheduler, pieces = Scheduler(unsound, slots=3, memory=512, draft=draft), [list[Piece]() for _ in given]
        for own, found in zip(given, pieces):
            scheduler.submit(own, found.append)
        run(scheduler)
        assert [tuple(p.token for p in found) for found in (*pieces[1:6:2], pieces[-1])] == alone
        assert [[p.token for p in found] for found in (*pieces[:6:2], pieces[6])] == [[None]] * 3 + [[9, 8, NAN, None]]
        assert {found[-1].finish_reason for found in (*pieces[:6:2], pieces[6])} == {"not_finite"}
        assert scheduler.slots.pages.free == scheduler.slots.pages.count


def test_numbers_that_are_not_finite_are_errors(unsound: mlc.models.LanguageModel) -> None:
    options: dict[str, Any]
    for options in ({}, {"num_beams": 2}, {"draft": mlc.models.PromptLookup()}):
        with pytest.raises(mlc.Error, match=r"MLC0924.*behind 3 tokens are infinite or NaN"):
            mlc.generate(unsound, [5, NAN, 6], max_tokens=3, **options)
    shown = unsound.stream([4, 5], max_tokens=40, logit_bias={9: 100.0, 8: 90.0, NAN: 80.0}, presence_penalty=50.0)
    assert [next(shown).token for _ in range(3)] == [9, 8, NAN]
    with pytest.raises(mlc.Error, match=r"MLC0924.*behind 5 tokens"):
        next(shown)
