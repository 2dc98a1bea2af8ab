"""Trainable: the part of a module that says whether it is trained, and which of its parameters are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mlc.frontend import tree
from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.tensor import Tensor
from mlc.nn.hierarchy import Hierarchy

M = TypeVar("M", bound="Trainable")


class Trainable(Hierarchy):
    """Base of modules: training and evaluation, frozen parameters, and the gradients that `backward` accumulates."""

    training = True

    def train(self: M, mode: bool = True) -> M:
        """Set training or evaluation, which Dropout, BatchNorm and the like tell apart, in all modules inside.

        Args:
            mode: True for training.

        Returns:
            The module itself.

        Example:
            >>> nn.Dropout(0.5).eval().train().training
            True
        """
        vars(self).pop("training", None)                   # the default of the class is True
        if not mode:
            self.training = False
        for module in self.children():                     # each of which may do so in its own way
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation: `train(False)`. Returns the module itself.

        Example:
            >>> nn.Dropout(0.5).eval().training
            False
        """
        return self.train(False)

    def freeze(self: M, which: Callable[[str], bool] | None = None) -> M:
        """Take parameters out of training: they have no gradient, and optimizers leave them as they are.

        Args:
            which: Predicate of a parameter's name; None for all.

        Returns:
            The module itself.

        Example:
            >>> nn.Linear(2, 3).freeze(lambda name: name == "bias").num_parameters(trained=True)
            6
        """
        return self._freeze(which, lambda frozen, name: frozen if name in frozen else (*frozen, name))

    def unfreeze(self: M, which: Callable[[str], bool] | None = None) -> M:
        """Undo `freeze`.

        Args:
            which: Predicate of a parameter's name; None for all.

        Returns:
            The module itself.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> _ = layer.requires_grad_(False)
            >>> _ = layer.unfreeze()
            >>> layer.weight.requires_grad
            True
        """
        return self._freeze(which, lambda frozen, name: tuple(n for n in frozen if n != name))

    def _freeze(self: M, which: Callable[[str], bool] | None,
                change: Callable[[tuple[str, ...], str], tuple[str, ...]]) -> M:
        for name, owner, attribute, x in list(self._tensors_by_name()):
            if attribute in owner._parameters and (which is None or which(name)):
                frozen = change(tree.frozen_names(owner), attribute)
                vars(owner).pop("_frozen_names", None)
                if frozen:
                    owner._frozen_names = frozen
                if type(x) is Tensor:
                    mark_parameter(x, attribute not in frozen)
        return self

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set whether the parameters are trained: `unfreeze` or `freeze` of all.

        Args:
            requires_grad: Whether they are.

        Returns:
            The module itself.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> [p.requires_grad for p in layer.requires_grad_(False).parameters()]
            [False, False]
        """
        return self.unfreeze() if requires_grad else self.freeze()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients that `backward` has accumulated in the parameters.

        Args:
            set_to_none: Whether they become None, rather than zeros in place.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> layer(mlc.ones(1, 2)).sum().backward()
            >>> layer.zero_grad()
            >>> layer.bias.grad is None
            True
        """
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad.detach_().zero_()
