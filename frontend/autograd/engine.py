"""The engine: goes through recorded nodes backward, from results to leaves, and sums cotangents where paths meet."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from mlc.frontend.autograd import anomaly_mode
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.autograd.graph import AutogradMeta, Edge, LeafEdge, Node, Place, alone
from mlc.frontend.autograd.hooks import Hook, check_gradient
from mlc.ir.diag import Error

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

_accumulating = threading.RLock()
"""Held while a gradient is added to, since several threads may add to one leaf."""


class _InProgress(threading.local):
    """The pass backward of this thread, innermost first."""

    run: Run | None = None


class LeafHooks:
    """Whether any leaf ever had a function to call after its gradient: a pass looks for such leaves only then."""

    registered = False


in_progress = _InProgress()
Root = tuple[AutogradMeta, "Tensor"]
"""A tensor to start from, and its cotangent."""


def run_backward(roots: Sequence[Root], retain_graph: bool, create_graph: bool,
                 only: Collection[AutogradMeta] | None = None) -> None:
    """Propagate the cotangents of `roots` to the leaves, and accumulate them in `only` these, or in all leaves.

    With `create_graph`, what is computed here is recorded in turn.
    """
    chosen = None if only is None else {meta.place: meta for meta in only}
    with GradMode(create_graph):
        run = Run(roots, retain_graph, create_graph, chosen)
        around, in_progress.run = in_progress.run, run
        try:
            run.go()
            for meta, cotangent in run.gradients() if chosen is None else (
                    (meta, run.found[place]) for place, meta in chosen.items()
                    if place in run.found and not meta.retains):
                run.accumulate(meta, cotangent)
            for callback in run.at_end:
                callback()
        finally:
            in_progress.run = around


def queue_callback(callback: Callable[[], None]) -> None:
    """Have a function be called at the end of the pass backward that calls a hook now."""
    assert in_progress.run is not None, "no pass is in progress"
    in_progress.run.at_end.append(callback)


def gradients_of(roots: Sequence[Root], wanted: Sequence[AutogradMeta], retain_graph: bool,
                 create_graph: bool) -> list[Tensor | None]:
    """The gradients of tensors, None for those that the roots do not depend on; nothing is accumulated."""
    with GradMode(create_graph):
        run = Run(roots, retain_graph, create_graph, [meta.place for meta in wanted])
        run.go()
        return [run.found.get(meta.place) for meta in wanted]


class Run:
    """One pass backward.

    wanted   the values whose gradients are kept in `found`; None to accumulate in all leaves
    pending  the cotangents of the outputs of nodes that are still to run
    leaves   the cotangents that have arrived at leaves
    awaited  of leaves with functions to call after their gradient: the number of cotangents that are still to come
    at_end   functions to call once all is accumulated
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
        self.roots = [meta for meta, _ in roots]
        self.reached: frozenset[Place] | None = None
        self.at_end: list[Callable[[], None]] = []
        self.awaited: dict[AutogradMeta, int] = {}
        for meta, cotangent in roots:
            self.arrive(meta, cotangent)

    def arrive(self, edge: Edge, cotangent: Tensor | None) -> None:
        """Add a cotangent to what has arrived at an output of a node, or at a leaf. None is zeros, for which the node
        runs nevertheless, since its function may be the program's own."""
        node = edge.node
        if node is None:
            if cotangent is None:
                return
            meta = edge.meta if isinstance(edge, LeafEdge) else edge
            before = self.leaves.get(meta)
            self.leaves[meta] = cotangent if before is None else _sum(before, cotangent)
        else:
            waiting = self.pending.get(node)
            if waiting is None:
                waiting = self.pending[node] = [None] * node.count
                heapq.heappush(self.queue, (-node.sequence, node))
            before = waiting[edge.number]
            if cotangent is not None:
                waiting[edge.number] = cotangent if before is None else _sum(before, cotangent)

    def go(self) -> None:
        """Run the nodes, each after all that depend on it."""
        around, in_progress.run = in_progress.run, self
        try:
            self._go()
        finally:
            in_progress.run = around

    def _go(self) -> None:
        needed = None if self.all_leaves else _leading_to(self.wanted, [node for _, node in self.queue])
        if self.all_leaves and LeafHooks.registered:
            self._await_leaves()
        while self.queue:
            _, node = heapq.heappop(self.queue)
            arrived = self.pending.pop(node)
            runs = needed is None or node in needed
            if not runs and not any((id(node), i) in self.wanted for i in range(node.count)):
                continue
            cotangents: Sequence[Tensor | None] = arrived
            if node.attached is not None or self.wanted:
                cotangents = [x if x is None else self.complete(node, i, x) for i, x in enumerate(arrived)]
            if not runs:
                continue
            for edge, cotangent in zip(node.edges, _pulled(node, cotangents)):
                self.arrive(edge, cotangent)
            if self.awaited:
                self._complete_leaves(node)
            if not self.retain_graph:
                node.release()
        for meta, cotangent in self.leaves.items():
            if not self.all_leaves and meta.place not in self.wanted:
                continue
            self.leaves[meta] = _hooked(meta.hooks.values(), cotangent)
            if meta.place in self.wanted:
                self.found[meta.place] = self.leaves[meta]

    def _await_leaves(self) -> None:
        """Count the cotangents that leaves with functions to call after their gradient will get."""
        for node in _nodes_from([node for _, node in self.queue]):
            for edge in node.edges:
                if isinstance(edge, LeafEdge) and edge.meta.after:
                    self.awaited[edge.meta] = self.awaited.get(edge.meta, 0) + 1

    def _complete_leaves(self, node: Node) -> None:
        """Accumulate the gradients that are complete with what a node has given: whoever was promised a call for them
        can work while the pass goes on, such as send them to other processes."""
        for edge in node.edges:
            if isinstance(edge, LeafEdge) and edge.meta in self.awaited:
                meta = edge.meta
                self.awaited[meta] -= 1
                if not self.awaited[meta]:
                    del self.awaited[meta]
                    cotangent = self.leaves.pop(meta, None)
                    if cotangent is not None and meta.requires_grad:
                        self.accumulate(meta, _hooked(meta.hooks.values(), cotangent))

    def reaches(self, place: Place, node: Node | None) -> bool:
        """Whether a gradient by a value, an output of `node` or a leaf, arrives in this pass, to be given to hooks."""
        if self.reached is None:
            nodes = _nodes_from([meta.node for meta in self.roots if meta.node is not None])
            self.reached = frozenset([meta.place for meta in self.roots] + [e.place for n in nodes for e in n.edges])
            self.needed = None if self.all_leaves else _leading_to(self.wanted, list(nodes))
        return place in self.reached and (self.needed is None or place in self.wanted or node in self.needed)

    def complete(self, node: Node, number: int, cotangent: Tensor) -> Tensor:
        """The cotangent of an output after its hooks, once all its parts have arrived."""
        attached, place = node.attached, (id(node), number)
        if attached is not None:
            cotangent = _hooked(attached.of_results.get(number, {}).values(), cotangent)
        if place in self.wanted:
            self.found[place] = cotangent
        if attached is not None and number in attached.retained:
            meta = attached.retained[number]()
            if meta is not None:
                self.accumulate(meta, cotangent)
        return cotangent

    def gradients(self) -> list[tuple[AutogradMeta, Tensor]]:
        """The leaves that require a gradient, each with the one that has arrived."""
        return [(meta, x) for meta, x in self.leaves.items() if meta.requires_grad]

    def accumulate(self, meta: AutogradMeta, cotangent: Tensor) -> None:
        """Add to the gradient that a tensor holds."""
        leaf = None if meta.accumulator is None else meta.accumulator()
        if leaf is not None and leaf.attached is not None:
            cotangent, = leaf.attached.run_before([cotangent], leaf.name())
        with _accumulating:
            if self.create_graph:
                meta.grad = cotangent if meta.grad is None else _sum(meta.grad, cotangent)
            elif meta.grad is None:
                meta.grad = alone(cotangent)
            elif meta.grad.composite or cotangent.composite:
                meta.grad = _sum(meta.grad, cotangent)
            else:
                meta.grad.add_(cotangent)
        for hook, tensor in list(meta.after.values()):
            hook(tensor)
        if leaf is not None and leaf.attached is not None:
            leaf.attached.run_after([], [cotangent], leaf.name())


def _sum(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two cotangents; if only one is sparse, it is the second operand."""
    return b + a if a.composite and not b.composite else a + b


def _pulled(node: Node, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """The cotangents of the operands of a node, after its own hooks."""
    attached = node.attached
    if not node.takes_zeros and cotangents[0] is None and all(x is None for x in cotangents):
        return [None] * len(node.edges)
    if attached is not None:
        cotangents = attached.run_before(cotangents, node.name())
    try:
        node.check_saved()
        found = node.pull(cotangents)
        if anomaly_mode.state.check is not None:
            anomaly_mode.state.check(node, cotangents, found)
    except Error as error:
        if anomaly_mode.state.enabled:
            anomaly_mode.add_note(error, node.name(), node.metadata)
        raise
    return found if attached is None else attached.run_after(found, cotangents, node.name())


def _hooked(hooks: Collection[Hook], cotangent: Tensor) -> Tensor:
    """The cotangent after hooks, each of which returns another one, or None to leave it as it is."""
    for hook in list(hooks):
        changed = hook(cotangent)
        if changed is not None:
            check_gradient(changed, cotangent)
            cotangent = changed
    return cotangent


def _leading_to(wanted: Collection[Place], start: Sequence[Node]) -> set[Node]:
    """The nodes from which a path leads to one of the values `wanted`, which are all that have to run."""
    needed: set[Node] = set()
    for node in sorted(_nodes_from(start), key=lambda node: node.sequence):
        if any(edge.place in wanted or edge.node in needed for edge in node.edges):
            needed.add(node)
    return needed


def _nodes_from(start: Sequence[Node]) -> set[Node]:
    """The nodes to which paths lead."""
    seen: set[Node] = set()
    work = list(start)
    while work:
        node = work.pop()
        if node not in seen:
            seen.add(node)
            work += [edge.node for edge in node.edges if edge.node is not None]
    return seen
