"""Averages of parameters over the steps of a training."""

from __future__ import annotations

from typing import Any

from mlc.frontend import tree
from mlc.frontend.arguments import coded_methods
from mlc.frontend.functions import create
from mlc.frontend.tensor import Operand


class MovingAverage:
    """Exponential moving average of parameters: a = decay * a + (1 - decay) * p.

    Buffers and frozen parameters of modules are those of the model as it is. It is a pure function of trees: it may be
    part of a compiled step. (Polyak and Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging", take
    the mean of all steps.)

    Args:
        decay: Weight of the average so far; a number, or a tensor of one element.

    Example:
        >>> average = mlc.optim.MovingAverage(0.9)
        >>> smooth = average.init(mlc.tensor([1.0]))
        >>> average.update(smooth, mlc.tensor([2.0]))
        tensor([1.1], dtype=mlc.float32)
    """

    def __init__(self, decay: Operand = 0.999) -> None:
        self.decay = decay

    def init(self, params: Any) -> Any:
        """Copy the parameters.

        Args:
            params: Tree of parameters.

        Returns:
            Tree of the same structure, with tensors of its own.

        Example:
            >>> mlc.optim.MovingAverage(0.5).init({"w": mlc.tensor([2.0])})["w"]
            tensor([2.], dtype=mlc.float32)
        """
        return tree.map(create.tensor, params)

    def update(self, average: Any, params: Any) -> Any:
        """Move the average toward the parameters.

        Args:
            average: Result of `init` or of the last `update`.
            params: Tree of the same structure.

        Returns:
            The new average.

        Example:
            >>> average = mlc.optim.MovingAverage(0.5)
            >>> average.update({"w": mlc.tensor([2.0])}, {"w": mlc.tensor([4.0])})["w"]
            tensor([3.], dtype=mlc.float32)
        """
        leaves, structure = tree.flatten(params)
        rows = zip(tree.matching_leaves(structure, average), leaves, tree.trained(params))
        return structure.unflatten([a + (1 - self.decay) * (p - a) if trained else p for a, p, trained in rows])


coded_methods(MovingAverage, ("__init__", "init", "update"))
