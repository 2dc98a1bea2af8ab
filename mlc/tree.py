"""Maps over trees (pytrees): nested dicts, lists, tuples, named tuples, dataclasses and modules.

Whatever takes or returns tensors here takes and returns trees of them: arguments and results of compiled functions,
gradients, states of optimizers. None is a tree without leaves; anything that is no container is a leaf. A module holds
the tensors among its attributes, and a tensor that it holds twice is one leaf.

Example:
    >>> mlc.tree.map(lambda x: 2 * x, {"w": [1, 2], "b": None})
    {'w': [2, 4], 'b': None}
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from mlc.frontend import tree as trees
from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.frontend.tree import TreeDef as Structure
from mlc.ir.diag import UserTypeError

__all__ = ["flatten", "leaves", "leaves_with_path", "map", "map_with_path", "reduce", "structure",
           "unflatten"]


@coded
def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Flatten a tree into its leaves and its structure.

    Args:
        tree: A tree.

    Returns:
        (leaves, structure): its leaves in order, and all the rest, which can be compared, hashed and passed to
        `unflatten`.

    Example:
        >>> leaves, structure = mlc.tree.flatten({"w": [1, 2], "b": None})
        >>> leaves, mlc.tree.unflatten(structure, [3, 4])
        ([1, 2], {'w': [3, 4], 'b': None})
    """
    return trees.flatten(tree)


@coded
def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Make the tree of a structure with other leaves.

    Args:
        structure: Of a tree, as `flatten` and `structure` give it.
        leaves: As many as the structure has.

    Returns:
        The tree.

    Raises:
        UserTypeError: There are more or fewer leaves (MLC0798).

    Example:
        >>> mlc.tree.unflatten(mlc.tree.structure((1, [2, 3])), "abc")
        ('a', ['b', 'c'])
    """
    given, wanted = list(leaves), structure.count(trees.LEAF)
    if len(given) != wanted:
        raise UserTypeError(f"the structure has {wanted} leaves, found {len(given)}", code="MLC0798", loc=user_loc())
    return structure.unflatten(given)


@coded
def leaves(tree: Any) -> list[Any]:
    """List the leaves of a tree, in order.

    Args:
        tree: A tree.

    Returns:
        A list.

    Example:
        >>> mlc.tree.leaves({"a": 1, "b": (2, [3])})
        [1, 2, 3]
    """
    return trees.leaves(tree)


@coded
def structure(tree: Any) -> Structure:
    """The structure of a tree: all but its leaves.

    Args:
        tree: A tree.

    Returns:
        The structure; two are equal if their trees differ in their leaves alone.

    Example:
        >>> mlc.tree.structure([1, 2]) == mlc.tree.structure(["a", "b"])
        True
    """
    return trees.flatten(tree)[1]


@coded
def leaves_with_path(tree: Any) -> list[tuple[str, Any]]:
    """List the leaves of a tree with their paths, as they are spelled in Python.

    Args:
        tree: A tree.

    Returns:
        A list of pairs of a path and a leaf.

    Example:
        >>> mlc.tree.leaves_with_path({"layers": [1, 2]})
        [("['layers'][0]", 1), ("['layers'][1]", 2)]
    """
    return list(zip(trees.paths(tree), trees.leaves(tree)))


@coded
def map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply a function to the leaves of a tree, or to those of several trees in the same places.

    Args:
        f: Function of one leaf of each tree.
        tree: A tree.
        rest: Further trees of the same structure; dicts match by key.

    Returns:
        A tree of that structure, with the results of f.

    Raises:
        UserTypeError: The structures differ (MLC0377).

    Example:
        >>> mlc.tree.map(lambda w, g: w - 0.1 * g, {"w": 1.0, "b": [2.0]}, {"w": 10.0, "b": [0.0]})
        {'w': 0.0, 'b': [2.0]}
    """
    return trees.map(f, tree, *rest)


@coded
def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply a function to the paths and leaves of a tree.

    Args:
        f: Function of a path, as `leaves_with_path` spells it, and of one leaf of each tree.
        tree: A tree.
        rest: Further trees of the same structure.

    Returns:
        A tree of that structure, with the results of f.

    Raises:
        UserTypeError: The structures differ (MLC0377).

    Example:
        >>> mlc.tree.map_with_path(lambda path, x: f"{path} = {x}", {"a": [1]})
        {'a': ["['a'][0] = 1"]}
    """
    paths = iter(trees.paths(tree))
    return trees.map(lambda *leaves: f(next(paths), *leaves), tree, *rest)


@coded
def reduce(f: Callable[[Any, Any], Any], tree: Any, initial: Any = None) -> Any:
    """Combine the leaves of a tree, from the first to the last.

    Args:
        f: Function of what the leaves before give, and a leaf.
        tree: A tree.
        initial: What comes before the first leaf; None for the first leaf itself.

    Returns:
        The last result of f.

    Raises:
        UserTypeError: The tree has no leaves, and there is no initial value (MLC0798).

    Example:
        >>> mlc.tree.reduce(lambda total, x: total + x.numel(), {"w": mlc.ones(2, 3), "b": mlc.ones(3)}, 0)
        9
    """
    found = trees.leaves(tree)
    if initial is not None:
        return functools.reduce(f, found, initial)
    if not found:
        raise UserTypeError("a tree without leaves is reduced without an initial value", code="MLC0798",
                            loc=user_loc())
    return functools.reduce(f, found)
