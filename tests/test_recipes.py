"""Recipes of parallel training against one device: a thin slice of `python -m tests.peers.recipes`."""

from __future__ import annotations

import numpy as np
import pytest

import mlc
import mlc.distributed as dist
from mlc.backends.transport import threads
from tests.training_recipes import RECIPES, TASKS, Training, examine, initial

DIGITS = TASKS[0]
RECIPE = {recipe.name: recipe for recipe in RECIPES}


@pytest.mark.parametrize("name", ["data parallel", "ZeRO 1 and 2", "ZeRO 3 and tensor"])
def test_a_recipe_trains_as_one_device_and_sends_what_it_has_to(name: str) -> None:
    assert examine(DIGITS, RECIPE[name], 4, 4).faults() == []


def test_tensor_parallelism_combines_activations_only() -> None:
    training = Training.of(DIGITS, RECIPE["tensor parallel"], 4, abstract=True)
    report = dist.report(training.step, *map(training.place, next(DIGITS.batches(DIGITS.batch, 1))))
    assert [(c.kind, c.bytes) for c in report.collectives] == [("all_reduce", 2 * 3 * 64 * 64 * 4 // 4)]


def test_gradients_and_the_state_of_an_optimizer_lie_where_they_are_used() -> None:
    initial(DIGITS)

    def rank(number: int) -> list[object]:
        out = list[object]()
        for name in ("data parallel", "ZeRO 1 and 2", "ZeRO 3"):
            training = Training.of(DIGITS, RECIPE[name], 2)
            training.run(1)
            weight = training.model.hidden.weight
            state = training.optimizer.state[weight]["momentum_buffer"]
            out.append([dist.placement(x)[0] for x in (weight, weight.grad, state)])
        return out

    assert threads.run(2, rank)[0] == [[None, None, None], [None, "data", "data"], ["data", "data", "data"]]


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
