"""Clusters of hosts: the time of collectives, stragglers and failures, against formulas written out."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path

import pytest

import mlc
import mlc.distributed as dist
from tests.test_examples import example

LINKS = dist.Cluster(flops=1e9, memory=1e30, latency=1e-3, network=1e6, call=0.0, host=4, near_latency=1e-5,
                     near_network=1e8)


def collective(kind: str, ranks: int, sent: int) -> dist.Communication:
    return dist.Communication(kind, ("data",), sent, None, ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 64, 100_000])
def test_collectives_within_hosts_and_between_them(ranks: int) -> None:
    """Content of n bytes: within a host, each rank of m sends (m-1)/m n of it, and between h hosts (h-1)/h n/m."""
    near, hosts, n = min(4, ranks), max(1, ranks // 4), 400_000
    cluster = LINKS.placed({"data": ranks})
    once = log2(near) * 1e-5 + (near - 1) / near * n / 1e8 + (hosts - 1) / hosts * n / near / 1e6
    once += 0 if hosts == 1 else (hosts - 1).bit_length() * 1e-3
    assert cluster.communication(collective("all_gather", ranks, n * (ranks - 1) // ranks)) == pytest.approx(once)
    found = cluster.communication(collective("all_reduce", ranks, 2 * n * (ranks - 1) // ranks))
    assert found == pytest.approx(2 * once)


def test_a_group_on_one_host_has_its_links() -> None:
    cluster = LINKS.placed({"stage": 2, "data": 8, "model": 2})
    assert [cluster.near(axes) for axes in (("model",), ("data",), ("stage",), ("data", "model"))] == [2, 2, 1, 4]
    message = dist.Communication("send", ("stage",), 1, None, 2, 0)
    assert cluster.link(message) == (1e-3, 1e6) and LINKS.placed({"stage": 4}).link(message) == (1e-5, 1e8)
    ring = dist.Communication("shift", ("data", "model"), 1, None, 16)
    assert cluster.link(ring) == (1e-3, 1e6) and LINKS.placed({"data": 2, "model": 2}).link(ring) == (1e-5, 1e8)


def report(ranks: int) -> dist.Report:
    mesh = dist.mesh({"data": ranks}, abstract=True)
    w, x = dist.shard(mlc.ones(16, 8), mesh=mesh), dist.shard(mlc.zeros(ranks, 16), "data", mesh=mesh)
    return dist.report(lambda w, x: (x @ w).sum(0), w, x)


def test_a_hundred_thousand_ranks_are_simulated_at_once() -> None:
    found = report(100_000)
    timing = found.time(LINKS)
    assert timing.compute == pytest.approx(sum(s.operations for s in found.segments) / 1e9)


def test_all_wait_for_the_slowest() -> None:
    found = report(64)
    plain = found.time(LINKS)
    late = found.time(replace(LINKS, straggler=3.0))
    assert late.compute == pytest.approx(3 * plain.compute) and late.communication == plain.communication
    uneven = [replace(LINKS, jitter=0.1).placed({"data": n}).slowest for n in (1, 3, 1000)]
    assert uneven == pytest.approx([1, 1.0674, 1.3091], rel=1e-3)    # 0.6745 and 3.0912 deviations


def test_failures_take_steps_away() -> None:
    cluster = replace(LINKS, failures=1e-6, checkpoint=8.0, restart=20.0)
    between = 1 / (100 * 1e-6)                             # 10,000 s, and a checkpoint every 400
    assert cluster.useful(100) == pytest.approx(400 / 408 * (1 - 220 / between))
    assert LINKS.useful(100) == 1 and replace(cluster, restart=1e9).useful(100) == 0


def test_scaling_is_shown_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    scaling = example("scaling")

    def simulate(ranks: int, batch: int, plan: str, machine: dist.Cluster) -> object:
        assert (plan, machine.jitter) == ("zero3", 0.5)
        return scaling.Point(ranks, batch, dist.Timing(batch / ranks, 1.0), 0.5)

    monkeypatch.setattr(scaling, "simulate", simulate)
    found = scaling.main(["--ranks", "4,1", "--each", "3", "--plan", "zero3", "--jitter", "0.5",
                          "--plot", str(tmp_path / "chart.svg")])
    assert [p.rate for p in found["weak"]] == [3 / 4 / 2, 12 / 4 / 2]
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines() if line.lstrip()[0].isdigit()] == [
        "100%", f"{17 / 4 / 5:.0%}", "100%", "100%"]
    assert (tmp_path / "chart.svg").read_text().count("<path") > 20


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["data", "zero3"])
def test_more_ranks_do_more(plan: str) -> None:
    found = example("scaling").main(["--ranks", "1,64", "--batch", "1024", "--plan", plan])
    assert all(first.rate < second.rate < 64 * first.rate for first, second in found.values())
