"""Scaling of losses, so that small gradients do not vanish in float16."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from mlc.api import compile
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.autocast import has_gpu
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.control import cond
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import asarray, full, tensor
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import UserError
from mlc.optim.optimizer import Optimizer


@coded
def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` has an effect on a type of device.

    Args:
        device_type: Such as "cpu" or "cuda".

    Returns:
        A bool.

    Example:
        >>> mlc.amp.is_autocast_available("cpu"), mlc.amp.is_autocast_available("xpu")
        (True, False)
    """
    return device_type == "cpu" or (device_type == "cuda" and has_gpu())


class GradScaler:
    """Multiplies losses by a factor and divides gradients by it, and skips steps in which a gradient is not finite.

    The factor shrinks when a step is skipped, and grows after `growth_interval` steps in a row that are not.

    Args:
        device: "cuda" or "cpu"; where there is no GPU, a scaler for "cuda" is disabled.
        init_scale: First factor.
        growth_factor: What the factor is multiplied by to grow.
        backoff_factor: What it is multiplied by after a step that was skipped.
        growth_interval: Number of steps after which it grows.
        enabled: Whether there is any scaling; if not, `step` is that of the optimizer, and all else does nothing.

    Raises:
        UserError: A factor is out of range, or gradients are not such that can be unscaled (MLC0783).

    Example:
        >>> w = mlc.tensor([1.0], requires_grad=True)
        >>> opt, scaler = mlc.optim.SGD([w], lr=0.1), mlc.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((w * 2).sum()).backward()
        >>> w.grad
        tensor([16.], dtype=mlc.float32)
        >>> scaler.step(opt)
        >>> scaler.update()
        >>> w, scaler.get_scale()
        (tensor([0.8], dtype=mlc.float32, requires_grad=True), 8.0)
    """

    def __init__(self, device: str = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True) -> None:
        self._device, self._enabled = str(device), bool(enabled)
        if enabled and not is_autocast_available(self._device.partition(":")[0]):
            warnings.warn("GradScaler is disabled: there is no GPU", stacklevel=3)
            self._enabled = False
        if self._enabled:
            _check_factors(growth_factor, backoff_factor)
        self._scale, self._growth_tracker = tensor(float(init_scale)), tensor(0)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._finite: dict[int, Tensor] = {}                  # by optimizer whose gradients are unscaled: are they?
        self._stepped: set[int] = set()
        self._unscaled = compile(_unscaled, dynamic=False)

    def __getstate__(self) -> dict[str, Any]:
        if self._finite or self._stepped:
            raise UserError("a scaler is copied between unscale_ or step and update", code="MLC0783", loc=user_loc(),
                            hint="copy it after update")
        return {name: x for name, x in vars(self).items() if name != "_unscaled"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._unscaled = compile(_unscaled, dynamic=False)

    def scale(self, outputs: Any) -> Any:
        """Multiply losses by the factor.

        Args:
            outputs: A tensor, or tensors in lists or tuples.

        Returns:
            The same with each tensor multiplied.

        Raises:
            UserError: There is something else among them (MLC0783).

        Example:
            >>> mlc.amp.GradScaler("cpu", init_scale=8.0).scale(mlc.tensor(0.5))
            tensor(4., dtype=mlc.float32)
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable) and not isinstance(outputs, str | Mapping):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise UserError(f"a loss is a tensor, found {type(outputs).__name__}", code="MLC0783", loc=user_loc())

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, such as to clip them before `step`.

        Args:
            optimizer: Optimizer that holds parameters.

        Raises:
            UserError: It was called already since the last `update`, or gradients are float16 (MLC0783).

        Example:
            >>> w = mlc.tensor([1.0], requires_grad=True)
            >>> opt, scaler = mlc.optim.SGD([w], lr=0.5), mlc.amp.GradScaler("cpu", init_scale=8.0)
            >>> scaler.scale((w * 2).sum()).backward()
            >>> scaler.unscale_(opt)
            >>> w.grad
            tensor([2.], dtype=mlc.float32)
        """
        if not self._enabled:
            return
        if id(optimizer) in self._finite or id(optimizer) in self._stepped:
            raise UserError("the gradients of this optimizer are unscaled already", code="MLC0783", loc=user_loc(),
                            hint="call unscale_ once, before step, and then update")
        held = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(p.grad.dtype.name == "float16" for p in held):
            raise UserError("gradients are float16, and would be rounded when they are unscaled", code="MLC0783",
                            loc=user_loc(), hint="keep parameters in float32, and let autocast cast them")
        with GradMode(False):
            grads, finite = self._unscaled([p.grad for p in held], self._scale)
            for p, g in zip(held, grads):
                p.grad.copy_(g)
        self._finite[id(optimizer)] = finite

    def step(self, optimizer: Optimizer, *args: Any, **keywords: Any) -> Any:
        """Make a step of an optimizer, unless a gradient is not finite; unscale the gradients first if need be.

        Args:
            optimizer: Optimizer that holds parameters.
            args: Arguments of its `step`.
            keywords: Keyword arguments of its `step`.

        Returns:
            The result of its `step`; None if it is skipped.

        Raises:
            UserError: There is a closure, or it is the second step since the last `update` (MLC0783).

        Example:
            >>> w = mlc.tensor([1.0], requires_grad=True)
            >>> opt, scaler = mlc.optim.SGD([w], lr=0.5), mlc.amp.GradScaler("cpu", init_scale=8.0)
            >>> scaler.scale((w * 2).sum()).backward()
            >>> scaler.step(opt)
            >>> w
            tensor([0.], dtype=mlc.float32, requires_grad=True)
        """
        if not self._enabled:
            return optimizer.step(*args, **keywords)
        if args or "closure" in keywords:
            raise UserError("a step with a scaler takes no closure, whose gradients would be scaled", code="MLC0783",
                            loc=user_loc(), hint="compute the gradients before, by scaler.scale(loss).backward()")
        if id(optimizer) in self._stepped:
            raise UserError("this optimizer has made its step already", code="MLC0783", loc=user_loc(),
                            hint="call update after step")
        if id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        finite = self._finite[id(optimizer)]
        if state.trace is not None:                        # the compiled function decides
            return cond(finite, lambda: optimizer.step(**keywords), lambda: None)
        return optimizer.step(**keywords) if finite else None

    def update(self, new_scale: Any = None) -> None:
        """Adapt the factor after the steps of all optimizers.

        Args:
            new_scale: Factor to take instead, a number or a tensor.

        Raises:
            UserError: No gradients were unscaled since the last call (MLC0783).

        Example:
            >>> w = mlc.tensor([1.0], requires_grad=True)
            >>> opt, scaler = mlc.optim.SGD([w], lr=0.5), mlc.amp.GradScaler("cpu", init_scale=8.0)
            >>> scaler.scale((w * float("inf")).sum()).backward()
            >>> scaler.step(opt)
            >>> scaler.update()
            >>> w.item(), scaler.get_scale()
            (1.0, 4.0)
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._set(new_scale, self._growth_tracker)
        elif not self._finite:
            raise UserError("no gradients were unscaled since the last update", code="MLC0783", loc=user_loc(),
                            hint="call scaler.step(optimizer) first")
        else:
            finite = functools.reduce(E.logical_and, self._finite.values())
            steps = E.where(finite, self._growth_tracker + 1, 0)
            grows = steps >= self._growth_interval
            grown = self._scale * self._growth_factor
            scale = E.where(grows & E.isfinite(grown), grown, self._scale)
            self._set(E.where(finite, scale, self._scale * self._backoff_factor), E.where(grows, 0, steps))
        self._finite.clear()
        self._stepped.clear()

    def _set(self, scale: Any, growth_tracker: Any) -> None:
        """Set the factor, and the number of steps since it grew."""
        with GradMode(False):
            self._scale.copy_(asarray(scale))
            self._growth_tracker.copy_(asarray(growth_tracker))

    def get_scale(self) -> float:
        """The current factor.

        Returns:
            A number; 1.0 if the scaler is disabled.

        Example:
            >>> mlc.amp.GradScaler("cpu", init_scale=8.0).get_scale()
            8.0
        """
        return float(self._scale.item()) if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Multiplier of the factor when it grows.

        Returns:
            A number.

        Example:
            >>> mlc.amp.GradScaler("cpu").get_growth_factor()
            2.0
        """
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the factor is multiplied by to grow.

        Args:
            new_factor: A number above 1.

        Raises:
            UserError: It is not (MLC0783).

        Example:
            >>> scaler = mlc.amp.GradScaler("cpu")
            >>> scaler.set_growth_factor(4.0)
            >>> scaler.get_growth_factor()
            4.0
        """
        _check_factors(new_factor, self._backoff_factor)
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Multiplier of the factor after a step that was skipped.

        Returns:
            A number.

        Example:
            >>> mlc.amp.GradScaler("cpu").get_backoff_factor()
            0.5
        """
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the factor is multiplied by after a step that was skipped.

        Args:
            new_factor: A number below 1.

        Raises:
            UserError: It is not (MLC0783).

        Example:
            >>> scaler = mlc.amp.GradScaler("cpu")
            >>> scaler.set_backoff_factor(0.25)
            >>> scaler.get_backoff_factor()
            0.25
        """
        _check_factors(self._growth_factor, new_factor)
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Number of steps after which the factor grows.

        Returns:
            An integer.

        Example:
            >>> mlc.amp.GradScaler("cpu").get_growth_interval()
            2000
        """
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps with finite gradients in a row after which the factor grows.

        Args:
            new_interval: An integer.

        Example:
            >>> scaler = mlc.amp.GradScaler("cpu")
            >>> scaler.set_growth_interval(100)
            >>> scaler.get_growth_interval()
            100
        """
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether there is any scaling.

        Returns:
            A bool.

        Example:
            >>> mlc.amp.GradScaler("cpu").is_enabled(), mlc.amp.GradScaler("cpu", enabled=False).is_enabled()
            (True, False)
        """
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Collect the factor, how it changes, and the number of steps since it grew.

        Returns:
            Dict, empty if the scaler is disabled.

        Example:
            >>> state = mlc.amp.GradScaler("cpu", init_scale=4.0).state_dict()
            >>> state["scale"], state["growth_interval"]
            (4.0, 2000)
        """
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._growth_tracker.item()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state.

        Args:
            state_dict: Result of `state_dict`.

        Raises:
            UserError: It is that of a disabled scaler, or none of a scaler (MLC0783).

        Example:
            >>> scaler = mlc.amp.GradScaler("cpu")
            >>> scaler.load_state_dict(mlc.amp.GradScaler("cpu", init_scale=4.0).state_dict())
            >>> scaler.get_scale()
            4.0
        """
        if not self._enabled:
            return
        if not state_dict:
            raise UserError("the state is empty, as that of a disabled scaler", code="MLC0783", loc=user_loc())
        if missing := [name for name in self.state_dict() if name not in state_dict]:
            raise UserError(f"the state has no {missing[0]}", code="MLC0783", loc=user_loc(),
                            hint="load the result of state_dict of a scaler")
        self._set(float(state_dict["scale"]), int(state_dict["_growth_tracker"]))
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]


def _check_factors(growth: float, backoff: float) -> None:
    """UserError unless the scale grows and shrinks by these factors."""
    if not (growth > 1 and backoff < 1):
        raise UserError(f"growth_factor = {growth}, backoff_factor = {backoff}", code="MLC0783", loc=user_loc(),
                        hint="the first is above 1, the second below")


def _unscaled(grads: list[Tensor], scale: Tensor) -> tuple[list[Tensor], Tensor]:
    """Gradients divided by a factor, and whether all were finite."""
    finite = functools.reduce(E.logical_and, [E.isfinite(g).all() for g in grads], full((), True))
    return [g * (1.0 / scale) for g in grads], finite


coded_methods(GradScaler, ("__init__", "scale", "unscale_", "step", "update", "load_state_dict", "set_growth_factor",
                           "set_backoff_factor", "set_growth_interval"))
