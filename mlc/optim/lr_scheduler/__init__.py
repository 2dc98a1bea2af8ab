"""Learning-rate schedulers with the names, arguments and rates of `torch.optim.lr_scheduler`.

    optimizer = mlc.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = CosineAnnealingLR(optimizer, T_max=100)
    for epoch in range(100):
        ...
        optimizer.step()
        scheduler.step()

They set the rates of an optimizer that holds parameters, outside of compiled code. Those of `mlc.optim.schedules` are
functions of the step within a compiled one.

Example:
    >>> optimizer = mlc.optim.SGD([nn.Parameter(mlc.ones(1))], lr=1.0)
    >>> scheduler = mlc.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
"""

from mlc.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from mlc.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from mlc.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from mlc.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from mlc.optim.lr_scheduler.plateau import ReduceLROnPlateau
from mlc.optim.lr_scheduler.scheduler import LRScheduler

_LRScheduler = LRScheduler
"""PyTorch's former name, which schedulers of programs derive from."""

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
           "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR",
           "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]
