"""Pruning methods as classes, whose `compute_mask` a program may define."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.frontend.functions.create import ones_like
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.diag import UserError
from mlc.nn.module import Module

Array = np.ndarray[Any, Any]
Choose = Callable[[Array, Array], Array]
"""Mask of what is kept, as ones and zeros: a function of the scores of the elements, and of the mask so far."""


class BasePruningMethod:
    """Base of pruning methods, as of those that a program defines by `compute_mask`.

    Attributes:
        PRUNING_TYPE: What `compute_mask` is given of a parameter that is pruned already: "unstructured" for a vector of
            the elements that are left, "structured" for the slices that are left along `self.dim`, "global" for all.

    Example:
        >>> class Every2nd(nn.utils.prune.BasePruningMethod):
        ...     def compute_mask(self, t, default_mask):
        ...         mask = default_mask.clone()
        ...         mask.view(-1)[::2] = 0
        ...         return mask
        >>> layer = nn.Linear(1, 4)
        >>> method = Every2nd.apply(layer, "bias")
        >>> layer.bias_mask.tolist()
        [0.0, 1.0, 0.0, 1.0]
    """

    PRUNING_TYPE = "unstructured"
    prune_by: Callable[..., Module]
    """Multiplies the mask of a parameter of a module by what a `Choose` gives (set by `mlc.nn.utils.prune`)."""
    undo: Callable[..., Module]
    """`mlc.nn.utils.prune.remove`."""
    _tensor_name = ""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor.

        Args:
            t: The elements, or their scores.
            default_mask: The mask so far, of the same shape.

        Returns:
            Tensor of that shape: 1 for what is kept, 0 for the rest.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no compute_mask")

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None,
              **keywords: Any) -> Any:
        """Prune a parameter of a module by a method of this class.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.
            args: Arguments of the class.
            importance_scores: Tensor of the parameter's shape that is given to `compute_mask` instead.
            keywords: Arguments of the class.

        Returns:
            The method.
        """
        method = cls(*args, **keywords)
        method._tensor_name = name
        first = f"{name}_mask" not in vars(module)
        BasePruningMethod.prune_by(module, name, method.whole if first else method.left, importance_scores)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor with its masked elements 0.

        Args:
            t: The tensor.
            default_mask: The mask so far; None for ones.
            importance_scores: Tensor of its shape that is given to `compute_mask` instead.

        Returns:
            Tensor of its shape.
        """
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter an ordinary one, as `mlc.nn.utils.prune.remove`.

        Args:
            module: The module.
        """
        BasePruningMethod.undo(module, self._tensor_name)

    def whole(self, scores: Array, mask: Array) -> Array:
        """The choice among all elements."""
        found = np.asarray(self.compute_mask(wrap(np.array(scores)), wrap(mask.astype(scores.dtype))))
        if found.shape != mask.shape:
            raise UserError(f"{type(self).__name__}.compute_mask gave a mask of shape {list(found.shape)} for a tensor "
                            f"of shape {list(mask.shape)}", code="MLC0746", loc=user_loc())
        return found

    def left(self, scores: Array, mask: Array) -> Array:
        """The choice among what a mask has left."""
        if self.PRUNING_TYPE == "global":
            return self.whole(scores, mask)
        out = mask.copy()
        if self.PRUNING_TYPE == "structured":
            dim: int = getattr(self, "dim")  # noqa: B009 # of the program's class
            rows = np.moveaxis(mask, dim, 0).reshape(mask.shape[dim], -1).any(1)
            index = tuple(rows if a == dim % mask.ndim else slice(None) for a in range(mask.ndim))
        elif self.PRUNING_TYPE == "unstructured":
            index = (mask == 1,)
        else:
            raise UserError(f"PRUNING_TYPE = {self.PRUNING_TYPE!r}", code="MLC0746", loc=user_loc(),
                            hint='use "unstructured", "structured" or "global"')
        out[index] = self.whole(scores[index], mask[index])
        return out
