"""Beam search: the answers of transformers, alone and beside others, and options that do not go with it."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.models.beams import Beams, BeamSearch
from mlc.models.generation import Request
from mlc.models.sampling import Sampling
from tests.language_models import CASES, write_folder
from tests.peers.beams import OPTIONS, PROMPTS, REFERENCE

EXPECTED: dict[str, Any] = json.loads(REFERENCE.read_text())


@pytest.fixture(params=[n if n == "llama" else pytest.param(n, marks=pytest.mark.slow) for n in EXPECTED])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """A model, and the answers to all prompts for each of the options."""
    name = request.param
    return mlc.models.load(write_folder(CASES[name], tmp_path)), EXPECTED[name]


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("number", [n if n == 0 else pytest.param(n, marks=pytest.mark.slow) for n in
                                    range(len(OPTIONS))])
def test_answers_of_transformers(case: tuple[Any, Any], number: int) -> None:
    model, expected = case
    found = mlc.generate(model, PROMPTS, **OPTIONS[number])
    assert [list(a.tokens) for a in found] == expected[number]
    stops, limit = OPTIONS[number]["stop_tokens"], OPTIONS[number]["max_tokens"]
    assert all((a.finish_reason == "stop") == (a.tokens[-1] in stops) and len(a.tokens) <= limit for a in found)


@pytest.mark.slow
def test_an_answer_is_the_same_alone_and_beside_others(case: tuple[Any, Any]) -> None:
    model, expected = case
    assert [list(mlc.generate(model, p, **OPTIONS[5]).tokens) for p in PROMPTS] == expected[5]


@pytest.mark.parametrize("penalty", [-5.0, 5.0])
def test_answers_of_all_lengths_are_ranked(penalty: float) -> None:
    """Also those of a million tokens, without a warning of numbers that overflow."""
    search = BeamSearch(2, penalty)
    for length in (1, 1 << 20):
        beams = Beams(Request((1,), Sampling(), length + 1), search)
        beams._keep([(np.float32(s), [i]) for i, s in enumerate((-0.5, -1e-3, -1e4))], length)
        assert [text for _, text in beams.answers] == [[1], [0]]
        assert all(np.isfinite(score) and abs(score) > np.finfo(np.float32).tiny for score, _ in beams.answers)


@pytest.mark.parametrize("options", [
    {"temperature": 0.5}, {"stop": "x"}, {"draft": mlc.models.PromptLookup()}, {"logprobs": 0}, {"top_p": 0.5},
    {"constraint": mlc.models.Constraint.regex("a")}, {"num_beams": 0}, {"num_beams": 33}, {"early_stopping": "soon"},
    {"num_beams": 8, "stop_tokens": list(range(9))}, {"length_penalty": 5.5}, {"length_penalty": -6},
    {"length_penalty": float("nan")}])
def test_options_that_do_not_go_with_it(case: tuple[Any, Any], options: dict[str, Any]) -> None:
    with pytest.raises(mlc.UserError, match="MLC0993"):
        mlc.generate(case[0], [1, 2], **{"num_beams": 2, **options})
