"""Calls that native code serves although they have to be recorded for `Tensor.backward`: an argument requires a
gradient, or a tensor that the function reaches by itself, as a compiled module reaches its parameters.

The code runs as in `no_grad`. Afterwards `RecordedCalls` makes the node of the call: what there is to find out is the
same for all calls as long as the guards of the fast path hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlc.frontend.autograd.function_node import FunctionNode, Saved, Split
from mlc.frontend.autograd.graph import Edge, edge_to
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.tensor import Tensor, wrap

if TYPE_CHECKING:
    from mlc.backends.cpu.captured import CapturedInputs


class _Plan(NamedTuple):
    """The nodes of calls in which the same arguments require a gradient.

    wrt     the positions of the operands that do
    edges   the edges to those that are captured inputs
    places  those of the results that have a history
    """

    wrt: tuple[int, ...]
    edges: list[Edge]
    places: list[int]


class RecordedCalls:
    """Makes the nodes of calls on the fast path.

    own       number of the arguments of a call, before the captured inputs
    returned  numbers of the results that a call returns
    inputs    the captured inputs of the code, which stay when the fast path is given up during a call
    history   the places of results that have a history at present, given the arguments that require a gradient
    split     what the code leaves for backward; None if that computes all
    captured  what knows the state of the inputs that the guards are for
    """

    captured: CapturedInputs

    def __init__(self, recorded: Recorded, own: int, returned: Sequence[int], inputs: Sequence[Any],
                 history: Callable[[tuple[int, ...]], list[int]], split: Split | None) -> None:
        self.recorded, self.own, self.returned, self.inputs, self.history = recorded, own, returned, inputs, history
        self.split = split
        self._state: object = None                         # of the captured inputs, that the plans are for
        self._plans: dict[tuple[int, ...], _Plan] = {}     # by the arguments that require a gradient
        self._replaced: dict[int, dict[int, Any]] = {}     # arrays by the thread that calls

    @property
    def replaces(self) -> bool:
        """Whether `keep` has to be called before a call."""
        return bool(self.recorded.stored) or any(type(x) is np.ndarray for x in self.inputs)

    def keep(self) -> None:
        """Keep the elements of captured inputs that the call replaces, or the next one writes."""
        replaced = {j: self.inputs[j]._array for j in self.recorded.stored}
        replaced.update((j, x.copy()) for j, x in enumerate(self.inputs) if type(x) is np.ndarray)
        self._replaced[threading.get_ident()] = replaced

    def __call__(self, *values: Any) -> None:
        """Record a call that has returned the first of the values on the others; the last is what it has left for
        backward, if it leaves anything."""
        count, saved = len(self.returned), None
        if self.split is not None:
            saved = Saved(self.split, values[-1], self.captured.reclaim)
            values = values[:-1]
        given = values[count:]
        wanted = tuple([i for i, x in enumerate(given) if type(x) is Tensor and x.requires_grad])
        replaced = self._replaced.pop(threading.get_ident(), {})
        plan = self._plan(wanted)
        if not plan.places:
            return
        operands = [*given, *self.inputs]
        for j, x in replaced.items():
            operands[self.own + j] = wrap(x)               # a tensor, which hooks of saved tensors may ask for
        FunctionNode(self.recorded.function, plan.wrt, [*[edge_to(given[i]) for i in wanted], *plan.edges], operands,
                     [self.returned[i] for i in plan.places], [values[i] for i in plan.places], self.recorded.depends,
                     saved)

    def _plan(self, wanted: tuple[int, ...]) -> _Plan:
        if self._state is not self.captured.snapshot:
            self._state, self._plans = self.captured.snapshot, {}
        plan = self._plans.get(wanted)
        if plan is None:
            reached = [(self.own + j, x) for j, x in enumerate(self.inputs)
                       if type(x) is Tensor and x.requires_grad]
            plan = self._plans[wanted] = _Plan((*wanted, *(i for i, _ in reached)), [edge_to(x) for _, x in reached],
                                               self.history(wanted))
        return plan
