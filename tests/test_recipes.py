"""Recipes of parallel training against one device: a thin slice of `python -m tests.peers.recipes`."""

from __future__ import annotations

import weakref
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.distributed as dist
from mlc.backends.mesh import program
from mlc.backends.transport import threads
from tests.training_recipes import RECIPES, TASKS, Task, Training, examine, initial, recipes

DIGITS, GPT, EXPERTS = TASKS[0], TASKS[1], TASKS[-1]
RECIPE = {recipe.name: recipe for recipe in RECIPES}


@pytest.mark.parametrize("name", ["ZeRO 3 and tensor", *(
    pytest.param(name, marks=pytest.mark.slow) for name in ("data parallel", "ZeRO 1 and 2")), "accumulation"])
def test_a_recipe_trains_as_one_device_and_sends_what_it_has_to(name: str) -> None:
    assert examine(DIGITS, RECIPE[name], 4, 4).faults() == []


def test_tensor_parallelism_combines_activations_only() -> None:
    training = Training.of(DIGITS, RECIPE["tensor parallel"], 4, abstract=True)
    report = dist.report(training.step, *map(training.place, next(DIGITS.batches(DIGITS.batch, 1))))
    assert [(c.kind, c.bytes) for c in report.collectives] == [("all_reduce", 2 * 3 * 64 * 64 * 4 // 4)]


def test_a_vocabulary_is_divided_and_never_gathered() -> None:
    """Each rank has the rows of its words, and the scores of these; the loss combines one number of each rank."""
    training = Training.of(GPT, RECIPE["vocabulary parallel"], 4, abstract=True)
    report = dist.report(training.step, *map(training.place, next(GPT.batches(GPT.batch, 1))))
    words = 16 * 32 * 4
    assert {c.kind for c in report.collectives} == {"all_reduce"} and report.sent <= 2 * 3 * words * (
        2 * 2 * 64 + 2 * 64 + 3) // 4 * 1.02


def test_sequences_are_divided_by_gathering_keys_or_by_exchanging_heads() -> None:
    mesh = dist.mesh({"sequence": 4}, abstract=True)
    q, k, v = [dist.shard(mlc.ones(2, 8, 16, 4), None, None, "sequence", mesh=mesh)] * 3
    attention = mlc.nn.functional.scaled_dot_product_attention

    def by_heads(*tensors: mlc.Tensor) -> mlc.Tensor:
        q, k, v = (dist.shard(x, None, "sequence") for x in tensors)
        return dist.shard(attention(q, k, v), None, None, "sequence")

    gathered, exchanged = dist.report(attention, q, k, v), dist.report(by_heads, q, k, v)
    whole = 2 * 8 * 16 * 4 * 4
    assert [(c.kind, c.bytes) for c in gathered.collectives] == [("all_gather", whole * 3 // 4)] * 2
    assert [(c.kind, c.bytes) for c in exchanged.collectives] == [("all_to_all", whole // 4 * 3 // 4)] * 4


def test_experts_get_their_tokens_by_all_to_all() -> None:
    training = Training.of(EXPERTS, RECIPE["expert parallel"], 4, abstract=True)
    program = dist.lower(training.step, *map(training.place, next(EXPERTS.batches(EXPERTS.batch, 1))))
    assert program.count("shard.all_to_all") == 4 and "shard.all_gather" not in program


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: str(task.name))
@pytest.mark.parametrize("ranks", [2, 4])
def test_every_recipe(task: Task, ranks: int) -> None:
    assert {r.name: faults for r in recipes(task, ranks) if (faults := examine(task, r, ranks, 10).faults())} == {}


@pytest.mark.slow
def test_gradients_and_the_state_of_an_optimizer_lie_where_they_are_used() -> None:
    initial(DIGITS)

    def rank(number: int) -> list[object]:
        out = list[object]()
        for name in ("data parallel", "ZeRO 1 and 2", "ZeRO 3"):
            training = Training.of(DIGITS, RECIPE[name], 4)
            training.run(1)
            weight = training.model.hidden.weight
            state = training.optimizer.state[weight]["momentum_buffer"]
            out.append([dist.placement(x)[0] for x in (weight, weight.grad, state)])
        return out

    assert threads.run(4, rank)[0] == [[None, None, None], [None, "data", "data"], ["data", "data", "data"]]


def test_a_step_takes_the_memory_that_the_report_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one rank: several have to be processes, as in `tests.peers.recipes --memory`."""
    monkeypatch.setattr(program, "_scratch", deque())
    found = Training.of(DIGITS, RECIPE["data parallel"], 1).memory()
    assert found.near, f"{found}"


def test_gradients_are_freed_before_a_call_that_replaces_them() -> None:
    training = Training.of(DIGITS, RECIPE["data parallel"], 1)
    training.run(1)
    old = weakref.ref(training.model.hidden.weight.grad.backing_array.local)
    alive = list[bool]()

    def noted(*args: Any) -> None:
        alive.append(old() is not None)
        taken(*args)

    taken = program.RankProgram._take
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program.RankProgram, "_take", noted)
        training.run(1)
    assert alive and not any(alive)


@pytest.mark.slow
def test_training_continues_on_another_mesh_from_a_checkpoint(tmp_path: Path) -> None:
    initial(DIGITS)

    def state(training: Training) -> dict[str, Any]:
        return {"model": training.model.state_dict(), "optimizer": training.optimizer.state_dict()}

    def write(rank: int) -> list[float]:
        dist.init_process_group()
        training = Training.of(DIGITS, RECIPE["ZeRO 3"], 4)
        training.run(2)
        dist.checkpoint.save(state(training), tmp_path / "step-2")
        return training.run(3)

    def read(rank: int) -> list[float]:
        dist.init_process_group()
        training = Training.of(DIGITS, RECIPE["ZeRO 3 and tensor"], 4)
        training.run(1)
        found = dist.checkpoint.load(state(training), tmp_path / "step-2")
        training.model.load_state_dict(found["model"])
        training.optimizer.load_state_dict(found["optimizer"])
        return training.run(3)

    going_on = threads.run(4, write)
    np.testing.assert_allclose(threads.run(4, read), going_on, rtol=1e-6)


def test_zeros_like_a_tensor_of_a_mesh_lie_as_it() -> None:
    x = dist.shard(np.ones((4, 2), np.float32), None, "a", mesh=dist.mesh({"a": 2}, abstract=True))
    assert dist.placement(mlc.zeros_like(x)) == dist.placement(mlc.full_like(x, 3)) == (None, "a")


def test_a_tensor_is_divided_along_further_axes_without_a_message() -> None:
    def rank(number: int) -> tuple[list[int], int]:
        mesh = dist.mesh({"a": 2, "b": 2})
        x = dist.shard(np.arange(8), "a", mesh=mesh)
        traffic = mesh._ranks.transport.traffic
        before = traffic.total
        return dist.local(dist.shard(x, ("a", "b"))).tolist(), traffic.total - before

    assert threads.run(4, rank) == [([2 * i, 2 * i + 1], 0) for i in range(4)]
