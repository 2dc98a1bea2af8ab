"""Predicted times follow from what a report counts; how near they come is for a machine without other work."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import mlc
import mlc.distributed as dist
from mlc.backends.transport import threads
from mlc.distributed import measured
from mlc.distributed.simulation import Waiting, simulated
from mlc.passes.analysis.segment_cost import SegmentCost
from mlc.tools.bench import overlap

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
    messages = sum(c.messages for c in report.collectives) + ranks - 1
    assert messages == (3 if ranks > 2 else 2) * (ranks - 1)
    assert found.communication == pytest.approx(messages * 1e-3 + sent / 1e6)


def test_a_segment_takes_the_time_of_the_bytes_that_it_moves() -> None:
    slow = dist.Machine(flops=1e30, memory=1e6, latency=0.0, network=1e9, call=0.5)
    x = dist.shard(mlc.ones(1000), mesh=dist.mesh({"a": 1}, abstract=True))
    assert dist.report(lambda x: x + 1, x).time(slow).total == pytest.approx(0.5 + 8000 / 1e6)


@pytest.mark.parametrize(("processors", "slower"), [(0, 1.0), (1, 2.0), (2, 1.0)])
def test_ranks_share_the_processors_of_their_host(processors: int, slower: float) -> None:
    """Two positions of equal work, of which the second waits for the first: then one of the two ranks is at work."""
    machine = dist.Machine(1.0, 1e30, 0.0, 1e30, 0.0, host=2, processors=processors)
    work = SegmentCost(3, 0)
    message = [dist.Communication(kind, ("stage",), 1, None, 2, 0) for kind in ("send", "recv")]
    together = simulated([[work], [work]], [0.0, 0.0], machine, [[0], [1]])
    assert (together.compute, together.total) == (3 * slower, 3 * slower)
    one_by_one: list[list[Any]] = [[work, message[0]], [message[1], work]]
    found = simulated(one_by_one, [0.0, 0.0], machine, [[0], [1]])
    assert found.total == pytest.approx(6) and found.waiting == pytest.approx(3)
    polling = replace(machine, polling=0.25)               # of which the other has three quarters, on the same one
    assert simulated(one_by_one, [0.0, 0.0], polling, [[0], [1]]).total == pytest.approx(6 if slower == 1 else 8)


@pytest.mark.parametrize(("ranks", "total"), [([[0, 1], [2, 3]], 12), ([[0, 2], [1, 3]], 6), ([[0], [3]], 6)])
def test_no_rank_leaves_its_processor_for_an_idle_one(ranks: list[list[int]], total: float) -> None:
    """Of two positions, the second waits for the first: if the two ranks of each are on one processor, one is idle."""
    machine = dist.Machine(1.0, 1e30, 0.0, 1e30, 0.0, host=4, processors=2)
    send, receive = (dist.Communication(kind, ("stage",), 1, None, 2, 0) for kind in ("send", "recv"))
    work = SegmentCost(3, 0)
    assert simulated([[work, send], [receive, work]], [0.0, 0.0], machine, ranks).total == pytest.approx(total)


def test_ranks_with_one_program_end_a_segment_one_after_the_other() -> None:
    """While one of three computes, one of them waits in the mean, and so all get three quarters of their processor."""
    machine = dist.Machine(1.0, 1e30, 0.0, 1e30, 0.0, host=3, processors=1, polling=0.25)
    assert simulated([[SegmentCost(3, 0)]], [0.0], machine, [[0, 1, 2]]).total == pytest.approx(9 / 0.75)


def test_what_others_compute_on_the_same_processor_evicts_too() -> None:
    machine = dist.Machine(1.0, 1e30, 0.0, 1e30, 0.0, refill=2.0, cache=100, host=2, processors=1)
    sum_ = dist.Communication("all_reduce", ("data",), 0, None, 2)
    assert simulated([[SegmentCost(1, 25), sum_]], [0.0], machine, [[0, 1]]).total == 2 * (1 + 2.0 * 0.5)


def test_three_ranks_on_two_processors_wait_for_the_two_that_share_one() -> None:
    machine = dist.Machine(1.0, 1e30, 0.0, 1e30, 0.0, host=3, processors=2)
    assert simulated([[SegmentCost(3, 0)]], [0.0], machine, [[0, 1, 2]]).total == 6


def test_a_message_takes_the_processors_of_both_ends() -> None:
    machine = dist.Machine(1.0, 1e30, latency=0.25, network=math.inf, call=0.0, overhead=2.0, copying=0.5)
    assert machine.collective(3, 4) == 3 * (0.25 + 2 * 2.0) + 4 / 0.5
    send, receive = (dist.Communication(kind, ("stage",), 4, None, 2, 7) for kind in ("send", "recv"))
    found = simulated([[send], [receive]], [1.0, 0.0], machine)
    assert found.total == 1 + (2 + 4) + 0.25 + (2 + 4)


def test_a_collective_takes_time_besides_its_messages() -> None:
    machine = dist.Machine(1.0, 1e30, latency=0.0, network=1e30, call=0.0, overhead=2.0, setup=3.0)
    assert machine.collective(3, 0) == 3 + 3 * 2 * 2 and machine.collective(0, 0) == 0
    send, receive = (dist.Communication(kind, ("stage",), 4, None, 2, 7) for kind in ("send", "recv"))
    assert simulated([[send], [receive]], [0.0, 0.0], machine).total == 2 * (3 / 2 + 2)


@pytest.mark.parametrize(("moved", "longer"), [(0, 0.0), (25, 0.5), (100, 2.0), (1000, 2.0)])
def test_the_first_message_after_segments_takes_longer_by_what_they_evict(moved: int, longer: float) -> None:
    machine = dist.Machine(1.0, 1e30, latency=1.0, network=1e30, call=0.0, refill=2.0, cache=100)
    sum_ = dist.Communication("all_reduce", ("data",), 0, None, 2)
    work = [SegmentCost(1, moved // 5), SegmentCost(1, moved - moved // 5)]
    assert simulated([[*work, sum_, sum_]], [0.0], machine).total == pytest.approx(2 + 2 + longer)


def test_what_segments_evict_also_delays_a_start() -> None:
    machine = dist.Machine(1.0, 1e30, latency=4.0, network=1e30, call=0.0, refill=2.0, cache=100)
    start = dist.Communication("all_reduce", ("data",), 0, None, 2, request=0)
    found = simulated([[SegmentCost(1, 100), start, SegmentCost(1, 0), Waiting(0)]], [0.0], machine)
    assert (found.total, found.hidden) == (1 + 2 + 4, 1)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 20])
def test_what_is_measured_of_collectives_is_told_of_them(ranks: int) -> None:
    messages = (ranks - 1) * (2 if ranks > 18 else 1)
    short, long = measured.Sent(2 + 3 * messages, messages), measured.Sent(2 + 3 * messages + 500, messages, 1000)
    pair = measured.Sent(2 + 3, 1) if ranks % 2 == 0 and ranks > 2 else None
    found = measured.Collective.of(short, long, pair)
    machine = dist.Machine(1.0, 1.0, 0.0, math.inf, 0.0, found.message / 2, 1 / found.byte, setup=found.setup)
    for sent in (short, long, *([pair] if pair else [])):
        assert machine.collective(sent.messages, sent.bytes) == pytest.approx(sent.seconds)


@pytest.mark.parametrize(("seconds", "total", "hidden"), [(3, 5, 3), (7, 7, 5)])
def test_between_a_start_and_its_wait_passes_the_longer_time(seconds: int, total: float, hidden: float) -> None:
    machine = dist.Machine(1.0, 1e30, 1.0, 1.0, 0.0)
    sum_ = dist.Communication("all_reduce", ("data",), 4, None, 2, request=0)
    work = SegmentCost(seconds, 0)
    found = simulated([[sum_, work, Waiting(0)]], [0.0], machine)
    assert (found.total, found.hidden, found.waiting) == (total, hidden, 0)
    assert simulated([[replace(sum_, request=-1), work]], [0.0], machine).total == seconds + 5
    busy = replace(machine, overhead=0.5)                  # of the two ends, one before and one after
    assert simulated([[sum_, work, Waiting(0)]], [0.0], busy).total == total + 1
    both: list[Any] = [sum_, replace(sum_, request=1), work, Waiting(0), Waiting(1)]
    assert simulated([both], [0.0], machine).total == 10   # a network carries one after the other


def test_the_report_says_what_overlaps() -> None:
    def step(w: Any, x: Any) -> Any:
        return x.mT @ x, (x @ w).mT @ x

    found = []
    for overlapping in (False, True):
        mesh = dist.mesh({"data": 2}, abstract=True, overlap=overlapping)
        w, x = dist.shard(mlc.ones(512, 512), mesh=mesh), dist.shard(mlc.ones(8192, 512), "data", mesh=mesh)
        found.append(dist.report(step, w, x))
    slow = dist.Machine(flops=5e10, memory=1e30, latency=1e-5, network=1e8, call=0.0)
    without, with_ = (r.time(slow) for r in found)
    assert without.total == pytest.approx(with_.total + with_.hidden, 1e-3) and with_.hidden > 0.01 > without.hidden
    assert "on their way during segments: 1, " in str(found[1]) and "on their way" not in str(found[0])
    assert found[0].sent == found[1].sent


def test_the_speed_of_ranks_is_measured_by_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_LONG", 2)
    monkeypatch.setattr(measured, "_SHORT", 5)
    for machine in threads.run(2, lambda rank: dist.measured_machine(dist.mesh({"a": 2}))):
        assert min(machine.flops, machine.memory, machine.copying) > 1e5 and machine.overhead < 5
        assert (machine.network, machine.host) == (math.inf, 2) and machine.processors > 0


def test_the_segments_of_all_positions_are_measured() -> None:
    mesh = dist.mesh({"data": 2}, abstract=True)
    w, x = dist.shard(mlc.ones(32, 64), mesh=mesh), dist.shard(mlc.ones(256, 32), "data", mesh=mesh)
    report = dist.measured_report(lambda w, x: (x @ w).sum(0) + 1, w, x)
    assert len(report.segments) == 2 and all(0 < (s.seconds or 0) < 1 for s in report.segments)
    assert report.time(SLOW).compute == pytest.approx(sum(s.seconds or 0 for s in report.segments))


def test_the_benchmark_of_overlap_runs_on_an_emulated_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_LONG", 2)
    monkeypatch.setattr(measured, "_SHORT", 5)
    setting = overlap.Setting(mlc.nn.Sequential(mlc.nn.Linear(128, 16)), rows=2, rounds=1)
    lines = threads.run(2, lambda rank: overlap.compare(setting), make=lambda mailboxes, rank, timeout:
                        overlap.EmulatedNetwork(mailboxes, rank, timeout, 1e-4, 1e9))[0]
    assert [line.partition(":")[0] for line in lines] == list(overlap.RECIPES)
    assert all("losses equal" in line for line in lines)
