"""The user's handle on an array: `Tensor`, with its operators; frontend/methods.py has the methods.

A tensor holds a numpy array, which may be a view of memory that others share, or an array in device memory. While a
function is recorded, its subclass `Tracer` (frontend/tracer.py) stands for a value that only the compiled function will
compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.tensor.promotion import promote
from mlc.frontend import printing, unsupported_api
from mlc.frontend.autograd.copy_node import same_elements
from mlc.frontend.autograd.differentiable import Differentiable
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.compiler import compiler
from mlc.frontend.conversions import Conversions
from mlc.frontend.device import device as Device
from mlc.frontend.devices import CPU, BackingArray, Devices, as_device, device_of
from mlc.frontend.dimensions import Dimensions
from mlc.frontend.dlpack import dlpack_device, from_dlpack
from mlc.frontend.dtypes import DType, as_dtype, destination, of_ir
from mlc.frontend.location import user_loc
from mlc.frontend.memory_format import check_memory_format
from mlc.frontend.memory_layout import MemoryLayout
from mlc.frontend.methods import OPERATIONS as OPERATIONS
from mlc.frontend.methods import SYNTAX, Methods, call
from mlc.frontend.methods import Dims as Dims
from mlc.frontend.methods import DTypeLike as DTypeLike
from mlc.frontend.methods import Operand as Operand
from mlc.frontend.nested_lists import LISTS, elements
from mlc.frontend.operators import PLAIN, Operators
from mlc.frontend.python_numbers import PythonNumbers
from mlc.frontend.size import Size
from mlc.frontend.storage import Storage, handed_out
from mlc.ir.diag import IRError, Loc, UserError, UserTypeError
from mlc.ir.types import f64, from_numpy, to_numpy

if TYPE_CHECKING:
    from mlc.frontend.autograd.view_node import View

Array = np.ndarray[Any, Any]
Number = bool | int | float | complex
_bool = bool                                             # inside the class below, methods hide these names
_int = int
_float = float


class Consumed:
    """Replaces the array of a tensor that was donated to a call; calls on the fast path record no location."""

    __slots__ = ("function", "loc")

    def __init__(self, loc: Loc | None, function: str) -> None:
        self.loc = loc
        self.function = function

    def __str__(self) -> str:
        return f"{self.function} at {self.loc}" if self.loc is not None else self.function


class Tensor(Differentiable, Dimensions, PythonNumbers, MemoryLayout, Conversions, Operators, Methods):
    """Array of elements of one dtype, in the memory of the CPU or of a GPU.

    Operators and methods give new tensors, with broadcasting and with promotion of dtypes as in PyTorch; views share
    the memory of the tensor that they are views of. `x[i] = y`, `x += y` and methods such as `add_` write to it.
    Operations on tensors that require a gradient are recorded, and `backward` computes it. Within a compiled function a
    tensor has a shape and a dtype, but no elements yet.

    Args:
        data: Array to wrap without a copy; do not write to it. Nested lists become float32, and sizes a tensor of
            that shape, of zeros where PyTorch leaves the elements undefined. `mlc.tensor` copies, and keeps integers.

    Raises:
        UserError: `data` is no array (MLC0345), a size is negative (MLC0358), or the tensor is used after a call to
            which it was donated (MLC0343).

    Example:
        >>> x = mlc.Tensor(np.array([1.0, 2.0, 3.0]))
        >>> x + 1
        tensor([2., 3., 4.], dtype=mlc.float64)
        >>> x.shape, x.dtype, x[1:].sum().item()
        ((3,), mlc.float64, 5.0)
    """

    __slots__ = ("__weakref__", "_array", "_storage", "_view")
    _array: Any                                          # a numpy array, one of a device, or Consumed
    _storage: Storage | None                             # of memory that is shared
    _view: View | None                                   # what it is a view of
    shared = True

    __hash__ = object.__hash__

    def __init__(self, *data: Any) -> None:
        self._array = data[0] if len(data) == 1 and type(data[0]) is np.ndarray else _from_arguments(data)
        self._autograd = self._storage = self._view = None

    # -- what it is ---------------------------------------------------------------------------------------------------
    @property
    def backing_array(self) -> BackingArray:
        """The array that holds the elements, a numpy array or that of a device; `Tensor.numpy` is for users.

        Raises:
            UserError: the tensor was donated to a call (MLC0343).
        """
        array = self._array
        if array is None or type(array) is Consumed:
            raise UserError(f"this tensor was donated to {array}, which took over its memory", code="MLC0343",
                            loc=user_loc(), hint="use what the call returned, or pass a copy: mlc.tensor(x)")
        return array  # type: ignore[no-any-return]

    @property
    def array(self) -> Array:
        """The numpy array itself, or a copy of a device array, for reading; `Tensor.numpy` is for users.

        Raises:
            UserError: the tensor was donated to a call (MLC0343).
        """
        if mode.captures is not None:
            mode.captures.note_read(self)
        array = self.backing_array
        return array if isinstance(array, np.ndarray) else array.numpy()

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the dimensions, a tuple; symbolic ones within a function that is compiled for all sizes.

        Example:
            >>> mlc.zeros(2, 3).shape, mlc.tensor(5).shape
            ((2, 3), ())
        """
        return tuple(self.backing_array.shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements, an `mlc.DType`.

        Example:
            >>> mlc.zeros(2).dtype, mlc.tensor([1, 2]).dtype
            (mlc.float32, mlc.int64)
        """
        return of_ir(from_numpy(self.backing_array.dtype))

    @property
    def device(self) -> Device:
        """The device that holds the elements, an `mlc.device`: "cpu", or "cuda:0" and so on.

        Example:
            >>> mlc.zeros(2).device == "cpu"
            True
        """
        return device_of(self.backing_array)

    @property
    def real(self) -> Tensor:
        """The real parts, which share the memory; the tensor itself if it is real. Assigning it writes to them.

        Example:
            >>> z = mlc.tensor([1 + 2j])
            >>> z.real = 5.0
            >>> z
            tensor([5.+2.j], dtype=mlc.complex64)
        """
        return call("real", self) if self.dtype.is_complex else self

    @real.setter
    def real(self, value: Any) -> None:
        SYNTAX["setitem"](self.real, ..., value)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, which share the memory. Assigning it writes to them.

        Raises:
            UserTypeError: the tensor is real (MLC0788).

        Example:
            >>> mlc.tensor([1 + 2j]).imag
            tensor([2.], dtype=mlc.float32)
        """
        return call("imag", self)

    @imag.setter
    def imag(self, value: Any) -> None:
        SYNTAX["setitem"](call("imag", self), ..., value)

    # -- leaving for Python and other libraries -----------------------------------------------------------------------
    def numpy(self, *, force: _bool = False) -> Array:
        """The elements as a numpy array. It shares the tensor's memory, so that each sees what is written to the other,
        unless that is on a device; np.array(x) is a copy.

        Args:
            force: As in PyTorch, without effect: tensors that require a gradient and those of devices give arrays, too.

        Returns:
            A numpy array of the tensor's shape and dtype; bfloat16 is that of the package ml_dtypes.

        Raises:
            UserError: the tensor was donated to a call (MLC0343).

        Example:
            >>> x = mlc.zeros(2)
            >>> x.numpy()[0] = 3
            >>> x
            tensor([3., 0.], dtype=mlc.float32)
        """
        if mode.captures is not None:
            mode.captures.note_read(self)
        return handed_out(self) if isinstance(self.backing_array, np.ndarray) else self.array

    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> Array:
        reads = copy or (dtype is not None and self.array.dtype != dtype)
        return np.array(self.array if reads else self.numpy(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """`np.sin(x)` and `array + x` are mlc.sin(x) and mlc.add(array, x); a function that mlc does not have, or one
        that writes to an array, as in `array += x`, is numpy's, on the elements."""
        name = UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and not keywords and ufunc.nout == 1 and name in OPERATIONS:
            return OPERATIONS[name](*inputs)
        if any(isinstance(x, Tensor) for x in keywords.get("out", ())):
            raise UserTypeError("numpy writes to arrays, not to tensors", code="MLC0422", loc=user_loc(),
                                hint="pass the array that has the tensor's memory: out=x.numpy()")
        try:
            out = getattr(ufunc, method)(*(x.array if isinstance(x, Tensor) else x for x in inputs), **keywords)
        except (TypeError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserTypeError(f"numpy.{ufunc.__name__}: {error}", code="MLC0422", loc=user_loc()) from None
        return wrap(out) if type(out) is np.ndarray and "out" not in keywords and out.dtype.kind in "biufc" else out

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[_int, _int] | None = None,
                   dl_device: tuple[Any, _int] | None = None, copy: _bool | None = None) -> Any:
        """A DLPack capsule of the elements, for other libraries.

        UserError MLC0346 where they are not of a dtype that DLPack shares, or MLC0884 where they are not on
        `dl_device`."""
        array = self.backing_array
        if not isinstance(array, np.ndarray):
            return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        if dl_device is not None and tuple(dl_device) != array.__dlpack_device__():
            raise UserError(f"a tensor on the CPU is no array of the DLPack device {tuple(dl_device)}", code="MLC0884",
                            loc=user_loc(), hint='move it first, as in x.to("cuda")')
        try:
            return handed_out(self).__dlpack__(max_version=max_version, copy=copy)
        except BufferError as error:                     # bfloat16, for which numpy has no name
            raise UserTypeError(f"a tensor of {self.dtype} cannot be shared: {error}", code="MLC0346", loc=user_loc(),
                                hint="share the bits, as in x.numpy().view(np.int16), or x.float()") from None

    def __dlpack_device__(self) -> tuple[_int, _int]:
        return self.backing_array.__dlpack_device__()

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the array API standard, `mlc.array_api`; UserError MLC0885 for another version of it."""
        return compiler().array_namespace(api_version)

    def __len__(self) -> _int:
        if not self.shape:
            raise UserTypeError("a 0-d tensor has no length", code="MLC0344", loc=user_loc(),
                                hint="x.item() is its number, x.numel() is 1")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if self._array is None or type(self._array) is Consumed:
            return f"tensor(<donated to {self._array}>)"
        prefix = "tensor("
        text = printing.shown(self.array, prefix)
        device = "" if self.device == CPU else f", device={self.device!r}"
        history = f", grad_fn={self.grad_fn}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"{prefix}{text}, dtype={self.dtype}{device}{history})"

    def _repr_html_(self) -> str:
        return printing.as_html(self)

    def __format__(self, spec: str) -> str:
        is_number = not self.shape and (spec or (type(self) is Tensor and self.frozen is None))
        return format(self.item(), spec) if is_number else format(repr(self), spec)

    def __getitem__(self, key: Any) -> Tensor:
        return OPERATIONS["getitem"](self, key)  # type: ignore[no-any-return]

    def __setitem__(self, key: Any, value: Any) -> None:
        SYNTAX["setitem"](self, key, value)

    # -- what PyTorch has ---------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name in ("_autograd", "_storage", "_view"):     # native code leaves these slots of its results empty
            setattr(self, name, None)
            return None
        raise unsupported_api.of_tensor(name, self)

    # -- other elements in its place, or elsewhere --------------------------------------------------------------------
    def to(self, target: Any = None, dtype: DTypeLike = None, non_blocking: _bool = False, copy: _bool = False, *,
           device: Any = None, memory_format: Any = None) -> Tensor:
        """The tensor in another dtype, on another device, or both; itself where nothing changes, unless `copy`.

        Args:
            target: A dtype, a device, or a tensor that tells both.
            dtype: The dtype.
            non_blocking: Accepted for PyTorch's sake, also in place of `dtype`, as in x.to(mlc.int64, True).
            copy: Whether the result has memory of its own in any case.
            device: The device, "cpu", "cuda" or "cuda:1".
            memory_format: Order of elements in memory, which is accepted and not made; see `mlc.memory_format`.

        Returns:
            Tensor of the same shape.

        Raises:
            UserError: `target` is neither a dtype nor a device (MLC0342), or there is no such device (MLC0337).

        Example:
            >>> mlc.tensor([1.7]).to(mlc.int64)
            tensor([1], dtype=mlc.int64)
        """
        check_memory_format(memory_format)
        if isinstance(dtype, _bool):
            dtype, copy = None, non_blocking or copy
        wanted, placed = destination(target, dtype, device)
        same = wanted is None or (type(self) is Tensor and wanted is self.dtype)
        out = self if same else call("cast", self, wanted)
        out = out if placed is None else out.to_device(placed)
        return out.clone() if copy and out is self else out

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The tensor on a device; itself if it is there. The copy is complete when the call returns.

        Args:
            device: "cpu", "cuda", "cuda:1" or an `mlc.device`.
            stream: Accepted for the array API standard's sake.

        Returns:
            Tensor of the same shape and dtype, through which gradients flow back.

        Raises:
            UserError: there is no device of that name (MLC0337).
            BackendError: the GPU cannot be used (MLC0580), for which `mlc.cuda.why_not` gives the reason.

        Example:
            >>> x = mlc.ones(2)
            >>> x.to_device("cpu") is x
            True
        """
        name = as_device(device) or CPU
        if name == self.device:
            return self
        return same_elements(wrap(self.array if name == CPU else Devices.put(self.array, name)), self)

    def replace_elements(self, new: Tensor) -> None:
        """Take over the elements of another tensor, with its dtype, its device, and the memory if that is shared.

        The gradient follows. What was computed of the former elements keeps them, and so do tensors that share the
        former memory.
        """
        array, storage = new.backing_array, new._storage
        if self._storage is not None:
            self._storage.touch()
        self._array, self._storage, self._view = array, None, None
        if storage is not None:
            storage.add(self)
        if self.grad is not None and (self.grad.dtype is not self.dtype or self.grad.device != self.device):
            self.grad = self.grad.to(self.dtype).to_device(self.device)

PLAIN.add(Tensor)
UFUNCS = {"subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow", "negative": "neg", "absolute": "abs",
          "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
          "invert": "bitwise_not", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
          "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "rint": "round"}
"""Names of numpy ufuncs that have another name in mlc."""


def wrap(array: BackingArray) -> Tensor:
    """The tensor of an array that is in standard layout, or on a device."""
    out = object.__new__(Tensor)
    out._array = array
    out._autograd = out._storage = out._view = None
    return out


def _from_arguments(data: tuple[Any, ...]) -> Array:
    """The array of `Tensor(data)` or `Tensor(2, 3)`."""
    if len(data) == 1 and isinstance(data[0], list | tuple) and not isinstance(data[0], Size):
        return np.array(as_array(data[0], "float32"), order="C")
    if len(data) == 1 and not isinstance(data[0], int | Size):
        return as_array(data[0])
    return call("zeros", *(data or (0,))).array


def as_array(x: Any, dtype: DTypeLike = None) -> Array:
    """The numpy array of anything that has one, copied only where it must be: into native byte order, or cast."""
    if isinstance(x, Tensor):
        array = x.array
    elif isinstance(x, np.ndarray | np.generic):
        array = np.asarray(x)
    elif hasattr(type(x), "__dlpack__"):
        array = from_dlpack(x)
    else:
        array = _from_python(x, narrow=dtype is None)
        if dtype is not None and array.dtype.kind in "iu":
            check_fits(array, to_numpy(as_dtype(dtype).ir))
    try:
        from_numpy(array.dtype)
    except IRError as error:
        raise UserTypeError(f"an array of {array.dtype} has no element type here", code="MLC0345",
                            loc=user_loc(), hint=error.hint) from None
    if dtype is not None:
        wanted = to_numpy(as_dtype(dtype).ir)
        if array.dtype.kind == "c" and wanted.kind not in "cb":
            raise UserTypeError(f"complex numbers do not fit in {wanted}", code="MLC0790", loc=user_loc(),
                                hint="pass the real parts, as in x.real")
        with np.errstate(over="ignore"):                   # to inf, as in every cast
            return array.astype(wanted, copy=False)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_fits(given: Array | int, wanted: np.dtype[Any]) -> None:
    """UserError if Python integers overflow an integer type; negative ones wrap around in unsigned types."""
    if wanted.kind not in "iu" or (isinstance(given, np.ndarray) and not given.size):
        return
    ends = np.iinfo(wanted)
    least, most = (given, given) if isinstance(given, int) else (int(given.min()), int(given.max()))
    if most > ends.max or least < (ends.min or -int(ends.max)):
        wide = most if most > ends.max else least
        raise UserError(f"{wide} does not fit in {wanted}", code="MLC0348", loc=user_loc(),
                        hint="cast an array of a wider type to have it wrap around")


def as_backing_array(x: Any) -> BackingArray:
    """Convert to an array, without a copy from device memory."""
    if isinstance(x, Tensor):
        return x.backing_array
    if not isinstance(x, np.ndarray) and hasattr(type(x), "__dlpack__") and dlpack_device(x) in Devices.dlpack_types():
        return Devices.import_dlpack(x)
    return as_array(x)


def _from_python(x: Any, narrow: bool) -> Array:
    """Numbers and nested lists: with `narrow`, Python floats are float32; integers are int64.

    If there are arrays among them, all are promoted to a common element type, as operands of an operation are.
    """
    found = list(elements(x))
    typed = [v for v in found if isinstance(v, Tensor | np.ndarray | np.generic)]
    for v in found:
        if not isinstance(v, bool | int | float | complex | Tensor | np.ndarray | np.generic):
            raise UserTypeError(f"{type(v).__name__} {v!r} is no number"[:200], code="MLC0345", loc=user_loc(),
                                hint="give numbers, or nested lists of them")
    try:
        array = np.array(_plain(x))
    except (ValueError, OverflowError):
        raise UserTypeError("nested lists of different lengths make no array", code="MLC0345",
                            loc=user_loc(), hint="pad them, as nn.utils.rnn.pad_sequence does") from None
    if not typed and array.dtype.kind != "b" and not any(isinstance(v, float | complex) for v in found) and found:
        if not narrow and array.dtype.kind not in "iu" and all(0 <= v < 2**64 for v in found):
            return np.array(_plain(x), np.uint64)          # of small and large ones, numpy makes floats
        if array.dtype.kind not in "iu" or (narrow and array.dtype != np.int64):
            wide = next(v for v in found if not -2**63 <= v < 2**63)
            raise UserError(f"{wide} does not fit in 64 bits", code="MLC0348", loc=user_loc())
        return array
    if typed:
        dtype = _common(found)
        return array if dtype is None else array.astype(dtype, copy=False)
    default = {"float64": np.float32, "complex128": np.complex64}.get(array.dtype.name)
    return array.astype(default) if default is not None and narrow else array


def _common(found: Sequence[Any]) -> np.dtype[Any] | None:
    """Promoted element type of the elements of nested lists; None to use numpy's."""
    typed = [as_array(v).dtype for v in found if isinstance(v, Tensor | np.ndarray | np.generic)]
    dtype = reduce(promote, map(from_numpy, typed))
    if not dtype.is_complex and any(type(v) is complex for v in found):
        return np.dtype(np.complex128 if dtype == f64 else np.complex64)
    if not dtype.is_inexact and any(type(v) is float for v in found):
        return np.dtype(np.float32)
    if dtype.is_bool and any(type(v) is int for v in found):
        return np.dtype(np.int64)
    return to_numpy(dtype)


def _plain(x: Any) -> Any:
    if isinstance(x, LISTS):
        return [_plain(v) for v in x]
    return x.array if isinstance(x, Tensor) else x
