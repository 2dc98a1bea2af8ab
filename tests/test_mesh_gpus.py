"""Programs on a mesh whose shards are on GPUs: on fake devices, by ranks in threads, beside the CPU's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.distributed as dist
from mlc import nn
from mlc.backends.transport import threads
from mlc.backends.transport.errors import RankError
from mlc.ir.diag import UserError
from tests.fake_nccl import Bindings, installed
from tests.training_recipes import RECIPES, TASKS, Task, Training, initial, recipes

DIGITS, EXPERTS = TASKS[0], TASKS[-1]
RECIPE = {recipe.name: recipe for recipe in RECIPES}


@pytest.fixture
def nccl() -> Iterator[Bindings]:
    """A fake NCCL between four fake devices."""
    with installed(4) as made:
        yield made


def on_ranks(count: int, function: Any) -> list[Any]:
    def rank(number: int) -> Any:
        dist.init_process_group(timeout=60)
        return function(number)
    return threads.run(count, rank)


def test_functions_on_a_mesh(nccl: Bindings) -> None:
    """Sums over both axes, blocks that are gathered and scattered along rows and columns, eagerly and compiled."""
    def products(x: Any, w: Any) -> Any:
        y = x @ w
        return mlc.softmax(y, 1).square().sum(0), dist.shard(y.T, "data", "model"), dist.shard(x * 2, None, "data")

    def results(device_type: str) -> list[list[Any]]:
        def rank(number: int) -> Any:
            mesh = dist.mesh({"data": 2, "model": 2}, device_type=device_type)
            x = dist.shard(np.arange(32, dtype="f4").reshape(4, 8) / 10, "data", mesh=mesh)
            w = dist.shard(np.arange(48, dtype="f4").reshape(8, 6) / 50 - 0.3, None, "model", mesh=mesh)
            gradient = mlc.grad(lambda w: products(x, w)[0].sum())(w)
            found = [*products(x, w), *mlc.compile(products)(x, w), gradient]
            assert {str(dist.local(y).device) for y in found} == {f"cuda:{number}" if device_type == "cuda" else "cpu"}
            return [y.tolist() for y in found]
        return on_ranks(4, rank)

    for ours, theirs in zip(results("cuda"), results("cpu")):
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert set(nccl.calls) == {"all_reduce", "all_gather", "send", "recv"}


@pytest.mark.parametrize("overlap", [False, True])
def test_a_ring(nccl: Bindings, overlap: bool) -> None:
    """Blocks of keys and values go around, while the rank computes with those it has."""
    q, k, v = (np.random.default_rng(i).normal(size=(1, 2, 6, 4)).astype("f4") for i in range(3))

    def rank(number: int) -> Any:
        mesh = dist.mesh({"sequence": 3}, device_type="cuda", overlap=overlap)
        attention = mlc.compile(lambda q, k, v: dist.ring_attention(q, k, v, 3))
        found = attention(*(dist.shard(x, None, None, "sequence", mesh=mesh) for x in (q, k, v)))
        return found.tolist()

    alone = nn.functional.scaled_dot_product_attention(mlc.tensor(q), mlc.tensor(k), mlc.tensor(v)).numpy()
    for found in on_ranks(3, rank):
        np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "ranks"), [("pipeline, 1F1B", 2)])
def test_a_recipe_trains_as_one_device(nccl: Bindings, name: str, ranks: int) -> None:
    assert _difference(DIGITS, name, ranks) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("task", [DIGITS, EXPERTS], ids=lambda task: str(task.name))
@pytest.mark.parametrize("ranks", [2, 4])
def test_every_recipe(nccl: Bindings, task: Task, ranks: int) -> None:
    assert {r.name: d for r in recipes(task, ranks) if not (d := _difference(task, r.name, ranks)) < 1e-6} == {}


def _difference(task: Task, name: str, ranks: int) -> float:
    """How far the losses of two steps are from those of one device."""
    initial(task)
    alone = Training.of(task, microbatches=RECIPE[name].microbatches).run(2)
    found = on_ranks(ranks, lambda _: Training.of(task, RECIPE[name], ranks, device_type="cuda").run(2))
    return float(np.max(np.abs(np.array(found) / alone - 1)))


def test_tensors_are_made_gathered_and_saved(nccl: Bindings, tmp_path: Path) -> None:
    def rank(number: int) -> Any:
        mesh = dist.mesh({"data": 2}, device_type="cuda")
        own = mlc.full((2, 3), float(number), device=f"cuda:{number}")
        x = dist.from_local(own, "data", mesh=mesh)
        assert dist.local(x).device == own.device and x.device == mesh.device
        moved, whole = dist.shard(x, None, mesh=mesh), dist.from_local(own.cpu(), "data", mesh=mesh)
        assert (moved.tolist(), whole.tolist(), repr(x)[:9]) == (x.tolist(), x.tolist(), "tensor([[")
        dist.checkpoint.save({"x": x * 2}, tmp_path / "state")
        state = {"x": mlc.zeros_like(x)}
        dist.checkpoint.load(state, tmp_path / "state")
        assert dist.local(state["x"]).device == own.device
        return state["x"].tolist()

    assert on_ranks(2, rank) == [[[0.0] * 3] * 2 + [[2.0] * 3] * 2] * 2


def test_an_abstract_mesh_of_gpus_needs_none() -> None:
    mesh = dist.mesh({"data": 2}, abstract=True, device_type="cuda")
    x = dist.shard(mlc.ones(4, 6), None, "data", mesh=mesh)
    program = dist.lower(lambda x: dist.shard(x + 1, None, None), x)
    assert "tensor.transpose" in program and "axis = 1" not in program
    assert dist.report(lambda x: dist.shard(x + 1, None, None), x).sent == 48


def test_elements_that_nccl_combines_otherwise(nccl: Bindings) -> None:
    """Its extrema ignore NaN, and it has no integers of 16 bits."""
    def rank(number: int) -> Any:
        mesh = dist.mesh({"data": 2}, device_type="cuda")
        x = dist.shard(np.array([1.0, np.nan, 3.0, 2.0], "f4"), "data", mesh=mesh)
        words = dist.shard(np.array([1, 2, 3, 4], "i2"), "data", mesh=mesh)
        y = dist.shard(np.arange(4, dtype="i2").reshape(2, 2), "data", mesh=mesh)
        return x.max().item(), x[2:].max().item(), words.max().item(), mlc.amin(y, 0).tolist()

    for found in on_ranks(2, rank):
        np.testing.assert_equal(found, (np.nan, 3.0, 4, [0, 1]))


def test_meshes_that_cannot_be(nccl: Bindings) -> None:
    with pytest.raises(UserError, match=r"MLC0969.*device_type = 'gpu'"):
        dist.mesh({"data": 1}, device_type="gpu")

    def other(number: int) -> Any:
        dist.all_reduce(mlc.zeros(1, device=f"cuda:{number + 2}"))
        return dist.shard(mlc.ones(2), "data", mesh=dist.mesh({"data": 2}, device_type="cuda")).sum()

    def measured(number: int) -> Any:
        dist.measured_machine(dist.mesh({"data": 1}, device_type="cuda"))

    for count, function, text in ((2, other, "MLC0976.*an array is on cuda:[01], and this rank's part"),
                                  (1, measured, "MLC0969.*times are measured of ranks on CPUs"),
                                  (5, lambda number: dist.mesh({"data": 5}, device_type="cuda"), "MLC058")):
        with pytest.raises(RankError) as caught:
            on_ranks(count, function)
        assert re.search(text, str(caught.value.__cause__)), text


def test_without_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlc.backends.transport.launchers.find_spec", lambda name: None)
    with pytest.raises(RankError) as caught:
        on_ranks(1, lambda number: dist.mesh({"data": 1}, device_type="cuda"))
    assert isinstance(caught.value.__cause__, RankError) and caught.value.__cause__.code == "MLC0975"
    assert "pip install 'mlc[nccl]'" in str(caught.value.__cause__)
