"""What optimisers share: settings, and one rule per parameter applied over trees."""

from __future__ import annotations

from typing import Any

from mlc.frontend import tree
from mlc.frontend.functions import create
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


class Optimizer:
    """`init` makes the state of parameters, `update` moves them by their gradients."""

    def __init__(self, lr: float) -> None:
        self.check("lr", lr)
        self.lr = lr

    @staticmethod
    def check(name: str, value: Any, below: float = float("inf")) -> None:
        if not 0 <= value < below:
            raise UserError(f"{name} = {value} is not in [0, {below})", code="MLC0383", loc=user_loc())

    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first update."""
        raise NotImplementedError

    def update(self, grads: Any, state: dict[str, Any], params: Any, lr: Operand = None) -> tuple[Any, dict[str, Any]]:
        """(new parameters, new state); `lr` stands in for the optimiser's own, for schedules."""
        raise NotImplementedError


def zeros_like(params: Any) -> Any:
    """A tree of zeros, each with memory of its own."""
    return tree.map(create.zeros_like, params)


def leaves_of(params: Any, *trees: Any) -> tuple[tree.Structure, list[tuple[Tensor, ...]]]:
    """The structure of the parameters, and the leaves that belong together, one tuple for each parameter."""
    first, structure = tree.flatten(params)
    return structure, list(zip(first, *(tree.matching_leaves(structure, t) for t in trees)))


def trees_of(structure: tree.Structure, rows: list[tuple[Any, ...]], count: int) -> list[Any]:
    """`count` trees from one tuple of leaves for each parameter."""
    return [structure.unflatten([row[i] for row in rows]) for i in range(count)]
