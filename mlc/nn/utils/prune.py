"""Pruning, parameters some of whose elements are masked to 0: the functions of torch.nn.utils.prune.

A pruned parameter `weight` becomes `weight_orig`, with a buffer `weight_mask`; the attribute is their product. Pruning
it again takes from what is left, and `remove` makes the product the parameter.

Example:
    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 1), "weight", amount=0.5)
    >>> (layer.weight == 0).sum().item(), nn.utils.prune.is_pruned(layer)
    (2, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.generator import default_generator
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.diag import UserError
from mlc.nn.module import Module
from mlc.nn.utils.computed import compute, give_up, held_tensor, hold, stop_computing
from mlc.nn.utils.pruning_method import BasePruningMethod

__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "RandomStructured",
           "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
           "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove"]
Array = np.ndarray[Any, Any]


def _mask(module: Module, name: str, choose: Callable[[Array, Array], Array],
          importance_scores: Tensor | None = None) -> Module:
    """Multiply a tensor's mask by what `choose` gives for the scores and the mask so far."""
    pruned = f"{name}_mask" in vars(module)
    tensor = getattr(module, f"{name}_orig") if pruned else held_tensor(module, name)
    mask = getattr(module, f"{name}_mask").numpy() if pruned else np.ones(tuple(tensor.shape), np.float32)
    scores = (tensor * mask if pruned else tensor).detach() if importance_scores is None else importance_scores
    if tuple(scores.shape) != tuple(tensor.shape):
        raise UserError(f"importance_scores of shape {list(scores.shape)} for a tensor of shape {list(tensor.shape)}",
                        code="MLC0746", loc=user_loc())
    new = wrap((mask * choose(scores.numpy(), mask)).astype(tensor.backing_array.dtype))
    if pruned:
        setattr(module, f"{name}_mask", new)
        return module
    give_up(module, name)
    hold(module, f"{name}_orig", tensor, tensor)
    module.register_buffer(f"{name}_mask", new)
    compute(module, name, lambda self: getattr(self, f"{name}_orig") * getattr(self, f"{name}_mask"))
    return module


def _count(amount: float, size: int) -> int:
    """How many of `size` an amount stands for."""
    whole = isinstance(amount, int) and not isinstance(amount, bool)
    if isinstance(amount, bool) or amount < 0 or (not whole and amount > 1) or (whole and amount > size):
        raise UserError(f"amount = {amount}, expected a part of 1, or an integer up to {size}", code="MLC0746",
                        loc=user_loc())
    return int(amount) if whole else round(amount * size)


def _without(where: Array, shape: tuple[int, ...]) -> Array:
    out = np.ones(shape, np.float32)
    out.reshape(-1)[where] = 0
    return out


def _least(amount: float, order: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """Masks the unmasked elements that come first in an order of their scores."""
    def choose(scores: Array, mask: Array) -> Array:
        left = np.flatnonzero(mask)
        return _without(left[order(scores.reshape(-1)[left])[:_count(amount, left.size)]], scores.shape)
    return choose


def _least_slices(amount: float, dim: int, order: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """Masks the slices along a dimension, of those that are not masked as a whole, that come first in an order."""
    def choose(scores: Array, mask: Array) -> Array:
        if not -scores.ndim <= dim < scores.ndim:
            raise UserError(f"dim = {dim} of a tensor of {scores.ndim} dimensions", code="MLC0356", loc=user_loc())
        rows = np.moveaxis(mask, dim, 0).reshape(mask.shape[dim], -1)
        left = np.flatnonzero(rows.any(1))
        slices = np.moveaxis(scores, dim, 0).reshape(mask.shape[dim], -1)[left]
        out = np.ones(mask.shape, np.float32)
        np.moveaxis(out, dim, 0)[left[order(slices)[:_count(amount, left.size)]]] = 0
        return out
    return choose


def _at_random(scores: Array) -> Array:
    return default_generator.numpy().permutation(len(scores))


def _by_magnitude(scores: Array) -> Array:
    return np.argsort(abs(scores), kind="stable")


def _by_norm(n: float) -> Callable[[Array], Array]:
    return lambda slices: np.argsort(np.linalg.norm(slices.reshape(len(slices), -1), n, 1), kind="stable")


def _given(mask: Tensor) -> Callable[[Array, Array], Array]:
    """Masks the elements for which a mask is 0."""
    def choose(scores: Array, _: Array) -> Array:
        given = np.asarray(mask)
        if given.shape != scores.shape:
            raise UserError(f"a mask of shape {list(given.shape)} for a tensor of shape {list(scores.shape)}",
                            code="MLC0746", loc=user_loc())
        return np.asarray(given != 0)
    return choose


@coded
def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Mask the elements of least magnitude.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: How many elements, an integer, or which part of them.
        importance_scores: Tensor of the parameter's shape whose magnitudes count instead.

    Returns:
        The module.

    Raises:
        UserError: `amount` is out of range, or the scores have another shape (MLC0746), or the module has no such
            tensor (MLC0743).

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=0.5)
        >>> int((layer.weight == 0).sum())
        4
    """
    return _mask(module, name, _least(amount, _by_magnitude), importance_scores)


@coded
def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Mask elements at random.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: How many elements, an integer, or which part of them.

    Returns:
        The module.

    Raises:
        UserError: `amount` is out of range (MLC0746), or the module has no such tensor (MLC0743).

    Example:
        >>> layer = nn.utils.prune.random_unstructured(nn.Linear(4, 2), "weight", amount=3)
        >>> int((layer.weight_mask == 0).sum())
        3
    """
    return _mask(module, name, _least(amount, _at_random))


@coded
def ln_structured(module: Module, name: str, amount: float, n: float, dim: int,
                  importance_scores: Tensor | None = None) -> Module:
    """Mask the slices along a dimension whose norms are least.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: How many slices, an integer, or which part of them.
        n: Exponent of the norm, as in `mlc.norm`.
        dim: The dimension.
        importance_scores: Tensor of the parameter's shape whose norms count instead.

    Returns:
        The module.

    Raises:
        UserError: `amount` is out of range, or the scores have another shape (MLC0746), `dim` is out of range
            (MLC0356), or the module has no such tensor (MLC0743).

    Example:
        >>> layer = nn.utils.prune.ln_structured(nn.Linear(4, 2), "weight", amount=1, n=2, dim=0)
        >>> int((layer.weight == 0).sum())
        4
    """
    return _mask(module, name, _least_slices(amount, dim, _by_norm(n)), importance_scores)


@coded
def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Mask slices along a dimension at random.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        amount: How many slices, an integer, or which part of them.
        dim: The dimension.

    Returns:
        The module.

    Raises:
        UserError: `amount` is out of range (MLC0746), `dim` is (MLC0356), or the module has no such tensor (MLC0743).

    Example:
        >>> layer = nn.utils.prune.random_structured(nn.Linear(4, 2), "weight", amount=1, dim=1)
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    return _mask(module, name, _least_slices(amount, dim, _at_random))


@coded
def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Mask the elements for which a mask is 0.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.
        mask: Tensor of its shape.

    Returns:
        The module.

    Raises:
        UserError: The mask has another shape (MLC0746), or the module has no such tensor (MLC0743).

    Example:
        >>> nn.utils.prune.custom_from_mask(nn.Linear(1, 2), "bias", mlc.tensor([0, 0])).bias.tolist()
        [0.0, 0.0]
    """
    return _mask(module, name, _given(mask))


@coded
def identity(module: Module, name: str) -> Module:
    """Give a parameter a mask of ones.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.

    Returns:
        The module.

    Raises:
        UserError: The module has no such tensor (MLC0743).

    Example:
        >>> sorted(nn.utils.prune.identity(nn.Linear(1, 2), "bias").state_dict())
        ['bias_mask', 'bias_orig', 'weight']
    """
    return _mask(module, name, lambda scores, _: np.ones(scores.shape))


class _Built(BasePruningMethod):
    """A method that this module has a function for, by its `choose`."""

    choose: Callable[[Array, Array], Array]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        scores, mask = t.detach().numpy(), default_mask.numpy()
        return wrap((mask * self.choose(scores, mask)).astype(mask.dtype))


class Identity(_Built):
    """Pruning method that keeps all elements.

    Example:
        >>> nn.utils.prune.Identity().prune(mlc.ones(2)).tolist()
        [1.0, 1.0]
    """

    def __init__(self) -> None:
        self.choose = lambda scores, mask: np.ones(scores.shape)


class L1Unstructured(_Built):
    """Pruning method: the elements of least magnitude, also of all parameters of `global_unstructured` together.

    Args:
        amount: How many elements, an integer, or which part of them.

    Example:
        >>> nn.utils.prune.L1Unstructured(amount=1).prune(mlc.tensor([1.0, -3.0])).tolist()
        [0.0, -3.0]
    """

    def __init__(self, amount: float) -> None:
        self.choose = _least(amount, _by_magnitude)


class RandomUnstructured(_Built):
    """Pruning method: elements at random, also of all parameters of `global_unstructured` together.

    Args:
        amount: How many elements, an integer, or which part of them.

    Example:
        >>> nn.utils.prune.RandomUnstructured(amount=1).prune(mlc.ones(2)).sum().item()
        1.0
    """

    def __init__(self, amount: float) -> None:
        self.choose = _least(amount, _at_random)


class RandomStructured(_Built):
    """Pruning method: slices along a dimension at random.

    Args:
        amount: How many slices, an integer, or which part of them.
        dim: The dimension.

    Example:
        >>> nn.utils.prune.RandomStructured(amount=1, dim=0).prune(mlc.ones(2, 3)).sum().item()
        3.0
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.dim, self.choose = dim, _least_slices(amount, dim, _at_random)


class LnStructured(_Built):
    """Pruning method: the slices along a dimension whose norms are least.

    Args:
        amount: How many slices, an integer, or which part of them.
        n: Exponent of the norm.
        dim: The dimension.

    Example:
        >>> nn.utils.prune.LnStructured(amount=1, n=2, dim=0).prune(mlc.tensor([[1.0], [2.0]])).tolist()
        [[0.0], [2.0]]
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: float, dim: int = -1) -> None:
        self.dim, self.choose = dim, _least_slices(amount, dim, _by_norm(n))


class CustomFromMask(_Built):
    """Pruning method: the elements for which a mask is 0.

    Args:
        mask: Tensor of the parameter's shape.

    Example:
        >>> nn.utils.prune.CustomFromMask(mlc.tensor([0, 1])).prune(mlc.ones(2)).tolist()
        [0.0, 1.0]
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask, self.choose = mask, _given(mask)


@coded
def global_unstructured(parameters: Iterable[tuple[Module, str]], pruning_method: Any,
                        importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
                        **keywords: Any) -> None:
    """Mask elements of several parameters, chosen among all of them together.

    Args:
        parameters: Pairs of a module and the name of a parameter of it.
        pruning_method: `L1Unstructured`, `RandomUnstructured`, or a class of one's own, a `BasePruningMethod` whose
            PRUNING_TYPE is "unstructured".
        importance_scores: Tensors whose magnitudes count instead, for some of the pairs.
        keywords: Arguments of that class, as `amount`: how many elements, an integer, or which part of them.

    Raises:
        UserError: `amount` is out of range or the method is no such class (MLC0746), or a module has no such tensor
            (MLC0743).

    Example:
        >>> a, b = nn.Linear(4, 2), nn.Linear(2, 2)
        >>> nn.utils.prune.global_unstructured([(a, "weight"), (b, "weight")], nn.utils.prune.L1Unstructured, amount=6)
        >>> int((a.weight == 0).sum() + (b.weight == 0).sum())
        6
    """
    if not (isinstance(pruning_method, type) and issubclass(pruning_method, BasePruningMethod)
            and pruning_method.PRUNING_TYPE == "unstructured"):
        raise UserError(f"{pruning_method!r} is no pruning method of several parameters", code="MLC0746",
                        loc=user_loc(), hint="use L1Unstructured or RandomUnstructured")
    pairs = list(parameters)
    scores = [(importance_scores or {}).get((m, name)) for m, name in pairs]
    values = [(getattr(m, f"{name}_orig" if is_masked(m, name) else name).detach() if s is None else s).numpy()
              for (m, name), s in zip(pairs, scores)]
    masks = [getattr(m, f"{name}_mask").numpy() if is_masked(m, name) else np.ones(v.shape)
             for (m, name), v in zip(pairs, values)]
    method = pruning_method(**keywords)
    whole = method.left(*(np.concatenate([x.ravel() for x in xs]) for xs in (values, masks)))
    ends = np.cumsum([v.size for v in values])
    for (m, name), value, part in zip(pairs, values, np.split(whole, ends[:-1])):
        custom_from_mask(m, name, wrap(part.reshape(value.shape).astype(np.float32)))


def is_masked(module: Module, name: str) -> bool:
    """Whether a parameter of a module itself is pruned."""
    return f"{name}_mask" in vars(module)


@coded
def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one inside it, is pruned.

    Args:
        module: The module.

    Returns:
        A bool.

    Example:
        >>> nn.utils.prune.is_pruned(nn.Sequential(nn.utils.prune.identity(nn.Linear(1, 2), "bias")))
        True
    """
    return any(name.endswith("_mask") and f"{name[:-5]}_orig" in vars(m) for m in module.modules() for name in vars(m))


@coded
def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with its masked elements 0.

    Args:
        module: The module, which is changed.
        name: Name of the parameter.

    Returns:
        The module.

    Raises:
        UserError: The parameter is not pruned (MLC0746).

    Example:
        >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(4, 2), "weight", amount=0.5)
        >>> list(nn.utils.prune.remove(layer, "weight").state_dict())
        ['bias', 'weight']
    """
    if not is_masked(module, name):
        raise UserError(f"{type(module).__name__}.{name} is not pruned", code="MLC0746", loc=user_loc())
    tensor, value = getattr(module, f"{name}_orig"), getattr(module, name).detach()
    stop_computing(module, name)
    give_up(module, f"{name}_orig")
    give_up(module, f"{name}_mask")
    tensor.replace_elements(value)
    hold(module, name, tensor, tensor)
    return module


BasePruningMethod.prune_by, BasePruningMethod.undo = staticmethod(_mask), staticmethod(remove)
