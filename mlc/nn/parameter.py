"""Parameter: the mark of a tensor that is trained."""

from __future__ import annotations

import inspect
from typing import Any, Self

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.tensor import Tensor, as_backing_array, wrap
from mlc.frontend.views import detached


class _ParameterType(type):
    """Type of `Parameter`: its instances are the tensors that are marked, so that there is one class of tensors."""

    def __instancecheck__(cls, x: Any) -> bool:
        meta = getattr(x, "_autograd", None) if type(x) is Tensor else None
        return meta is not None and meta.is_parameter


class Parameter(Tensor, metaclass=_ParameterType):
    """Tensor that is trained: an attribute of a module that is assigned one is a parameter from then on.

    It is a leaf of the recorded graph: `backward` accumulates its gradient in `grad`, and optimizers update it in
    place.

    Args:
        data: A tensor, whose elements it shares, an array, or what `mlc.tensor` takes.
        requires_grad: False for a parameter that is frozen, as by `Module.freeze`.

    Returns:
        Tensor that `isinstance(x, nn.Parameter)` holds for.

    Example:
        >>> class Scale(nn.Module):
        ...     def __init__(self):
        ...         self.scale = nn.Parameter(mlc.ones(3))
        >>> [name for name, _ in Scale().named_parameters()]
        ['scale']
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        return _parameter(*args, **keywords)  # type: ignore[return-value]


def _parameter(data: Any = (), requires_grad: bool = True) -> Tensor:
    own = detached(data) if type(data) is Tensor else wrap(as_backing_array(data))
    return mark_parameter(own, requires_grad)


Parameter.__signature__ = inspect.signature(_parameter)  # type: ignore[attr-defined]
_parameter = coded(_parameter, "Parameter")
