"""Signatures of calls: which leaves are arrays, which are numbers, and which are compile-time constants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.frontend import tree
from mlc.frontend.arguments import coded
from mlc.frontend.devices import BackingArray, device_of_call
from mlc.frontend.dtypes import as_dtype
from mlc.frontend.eager import frozen
from mlc.frontend.location import user_loc
from mlc.frontend.operators import is_operand
from mlc.frontend.tensor import Array, Consumed, DTypeLike, Tensor, as_array, as_backing_array
from mlc.frontend.tracer import Tracer
from mlc.ir.affine_syntax import parse_size
from mlc.ir.diag import IRError, Loc, UserError, UserTypeError
from mlc.ir.sizes import Dim, Size, symbols
from mlc.ir.types import TensorType, from_numpy


class Spec(tree.Leaf):
    """Specification of an array argument: sizes, which may be symbols, and a dtype. `mlc.spec` makes it.

    Args:
        type: The tensor type.

    Example:
        >>> mlc.spec("B", 16) == mlc.spec("B", 16)
        True
    """

    __slots__ = ("type",)

    def __init__(self, type: TensorType) -> None:
        self.type = type

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes, integers or symbolic sizes."""
        return self.type.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"spec({self.type})"


SIZES = 'use a number, a symbol such as "B", or an expression such as "2*B"'


@coded
def spec(*shape: int | str | Size, dtype: DTypeLike = "float32") -> Spec:
    """Specification of an array argument, for `mlc.compile`, `mlc.lower` and annotations.

    Equal symbols stand for equal sizes, in all arguments of a function.

    Args:
        shape: Sizes: integers of at least 0, symbols such as "B", or expressions such as "2*B + 1".
        dtype: Element type.

    Returns:
        The specification.

    Raises:
        UserError: An expression cannot be parsed (MLC0371).
        UserTypeError: A size is negative or no size (MLC0371), or `dtype` is no element type (MLC0342).

    Example:
        >>> mlc.spec("B", 16)
        spec(tensor<Bx16xf32>)
    """
    dims: list[Dim] = []
    for d in shape:
        known: Any = d
        if isinstance(known, bool) or not isinstance(known, int | str | Size) or (isinstance(known, int) and known < 0):
            raise UserTypeError(f"{d!r} is no size", code="MLC0371", loc=user_loc(), hint=SIZES)
        try:
            dims.append(parse_size(d) if isinstance(d, str) else d)
        except IRError as error:
            raise UserError(error.message, code="MLC0371", loc=user_loc(), hint=SIZES) from None
    return Spec(TensorType(tuple(dims), as_dtype(dtype).ir))


class Arguments:
    """The leaves of one call, classified.

    arrays   the arguments of the compiled function
    given    the leaf that each array came from
    slots    per leaf: whether it is an array
    key      all that the compiled function depends on, except the device
    device   the device of the tensors among the arrays
    """

    __slots__ = ("arrays", "device", "given", "key", "leaves", "slots", "structure", "types", "weak")

    def __init__(self, leaves: Sequence[Any], structure: tree.TreeDef,
                 specs: Sequence[Spec | None] | None = None) -> None:
        self.leaves = leaves
        self.structure = structure
        self.arrays: list[BackingArray] = []
        self.given: list[Any] = []
        self.slots: list[bool] = []
        self.types: list[TensorType | None] = []           # of leaves with a specification
        self.weak: list[bool] = []
        key: list[Any] = [structure]
        beside = any(type(x) is Tensor for x in leaves)
        for i, x in enumerate(leaves):
            wanted = specs[i] if specs is not None else None
            if beside and wanted is None and isinstance(x, np.generic) and x.dtype.kind in "biuf":
                x = x.item()                               # which has no element type, as in operations
            array, weak = _array_of(x, wanted)
            self.slots.append(array is not None)
            if array is None:
                key.append(frozen(x))
                continue
            self.arrays.append(array)
            self.given.append(x)
            self.weak.append(weak)
            self.types.append(wanted.type if wanted is not None else None)
            key.append(wanted if wanted is not None else (type(x) if weak else (array.dtype, array.shape)))
        if specs is not None:
            _check_symbols([t for t in self.types if t is not None])
        self.device = device_of_call(self.arrays)
        self.key = tuple(key)

    def operands(self) -> list[Any]:
        """The tensors among the arguments as they are, so that their gradients are known; the arrays of all others."""
        return [x if type(x) is Tensor else array for x, array in zip(self.given, self.arrays)]

    def input_types(self) -> list[TensorType]:
        return [wanted or TensorType(a.shape, from_numpy((as_array(a) if isinstance(a, np.ndarray) else a).dtype))
                for a, wanted in zip(self.arrays, self.types)]


def _check_symbols(types: Sequence[TensorType]) -> None:
    """UserError if no argument has a symbol of their sizes as a size of its own, whose value a call could read."""
    dims = [d for t in types for d in t.shape if isinstance(d, Size)]
    plain = {str(d) for d in dims if str(d).isidentifier()}
    for d in dims:
        for symbol in sorted(symbols(d) - plain):
            raise UserError(f"the size {symbol} of specifications stands in {d} alone, of which it cannot be computed",
                            code="MLC0371", loc=user_loc(), hint=f'give an argument that has the size "{symbol}"')


def _array_of(x: Any, wanted: Spec | None) -> tuple[BackingArray | None, bool]:
    """The array of a leaf, and whether it is a Python number; None for a compile-time constant."""
    if type(x) is Tensor:
        return x.backing_array, False
    if isinstance(x, np.ndarray):
        return (x if x.dtype.isnative else as_array(x)), False
    if isinstance(x, int | float) and not isinstance(x, np.generic):
        if wanted is not None and type(x) is not bool:
            return _number(x, wanted), False
        if type(x) is not int and type(x) is not float:
            return None, False                             # True, and members of an IntEnum, are distinct by identity
        if type(x) is int and not -2**63 <= x < 2**63:
            raise UserError(f"{x} does not fit in 64 bits", code="MLC0348", loc=user_loc())
        return np.array(x), True
    if isinstance(x, Spec):                                # for `lower`: only its type is needed
        return np.empty(0, np.uint8), False
    if isinstance(x, Tracer):
        raise UserError(f"a {x.type} is used after the function it belongs to has been recorded", code="MLC0351",
                        loc=user_loc(), hint="return it from the function instead of storing it")
    return (as_backing_array(x), False) if is_operand(x) else (None, False)


def _number(x: int | float, wanted: Spec) -> Array:
    """Convert a Python number to an array of the specified type."""
    out = as_array(x, wanted.type.dtype)
    if out.dtype.kind in "biu" and out.item() != x:
        raise UserTypeError(f"{x} is no {out.dtype}, which is specified", code="MLC0352", loc=user_loc(),
                            hint=f"pass another number, or specify {'float32' if type(x) is float else 'int64'}")
    return out


def name_of(f: Callable[..., Any]) -> str:
    """Name of a function in messages and in IR."""
    name = str(getattr(f, "__name__", type(f).__name__))
    return name if name.isidentifier() else "function"


def parameters(f: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name; empty if it has no signature."""
    try:
        return dict(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return {}


def roots(names: Sequence[str], args: Sequence[Any], keywords: dict[str, Any]) -> list[tuple[str, Any]]:
    """(name, argument) pairs of a call, in the order of its leaves."""
    return [*((names[i] if i < len(names) else f"args[{i}]", x) for i, x in enumerate(args)), *keywords.items()]


def consume(given: Sequence[Any], donated: Sequence[int], loc: Loc, function: str) -> None:
    """Mark donated tensors as consumed: using one from now on is an error that names the call."""
    mark = Consumed(loc, function)
    for i in donated:
        if isinstance(given[i], Tensor):
            given[i]._array = mark


def at_the_call(error: UserError) -> None:
    """Move an error about arguments to the location of the call; the location in the function becomes a note."""
    if error.loc.file:
        error.notes = (*error.notes, f"the sizes are used at {error.loc}")
    error.loc = user_loc()


def paths_of(names: Sequence[str], arguments: Arguments, args: Sequence[Any], keywords: dict[str, Any]) -> list[str]:
    """The path of each array from the caller's side: `params['w'][0]`."""
    every = [path for name, x in roots(names, args, keywords) for path in tree.paths(x, name)]
    return [path for path, slot in zip(every, arguments.slots) if slot]
