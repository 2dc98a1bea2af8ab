"""Pipelines: what stages of a model compute on ranks of their own is what one device computes of the same microbatches.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.distributed as dist
from mlc import nn
from mlc.backends.transport import threads
from mlc.dialects.shard import ranks
from mlc.ir.diag import Error, IRError
from mlc.ir.parser import parse_module
from mlc.passes.split_stages import schedules
from tests.training_recipes import RECIPES, TASKS, Training, examine, recipes

F = nn.functional
RNG = np.random.default_rng(0)
X = RNG.standard_normal((16, 6)).astype(np.float32)
Y = RNG.integers(0, 4, 16)
GPT = next(task for task in TASKS if task.name == "gpt")
RECIPE = {recipe.name: recipe for recipe in RECIPES}


def network(stages: int, layers: int = 4, width: int = 8, first: int = 6) -> nn.Sequential:
    """A network of a few layers, the same number at each stage."""
    mlc.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width if i else first, width), nn.Tanh()) for i in range(layers)))
    for i, layer in enumerate(model):
        dist.stage(layer, i * stages // layers)
    return model


def trained(model: nn.Module, place: Callable[[Any], Any], schedule: str, microbatches: int = 4,
            clip: float | None = None) -> tuple[list[float], list[Any]]:
    """The losses of some steps, and the weights after them."""
    optimizer = mlc.optim.AdamW(model.parameters(), lr=0.05)

    @mlc.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = dist.pipeline(lambda x, y: F.cross_entropy(model(x), y), x, y, microbatches=microbatches,
                             schedule=schedule)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss

    losses = [step(place(X), place(Y)).item() for _ in range(3)]
    return losses, [p.cpu().numpy() for p in model.parameters()]


@pytest.mark.parametrize(("stages", "schedule", "axes"), [
    pytest.param(2, "gpipe", {"stage": 2}, marks=pytest.mark.slow),
    pytest.param(2, "1f1b", {"stage": 2}, marks=pytest.mark.slow), (4, "1f1b", {"stage": 4}),
    (4, "interleaved", {"stage": 2}), (3, "gpipe", {"stage": 2}), (4, "1f1b", {"stage": 2}),
    (2, "1f1b", {"stage": 2, "data": 2}), (4, "1f1b", {"data": 2})])
def test_a_pipeline_trains_as_one_device(stages: int, schedule: str, axes: dict[str, int]) -> None:
    """To the bit, unless the batch is divided, too. On a mesh without stages, each rank has all of them."""
    base = network(stages)
    losses, weights = trained(copy.deepcopy(base), mlc.tensor, schedule)

    def rank(number: int) -> Any:
        mesh = dist.mesh(axes)
        model = dist.distribute(copy.deepcopy(base), mesh, schedule=schedule)
        held = [dist.local(p).numel() > 0 for p in model.parameters()]
        spec = ["data"] if "data" in axes else []
        return held, trained(model, lambda x: dist.shard(x, *spec, mesh=mesh), schedule)

    found = threads.run(int(np.prod(list(axes.values()))), rank)
    for held, (got, moved) in found:
        share = len(weights) // axes.get("stage", 1)
        assert sum(held) == share or stages == 3, "each rank holds the weights of its stages"
        if "data" not in axes:
            assert got == losses and all(np.array_equal(a, b) for a, b in zip(moved, weights))
        np.testing.assert_allclose(got, losses, rtol=1e-5)
        for a, b in zip(moved, weights):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [nn.BatchNorm1d, lambda n: nn.Dropout(0.3, generator=mlc.Generator())],
                         ids=["running statistics", "keys"])
def test_microbatches_change_buffers_in_their_order(layer: Callable[[int], nn.Module]) -> None:
    mlc.manual_seed(0)
    base = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), layer(6)) for _ in range(2)))
    for i, part in enumerate(base):
        dist.stage(part, i)

    def buffers(model: nn.Module, place: Callable[[Any], Any]) -> tuple[list[float], list[Any]]:
        losses, _ = trained(model, place, "1f1b")
        return losses, [x.cpu().numpy() for x in model.buffers()]

    losses, alone = buffers(copy.deepcopy(base), mlc.tensor)

    def rank(number: int) -> Any:
        mesh = dist.mesh({"stage": 2})
        return buffers(dist.distribute(copy.deepcopy(base), mesh), lambda x: dist.shard(x, mesh=mesh))

    for got, found in threads.run(2, rank):
        assert got == losses and all(np.array_equal(a, b) for a, b in zip(found, alone))


def test_a_microbatch_has_one_backward_where_later_ones_take_its_running_statistics() -> None:
    mesh = dist.mesh({"stage": 2}, abstract=True)
    base = nn.Sequential(*(dist.stage(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), i) for i in range(2)))
    model = dist.distribute(base, mesh)
    report = dist.report(lambda x: dist.pipeline(lambda x: (model(x) ** 2).mean(), x, microbatches=4),
                         dist.shard(X, mesh=mesh))
    cotangents = [c.bytes for c in report.positions[1].collectives if c.bytes > 4]
    assert cotangents == [4 * 6 * 4] * 4


@pytest.mark.parametrize("microbatches", [1, 4])
def test_gradients_are_clipped_by_their_norm_over_all_stages(microbatches: int) -> None:
    base = network(2)
    losses, _ = trained(copy.deepcopy(base), mlc.tensor, "1f1b", microbatches, clip=0.01)

    def rank(number: int) -> Any:
        mesh = dist.mesh({"stage": 2})
        model = dist.distribute(copy.deepcopy(base), mesh)
        return trained(model, lambda x: dist.shard(x, mesh=mesh), "1f1b", microbatches, 0.01)[0]

    for found in threads.run(2, rank):
        np.testing.assert_allclose(found, losses, rtol=1e-6)


class Skips(nn.Module):
    """Values go around stages: to the next one and to the one after it, added and multiplied."""

    def __init__(self) -> None:
        self.layers = nn.ModuleList(dist.stage(nn.Linear(6, 6), i) for i in range(3))

    def block(self, i: int, x: mlc.Tensor) -> mlc.Tensor:
        out: mlc.Tensor = x + mlc.tanh(self.layers[i](x))
        return out

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        first = self.layers[0](x)
        out: mlc.Tensor = self.block(2, self.block(1, first)) * first
        return out


def test_values_go_around_stages() -> None:
    mlc.manual_seed(0)
    base = Skips()
    losses, weights = trained(copy.deepcopy(base), mlc.tensor, "1f1b")

    def rank(number: int) -> Any:
        mesh = dist.mesh({"stage": 3})
        return trained(dist.distribute(copy.deepcopy(base), mesh), lambda x: dist.shard(x, mesh=mesh), "1f1b")

    for got, moved in threads.run(3, rank):                # cotangents are added at each stage first
        np.testing.assert_allclose(got, losses, rtol=1e-6)
        for a, b in zip(moved, weights):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_value_that_goes_around_a_stage_is_sent_to_each_user_once() -> None:
    mesh = dist.mesh({"stage": 3}, abstract=True)
    model = dist.distribute(Skips(), mesh)
    report = dist.report(lambda x: dist.pipeline(lambda x: model(x).mean(), x, microbatches=1),
                         dist.shard(X, mesh=mesh))
    activation = 16 * 6 * 4
    assert [[c.bytes for c in p.collectives if c.bytes > 4] for p in report.positions] == [
        [activation] * 2, [activation] * 2, [activation] * 2]


class Tied(nn.Module):
    """Scores of tokens by the embedding of tokens, which two stages use."""

    def __init__(self) -> None:
        self.embed, self.middle = nn.Embedding(4, 8), nn.Linear(8, 8)

    def forward(self, tokens: mlc.Tensor) -> mlc.Tensor:
        x: mlc.Tensor = self.middle(self.embed(tokens))
        return x @ self.embed.weight.T


def test_two_stages_use_one_weight() -> None:
    mlc.manual_seed(0)
    base = Tied()
    dist.stage(base.embed, 0)
    dist.stage(base.middle, 1)

    def losses(model: nn.Module, place: Callable[[Any], Any]) -> tuple[list[float], Any]:
        optimizer = mlc.optim.SGD(model.parameters(), lr=0.5)

        @mlc.compile
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = dist.pipeline(lambda x: F.cross_entropy(model(x), x), x, microbatches=2)
            optimizer.step()
            return loss

        return [step(place(Y)).item() for _ in range(3)], [p.cpu().numpy() for p in model.parameters()]

    alone, weights = losses(copy.deepcopy(base), mlc.tensor)

    def rank(number: int) -> Any:
        mesh = dist.mesh({"stage": 2})
        return losses(dist.distribute(copy.deepcopy(base), mesh), lambda x: dist.shard(x, mesh=mesh))

    for found, moved in threads.run(2, rank):
        np.testing.assert_allclose(found, alone, rtol=1e-6)
        for a, b in zip(moved, weights):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_model_is_called_and_looked_at_without_a_pipeline(tmp_path: Path) -> None:
    base = network(2)
    want = base(mlc.tensor(X)).numpy()

    def rank(number: int) -> Any:
        dist.init_process_group()
        mesh = dist.mesh({"stage": 2})
        model = dist.distribute(copy.deepcopy(base), mesh)
        y = mlc.compile(model)(dist.shard(X, mesh=mesh))
        norm = mlc.stack([(p * p).sum() for p in model.parameters()]).sum().item()
        dist.checkpoint.save({"model": model.state_dict()}, tmp_path / "state")
        for p in model.parameters():
            p.data = p.data * 0
        model.load_state_dict(dist.checkpoint.load({"model": model.state_dict()}, tmp_path / "state")["model"])
        return y.cpu().numpy(), norm, [p.cpu().numpy() for p in model.parameters()]

    for y, norm, weights in threads.run(2, rank):
        np.testing.assert_array_equal(y, want)
        np.testing.assert_allclose(norm, sum(float((p * p).sum()) for p in base.parameters()), rtol=1e-5)
        assert all(np.array_equal(a, b.numpy()) for a, b in zip(weights, base.parameters()))


def test_a_recipe_sends_what_it_has_to() -> None:
    found = examine(TASKS[0], RECIPE["pipeline, 1F1B"], 2, 3)
    assert found.faults() == [] and found.equal == 3


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_a_small_gpt_trains_as_one_device(count: int) -> None:
    for recipe in recipes(GPT, count):
        if recipe.schedule:
            found = examine(GPT, recipe, count, 4)
            assert found.faults() == [] and ("data" in (recipe.axes(count) or ()) or found.equal == 4), recipe.name


# -- costs ------------------------------------------------------------------------------------------------------------
def reported(schedule: str, stages: int = 4, microbatches: int = 8, positions: int = 4) -> dist.Report:
    model = network(stages, width=64, first=64)
    mesh = dist.mesh({"stage": positions}, abstract=True)
    dist.distribute(model, mesh)

    def step(x: Any) -> Any:
        return dist.pipeline(lambda x: (model(x) ** 2).mean(), x, microbatches=microbatches, schedule=schedule)

    return dist.report(step, dist.shard(np.ones((256, 64), np.float32), mesh=mesh))


def test_what_each_rank_brings_is_on_each() -> None:
    """The weights are where they are used; the batch, which the first stage takes, is on all ranks."""
    layer, batch = (64 * 64 + 64) * 4, 256 * 64 * 4
    assert [p.arguments for p in reported("1f1b").positions] == [layer + batch] * 4


def test_a_backward_as_soon_as_possible_keeps_fewer_activations() -> None:
    gpipe, turns = reported("gpipe"), reported("1f1b")
    assert [p.sent for p in gpipe.positions] == [p.sent for p in turns.positions]
    assert gpipe.sent == max(p.sent for p in gpipe.positions)
    activation = 256 // 8 * 64 * 4                          # of a microbatch, of which two are kept in a stage
    for position in (1, 2, 3):
        saved = gpipe.positions[position].between - turns.positions[position].between
        assert saved >= 2 * activation * (8 - (4 - position) - 1), f"position {position} keeps {saved} bytes less"


@pytest.mark.parametrize(("schedule", "stages", "ranks"), [
    ("gpipe", 4, 4), ("1f1b", 4, 4), ("1f1b", 2, 2), ("interleaved", 4, 2)])
def test_a_rank_waits_as_long_as_the_theory_says(schedule: str, stages: int, ranks: int) -> None:
    """(m + (n - 1) / v) / m times as long as its own work takes, that of the slowest."""
    machine, m, v = dist.Machine(flops=1e9, memory=1e15, latency=0, network=1e15, call=0), 8, stages // ranks
    report = reported(schedule, stages, m, ranks)
    slowest = max(sum(machine.segment(s) for s in p.segments) for p in report.positions)
    time = report.time(machine)
    assert time.total == pytest.approx(slowest * (m + (ranks - 1) / v) / m, rel=0.05)
    assert 0 < time.waiting < time.total / 3 and str(report).count("at stage") == ranks


@pytest.mark.parametrize(("ranks", "per_rank", "microbatches"), [(2, 1, 1), (4, 1, 3), (4, 1, 8), (2, 2, 4), (4, 2, 8)])
def test_schedules_have_each_task_once_in_an_order_without_deadlock(ranks: int, per_rank: int,
                                                                    microbatches: int) -> None:
    stages = ranks * per_rank
    for name in ("gpipe", "1f1b") if per_rank == 1 else ("interleaved",):
        assert schedules.problem(name, ranks, stages, microbatches) is None
        orders = [schedules.order(name, r, ranks, stages, microbatches, True) for r in range(ranks)]
        assert sorted(t for own in orders for t in own) == [schedules.Task(s, b, i) for s in range(stages)
                                                            for b in (False, True) for i in range(microbatches)]
        done, at = set[schedules.Task](), [0] * ranks
        while len(done) < 2 * stages * microbatches:
            before = len(done)
            for rank, own in enumerate(orders):
                while at[rank] < len(own) and _needed(own[at[rank]], stages) <= done:
                    done.add(own[at[rank]])
                    at[rank] += 1
            assert len(done) > before, f"{name}: the ranks wait for each other"


def _needed(task: schedules.Task, stages: int) -> set[schedules.Task]:
    stage, i = task.stage, task.microbatch
    if not task.backward:
        return {schedules.Task(stage - 1, False, i)} if stage else set()
    return {schedules.Task(stage, False, i)} | ({schedules.Task(stage + 1, True, i)} if stage + 1 < stages else set())


# -- errors -----------------------------------------------------------------------------------------------------------
MESH = 'mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, axes = ["stage"]'
SEND, RECV = (f"shard.send %x {{{MESH}, tag = T, destination = N}} : (tensor<2xf32>) -> ()",
              f"%R = shard.recv {{{MESH}, tag = T, source = N}} : () -> tensor<2xf32>")


def program(*steps: str) -> Any:
    body = "\n".join(steps)
    return parse_module(f"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n{body}\n"
                        "  func.return %x : tensor<2xf32>\n}", "p.mlir")


def message(op: str, tag: int, peer: int, result: str = "r") -> str:
    return op.replace("T,", f"{tag},").replace("= N", f"= {peer}").replace("%R", f"%{result}")


@pytest.mark.parametrize(("first", "second", "code", "text"), [
    ([message(RECV, 0, 1), message(SEND, 1, 1)], [message(RECV, 1, 0), message(SEND, 0, 0)], "MLC0966",
     "rank 0 waits at shard.recv for tag 0 of rank 1, which never sends it; rank 1 for tag 1 of rank 0"),
    ([message(SEND, 0, 1)], [], "MLC0966", "rank 0 sends a tensor<2xf32> to rank 1 with tag 0, which never receives"),
    ([message(SEND, 0, 1)], [message(RECV, 0, 0).replace("2xf32", "3xf32")], "MLC0965", "rank 1 receives a "
     "tensor<3xf32> with tag 0, and rank 0 sends a tensor<2xf32>"),
], ids=["deadlock", "not received", "another type"])
def test_mismatched_messages_are_found_before_anything_runs(first: list[str], second: list[str], code: str,
                                                            text: str) -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(IRError, match=text) as error:
        ranks.interpret_each([program(*first), program(*second)], "main", [[x], [x]])
    assert error.value.code == code


def test_messages_are_received_by_their_tags() -> None:
    x = np.ones(2, np.float32)
    first = program(message(SEND, 0, 1), message(SEND, 1, 1), message(RECV, 2, 1))
    second = program(message(RECV, 1, 0, "a"), message(RECV, 0, 0, "b"), message(SEND, 2, 0))
    assert len(ranks.interpret_each([first, second], "main", [[x], [x]])) == 2


def refused(model: nn.Module, mesh: dist.DeviceMesh, **how: Any) -> Error:
    dist.distribute(model, mesh)
    with pytest.raises(Error) as error:
        dist.report(lambda x: dist.pipeline(lambda x: model(x).mean(), x, **{"microbatches": 2} | how),
                    dist.shard(X, mesh=mesh))
    assert error.value.loc.file, "the error has a place"
    return error.value


def test_what_is_no_pipeline_is_refused() -> None:
    mesh = dist.mesh({"stage": 2}, abstract=True)
    backwards = nn.Sequential(dist.stage(nn.Linear(6, 6), 1), dist.stage(nn.Linear(6, 6), 0))
    assert refused(backwards, mesh).code == "MLC0982"
    assert refused(nn.Linear(6, 6), mesh).message == "@main has microbatches, and no stages"
    gap = nn.Sequential(dist.stage(nn.Linear(6, 6), 0), dist.stage(nn.Linear(6, 6), 2))
    assert refused(gap, mesh).message == "@main has 3 stages, and nothing is at stage 1"
    assert "needs a stage for each of 2 ranks, and there are 1" in refused(network(1), mesh, schedule="gpipe").message
    turns = refused(network(4), mesh, schedule="gpipe")
    assert turns.code == "MLC0987" and "is on the ranks at position 1, and schedule gpipe uses it at position 0" in (
        turns.message)
    odd = refused(network(4), mesh, schedule="interleaved", microbatches=1)
    assert odd.code == "MLC0983" and "rounds of 2 microbatches, and there are 1" in odd.message
    assert refused(network(2), mesh, microbatches=3).code == "MLC0985"
    assert refused(network(2), mesh, schedule="zigzag").code == "MLC0983"


@pytest.mark.parametrize("by_hand", [False, True])
def test_gradients_of_microbatches_are_sent_once(by_hand: bool) -> None:
    """Without stages, too: the bytes of two microbatches are those of one, and the number of the loss."""
    mesh = dist.mesh({"data": 2}, abstract=True)
    mlc.manual_seed(0)
    model = dist.distribute(nn.Linear(6, 4), mesh)

    def step(x: Any, count: int) -> Any:
        if not by_hand:
            return dist.pipeline(lambda x: model(x).square().mean(), x, microbatches=count), model.weight.grad
        for i in range(count):
            (model(x.reshape(16 // count, count, 6)[:, i]).square().mean() / count).backward()
        return model.weight.grad

    sent = []
    for count in (1, 2, 4):
        model.zero_grad()
        sent.append(dist.report(lambda x, count=count: step(x, count), dist.shard(X, "data", mesh=mesh)).sent)
    assert max(sent) - sent[0] <= (0 if by_hand else 4 * 3) and sent[0] >= 4 * 6 * 4


def test_the_axis_of_stages_divides_no_tensor() -> None:
    mesh = dist.mesh({"stage": 2}, abstract=True)
    model = dist.distribute(network(2), mesh)
    with pytest.raises(Error, match="a tensor is divided along axis 'stage'") as error:
        dist.report(lambda x: dist.pipeline(lambda x: model(x).mean(), x, microbatches=2),
                    dist.shard(X, "stage", mesh=mesh))
    assert error.value.code == "MLC0962"


def test_a_pipeline_of_divided_weights() -> None:
    """Tensor parallelism within stages: their collectives are between messages."""
    base = network(2)
    losses, _ = trained(copy.deepcopy(base), mlc.tensor, "1f1b")

    def rank(number: int) -> Any:
        mesh = dist.mesh({"stage": 2, "model": 2})
        plan = dist.ByName({"[02].0.*": ("model",), "[13].0.weight": (None, "model")})
        return trained(dist.distribute(copy.deepcopy(base), mesh, plan), lambda x: dist.shard(x, mesh=mesh), "1f1b")[0]

    for found in threads.run(4, rank):
        np.testing.assert_allclose(found, losses, rtol=1e-5)


@pytest.mark.parametrize("number", [-1, True, "first"])
def test_stages_have_numbers(number: Any) -> None:
    with pytest.raises(Error, match="there is no stage") as error:
        dist.stage(nn.Linear(2, 2), number)
    assert error.value.code == "MLC0986"


def test_recipes_have_pipelines() -> None:
    assert sum(recipe.name.startswith("pipeline") for recipe in recipes(GPT, 4)) == 4
    training = Training.of(GPT, RECIPE["pipeline and data"], 4, abstract=True)
    assert training.mesh is not None and training.mesh.shape == {"data": 2, "stage": 2}
