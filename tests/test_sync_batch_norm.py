"""SyncBatchNorm in jobs of several ranks: what it computes of the parts of a batch is that of the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.backends.transport import threads
from mlc.backends.transport.errors import RankError
from mlc.ir.diag import UserError
from mlc.nn.parallel import DistributedDataParallel

X = np.random.default_rng(0).normal(3, 2, (7, 4, 3)).astype(np.float32)
PARTS = {2: (slice(0, 2), slice(2, 7)), 3: (slice(0, 1), slice(1, 1), slice(1, 7))}


def model(kind: Any) -> nn.Sequential:
    mlc.manual_seed(0)
    return nn.Sequential(nn.Conv1d(4, 5, 2), kind(5), nn.Tanh())


def trained(m: nn.Module, layer: Any, x: Any, ranks: int) -> dict[str, Any]:
    """All that a pass forward and backward leaves; DistributedDataParallel divides the gradients by the ranks."""
    x = mlc.tensor(x, requires_grad=True)
    out = m(x)
    (out * out * out).sum().backward()
    grads = {name: p.grad.numpy() * ranks for name, p in m.named_parameters() if p.grad is not None}
    return {"out": out.detach().numpy(), "x": x.grad.numpy() if x.grad is not None else None,
            "mean": layer.running_mean.numpy(), "var": layer.running_var.numpy(),
            **{name.removeprefix("module."): g for name, g in grads.items()}}


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_parts_of_a_batch_are_as_the_whole_batch(ranks: int) -> None:
    def work(rank: int) -> Any:
        mlc.distributed.init_process_group()
        m: Any = nn.SyncBatchNorm.convert_sync_batchnorm(model(nn.BatchNorm1d))
        return trained(DistributedDataParallel(m), m[1], X[PARTS[ranks][rank]], ranks)

    plain = model(nn.BatchNorm1d)
    whole = trained(plain, plain[1], X, 1)
    found = threads.run(ranks, work)
    for name, expected in whole.items():
        parts = [f[name] for f in found]
        if name in ("out", "x"):
            parts = [np.concatenate(parts)]
        else:
            assert len({p.tobytes() for p in parts}) == 1, name
        np.testing.assert_allclose(parts[0], expected, rtol=2e-4, atol=2e-5, err_msg=name)


def test_second_derivatives_are_of_all_ranks() -> None:
    def of(layer: Any, values: Any) -> Any:
        x = mlc.tensor(values, requires_grad=True)
        slope, = mlc.autograd.grad((layer(x) ** 3).sum(), x, create_graph=True)
        (slope ** 2).sum().backward()
        assert x.grad is not None
        return x.grad.numpy()

    def work(rank: int) -> Any:
        mlc.distributed.init_process_group()
        return of(nn.SyncBatchNorm(4), X[PARTS[2][rank]])

    np.testing.assert_allclose(np.concatenate(threads.run(2, work)), of(nn.BatchNorm1d(4), X), rtol=2e-3, atol=1e-3)


def test_a_group_has_statistics_of_its_own() -> None:
    def work(rank: int) -> Any:
        mlc.distributed.init_process_group()
        groups = [mlc.distributed.new_group([0, 1]), mlc.distributed.new_group([2, 3])]
        layer = nn.SyncBatchNorm(1, momentum=1.0, process_group=groups[rank // 2])
        layer(mlc.tensor([[float(rank)]]))
        return layer.running_mean.item() if layer.running_mean is not None else None

    assert threads.run(4, work) == [0.5, 0.5, 2.5, 2.5]


def test_batches_without_values_change_no_statistics_and_dtypes_have_to_fit() -> None:
    def work(rank: int) -> Any:
        mlc.distributed.init_process_group()
        layer = nn.SyncBatchNorm(2)
        layer(mlc.zeros(0, 2))
        with pytest.raises(UserError) as error:
            layer(mlc.ones(2, 2, dtype="float64"))
        assert layer.running_var is not None
        return layer.running_var.tolist(), error.value.code

    assert threads.run(2, work) == [([1.0, 1.0], "MLC0420")] * 2


def test_a_layer_in_two_places_stays_one() -> None:
    shared = nn.BatchNorm1d(2)
    model: Any = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(shared, nn.Sequential(shared)))
    assert model[0] is model[1][0] and type(model[0]) is nn.SyncBatchNorm


def test_unused_parameters_beside_it_are_refused() -> None:
    def work(rank: int) -> Any:
        mlc.distributed.init_process_group()
        with pytest.raises(RankError, match="SyncBatchNorm") as error:
            DistributedDataParallel(model(nn.SyncBatchNorm), find_unused_parameters=True)
        return error.value.code

    assert threads.run(2, work) == ["MLC0976"] * 2


def test_integers_become_floats() -> None:
    def work(rank: int) -> Any:
        mlc.distributed.init_process_group()
        return nn.SyncBatchNorm(1, eps=0.0)(mlc.tensor([[2 * rank]])).item()

    assert threads.run(2, work) == [-1.0, 1.0]


def test_a_function_compiled_for_one_rank_is_refused_and_one_of_a_mesh_is_of_the_whole_batch() -> None:
    def work(rank: int) -> Any:
        mlc.distributed.init_process_group()
        layer = nn.SyncBatchNorm(4)
        with pytest.raises(UserError, match="one rank") as error:
            mlc.compile(layer)(mlc.tensor(X))
        assert error.value.code == "MLC0976"
        with pytest.raises(UserError, match="one rank"):
            mlc.grad(lambda x: (nn.SyncBatchNorm(4, track_running_stats=False)(x) ** 2).sum())(mlc.tensor(X))
        mesh = mlc.distributed.mesh({"data": 2})
        out = mlc.compile(layer)(mlc.distributed.shard(mlc.tensor(X[:6]), "data", mesh=mesh))
        return mlc.distributed.local(out).numpy()

    found = np.concatenate(threads.run(2, work))
    np.testing.assert_allclose(found, nn.BatchNorm1d(4)(mlc.tensor(X[:6])).detach().numpy(), rtol=1e-4, atol=1e-5)
