"""Collectives and messages of tensors on GPUs: NCCL's calls and their order, on fake devices, by ranks in threads."""

from __future__ import annotations

import inspect
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import distributed, nn
from mlc.backends.cuda import devices
from mlc.backends.transport import threads
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.nccl import Communicator, Submitted, Work
from mlc.ir.diag import BackendError, UserError
from mlc.tools import gpu_check
from tests.fake_nccl import Bindings, DataType, RedOp, StreamedDevice, installed

RANKS = 3


@pytest.fixture
def nccl() -> Iterator[Bindings]:
    """A fake NCCL between the fake devices cuda:0 to cuda:2."""
    with installed(RANKS) as made:
        yield made


def job(function: Callable[[int, str], Any], ranks: int = RANKS, timeout: float = 60.0) -> list[Any]:
    """The results of a function on each rank, which is given its device."""
    def rank(number: int) -> Any:
        distributed.init_process_group(timeout=timeout)
        return function(number, f"cuda:{number}")
    return threads.run(ranks, rank)


def values(rank: int, dtype: str = "f4") -> Any:
    return (np.arange(6).reshape(2, 3) + 10 * rank).astype(dtype)


def test_every_collective_gives_what_it_gives_on_the_cpu(nccl: Bindings) -> None:
    def results(rank: int, place: str) -> list[Any]:
        def of(*shape: int) -> Any:
            return mlc.zeros(*shape, device=place)

        x, out = mlc.tensor(values(rank), device=place), []
        for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
            y = x.clone()
            distributed.all_reduce(y, getattr(distributed.ReduceOp, op))
            out.append(y)
        found = [of(2, 3) for _ in range(RANKS)]
        distributed.all_gather(found, x)
        out += found
        for shape in ((6, 3), (3, 2, 3)):
            y = of(*shape)
            distributed.all_gather_into_tensor(y, x)
            z = of(2, 3)
            distributed.reduce_scatter_tensor(z, y * (rank + 1))
            out += [y, z]
        y = of(2, 3)
        distributed.reduce_scatter(y, [x * i for i in range(RANKS)], distributed.ReduceOp.MAX)
        out.append(y)
        found = [of(2, 3) for _ in range(RANKS)]
        distributed.all_to_all(found, [x + 100 * i for i in range(RANKS)])
        out += found
        y, sizes = of(3, 3), [1, 0, 1] if rank == 1 else [1, 1, 0]
        received = [3, 2, 1][rank]
        y = of(received, 3)
        distributed.all_to_all_single(y, x, [[1, 1, 1], [1, 0, 1], [0, 1, 0]][rank], sizes)
        out.append(y)
        y = x.clone()
        distributed.broadcast(y, src=1)
        out.append(y)
        y = x.clone()
        distributed.reduce(y, dst=2)
        out.append(y)
        found = [of(2, 3) for _ in range(RANKS)] if rank == 1 else []
        distributed.gather(x, found or None, dst=1)
        out += found
        y = of(2, 3)
        distributed.scatter(y, [x * (i + 2) for i in range(RANKS)] if rank == 2 else None, src=2)
        assert (y.device, x.device) == (place, place)
        return [v.tolist() for v in [*out, y]]

    on_gpus, on_host = job(results), job(lambda rank, _: results(rank, "cpu"))
    assert on_gpus == on_host
    assert set(nccl.calls) == {"all_reduce", "reduce", "reduce_scatter", "all_gather", "broadcast", "send", "recv"}
    assert sorted(nccl.made) == [(rank, RANKS) for rank in range(RANKS)] and nccl.destroyed == RANKS


def test_work_in_the_background_is_in_the_order_of_its_calls(nccl: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = Communicator.submit

    def slow(self: Communicator, *args: Any) -> Submitted:
        if self.position == 0 and "collectives of rank" in threading.current_thread().name:
            time.sleep(0.1)
        return submit(self, *args)

    monkeypatch.setattr(Communicator, "submit", slow)

    def results(rank: int, place: str) -> Any:
        x, y = mlc.full((4,), float(rank + 1), device=place), mlc.full((4,), 2.0 * rank, device=place)
        first = distributed.all_reduce(x, async_op=True)
        distributed.all_reduce(y, distributed.ReduceOp.MAX)                # overtakes nothing
        assert first is not None
        mlc.cuda.synchronize(place)                        # of NCCL's stream, too
        assert first.is_completed() and first.wait() and first.is_success()
        return (x + y).tolist()

    assert job(results) == [[10.0] * 4] * RANKS
    assert nccl.calls == ["all_reduce"] * 6


def test_types_that_nccl_combines(nccl: Bindings) -> None:
    def results(rank: int, place: str) -> Any:
        flags = mlc.tensor([rank == 1, False, True], device=place)
        distributed.all_reduce(flags, distributed.ReduceOp.BOR)
        numbers = mlc.tensor([1 + 2j, rank * 1j], device=place)
        distributed.all_reduce(numbers)
        half = mlc.tensor([0.5 * rank], dtype=mlc.bfloat16, device=place)
        distributed.all_reduce(half)
        words = mlc.tensor([rank, -rank], dtype=mlc.int16, device=place)
        received = [mlc.zeros_like(words) for _ in range(RANKS)]
        distributed.all_gather(received, words)
        with pytest.raises(RankError, match=r"MLC0973.*NCCL has no add of int16 elements"):
            distributed.all_reduce(words)
        with pytest.raises(RankError, match=r"MLC0973.*NCCL has no xor of int32"):
            distributed.all_reduce(words.int(), distributed.ReduceOp.BXOR)
        return flags.tolist(), numbers.tolist(), half.item(), [w.tolist() for w in received]

    assert job(results) == [([True, False, True], [3 + 6j, 3j], 1.5, [[0, 0], [1, -1], [2, -2]])] * RANKS


@pytest.mark.parametrize("pattern", ["ring", "crossed", "announced late"])
def test_messages(nccl: Bindings, pattern: str) -> None:
    def ring(rank: int, place: str) -> Any:
        x, y = mlc.full((3,), float(rank), device=place), mlc.zeros(3, device=place)
        to, source = (rank + 1) % RANKS, (rank - 1) % RANKS
        for work in distributed.batch_isend_irecv([distributed.P2POp(distributed.isend, x, to),
                                                   distributed.P2POp(distributed.irecv, y, source)]):
            work.wait()
        return y.tolist()

    def crossed(rank: int, place: str) -> Any:
        """Each sends twice before it receives what the other one has sent before."""
        if rank == 2:
            return distributed.barrier()
        x, found = mlc.full((3,), float(rank), device=place), [mlc.zeros(3, device=place) for _ in range(2)]
        sent = [distributed.isend(x + i, 1 - rank) for i in range(2)]
        for y in found:
            distributed.recv(y, 1 - rank)
        for work in sent:
            assert work is not None and work.wait()
        distributed.barrier()
        return [y.tolist() for y in found]

    def announced_late(rank: int, place: str) -> Any:
        x = mlc.full((3,), float(rank), device=place)
        if rank == 0:
            work = distributed.irecv(x, 1)
            assert work is not None and not work.is_completed()
            distributed.barrier()
            assert work.wait()
        else:
            distributed.barrier()
            if rank == 1:
                distributed.send(x, 0)
        return x.tolist()

    if pattern == "ring":
        assert job(ring) == [[2.0] * 3, [0.0] * 3, [1.0] * 3]
    elif pattern == "crossed":
        assert job(crossed) == [[[1.0] * 3, [2.0] * 3], [[0.0] * 3, [1.0] * 3], None]
    else:
        assert job(announced_late) == [[1.0] * 3, [1.0] * 3, [2.0] * 3]


class Shifted(nn.Module):
    """Two parameters, one of which not every rank uses, and a buffer."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.scale, self.other = nn.Parameter(mlc.tensor([1.0 + rank, 2.0])), nn.Parameter(mlc.tensor([3.0]))
        self.register_buffer("shift", mlc.tensor([0.5 * rank, 0.25]))

    def forward(self, x: Any, both: bool) -> Any:
        y = x * self.scale + self.shift
        return y * self.other if both else y


def test_gradients_are_averaged(nccl: Bindings) -> None:
    def gradients(rank: int, place: str) -> Any:
        model: Any = Shifted(rank).to(place)
        wrapped: Any = nn.parallel.DistributedDataParallel(
            model, None if place == "cpu" else [rank], bucket_cap_mb=1e-5, find_unused_parameters=True)
        for x in (mlc.tensor([[1.0, 2.0], [3.0, 4.0 + rank]]), mlc.tensor([[rank, 1.0]])):
            wrapped(x.to(place), rank == 0).sum().backward()
        return [x.tolist() for x in (*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters()))]

    on_gpus, on_host = job(gradients, 2), job(lambda rank, _: gradients(rank, "cpu"), 2)
    assert on_gpus == on_host and on_gpus[0] == on_gpus[1] and set(nccl.calls) == {"broadcast", "all_reduce"}
    with pytest.raises(RankError, match=r"MLC0976.*device_ids or output_device is cuda:1, and the model is on cuda:0"):
        raise _cause(lambda: job(lambda rank, place: nn.parallel.DistributedDataParallel(
            Shifted(rank).to(place), [1]), 1))


def test_what_is_wrong_is_told(nccl: Bindings) -> None:
    def shapes(rank: int, place: str) -> Any:
        distributed.all_reduce(mlc.zeros(rank + 1, device=place))

    with pytest.raises(RankError, match=r"MLC0972.*rank 0 calls all_reduce\(SUM, float32\[1\]\) on GPUs") as caught:
        raise _cause(lambda: job(shapes))
    assert caught.value.loc.file == __file__ and not nccl.made

    with pytest.raises(RankError, match=r"MLC0972.*on GPUs, rank 1 calls all_reduce\(SUM, float32\[1\]\)"):
        raise _cause(lambda: job(lambda rank, place: distributed.all_reduce(
            mlc.zeros(1, device=place if rank != 1 else "cpu"))))

    with pytest.raises(RankError, match=r"MLC0999.*InvalidUsage \(5\): invalid usage"):
        raise _cause(lambda: job(lambda rank, place: distributed.all_reduce(mlc.zeros(1, device="cuda:0"))))

    def second(rank: int, place: str) -> Any:
        distributed.all_reduce(mlc.zeros(1, device=place))
        distributed.all_reduce(mlc.zeros(1, device="cuda:2"))

    with pytest.raises(RankError, match=r"MLC0976.*on cuda:2, and this rank's part in .* is that of cuda:[01]"):
        raise _cause(lambda: job(second, 2))

    with pytest.raises(UserError, match=r"MLC0976.*all_gather: the tensors are on cuda:0 and cpu"):
        raise _cause(lambda: job(lambda rank, place: distributed.all_gather(
            [mlc.zeros(1)], mlc.zeros(1, device=place)), 1))


def test_two_ranks_send_while_they_call_collectives(nccl: Bindings) -> None:
    """The ranks of a direction are those of the group, whose calls they are not."""
    def results(rank: int, place: str) -> Any:
        x, y = mlc.full((5,), rank + 1.0, device=place), mlc.full((5,), rank + 1.0, device=place)
        work = distributed.isend(x, 1) if rank == 0 else None
        distributed.barrier()
        distributed.all_reduce(y)
        if rank == 1:
            distributed.recv(x, 0)
        if work is not None:
            work.wait()
        distributed.barrier()
        return x.tolist() + y.tolist()

    assert job(results, 2) == [[1.0] * 5 + [3.0] * 5] * 2


def test_messages_out_of_turn_are_refused(nccl: Bindings) -> None:
    """NCCL would give the first one that is sent to the first one that is received."""
    def tags(rank: int, place: str) -> Any:
        xs = [mlc.full((5,), float(tag), device=place) for tag in (1, 2)]
        if rank == 0:
            return [distributed.isend(x, 1, tag=tag) for x, tag in zip(xs, (1, 2))]
        works = [distributed.irecv(x, 0, tag=tag) for x, tag in zip(xs, (2, 1))]
        for work in works:
            with pytest.raises(RankError, match=r"MLC0972.*number 0 from rank 0, rank 0 calls .*number 1 from rank 0"):
                work.wait()                                # type: ignore[union-attr]
        raise ValueError("told")

    def types(rank: int, place: str) -> Any:
        xs: list[Any] = [mlc.ones(2, device=place), mlc.full((2,), 2.0, device=place)]
        if rank == 0:
            return [distributed.isend(x, 1) for x in xs]
        for x in (mlc.ones(2, dtype=mlc.int32, device=place), xs[1]):
            with pytest.raises(RankError, match=r"MLC0972.*message\(int32\[2\]\).*message\(float32\[2\]\)"):
                distributed.recv(x, 0)
        raise ValueError("told")

    for function in (tags, types):
        with pytest.raises(ValueError, match="told"):
            raise _cause(lambda function=function: job(function, 2, timeout=5))  # type: ignore[misc]


def test_what_is_computed_before_is_sent_and_nothing_later(nccl: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is slow, and NCCL slower: memory that is free is used again before it has been sent."""
    monkeypatch.setattr(StreamedDevice, "delays", (0.003, 0.02))
    devices.substitute({i: StreamedDevice(i) for i in range(RANKS)})

    def results(rank: int, place: str) -> Any:
        size, found = 1 << 10, []
        for number in range(2):
            x = mlc.full((size,), 1.0, device=place) * (rank + number)
            y = mlc.zeros(size, device=place)
            works = [distributed.all_reduce(y if number else x, async_op=True)]
            if not number:
                works += [distributed.isend(x, (rank + 1) % RANKS), distributed.irecv(y, (rank - 1) % RANKS)]
            del x
            junk = [mlc.full((size,), 99.0, device=place) for _ in range(6)]
            for work in works:
                work.wait()                                # type: ignore[union-attr]
            found.append((y[0].item(), len(junk)))
        return found

    assert job(results) == [[(float((rank - 1) % RANKS), 6), (0.0, 6)] for rank in range(RANKS)]


def test_a_message_that_nobody_receives_yet_holds_nothing_else(nccl: Bindings) -> None:
    def results(rank: int, place: str) -> Any:
        x = mlc.ones(1 << 20, device=place)
        work = distributed.isend(x, 1) if rank == 0 else None
        for _ in range(12):
            distributed.all_reduce(mlc.ones(1 << 20, device=place))     # 12 times 8 MiB of 64
            devices.device(rank).synchronize()
        if rank == 1:
            distributed.recv(x, 0)
        return work is None or work.wait()

    assert job(results, 2) == [True, True]


def test_a_rank_may_leave_before_its_message_is_read(nccl: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent, and the receiver's GPU has other work for longer than a rank that has left is waited for."""
    monkeypatch.setattr("mlc.backends.transport.nccl._LATE", 0.05)

    def results(rank: int, place: str) -> Any:
        x = mlc.full((2,), float(rank), device=place)
        if rank == 0:
            return distributed.send(x, 1)
        devices.device(1).submit(lambda: time.sleep(0.5))  # type: ignore[attr-defined]
        distributed.recv(x, 0)
        return x.tolist()

    assert job(results, 2) == [None, [0.0, 0.0]]


def test_a_rank_that_fails_before_it_meets_the_others_ends_their_wait(nccl: Bindings) -> None:
    def broken() -> int:
        raise BackendError("no stream", code="MLC0583")

    devices.device(1).new_stream = broken  # type: ignore[method-assign]
    start = time.monotonic()
    with pytest.raises(RankError, match=r"rank 1 has failed: BackendError: no stream"):
        job(lambda rank, place: distributed.all_reduce(mlc.zeros(1, device=place)))
    assert time.monotonic() - start < 10


def test_a_rank_that_does_not_come_ends_the_wait_of_the_others(nccl: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It agrees, and fails before it submits its part: the GPUs of the others wait for it."""
    submit = Communicator.submit

    def failing(self: Communicator, *args: Any) -> Submitted:
        if self.position == 1 and len(nccl.calls) >= RANKS:
            time.sleep(0.2)                                # the others have submitted theirs
            raise ValueError("rank 1 is gone")
        return submit(self, *args)

    monkeypatch.setattr(Communicator, "submit", failing)

    def results(rank: int, place: str) -> Any:
        x = mlc.ones(2, device=place)
        distributed.all_reduce(x)
        distributed.barrier()
        distributed.all_reduce(x)
        return x.tolist()

    start = time.monotonic()
    with pytest.raises(RankError, match=r"rank 1 has failed: ValueError: rank 1 is gone"):
        job(results)
    assert nccl.aborts >= 1 and time.monotonic() - start < 10


def test_a_rank_that_is_late_is_named_in_time(nccl: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    _leave_out(monkeypatch, 1)

    def results(rank: int, place: str) -> Any:
        x = mlc.ones(2, device=place)
        distributed.all_reduce(x)
        if rank != 1:
            with pytest.raises(RankError, match=r"MLC097[01].*ranks 0, 1 have not all come to it in time"):
                x.numpy()

    with pytest.raises(RankError, match=r"rank 1 has failed.*have not all come to it in time"):
        job(results, 2, timeout=0.5)                       # rank 0 has handled it
    assert nccl.aborts >= 1


def test_a_rank_that_leaves_while_others_call_something_is_told(nccl: Bindings) -> None:
    def results(rank: int, place: str) -> Any:
        x = mlc.ones(2, device=place)
        distributed.all_reduce(x)
        if rank == 0:
            with pytest.raises(RankError, match=r"MLC0972.*rank 1 calls destroy_process_group\(\)"):
                distributed.all_reduce(x)

    with pytest.raises(RankError, match=r"MLC097[02].*rank 1 calls destroy_process_group\(\), and rank 0 all_reduce"):
        raise _cause(lambda: job(results, 2))


def test_an_error_that_nobody_waits_for_is_raised_at_the_end(nccl: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    _leave_out(monkeypatch, 1)

    def unread(rank: int, place: str) -> Any:
        distributed.all_reduce(mlc.ones(2, device=place), async_op=True)

    for ranks in (2, 3):                                   # the others are at the end, or wait, too
        with pytest.raises(RankError, match=r"have not all come to it in time"):
            job(unread, ranks, timeout=0.5)


def _leave_out(monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    """Have a position do nothing for collectives that it agrees to."""
    submit = Communicator.submit

    def none(self: Communicator, name: str, work: Work, *args: Any) -> Submitted:
        return submit(self, name, (lambda: None) if self.position == position else work, *args)

    monkeypatch.setattr(Communicator, "submit", none)


def _cause(call: Callable[[], Any]) -> BaseException:
    """The error of the rank that failed first."""
    with pytest.raises(RankError) as caught:
        call()
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


def test_calls_are_those_of_nccl4py() -> None:
    """The fake takes what the module takes: its signatures stand in its documentation."""
    real = pytest.importorskip("nccl.bindings.nccl", reason="nccl4py is not installed")
    assert real.RedOp.__members__.items() >= {o.name: int(o) for o in RedOp}.items()
    assert real.DataType.__members__.items() >= {t.name: int(t) for t in DataType}.items()
    assert issubclass(real.NCCLError, Exception) and len(bytes(real.UniqueId.from_buffer(bytearray(128)))) == 128
    for name, ours in vars(Bindings).items():
        if inspect.isfunction(ours) and not name.startswith("_"):
            given = re.match(rf"{name}\((.*?)\)", getattr(real, name).__doc__)
            assert given, f"{name} has no signature"
            names = [part.split()[-1] for part in given[1].split(", ") if part]
            assert names == list(inspect.signature(ours).parameters)[1:], name


@pytest.mark.parametrize("count", [1, 3])
def test_the_check_of_devices_calls_collectives(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    with installed(count):
        assert gpu_check.main(["--only", "ranks"]) == 0
    assert "ranks       2 bits" in capsys.readouterr().out


def test_nccl_is_available_where_its_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> int:
        raise RuntimeError("libnccl.so.2 is not found")

    with installed(1) as bindings:
        assert distributed.is_nccl_available()
        monkeypatch.setattr(bindings, "get_version", missing)
        assert not distributed.is_nccl_available()
