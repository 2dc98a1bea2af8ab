"""Messages and collectives between ranks, here threads: values, bits, bytes on the wire, and errors that name ranks."""
from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlc.backends.transport import collectives, current, mpi, threads
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import Array, Transport

UFUNCS: dict[str, Callable[[Any, Any], Any]] = {"add": np.add, "mul": np.multiply, "max": np.maximum,
                                                "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or}


def transport() -> Transport:
    t = current.transport()
    assert t is not None
    return t


def sample(rank: int, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    return (np.random.default_rng(rank).standard_normal(shape) * 10).astype(dtype)


@pytest.mark.parametrize("shape", [(), (1,), (5, 3), (0, 4), (1000,)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_values(size: int, shape: tuple[int, ...]) -> None:
    group = tuple(range(size))

    def work(rank: int) -> None:
        t, x = transport(), sample(rank, shape)
        for a, b in zip(collectives.all_gather(t, group, x), group):
            np.testing.assert_array_equal(a, sample(b, shape), strict=True)
        for a, b in zip(collectives.all_to_all(t, group, [x + p for p in group]), group):
            np.testing.assert_array_equal(a, sample(b, shape) + np.float32(rank))
        piece = collectives.reduce_scatter(t, group, [x * p for p in group], "add")
        np.testing.assert_array_equal(piece, reduce(np.add, [sample(b, shape) * np.float32(rank) for b in group]))
        for root in group:
            y = collectives.broadcast(t, group, x, root)
            np.testing.assert_array_equal(y, sample(root, shape), strict=True)

    threads.run(size, work, timeout=20)


@pytest.mark.parametrize("kind, dtype", [
    *((kind, dtype) for kind in ("add", "mul", "max", "min") for dtype in (np.float64, np.float32, np.int8, np.uint16)),
    *((kind, dtype) for kind in ("and", "or") for dtype in (np.int64, np.bool_)), ("add", np.complex64)])
def test_reductions_are_left_folds(kind: str, dtype: Any) -> None:
    want = reduce(UFUNCS[kind], [sample(rank, (7, 5), dtype) for rank in range(3)])
    for got in threads.run(3, lambda rank: collectives.all_reduce(transport(), (0, 1, 2),
                                                                   sample(rank, (7, 5), dtype), kind)):
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("length", [12, 13])
def test_a_reduction_leaves_its_operand_alone(dtype: Any, length: int) -> None:
    """Parts that are even are received, and folded, in the memory of the result."""
    def work(rank: int) -> None:
        x = sample(rank, (length,), dtype)
        found = collectives.all_reduce(transport(), (0, 1, 2), x, "add")
        np.testing.assert_array_equal(x, sample(rank, (length,), dtype))
        want = sum(sample(r, (length,), dtype).astype(np.float32) for r in range(3))
        np.testing.assert_array_equal(found, np.asarray(want).astype(dtype))

    threads.run(3, work)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_rounded_once(dtype: Any) -> None:
    xs = [sample(rank, (50,), dtype) for rank in range(4)]
    want = reduce(np.add, [x.astype(np.float32) for x in xs]).astype(dtype)
    for got in threads.run(4, lambda rank: collectives.all_reduce(transport(), (0, 1, 2, 3), xs[rank], "add")):
        assert got.dtype == dtype and got.tobytes() == want.tobytes()


def test_zeros_and_nan_are_told_apart() -> None:
    xs = [np.array([0.0, -0.0, np.nan], np.float32), np.array([-0.0, 0.0, 1.0], np.float32)]
    got = threads.run(2, lambda rank: collectives.all_reduce(transport(), (0, 1), xs[rank], "min"))[0]
    assert np.signbit(got[:2]).all() and np.isnan(got[2])


@pytest.mark.parametrize(("shape", "count", "axis"), [((6,), 3, 0), ((2, 4, 3), 2, 1), ((3, 8), 4, 1), ((0, 2), 3, 0)])
def test_blocks_are_those_of_split(shape: tuple[int, ...], count: int, axis: int) -> None:
    x = np.arange(np.prod(shape)).reshape(shape)
    found = collectives.divided(x, count, axis)
    assert [block.tolist() for block in found] == [block.tolist() for block in np.split(x, count, axis)]
    assert all(np.shares_memory(block, x) for block in found) or not x.size


def test_positions_are_those_of_the_group() -> None:
    group = (3, 1)                                     # the sum begins with rank 3, in a group without 0 and 2
    xs = {1: np.array([1e8, 1.0], np.float32), 3: np.array([-1e8, 2.0], np.float32)}

    def work(rank: int) -> Any:
        if rank not in group:
            with pytest.raises(RankError, match=r"rank [02] is not in the group"):
                collectives.all_gather(transport(), group, np.ones(1))
            return None
        gathered = collectives.all_gather(transport(), group, xs[rank])
        assert [a[1] for a in gathered] == [2.0, 1.0]
        return collectives.broadcast(transport(), group, xs[rank], 0)[1]

    assert threads.run(4, work) == [None, 2.0, None, 2.0]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_bytes_on_the_wire(size: int) -> None:
    """As many as the best algorithms send."""
    group, elements = tuple(range(size)), 12 * size
    whole = 4 * elements

    def work(rank: int) -> dict[str, int]:
        t, x = transport(), np.ones(elements, np.float32)
        collectives.all_reduce(t, group, x, "add")
        collectives.all_gather(t, group, x)
        collectives.reduce_scatter(t, group, np.split(x, size), "add")
        collectives.all_to_all(t, group, np.split(x, size))
        collectives.broadcast(t, group, x, size - 1)
        return dict(t.traffic.sent)

    sent = threads.run(size, work)
    for counts in sent:
        assert counts["all_reduce"] == 2 * (size - 1) * whole // size
        assert counts["all_gather"] == (size - 1) * whole
        assert counts["reduce_scatter"] == counts["all_to_all"] == (size - 1) * whole // size
    assert sum(counts["broadcast"] for counts in sent) == (size - 1) * whole


def test_collectives_in_the_background() -> None:
    def work(rank: int) -> list[Any]:
        t = transport()
        tags = [t.next_tag((0, 1)) for _ in range(5)]
        reduce = partial(collectives.all_reduce, t, (0, 1))
        started = [t.start("all_reduce", partial(reduce, np.full(3, rank + i), "add", tag=tag))
                   for i, tag in enumerate(tags)]
        gathered = collectives.all_gather(t, (0, 1), np.array(rank))        # meanwhile
        assert [int(a) for a in gathered] == [0, 1]
        return [int(handle.wait(10)[0]) for handle in reversed(started)]

    assert threads.run(2, work) == [[9, 7, 5, 3, 1]] * 2


# -- errors -----------------------------------------------------------------------------------------------------------
def test_an_error_of_a_rank_ends_the_others() -> None:
    seen = []

    def work(rank: int) -> None:
        if rank == 1:
            raise KeyError("lost")
        try:
            collectives.all_gather(transport(), (0, 1, 2), np.ones(3))
        except RankError as error:
            seen.append((error.code, error.ranks, error.message))
            raise

    with pytest.raises(RankError, match="rank 1 has failed: KeyError: 'lost'") as caught:
        threads.run(3, work)
    assert isinstance(caught.value.__cause__, KeyError)
    assert seen == [("MLC0970", (1,), "rank 1 has failed: KeyError: 'lost'")] * 2


def test_a_rank_that_has_ended_is_not_waited_for() -> None:
    def work(rank: int) -> None:
        if rank == 0:
            transport().barrier()

    with pytest.raises(RankError, match="rank 1 has ended") as caught:
        threads.run(2, work)
    assert caught.value.code == "MLC0970"


def test_a_time_out_names_the_missing_ranks() -> None:
    waiting = threading.Event()

    def work(rank: int) -> None:
        if rank in (1, 3):
            waiting.wait(10)
            return
        try:
            with pytest.raises(RankError, match="barrier: ranks 1, 3 have not answered") as caught:
                transport().barrier(timeout=0.2)
            assert (caught.value.code, caught.value.ranks) == ("MLC0971", (1, 3))
            with pytest.raises(RankError, match="rank 1 has not answered"):
                collectives.all_gather(transport(), (0, 1, 2), np.ones(1), timeout=0.2)
        finally:
            transport().barrier(timeout=10, group=(0, 2))
            waiting.set()

    threads.run(4, work)


def test_a_message_of_another_size_is_an_error() -> None:
    def work(rank: int) -> str:
        with pytest.raises(RankError) as caught:
            collectives.all_gather(transport(), (0, 1), np.zeros(rank + 1, np.float32))
        assert caught.value.code == "MLC0973"
        return caught.value.message

    assert threads.run(2, work) == ["rank 1 sent 8 bytes, and rank 0 receives 4",
                                    "rank 0 sent 4 bytes, and rank 1 receives 8"]


@pytest.mark.parametrize("kind, dtype", [("add", np.bool_), ("and", np.float32), ("max", np.complex64),
                                         ("add", np.str_)])
def test_kinds_that_an_element_type_does_not_have(kind: str, dtype: Any) -> None:
    def work(rank: int) -> None:
        with pytest.raises(RankError, match="combine") as caught:
            collectives.all_reduce(transport(), (0, 1), np.zeros(2, dtype), kind)
        assert caught.value.code == "MLC0973"

    threads.run(2, work)


@pytest.mark.parametrize(("allowed", "wanted"), [
    ([{1, 2}] * 4, [1, 1, 2, 2]), ([{1, 2}] * 3, [1, 1, 2]), ([{0, 1}] * 2, [None, None]), ([{5}] * 2, [5, 5]),
    ([{0}, {1}], [None, None])])
def test_ranks_that_outnumber_the_processors_take_one_each(allowed: list[set[int]], wanted: list[int | None]) -> None:
    assert [mpi.own_processor(allowed, number) for number in range(len(allowed))] == wanted


def test_a_rank_spins_only_where_nothing_else_of_it_runs() -> None:
    """Its own thread does while no collective runs in the background; that one does while its result is awaited."""
    def work(rank: int) -> None:
        t, looked, found = transport(), threading.Event(), list[bool]()
        assert t.may_spin()

        def background() -> None:
            found.append(t.may_spin())
            looked.set()
            while not t.may_spin():
                pass
        handle = t.start("background", background)
        looked.wait()
        assert not t.may_spin()
        handle.wait(timeout=20)                            # which the background has seen, or it would not have ended
        assert found == [False] and t.may_spin()
        other = threading.Thread(target=lambda: found.append(t.may_spin()))
        other.start()
        other.join()
        assert found == [False, False]

    threads.run(1, work, timeout=20)


@pytest.mark.parametrize("polls", [1, 10, 1000])
def test_waiting_for_mpi_polls_several_times_before_it_gives_up(polls: int) -> None:
    """A message that was sent in time may take MPI some polls: this process may have been stopped meanwhile."""
    tests = iter(range(polls))
    request = SimpleNamespace(Test=lambda status: next(tests, None) is None)
    t = threads.ThreadTransport([], 0)
    vars(t).update(_mpi=SimpleNamespace(Status=lambda: SimpleNamespace(Get_count=lambda unit: 0), BYTE=1,
                                        Exception=OSError), unfinished={}, check=lambda rank: None)
    waiting = mpi._Request(t, request, 1, np.empty(0, np.uint8), True)  # type: ignore[arg-type]
    if polls < 16:
        waiting.wait(timeout=0)
    else:
        with pytest.raises(TimeoutError):
            waiting.wait(timeout=0)
