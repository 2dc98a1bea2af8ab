"""Signatures of an extension module's functions: parameters, results, and the interface of the compiled entry.

Arguments and results are pytrees of arrays: dicts, lists and tuples; leaves may also be None and plain values.
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
    """An array leaf, by its number among the arguments or results."""

    number: int


@dataclass(frozen=True)
class Constant:
    """A constant leaf: an argument must equal it, a result is it."""

    value: Plain


@dataclass(frozen=True)
class Container:
    """kind   "dict", "list" or "tuple"
    keys   keys of a dict, one per child
    """

    kind: str
    children: tuple[Tree, ...]
    keys: tuple[str | int, ...] = ()

    def steps(self) -> list[str]:
        """The Python subscript of each child of the container."""
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

    interface  interface of the C entry, without the weights
    weights    number of leading arguments of the compiled code that are weights
    doc        the author's description
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
        """The path of each array argument: `params['w'][0]`."""
        return [path for p in self.parameters for _, path in leaves(p.tree, p.name)]

    @property
    def positional(self) -> int:
        """The number of parameters that may be passed by position."""
        return sum(not p.keyword_only for p in self.parameters)

    def named(self) -> Function:
        """The function with arguments named by their paths in the interface."""
        return replace(self, interface=replace(self.interface, arg_names=tuple(self.paths)))


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[int, str]]:
    """(number, path) of the arrays in a tree, in order."""
    if isinstance(tree, Slot):
        yield tree.number, path
    elif isinstance(tree, Container):
        for step, child in zip(tree.steps(), tree.children):
            yield from leaves(child, path + step)


def containers(tree: Tree) -> int:
    """The number of containers in a tree."""
    return 1 + sum(map(containers, tree.children)) if isinstance(tree, Container) else 0


def dtype_name(type: ScalarType) -> str:
    """numpy's name of an element type; bfloat16, which numpy lacks, is represented by its bits."""
    return "uint16" if type == bf16 else str(to_numpy(type))


def shown(type: TensorType) -> str:
    """Human-readable form of a type: `float32[B, 16]`."""
    name = "uint16 (bits of bfloat16)" if type.dtype == bf16 else dtype_name(type.dtype)
    return f"{name}[{', '.join(map(str, type.shape))}]" if type.shape else name
