"""The graph of recorded operations: a node per operation, and edges to the tensors that it was called with.

Edges point from a result to what it was computed from, and nothing points back, so that a graph is freed with the last
result that needs it.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.autograd import anomaly_mode
from mlc.frontend.autograd.hooks import Hook, NodeHooks, RemovableHandle
from mlc.frontend.autograd.tangents import put_tangent, tangent_of
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

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
    accumulator  the node that stands for a leaf, while the program holds it

    It is the edge to the tensor, too, unless that is a leaf.
    """

    __slots__ = ("__weakref__", "accumulator", "after", "grad", "hooks", "is_parameter", "node", "number",
                 "requires_grad")

    def __init__(self, requires_grad: bool = False, node: Node | None = None, number: int = -1) -> None:
        self.requires_grad = requires_grad
        self.node = node
        self.number = number
        self.grad: Tensor | None = None
        self.is_parameter = False
        self.hooks: dict[int, Hook] = {}
        self.after: dict[int, tuple[Hook, Tensor]] = {}
        self.accumulator: weakref.ref[AccumulateGrad] | None = None

    @property
    def place(self) -> Place:
        """Identity of the value in the graph."""
        return id(self if self.node is None else self.node), self.number

    @property
    def retains(self) -> bool:
        """Whether the gradient is accumulated although the tensor is no leaf."""
        node = self.node
        return node is not None and node.attached is not None and self.number in node.attached.retained

    def retain(self) -> None:
        """Have the gradient accumulated although the tensor is no leaf."""
        if self.node is not None:
            self.node.hooked.retained[self.number] = weakref.ref(self)

    def add_hook(self, key: int, hook: Hook) -> None:
        """Register a function of the gradient."""
        self.hooks[key] = hook
        if self.node is not None:
            self.node.hooked.of_results[self.number] = self.hooks


def kept(x: Any) -> Any:
    """An operand as it is now: a tensor of the same history and elements, which in-place operations do not change."""
    if isinstance(x, np.ndarray):
        return x.copy() if x.flags.writeable else x
    if not hasattr(x, "_autograd"):
        return x
    out = object.__new__(type(x))
    out._array, out._autograd = x._array, x._autograd
    if (storage := x._storage) is not None:
        storage.save(out)
    if (tangent := tangent_of(x)) is not None:
        put_tangent(out, kept(tangent))
    return out


def alone(x: Tensor) -> Tensor:
    """A tensor of the same elements, without history, that shares what is written to it with no other."""
    if x.composite:
        static, components = x.tree_flatten()
        return x.tree_unflatten(static, [alone(part) for part in components])  # type: ignore[no-any-return]
    return tensor_of(x._array if x._storage is None else x._array.copy(), x)


def tensor_of(array: Any, like: Tensor) -> Tensor:
    """A tensor of an array that belongs to nobody else."""
    out = object.__new__(type(like))
    out._array = array
    return out


class LeafEdge:
    """Connection of a node to a leaf that it was computed from, which it keeps."""

    __slots__ = ("leaf", "meta")
    node = None
    number = -1

    def __init__(self, meta: AutogradMeta, leaf: Tensor) -> None:
        self.meta, self.leaf = meta, leaf

    @property
    def place(self) -> Place:
        """Identity of the value in the graph."""
        return self.meta.place


Edge = AutogradMeta | LeafEdge
"""Connection of a node to a tensor that it was computed from: output `number` of `node`, or a leaf."""


def edge_to(x: Tensor) -> Edge:
    """The edge to a tensor."""
    meta = x.autograd_meta
    return LeafEdge(meta, x) if meta.node is None else meta


class Node:
    """A recorded computation. `pull` is its vector-Jacobian product.

    Args:
        operands: Tensors that it was computed from and that require a gradient.
        results: Tensors that it computed, whose history it becomes.

    Example:
        >>> y = mlc.ones(2, requires_grad=True) * 3
        >>> y.grad_fn, y.grad_fn.next_functions
        (<MulBackward>, ((<AccumulateGrad>, 0),))
    """

    # edges     to the operands that require a gradient
    # count     the number of its results that require one
    # sequence  grows with time, so that a node comes after all those that it depends on
    # attached  the hooks of the node and of its results, and its metadata; None for most

    __slots__ = ("attached", "count", "edges", "released", "sequence")
    takes_zeros = False
    """Whether `pull` is called although no cotangent has arrived."""

    def __init__(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        self.link([edge_to(t) for t in operands], results)

    def link(self, edges: list[Edge], results: Sequence[Tensor]) -> None:
        """Become the history of the results, with edges to what they were computed from."""
        self.sequence = next(_numbers)
        self.released = False
        self.attached: NodeHooks | None = None
        self.edges = edges
        self.count = len(results)
        for number, t in enumerate(results):
            t._autograd = AutogradMeta(True, self, number)
        if anomaly_mode.state.enabled:
            anomaly_mode.tell_line(self.metadata)

    def name(self) -> str:
        """Name of the node in messages, such as MulBackward."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[Node, int], ...]:
        """The nodes of the operands that require a gradient, each with the number of the output: of leaves, the nodes
        that accumulate gradients, whose `variable` is the leaf."""
        return tuple((node_of(edge), max(edge.number, 0)) for edge in self.edges)

    @property
    def hooked(self) -> NodeHooks:
        """The hooks of the node itself, and its metadata, made if there are none."""
        if self.attached is None:
            self.attached = NodeHooks()
        return self.attached

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the program to store something with the node."""
        return self.hooked.metadata

    def register_hook(self, fn: Hook) -> RemovableHandle:
        """Call a function whenever backward has gone through the node.

        Args:
            fn: Function of the gradients of the inputs and of those of the outputs, two tuples, that returns a tuple to
                take the place of the first, or None.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> x = mlc.tensor(3.0, requires_grad=True)
            >>> y = x * x
            >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: print(outputs[0].item()))
            >>> y.backward()
            1.0
        """
        handle = RemovableHandle(self.hooked.after)
        self.hooked.after[handle.key] = fn
        return handle

    def register_prehook(self, fn: Hook) -> RemovableHandle:
        """Call a function whenever backward is about to go through the node.

        Args:
            fn: Function of the gradients of the outputs, a tuple, that returns another one to go on with, or None.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> x = mlc.tensor(3.0, requires_grad=True)
            >>> y = x * 2
            >>> handle = y.grad_fn.register_prehook(lambda outputs: (10 * outputs[0],))
            >>> y.backward()
            >>> x.grad
            tensor(20., dtype=mlc.float32)
        """
        handle = RemovableHandle(self.hooked.before)
        self.hooked.before[handle.key] = fn
        return handle

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


class AccumulateGrad(Node):
    """Stands for a leaf among the nodes: the gradients that arrive are added to the `grad` of `variable`."""

    __slots__ = ("__weakref__", "variable")

    def __init__(self, variable: Tensor) -> None:
        super().__init__([], [])
        self.count, self.variable = 1, variable

    def name(self) -> str:
        return "AccumulateGrad"


def node_of(edge: Edge) -> Node:
    """The node at the end of an edge."""
    if isinstance(edge, LeafEdge):
        return accumulator_of(edge)
    assert edge.node is not None
    return edge.node


def accumulator_of(edge: LeafEdge) -> AccumulateGrad:
    """The node that stands for the leaf at the end of an edge; the same one as long as the program holds it."""
    found = None if edge.meta.accumulator is None else edge.meta.accumulator()
    if found is None:
        found = AccumulateGrad(edge.leaf)
        edge.meta.accumulator = weakref.ref(found)
    return found
