"""Steps of an optimizer whose parameters, slots and settings are those of the step before: one call of their code.

The first step of a group finds out everything anew, and compiles the update (parameter_groups.py). What follows has to
look at the gradients, which are new tensors each time, and otherwise to make sure that nothing else has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlc.backends.executable import Entry
from mlc.checks import Checks
from mlc.dispatch_cache import Specialization
from mlc.frontend import tree
from mlc.frontend.autocast import process as autocast
from mlc.frontend.autograd.tangents import duals
from mlc.frontend.captures import take_over
from mlc.frontend.dispatch import GATE
from mlc.frontend.tensor import Tensor
from mlc.ir.types import to_numpy
from mlc.repeated_call import RepeatedCall

MAX_RECYCLED = 64 << 20
"""Bytes of results up to which the memory of replaced elements is kept for later steps."""


class RepeatedStep:
    """The steps of a group after its first one.

    settings  of the group, without the learning rate
    params    the parameters that had a gradient, all of those of the group
    held      their states, and the slots in them, in order
    call      the code: of the gradients, the number of updates, the learning rate, other settings, parameters, slots
    """

    def __init__(self, settings: Mapping[str, Any], params: Sequence[Tensor], held: Sequence[dict[str, Any]],
                 names: Sequence[str], entry: Entry, numbers: Mapping[str, Any], results: Sequence[int]) -> None:
        self.settings, self.params, self.held = {**settings}, [*params], [*held]
        self.slots: list[tuple[dict[str, Any], str, Tensor]] = [(h, name, h[name]) for name in names for h in held]
        self.moved = [*params, *(x for _, _, x in self.slots)]
        self.count, self.rate = np.zeros((), np.int64), np.zeros(())
        constants = [np.asarray(x) for x in tree.leaves(numbers)]
        self.captured, first = [self.count, self.rate, *constants, *self.moved], 2 + len(constants)
        size = sum(x.numel() * x.element_size() for x in self.moved)
        self.call = RepeatedCall(entry, len(params), [(first + i, n) for i, n in enumerate(results)],
                                 results if size <= MAX_RECYCLED else ())
        self.results = results

    @staticmethod
    def of(settings: Mapping[str, Any], params: Sequence[Tensor], held: Sequence[dict[str, Any]], names: Sequence[str],
           codes: Sequence[Specialization], numbers: Mapping[str, Any]) -> RepeatedStep | None:
        """The steps after one of this code; None if there is none that only computes results of these tensors."""
        every = [x for h in held for x in map(h.__getitem__, names)]
        if len(codes) != 1 or any(type(x._array) is not np.ndarray for x in (*params, *every)):
            return None
        code, = codes
        places = [n for kind, n in code.recorded.outputs if kind == "result"]
        inputs = 2 * len(params) + 2 + len(tree.leaves(numbers)) + len(every)
        if (type(code.entry) is not Entry or code.entry.interface.symbols or code.recorded.has_effects
                or len(places) < len(code.recorded.outputs) or len(code.entry.interface.inputs) != inputs
                or len(places) != len(params) + len(every)
                or any(code.entry.interface.results[n].shape != x.shape or
                       to_numpy(code.entry.interface.results[n].dtype) != x._array.dtype
                       for n, x in zip(places, [*params, *(h[name] for name in names for h in held)]))):
            return None
        return RepeatedStep(settings, params, held, names, code.entry, numbers, places)

    def run(self, group: Mapping[str, Any], state: Mapping[Tensor, Any], check: Callable[[str, Any], None]) -> bool:
        """Run a step, if it is as the one before; returns whether it is.

        check  checks a learning rate
        """
        lr, params = group["lr"], group["params"]
        if (type(lr) is not float or len(params) != len(self.params) or GATE.cell_contents is not None
                or autocast["autocast"] is not None or duals.level is not None or Checks.anomaly is not None
                or Checks.every_call or any(group[name] is not x for name, x in self.settings.items())):
            return False
        grads: list[Any] = []
        count = self.held[0]["step"]
        for p, known, held in zip(params, self.params, self.held):
            grad: Any = None if p._autograd is None else p._autograd.grad
            if (p is not known or grad is None or type(grad) is not Tensor or type(grad._array) is not np.ndarray
                    or type(p._array) is not np.ndarray or state.get(p) is not held
                    or held["step"] is not count or grad._array.shape != p._array.shape
                    or grad._array.dtype != p._array.dtype):
                return False
            grads.append(grad._array)
        if type(count) is not int or any(held.get(name) is not x or type(x._array) is not np.ndarray
                                         for held, name, x in self.slots):
            return False
        check("lr", lr)
        if not self.call.lock.acquire(blocking=False):
            return False
        try:
            self.count[()], self.rate[()] = count, lr
            results = self.call.run(grads, self.captured)
        finally:
            self.call.lock.release()
        for x, n in zip(self.moved, self.results):
            if x._storage is None:
                x._array = results[n]
            else:
                take_over(x, results[n])
        count += 1
        for held in self.held:
            held["step"] = count
        return True
