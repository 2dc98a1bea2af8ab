"""`Trainer`: the loop of a training, which goes on after a kill as if nothing had happened."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mlc.amp.grad_scaler import GradScaler
from mlc.api import compile
from mlc.checkpoints import Checkpoints
from mlc.frontend.arguments import coded_methods, described
from mlc.frontend.autocast import autocast
from mlc.frontend.generator import get_rng_state, set_rng_state
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.tree import flatten
from mlc.ir.diag import UserError, UserTypeError
from mlc.nn.module import Module
from mlc.nn.utils.clip_grad import clip_grad_norm_
from mlc.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from mlc.optim.optimizer import Optimizer

Loss = Callable[..., Tensor]


class Trainer:
    """Loop over the batches of a loader: loss, backward, step; with accumulation, clipping, mixed precision, logging
    and checkpoints.

    With a folder of checkpoints, `fit` continues from the newest one that is whole. It has the parameters and all
    buffers, the states of the optimizer, the scheduler, the scaler and the random generators of mlc, numpy and Python,
    and the position in the data: a training that was killed ends with the same bits as one that was not. (Numbers that
    a dataset draws itself in the workers of a loader are the same only from the next epoch on.)

    Args:
        model: Module to train.
        optimizer: Optimizer that holds its parameters.
        loss: A layer such as `nn.CrossEntropyLoss()`, called with the output of the model for the first part of a batch
            and with the others; or a function of the model and the parts of a batch.
        scheduler: Scheduler of `mlc.optim.lr_scheduler`, or None.
        scheduler_per: "step" or "epoch": when it steps. ReduceLROnPlateau does so per epoch, by the mean loss.
        accumulate: Number of batches whose gradients make one step; the loss is divided by it.
        clip_norm: The greatest norm of all gradients together; None for any.
        autocast: Dtype of matrix products and convolutions, such as `mlc.bfloat16`; None for that of the operands.
        scaler: `mlc.amp.GradScaler` for float16, or None.
        compile: Whether a step is compiled: one native function for each shape of batches.
        log: Function of a dict of "epoch", "step", "loss", "lr" and, with `clip_norm`, "norm", called every `log_every`
            steps.
        log_every: Number of steps between two calls of `log`.
        on_step: Function of the trainer, called after every step; it may set `trainer.stop = True`.
        on_epoch: The same, after every epoch.
        checkpoints: Folder of checkpoints, made if it is missing; None for none.
        every: Number of steps between two checkpoints; None for one after every epoch.
        keep: Number of checkpoints to keep.
        progress: Whether progress is shown on stderr: a line per epoch, which moves on a terminal.

    Raises:
        UserError: A number is below 1, or `scheduler_per` is something else (MLC0749).
        UserTypeError: An argument is of the wrong kind (MLC0749).

    Example:
        >>> _ = mlc.manual_seed(0)
        >>> model = nn.Linear(2, 1)
        >>> x = mlc.randn(64, 2)
        >>> data = mlc.utils.data.TensorDataset(x, x @ mlc.tensor([[1.0], [-2.0]]))
        >>> loader = mlc.utils.data.DataLoader(data, batch_size=16, shuffle=True)
        >>> trainer = mlc.Trainer(model, mlc.optim.SGD(model.parameters(), lr=0.1), nn.MSELoss(), progress=False)
        >>> losses = trainer.fit(loader, epochs=20)
        >>> trainer.step, losses[-1] < 0.1
        (80, True)
    """

    def __init__(self, model: Module, optimizer: Optimizer, loss: Loss, *, scheduler: LRScheduler | None = None,
                 scheduler_per: str = "step", accumulate: int = 1, clip_norm: float | None = None, autocast: Any = None,
                 scaler: GradScaler | None = None, compile: bool = False,
                 log: Callable[[dict[str, Any]], Any] | None = None, log_every: int = 1,
                 on_step: Callable[[Trainer], Any] | None = None, on_epoch: Callable[[Trainer], Any] | None = None,
                 checkpoints: str | Path | None = None, every: int | None = None, keep: int = 3,
                 progress: bool = True) -> None:
        _check(model, optimizer, loss, scheduler, scheduler_per, scaler,
               {"accumulate": accumulate, "log_every": log_every, "every": every, "keep": keep})
        self.model, self.optimizer, self.loss_function, self.scheduler = model, optimizer, loss, scheduler
        self.scheduler_per = "epoch" if isinstance(scheduler, ReduceLROnPlateau) else scheduler_per
        self.accumulate, self.clip_norm, self.autocast, self.scaler = accumulate, clip_norm, autocast, scaler
        self.log, self.log_every, self.on_step, self.on_epoch = log, log_every, on_step, on_epoch
        self.checkpoints = None if checkpoints is None else Checkpoints(checkpoints, keep)
        self.every, self.progress = every, progress
        self.step = self.epoch = self.batch = 0            # steps in all, epochs, and batches of the present epoch
        self.total = 0.0                                   # of the losses of the present epoch
        self.loss = self.norm = float("nan")
        self.losses: list[float] = []
        self.stop = False
        self.loader: Any = None
        self._pending = 0                                  # batches whose gradients have made no step yet
        self._at_once = compile and accumulate == 1
        self._backward, self._whole = self._gradients, self._gradients_and_step
        if compile:                                        # by shapes: the same code whatever came before
            self._backward, self._whole = compiled_step(self._gradients), compiled_step(self._gradients_and_step)

    # -- the loop -----------------------------------------------------------------------------------------------------
    def fit(self, loader: Iterable[Any], epochs: int, resume: bool = True) -> list[float]:
        """Train until `epochs` epochs are done, those before a checkpoint included.

        Args:
            loader: DataLoader, or another iterable of batches that can be iterated over again and again. A batch is a
                tensor or a dict, which is one part, or a tuple or list of parts.
            epochs: Number of epochs in all.
            resume: Whether to continue from the newest checkpoint, if there is one.

        Returns:
            List of the mean losses of all epochs.

        Raises:
            UserError: A checkpoint cannot be written (MLC0393), or none is whole (MLC0750), or it is of another model,
                optimizer or loader; or an epoch has no batches (MLC0749).
        """
        self.loader, self.stop, self._pending = loader, False, 0
        self.optimizer.zero_grad()
        found = self.checkpoints.newest() if self.checkpoints is not None and resume else None
        if found is not None:
            self.load_state_dict(found[1])
            self._say(f"continuing from {found[0]}: epoch {self.epoch + 1}, step {self.step}\n")
        while self.epoch < epochs and not self.stop:
            self._one_epoch(loader, epochs)
        return list(self.losses)

    def _one_epoch(self, loader: Iterable[Any], epochs: int) -> None:
        self.model.train()
        start, saved = time.monotonic(), self.step
        for batch in self._rest_of(loader):
            self.batch += 1
            stepped = self._on_batch(batch)
            if stepped:
                self._after_step()
                if self.every is not None and self.step % self.every == 0:
                    self._save()
                    saved = self.step
            self._show(loader, epochs, start, "\r")
            if self.stop:
                if saved != self.step:
                    self._save()
                return
        if not self.batch:
            raise UserError("the loader has no batches", code="MLC0749", loc=user_loc(),
                            hint="pass what can be iterated over more than once, such as a DataLoader")
        if self._pending:
            self._update()
            self._after_step()                             # the loader is past its end: saved with the epoch
        self.losses.append(self.total / self.batch)
        self._show(loader, epochs, start, "\n")
        if self.scheduler is not None and self.scheduler_per == "epoch":
            self.scheduler.step(*[self.losses[-1]] * isinstance(self.scheduler, ReduceLROnPlateau))
        self.epoch, self.batch, self.total = self.epoch + 1, 0, 0.0
        if self.on_epoch is not None:
            self.on_epoch(self)
        self._save()

    def _rest_of(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of the present epoch that have not been used."""
        return iter(loader) if hasattr(loader, "state_dict") else islice(loader, self.batch, None)

    def _on_batch(self, batch: Any) -> bool:
        """Learn from a batch; whether that has made a step."""
        place = next((str(p.device) for p in self.model.parameters()), "cpu")
        leaves, structure = flatten(batch)
        batch = structure.unflatten([x.to(place) if isinstance(x, Tensor) and x.device != place else x for x in leaves])
        parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
        if self._at_once:
            loss, norm = self._whole(*parts)
            self.norm = self.norm if norm is None else norm.item()
        else:
            factor = (1.0 if self.scaler is None else self.scaler.get_scale()) / self.accumulate
            loss = self._backward(Tensor(np.array(factor, np.float32)).to(place), *parts)
        self.loss = loss.item()
        self.total += self.loss
        self._pending = (self._pending + 1) % self.accumulate
        if not self._pending and not self._at_once:
            self._update()
        return not self._pending

    def _after_step(self) -> None:
        """Count and report a step."""
        self.step += 1
        if self.log is not None and self.step % self.log_every == 0:
            norm = {} if self.clip_norm is None else {"norm": self.norm}
            self.log({"epoch": self.epoch + 1, "step": self.step, "loss": self.loss,
                      "lr": float(self.optimizer.param_groups[0]["lr"]), **norm})
        if self.on_step is not None:
            self.on_step(self)

    # -- one step -----------------------------------------------------------------------------------------------------
    def _loss_of(self, *parts: Any) -> Any:
        place = next((p.device.type for p in self.model.parameters()), "cpu")
        with nullcontext() if self.autocast is None else autocast(place, self.autocast):
            if isinstance(self.loss_function, Module):
                return self.loss_function(self.model(parts[0]), *parts[1:])
            return self.loss_function(self.model, *parts)

    def _gradients(self, factor: Tensor, *parts: Any) -> Any:
        loss = self._loss_of(*parts)
        (loss * factor).backward()
        return loss

    def _gradients_and_step(self, *parts: Any) -> Any:
        loss = self._loss_of(*parts)
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        return loss, self._move()

    def _move(self) -> Tensor | None:
        """Move the parameters by the gradients that are there; returns their norm, if they are clipped."""
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        norm = None if self.clip_norm is None else clip_grad_norm_(self.model.parameters(), self.clip_norm)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.scheduler is not None and self.scheduler_per == "step":
            self.scheduler.step()
        self.optimizer.zero_grad()
        return norm

    def _update(self) -> None:
        """Make a step from the gradients that are there."""
        norm = self._move()
        self.norm = self.norm if norm is None else norm.item()
        self._pending = 0

    # -- state --------------------------------------------------------------------------------------------------------
    def _parts(self) -> dict[str, Any]:
        """The objects with a state of their own."""
        parts = {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler, "scaler": self.scaler,
                 "loader": self.loader}
        return {name: x for name, x in parts.items() if hasattr(x, "state_dict")}

    def state_dict(self) -> dict[str, Any]:
        """Collect all that the training depends on, as data that `mlc.save` writes.

        Returns:
            Dict of the states by name.
        """
        states = {name: x.state_dict() for name, x in self._parts().items()}
        unsaved = {name: x for name, x in self.model.named_buffers() if name not in states["model"]}
        return {**states, "unsaved_buffers": unsaved, "step": self.step, "epoch": self.epoch, "batch": self.batch,
                "total": self.total, "losses": list(self.losses), "rng": get_rng_state(),
                "numpy_rng": tuple(np.random.get_state()), "python_rng": random.getstate()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state.

        Args:
            state_dict: Result of `state_dict`, of a trainer of the same model, optimizer and loader.

        Raises:
            UserError: It is the state of another kind of trainer (MLC0750), or of another model, optimizer or loader.
        """
        needed = (*self._parts(), "unsaved_buffers", "step", "epoch", "batch", "total", "losses", "rng", "numpy_rng",
                  "python_rng")
        if missing := [name for name in needed if name not in state_dict]:
            raise UserError(f"the state has no {missing[0]!r}: it is not one of this kind of trainer", code="MLC0750",
                            loc=user_loc(), hint="make the trainer with the arguments of the one that was saved")
        for name, x in self._parts().items():
            x.load_state_dict(state_dict[name])
        for name, buffer in state_dict["unsaved_buffers"].items():
            owner, _, attribute = name.rpartition(".")
            setattr(self.model.get_submodule(owner), attribute, buffer)
        for name in ("step", "epoch", "batch", "total"):
            setattr(self, name, state_dict[name])
        self.losses = list(state_dict["losses"])
        set_rng_state(state_dict["rng"])
        np.random.set_state(state_dict["numpy_rng"])
        random.setstate(state_dict["python_rng"])

    def _save(self) -> None:
        if self.checkpoints is not None:
            self.checkpoints.write(self.step, self.state_dict())

    # -- progress -----------------------------------------------------------------------------------------------------
    def _show(self, loader: Any, epochs: int, start: float, end: str) -> None:
        if self.progress and (end == "\n" or sys.stderr.isatty()):
            count = f"/{len(loader)}" if hasattr(loader, "__len__") else ""
            self._say(f"epoch {self.epoch + 1}/{epochs}  batch {self.batch}{count}  "
                      f"loss {self.total / max(self.batch, 1):.4g}  {time.monotonic() - start:.1f} s{end}")

    def _say(self, text: str) -> None:
        if self.progress:
            print(text, end="", file=sys.stderr, flush=True)


def compiled_step(f: Callable[..., Any]) -> Callable[..., Any]:
    """A step as one native function for each shape of its arguments, so that its bits depend on no earlier call."""
    return compile(lambda *parts: f(*parts), dynamic=False)


def _check(model: Any, optimizer: Any, loss: Any, scheduler: Any, scheduler_per: Any, scaler: Any,
           numbers: Mapping[str, Any]) -> None:
    """Refuse arguments of the wrong kind."""
    for name, x, kind, right in (
            ("model", model, "an mlc.nn.Module", isinstance(model, Module)),
            ("optimizer", optimizer, "an optimizer that holds parameters, as in mlc.optim.SGD(model.parameters())",
             isinstance(optimizer, Optimizer) and hasattr(optimizer, "param_groups")),
            ("loss", loss, "a layer or function", callable(loss)),
            ("scheduler", scheduler, "a scheduler of mlc.optim.lr_scheduler",
             scheduler is None or isinstance(scheduler, LRScheduler | ReduceLROnPlateau)),
            ("scaler", scaler, "an mlc.amp.GradScaler", scaler is None or isinstance(scaler, GradScaler))):
        if not right:
            raise UserTypeError(f"Trainer: {name} is {described(x)}, expected {kind}", code="MLC0749", loc=user_loc())
    if scheduler_per not in ("step", "epoch"):
        raise UserError(f"Trainer: scheduler_per = {scheduler_per!r}, expected 'step' or 'epoch'", code="MLC0749",
                        loc=user_loc())
    for name, n in numbers.items():
        if n is not None and (not isinstance(n, int) or n < 1):
            raise UserError(f"Trainer: {name} = {n!r}, expected an integer of at least 1", code="MLC0749",
                            loc=user_loc())


coded_methods(Trainer, ("__init__", "fit", "load_state_dict"))
