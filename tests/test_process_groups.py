"""Process groups: which calls and messages are of which, and what becomes of a group."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc import distributed as dist
from mlc.backends.transport import threads
from mlc.distributed.agreement import check, described
from mlc.ir.diag import Loc


def ranks(size: int, work: Callable[[int], Any], timeout: float = 20) -> list[Any]:
    def job(rank: int) -> Any:
        dist.init_process_group(timeout=timeout)
        return work(rank)
    return threads.run(size, job)


def test_groups_of_the_same_ranks_are_different_ones() -> None:
    def work(rank: int) -> None:
        groups = [dist.new_group([0, 1]) for _ in range(2)]
        dist.all_reduce(mlc.ones(1), group=groups[rank])

    with pytest.raises(dist.RankError, match=r"MLC0971|MLC0970"):
        ranks(2, work, timeout=0.3)


def test_groups_whose_tags_are_equal_are_told_apart() -> None:
    def work(rank: int) -> None:
        groups = [dist.new_group([0, 1]) for _ in range(257)]
        dist.all_reduce(mlc.ones(1), group=groups[rank * 256])

    with pytest.raises(dist.RankError, match=r"float32\[1\]\) in group 1, .* in group 257"):
        ranks(2, work)


def test_a_message_is_received_in_its_group() -> None:
    def work(rank: int) -> Any:
        pair, several = dist.new_group([0, 1]), dist.new_group([0, 1, 2])
        found = [mlc.zeros(1) for _ in range(3)]
        if rank == 0:
            for i, group in enumerate((pair, several, None)):
                dist.isend(mlc.tensor([1.0 + i]), 1, group=group)
        if rank == 1:
            for i, group in ((2, None), (1, several), (0, pair)):
                dist.recv(found[i], 0, group=group)
        dist.barrier()
        return [x.item() for x in found]

    assert ranks(3, work)[1] == [1.0, 2.0, 3.0]


def test_long_texts_of_calls_are_told_apart_by_their_ends() -> None:
    long = "all_gather(" + "float32[2], " * 60
    texts = [described(long + end, Loc("model.py", 3)) for end in ("float32[3])", "i8[4])")]
    with pytest.raises(dist.RankError, match="MLC0972"):
        check(dict(enumerate(texts)), 0)
    exact = described("x" * 510, Loc("model.py", 3))
    check({0: exact, 1: described("x" * 510, Loc("a/longer/name.py", 3))}, 0)


def test_a_destroyed_group_is_refused() -> None:
    def work(rank: int) -> None:
        group = dist.new_group([0, 1])
        dist.destroy_process_group(group)
        with pytest.raises(dist.RankError, match=r"MLC0974.*ranks \[0, 1\]\) has been destroyed"):
            dist.all_reduce(mlc.ones(1), group=group)
        with pytest.raises(dist.RankError, match="MLC0974"):
            dist.destroy_process_group(group)
        dist.destroy_process_group(dist.GroupMember.NON_GROUP_MEMBER)
        assert dist.GroupMember.WORLD is dist.group.WORLD is not None

    ranks(2, work)


def test_positions_in_the_order_that_is_given() -> None:
    assert ranks(2, lambda rank: dist.new_group([1, 0], sort_ranks=False).rank()) == [1, 0]


@pytest.mark.parametrize(("code", "call"), [
    ("MLC0976", lambda: dist.new_group([0], use_local_synchronization=True)),
    ("MLC0976", lambda: dist.new_group([0], pg_options=object())),
])
def test_options_that_groups_do_not_have(code: str, call: Callable[[], Any]) -> None:
    with pytest.raises(dist.RankError, match=code):
        ranks(1, lambda rank: call())


@pytest.mark.parametrize("given", [{"rank": 3}, {"world_size": 4}])
def test_a_thread_that_is_another_rank(given: dict[str, Any]) -> None:
    with pytest.raises(dist.RankError, match="MLC0975"):
        threads.run(2, lambda rank: dist.init_process_group(**given))
