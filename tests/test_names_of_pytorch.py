"""Names and classes of errors that programs for PyTorch rely on, each as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import mlc
from mlc import nn

F: Any = nn.functional


def test_a_file_that_is_not_there() -> None:
    for lib in (mlc, torch):
        with pytest.raises(FileNotFoundError, match="nonexistent"):
            lib.load("/nonexistent")
    with pytest.raises(FileNotFoundError, match=r"MLC0392"):
        nn.load_safetensors("/nonexistent")


def test_a_tensor_that_does_not_fit_in_memory() -> None:
    assert mlc.cuda.OutOfMemoryError is mlc.OutOfMemoryError and issubclass(mlc.OutOfMemoryError, RuntimeError)
    with pytest.raises(mlc.OutOfMemoryError, match="MLC0328"):
        mlc.ones(10**9, 10**9)


@pytest.mark.parametrize("lib", [mlc, torch])
def test_a_gradient_penalty(lib: Any) -> None:
    x = lib.ones(2).requires_grad_()
    gradient, = lib.autograd.grad(outputs=x * x, inputs=x, grad_outputs=lib.ones(2), create_graph=True,
                                  retain_graph=True, only_inputs=True)
    assert gradient.tolist() == [2, 2]
    assert lib.autograd.grad(x.sum(), [x, lib.ones(1).requires_grad_()], None, None, False, True, True)[1] is None


@pytest.mark.parametrize("lib", [mlc, torch])
def test_items_of_containers_are_taken_away(lib: Any) -> None:
    n = lib.nn
    layers = n.ModuleList([n.ReLU(), n.Tanh(), n.GELU(), n.SiLU()])
    del layers[0]
    assert [type(x).__name__ for x in reversed(layers)] == ["SiLU", "GELU", "Tanh"]
    assert type(layers.pop(1)).__name__ == "GELU" and len(layers) == 2
    layers += [n.ReLU()]
    more = layers + n.ModuleList([n.GELU()])
    assert [name for name, _ in more.named_children()] == ["0", "1", "2", "3"] and len(layers) == 3
    del layers[1:]
    assert len(layers) == 1
    steps = n.Sequential(n.Linear(2, 2), n.ReLU(), n.Linear(2, 1))
    del steps[1]
    assert [*steps.state_dict()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert steps.pop(-1).out_features == 1 and len(steps) == 1


def test_items_by_name_keep_their_names() -> None:
    steps = nn.Sequential({"first": nn.Linear(2, 2), "second": nn.ReLU()})
    del steps[0]
    assert [name for name, _ in steps.named_children()] == ["second"]


@pytest.mark.parametrize("lib", [mlc, torch])
def test_switches_of_algorithms(lib: Any) -> None:
    lib.use_deterministic_algorithms(True, warn_only=True)
    assert lib.are_deterministic_algorithms_enabled() and lib.is_deterministic_algorithms_warn_only_enabled()
    lib.use_deterministic_algorithms(False)
    assert not lib.are_deterministic_algorithms_enabled()
    q = lib.ones(1, 2)
    with lib.nn.attention.sdpa_kernel([lib.nn.attention.SDPBackend.MATH]):
        assert lib.nn.functional.scaled_dot_product_attention(q, q, q).tolist() == [[1, 1]]


def test_a_scheduler_of_the_former_base() -> None:
    from mlc.optim.lr_scheduler import _LRScheduler

    class Halved(_LRScheduler):
        def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
            super().__init__(optimizer, last_epoch)

        def get_lr(self) -> list[float]:
            return [lr / 2**self.last_epoch for lr in self.base_lrs]

    optimizer = mlc.optim.SGD([mlc.ones(1, requires_grad=True)], lr=1.0)
    scheduler = Halved(optimizer)
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5]


@pytest.mark.parametrize("lib", [mlc, torch])
def test_tensors_are_exchanged(lib: Any) -> None:
    from mlc.utils import dlpack
    x = lib.arange(3)
    assert dlpack.from_dlpack(dlpack.to_dlpack(x)).tolist() == [0, 1, 2]
    assert torch.utils.dlpack.from_dlpack(dlpack.to_dlpack(x)).tolist() == [0, 1, 2]
