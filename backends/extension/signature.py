"""How the functions of an extension module are called: their parameters, what they return, and the entry behind them.

Arguments and results are trees of arrays: dicts, lists and tuples, with None and plain values as leaves besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from mlc.ir.abi import Interface
from mlc.ir.diag import BackendError
from mlc.ir.types import ScalarType, TensorType, bf16, to_numpy

Plain = bool | int | float | str | None


@dataclass(frozen=True)
class Slot:
    """An array, by its number among the arguments or results."""

    number: int


@dataclass(frozen=True)
class Constant:
    """A value that belongs to the function: an argument must be it, a result is it."""

    value: Plain


@dataclass(frozen=True)
class Container:
    """kind   "dict", "list" or "tuple"
    keys   of a dict, one per child
    """

    kind: str
    children: tuple[Tree, ...]
    keys: tuple[str | int, ...] = ()

    def steps(self) -> list[str]:
        """Python subscripts that reach each child of the container."""
        return [f"[{key!r}]" for key in (self.keys if self.kind == "dict" else range(len(self.children)))]


Tree = Slot | Constant | Container


@dataclass(frozen=True)
class Parameter:
    name: str
    tree: Tree
    keyword_only: bool = False


@dataclass(frozen=True)
class Function:
    """One function of a module.

    interface  of the entry, as C code calls it: without the weights
    weights    how many arrays the compiled code takes before those, and holds itself
    doc        what its author says of it
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Tree
    interface: Interface
    weights: int = 0
    doc: str = ""

    def __post_init__(self) -> None:
        slots = [n for p in self.parameters for n, _ in leaves(p.tree, p.name)]
        if slots != list(range(len(self.interface.inputs))):
            raise BackendError(f"the parameters of {self.name} hold the arrays {slots}, its code takes "
                               f"{len(self.interface.inputs)}", code="MLC0560")

    @cached_property
    def paths(self) -> list[str]:
        """How the caller reaches each array that is an argument: `params['w'][0]`."""
        return [path for p in self.parameters for _, path in leaves(p.tree, p.name)]

    @property
    def positional(self) -> int:
        """How many parameters may be passed by position."""
        return sum(not p.keyword_only for p in self.parameters)

    def named(self) -> Function:
        """The function whose interface speaks of the arguments by their paths."""
        return replace(self, interface=replace(self.interface, arg_names=tuple(self.paths)))


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[int, str]]:
    """(number, path) of the arrays in a tree, in order."""
    if isinstance(tree, Slot):
        yield tree.number, path
    elif isinstance(tree, Container):
        for step, child in zip(tree.steps(), tree.children):
            yield from leaves(child, path + step)


def containers(tree: Tree) -> int:
    """How many containers a tree has."""
    return 1 + sum(map(containers, tree.children)) if isinstance(tree, Container) else 0


def dtype_name(type: ScalarType) -> str:
    """numpy's name of the arrays that hold an element type: bfloat16, which numpy does not have, as its bits."""
    return "uint16" if type == bf16 else str(to_numpy(type))


def shown(type: TensorType) -> str:
    """A type as people read it: `float32[B, 16]`."""
    name = "uint16 (bits of bfloat16)" if type.dtype == bf16 else dtype_name(type.dtype)
    return f"{name}[{', '.join(map(str, type.shape))}]" if type.shape else name
