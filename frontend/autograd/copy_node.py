"""Copies that are made without an operation, to other memory or to another device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.autograd.differentiable import Differentiable
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node
from mlc.frontend.autograd.tangents import put_tangent, tangent_of

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor


class CopyNode(Node):
    """A recorded copy: the cotangent goes back to the device of the original."""

    __slots__ = ("device",)

    def __init__(self, original: Tensor, result: Tensor) -> None:
        super().__init__([original], [result])
        self.device = original.device

    def name(self) -> str:
        return "CopyBackward"

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        cotangent, = cotangents
        return [None if cotangent is None else cotangent.to_device(self.device)]

    def check_saved(self) -> None:
        """Nothing is saved."""


def same_elements(result: Tensor, original: Any) -> Tensor:
    """`result`, recorded as a copy of `original` if that requires a gradient."""
    if isinstance(original, Differentiable) and mode.enabled and original.requires_grad:
        CopyNode(original, result)  # type: ignore[arg-type]
    if (tangent := tangent_of(original)) is not None:
        put_tangent(result, tangent.clone() if result.device == tangent.device else tangent.to_device(result.device))
    return result
