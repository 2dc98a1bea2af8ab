"""Parameter: the mark of a tensor that is trained."""

from __future__ import annotations

from typing import Any

from mlc.frontend.arguments import coded_methods
from mlc.frontend.tensor import Tensor, as_array


class Parameter(Tensor):
    """Tensor that is trained: an attribute of a module that is assigned one is a parameter from then on.

    The module holds the tensor itself under that name. Unlike torch.nn.Parameter it is never changed in place: an
    update makes a new model.

    Args:
        data: A tensor, an array, or what `mlc.tensor` takes.
        requires_grad: False for a parameter that is frozen, as by `Module.freeze`.

    Example:
        >>> class Scale(nn.Module):
        ...     def __init__(self):
        ...         self.scale = nn.Parameter(mlc.ones(3))
        >>> [name for name, _ in Scale().named_parameters()]
        ['scale']
    """

    __slots__ = ("tensor", "trains")

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        self.tensor = data if type(data) is Tensor else Tensor(as_array(data))
        self.trains = bool(requires_grad)
        self._array = self.tensor.backing_array


coded_methods(Parameter, ("__init__",))
