"""The text of a sparse tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.frontend import printing
from mlc.frontend.devices import CPU
from mlc.frontend.tracer import Tracer

if TYPE_CHECKING:
    from mlc.frontend.sparse.tensor import SparseTensor


def text_of(x: SparseTensor) -> str:
    """The text of a sparse tensor: its components, then what they are of."""
    static, components = x.tree_flatten()
    names = x.component_names(static)
    lines = [f"{name}={_inner(part, name)}" for name, part in zip(names, components)]
    rest = [f"size={tuple(x.shape)}", f"nnz={x._nnz()}", f"dtype={x.dtype}", f"layout={x.layout}"]
    if x.device != CPU:
        rest.append(f"device={x.device!r}")
    if x.grad_fn or x.requires_grad:
        rest.append(f"grad_fn={x.grad_fn}" if x.grad_fn else "requires_grad=True")
    return "tensor(" + ",\n       ".join([*lines, ", ".join(rest)]) + ")"


def _inner(x: Any, name: str) -> str:
    """The text of a component; of a tracer, its type."""
    if isinstance(x, Tracer):
        return repr(x)
    prefix = f"       {name}=tensor("
    array = x.array
    return f"tensor({printing.shown(array, prefix)}{'' if array.size else f', size={array.shape}'})"
