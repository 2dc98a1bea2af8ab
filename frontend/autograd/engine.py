"""The engine: goes through recorded nodes backward, from results to leaves, and sums cotangents where paths meet."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.graph import AutogradMeta, Edge, Hook, Node, Place, alone
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

_accumulating = threading.RLock()
"""Held while a gradient is added to, since several threads may add to one leaf."""
Root = tuple[AutogradMeta, "Tensor"]
"""A tensor to start from, and its cotangent."""


def run_backward(roots: Sequence[Root], retain_graph: bool, create_graph: bool,
                 only: Collection[AutogradMeta] | None = None) -> None:
    """Propagate the cotangents of `roots` to the leaves, and accumulate them in `only` these, or in all leaves.

    With `create_graph`, what is computed here is recorded in turn.
    """
    chosen = None if only is None else {meta.place: meta for meta in only}
    with GradMode(create_graph):
        run = _Run(roots, retain_graph, create_graph, chosen)
        run.go()
        for meta, cotangent in run.gradients() if chosen is None else (
                (meta, run.found[place]) for place, meta in chosen.items() if place in run.found and not meta.retains):
            run.accumulate(meta, cotangent)


def gradients_of(roots: Sequence[Root], wanted: Sequence[AutogradMeta], retain_graph: bool,
                 create_graph: bool) -> list[Tensor | None]:
    """The gradients of tensors, None for those that the roots do not depend on; nothing is accumulated."""
    with GradMode(create_graph):
        run = _Run(roots, retain_graph, create_graph, [meta.place for meta in wanted])
        run.go()
        return [run.found.get(meta.place) for meta in wanted]


class _Run:
    """One pass backward.

    wanted   the values whose gradients are kept in `found`; None to accumulate in all leaves
    pending  the cotangents of the outputs of nodes that are still to run
    leaves   the cotangents that have arrived at leaves
    """

    def __init__(self, roots: Sequence[Root], retain_graph: bool, create_graph: bool,
                 wanted: Collection[Place] | None) -> None:
        self.retain_graph, self.create_graph = retain_graph, create_graph
        self.wanted = frozenset(wanted or ())
        self.all_leaves = wanted is None
        self.queue: list[tuple[int, Node]] = []
        self.pending: dict[Node, list[Tensor | None]] = {}
        self.leaves: dict[AutogradMeta, Tensor] = {}
        self.found: dict[Place, Tensor] = {}
        for meta, cotangent in roots:
            self.arrive(Edge(meta), cotangent)

    def arrive(self, edge: Edge, cotangent: Tensor) -> None:
        """Add a cotangent to what has arrived at an output of a node, or at a leaf."""
        if edge.meta is not None:
            before = self.leaves.get(edge.meta)
            self.leaves[edge.meta] = cotangent if before is None else before + cotangent
        elif edge.node is not None:
            waiting = self.pending.get(edge.node)
            if waiting is None:
                waiting = self.pending[edge.node] = [None] * edge.node.count
                heapq.heappush(self.queue, (-edge.node.sequence, edge.node))
            before = waiting[edge.number]
            waiting[edge.number] = cotangent if before is None else before + cotangent

    def go(self) -> None:
        """Run the nodes, each after all that depend on it."""
        needed = None if self.all_leaves else _leading_to(self.wanted, [node for _, node in self.queue])
        while self.queue:
            _, node = heapq.heappop(self.queue)
            arrived = self.pending.pop(node)
            runs = needed is None or node in needed
            if not runs and not any((id(node), i) in self.wanted for i in range(node.count)):
                continue
            cotangents = [x if x is None else self.complete(node, i, x) for i, x in enumerate(arrived)]
            if not runs:
                continue
            node.check_saved()
            for edge, cotangent in zip(node.edges, node.pull(cotangents)):
                if cotangent is not None:
                    self.arrive(edge, cotangent)
            if not self.retain_graph:
                node.release()
        for meta, cotangent in self.leaves.items():
            if not self.all_leaves and meta.place not in self.wanted:
                continue
            self.leaves[meta] = _hooked(meta.hooks.values(), cotangent)
            if meta.place in self.wanted:
                self.found[meta.place] = self.leaves[meta]

    def complete(self, node: Node, number: int, cotangent: Tensor) -> Tensor:
        """The cotangent of an output after its hooks, once all its parts have arrived."""
        cotangent = _hooked(node.hooks.get(number, {}).values(), cotangent)
        place = id(node), number
        if place in self.wanted:
            self.found[place] = cotangent
        meta = node.retained[number]() if number in node.retained else None
        if meta is not None:
            self.accumulate(meta, cotangent)
        return cotangent

    def gradients(self) -> list[tuple[AutogradMeta, Tensor]]:
        """The leaves that require a gradient, each with the one that has arrived."""
        return [(meta, x) for meta, x in self.leaves.items() if meta.requires_grad]

    def accumulate(self, meta: AutogradMeta, cotangent: Tensor) -> None:
        """Add to the gradient that a tensor holds."""
        with _accumulating:
            if self.create_graph:
                meta.grad = cotangent if meta.grad is None else meta.grad + cotangent
            elif meta.grad is None:
                meta.grad = alone(cotangent)
            else:
                meta.grad.add_(cotangent)
        for hook, tensor in list(meta.after.values()):
            hook(tensor)


def _hooked(hooks: Collection[Hook], cotangent: Tensor) -> Tensor:
    """The cotangent after hooks, each of which returns another one, or None to leave it as it is."""
    for hook in list(hooks):
        changed = hook(cotangent)
        if changed is None:
            continue
        if getattr(changed, "shape", None) != cotangent.shape or changed.dtype is not cotangent.dtype:
            shown = f"a {type(changed).__name__}" if not hasattr(changed, "dtype") else (
                f"one of shape {list(changed.shape)} and dtype {changed.dtype}")
            raise UserTypeError(f"a hook returned {shown} for a gradient of shape {list(cotangent.shape)} and dtype "
                                f"{cotangent.dtype}", code="MLC0436", loc=user_loc(),
                                hint="return a tensor of the same shape and dtype, or None to leave it as it is")
        cotangent = changed
    return cotangent


def _leading_to(wanted: Collection[Place], start: Sequence[Node]) -> set[Node]:
    """The nodes from which a path leads to one of the values `wanted`, which are all that have to run."""
    seen: set[Node] = set()
    work = list(start)
    while work:
        node = work.pop()
        if node not in seen:
            seen.add(node)
            work += [edge.node for edge in node.edges if edge.node is not None]
    needed: set[Node] = set()
    for node in sorted(seen, key=lambda node: node.sequence):
        if any(edge.place in wanted or edge.node in needed for edge in node.edges):
            needed.add(node)
    return needed
