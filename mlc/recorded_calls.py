"""Calls that native code serves although they have to be recorded for `Tensor.backward`: those of functions that reach
tensors which require a gradient by themselves, as a compiled module reaches its parameters.

The code runs as in `no_grad`. Afterwards `RecordedCalls` makes the node of the call: what there is to find out is the
same for all calls as long as the guards of the fast path hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlc.frontend.autograd.function_node import FunctionNode
from mlc.frontend.autograd.graph import Edge, edge_to
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from mlc.backends.cpu.captured import CapturedInputs


class _Plan(NamedTuple):
    """The nodes of calls in one state: `wrt` and `edges` are those of a node, `places` those of the results that have
    a history."""

    state: object
    wrt: tuple[int, ...]
    edges: list[Edge]
    places: list[int]


class RecordedCalls:
    """Makes the nodes of calls on the fast path.

    own       number of the arguments of a call, before the captured inputs
    returned  numbers of the results that a call returns
    history   the places of those that have a history at present
    captured  the captured inputs of the fast path
    """

    captured: CapturedInputs

    def __init__(self, recorded: Recorded, own: int, returned: Sequence[int], history: Callable[[], list[int]]) -> None:
        self.recorded, self.own, self.returned, self.history = recorded, own, returned, history
        self._plan = _Plan(None, (), [], [])
        self._replaced: dict[int, dict[int, Any]] = {}     # by the thread that calls

    @property
    def replaces(self) -> bool:
        """Whether a call replaces elements of captured inputs, so that `keep` has to be called before it."""
        return bool(self.recorded.stored) or any(type(x) is np.ndarray for x in self.captured.inputs)

    def keep(self) -> None:
        """Keep the elements of captured inputs that the call replaces, or the next one writes."""
        inputs = self.captured.inputs
        replaced = {j: inputs[j]._array for j in self.recorded.stored}
        replaced.update((j, x.copy()) for j, x in enumerate(inputs) if type(x) is np.ndarray)
        self._replaced[threading.get_ident()] = replaced

    def __call__(self, *values: Any) -> None:
        """Record a call that has returned the first of the values on the others."""
        plan = self._plan
        if plan.state is not self.captured.snapshot:
            plan = self._plan = self._planned()
        if not plan.places:
            return
        count = len(self.returned)
        operands = [*values[count:], *self.captured.inputs]
        for j, x in self._replaced.pop(threading.get_ident(), {}).items():
            operands[self.own + j] = x
        FunctionNode(self.recorded.function, plan.wrt, plan.edges, operands, [self.returned[i] for i in plan.places],
                     [values[i] for i in plan.places], self.recorded.depends)

    def _planned(self) -> _Plan:
        wanted = [(self.own + j, x) for j, x in enumerate(self.captured.inputs)
                  if type(x) is Tensor and x.requires_grad]
        return _Plan(self.captured.snapshot, tuple(i for i, _ in wanted), [edge_to(x) for _, x in wanted],
                     self.history())
