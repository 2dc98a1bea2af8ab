"""A cache of int8: how far numbers are off, answers that do not depend on others, and its size."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.models.cache import rounded
from tests.language_models import CASES, PROMPT, write_folder


def test_numbers_are_off_by_half_a_step_at_most() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3, 32)).astype(np.float32)
    x[1, 2], x[0, 0, 3] = 0, 100
    q, scale = (t.numpy() for t in rounded(mlc.tensor(x)))
    greatest = np.abs(x).max(-1, keepdims=True)
    assert q.dtype == np.int8 and np.abs(q).max() == 127
    assert (np.abs(q * scale[..., None] - x) <= greatest / 254 * 1.00001).all()
    np.testing.assert_array_equal(q[1, 2], 0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same model with a cache of float32, and of int8."""
    folder = write_folder({**CASES["llama"], "num_hidden_layers": 1}, tmp_path_factory.mktemp("llama"))
    return mlc.models.load(folder), mlc.models.load(folder, cache_dtype="int8")


@pytest.mark.slow
def test_answers_are_the_same_in_a_batch(models: tuple[Any, Any]) -> None:
    options: dict[str, Any] = {"max_tokens": 8, "logprobs": 2, "seed": 1, "temperature": 1.0}
    together = mlc.generate(models[1], [PROMPT, [9]], **options, draft=mlc.models.PromptLookup(longest=1))
    assert together == [mlc.generate(models[1], p, **options) for p in (PROMPT, [9])]


def test_answers_are_near_those_of_float32(models: tuple[Any, Any]) -> None:
    plain, small = models
    first, exact = (mlc.generate(m, PROMPT, max_tokens=1, logprobs=3).log_probabilities[0] for m in (small, plain))
    difference = np.abs(np.array([v for _, v in first.best]) - [v for _, v in exact.best])
    assert 0 < difference.max() < 0.05
    sizes = [mlc.models.Scheduler(m, slots=2).slots.nbytes for m in (small, plain)]
    assert sizes[0] / sizes[1] == (8 + 4) / (8 * 4)        # heads of 8 numbers, and a scale
    for step in small.steps._compiled.values():            # written in place
        assert sum(a >= 0 for a in step.compiled.entries[0].interface.aliases) >= 4 * small.config.layers


def test_types_of_caches() -> None:
    with pytest.raises(mlc.UserError, match=r"MLC0916.*cache_dtype is 'float16'"):
        mlc.models.load("examples/assistant", cache_dtype="float16")  # type: ignore[arg-type]
