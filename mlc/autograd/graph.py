"""The recorded graph under the names of torch.autograd.graph: nodes, and hooks on what they save and compute.

A tensor's `grad_fn` is the node of the operation that made it, and `next_functions` are the nodes of its operands.
`saved_tensors_hooks` packs what nodes save for their gradients, such as into a file; `save_on_cpu` is one of these.

Example:
    >>> x = mlc.tensor(2.0, requires_grad=True)
    >>> isinstance((x * x).grad_fn, mlc.autograd.graph.Node)
    True
    >>> with mlc.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), mlc.tensor):
    ...     y = x * x
    >>> mlc.autograd.grad(y, x)
    (tensor(4., dtype=mlc.float32),)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.autograd import engine, saved_tensors
from mlc.frontend.autograd.differentiable import recorded
from mlc.frontend.autograd.engine import in_progress
from mlc.frontend.autograd.graph import AutogradMeta, Node, edge_to, node_of
from mlc.frontend.autograd.hooks import RemovableHandle
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

__all__ = ["GradientEdge", "Node", "disable_saved_tensors_hooks", "get_gradient_edge", "register_multi_grad_hook",
           "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks(saved_tensors.PairOfHooks):
    """Context manager in whose scope a function packs each tensor that is saved for backward, and another unpacks it.

    Neither is recorded. The tensor that is unpacked has the history of the one that was packed.

    Args:
        pack_hook: Function of a tensor that returns anything.
        unpack_hook: Function of that, which returns a tensor of the same shape, dtype and elements.

    Raises:
        UserTypeError: A hook is no function, or the second returns something else (MLC0727).
        UserError: Hooks are disabled here (MLC0728).

    Example:
        >>> x = mlc.tensor(3.0, requires_grad=True)
        >>> with mlc.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), mlc.tensor):
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        tensor(6., dtype=mlc.float32)
    """


class save_on_cpu(saved_tensors_hooks):
    """Context manager in whose scope tensors that are saved for backward are kept in the memory of the CPU.

    Args:
        pin_memory: Accepted for PyTorch's sake.
        device_type: Accepted for PyTorch's sake: the tensor goes back to the device that it came from.

    Example:
        >>> x = mlc.tensor(3.0, requires_grad=True)
        >>> with mlc.autograd.graph.save_on_cpu():
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        tensor(6., dtype=mlc.float32)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: (x.device, x.cpu()), lambda packed: packed[1].to_device(packed[0]))


for _class in (saved_tensors_hooks, save_on_cpu):
    coded_methods(_class, ("__init__",))


@coded
def disable_saved_tensors_hooks(error_message: str) -> saved_tensors.Disabled:
    """Context manager and decorator in whose scope hooks on saved tensors are an error.

    Args:
        error_message: Message of that error.

    Returns:
        A context manager.

    Raises:
        UserError: Hooks are added within it, or it is entered within theirs (MLC0728).

    Example:
        >>> with mlc.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     mlc.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        <...saved_tensors_hooks object at ...>
    """
    return saved_tensors.Disabled(error_message)


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives: an output of a node.

    Args:
        node: The node.
        output_nr: The number of the output.

    Example:
        >>> mlc.autograd.graph.get_gradient_edge(mlc.ones(1, requires_grad=True) * 2)
        GradientEdge(node=<MulBackward>, output_nr=0)
    """

    node: Node
    output_nr: int


@coded
def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Find where the gradient of a tensor arrives.

    Args:
        tensor: A tensor that requires a gradient.

    Returns:
        The node that computed it, or that accumulates the gradient of a leaf, and the number of the output.

    Raises:
        UserError: It does not require a gradient (MLC0430).

    Example:
        >>> mlc.autograd.graph.get_gradient_edge(mlc.ones(1, requires_grad=True)).node
        <AccumulateGrad>
    """
    recorded(tensor, "the tensor")
    edge = edge_to(tensor)
    return GradientEdge(node_of(edge), max(edge.number, 0))


@coded
def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *,
                             mode: str = "all") -> RemovableHandle:
    """Call a function of the gradients of several tensors, once in each backward pass.

    Args:
        tensors: Tensors that require a gradient.
        fn: Function of a list with the gradient of each, None for those that the pass does not reach, called when all
            have been computed; for "any", function of the gradient that is computed first. Its result is ignored.
        mode: "all" or "any".

    Returns:
        A handle whose `remove()` unregisters the hook.

    Raises:
        UserError: A tensor does not require a gradient (MLC0430), or the mode is neither (MLC0732).

    Example:
        >>> x, y = mlc.ones(1, requires_grad=True), mlc.ones(1, requires_grad=True)
        >>> handle = mlc.autograd.graph.register_multi_grad_hook([x, y], lambda found: print(found))
        >>> (2 * x).sum().backward()
        [tensor([2.], dtype=mlc.float32), None]
    """
    if mode not in ("all", "any"):
        raise UserError(f"mode is {mode!r}", code="MLC0732", loc=user_loc(), hint='it is "all" or "any"')
    metas = [recorded(x, f"tensor {i}") for i, x in enumerate(tensors)]
    handle = RemovableHandle(*(meta.hooks for meta in metas))
    hook = _Several(metas, fn, mode == "any")
    for meta in {id(meta): meta for meta in metas}.values():
        meta.add_hook(handle.key, hook.of(meta))
    return handle


class _Several:
    """Collects the gradients of one backward pass at a time."""

    def __init__(self, metas: Sequence[AutogradMeta], fn: Callable[..., Any], any_one: bool) -> None:
        self.places = [(meta.place, meta.node) for meta in metas]
        self.fn, self.any_one = fn, any_one
        self.found: dict[Any, Any] = {}
        self.run: weakref.ref[engine.Run] | None = None

    def of(self, meta: AutogradMeta) -> Callable[[Any], None]:
        """The hook of one of the tensors."""
        place = meta.place

        def hook(gradient: Any) -> None:
            run = in_progress.run
            assert run is not None
            first = self.run is None or self.run() is not run
            if first:
                self.run, self.found = weakref.ref(run), {}
            self.found[place] = gradient
            if self.any_one:
                if first:
                    self.fn(gradient)
            elif all(p in self.found for p, node in self.places if run.reaches(p, node)):
                found, self.found = self.found, {}
                self.fn([found.get(p) for p, _ in self.places])

        return hook
