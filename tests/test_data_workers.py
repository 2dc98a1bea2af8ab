"""Workers of a data loader: their errors, their ends, and that none of them and none of their memory is left."""
from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.utils.data import DataLoader, Dataset

Loader = DataLoader[Any]

ROOT = Path(__file__).parent.parent


class Calls(Dataset[Any]):
    """Calls a function with each index."""

    def __init__(self, f: Callable[[int], Any], size: int = 8) -> None:
        self.f = f
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return self.f(index)


def large(index: int) -> Any:
    return np.full(100_000, index, np.float32)


def children(pid: int) -> set[int]:
    """The processes that this one has started and that have not ended."""
    return {int(child) for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """A test leaves no process, no open file and no named memory."""
    def held() -> tuple[set[int], int, set[str]]:
        gc.collect()
        return children(os.getpid()), len(os.listdir("/proc/self/fd")), set(os.listdir("/dev/shm"))

    resource_tracker.ensure_running()                      # a process that multiprocessing starts for spawned ones
    before = held()
    yield
    assert held() == before


# -- errors -----------------------------------------------------------------------------------------------------------
def raise_key_error(index: int) -> int:
    return {0: 0, 1: 1}[index]


def raise_own(index: int) -> int:
    class Own(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(a)
    raise Own(index, 2)


@pytest.mark.parametrize("f, kind, text", [
    (raise_key_error, KeyError, "KeyError: 2"), (raise_own, RuntimeError, "MLC0708.*raise Own"),
    (lambda index: open(f"/nowhere/{index}"), FileNotFoundError, "No such file or directory: '/nowhere/0'"),
    (lambda index: mlc.ones(index + 1), mlc.UserError, r"MLC0700.*shapes \[1\] and \[2\].*in default_collate"),
    (lambda index: (x for x in [index]), mlc.UserError, "MLC0701.*generator"),
])
def test_an_exception_of_a_worker_is_raised_with_its_traceback(f: Callable[[int], Any], kind: type[Exception],
                                                               text: str) -> None:
    with pytest.raises(kind, match=f"(?s){text}") as caught:
        list(Loader(Calls(f), 2, num_workers=2))
    assert "in worker " in str(caught.value) and "Traceback (most recent call last):" in str(caught.value)
    assert not isinstance(caught.value, mlc.UserError) or caught.value.loc.file == __file__


def test_an_error_of_worker_init_fn() -> None:
    with pytest.raises(ZeroDivisionError, match="in <lambda>"):
        list(Loader([1], num_workers=1, worker_init_fn=lambda worker: worker // 0))


def test_a_batch_that_cannot_be_passed() -> None:
    with pytest.raises((TypeError, RuntimeError, AttributeError), match="pickle"):
        list(Loader([1], num_workers=1, collate_fn=lambda batch: lambda: batch))


@pytest.mark.parametrize("end, how", [
    (lambda index: os._exit(7), "exited with code 7"), (lambda index: sys.exit(3), "exited with code 3"),
    (lambda index: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"),
    (lambda index: os.kill(os.getpid(), signal.SIGTERM), "was killed by SIGTERM")])
def test_a_worker_that_ends_is_reported(end: Callable[[int], Any], how: str) -> None:
    with pytest.raises(RuntimeError, match=rf"MLC0706.*worker \d of the data loader \(process \d+\) {how}"):
        list(Loader(Calls(end), num_workers=2))


def test_a_worker_that_is_killed_is_reported_while_others_work() -> None:
    before = children(os.getpid())
    batches = iter(Loader(Calls(large, 10**4), 2, num_workers=2))
    next(batches)
    os.kill(min(children(os.getpid()) - before), signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by SIGKILL"):
        for _ in batches:
            pass
    assert not list(batches)


def test_the_timeout() -> None:
    with pytest.raises(RuntimeError, match=r"MLC0707.*no batch for 0\.1 s"):
        list(Loader(Calls(lambda index: time.sleep(60)), num_workers=1, timeout=0.1))


# -- ends -------------------------------------------------------------------------------------------------------------
def test_an_iteration_that_is_left_ends_its_workers() -> None:
    before = children(os.getpid())
    for _ in Loader(Calls(large, 100), 2, num_workers=2, prefetch_factor=8):
        assert len(children(os.getpid()) - before) == 2
        break
    assert children(os.getpid()) == before


def test_persistent_workers_stay() -> None:
    loader = Loader(Calls(lambda index: os.getpid(), 4), num_workers=2, persistent_workers=True)
    first, second = ({x.item() for x in loader} for _ in range(2))
    assert first == second and len(first) == 2
    batches = iter(loader)
    next(batches)
    assert {x.item() for x in loader} == first         # although an iteration was left
    with pytest.raises(mlc.UserError, match="MLC0714"):
        next(batches)
    os.kill(first.pop(), signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by SIGKILL"):
        list(loader)                                       # which starts new ones the next time
    assert len({x.item() for x in loader}) == 2


def test_workers_that_are_not_persistent_see_a_changed_dataset() -> None:
    dataset = Calls(lambda index: index, 2)
    loader = Loader(dataset, 2, num_workers=1)
    assert [x.tolist() for x in loader] == [[0, 1]]
    dataset.f = lambda index: index * 10
    assert [x.tolist() for x in loader] == [[0, 10]]


def test_no_more_than_the_prefetched_batches_are_made(tmp_path: Path) -> None:
    def made(index: int) -> int:
        (tmp_path / str(index)).touch()
        return index

    batches = iter(Loader(Calls(made, 40), num_workers=2, prefetch_factor=3))
    assert next(batches).item() == 0
    while len(list(tmp_path.iterdir())) < 7:
        time.sleep(0.01)
    time.sleep(0.1)
    assert len(list(tmp_path.iterdir())) == 7


def test_batches_out_of_order() -> None:
    def slow_first(index: int) -> int:
        time.sleep(0.3 * (index == 0))
        return index

    loader = Loader(Calls(slow_first, 6), num_workers=2, in_order=False)
    found = [x.item() for x in loader]
    assert sorted(found) == list(range(6)) and found[0] != 0
    next(iter(loader))
    with pytest.raises(mlc.UserError, match="MLC0710"):
        loader.state_dict()


def test_a_worker_has_no_workers() -> None:
    with pytest.raises(mlc.UserError, match=r"MLC0703.*cannot have workers of its own"):
        list(Loader(Calls(lambda index: list(Loader([1], num_workers=1))), num_workers=1))


def test_spawned_workers() -> None:
    loader = Loader(range(4), 2, num_workers=1, multiprocessing_context="spawn")
    assert [x.tolist() for x in loader] == [[0, 1], [2, 3]]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_leaves_the_workers_alone() -> None:
    batches = iter(Loader(Calls(large, 8), 2, num_workers=2))
    next(batches)
    if (child := os.fork()) == 0:
        try:
            next(batches)
        except mlc.UserError as error:
            del batches
            os._exit(0 if error.code == "MLC0714" else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0 and len(list(batches)) == 3


def test_the_programs_handler_of_sigterm_is_not_the_workers(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: (tmp_path / "handled").touch())
    try:
        batches = iter(Loader(Calls(lambda index: time.sleep(60) if index else 0), num_workers=1))
        next(batches)
        del batches                                        # its worker has to be terminated
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list(tmp_path.iterdir())


PROGRAM = """
import os, signal
import numpy as np
from mlc.utils.data import DataLoader, Dataset

signal.signal(signal.SIGINT, signal.default_int_handler)    # a shell's background jobs ignore it

class Endless(Dataset):
    def __len__(self):
        return 10**9
    def __getitem__(self, index):
        return np.zeros(100_000, np.float32)

for i, x in enumerate(DataLoader(Endless(), 2, num_workers=2)):
    if i == 1:
        print("running", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_workers_end_with_the_program(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True, cwd=ROOT) as program:
        try:
            assert program.stdout and program.stderr and program.stdout.readline() == "running\n"
            workers = children(program.pid)
            assert len(workers) == 2
            if how is signal.SIGINT:
                os.killpg(program.pid, how)                    # as the terminal does
            else:
                os.kill(program.pid, how)
            assert program.wait(20) == -how
            while any(Path(f"/proc/{worker}/fd").exists() and os.access(f"/proc/{worker}/fd", os.R_OK)
                      and os.listdir(f"/proc/{worker}/fd") for worker in workers):
                time.sleep(0.02)
        finally:
            program.kill()
        assert program.stderr.read().count("Traceback") == (how is signal.SIGINT)
