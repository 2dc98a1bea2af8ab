"""PyTorch names that mlc deliberately lacks, each with the reason and a replacement.

Looking one up raises an AttributeError, as for any missing name, so that `hasattr` is False.
"""

from __future__ import annotations

from typing import Any, NoReturn

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserAttributeError

Why = tuple[str, str]
"""(reason, replacement)"""

_GRADIENT: Why = ("while a function is recorded, derivatives are taken of functions",
                  "value, gradient = mlc.value_and_grad(loss)(params, x)")
_DEVICE: Why = ("tensors are in the CPU's memory, or on an NVIDIA GPU", 'x.to("cuda"), x.to("cpu")')
_STORAGE: Why = ("the memory is that of a numpy array", "x.numpy() has its strides and its address")
_DRAW: Why = ("random numbers are functions of a key, so that a program draws the same ones compiled or not",
              "key = mlc.random.key(0); the functions of mlc.random take the key as their first argument")
_DENSE: Why = ("a dense tensor has all elements, and no indices", "x.to_sparse() is a sparse one")


def _each(names: str, why: Why) -> dict[str, Why]:
    return dict.fromkeys(names.split(), why)


TENSOR: dict[str, Why] = {
    **_each("indices values crow_indices col_indices ccol_indices row_indices coalesce is_coalesced sparse_resize_",
            _DENSE),
    **_each("xpu pin_memory", _DEVICE),
    **_each("storage untyped_storage", _STORAGE),
    "set_": ("a tensor keeps its storage", "x.data = other"),
}
RECORDED: dict[str, Why] = _each("backward data grad grad_fn requires_grad is_leaf retain_grad "
                                "register_hook requires_grad_ register_post_accumulate_grad_hook", _GRADIENT)
"""Names that only tensors outside of a recorded function have."""
MODULE: dict[str, Why] = {
    **_each("xpu ipu mtia", _DEVICE),
    "register_backward_hook": ("its gradients are those of the last operation alone",
                               "module.register_full_backward_hook(hook)"),
}
MISTAKEN: dict[str, Why] = {
    "backward": ("a layer computes nothing when it is made",
                 "loss = nn.CrossEntropyLoss()(output, target); loss.backward()"),
}
"""Names that modules of PyTorch do not have either."""
PACKAGE: dict[str, Why] = {
    **_each("mps get_device set_default_device", _DEVICE),
}


class Unsupported:
    """Descriptor for an attribute that only PyTorch's tensors have: reading or setting it raises the reason."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> NoReturn:
        raise of_tensor(self.name, tensor)

    def __set__(self, tensor: Any, value: Any) -> NoReturn:
        raise of_tensor(self.name, tensor)


def of_tensor(name: str, tensor: Any) -> AttributeError:
    """The error for a missing attribute of a tensor; for an in-place method, it suggests the one without `_`."""
    why = TENSOR.get(name) or RECORDED.get(name)
    stem = name.removesuffix("_")
    if why is None and stem and stem != name and not name.startswith("_") and hasattr(type(tensor), stem):
        why = f"{stem} has no in-place form", f"x = x.{stem}(...)"
    return error("Tensor", name, why, tensor)


def error(owner: str, name: str, why: Why | None, found_on: Any = None) -> AttributeError:
    """The error for a missing attribute, with the reason if there is one."""
    if why is None:
        return AttributeError(f"{owner!r} has no attribute {name!r}", name=name, obj=found_on)
    return UserAttributeError(f"{owner} has no {name}: {why[0]}", code="MLC0338", loc=user_loc(), hint=why[1])
