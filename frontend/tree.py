"""Pytrees: flattening, unflattening, and paths of leaves.

A tree is a dict, list, tuple, named tuple, dataclass or `AttributeTree` (mlc.nn.Module is one) of trees; None is a
tree without leaves; anything else is a leaf. The children of a dataclass are its fields and other attributes that hold
arrays; the rest of these, if hashable, belong to the structure. Dicts keep their class, with those of its attributes
that are numbers or texts, and all match each other. The structure is a flat tuple of tokens in textual order, so
comparing and hashing one costs no Python code.

A tensor that occurs several times in an `AttributeTree`, other than as a buffer, is a single leaf, at its first
occurrence: so layers can share a weight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mlc.frontend.leaf_keys import PLAIN, Keys, KeysOf, frozen_leaf
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError

MAX_DEPTH = 200


class Leaf:
    """Base of this package's own leaves: tensors and their specifications.

    shared     whether one object in several places of an `AttributeTree` is one leaf
    composite  whether it is no leaf, but made of some, of which only the last is differentiated, as sparse tensors are;
               `tree_flatten` gives what distinguishes it from others of the same components, and the components,
               `tree_unflatten` makes it of these, and `component_names` names them
    """

    __slots__ = ()
    shared = False
    composite = False

    @property
    def frozen(self) -> bool | None:
        """Whether a parameter is not to be trained; None for other leaves."""
        return None


class AttributeTree:
    """An object whose attributes that hold arrays are its children; its other attributes belong to the structure.

    _parameters    names of the attributes that are differentiated and trained
    _buffers       names of the attributes that are state: not differentiated, and assigned anew while a function runs
    _frozen_names  names of the parameters that are not differentiated for now, unless the tensors say otherwise
    """

    _parameters: tuple[str, ...] = ()
    _buffers: tuple[str, ...] = ()
    _frozen_names: tuple[str, ...] = ()


def frozen_names(x: AttributeTree) -> tuple[str, ...]:
    """The names of the parameters that are not differentiated for now."""
    held = vars(x)
    said = [(name, getattr(held.get(name), "frozen", None)) for name in x._parameters]
    return tuple(name for name, frozen in said if frozen or (frozen is None and name in x._frozen_names))


class Static:
    """Part of a structure: compared by value, or by identity if the value is not hashable."""

    __slots__ = ("hashed", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.hashed: int | None = None                     # of a key that takes long to hash
        if type(value) in PLAIN:
            self.key: Any = frozen_leaf(value)
            return
        try:
            leaves, structure = flatten(value)
            self.key = (structure, *(frozen_leaf(x) for x in leaves))
            self.hashed = hash(self.key)
        except TypeError:
            self.key = id(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key) if self.hashed is None else self.hashed

    def __repr__(self) -> str:
        return repr(self.value)


def _keys(x: dict[Any, Any]) -> tuple[Any, ...]:
    """The keys of a dict as part of a token."""
    names = tuple(x)
    if type(x) is not dict:
        return KeysOf.of(x, names)
    return names if all(type(name) is str for name in names) else Keys(names)


class Named(tuple[str, ...]):
    """The names of the children of a dataclass with attributes besides its fields: `settled` has those without arrays.
    """

    settled: dict[str, Static]

    @classmethod
    def of(cls, fields: tuple[str, ...], attributes: dict[str, Any]) -> Named:
        """Those of a dataclass with these attributes."""
        others = {name: x for name, x in attributes.items() if name not in fields}
        held = {name: _holds_data(x) for name, x in others.items()}
        out = cls((*fields, *(name for name in others if held[name])))
        settled = {name: Static(x) for name, x in others.items() if not held[name]}
        out.settled = {name: x for name, x in settled.items() if isinstance(x.key, tuple)}       # not by its identity
        return out

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and tuple(self) == tuple(other) and self.settled == other.settled

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class _LeafToken:
    def __repr__(self) -> str:
        return "*"


LEAF = _LeafToken()


class Again:
    """The kind of a token for a repeated leaf: (Again, 0, its number)."""


Token = Any
"""LEAF, or (kind, number of children, auxiliary data to rebuild the container)."""
Seen = dict[int, int] | None
"""Leaf numbers of the tensors seen in an `AttributeTree`, by id. None where leaves are not shared."""


class TreeDef(tuple[Token, ...]):
    """Tree definition (treedef): the containers of a tree as tokens in preorder."""

    __slots__ = ()

    @property
    def leaf_count(self) -> int:
        return self.count(LEAF)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves."""
        return _build(iter(self), iter(leaves), [])


def is_data(x: Any) -> bool:
    """Whether a leaf stands for an array, so that an attribute of an `AttributeTree` that holds it is a child."""
    return isinstance(x, Leaf | np.ndarray) or hasattr(type(x), "__dlpack__")


def is_leaf(x: Any) -> bool:
    """Whether a value is known to be no container."""
    return (isinstance(x, Leaf) and not x.composite) or type(x) is np.ndarray


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree in order, and its structure."""
    leaves: list[Any] = []
    tokens: list[Token] = []
    _flatten_into(tree, leaves, tokens, 0, None, {})
    return leaves, TreeDef(tokens)


def leaves(tree: Any) -> list[Any]:
    return flatten(tree)[0]


def map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply f to corresponding leaves of trees of the same structure; returns a tree of the results."""
    first, structure = flatten(tree)
    others = [matching_leaves(structure, other) for other in rest]
    return structure.unflatten([f(*xs) for xs in zip(first, *others)])


def matching_leaves(structure: TreeDef, tree: Any) -> list[Any]:
    """The leaves of a tree that has this structure, in the structure's order: dicts match by key, in any order."""
    leaves, found = flatten(tree)
    if found == structure:
        return leaves
    out: list[Any] = []
    _match(iter(structure), tree, out, "tree")
    return out


def paths(tree: Any, root: str = "") -> list[str]:
    """Path of each leaf as a Python expression: `params['layers'][0].weight`."""
    out: list[str] = []
    _walk_paths(tree, root, out, _steps, None)
    return out


def names(tree: Any) -> list[str]:
    """Names of the leaves in saved states: `layers.0.weight`."""
    out: list[str] = []
    _walk_paths(tree, "", out, _dotted, None)
    return [name.removeprefix(".") for name in out]


def trained(tree: Any) -> list[bool]:
    """For each leaf, whether it is differentiated: of what an `AttributeTree` holds, the parameters not frozen."""
    out: list[bool | None] = []
    _walk_trained(tree, True, out, None)
    return [wanted is True for wanted in out]


def trained_part(tree: Any) -> Any:
    """The tree with None in place of each leaf that is not differentiated: the structure of gradients."""
    leaves, structure = flatten(tree)
    return structure.unflatten([x if wanted else None for x, wanted in zip(leaves, trained(tree))])


def children(tree: Any) -> list[tuple[str, Any]]:
    """Direct children of a container, each under the name that `names` spells: `.weight`, `.0`; [] for a leaf."""
    found = None if is_leaf(tree) else _children(tree)
    return [] if found is None else list(zip(_dotted(found[0]), found[1]))


def with_children(tree: Any, new: list[Any]) -> Any:
    """A container like `tree` that holds `new`, in the order of `children`."""
    found = _children(tree)
    return tree if found is None else _make(found[0], new)


def attribute_trees(tree: Any) -> Iterator[AttributeTree]:
    """The `AttributeTree`s in a tree, each before those inside it."""
    yield from _attribute_trees(tree, {})


def _attribute_trees(x: Any, statics: dict[int, Static]) -> Iterator[AttributeTree]:
    if isinstance(x, AttributeTree):
        yield x
    found = None if is_leaf(x) else _children(x, statics)
    for child in () if found is None else found[1]:
        yield from _attribute_trees(child, statics)


# -- the kinds of container -------------------------------------------------------------------------------------------
def _children(x: Any, statics: dict[int, Static] | None = None) -> tuple[Token, Sequence[Any]] | None:
    """(token, children) of a container; None for a leaf. `statics` has what is known of other containers of a tree."""
    kind = type(x)
    if kind is list or kind is tuple:
        return (kind, len(x), None), x
    if kind is dict:
        return (dict, len(x), _keys(x)), list(x.values())
    if x is None:
        return (kind, 0, None), ()
    if isinstance(x, AttributeTree):
        return _attributes(x, {} if statics is None else statics)
    if isinstance(x, Leaf):
        return _components(x) if x.composite else None
    if isinstance(x, tuple) and hasattr(kind, "_fields"):
        return (kind, len(x), None), x
    if dataclasses.is_dataclass(x) and not isinstance(x, type | Leaf):
        names = tuple(f.name for f in dataclasses.fields(x))
        attributes = getattr(x, "__dict__", {})
        if not all(name in names for name in attributes):
            names = Named.of(names, attributes)
        return (kind, len(names), names), [getattr(x, name) for name in names]
    if isinstance(x, dict):
        return (dict, len(x), _keys(x)), list(x.values())
    return None


def _components(x: Any) -> tuple[Token, Sequence[Any]]:
    static, components = x.tree_flatten()
    return (type(x), len(components), static), components


def _attributes(x: AttributeTree, known: dict[int, Static]) -> tuple[Token, Sequence[Any]]:
    """(token, children) of a tree; `known` has its settings by identity, as the modules of a model often share one."""
    names, children, statics = [], [], []
    frozen = frozen_names(x) if x._parameters else ()
    if frozen:
        statics.append(("_frozen_names", Static(frozen)))
    for name, value in vars(x).items():
        if name == "_frozen_names":
            continue
        kind = type(value)
        if kind in PLAIN:
            statics.append((name, value if kind is str or value is None else Static(value)))
        elif (static := known.get(id(value))) is not None:
            statics.append((name, static))
        elif isinstance(value, Leaf | AttributeTree) or _holds_data(value):
            names.append(name)
            children.append(value)
        else:
            known[id(value)] = static = Static(value)
            statics.append((name, static))
    return (type(x), len(names), (tuple(names), tuple(statics))), children


def _holds_data(x: Any, depth: int = 0) -> bool:
    if type(x) in PLAIN:
        return False
    if isinstance(x, AttributeTree) or is_data(x):
        return True
    if depth > MAX_DEPTH or (found := _children(x)) is None:
        return False
    return any(_holds_data(child, depth + 1) for child in found[1])


def _make(token: Token, children: list[Any]) -> Any:
    kind, _, rest = token
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if kind is dict:
        return rest.make(children) if isinstance(rest, Keys) else dict(zip(rest, children))
    if kind is type(None):
        return None
    if issubclass(kind, AttributeTree):
        names, statics = rest
        out = object.__new__(kind)
        vars(out).update((name, value.value if isinstance(value, Static) else value) for name, value in statics)
        vars(out).update(zip(names, children))
        return out
    if issubclass(kind, Leaf):
        return kind.tree_unflatten(rest, children)
    if issubclass(kind, tuple):
        return kind(*children)
    out = object.__new__(kind)                                  # a dataclass: frozen or not, whatever its __init__
    for name, child in [*zip(rest, children), *(rest.settled.items() if isinstance(rest, Named) else ())]:
        object.__setattr__(out, name, child.value if isinstance(child, Static) else child)
    return out


# -- walks ------------------------------------------------------------------------------------------------------------
def _before(x: Any, seen: Seen, number: int) -> int | None:
    """The number of a leaf that was seen before; otherwise, register it under `number`."""
    if seen is None or not isinstance(x, Leaf) or not x.shared:
        return None
    first = seen.setdefault(id(x), number)
    return first if first != number else None


def _scopes(x: Any, token: Token, seen: Seen) -> list[Seen]:
    """The table of seen leaves for each child of a container."""
    if not isinstance(x, AttributeTree):
        return [seen] * token[1]
    around: Seen = {} if seen is None else seen
    return [None if name in x._buffers else around for name in token[2][0]]


def _flatten_into(x: Any, leaves: list[Any], tokens: list[Token], depth: int, seen: Seen,
                  statics: dict[int, Static]) -> None:
    found = None if is_leaf(x) else _children(x, statics)
    if found is None:
        if seen is not None and isinstance(x, Leaf) and x.shared:
            if (first := seen.setdefault(id(x), len(leaves))) != len(leaves):
                tokens.append((Again, 0, first))
                return
        leaves.append(x)
        tokens.append(LEAF)
        return
    if depth >= MAX_DEPTH:
        raise UserTypeError(f"containers are nested more than {MAX_DEPTH} deep", code="MLC0376",
                            loc=user_loc(), hint="does one contain itself?")
    token, children = found
    tokens.append(token)
    if isinstance(x, AttributeTree):
        if x._buffers:
            for child, scope in zip(children, _scopes(x, token, seen)):
                _flatten_into(child, leaves, tokens, depth + 1, scope, statics)
            return
        seen = {} if seen is None else seen
    for child in children:                                      # runs in every call of a compiled function
        _flatten_into(child, leaves, tokens, depth + 1, seen, statics)


def _build(tokens: Iterator[Token], leaves: Iterator[Any], built: list[Any]) -> Any:
    token = next(tokens)
    if token is LEAF:
        built.append(next(leaves))
        return built[-1]
    if token[0] is Again:
        return built[token[2]]
    return _make(token, [_build(tokens, leaves, built) for _ in range(token[1])])


def _match(tokens: Iterator[Token], x: Any, out: list[Any], path: str) -> None:
    token = next(tokens)
    if token is LEAF:
        out.append(x)
        return
    if token[0] is Again:
        if x is not out[token[2]]:
            raise UserTypeError(f"the trees differ at {path}: what is one tensor in one of them is two in the other",
                                code="MLC0377", loc=user_loc())
        return
    found = _children(x)
    same = found is not None and token[0] is found[0][0] and token[1] == found[0][1]
    if not same or (token[0] is dict and set(token[2]) != set(x)):
        raise UserTypeError(f"the trees differ at {path}: {_shown(token)} and {_shown(found and found[0])}",
                            code="MLC0377", loc=user_loc())
    assert found is not None
    children = [x[key] for key in token[2]] if token[0] is dict else found[1]
    for step, child in zip(_steps(token), children):
        _match(tokens, child, out, path + step)


def _shown(token: Token | None) -> str:
    """Description of a container for error messages: `dict of 'a', 'b'`, `list of 3`."""
    if token is None:
        return "a leaf"
    return f"{token[0].__name__} of {', '.join([repr(key) for key in token[2]]) if token[0] is dict else token[1]}"


def _steps(token: Token) -> list[str]:
    """Source text of the accesses to a container's children, to be written after the container."""
    kind, count, rest = token
    if kind is dict:
        return [f"[{key!r}]" for key in rest]
    if kind in (list, tuple):
        return [f"[{i}]" for i in range(count)]
    if issubclass(kind, AttributeTree):
        return [f"[{name}]" if name.isdigit() else "." + name for name in rest[0]]
    if issubclass(kind, Leaf):
        return [f".{name}()" for name in kind.component_names(rest)]
    return ["." + name for name in (rest or getattr(kind, "_fields", ()))]


def _dotted(token: Token) -> list[str]:
    kind, count, rest = token
    if kind in (list, tuple):
        return [f".{i}" for i in range(count)]
    if issubclass(kind, AttributeTree):
        return ["." + name for name in rest[0]]
    if issubclass(kind, Leaf):
        return ["." + name for name in kind.component_names(rest)]
    return [f".{key}" for key in rest] if kind is dict else _steps(token)


def _walk_paths(x: Any, path: str, out: list[str], steps: Callable[[Token], list[str]], seen: Seen) -> None:
    if (found := None if is_leaf(x) else _children(x)) is None:
        if _before(x, seen, len(out)) is None:
            out.append(path)
        return
    for step, child, scope in zip(steps(found[0]), found[1], _scopes(x, found[0], seen)):
        _walk_paths(child, path + step, out, steps, scope)


def _walk_trained(x: Any, wanted: bool | None, out: list[bool | None], seen: Seen) -> None:
    """Append for each leaf of x True if it is trained, False if it is not, None if another occurrence may decide."""
    if (found := None if is_leaf(x) else _children(x)) is None:
        if (first := _before(x, seen, len(out))) is None:
            out.append(wanted)
        else:
            known = out[first]                                  # frozen if any occurrence is
            out[first] = False if wanted is False or known is False else wanted or known
        return
    token, children = found
    own = [wanted] * len(children)
    if isinstance(x, Leaf):
        own[:-1] = [False] * (len(children) - 1)
    if isinstance(x, AttributeTree) and wanted is not False:
        frozen = frozen_names(x)
        own = [False if name in x._buffers or name in frozen else True if name in x._parameters else None
               for name in token[2][0]]
    for child, scope, trains in zip(children, _scopes(x, token, seen), own):
        _walk_trained(child, trains, out, scope)
