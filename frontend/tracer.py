"""Tensors without elements: arguments and results of a function that is being recorded."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from mlc.frontend.compiler import compiler
from mlc.frontend.device import device as Device
from mlc.frontend.devices import CPU, BackingArray, as_device
from mlc.frontend.dtypes import DType, of_ir
from mlc.frontend.location import is_ours, user_loc
from mlc.frontend.python_arithmetic import PythonArithmetic
from mlc.frontend.refusals import unknown
from mlc.frontend.symint import symbolic
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.unsupported_api import Unsupported
from mlc.ir import html, sizes
from mlc.ir.core import Block, Op, Value
from mlc.ir.diag import Loc, UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import ScalarType, TensorType, c128, f64, i1, i64

if TYPE_CHECKING:
    from mlc.frontend.trace import Trace

NUMBER_NEEDED = ("where Python needs a number while the function is recorded, name the parameter in mlc.compile(f, "
                 "static=...)")
"""The help where a number is asked for that only a call knows."""
_CLASSES: dict[ScalarType, type] = {i1: bool, i64: int, f64: float, c128: complex}
"""The classes of Python's numbers by the element types that stand for them."""

class Tracer(PythonArithmetic, Tensor):
    """A tensor without elements: a result or argument of the function being recorded.

    A weakly typed tracer stands for a Python number: it takes on the element type of the other operands.
    """

    __slots__ = ("changed", "home", "is_argument", "maybe", "owner", "value", "weak")
    home: Block                                            # the function, loop or branch that it was made in
    changed: Loc | None                                    # where it was changed in a loop or branch by another name
    is_argument: bool                                      # of the function that is recorded
    maybe: tuple[Any, ...]                                 # tensors whose memory it shares or not, as the call decides

    def __init__(self, value: Value, trace: Trace, weak: bool = False) -> None:
        self._array = self._storage = self._view = self.changed = None
        self.value = value
        self.owner = trace
        self.weak = weak
        self.is_argument, self.maybe = False, ()
        self.home = trace.innermost if isinstance(value.owner, Op) else value.owner
        if trace.is_call:
            trace.tracers.append(weakref.ref(self))

    def stand_for(self, x: Tracer) -> None:
        """Be the tensor x of a caller, once the function is recorded that this is a tensor of."""
        self.value, self.owner, self.home = x.value, x.owner, x.home
        if x.owner.is_call:
            x.owner.tracers.append(weakref.ref(self))

    def as_operand(self, name: str, *other: Any) -> Tracer:
        """A number as Python's operator of this name takes it: a bool as an integer, and an integer as a float where
        the other operand makes the result one. UserError where that depends on the number."""
        dtype = self.value.type.dtype
        if len(other) > 1:                                 # pow(n, 2, 5)
            self._unknown("its number is", NUMBER_NEEDED)
        if dtype.is_bool:
            return as_number(OPERATIONS["cast"](self, "int64"))
        if name not in ("__pow__", "__rpow__") or dtype.is_inexact or isinstance(other[0], float | complex):
            return self
        if isinstance(other[0], int) and name == "__pow__":
            return self if other[0] >= 0 else as_number(OPERATIONS["cast"](self, "float64"))
        exponent = self if name == "__rpow__" else other[0]
        if isinstance(exponent, Tracer) and exponent.weak and not exponent.value.type.dtype.is_inexact:
            exponent._unknown("its sign is", NUMBER_NEEDED)
        return self

    register_hook, grad_fn = Unsupported(), Unsupported()  # backward.py has the others
    register_post_accumulate_grad_hook = Unsupported()

    @property
    def type(self) -> TensorType:  # type: ignore[override]  # a method of tensors outside of a recording
        return self.value.type  # type: ignore[no-any-return]

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """As in eager execution: Tensor, or for a Python number its class."""
        return Tracer if is_ours(sys._getframe(1).f_globals.get("__name__", "")) else self.python_class

    @property
    def python_class(self) -> Any:
        """Its class in eager execution."""
        return _CLASSES.get(self.value.type.dtype, Tensor) if self.weak else Tensor

    def __hash__(self) -> int:
        """Raise UserError for a Python number: a dict or a set of the program would look it up by identity."""
        if self.weak and not is_ours(sys._getframe(1).f_globals.get("__name__", "")):
            self._unknown("its number is", NUMBER_NEEDED)
        return object.__hash__(self)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes: those of the IR within this package, `SymInt`s for the user's program."""
        found: tuple[Dim, ...] = self.value.type.shape
        if all(isinstance(d, int) for d in found) or is_ours(sys._getframe(1).f_globals.get("__name__", "")):
            return found
        return tuple(map(symbolic, found))

    @property
    def dtype(self) -> DType:
        return of_ir(self.value.type.dtype)

    @property
    def device(self) -> Device:
        """Always "cpu": the actual device is that of the arguments of a call, which is unknown while recording."""
        return CPU

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        if (as_device(device) or CPU) == CPU:
            return self
        raise UserError("a recorded function cannot move tensors between devices: it runs on that of its arguments",
                        code="MLC0337", loc=user_loc(),
                        hint='pass arguments on that device, or mlc.compile(f, target="cuda")')

    def size(self, dim: int | None = None) -> Any:
        found = tuple(map(symbolic, self.value.type.shape))
        return found if dim is None else found[dim]

    def numel(self) -> Any:
        return symbolic(sizes.product(self.value.type.shape))

    @property
    def backing_array(self) -> BackingArray:
        """Raise UserError: a tracer has no elements."""
        self._unknown("its elements are")

    def _unknown(self, what: str, hint: str = "") -> NoReturn:
        raise unknown(self.value, f"a {self.type} is being recorded, and {what} only known when the compiled function "
                      "runs", code="MLC0350", loc=user_loc(), notes=(f"the value comes from {origin(self)}",),
                      hint=hint or "return it and look at the result, or run this function outside mlc.compile and "
                                   "mlc.grad")

    def __bool__(self) -> bool:
        hint = compiler().way_out() or "choose between two values with mlc.where(condition, a, b)"
        self._unknown("its truth is", hint)

    def item(self) -> Any:
        self._unknown("its number is")

    def tolist(self) -> Any:
        self._unknown("its elements are")

    def __index__(self) -> int:
        self._unknown("its number is", NUMBER_NEEDED)

    __int__ = __index__

    def __getattr__(self, name: str) -> Any:
        if name[:2] != "__" and self.weak and hasattr(self.python_class, name):
            self._unknown("its number is", NUMBER_NEEDED)  # as n.bit_length()
        return super().__getattr__(name)

    def __round__(self, ndigits: int | None = None) -> Any:
        if not self.weak:
            raise TypeError("a tensor is rounded by its method: x.round(), x.floor(), x.ceil(), x.trunc()")
        self._unknown("its number is", NUMBER_NEEDED)

    __trunc__ = __floor__ = __ceil__ = __round__

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self if self.weak else self.clone()         # a number is immutable

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._unknown("its elements are")

    def __len__(self) -> int:
        if self.shape and not isinstance(self.shape[0], int):
            self._unknown(f"its length {self.shape[0]} is", "x.shape[0] may be used in sizes and in arithmetic")
        return super().__len__()

    def _repr_html_(self) -> str:
        return html.plain(repr(self))

    def __repr__(self) -> str:
        return self._text(sys._getframe(1).f_globals)

    def __format__(self, spec: str) -> str:
        return self._text(sys._getframe(1).f_globals)

    def _text(self, asks: dict[str, Any]) -> str:
        """Its type, for messages, loggers and debuggers; UserError if the program itself asks for its text."""
        module = str(asks.get("__name__", ""))
        if not (is_ours(module) or module.partition(".")[0] in _WATCHERS or texts.of_types):
            self._unknown("its text is", "print(x) shows its type; return it to see its numbers")
        return f"tensor(<{self.type}, being recorded>)"


_WATCHERS = frozenset({"logging", "warnings", "traceback", "pdb", "bdb", "code", "IPython", "debugpy", "pydevd",
                       "_pydevd_bundle", "_pytest"})
"""Packages that format values for people to read."""


class _Texts(threading.local):
    """Whether the program gets a tensor's type as its text: in the message of an `assert`."""

    of_types = False


texts = _Texts()


def as_number(x: Tracer) -> Tracer:
    """A tensor of no dimensions in the place of a Python number."""
    return Tracer(x.value, x.owner, True)


def value_of_number(x: Any) -> Value | None:
    """The value of a number that is recorded; None of anything else."""
    return x.value if isinstance(x, Tracer) and x.weak else None


def value_origin(value: Value) -> str:
    if value.op is not None:
        return str(value.op.loc)
    return f"the argument {value.name}" if value.name else "an argument"


def origin(x: Any) -> str:
    return value_origin(x.value) if isinstance(x, Tracer) else "outside the recorded function"
