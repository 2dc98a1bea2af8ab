"""mlc.optim.LBFGS beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.ir.diag import UserError


def losses(library: Any, **settings: Any) -> list[float]:
    w = library.tensor([3.0, -2.0, 0.5], dtype=library.float64, requires_grad=True)
    seen: list[float] = []
    optimizer = library.optim.LBFGS([w], **settings)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((w - library.tensor([1.0, 2.0, 0.0], dtype=library.float64)) ** 4).sum() + (w[0] * w[1] - 1) ** 2
        seen.append(loss.item())
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return seen


@pytest.mark.parametrize("settings", [
    {"lr": 0.3, "max_iter": 6}, {"lr": 0.8, "history_size": 2}, {"lr": 0.3, "max_iter": 9, "max_eval": 4},
    {"line_search_fn": "strong_wolfe"}, {"line_search_fn": "strong_wolfe", "lr": 5.0, "max_eval": 7},
    {"lr": 0.3, "tolerance_change": 0.5}, {"lr": 0.3, "tolerance_grad": 5.0}])
def test_losses_are_those_of_pytorch(settings: dict[str, Any]) -> None:
    found, wanted = losses(mlc, **settings), losses(torch, **settings)
    assert len(found) == len(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("call", [
    lambda w: mlc.optim.LBFGS([w], line_search_fn="armijo"), lambda w: mlc.optim.LBFGS([w]).step(),
    lambda w: mlc.optim.LBFGS([{"params": [w]}, {"params": [mlc.ones(2, requires_grad=True)]}]),
    lambda w: mlc.optim.LBFGS().update(w, mlc.optim.LBFGS().init(w), w)])
def test_what_it_cannot_do_is_refused(call: Any) -> None:
    with pytest.raises(UserError) as found:
        call(mlc.ones(2, requires_grad=True))
    assert found.value.code == "MLC0769"
