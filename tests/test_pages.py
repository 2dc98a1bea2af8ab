"""Pages of a cache: prompts share those of a beginning that they have in common, and memory is promised beforehand."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlc
from mlc.models.beams import BeamSearch, Following
from mlc.models.cache import PAGE, pages_for, table_of
from mlc.models.generation import Piece, Request, completions
from mlc.models.pages import Page, Pages
from mlc.models.scheduler import Scheduler
from tests.language_models import CASES, write_folder

COMMON = [(5 * i) % 90 for i in range(2 * PAGE + 20)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> mlc.models.LanguageModel:
    case = {**CASES["llama"], "num_hidden_layers": 1, "max_position_embeddings": 512}
    return mlc.models.load(write_folder(case, tmp_path_factory.mktemp("llama")))


def run(scheduler: Scheduler, requests: list[Request]) -> list[list[Piece]]:
    found: list[list[Piece]] = [[] for _ in requests]
    for own, pieces in zip(requests, found):
        scheduler.submit(own, pieces.append)
    while scheduler.step():
        pass
    return found


def requests_of(model: mlc.models.LanguageModel, *prompts: list[int], tokens: int = 5) -> list[Request]:
    return model.requests([*prompts], max_tokens=tokens)[0]


TEXTS = st.lists(st.integers(0, 1), max_size=6).map(lambda parts: [t for part in parts for t in [part] * (PAGE // 2)])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.integers(1, 8)), max_size=25))
def test_pages_are_those_of_their_texts(turns: list[tuple[list[int], int]]) -> None:
    """Texts of two letters come and go; the oldest goes where there is no room. Rows are modelled by their texts."""
    pages, rows = Pages(12), dict[Page, list[int]]()
    running: list[tuple[list[Page], list[int]]] = []
    for text, most in turns:
        while pages_for(len(text)) > pages.free or len(running) >= most:
            table, old = running.pop(0)
            pages.know(table, old)
            assert [t for page in table for t in rows[page]][: len(old)] == old
            pages.give_back(table)
        known, part, count = pages.find(text)
        table = [pages.share(page) for page in known]
        held = [t for page in table for t in rows[page][:PAGE]]
        assert held == text[: len(held)]
        if part is not None:
            assert rows[part][:count] == text[len(held): len(held) + count]
        table += [pages.take() for _ in range(pages_for(len(text)) - len(table))]
        for i, page in enumerate(table[len(known):], len(known)):
            rows[page] = text[i * PAGE: (i + 1) * PAGE]
        pages.know(table, text[: most * PAGE])             # of a prompt that is being read
        running.append((table, text))
        users = [page for table, _ in running for page in table]
        assert all(page.users == users.count(page) for page in users) and 0 not in {page.number for page in users}
        assert len({*users}) + pages.free == 12


def test_a_table_has_page_zero_where_a_sequence_has_none() -> None:
    assert table_of(2 * PAGE + 1, [4, 7, 9, 5], [], [3]).tolist() == [[4, 7, 9], [0, 0, 0], [3, 0, 0]]


def test_a_common_beginning_is_read_once_and_has_one_memory(model: mlc.models.LanguageModel) -> None:
    """Also by requests that come at the same time; what follows it in the page where they part is copied."""
    scheduler = Scheduler(model, slots=3, capacity=256)
    prompts = [[*COMMON, 91, 92], [*COMMON, 93], [*COMMON[: 2 * PAGE], 94]]
    requests = requests_of(model, *prompts)
    found = run(scheduler, requests)
    for prompt, own, pieces in zip(prompts, requests, found):
        assert completions(iter(pieces), [own]) == [model.generate(prompt, max_tokens=5)]
    assert scheduler.counters.reused_tokens == 2 * 2 * PAGE and scheduler.slots.pages.kept == 2 + 3
    before = scheduler.counters.prompt_tokens
    prompt = [*COMMON, 95, 96]
    assert [p.token for p in run(scheduler, requests_of(model, prompt))[0]] == [
        *model.generate(prompt, max_tokens=5).tokens]
    assert scheduler.counters.prompt_tokens - before == 1  # 20 were copied, and the last one is for the answer


def test_requests_wait_for_memory_and_need_no_more(model: mlc.models.LanguageModel) -> None:
    """Four slots, and room for two texts, or three with a common beginning: others wait, and what is not used goes."""
    scheduler = Scheduler(model, slots=4, memory=4 * PAGE)
    prompts = [[*range(PAGE), i] for i in range(3)] + [[i, *range(PAGE)] for i in range(6)]
    requests, running = requests_of(model, *prompts), list[int]()
    found: list[list[Piece]] = [[] for _ in requests]
    for own, pieces in zip(requests, found):
        scheduler.submit(own, pieces.append)
    while scheduler.step():
        running.append(scheduler.running)
    assert max(running) == 3 and scheduler.slots.pages.free == 4
    for prompt, own, pieces in zip(prompts, requests, found):
        assert completions(iter(pieces), [own]) == [model.generate(prompt, max_tokens=5)]
    with pytest.raises(mlc.UserError, match="MLC0915"):
        scheduler.submit(requests_of(model, list(range(80)) * 4)[0], found[0].append)
    with pytest.raises(mlc.UserError, match=r"MLC0916.*memory 1"):
        Scheduler(model, memory=1)


def test_a_conversation_that_takes_all_memory_reads_what_is_new(model: mlc.models.LanguageModel) -> None:
    """The page in which a turn ended is the only one that is left for the next turn, and is taken over."""
    scheduler, prompt = Scheduler(model, slots=1, capacity=256), [1, 2, 3]
    for _ in range(4):
        before = scheduler.counters.prompt_tokens
        own = requests_of(model, prompt, tokens=253 - len(prompt))[0]
        pieces = scheduler.stream(own)
        found = [next(pieces).token for _ in range(20)]
        pieces.close()  # type: ignore[attr-defined]
        assert found == [*model.generate(prompt, max_tokens=20).tokens]
        assert scheduler.counters.prompt_tokens - before <= 4
        prompt = [*prompt, *(t for t in found if t is not None), 7, 8]
    assert scheduler.slots.pages.free == 4


def test_beams_share_what_they_have_in_common(model: mlc.models.LanguageModel) -> None:
    search = BeamSearch(4)
    following = Following(model, requests_of(model, COMMON, tokens=40), search)
    with mlc.no_grad():
        following.begin()
        while not following.beams[0].done:
            following.step()
            taken = following.pages.count - following.pages.free
            assert taken <= 2 + 4                          # 128 tokens in common, and at most 60 of each
    alone = model.generate(COMMON, max_tokens=40, num_beams=4)
    assert following.beams[0].completion(model).tokens == alone.tokens


def test_keys_that_depend_on_the_length_of_the_text_are_not_shared(tmp_path: Path) -> None:
    model = mlc.models.load(write_folder({**CASES["llama-dynamic"], "num_hidden_layers": 1}, tmp_path))
    scheduler, prompts = Scheduler(model, slots=2), [[*COMMON[: PAGE + 9], 1], [*COMMON[: PAGE + 9], 2]]
    requests = requests_of(model, *prompts)
    for prompt, own, pieces in zip(prompts, requests, run(scheduler, requests)):
        assert completions(iter(pieces), [own]) == [model.generate(prompt, max_tokens=5)]
    assert scheduler.counters.reused_tokens == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "qwen2-moe", "gemma3"])
def test_a_common_beginning_of_other_architectures(name: str, tmp_path: Path) -> None:
    model = mlc.models.load(write_folder({**CASES[name], "max_position_embeddings": 512, "n_positions": 512}, tmp_path),
                            cache_dtype="int8")
    scheduler = Scheduler(model, slots=2, memory=512)
    prompts = [[*COMMON, 91, 92], [*COMMON, 93], [*COMMON, 91, 93]]
    requests = requests_of(model, *prompts)
    for prompt, own, pieces in zip(prompts, requests, run(scheduler, requests)):
        assert completions(iter(pieces), [own]) == [model.generate(prompt, max_tokens=5)]
    assert scheduler.counters.reused_tokens >= 2 * 2 * PAGE
