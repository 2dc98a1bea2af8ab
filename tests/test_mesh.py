"""Tensors on meshes: what a job of several ranks computes is what one device computes. The ranks are threads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.distributed as dist
from mlc import nn
from mlc.backends.mesh import meshes
from mlc.backends.transport import current, threads
from mlc.backends.transport.errors import RankError
from mlc.dialects.shard.mesh import Mesh
from mlc.ir.diag import Error, UserError
from mlc.passes import pipeline

F = nn.functional
RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 6)).astype(np.float32)
Y = RNG.integers(0, 4, 8)


def untyped(x: Any) -> Any:
    """x, of a type that a checker does not know."""
    return x


def network() -> nn.Sequential:
    mlc.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 4))


def trained(model: nn.Module, optimizer: Any, x: Any, y: Any, compiled: bool) -> list[float]:
    """The losses of four steps in PyTorch's form."""
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = mlc.compile(step) if compiled else step
    return [run(x, y).item() for _ in range(4)]


def test_training_on_a_mesh_is_training_on_one_device() -> None:
    """With data and tensor parallelism; tests/test_recipes.py has the others."""
    base = network()
    alone = copy.deepcopy(base)
    losses = trained(alone, mlc.optim.AdamW(alone.parameters(), lr=0.05), mlc.tensor(X), mlc.tensor(Y), True)
    plan = dist.ByName({"0.weight": ("model",), "0.bias": ("model",), "2.weight": (None, "model")})

    def rank(number: int) -> Any:
        mesh = dist.mesh({"data": 2, "model": 2})
        model = dist.distribute(copy.deepcopy(base), mesh, plan)
        placed = [dist.placement(p) for p in model.parameters()]
        out = trained(model, mlc.optim.AdamW(model.parameters(), lr=0.05), dist.shard(X, "data", mesh=mesh),
                      dist.shard(Y, "data", mesh=mesh), True)
        assert [dist.placement(p) for p in model.parameters()] == placed
        return out, [p.cpu().numpy() for p in model.parameters()]

    for found, parameters in threads.run(4, rank):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        for got, want in zip(parameters, alone.parameters()):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("plan", [dist.replicated, dist.FullySharded("data", least=1)])
def test_overlapping_collectives_change_no_bit(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pipeline.OVERLAPPED, "overlap_collectives", "overlap_collectives{flops=1000000,call=0}")
    base = network()

    def rank(number: int) -> Any:
        found = []
        for overlap in (False, True):
            mesh = dist.mesh({"data": 2}, overlap=overlap)
            model = dist.distribute(copy.deepcopy(base), mesh, plan)
            x, y = dist.shard(X, "data", mesh=mesh), dist.shard(Y, "data", mesh=mesh)
            losses = trained(model, mlc.optim.AdamW(model.parameters(), lr=0.05), x, y, True)
            loss = partial(lambda model, x, y: F.cross_entropy(model(x), y), model)
            assert ("shard.wait" in dist.lower(loss, x, y)) == overlap
            found.append((losses, [p.cpu().numpy().tobytes() for p in model.parameters()]))
        return found

    for without, overlapped in threads.run(2, rank):
        assert without == overlapped


@pytest.mark.parametrize(("backend", "neighbours", "wanted"), [("mpi", (0, 1), False), ("mpi", (0,), True),
                                                              ("threads", (0,), False)])
def test_collectives_overlap_where_a_network_carries_them(backend: str, neighbours: tuple[int, ...], wanted: bool,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(number: int) -> bool:
        monkeypatch.setattr(current.transport(), "backend", backend)
        return dist.mesh({"a": 2})._ranks.overlap

    monkeypatch.setattr(meshes, "_neighbours", lambda transport: neighbours)
    assert threads.run(2, rank) == [wanted] * 2


@pytest.mark.slow
def test_eager_operations_and_backward_are_divided_too() -> None:
    weight = RNG.standard_normal((6, 4)).astype(np.float32)

    def step(w: Any, x: Any, y: Any) -> Any:
        w.requires_grad_()
        loss = F.cross_entropy(x @ w, y)
        loss.backward()
        with mlc.no_grad():
            w -= 0.1 * w.grad
        return loss.item(), w.cpu().numpy()

    loss, moved = step(mlc.tensor(weight), mlc.tensor(X), mlc.tensor(Y))

    def rank(number: int) -> Any:
        mesh = dist.mesh({"data": 2})
        return step(dist.shard(weight, mesh=mesh), dist.shard(X, "data", mesh=mesh), dist.shard(Y, "data", mesh=mesh))

    for found, w in threads.run(2, rank):
        np.testing.assert_allclose(found, loss, rtol=1e-6)
        np.testing.assert_allclose(w, moved, rtol=1e-5)


def test_the_state_of_an_optimizer_is_divided_and_parameters_stay_whole() -> None:
    base = network()

    def rank(number: int) -> Any:
        mesh = dist.mesh({"data": 2})
        model = dist.distribute(copy.deepcopy(base), mesh)
        optimizer = dist.shard_optimizer(mlc.optim.Adam(model.parameters(), lr=0.05), mesh, "data")
        losses = trained(model, optimizer, dist.shard(X, "data", mesh=mesh), dist.shard(Y, "data", mesh=mesh), True)
        state = optimizer.state[model[0].weight]["exp_avg"]
        return losses, dist.placement(model[0].weight), dist.placement(state), dist.local(state).shape

    alone = copy.deepcopy(base)
    losses = trained(alone, mlc.optim.Adam(alone.parameters(), lr=0.05), mlc.tensor(X), mlc.tensor(Y), True)
    for found, *placed in threads.run(2, rank):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        assert placed == [(None, None), ("data", None), (4, 6)]


def test_a_tensor_stays_where_it_is_when_it_is_written() -> None:
    def rank(number: int) -> Any:
        mesh = dist.mesh({"a": 2})
        w, rows = dist.shard(mlc.ones(4, 2), mesh=mesh), dist.shard(mlc.ones(4, 2), "a", mesh=mesh)
        w += rows
        rows.copy_(w)
        return dist.placement(w), dist.placement(rows), w.tolist() == rows.tolist() == [[2.0, 2.0]] * 4

    assert threads.run(2, rank) == [((None, None), ("a", None), True)] * 2


def test_tensors_are_divided_and_put_together() -> None:
    whole = np.arange(24, dtype=np.int32).reshape(4, 6)

    def rank(number: int) -> Any:
        mesh = dist.mesh({"a": 2, "b": 2})
        x = dist.shard(whole, "b", "a", mesh=mesh)
        again = dist.from_local(dist.local(x), "b", "a", mesh=mesh)
        assert np.array_equal(again.cpu().numpy(), whole) and again.device == x.device == mesh.device
        both = dist.shard(whole, ("a", "b"), mesh=mesh)
        return mesh.coordinates, dist.local(x).numpy(), dist.local(both).numpy()

    found = threads.run(4, rank)
    assert [c for c, _, _ in found] == [{"a": a, "b": b} for a in range(2) for b in range(2)]
    for number, (at, piece, row) in enumerate(found):
        assert np.array_equal(piece, whole[2 * at["b"]:2 * at["b"] + 2, 3 * at["a"]:3 * at["a"] + 3])
        assert np.array_equal(row, whole[number:number + 1])


def test_meshes_of_equal_axes_are_one_device() -> None:
    def rank(number: int) -> tuple[bool, bool]:
        first, second, other = dist.mesh({"a": 2}), dist.mesh({"a": 2}), dist.mesh({"b": 2})
        x = dist.shard(mlc.ones(2), mesh=first) + dist.shard(mlc.ones(2), mesh=second)
        return x.device == first.device == second.device, other.device == first.device

    assert threads.run(2, rank) == [(True, False)] * 2
    abstract = [dist.mesh({"a": 2}, abstract=True).device for _ in range(2)]
    assert abstract[0] == abstract[1]


def test_threads_that_make_a_mesh_at_once_have_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    topology, neighbours, made = Mesh(("at_once",), (1,)), meshes._neighbours, []

    def in_the_meantime(*args: Any) -> Any:
        monkeypatch.setattr(meshes, "_neighbours", neighbours)
        made.append(meshes.make(topology))
        return neighbours(*args)

    monkeypatch.setattr(meshes, "_neighbours", in_the_meantime)
    assert meshes.make(topology) is made[0]


def test_a_function_without_arguments_runs_where_what_it_reaches_lies() -> None:
    def rank(number: int) -> Any:
        mesh = dist.mesh({"data": 2})
        x = dist.shard(X, "data", mesh=mesh)
        double = mlc.compile(lambda: x * 2)
        return [dist.placement(double()) for _ in range(2)], double().cpu().numpy()

    for placements, found in threads.run(2, rank):
        assert placements == [("data", None)] * 2
        np.testing.assert_array_equal(found, X * 2)


def test_a_function_says_how_its_values_lie() -> None:
    def f(x: Any) -> Any:
        return dist.shard(x * 2, None, "a") + 1

    x = mlc.ones(4, 6)
    assert np.array_equal(mlc.compile(f)(x).numpy(), x.numpy() * 2 + 1)       # on one device it says nothing

    def rank(number: int) -> Any:
        y = mlc.compile(f)(dist.shard(x, "a", mesh=dist.mesh({"a": 2})))
        return dist.placement(y), y.cpu().numpy()

    for placement, y in threads.run(2, rank):
        assert placement == (None, "a") and np.array_equal(y, x.numpy() * 2 + 1)


def test_the_program_of_a_rank_is_known_before_it_runs() -> None:
    mesh = dist.mesh({"data": 4}, abstract=True)
    model = dist.distribute(nn.Linear(8, 4, bias=False), mesh, dist.FullySharded("data", least=1))
    x = dist.shard(mlc.ones(16, 8), "data", mesh=mesh)

    def step(x: Any) -> Any:
        loss = model(x).square().sum()
        loss.backward()
        return loss

    report = dist.report(step, x)
    weight, loss = 8 * 4 * 4, 4
    assert [(c.kind, c.bytes) for c in report.collectives] == [
        ("all_gather", weight * 3 // 4), ("all_reduce", loss * 3), ("reduce_scatter", weight * 3 // 4)]
    assert report.arguments == weight // 4 + 16 * 8 * 4 // 4
    assert "shard.reduce_scatter" in dist.lower(step, x)
    with pytest.raises(UserError, match="the mesh is abstract"):
        step(x)


def test_each_rank_sends_what_the_report_says() -> None:
    def rank(number: int) -> tuple[int, int]:
        mesh = dist.mesh({"data": 2})
        f = mlc.compile(lambda x, w: (x @ w).sum(0))
        x, w = dist.shard(X, "data", mesh=mesh), dist.shard(mlc.ones(6, 4), "data", mesh=mesh)
        traffic = mesh._ranks.transport.traffic
        before = traffic.total - traffic.sent["agreement"]
        f(x, w)
        return traffic.total - traffic.sent["agreement"] - before, dist.report(f, x, w).sent

    assert {sent == told for sent, told in threads.run(2, rank)} == {True}


@pytest.mark.parametrize("act", [
    lambda x, rank: x.sum() if rank else x.amax(), lambda x, rank: x.cpu() if rank else x.sum(),
    lambda x, rank: dist.shard(mlc.ones(4) * rank, mesh=None if rank > 9 else rank_mesh(x)),
    lambda x, rank: dist.from_local(mlc.ones(2 + rank), "a", mesh=rank_mesh(x)),
    lambda x, rank: x + np.array([rank], np.float32),
    lambda x, rank: mlc.full((2,), rank).to(x.device),
], ids=["other operations", "gathered by one", "other elements", "other shards", "other numbers", "other copies"])
def test_ranks_that_do_different_things_are_told(act: Callable[[Any, int], Any]) -> None:
    def rank(number: int) -> None:
        mesh = dist.mesh({"a": 2})
        MESHES[number] = mesh
        act(dist.shard(mlc.arange(8.0), "a", mesh=mesh), number)

    with pytest.raises(Error) as error:
        threads.run(2, rank)
    assert isinstance(error.value.__cause__, Error) and error.value.__cause__.code == "MLC0972"


MESHES: dict[int, Any] = {}


def rank_mesh(x: Any) -> Any:
    return next(m for m in MESHES.values() if m.device == x.device)


def test_a_checkpoint_of_a_mesh_is_read_on_another(tmp_path: Any) -> None:
    def write(rank: int) -> None:
        dist.init_process_group()
        mesh = dist.mesh({"a": 4})
        dist.checkpoint.save({name: dist.shard(np.arange(8) * n, "a", mesh=mesh)
                              for name, n in (("x", 1), ("y", 10))}, tmp_path / "saved")

    def read(rank: int) -> Any:
        dist.init_process_group()
        mesh = dist.mesh({"a": 2})
        found = dist.checkpoint.load({name: dist.shard(np.arange(8) * 0, "a", mesh=mesh) for name in "xy"},
                                     tmp_path / "saved")
        return found["x"].tolist(), found["y"].tolist(), dist.placement(found["x"])

    threads.run(4, write)
    assert threads.run(2, read) == [([*range(8)], [*range(0, 80, 10)], ("a",))] * 2


@pytest.mark.parametrize(("make", "message"), [
    (lambda m: dist.shard(mlc.ones(5), "a", mesh=m), "no multiple of 2"),
    (lambda m: dist.shard(mlc.ones(4, 4), "a", "a", mesh=m), "axis 'a' divides it twice"),
    (lambda m: dist.shard(mlc.ones(4), "z", mesh=m), "no axis 'z'"),
    (lambda m: dist.shard(mlc.ones(4), "a", None, mesh=m), "2 dimensions are specified"),
    (lambda m: dist.shard(mlc.ones(4), "a"), "no mesh is given"),
    (lambda m: dist.report(lambda x: dist.shard(x, "a", stage=0), dist.shard(mlc.ones(4), mesh=m)), "used or stage"),
    (lambda m: dist.placement(mlc.ones(4)), "on no mesh"),
    (lambda m: dist.report(lambda x: x, mlc.ones(4)), "is on a mesh"),
    (lambda m: dist.shard(mlc.ones(4), mesh=m) + mlc.ones(4), "operand 1 on cpu"),
    (lambda m: dist.distribute(nn.Linear(2, 2), m, dist.ByName({"wieght": ("a",)})), "no tensor of the module"),
    (lambda m: dist.mesh({"a": 2}), "needs 2 ranks, and there is 1"),
    (lambda m: mlc.nonzero(dist.shard(mlc.ones(4), mesh=dist.mesh({"a": 1}))), "a size that depends on data"),
    (lambda m: mlc.fft.fft(dist.shard(mlc.ones(4), mesh=dist.mesh({"a": 1}))), "complex tensors are not divided"),
    (lambda m: mlc.ones(2).to("mesh:999999"), "there is no mesh:999999"),
    (lambda m: dist.mesh(untyped(2)), "2 is no mesh"),
    (lambda m: dist.shard([1.0, 2.0], untyped(0), mesh=m), "0 names no axis"),
    (lambda m: dist.shard(mlc.ones(2), m), "the mesh is a keyword argument|no mesh is given"),
    (lambda m: dist.shard(mlc.ones(2), "a", mesh=untyped("mesh:0")), "'mesh:0' is no mesh"),
    (lambda m: dist.placement(untyped(np.ones(2))), "a ndarray is on no mesh"),
    (lambda m: dist.distribute(nn.Linear(2, 2), m, untyped("data")), "'data' is no plan"),
    (lambda m: dist.distribute(nn.Linear(200, 200), m, dist.FullySharded("z")), "no axis 'z'"),
    (lambda m: dist.distribute(nn.Linear(2, 2), m, dist.FullySharded("a")), "divides none of the 2 tensors"),
    (lambda m: dist.shard_optimizer(untyped(3), m, "a"), "a int is no optimiser"),
])
def test_mistakes_are_told(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(Error, match=rf"MLC\d{{4}}.*({message})"):
        make(dist.mesh({"a": 2}, abstract=True))


def test_rows_of_a_divided_table_keep_the_signs_of_zeros() -> None:
    def rank(number: int) -> Any:
        table = dist.shard(np.array([[-0.0, 1.0], [0.0, -0.0]], np.float32), "model", mesh=dist.mesh({"model": 2}))
        return np.signbit(mlc.compile(lambda t: t[np.array([1, 0])])(table).numpy()).tolist()

    assert threads.run(2, rank) == [[[False, True], [True, False]]] * 2


@pytest.mark.parametrize("wrong", [8, -1, 5])
def test_a_row_that_a_divided_table_has_not(wrong: int) -> None:
    """Each rank has other rows; none of them takes an index out of range for one of another rank."""
    whole = nn.Embedding(8, 2)

    def rank(number: int) -> Any:
        table = copy.deepcopy(whole)
        dist.distribute(table, dist.mesh({"model": 2}), dist.ByName({"weight": ("model",)}))
        return mlc.compile(table)(np.array([0, 3, wrong])).tolist()

    if wrong == 5:
        assert threads.run(2, rank)[1] == whole(mlc.tensor([0, 3, 5])).tolist()
        return
    with pytest.raises(RankError) as caught:
        threads.run(2, rank)
    assert "an index of take is out of range" in str(caught.value.__cause__)
