"""The user's handle on an array: `Tensor`, with its methods and operators under PyTorch's names.

A tensor here holds a numpy array and never changes. While a function is recorded, its subclass `Tracer`
(frontend/trace.py) stands for a value that is not known yet. Every method is a function of `OPERATIONS`, which the
modules of frontend/functions fill, so that `x.sum(1)` and `mlc.sum(x, 1)` cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlc.frontend.dtypes import DType, as_dtype, of_ir
from mlc.frontend.location import user_loc
from mlc.frontend.tree import Leaf
from mlc.ir.diag import Loc, UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import from_numpy, to_numpy

Array = np.ndarray[Any, Any]
Number = bool | int | float
Operand = Any
"""What a function takes as an array: Tensor, numpy array, anything with `__dlpack__`, a number, a symbolic size.

A parameter with this annotation is an operand of the compiled kernel; every other is part of what is compiled.
"""
Dims = int | Sequence[int] | None
DTypeLike = Any

_bool = bool                                             # inside the class below, methods hide these names
_int = int
_float = float

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""Every public function on tensors by its name."""


class Consumed:
    """In place of the array of a tensor whose memory a call took over; the fast path does not know its line."""

    __slots__ = ("function", "loc")

    def __init__(self, loc: Loc | None, function: str) -> None:
        self.loc = loc
        self.function = function

    def __str__(self) -> str:
        return f"{self.function} at {self.loc}" if self.loc is not None else self.function


class Tensor(Leaf):
    """An array of one element type. Immutable; operators build new tensors, with broadcasting and promotion."""

    __slots__ = ("_array",)
    _array: Any                                          # a numpy array, or Consumed

    __array_ufunc__ = None                               # so that `numpy_array + tensor` is ours
    __hash__ = object.__hash__

    def __init__(self, data: Any) -> None:
        """Wrap an array without copying it; `mlc.tensor` copies and takes more."""
        self._array = data if type(data) is np.ndarray else as_array(data)

    # -- what it is ---------------------------------------------------------------------------------------------------
    @property
    def array(self) -> Array:
        """The numpy array itself; UserError if a call has taken it over."""
        array = self._array
        if type(array) is not np.ndarray:
            raise UserError(f"this tensor was donated to {array}, which took over its memory", code="MLC0343",
                            loc=user_loc(),
                            hint="use what the call returned, or pass a copy: mlc.tensor(x)")
        return array

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> DType:
        return of_ir(from_numpy(self.array.dtype))

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def ndim(self) -> _int:
        return len(self.shape)

    def dim(self) -> _int:
        return len(self.shape)

    def size(self, dim: _int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> Any:
        return self.array.size

    @property
    def T(self) -> Tensor:
        return self.permute(*range(self.ndim - 1, -1, -1))

    @property
    def mT(self) -> Tensor:
        return self.transpose(-2, -1)

    # -- leaving for Python and other libraries -----------------------------------------------------------------------
    def numpy(self) -> Array:
        """The array, not a copy of it: writing to it changes this tensor."""
        return self.array

    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __dlpack__(self, **keywords: Any) -> Any:
        try:
            return self.array.__dlpack__(**keywords)
        except BufferError as error:                     # bfloat16, for which numpy has no name
            raise UserTypeError(f"a tensor of {self.dtype} cannot be shared: {error}", code="MLC0346", loc=user_loc(),
                                hint="share the bits, as in x.numpy().view(np.int16), or x.float()") from None

    def __dlpack_device__(self) -> tuple[_int, int]:
        return (1, 0)                                    # kDLCPU

    def item(self) -> Any:
        array = self.array
        if array.size != 1:
            raise UserError(f"a tensor of shape {list(array.shape)} is no single number", code="MLC0344",
                            loc=user_loc())
        return array.item()

    def tolist(self) -> Any:
        return self.array.tolist()

    def __bool__(self) -> _bool:
        return bool(self.item())

    def __int__(self) -> _int:
        return int(self.item())

    def __float__(self) -> _float:
        return float(self.item())

    def __index__(self) -> _int:
        value = self.item()
        if not isinstance(value, int):
            raise UserTypeError(f"a tensor of {self.dtype} is no index", code="MLC0344", loc=user_loc())
        return value

    def __len__(self) -> _int:
        if not self.shape:
            raise UserTypeError("a 0-d tensor has no length", code="MLC0344", loc=user_loc())
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if type(self._array) is not np.ndarray:
            return f"tensor(<donated to {self._array}>)"
        prefix = "tensor("
        text = np.array2string(self._array, separator=", ", prefix=prefix)
        return f"{prefix}{text}, dtype={self.dtype})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.shape else format(repr(self), spec)

    def __getitem__(self, key: Any) -> Tensor:
        return _call("getitem", self, key)

    # -- operators ----------------------------------------------------------------------------------------------------
    def __add__(self, other: Operand) -> Tensor: return _binary("add", self, other)
    def __radd__(self, other: Operand) -> Tensor: return _binary("add", other, self)
    def __sub__(self, other: Operand) -> Tensor: return _binary("sub", self, other)
    def __rsub__(self, other: Operand) -> Tensor: return _binary("sub", other, self)
    def __mul__(self, other: Operand) -> Tensor: return _binary("mul", self, other)
    def __rmul__(self, other: Operand) -> Tensor: return _binary("mul", other, self)
    def __truediv__(self, other: Operand) -> Tensor: return _binary("div", self, other)
    def __rtruediv__(self, other: Operand) -> Tensor: return _binary("div", other, self)
    def __floordiv__(self, other: Operand) -> Tensor: return _binary("floor_divide", self, other)
    def __rfloordiv__(self, other: Operand) -> Tensor: return _binary("floor_divide", other, self)
    def __mod__(self, other: Operand) -> Tensor: return _binary("remainder", self, other)
    def __rmod__(self, other: Operand) -> Tensor: return _binary("remainder", other, self)
    def __pow__(self, other: Operand) -> Tensor: return _binary("pow", self, other)
    def __rpow__(self, other: Operand) -> Tensor: return _binary("pow", other, self)
    def __matmul__(self, other: Operand) -> Tensor: return _binary("matmul", self, other)
    def __rmatmul__(self, other: Operand) -> Tensor: return _binary("matmul", other, self)
    def __and__(self, other: Operand) -> Tensor: return _binary("bitwise_and", self, other)
    def __rand__(self, other: Operand) -> Tensor: return _binary("bitwise_and", other, self)
    def __or__(self, other: Operand) -> Tensor: return _binary("bitwise_or", self, other)
    def __ror__(self, other: Operand) -> Tensor: return _binary("bitwise_or", other, self)
    def __xor__(self, other: Operand) -> Tensor: return _binary("bitwise_xor", self, other)
    def __rxor__(self, other: Operand) -> Tensor: return _binary("bitwise_xor", other, self)
    def __lshift__(self, other: Operand) -> Tensor: return _binary("bitwise_left_shift", self, other)
    def __rshift__(self, other: Operand) -> Tensor: return _binary("bitwise_right_shift", self, other)
    def __eq__(self, other: Operand) -> Tensor: return _binary("eq", self, other)       # type: ignore[override]
    def __ne__(self, other: Operand) -> Tensor: return _binary("ne", self, other)       # type: ignore[override]
    def __lt__(self, other: Operand) -> Tensor: return _binary("lt", self, other)
    def __le__(self, other: Operand) -> Tensor: return _binary("le", self, other)
    def __gt__(self, other: Operand) -> Tensor: return _binary("gt", self, other)
    def __ge__(self, other: Operand) -> Tensor: return _binary("ge", self, other)
    def __neg__(self) -> Tensor: return _call("neg", self)
    def __pos__(self) -> Tensor: return self
    def __abs__(self) -> Tensor: return _call("abs", self)
    def __invert__(self) -> Tensor: return _call("bitwise_not", self)

    # -- element types ------------------------------------------------------------------------------------------------
    def to(self, dtype: DTypeLike) -> Tensor: return _call("cast", self, dtype)
    def type_as(self, other: Tensor) -> Tensor: return self.to(other.dtype)
    def float(self) -> Tensor: return self.to("float32")
    def double(self) -> Tensor: return self.to("float64")
    def half(self) -> Tensor: return self.to("float16")
    def bfloat16(self) -> Tensor: return self.to("bfloat16")
    def long(self) -> Tensor: return self.to("int64")
    def int(self) -> Tensor: return self.to("int32")
    def bool(self) -> Tensor: return self.to("bool")
    def detach(self) -> Tensor: return _call("detach", self)

    # -- element by element -------------------------------------------------------------------------------------------
    def abs(self) -> Tensor: return _call("abs", self)
    def neg(self) -> Tensor: return _call("neg", self)
    def sign(self) -> Tensor: return _call("sign", self)
    def exp(self) -> Tensor: return _call("exp", self)
    def exp2(self) -> Tensor: return _call("exp2", self)
    def expm1(self) -> Tensor: return _call("expm1", self)
    def log(self) -> Tensor: return _call("log", self)
    def log2(self) -> Tensor: return _call("log2", self)
    def log10(self) -> Tensor: return _call("log10", self)
    def log1p(self) -> Tensor: return _call("log1p", self)
    def sqrt(self) -> Tensor: return _call("sqrt", self)
    def rsqrt(self) -> Tensor: return _call("rsqrt", self)
    def square(self) -> Tensor: return _call("square", self)
    def reciprocal(self) -> Tensor: return _call("reciprocal", self)
    def sin(self) -> Tensor: return _call("sin", self)
    def cos(self) -> Tensor: return _call("cos", self)
    def tan(self) -> Tensor: return _call("tan", self)
    def tanh(self) -> Tensor: return _call("tanh", self)
    def sigmoid(self) -> Tensor: return _call("sigmoid", self)
    def erf(self) -> Tensor: return _call("erf", self)
    def relu(self) -> Tensor: return _call("relu", self)
    def floor(self) -> Tensor: return _call("floor", self)
    def ceil(self) -> Tensor: return _call("ceil", self)
    def round(self) -> Tensor: return _call("round", self)
    def trunc(self) -> Tensor: return _call("trunc", self)
    def isnan(self) -> Tensor: return _call("isnan", self)
    def isinf(self) -> Tensor: return _call("isinf", self)
    def isfinite(self) -> Tensor: return _call("isfinite", self)
    def logical_not(self) -> Tensor: return _call("logical_not", self)
    def logical_and(self, other: Operand) -> Tensor: return _call("logical_and", self, other)
    def logical_or(self, other: Operand) -> Tensor: return _call("logical_or", self, other)
    def add(self, other: Operand, *, alpha: Operand = 1) -> Tensor: return _call("add", self, other, alpha=alpha)
    def sub(self, other: Operand, *, alpha: Operand = 1) -> Tensor: return _call("sub", self, other, alpha=alpha)
    def mul(self, other: Operand) -> Tensor: return _call("mul", self, other)
    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        return _call("div", self, other, rounding_mode=rounding_mode)
    def floor_divide(self, other: Operand) -> Tensor: return _call("floor_divide", self, other)
    def remainder(self, other: Operand) -> Tensor: return _call("remainder", self, other)
    def pow(self, exponent: Operand) -> Tensor: return _call("pow", self, exponent)
    def maximum(self, other: Operand) -> Tensor: return _call("maximum", self, other)
    def minimum(self, other: Operand) -> Tensor: return _call("minimum", self, other)
    def eq(self, other: Operand) -> Tensor: return _call("eq", self, other)
    def ne(self, other: Operand) -> Tensor: return _call("ne", self, other)
    def lt(self, other: Operand) -> Tensor: return _call("lt", self, other)
    def le(self, other: Operand) -> Tensor: return _call("le", self, other)
    def gt(self, other: Operand) -> Tensor: return _call("gt", self, other)
    def ge(self, other: Operand) -> Tensor: return _call("ge", self, other)
    def clamp(self, min: Operand = None, max: Operand = None) -> Tensor: return _call("clamp", self, min, max)
    def lerp(self, end: Operand, weight: Operand) -> Tensor: return _call("lerp", self, end, weight)
    def masked_fill(self, mask: Operand, value: Operand) -> Tensor: return _call("masked_fill", self, mask, value)
    def where(self, condition: Operand, other: Operand) -> Tensor: return _call("where", condition, self, other)

    # -- reductions ---------------------------------------------------------------------------------------------------
    def sum(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return _call("sum", self, dim, keepdim, dtype=dtype)
    def mean(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return _call("mean", self, dim, keepdim, dtype=dtype)
    def prod(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return _call("prod", self, dim, keepdim, dtype=dtype)
    def var(self, dim: Dims = None, *, correction: _int = 1, keepdim: _bool = False) -> Tensor:
        return _call("var", self, dim, correction=correction, keepdim=keepdim)
    def std(self, dim: Dims = None, *, correction: _int = 1, keepdim: _bool = False) -> Tensor:
        return _call("std", self, dim, correction=correction, keepdim=keepdim)
    def amax(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return _call("amax", self, dim, keepdim)
    def amin(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return _call("amin", self, dim, keepdim)
    def max(self, dim: _int | None = None, keepdim: _bool = False) -> Any: return _call("max", self, dim, keepdim)
    def min(self, dim: _int | None = None, keepdim: _bool = False) -> Any: return _call("min", self, dim, keepdim)
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        return _call("argmax", self, dim, keepdim)
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        return _call("argmin", self, dim, keepdim)
    def any(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return _call("any", self, dim, keepdim)
    def all(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return _call("all", self, dim, keepdim)
    def logsumexp(self, dim: Dims, keepdim: _bool = False) -> Tensor: return _call("logsumexp", self, dim, keepdim)
    def norm(self, p: Any = 2, dim: Dims = None, keepdim: _bool = False) -> Tensor:
        return _call("norm", self, p, dim, keepdim)
    def softmax(self, dim: _int, dtype: DTypeLike = None) -> Tensor: return _call("softmax", self, dim, dtype)
    def log_softmax(self, dim: _int, dtype: DTypeLike = None) -> Tensor: return _call("log_softmax", self, dim, dtype)

    # -- shapes -------------------------------------------------------------------------------------------------------
    def reshape(self, *shape: Any) -> Tensor: return _call("reshape", self, _listed(shape))
    def view(self, *shape: Any) -> Tensor: return _call("reshape", self, _listed(shape))
    def permute(self, *dims: Any) -> Tensor: return _call("permute", self, _listed(dims))
    def transpose(self, dim0: _int, dim1: _int) -> Tensor: return _call("transpose", self, dim0, dim1)
    def t(self) -> Tensor: return _call("t", self)
    def squeeze(self, dim: Dims = None) -> Tensor: return _call("squeeze", self, dim)
    def unsqueeze(self, dim: _int) -> Tensor: return _call("unsqueeze", self, dim)
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        return _call("flatten", self, start_dim, end_dim)
    def ravel(self) -> Tensor: return _call("flatten", self)
    def expand(self, *sizes: Any) -> Tensor: return _call("expand", self, _listed(sizes))
    def broadcast_to(self, size: Sequence[Dim]) -> Tensor: return _call("broadcast_to", self, size)
    def repeat(self, *repeats: Any) -> Tensor: return _call("tile", self, _listed(repeats))
    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]: return tuple(_call("chunk", self, chunks, dim))
    def split(self, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        return tuple(_call("split", self, split_size, dim))
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor: return _call("narrow", self, dim, start, length)
    def flip(self, *dims: Any) -> Tensor: return _call("flip", self, _listed(dims))
    def roll(self, shifts: Any, dims: Any = None) -> Tensor: return _call("roll", self, shifts, dims)
    def tril(self, diagonal: _int = 0) -> Tensor: return _call("tril", self, diagonal)
    def triu(self, diagonal: _int = 0) -> Tensor: return _call("triu", self, diagonal)
    def index_select(self, dim: _int, index: Operand) -> Tensor: return _call("index_select", self, dim, index)
    def gather(self, dim: _int, index: Operand) -> Tensor: return _call("gather", self, dim, index)
    def take_along_dim(self, indices: Operand, dim: _int | None = None) -> Tensor:
        return _call("take_along_dim", self, indices, dim)
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        return _call("Tensor.unfold", self, dimension, size, step)

    # -- scans and scatters -------------------------------------------------------------------------------------------
    def cumsum(self, dim: _int, *, dtype: DTypeLike = None) -> Tensor: return _call("cumsum", self, dim, dtype=dtype)
    def cumprod(self, dim: _int, *, dtype: DTypeLike = None) -> Tensor: return _call("cumprod", self, dim, dtype=dtype)
    def cummax(self, dim: _int) -> Any: return _call("cummax", self, dim)
    def cummin(self, dim: _int) -> Any: return _call("cummin", self, dim)
    def logcumsumexp(self, dim: _int) -> Tensor: return _call("logcumsumexp", self, dim)
    def diff(self, n: _int = 1, dim: _int = -1) -> Tensor: return _call("diff", self, n, dim)
    def scatter(self, dim: _int, index: Operand, src: Operand, *, reduce: str | None = None) -> Tensor:
        return _call("scatter", self, dim, index, src, reduce=reduce)
    def scatter_add(self, dim: _int, index: Operand, src: Operand) -> Tensor:
        return _call("scatter_add", self, dim, index, src)
    def scatter_reduce(self, dim: _int, index: Operand, src: Operand, reduce: str, *,
                       include_self: _bool = True) -> Tensor:
        return _call("scatter_reduce", self, dim, index, src, reduce, include_self=include_self)
    def index_add(self, dim: _int, index: Operand, source: Operand, *, alpha: Operand = 1) -> Tensor:
        return _call("index_add", self, dim, index, source, alpha=alpha)
    def index_copy(self, dim: _int, index: Operand, source: Operand) -> Tensor:
        return _call("index_copy", self, dim, index, source)
    def index_fill(self, dim: _int, index: Operand, value: Operand) -> Tensor:
        return _call("index_fill", self, dim, index, value)

    # -- products -----------------------------------------------------------------------------------------------------
    def matmul(self, other: Operand) -> Tensor: return _call("matmul", self, other)
    def mm(self, mat2: Operand) -> Tensor: return _call("mm", self, mat2)
    def bmm(self, mat2: Operand) -> Tensor: return _call("bmm", self, mat2)
    def mv(self, vec: Operand) -> Tensor: return _call("mv", self, vec)
    def dot(self, other: Operand) -> Tensor: return _call("dot", self, other)
    def outer(self, vec2: Operand) -> Tensor: return _call("outer", self, vec2)


def _call(name: str, *args: Any, **keywords: Any) -> Tensor:
    return OPERATIONS[name](*args, **keywords)  # type: ignore[no-any-return]


def _binary(name: str, a: Any, b: Any) -> Tensor:
    if not (is_operand(a) and is_operand(b)):
        return NotImplemented  # type: ignore[no-any-return]
    return OPERATIONS[name](a, b)  # type: ignore[no-any-return]


def _listed(sizes: tuple[Any, ...]) -> Any:
    """`f(2, 3)` and `f((2, 3))` mean the same."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes


def is_operand(x: Any) -> bool:
    from mlc.ir.sizes import Size
    return isinstance(x, Tensor | np.ndarray | bool | int | float | np.generic | Size) or hasattr(type(x), "__dlpack__")


def wrap(array: Array) -> Tensor:
    """The tensor of an array that is in standard layout."""
    out = object.__new__(Tensor)
    out._array = array
    return out


def as_array(x: Any, dtype: DTypeLike = None) -> Array:
    """The numpy array of anything that has one, copied only where it must be: into native byte order, or cast."""
    if isinstance(x, Tensor):
        array = x.array
    elif isinstance(x, np.ndarray | np.generic):
        array = np.asarray(x)
    elif hasattr(type(x), "__dlpack__"):
        array = from_dlpack(x)
    else:
        array = _from_python(x)
    if dtype is not None:
        array = array.astype(to_numpy(as_dtype(dtype).ir), copy=False)
    try:
        from_numpy(array.dtype)
    except Exception as error:
        raise UserTypeError(f"an array of {array.dtype} has no element type here", code="MLC0345",
                            loc=user_loc(), hint=getattr(error, "hint", None)) from None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _from_python(x: Any) -> Array:
    """Numbers and nested lists: Python floats are float32, integers int64."""
    try:
        array = np.array([_plain(v) for v in x]) if isinstance(x, list | tuple) else np.array(_plain(x))
    except ValueError:
        raise UserTypeError("nested lists of different lengths make no array", code="MLC0345",
                            loc=user_loc()) from None
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise UserTypeError(f"{type(x).__name__} makes no array", code="MLC0345", loc=user_loc())
    holds_typed = isinstance(x, list | tuple) and any(isinstance(v, Tensor | np.ndarray | np.generic) for v in x)
    return array.astype(np.float32) if array.dtype == np.float64 and not holds_typed else array


def _plain(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_plain(v) for v in x]
    return x.array if isinstance(x, Tensor) else x


def from_dlpack(x: Any) -> Array:
    """The array of another library's tensor, sharing its memory."""
    name = f"{type(x).__module__}.{type(x).__name__}"
    try:
        if x.__dlpack_device__()[0] not in (1, 3, 11):            # CPU, CUDA host memory, CUDA managed memory
            raise UserTypeError(f"a {name} that is not in the CPU's memory cannot be used here", code="MLC0346",
                                loc=user_loc(), hint="move it first: x.cpu()")
        if name.startswith("torch."):
            x = _plain_torch(x)
        return x if isinstance(x, np.ndarray) else np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserTypeError(f"a {name} cannot be shared: {error}", code="MLC0346", loc=user_loc()) from None


def _plain_torch(x: Any) -> Any:
    """A torch tensor without what DLPack refuses: a gradient to record, and bfloat16, which numpy has no name for."""
    import torch
    x = x.detach()
    if x.dtype is torch.bfloat16:
        import ml_dtypes
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x
