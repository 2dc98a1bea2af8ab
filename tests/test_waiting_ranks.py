"""Waiting for other ranks: time-outs, ranks that are gone, and calls that are refused on one rank."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import distributed as dist
from mlc import nn
from mlc.backends.transport import threads
from mlc.backends.transport.mailbox import Mailbox, Receive
from mlc.backends.transport.transport import as_bytes, wait_all


def ranks(size: int, work: Callable[[int], Any], timeout: float = 10) -> list[Any]:
    def job(rank: int) -> Any:
        dist.init_process_group(timeout=timeout)
        return work(rank)
    return threads.run(size, job)


@pytest.mark.parametrize("wrong", [
    lambda: dist.broadcast(mlc.ones(1), src=99), lambda: dist.reduce(mlc.ones(1), dst=99),
    lambda: dist.gather(mlc.ones(1), [mlc.ones(2)], dst=0), lambda: dist.scatter(mlc.ones(1), [mlc.ones(2)], src=0),
    lambda: dist.broadcast_object_list([lambda: 0], src=0), lambda: dist.gather_object(1, [None], dst=0)])
def test_a_refused_call_takes_no_place_in_the_order(wrong: Callable[[], Any]) -> None:
    def work(rank: int) -> Any:
        if rank == 0:
            with pytest.raises(mlc.Error):
                wrong()
        x = mlc.tensor([rank + 1.0])
        dist.broadcast(x, src=0)
        return x.item()

    assert ranks(2, work) == [1.0, 1.0]


class Late(Receive):
    """A message that comes just after the time-out."""

    late = False

    def wait(self, timeout: float | None = None) -> None:
        if not self.late:
            self.late, self.message = True, as_bytes(np.array([1.0, 2.0])).copy()
            raise TimeoutError
        super().wait(timeout)


def test_a_message_that_comes_just_after_the_time_out_is_received() -> None:
    into = np.zeros(2)
    wait_all("recv", {1: Late(Mailbox(0), 1, into)}, time.monotonic())
    assert into.tolist() == [1.0, 2.0]


def test_the_time_out_of_one_wait() -> None:
    def work(rank: int) -> Any:
        x = mlc.zeros(1)
        if rank == 1:
            dist.barrier()
            dist.send(mlc.ones(1), 0)
            return 1.0
        started = dist.irecv(x, 1)
        assert started is not None
        with pytest.raises(dist.RankError, match=r"MLC0971.*rank 1 has not answered in time"):
            started.wait(timeout=0.05)
        dist.barrier()
        started.wait()                                     # another time-out goes on waiting
        return x.item()

    assert ranks(2, work) == [1.0, 1.0]


def test_a_message_of_a_rank_that_has_ended_is_completed() -> None:
    def work(rank: int) -> None:
        if rank == 0:
            started, end = dist.irecv(mlc.zeros(1), 1), time.monotonic() + 5
            assert started is not None
            while not started.is_completed():
                assert time.monotonic() < end
                time.sleep(0.001)
            with pytest.raises(dist.RankError, match="MLC0970"):
                started.wait()

    ranks(2, work)


def test_collectives_write_to_parameters() -> None:
    def work(rank: int) -> Any:
        layer = nn.Linear(1, 1, bias=False)
        with mlc.no_grad():
            layer.weight.fill_(rank + 5.0)
        dist.broadcast(layer.weight, 0)
        return layer.weight.item(), layer.weight.requires_grad

    assert ranks(2, work) == [(5.0, True)] * 2


@pytest.mark.parametrize("wrong", [
    lambda: dist.send(mlc.ones(1), dst=1, group_dst=1), lambda: dist.P2POp(dist.send, mlc.ones(1), 1)])
def test_messages_that_are_not_described(wrong: Callable[[], Any]) -> None:
    def work(rank: int) -> None:
        with pytest.raises(dist.RankError, match="MLC0974"):
            wrong()

    ranks(2, work)
