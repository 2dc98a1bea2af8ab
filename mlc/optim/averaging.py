"""Averages of parameters over the steps of a training."""

from __future__ import annotations

from typing import Any

from mlc.frontend import tree
from mlc.frontend.arguments import coded_methods
from mlc.frontend.functions import create
from mlc.frontend.tensor import Operand


class MovingAverage:
    """The exponential moving average of parameters: a = decay * a + (1 - decay) * p

        average = mlc.optim.MovingAverage(0.999)
        smooth = average.init(model)
        smooth = average.update(smooth, model)             # after each step, within it or not

    Buffers and frozen parameters are those of the model as it is.
    """

    def __init__(self, decay: Operand = 0.999) -> None:
        self.decay = decay

    def init(self, params: Any) -> Any:
        """A copy of the parameters."""
        return tree.map(create.tensor, params)

    def update(self, average: Any, params: Any) -> Any:
        leaves, structure = tree.flatten(params)
        rows = zip(tree.matching_leaves(structure, average), leaves, tree.trained(params))
        return structure.unflatten([a + (1 - self.decay) * (p - a) if trained else p for a, p, trained in rows])


coded_methods(MovingAverage, ("__init__", "init", "update"))
