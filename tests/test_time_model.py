"""Predicted times follow from what a report counts; how near they come is for a machine without other work."""

from __future__ import annotations

import pytest

import mlc
import mlc.distributed as dist
from mlc.backends.transport import threads

SLOW = dist.Machine(flops=1e9, memory=1e30, latency=1e-3, network=1e6, call=0.0)


def step(w: mlc.Tensor, x: mlc.Tensor) -> mlc.Tensor:
    return (x @ w).sum(0)


@pytest.mark.parametrize("ranks", [1, 4, 64])
def test_the_time_of_a_product_and_of_a_sum_over_ranks(ranks: int) -> None:
    mesh = dist.mesh({"data": ranks}, abstract=True)
    report = dist.report(step, dist.shard(mlc.ones(32, 64), mesh=mesh), dist.shard(mlc.ones(256, 32), "data",
                                                                                   mesh=mesh))
    rows = 256 // ranks
    found = report.time(SLOW)
    assert sum(s.operations for s in report.segments) == 2 * rows * 32 * 64 + rows * 64
    assert found.compute == pytest.approx((2 * rows * 32 * 64 + rows * 64) / 1e9)
    sent = 2 * (ranks - 1) * 64 * 4 // ranks + 256 * (ranks - 1)           # with the agreement on the call
    assert found.communication == pytest.approx(3 * (ranks - 1) * 1e-3 + sent / 1e6)


def test_a_segment_takes_the_time_of_the_bytes_that_it_moves() -> None:
    slow = dist.Machine(flops=1e30, memory=1e6, latency=0.0, network=1e9, call=0.5)
    x = dist.shard(mlc.ones(1000), mesh=dist.mesh({"a": 1}, abstract=True))
    assert dist.report(lambda x: x + 1, x).time(slow).total == pytest.approx(0.5 + 8000 / 1e6)


def test_the_speed_of_ranks_is_measured_by_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlc.distributed.time_model._REPEATS", 1)
    for machine in threads.run(2, lambda rank: dist.Machine.measured(dist.mesh({"a": 2}))):
        assert min(machine.flops, machine.memory, machine.network) > 1e5 and machine.latency < 5
