"""mlc.distributed with threads as ranks: PyTorch's collectives, their errors, and DistributedDataParallel."""
from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import distributed as dist
from mlc import nn
from mlc.backends.transport import threads
from mlc.distributed import ReduceOp
from mlc.ir.diag import UserError
from mlc.nn.parallel import DistributedDataParallel

pytestmark = pytest.mark.usefixtures("execution")

def ranks(size: int, work: Callable[[int], Any], timeout: float = 20) -> list[Any]:
    """The results of a function on threads that have a process group."""
    def joined(rank: int) -> Any:
        dist.init_process_group(timeout=timedelta(seconds=timeout))
        return work(rank)
    return threads.run(size, joined)


def x_of(rank: int) -> mlc.Tensor:
    return mlc.tensor([rank + 1.0, -rank])


# -- collectives ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op, want", [
    (ReduceOp.SUM, [6.0, -3.0]), (ReduceOp.AVG, [2.0, -1.0]), (ReduceOp.PRODUCT, [6.0, 0.0]),
    (ReduceOp.MIN, [1.0, -2.0]), (ReduceOp.MAX, [3.0, 0.0])])
@pytest.mark.parametrize("background", [False, True])
def test_all_reduce(op: ReduceOp, want: list[float], background: bool) -> None:
    def work(rank: int) -> Any:
        x = x_of(rank)
        view = x[0:1]
        started = dist.all_reduce(x, op, async_op=background)
        if started is not None:
            assert started.wait() and started.is_completed() and started.is_success()
        assert view.item() == x[0].item()
        return x.tolist()

    assert ranks(3, work) == [want] * 3


def test_means_of_16_bits_are_rounded_once() -> None:
    xs = [np.concatenate([[40000.0], np.random.default_rng(r).standard_normal(200)]).astype(np.float16)
          for r in range(3)]

    def work(rank: int) -> Any:
        x, part = mlc.tensor(xs[rank]), mlc.zeros(67, dtype=mlc.float16)
        dist.reduce_scatter_tensor(part, x, ReduceOp.AVG)
        dist.all_reduce(x, ReduceOp.AVG)
        return x.numpy(), part.numpy()

    wide = (xs[0].astype(np.float32) + xs[1]) + xs[2]
    want = (wide / np.float32(3)).astype(np.float16)
    for rank, (mean, part) in enumerate(ranks(3, work)):
        np.testing.assert_array_equal(mean, want)
        np.testing.assert_array_equal(part, want[67 * rank: 67 * rank + 67])


def test_integers_and_bools() -> None:
    def work(rank: int) -> Any:
        x, y, z = mlc.tensor([6, 3]) + rank, mlc.tensor([rank == 0, False]), mlc.tensor([6, 3]) + rank
        dist.all_reduce(x, ReduceOp.BAND)
        dist.all_reduce(y, ReduceOp.BOR)
        dist.all_reduce(z, ReduceOp.BXOR)
        return x.tolist(), y.tolist(), z.tolist()

    assert ranks(2, work) == [([6, 0], [True, False], [1, 7])] * 2


def test_gathering() -> None:
    def work(rank: int) -> Any:
        found = [mlc.zeros(2) for _ in range(3)]
        dist.all_gather(found, x_of(rank))
        rows, flat = mlc.zeros(3, 2), mlc.zeros(6)
        dist.all_gather_into_tensor(rows, x_of(rank))
        dist.all_gather_into_tensor(flat, x_of(rank))
        on_one = [mlc.zeros(2) for _ in range(3)] if rank == 1 else None
        dist.gather(x_of(rank), on_one, dst=1)
        for other in (rows, *([mlc.stack(on_one)] if on_one else [])):
            assert other.tolist() == mlc.stack(found).tolist()
        assert flat.tolist() == rows.reshape(6).tolist()
        return rows.tolist()

    assert ranks(3, work) == [[[1, 0], [2, -1], [3, -2]]] * 3


def test_scattering() -> None:
    def work(rank: int) -> Any:
        x, y, z, w = mlc.zeros(2), mlc.zeros(2), mlc.zeros(2), mlc.zeros(1, 2)
        dist.scatter(x, [x_of(r) for r in range(3)] if rank == 2 else None, src=2)
        dist.reduce_scatter(y, [x_of(r) for r in range(3)])
        dist.reduce_scatter_tensor(z, mlc.stack([x_of(r) for r in range(3)]), ReduceOp.AVG)
        dist.reduce_scatter_tensor(w, mlc.stack([x_of(r) for r in range(3)]))
        assert w[0].tolist() == y.tolist()
        return x.tolist(), y.tolist(), z.tolist()

    assert ranks(3, work) == [([r + 1, -r], [3 * (r + 1), -3 * r], [r + 1, -r]) for r in range(3)]


def test_broadcast_and_reduce() -> None:
    def work(rank: int) -> Any:
        x, y = x_of(rank), x_of(rank)
        dist.broadcast(x, src=1)
        dist.reduce(y, dst=2)
        return x.tolist(), y.tolist()

    assert ranks(3, work) == [([2, -1], [1, 0]), ([2, -1], [2, -1]), ([2, -1], [6, -3])]


def test_all_to_all() -> None:
    def work(rank: int) -> Any:
        found = [mlc.zeros(r + 1) for r in range(2)]               # rank r sends r + 1 elements
        dist.all_to_all(found, [mlc.full((rank + 1,), 10.0 * rank + to) for to in range(2)])
        y = mlc.zeros(3)
        rows = mlc.arange(2.0) + 10 * rank if rank == 0 else mlc.arange(4.0) + 10
        dist.all_to_all_single(y, rows, [1, 2], [rank + 1, rank + 1])
        return [t.tolist() for t in found], y.tolist()

    assert ranks(2, work) == [([[0.0], [10.0, 10.0]], [0.0, 10.0, 11.0]), ([[1.0], [11.0, 11.0]], [1.0, 12.0, 13.0])]


def test_groups() -> None:
    def work(rank: int) -> Any:
        pair, x = dist.new_group([3, 1]), x_of(rank)
        if rank % 2:
            assert dist.get_process_group_ranks(pair) == [1, 3] and dist.get_global_rank(pair, 1) == 3
            dist.all_reduce(x, group=pair)
            dist.broadcast(x, src=3, group=pair)
        else:
            with pytest.warns(UserWarning, match="not in the group"):
                dist.all_reduce(x, group=pair)
        dist.barrier()
        return dist.get_rank(pair), dist.get_world_size(pair), x.tolist()

    assert ranks(4, work) == [(-1, -1, [1, 0]), (0, 2, [6, -4]), (-1, -1, [3, -2]), (1, 2, [6, -4])]


def test_messages() -> None:
    def work(rank: int) -> Any:
        x, y = mlc.zeros(2), mlc.zeros(2)
        first = dist.irecv(y, 1 - rank, tag=5)
        for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, x_of(rank), 1 - rank),
                                         dist.P2POp(dist.irecv, x, 1 - rank)]):
            w.wait()
        dist.send(x_of(rank) * 2, 1 - rank, tag=5)
        assert first is not None and first.wait()
        return x.tolist(), y.tolist()

    assert ranks(2, work) == [([2, -1], [4, -2]), ([1, 0], [2, 0])]


def test_objects_travel_as_data() -> None:
    def work(rank: int) -> Any:
        found: list[Any] = [None, None]
        dist.all_gather_object(found, {"rank": rank, "x": x_of(rank), "text": "a" * (rank * 1000)})
        assert [len(f["text"]) for f in found] == [0, 1000] and found[1]["x"].tolist() == [2, -1]
        with pytest.raises(UserError):
            dist.all_gather_object(found, work)                      # a function
        dist.barrier()
        return found[1]["rank"]

    assert ranks(2, work) == [1, 1]


# -- errors -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("other", [
    lambda: dist.broadcast(mlc.ones(3), 0), lambda: dist.all_reduce(mlc.ones(4)), lambda: dist.barrier(),
    lambda: dist.all_reduce(mlc.ones(3), ReduceOp.MAX), lambda: dist.all_reduce(mlc.ones(3, dtype=mlc.float64)),
    lambda: dist.new_group([0]), lambda: dist.all_gather_object([None] * 3, 1)])
def test_different_calls_are_an_error_on_each_rank(other: Callable[[], Any]) -> None:
    def work(rank: int) -> Any:
        with pytest.raises(dist.RankError, match="different collectives: ranks 0, 2 call all_reduce") as e:
            other() if rank == 1 else dist.all_reduce(mlc.ones(3))
        dist.barrier()                                               # the job can go on
        return e.value.code, e.value.ranks, [note.partition(":")[0] for note in e.value.notes], bool(e.value.loc.line)

    notes = ["ranks 0, 2", "rank 1"]
    assert ranks(3, work) == [("MLC0972", (1,), notes, True), ("MLC0972", (0, 2), notes, True),
                              ("MLC0972", (1,), notes, True)]


def test_a_rank_that_does_not_call_is_named() -> None:
    def work(rank: int) -> Any:
        if rank == 1:
            time.sleep(1.0)
        with pytest.raises(dist.RankError) as e:
            dist.all_reduce(mlc.ones(300))                 # which takes two phases, so that the late one waits
        return e.value.code, e.value.ranks, e.value.message

    first, late, third = ranks(3, work, timeout=0.3)
    assert first == third or {first[0], third[0]} == {"MLC0971", "MLC0970"}
    assert "rank 1" in first[2] and "rank 1" in third[2] and late[0] == "MLC0970" and "has waited 0.3 s" in late[2]


def test_a_monitored_barrier_names_all_that_are_missing() -> None:
    def work(rank: int) -> None:
        if rank == 0:
            dist.monitored_barrier(timeout=0.2)
        time.sleep(0.5)

    with pytest.raises(dist.RankError, match=r"ranks 1, 2 have not made this call within 0\.2 s"):
        ranks(3, work)


def test_a_rank_that_fails_ends_work_in_the_background() -> None:
    def work(rank: int) -> None:
        if rank == 1:
            raise ZeroDivisionError
        started = dist.all_reduce(mlc.ones(3), async_op=True)
        assert started is not None
        with pytest.raises(dist.RankError, match="rank 1 has failed: ZeroDivisionError"):
            started.wait()

    with pytest.raises(dist.RankError, match="rank 1 has failed: ZeroDivisionError"):
        ranks(2, work)


@pytest.mark.parametrize("code, call", [
    ("MLC0973", lambda: dist.all_reduce(mlc.ones(2), ReduceOp.BAND)),
    ("MLC0973", lambda: dist.all_reduce(mlc.ones(2, dtype=mlc.int64), ReduceOp.AVG)),
    ("MLC0974", lambda: dist.all_gather([mlc.ones(2)], mlc.ones(2))),
    ("MLC0974", lambda: dist.all_gather([mlc.ones(2), mlc.ones(3)], mlc.ones(2))),
    ("MLC0974", lambda: dist.broadcast(mlc.ones(2), src=2)),
    ("MLC0974", lambda: dist.broadcast(mlc.ones(2))),
    ("MLC0974", lambda: dist.new_group([0, 0])),
    ("MLC0974", lambda: dist.init_process_group()),
    ("MLC0974", lambda: dist.send(mlc.ones(2), dist.get_rank())),
    ("MLC0974", lambda: dist.all_to_all_single(mlc.ones(3), mlc.ones(3))),
    ("MLC0974", lambda: dist.all_to_all_single(mlc.tensor(0.0), mlc.tensor(1.0))),
    ("MLC0974", lambda: dist.all_to_all_single(mlc.zeros(2), mlc.arange(2.0), [3, -1], [3, -1])),
    ("MLC0974", lambda: dist.all_reduce(mlc.ones(1), "sum")),  # type: ignore[arg-type]
    ("MLC0976", lambda: dist.recv(mlc.ones(2))),
    ("MLC0976", lambda: dist.all_reduce(mlc.ones(2).to_sparse())),
    ("MLC0976", lambda: dist.all_reduce(np.ones(2))),  # type: ignore[arg-type]
    ("MLC0976", lambda: mlc.compile(lambda x: dist.all_reduce(x))(mlc.ones(2))),
    ("MLC0338", lambda: dist.TCPStore),
])
def test_refused_calls(code: str, call: Callable[[], Any]) -> None:
    def work(rank: int) -> Any:
        with pytest.raises(mlc.Error) as e:
            call()
        return e.value.code, bool(e.value.loc.line)

    assert ranks(2, work) == [(code, True)] * 2


def test_without_a_job() -> None:
    assert dist.is_available() and not dist.is_initialized() and dist.group.WORLD is None
    with pytest.raises(dist.RankError, match=r"call mlc\.distributed\.init_process_group") as e:
        dist.all_reduce(mlc.ones(2))
    assert e.value.code == "MLC0974"
    with pytest.raises(dist.RankError, match="neither MPI's launcher nor torchrun") as e:
        dist.init_process_group()
    assert e.value.code == "MLC0975"


@pytest.mark.parametrize("given, lacking", [
    ({"world_size": 2}, "rank, MASTER_ADDR, MASTER_PORT is missing"), ({"rank": 0}, "world_size, MASTER_ADDR"),
    ({"init_method": "tcp://localhost:1", "rank": 0}, "world_size is missing"), ({"init_method": "nowhere"}, "rank"),
    ({"init_method": "nowhere", "rank": 0, "world_size": 2}, "does not join the job: No rendezvous handler")])
def test_a_job_that_is_not_described(given: dict[str, Any], lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(dist.RankError, match=f"MLC0975.*{lacking}") as e:
        dist.init_process_group("gloo", **given)
    assert e.value.loc.file == __file__


# -- DistributedDataParallel ------------------------------------------------------------------------------------------
X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, 8)


def gradient(p: mlc.Tensor) -> np.ndarray[Any, Any]:
    assert p.grad is not None
    return p.grad.numpy().copy()


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3))


def loss_of(m: nn.Module, part: slice) -> mlc.Tensor:
    return nn.functional.cross_entropy(m(mlc.tensor(X[part])), mlc.tensor(Y[part]))


@pytest.mark.parametrize("cap, compiled", [(25.0, False), (0.0001, False), (0.0001, True)])
def test_gradients_are_those_of_the_whole_batch(cap: float, compiled: bool) -> None:
    mlc.manual_seed(0)
    plain = model()
    state = plain.state_dict()
    loss_of(plain, slice(None)).backward()

    def work(rank: int) -> Any:
        m = model()
        m.load_state_dict({k: v.clone() if rank == 0 else v * 0 for k, v in state.items()})
        ddp = DistributedDataParallel(mlc.compile(m) if compiled else m, bucket_cap_mb=cap)
        assert len(ddp._reducer.buckets) == (1 if cap == 25.0 else 4)
        loss_of(ddp, slice(rank, None, 2)).backward()
        assert list(ddp.state_dict()) == [f"module.{k}" for k in state]
        return [gradient(p) for p in m.parameters()]

    first, second = ranks(2, work)
    for a, b, p in zip(first, second, plain.parameters()):
        assert a.tobytes() == b.tobytes()
        np.testing.assert_allclose(a, gradient(p), rtol=1e-5, atol=1e-6)


def test_accumulation_without_sync() -> None:
    mlc.manual_seed(0)
    state = model().state_dict()

    def work(rank: int) -> Any:
        m = model()
        m.load_state_dict(state)
        ddp = DistributedDataParallel(m)
        with ddp.no_sync():
            loss_of(ddp, slice(rank, 4, 2)).backward()
        alone = gradient(m[0].weight)
        loss_of(ddp, slice(4 + rank, None, 2)).backward()
        return alone, gradient(m[0].weight)

    plain = model()
    plain.load_state_dict(state)
    for half in (slice(0, 4), slice(4, None)):
        loss_of(plain, half).backward()
    (a, x), (b, y) = ranks(2, work)
    assert not np.array_equal(a, b) and x.tobytes() == y.tobytes()
    np.testing.assert_allclose(x, gradient(plain[0].weight), rtol=1e-4, atol=1e-6)


def test_buckets_travel_before_backward_ends() -> None:
    def work(rank: int) -> Any:
        m, seen = model(), list[int]()
        ddp = DistributedDataParallel(m, bucket_cap_mb=0.0001)
        m[0].weight.register_post_accumulate_grad_hook(lambda _: seen.append(ddp._reducer.next))
        loss_of(ddp, slice(rank, None, 2)).backward()
        return seen

    assert all(seen[0] >= 2 for seen in ranks(2, work)), "no bucket was on its way before the last gradient was there"


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 1), nn.Linear(6, 1), nn.Linear(6, 1)

    def forward(self, x: mlc.Tensor, second: bool) -> Any:
        return self.b(x) if second else self.a(x)


def test_unused_parameters() -> None:
    def work(rank: int) -> Any:
        m = Branches()
        ddp = DistributedDataParallel(m, find_unused_parameters=True)
        ddp(mlc.tensor(X), rank == 1).sum().backward()
        assert m.c.weight.grad is None
        return gradient(m.a.weight), gradient(m.b.weight)

    for a, b in ranks(2, work):
        np.testing.assert_allclose(a[0], X.sum(0) / 2, rtol=1e-5)
        np.testing.assert_allclose(b[0], X.sum(0) / 2, rtol=1e-5)


def test_gradients_without_sync_of_parameters_that_the_last_pass_does_not_use() -> None:
    def work(rank: int) -> Any:
        m = Branches()
        ddp = DistributedDataParallel(m, find_unused_parameters=True)
        with ddp.no_sync():
            (ddp(mlc.tensor(X), False) * (rank + 1)).sum().backward()
        ddp(mlc.tensor(X), True).sum().backward()
        assert m.c.weight.grad is None
        return gradient(m.a.weight), gradient(m.b.weight)

    for a, b in ranks(2, work):
        np.testing.assert_allclose(a[0], X.sum(0) * 1.5, rtol=1e-5)
        np.testing.assert_allclose(b[0], X.sum(0), rtol=1e-5)


def test_parameters_of_a_static_graph_may_be_unused() -> None:
    def work(rank: int) -> Any:
        m = Branches()
        DistributedDataParallel(m, static_graph=True)(mlc.tensor(X), False).sum().backward()
        return m.b.weight.grad is None, gradient(m.a.weight)

    for unused, a in ranks(2, work):
        assert unused
        np.testing.assert_allclose(a[0], X.sum(0), rtol=1e-5)


def test_one_rank_may_evaluate_alone() -> None:
    def work(rank: int) -> None:
        model = DistributedDataParallel(nn.BatchNorm1d(6)).eval()
        with mlc.no_grad():
            model(mlc.tensor(X))
            if rank == 0:
                model(mlc.tensor(X))

    ranks(2, work, timeout=2)


def test_a_parameter_without_a_gradient_is_named() -> None:
    def work(rank: int) -> None:
        DistributedDataParallel(Branches())(mlc.tensor(X), False).sum().backward()

    with pytest.raises(dist.RankError, match=r"4 of 6 parameters have no gradient: b.weight, b.bias, c.weight"):
        ranks(2, work)


def test_buffers_are_those_of_rank_0_and_keys_are_not() -> None:
    def work(rank: int) -> Any:
        m = nn.Sequential(nn.BatchNorm1d(6), nn.Dropout(0.5))
        ddp = DistributedDataParallel(m)
        ddp(mlc.tensor(X + rank))
        key = m[1].key.tolist()
        ddp(mlc.tensor(X))
        return m[0].running_mean.tolist(), key

    (mean, key), (other, other_key) = ranks(2, work)
    assert mean == other and key != other_key


def test_different_models_are_an_error_on_each_rank() -> None:
    def work(rank: int) -> str:
        with pytest.raises(dist.RankError, match=r"weight: float32\[2, 3\] on rank 0, weight: float32\[2, 4\] on rank 1"
                           ) as e:
            DistributedDataParallel(nn.Linear(3 + rank, 2))
        return e.value.code

    assert ranks(2, work) == ["MLC0979"] * 2


def test_a_recorded_function_is_refused() -> None:
    def work(rank: int) -> None:
        ddp = DistributedDataParallel(nn.Linear(6, 1))
        with pytest.raises(UserError, match="while a function is recorded"):
            mlc.compile(ddp)(mlc.tensor(X))

    ranks(1, work)


def test_the_sampler_asks_the_job() -> None:
    def work(rank: int) -> list[int]:
        return list(mlc.utils.data.DistributedSampler(range(6), shuffle=False))

    assert ranks(2, work) == [[0, 2, 4], [1, 3, 5]]
