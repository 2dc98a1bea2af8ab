"""Gradients of what has been computed: `backward` and `grad` go through the recorded operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend import backward as recorded_backward
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.differentiable import listed, recorded, root
from mlc.frontend.autograd.engine import gradients_of, run_backward
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state as recording
from mlc.ir.diag import UserError

Tensors = Tensor | Sequence[Tensor]


@coded
def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Tensors | None = None) -> None:
    """Compute the gradient of the sum of tensors with respect to leaves, and add it to their `grad`.

    Args:
        tensors: A tensor, or several.
        grad_tensors: The cotangents, one for each; None for 1, where a tensor has a single element.
        retain_graph: Whether what was saved for the gradient is kept; None for the value of `create_graph`.
        create_graph: Whether the computation of the gradient is recorded in turn.
        inputs: The tensors whose `grad` is updated; None for all leaves that require it.

    Raises:
        UserError: A tensor does not require a gradient (MLC0430), what was saved has been dropped (MLC0431), or a
            cotangent is missing or has another shape (MLC0432).

    Example:
        >>> w = mlc.tensor(3.0, requires_grad=True)
        >>> mlc.autograd.backward([w * w, 2 * w])
        >>> w.grad
        tensor(8., dtype=mlc.float32)
    """
    if recording.trace is not None:
        every = listed(tensors)
        return recorded_backward.run_backward(every, _given(grad_tensors, len(every)), create_graph, inputs)
    only = None if inputs is None else [recorded(x, f"input {i}") for i, x in enumerate(listed(inputs))]
    run_backward(_roots(tensors, grad_tensors), create_graph if retain_graph is None else retain_graph, create_graph,
                 only)


@coded
def grad(outputs: Tensors, inputs: Tensors, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         materialize_grads: bool = False) -> tuple[Any, ...]:
    """Gradients of the sum of tensors with respect to others. No `grad` is changed.

    This one looks back at what has been computed; `mlc.grad` gives the gradient of a function.

    Args:
        outputs: A tensor, or several.
        inputs: What to differentiate by: a tensor, or several.
        grad_outputs: The cotangents of `outputs`, one for each; None for 1, where a tensor has a single element.
        retain_graph: Whether what was saved for the gradient is kept; None for the value of `create_graph`.
        create_graph: Whether the computation of the gradient is recorded in turn.
        only_inputs: PyTorch's, which it ignores too: no other gradients are computed.
        allow_unused: Whether `outputs` need not depend on each of `inputs`; None for the value of `materialize_grads`.
        materialize_grads: Whether the gradient by an input that they do not depend on is zeros, and not None.

    Returns:
        Tuple of gradients, one for each input, of its shape and dtype.

    Raises:
        UserError: A tensor does not require a gradient (MLC0430), what was saved has been dropped (MLC0431), a
            cotangent is missing or has another shape (MLC0432), or the outputs do not depend on an input (MLC0437).

    Example:
        >>> x = mlc.tensor(3.0, requires_grad=True)
        >>> first, = mlc.autograd.grad(x**3, x, create_graph=True)
        >>> mlc.autograd.grad(first, x)
        (tensor(18., dtype=mlc.float32),)
    """
    chosen = listed(inputs)
    if recording.trace is not None:
        every = listed(outputs)
        found = recorded_backward.gradients_of(every, chosen, _given(grad_outputs, len(every)), create_graph)
    else:
        wanted = [recorded(x, f"input {i}") for i, x in enumerate(chosen)]
        found = gradients_of(_roots(outputs, grad_outputs), wanted,
                             create_graph if retain_graph is None else retain_graph, create_graph)
    allowed = materialize_grads if allow_unused is None else allow_unused
    for i, (x, gradient) in enumerate(zip(chosen, found)):
        if gradient is not None:
            if x.composite and not gradient.composite:     # the gradient by the values of a sparse tensor
                found[i] = x.with_values(gradient)
            continue
        if not allowed:
            raise UserError(f"the outputs do not depend on input {i}, of shape {list(x.shape)}", code="MLC0437",
                            loc=user_loc(), hint="leave it out, or pass allow_unused=True for None in its place")
        if materialize_grads:
            found[i] = x.new_zeros(x.shape)
    return tuple(found)


def _given(cotangents: Any, count: int) -> Sequence[Any]:
    """The cotangents of `count` tensors."""
    given = [None] * count if cotangents is None else listed(cotangents)
    if len(given) != count:
        raise UserError(f"{len(given)} cotangents are given for {count} tensors", code="MLC0432", loc=user_loc())
    return given


def _roots(tensors: Any, cotangents: Any) -> Any:
    every = listed(tensors)
    given = _given(cotangents, len(every))
    one = len(every) == 1
    return [root(x, ct, "the tensor" if one else f"tensor {i}") for i, (x, ct) in enumerate(zip(every, given))]
