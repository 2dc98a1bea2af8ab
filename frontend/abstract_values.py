"""Abstract values: the types of trees whose leaves are Python values or tensors, and their joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mlc.dialects.tensor.promotion import promote
from mlc.frontend import tree
from mlc.frontend.dtypes import DType
from mlc.frontend.leaf_keys import frozen_leaf
from mlc.frontend.operands import NUMBER, broadcast_to, cast, is_tensor, number, tracer
from mlc.frontend.operands import kind as dtype_kind
from mlc.frontend.tensor import as_backing_array
from mlc.frontend.trace import Trace, current
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Value
from mlc.ir.diag import Loc, UserTypeError
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType, f64, from_numpy, i1, i64

Trees = Sequence[Any]


class Undefined:
    """Placeholder for the value of a variable that may be unassigned."""


UNDEFINED = Undefined()


@dataclass(frozen=True)
class SourceConstruct:
    """A loop or condition of the source, for diagnostics: description, location and variable names."""

    what: str
    loc: Loc
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AbstractValue:
    """Type of a leaf: a tensor type, weak if the value is a Python number; without a type, a constant Python value."""

    type: TensorType | None
    weak: bool = False
    value: Any = None

    def __str__(self) -> str:
        if self.type is None:
            kind = type(self.value).__name__
            return f"a {kind}" if tree.children(self.value) else f"the {kind} {self.value!r}"[:80]
        if not self.weak:
            return str(self.type)
        dtype = self.type.dtype
        return f"a Python {'bool' if dtype.is_bool else 'float' if dtype.is_float else 'int'}"


@dataclass(frozen=True, eq=False)
class AbstractTree:
    """A tree definition with an abstract value for each leaf."""

    structure: tree.TreeDef
    leaves: list[AbstractValue]

    @property
    def types(self) -> list[TensorType]:
        return [k.type for k in self.leaves if k.type is not None]

    def tree(self, tensors: Iterator[Tracer]) -> Any:
        return self.structure.unflatten([k.value if k.type is None else next(tensors) for k in self.leaves])


AbstractTrees = list[AbstractTree | None]
"""One per variable; None if the variable is undefined."""


def is_number(x: Any) -> bool:
    return isinstance(x, NUMBER) or isinstance(x, Size)


def is_array(x: Any) -> bool:
    return is_tensor(x) or isinstance(x, np.generic)


def abstract_value(x: Any, on_demand: bool = False) -> AbstractValue:
    if isinstance(x, Tracer):
        return AbstractValue(x.type, x.weak)
    if on_demand or not (is_number(x) or is_array(x)):
        return AbstractValue(None, value=x)
    return _as_tensor(AbstractValue(None, value=x)) or AbstractValue(None, value=x)


def _as_tensor(k: AbstractValue) -> AbstractValue | None:
    """Promote to a tensor; None if the value is neither a number nor an array."""
    if k.type is not None:
        return k
    x = k.value
    if is_number(x):
        dtype = i1 if isinstance(x, bool) else f64 if isinstance(x, float) else i64
        return AbstractValue(TensorType((), dtype), True)
    if not is_array(x):
        return None
    array = as_backing_array(x)
    return AbstractValue(TensorType(array.shape, from_numpy(array.dtype)))


def join(a: AbstractValue, b: AbstractValue) -> AbstractValue | None:
    """Join of two abstract values; None if they have none."""
    if a.type is None and b.type is None and same_value(a.value, b.value):
        return a
    s, t = _as_tensor(a), _as_tensor(b)
    if s is None or t is None or s.type is None or t.type is None or s.type.shape != t.type.shape:
        return None
    if s.type == t.type:
        return AbstractValue(s.type, s.weak and t.weak)
    if s.weak and t.weak:
        if s.type.dtype.is_bool or t.type.dtype.is_bool:   # a bool is no 0 or 1
            return None
        return AbstractValue(TensorType(s.type.shape, promote(s.type.dtype, t.type.dtype)), True)
    if s.weak == t.weak:
        return None
    weak, strong = (s, t) if s.weak else (t, s)
    assert weak.type is not None and strong.type is not None
    return strong if dtype_kind(weak.type.dtype) <= dtype_kind(strong.type.dtype) else None


_PLAIN = (*NUMBER, str, bytes, Size, DType, range, slice)


def same_value(a: Any, b: Any) -> bool:
    """Whether a recording cannot distinguish two Python values."""
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, _PLAIN) and (
        frozen_leaf(a) == frozen_leaf(b))


def abstract_tree(x: Any, on_demand: bool) -> AbstractTree | None:
    if isinstance(x, Undefined):
        return None
    leaves, structure = tree.flatten(x)
    return AbstractTree(structure, [abstract_value(leaf, on_demand) for leaf in leaves])


def same_trees(a: AbstractTrees, b: AbstractTrees) -> bool:
    return all(p is q or (p is not None and q is not None and p.structure == q.structure and all(
        k is l or (k.type == l.type and k.weak == l.weak and same_value(k.value, l.value))
        for k, l in zip(p.leaves, q.leaves))) for p, q in zip(a, b))


def join_trees(site: SourceConstruct, before: AbstractTrees, trees: Trees, on_demand: bool,
                differ: Callable[..., NoReturn]) -> AbstractTrees:
    """Joins of `before` with the trees; `differ(path, leaf, leaf)` raises where there is none."""
    out: AbstractTrees = []
    for name, p, x in zip(site.names, before, trees):
        q = abstract_tree(x, on_demand)
        if p is None or q is None:
            out.append(p or q)
            continue
        if p.structure != q.structure:
            try:                                           # dicts match by key
                q = AbstractTree(p.structure, [abstract_value(leaf, on_demand)
                                               for leaf in tree.matching_leaves(p.structure, x)])
            except UserTypeError as error:
                path, _, leaves = error.message.removeprefix("the trees differ at tree").partition(": ")
                a, _, b = leaves.partition(" and ")
                differ(name + path, *((a, b) if path else (_container(p), _container(q))))
        joined = []
        for i, (k, l) in enumerate(zip(p.leaves, q.leaves)):
            if (found := join(k, l)) is None:
                differ(tree.paths(p.structure.unflatten(range(len(p.leaves))), name)[i], k, l)
            joined.append(found)
        out.append(AbstractTree(p.structure, joined))
    return out


def _container(p: AbstractTree) -> str:
    if len(p.structure) == 1 and p.leaves:
        return str(p.leaves[0])
    kind = p.structure[0][0]
    return "None" if kind is type(None) else f"a {kind.__name__}"


def values_of(abstract: AbstractTrees, trees: Trees) -> list[Value]:
    """Leaves of the trees as tensors of the abstract types, zeros for undefined variables."""
    trace, out = current(), []
    for p, x in zip(abstract, trees):
        if p is None:
            continue
        if isinstance(x, Undefined):
            leaves: list[Any] = [x] * len(p.leaves)
        else:
            leaves = tree.matching_leaves(p.structure, x)
        out += [trace.local(_promote_to(leaf, k, k.type)) for leaf, k in zip(leaves, p.leaves) if k.type is not None]
    return out


def _promote_to(x: Any, k: AbstractValue, type: TensorType) -> Tracer:
    if isinstance(x, Undefined):
        return broadcast_to(number(0, type.dtype), type.shape)
    return number(x, type.dtype, k.weak) if isinstance(x, NUMBER) else cast(tracer(x), type.dtype, k.weak)


def types_of(abstract: AbstractTrees) -> list[TensorType]:
    return [t for p in abstract if p is not None for t in p.types]


def trees_of(abstract: AbstractTrees, values: Sequence[Value], trace: Trace) -> list[Any]:
    weak = [k.weak for p in abstract if p is not None for k in p.leaves if k.type is not None]
    tensors = iter([Tracer(v, trace, w) for v, w in zip(values, weak)])
    return [UNDEFINED if p is None else p.tree(tensors) for p in abstract]
