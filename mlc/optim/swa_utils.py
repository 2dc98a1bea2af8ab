"""Averages of models over a training: `AveragedModel`, its averages, and the schedule that goes with it.

    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    for x, y in loader:
        ...
        optimizer.step()
        averaged.update_parameters(model)
    update_bn(loader, averaged)

Example:
    >>> model = nn.Linear(1, 1)
    >>> averaged = mlc.optim.swa_utils.AveragedModel(model)
    >>> averaged.update_parameters(model)
    >>> averaged.n_averaged.item()
    1
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.functions import create
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn.batch_normalization import BatchNorm
from mlc.nn.module import Module
from mlc.optim.lr_scheduler.scheduler import LRScheduler, for_each_group, require
from mlc.optim.optimizer import Optimizer

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
           "update_bn"]
Average = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


@coded
def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Exponential moving average of one parameter: decay * average + (1 - decay) * parameter.

    Args:
        decay: Weight of the average so far, in [0, 1].

    Returns:
        Function of the average, the parameter and the number of models averaged, for `AveragedModel(avg_fn=...)`.

    Raises:
        UserError: The decay is out of range (MLC0781).

    Example:
        >>> mlc.optim.swa_utils.get_ema_avg_fn(0.75)(mlc.tensor([4.0]), mlc.tensor([8.0]), 1)
        tensor([5.], dtype=mlc.float32)
    """
    if not 0 <= decay <= 1:
        raise UserError(f"decay = {decay} is not in [0, 1]", code="MLC0781", loc=user_loc())

    @no_grad()
    def average(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        return decay * averaged + (1 - decay) * current

    return average


@coded
def get_swa_avg_fn() -> Average:
    """Equal average of one parameter over models: average + (parameter - average) / (n + 1).

    Returns:
        Function of the average, the parameter and the number n of models averaged, for `AveragedModel(avg_fn=...)`.

    Example:
        >>> mlc.optim.swa_utils.get_swa_avg_fn()(mlc.tensor([4.0]), mlc.tensor([8.0]), 1)
        tensor([6.], dtype=mlc.float32)
    """
    @no_grad()
    def average(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        moved: Tensor = averaged + (current - averaged) / (count + 1)
        return moved

    return average


@coded
def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Exponential moving average of lists of parameters, in place.

    Args:
        decay: Weight of the average so far, in [0, 1].

    Returns:
        Function of the averages, the parameters and the number of models averaged, for
        `AveragedModel(multi_avg_fn=...)`.

    Raises:
        UserError: The decay is out of range (MLC0781).

    Example:
        >>> averaged = mlc.tensor([4.0])
        >>> mlc.optim.swa_utils.get_ema_multi_avg_fn(0.75)([averaged], [mlc.tensor([8.0])], 1)
        >>> averaged
        tensor([5.], dtype=mlc.float32)
    """
    return _of_each(get_ema_avg_fn(decay))


@coded
def get_swa_multi_avg_fn() -> MultiAverage:
    """Equal average of lists of parameters over models, in place.

    Returns:
        Function of the averages, the parameters and the number of models averaged, for
        `AveragedModel(multi_avg_fn=...)`.

    Example:
        >>> averaged = mlc.tensor([4.0])
        >>> mlc.optim.swa_utils.get_swa_multi_avg_fn()([averaged], [mlc.tensor([8.0])], 1)
        >>> averaged
        tensor([6.], dtype=mlc.float32)
    """
    return _of_each(get_swa_avg_fn())


def _of_each(average: Average) -> MultiAverage:
    @no_grad()
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], count: Any) -> None:
        for a, p in zip(averaged, current):
            a.copy_(average(a, p, count))

    return update


class AveragedModel(Module):
    """Copy of a model whose parameters are averages of those that the model has had.

    Stochastic weight averaging (Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima and Better
    Generalization") takes equal means over the end of training; with `get_ema_multi_avg_fn` it is an exponential moving
    average. The copy is called as the model is, and `update_parameters` adds the state of the model to the average.

    Args:
        model: Model to copy.
        device: Device of the copy; None for that of the model.
        avg_fn: Function of an averaged parameter, the parameter, and the number of models averaged so far, that gives
            the new average; by default all models count equally.
        multi_avg_fn: The same in place for lists of parameters.
        use_buffers: Whether buffers are averaged too, rather than those of the model as it is.

    Attributes:
        module: The averaged model.
        n_averaged: Number of models averaged.

    Raises:
        UserError: Both functions are given (MLC0781).

    Example:
        >>> model = nn.Linear(1, 1)
        >>> averaged = mlc.optim.swa_utils.AveragedModel(model)
        >>> for value in (2.0, 4.0):
        ...     _ = nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.item(), averaged.n_averaged.item()
        (3.0, 2)
    """

    def __init__(self, model: Module, device: Any = None, avg_fn: Average | None = None,
                 multi_avg_fn: MultiAverage | None = None, use_buffers: bool = False) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise UserError("avg_fn and multi_avg_fn are two averages", code="MLC0781", loc=user_loc(),
                            hint="give one of them")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", create.zeros(dtype="int64"))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers
        if device is not None:
            self.to(device)

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Call the averaged model.

        Args:
            args: Arguments of the model.
            keywords: Its keyword arguments.

        Returns:
            Its result.
        """
        return self.module(*args, **keywords)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the average; the first ones are the average.

        Args:
            model: Model of the same structure.

        Example:
            >>> model = nn.Linear(1, 1)
            >>> averaged = mlc.optim.swa_utils.AveragedModel(model)
            >>> averaged.update_parameters(model)
            >>> averaged.n_averaged.item()
            1
        """
        every = [[*m.parameters(), *(m.buffers() if self.use_buffers else ())] for m in (self.module, model)]
        averaged, current = ([x.detach() for x in xs] for xs in every)
        if int(self.n_averaged) == 0:
            for a, p in zip(averaged, current):
                a.copy_(p)
        elif self.avg_fn is not None:
            for a, p in zip(averaged, current):
                a.copy_(self.avg_fn(a, p, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averaged, current, self.n_averaged)
        if not self.use_buffers:
            for b, other in zip(self.module.buffers(), model.buffers()):
                b.copy_(other)
        self.n_averaged += 1


@no_grad()
@coded
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of the BatchNorm layers of a model anew, as means over all batches.

    Args:
        loader: Batches: each an input of the model, or a tuple or list that begins with one.
        model: Model that is called with each batch, in training mode.
        device: Device that each input is moved to; None to leave it.

    Example:
        >>> model = nn.BatchNorm1d(1)
        >>> mlc.optim.swa_utils.update_bn([mlc.tensor([[1.0], [3.0]]), mlc.tensor([[5.0], [7.0]])], model)
        >>> model.running_mean
        tensor([4.], dtype=mlc.float32)
    """
    layers = [m for m in model.modules() if isinstance(m, BatchNorm)]
    momenta, training = [layer.momentum for layer in layers], model.training
    if not layers:
        return
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    model.train()
    for batch in loader:
        x = batch[0] if isinstance(batch, list | tuple) else batch
        model(x if device is None else x.to(device))
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Annealing to a constant rate: lr = a * swa_lr + (1 - a) * initial lr, where a goes from 0 to 1.

    Args:
        optimizer: Optimizer that holds parameters.
        swa_lr: The rate at the end, or a list with one for each group.
        anneal_epochs: Number of epochs until the end.
        anneal_strategy: "cos" or "linear".
        last_epoch: Number of the last epoch, from which the schedule goes on; -1 to begin.

    Raises:
        UserError: A setting is unknown or out of range, or there is another number of rates than of groups (MLC0441).

    Example:
        >>> opt = mlc.optim.SGD([mlc.ones(2, requires_grad=True)], lr=0.4)
        >>> scheduler = mlc.optim.swa_utils.SWALR(opt, swa_lr=0.0, anneal_epochs=2, anneal_strategy="linear")
        >>> for epoch in range(4):
        ...     print(scheduler.get_last_lr())
        ...     opt.step()
        ...     scheduler.step()
        [0.4]
        [0.2]
        [0.0]
        [0.0]
    """

    def __init__(self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
                 anneal_strategy: Literal["cos", "linear"] = "cos", last_epoch: int = -1) -> None:
        require(anneal_strategy in ("cos", "linear"), f"anneal_strategy = {anneal_strategy!r}, expected 'cos' or "
                                                      "'linear'")
        require(anneal_epochs >= 0,
                f"anneal_epochs = {anneal_epochs}, expected a number of epochs")
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        for group, lr in zip(optimizer.param_groups, for_each_group("swa_lr", swa_lr, optimizer)):
            group["swa_lr"] = lr
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Compute the rates of `last_epoch` from those of the epoch before.

        Returns:
            One rate for each group.
        """
        epoch = self._step_count - 1
        epoch = epoch if self.anneal_epochs else max(1, epoch)
        before, now = self._progress(epoch - 1), self._progress(epoch)
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            initial = end if before == 1 else (float(group["lr"]) - before * end) / (1 - before)
            rates.append(end * now + initial * (1 - now))
        return rates

    def _progress(self, epoch: int) -> float:
        """How far the rates have come at an epoch, from 0 to 1."""
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2


coded_methods(AveragedModel, ("__init__", "update_parameters"))
