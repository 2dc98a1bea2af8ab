"""Processes that share the memory of tensors."""

from __future__ import annotations

import os
import time
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.multiprocessing as mp
from mlc import nn

pytestmark = pytest.mark.usefixtures("interpreted")


def train(index: int, model: nn.Module, x: mlc.Tensor, compiled: bool = False) -> None:
    optimizer = mlc.optim.SGD(model.parameters(), lr=0.125)

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    (mlc.compile(step) if compiled else step)()


def fail(index: int) -> None:
    if index == 1:
        raise ValueError("on purpose")


def send(queue: Any, done: Any) -> None:
    x = mlc.arange(6).reshape(2, 3)
    queue.put((x, x[1]))                                   # of one storage
    while not x.is_shared():                               # by the queue's thread
        time.sleep(0.001)
    x += 10
    done.wait(60)


def test_memory_is_shared_and_written_in_place() -> None:
    x = mlc.arange(4.0)
    view = x[1:]
    assert not x.is_shared() and x.share_memory_() is x and view.is_shared()
    address = x.data_ptr()
    x.mul_(2)
    view[0] = 7
    x.data.add_(1)
    assert x.tolist() == [1, 8, 5, 7] and x.data_ptr() == address and x.share_memory_().data_ptr() == address
    layer = nn.Sequential(nn.Linear(2, 1), nn.Dropout()).share_memory()
    assert all(p.is_shared() for p in layer.parameters())
    train(0, layer[0], mlc.ones(1, 2))
    train(0, layer[0], mlc.ones(1, 2), compiled=True)
    assert all(p.is_shared() for p in layer.parameters())
    assert (mlc.zeros(0).share_memory_() + 1).shape == (0,)


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_train_one_model(method: str) -> None:
    model = nn.Linear(2, 1).share_memory()
    before = [p.detach().numpy().copy() for p in model.parameters()]
    context: Any = mp.get_context(method)
    processes = [context.Process(target=train, args=(0, model, mlc.ones(1, 2), compiled))
                 for compiled in (False, method == "fork")]
    for process in processes:
        process.start()
        process.join()
        assert process.exitcode == 0
    for p, x in zip(model.parameters(), before):
        np.testing.assert_allclose(p.detach().numpy(), x - 0.25, rtol=1e-6)


def test_tensors_travel_through_queues() -> None:
    context: Any = mp.get_context("fork")
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=send, args=(queue, done))
    process.start()
    x, row = queue.get(timeout=60)
    done.set()
    process.join()
    assert x.is_shared() and x.tolist() == [[10, 11, 12], [13, 14, 15]]
    row.zero_()
    assert x.tolist() == [[10, 11, 12], [0, 0, 0]]


def test_spawn_reports_the_error_of_a_process() -> None:
    with pytest.raises(mp.ProcessRaisedException, match="ValueError: on purpose") as caught:
        mp.spawn(fail, nprocs=2, start_method="fork")
    assert caught.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="exit code 3"):
        mp.spawn(leave, nprocs=1, start_method="fork")
    model = nn.Linear(2, 1).share_memory()
    assert mp.spawn(train, (model, mlc.ones(1, 2)), nprocs=1, start_method="fork") is None


def leave(index: int) -> None:
    os._exit(3)


def test_what_cannot_be_sent() -> None:
    x = mlc.ones(2, requires_grad=True) * 2
    with pytest.raises(mlc.UserError, match="MLC0434"):
        ForkingPickler.dumps(x)
    with pytest.raises(mlc.UserError, match="MLC0360"):
        mp.set_sharing_strategy("paper")
