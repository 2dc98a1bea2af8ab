"""Values in an ONNX graph while it is recorded, and refusals.

A value is a tensor of mlc's; or a numpy array, whose elements are known while recording, and are sizes if its dtype is
object; or `Stored`, a weight of the model; or a list (a sequence); or None (an input or optional that is absent).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mlc.frontend.dtypes import DType, as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import OPERATIONS, Tensor, wrap
from mlc.ir.diag import UserError
from mlc.ir.sizes import Size

Array = np.ndarray[Any, Any]
TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
         11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16"}
"""The element types that mlc has, by ONNX's numbers."""
OTHER_TYPES = {8: "string", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz",
               21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2"}
"""The others."""
NUMBERS = {name: number for number, name in TYPES.items()}
MOST_FOLDED = 4096
"""Elements that an array may have to be computed with while recording."""
MOST_WEIGHTS = 16
"""Trained weights that what is computed of them while recording may depend on."""


class NeedsValue(UserError):
    """A size or a choice of the program depends on the elements of `value`, which are known only at run time.

    inputs  names of the inputs of the model that the value is computed from
    """

    def __init__(self, value: Any, reason: str) -> None:
        super().__init__(f"{reason}, and is known only when the model runs", code="MLC0843", loc=user_loc())
        self.value = value
        self.inputs: frozenset[str] | None = None


def refuse(reason: str, hint: str = "") -> NoReturn:
    """Refuse the node whose row is running."""
    raise UserError(reason, code="MLC0842", loc=user_loc(), hint=hint)


@dataclass
class Stored:
    """A weight, or what is computed of a few trained ones, which are constants only if their elements are asked for.

    array   its elements, of the weights in the file
    read    the tensor of the module that has it, or what that is computed of it
    made_of the weights that it is computed of; none of a weight
    asked   whether the elements were asked for while recording, so that they are part of the program
    """

    array: Array
    read: Callable[[], Tensor]
    made_of: tuple[Stored, ...] = ()
    asked: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> DType:
        return as_dtype(element_of(self.array))


class Steps(NamedTuple):
    """Integers x of which DequantizeLinear makes the numbers (x - zero) * scale. The zero point may be absent."""

    x: Any
    scale: Any
    zero: Any
    axis: int


class StepsOf:
    """The steps of the tensors that DequantizeLinear makes in a run of a graph."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Steps]] = {}     # with the tensor, which stays alive

    def note(self, x: Any, steps: Steps) -> None:
        self._found[id(x)] = x, steps

    def of(self, x: Any) -> Steps | None:
        """The steps of a tensor; None if it is made by anything else."""
        found = self._found.get(id(x))
        return None if found is None else found[1]


LONGEST = 300
"""Characters of a text of the file that a message has."""


def shown(text: str) -> str:
    """A text of the file, or about it, as much of it as a message has room for."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def known(x: Any, what: str) -> Array:
    """The elements of a value; NeedsValue if they are not known."""
    if isinstance(x, Stored):
        for weight in x.made_of or (x,):
            weight.asked = True
        return x.array
    if isinstance(x, np.ndarray):
        return x
    raise NeedsValue(x, f"{what} decides about sizes or about the program")


def is_trained(x: Any) -> bool:
    """Whether a value is a weight that training changes, or is computed of such weights."""
    return isinstance(x, Stored) and (bool(x.made_of) or x.array.dtype.kind not in "iub")


def foldable(x: Any) -> bool:
    """Whether a value may be computed with while recording: it is known, and no large weight that is trained."""
    if isinstance(x, Stored):
        return len(x.made_of) <= MOST_WEIGHTS and x.array.size <= (MOST_FOLDED if x.array.dtype.kind in "iub" else 16)
    return isinstance(x, np.ndarray) and x.size <= MOST_FOLDED


def tensor(x: Any) -> Any:
    """A value as a tensor; sequences and absent values as they are."""
    if isinstance(x, Stored):
        return x.read()
    if isinstance(x, np.ndarray):
        if x.dtype == object:
            flat = [OPERATIONS["full"]((), n, dtype=as_dtype(element_of(x)).name) for n in x.ravel()]
            return OPERATIONS["reshape"](OPERATIONS["stack"](flat), x.shape)
        if x.dtype.kind == "U":
            refuse("mlc has no tensors of strings")
        return wrap(np.ascontiguousarray(x).reshape(x.shape))
    return x


class Sizes(np.ndarray[Any, Any]):
    """An array of sizes, some of which are symbols: its dtype is object, and `element` that of the numbers."""

    element: np.dtype[Any] = np.dtype(np.int64)

    def __array_finalize__(self, made_of: Any) -> None:
        self.element = element_of(made_of) if isinstance(made_of, Sizes) else np.dtype(np.int64)


def element_of(x: Array) -> np.dtype[Any]:
    """The type of the numbers of an array."""
    return x.element if isinstance(x, Sizes) else x.dtype


def settled(x: Any, element: np.dtype[Any]) -> Array:
    """An array of numbers, or of sizes where some are symbols.

    element  the type of the sizes, unless they have one
    """
    element = x.element if isinstance(x, Sizes) else element
    out = np.asarray(x)
    if out.dtype != object:
        return out
    if not any(isinstance(n, Size) for n in out.ravel()):
        return out.astype(element)
    sizes = out.view(Sizes)
    sizes.element = element
    return sizes


def ints(x: Any) -> list[Any]:
    """The elements of an array, or of a list, as integers and sizes."""
    return [n if isinstance(n, Size) else int(n) for n in np.asarray(x).ravel()]


def number(x: Any) -> Any:
    """The element of an array of one."""
    found = np.asarray(x).ravel()
    if found.size != 1:
        refuse(f"an input of one number has {found.size} of them")
    return found[0] if isinstance(found[0], Size) else found[0].item()


def axis_of(axis: Any, rank: int) -> int:
    """An axis of a tensor of this rank, counted from the end if it is negative."""
    if not -rank <= axis < rank:
        refuse(f"the axis {axis} of a tensor of {rank} axes")
    return int(axis) % rank


def dtype_of(elem_type: int) -> DType:
    """mlc's type of elements for ONNX's number of it."""
    if elem_type not in TYPES:
        refuse(f"mlc has no tensors of {OTHER_TYPES.get(elem_type, f'type {elem_type}')}")
    return as_dtype(TYPES[elem_type])


def is_float(x: Any) -> bool:
    """Whether a tensor is of floats."""
    return bool(x.dtype.is_floating_point)


def shape_of(x: Any) -> tuple[Any, ...]:
    """The sizes of a value."""
    return tuple(x.shape)
