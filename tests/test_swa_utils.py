"""Averaged models beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.ir.diag import UserError

X = np.random.default_rng(0).standard_normal((4, 6, 3)).astype(np.float32)
AVERAGES = [None, ("avg_fn", "get_ema_avg_fn", (0.9,)), ("multi_avg_fn", "get_ema_multi_avg_fn", (0.9,)),
            ("avg_fn", "get_swa_avg_fn", ()), ("multi_avg_fn", "get_swa_multi_avg_fn", ())]


def averaged(library: Any, average: Any, use_buffers: bool) -> Any:
    utils = library.optim.swa_utils
    model = library.nn.Sequential(library.nn.Linear(3, 2), library.nn.BatchNorm1d(2))
    model.load_state_dict({name: (0.1 + 0.1 * library.arange(float(x.numel()))).reshape(x.shape).to(x.dtype)
                           for name, x in model.state_dict().items()})
    settings = {} if average is None else {average[0]: getattr(utils, average[1])(*average[2])}
    result = utils.AveragedModel(model, use_buffers=use_buffers, **settings)
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    for x in X:
        optimizer.zero_grad()
        (model(library.tensor(x)) ** 2).mean().backward()
        optimizer.step()
        result.update_parameters(model)
    return result


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("average", AVERAGES, ids=str)
def test_averages(average: Any, use_buffers: bool) -> None:
    if use_buffers and average and average[1] == "get_swa_multi_avg_fn":
        pytest.skip("PyTorch's does not take integers, such as the number of batches")
    ours, theirs = (averaged(library, average, use_buffers) for library in (mlc, torch))
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, x in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), x.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_statistics_are_computed_anew() -> None:
    found = []
    for library in (mlc, torch):
        model = averaged(library, None, False)
        library.optim.swa_utils.update_bn([(library.tensor(x), None) for x in X], model)
        layer = model.module[1]
        found.append((layer.running_mean.numpy(), layer.running_var.numpy()))
        assert layer.momentum == 0.1
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


def test_mistakes() -> None:
    utils: Any = mlc.optim.swa_utils
    with pytest.raises(UserError, match="MLC0781"):
        utils.AveragedModel(mlc.nn.Linear(1, 1), avg_fn=utils.get_swa_avg_fn(), multi_avg_fn=lambda a, b, n: None)
    with pytest.raises(UserError, match="MLC0781"):
        utils.get_ema_multi_avg_fn(-0.1)
