"""The graph of recorded operations: a node per operation, and edges to the tensors that it was called with.

Edges point from a result to what it was computed from, and nothing points back, so that a graph is freed with the last
result that needs it.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

Hook = Callable[..., Any]
Place = tuple[int, int]
"""Identity of a value of the graph: of its node and the number of the output, or of a leaf's metadata and -1."""
_numbers = itertools.count()


class AutogradMeta:
    """Record of a tensor that requires a gradient or has one.

    node     the node that computed the tensor; None for a leaf
    number   which of the node's outputs it is
    grad     the gradient accumulated so far
    hooks    functions of the gradient, called when it is complete, by the key that removes them
    after    the same for leaves, called on the tensor once `grad` is updated
    """

    __slots__ = ("__weakref__", "after", "grad", "hooks", "is_parameter", "node", "number", "requires_grad")

    def __init__(self, requires_grad: bool = False, node: Node | None = None, number: int = -1) -> None:
        self.requires_grad = requires_grad
        self.node = node
        self.number = number
        self.grad: Tensor | None = None
        self.is_parameter = False
        self.hooks: dict[int, Hook] = {}
        self.after: dict[int, tuple[Hook, Tensor]] = {}

    @property
    def place(self) -> Place:
        """Identity of the value in the graph."""
        return id(self if self.node is None else self.node), self.number

    @property
    def retains(self) -> bool:
        """Whether the gradient is accumulated although the tensor is no leaf."""
        return self.node is not None and self.number in self.node.retained

    def retain(self) -> None:
        """Have the gradient accumulated although the tensor is no leaf."""
        if self.node is not None:
            self.node.retained[self.number] = weakref.ref(self)

    def add_hook(self, key: int, hook: Hook) -> None:
        """Register a function of the gradient."""
        self.hooks[key] = hook
        if self.node is not None:
            self.node.hooks[self.number] = self.hooks


def kept(x: Any) -> Any:
    """An operand as it is now: a tensor of the same history and elements, which in-place operations do not change."""
    if isinstance(x, np.ndarray):
        return x.copy() if x.flags.writeable else x
    if not hasattr(x, "_autograd"):
        return x
    out = object.__new__(type(x))
    out._array, out._autograd = x._array, x._autograd
    if x._storage is not None:
        x._storage.save(out)
    return out


def alone(x: Tensor) -> Tensor:
    """A tensor of the same elements, without history, that shares what is written to it with no other."""
    out = object.__new__(type(x))
    out._array = x._array if x._storage is None else x._array.copy()
    return out


class Edge:
    """Connection of a node to a tensor that it was computed from: output `number` of `node`, or the leaf `meta`."""

    __slots__ = ("meta", "node", "number")

    def __init__(self, meta: AutogradMeta) -> None:
        self.node = meta.node
        self.number = meta.number
        self.meta = meta if meta.node is None else None

    @property
    def place(self) -> Place:
        """Identity of the value in the graph."""
        return id(self.meta if self.node is None else self.node), self.number


class Node:
    """A recorded computation. `pull` is its vector-Jacobian product.

    edges     to the operands that require a gradient
    count     the number of its results that require one
    hooks     of its results, by their numbers
    retained  the metadata of the results whose gradient is accumulated, by their numbers
    sequence  grows with time, so that a node comes after all those that it depends on
    """

    __slots__ = ("count", "edges", "hooks", "released", "retained", "sequence")

    def __init__(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        self.sequence = next(_numbers)
        self.released = False
        self.edges = [Edge(t.autograd_meta) for t in operands]
        self.count = len(results)
        self.hooks: dict[int, dict[int, Hook]] = {}
        self.retained: dict[int, weakref.ref[AutogradMeta]] = {}
        for number, t in enumerate(results):
            t._autograd = AutogradMeta(True, self, number)

    def name(self) -> str:
        """Name of the node in messages, such as MulBackward."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes of the operands, each with the number of the output; None for leaves."""
        return tuple((edge.node, max(edge.number, 0)) for edge in self.edges)

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """The cotangents of the operands, one per edge, from those of the results, where None stands for zeros."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop the saved operands, after which `pull` is impossible."""
        self.released = True

    def check_saved(self) -> None:
        """Raise UserError if the saved operands have been dropped."""
        if self.released:
            raise UserError(f"backward goes through {self.name()} a second time, and what it had saved was dropped "
                            "after the first", code="MLC0431", loc=user_loc(),
                            hint="call the first backward with retain_graph=True, or compute the loss anew")

    def __repr__(self) -> str:
        return f"<{self.name()}>"
