"""The methods of `Tensor` under PyTorch's names: each is a function of `OPERATIONS`, which the modules of
frontend/functions fill, so that `x.sum(1)` and `mlc.sum(x, 1)` cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.dtypes import is_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.tree import Leaf
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

Operand = Any
"""Array-like argument of a function: Tensor, numpy array, anything with `__dlpack__`, a number, a symbolic size.

A parameter with this annotation is an operand of the compiled kernel; all others are compile-time constants.
"""
Dims = int | Sequence[int] | None
DTypeLike = Any

_bool = bool                                             # inside the class below, methods hide these names
_int = int
_float = float

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""Every public function on tensors by its name."""
SYNTAX: dict[str, Callable[..., Any]] = {}
"""Functions that Python's assignments to and through tensors call."""


def call(name: str, *args: Any, **keywords: Any) -> Tensor:
    """Call the public function `name`."""
    return OPERATIONS[name](*args, **keywords)  # type: ignore[no-any-return]


def listed(given: tuple[Any, ...]) -> Any:
    """The sizes or tensors of `f(2, 3)` or `f((2, 3))`."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else given


class Methods(Leaf):
    """Methods of a tensor that are public functions: `x.f(...)` is `mlc.f(x, ...)`, with the same documentation."""

    __slots__ = ()

    # -- element types ------------------------------------------------------------------------------------------------
    def clone(self, memory_format: Any = None) -> Tensor: return call("clone", self, memory_format)
    def contiguous(self, memory_format: Any = None) -> Tensor: return call("contiguous", self, memory_format)
    def detach(self) -> Tensor: return call("detach", self)

    # -- element by element -------------------------------------------------------------------------------------------
    def abs(self) -> Tensor: return call("abs", self)
    def neg(self) -> Tensor: return call("neg", self)
    def sign(self) -> Tensor: return call("sign", self)
    def exp(self) -> Tensor: return call("exp", self)
    def exp2(self) -> Tensor: return call("exp2", self)
    def expm1(self) -> Tensor: return call("expm1", self)
    def log(self) -> Tensor: return call("log", self)
    def log2(self) -> Tensor: return call("log2", self)
    def log10(self) -> Tensor: return call("log10", self)
    def log1p(self) -> Tensor: return call("log1p", self)
    def sqrt(self) -> Tensor: return call("sqrt", self)
    def rsqrt(self) -> Tensor: return call("rsqrt", self)
    def square(self) -> Tensor: return call("square", self)
    def reciprocal(self) -> Tensor: return call("reciprocal", self)
    def sin(self) -> Tensor: return call("sin", self)
    def cos(self) -> Tensor: return call("cos", self)
    def tan(self) -> Tensor: return call("tan", self)
    def tanh(self) -> Tensor: return call("tanh", self)
    def sigmoid(self) -> Tensor: return call("sigmoid", self)
    def erf(self) -> Tensor: return call("erf", self)
    def relu(self) -> Tensor: return call("relu", self)
    def floor(self) -> Tensor: return call("floor", self)
    def ceil(self) -> Tensor: return call("ceil", self)
    def round(self, *, decimals: _int = 0) -> Tensor: return call("round", self, decimals=decimals)
    def trunc(self) -> Tensor: return call("trunc", self)
    def isnan(self) -> Tensor: return call("isnan", self)
    def isinf(self) -> Tensor: return call("isinf", self)
    def isfinite(self) -> Tensor: return call("isfinite", self)
    def logical_not(self) -> Tensor: return call("logical_not", self)
    def positive(self) -> Tensor: return call("positive", self)
    def asin(self) -> Tensor: return call("asin", self)
    def acos(self) -> Tensor: return call("acos", self)
    def atan(self) -> Tensor: return call("atan", self)
    def sinh(self) -> Tensor: return call("sinh", self)
    def cosh(self) -> Tensor: return call("cosh", self)
    def asinh(self) -> Tensor: return call("asinh", self)
    def acosh(self) -> Tensor: return call("acosh", self)
    def atanh(self) -> Tensor: return call("atanh", self)
    def sinc(self) -> Tensor: return call("sinc", self)
    def erfc(self) -> Tensor: return call("erfc", self)
    def erfinv(self) -> Tensor: return call("erfinv", self)
    def frac(self) -> Tensor: return call("frac", self)
    def deg2rad(self) -> Tensor: return call("deg2rad", self)
    def rad2deg(self) -> Tensor: return call("rad2deg", self)
    def isposinf(self) -> Tensor: return call("isposinf", self)
    def isneginf(self) -> Tensor: return call("isneginf", self)
    def signbit(self) -> Tensor: return call("signbit", self)
    def bitwise_not(self) -> Tensor: return call("bitwise_not", self)
    def logical_and(self, other: Operand) -> Tensor: return call("logical_and", self, other)
    def logical_or(self, other: Operand) -> Tensor: return call("logical_or", self, other)
    def logical_xor(self, other: Operand) -> Tensor: return call("logical_xor", self, other)
    def bitwise_and(self, other: Operand) -> Tensor: return call("bitwise_and", self, other)
    def bitwise_or(self, other: Operand) -> Tensor: return call("bitwise_or", self, other)
    def bitwise_xor(self, other: Operand) -> Tensor: return call("bitwise_xor", self, other)
    def bitwise_left_shift(self, other: Operand) -> Tensor: return call("bitwise_left_shift", self, other)
    def bitwise_right_shift(self, other: Operand) -> Tensor: return call("bitwise_right_shift", self, other)
    def add(self, other: Operand, *, alpha: Operand = 1) -> Tensor: return call("add", self, other, alpha=alpha)
    def sub(self, other: Operand, *, alpha: Operand = 1) -> Tensor: return call("sub", self, other, alpha=alpha)
    def mul(self, other: Operand) -> Tensor: return call("mul", self, other)
    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        return call("div", self, other, rounding_mode=rounding_mode)
    def floor_divide(self, other: Operand) -> Tensor: return call("floor_divide", self, other)
    def remainder(self, other: Operand) -> Tensor: return call("remainder", self, other)
    def pow(self, exponent: Operand) -> Tensor: return call("pow", self, exponent)
    def maximum(self, other: Operand) -> Tensor: return call("maximum", self, other)
    def minimum(self, other: Operand) -> Tensor: return call("minimum", self, other)
    def fmax(self, other: Operand) -> Tensor: return call("fmax", self, other)
    def fmin(self, other: Operand) -> Tensor: return call("fmin", self, other)
    def fmod(self, other: Operand) -> Tensor: return call("fmod", self, other)
    def atan2(self, other: Operand) -> Tensor: return call("atan2", self, other)
    def hypot(self, other: Operand) -> Tensor: return call("hypot", self, other)
    def copysign(self, other: Operand) -> Tensor: return call("copysign", self, other)
    def logaddexp(self, other: Operand) -> Tensor: return call("logaddexp", self, other)
    def logaddexp2(self, other: Operand) -> Tensor: return call("logaddexp2", self, other)
    def xlogy(self, other: Operand) -> Tensor: return call("xlogy", self, other)
    def float_power(self, exponent: Operand) -> Tensor: return call("float_power", self, exponent)
    def ldexp(self, other: Operand) -> Tensor: return call("ldexp", self, other)
    def heaviside(self, values: Operand) -> Tensor: return call("heaviside", self, values)
    def eq(self, other: Operand) -> Tensor: return call("eq", self, other)
    def ne(self, other: Operand) -> Tensor: return call("ne", self, other)
    def lt(self, other: Operand) -> Tensor: return call("lt", self, other)
    def le(self, other: Operand) -> Tensor: return call("le", self, other)
    def gt(self, other: Operand) -> Tensor: return call("gt", self, other)
    def ge(self, other: Operand) -> Tensor: return call("ge", self, other)
    def clamp(self, min: Operand = None, max: Operand = None) -> Tensor: return call("clamp", self, min, max)
    def lerp(self, end: Operand, weight: Operand) -> Tensor: return call("lerp", self, end, weight)
    def clamp_min(self, min: Operand) -> Tensor: return call("clamp_min", self, min)
    def clamp_max(self, max: Operand) -> Tensor: return call("clamp_max", self, max)
    def addcmul(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        return call("addcmul", self, tensor1, tensor2, value=value)
    def addcdiv(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        return call("addcdiv", self, tensor1, tensor2, value=value)
    def logit(self, eps: _float | None = None) -> Tensor: return call("logit", self, eps)
    def nan_to_num(self, nan: Operand = 0.0, posinf: Operand = None, neginf: Operand = None) -> Tensor:
        return call("nan_to_num", self, nan, posinf, neginf)
    def isclose(self, other: Operand, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False) -> Tensor:
        return call("isclose", self, other, rtol, atol, equal_nan)
    def allclose(self, other: Operand, rtol: _float = 1e-5, atol: _float = 1e-8, equal_nan: _bool = False) -> _bool:
        return OPERATIONS["allclose"](self, other, rtol, atol, equal_nan)  # type: ignore[no-any-return]
    def equal(self, other: Operand) -> _bool: return OPERATIONS["equal"](self, other)  # type: ignore[no-any-return]
    def masked_fill(self, mask: Operand, value: Operand) -> Tensor: return call("masked_fill", self, mask, value)
    def where(self, condition: Operand, other: Operand) -> Tensor: return call("where", condition, self, other)

    # -- reductions ---------------------------------------------------------------------------------------------------
    def sum(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return call("sum", self, dim, keepdim, dtype=dtype)
    def mean(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return call("mean", self, dim, keepdim, dtype=dtype)
    def prod(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return call("prod", self, dim, keepdim, dtype=dtype)
    def var(self, dim: Dims | _bool = None, unbiased: _bool | None = None, keepdim: _bool = False, *,
            correction: _int | None = 1) -> Tensor:
        return call("var", self, dim, unbiased, keepdim, correction=correction)
    def std(self, dim: Dims | _bool = None, unbiased: _bool | None = None, keepdim: _bool = False, *,
            correction: _int | None = 1) -> Tensor:
        return call("std", self, dim, unbiased, keepdim, correction=correction)
    def amax(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return call("amax", self, dim, keepdim)
    def amin(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return call("amin", self, dim, keepdim)
    def max(self, dim: _int | Operand | None = None, keepdim: _bool = False, *, other: Operand = None) -> Any:
        return call("max", self, dim, keepdim, other=other)
    def min(self, dim: _int | Operand | None = None, keepdim: _bool = False, *, other: Operand = None) -> Any:
        return call("min", self, dim, keepdim, other=other)
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        return call("argmax", self, dim, keepdim)
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        return call("argmin", self, dim, keepdim)
    def any(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return call("any", self, dim, keepdim)
    def all(self, dim: Dims = None, keepdim: _bool = False) -> Tensor: return call("all", self, dim, keepdim)
    def logsumexp(self, dim: Dims, keepdim: _bool = False) -> Tensor: return call("logsumexp", self, dim, keepdim)
    def norm(self, p: Any = 2, dim: Dims = None, keepdim: _bool = False, dtype: DTypeLike = None) -> Tensor:
        return call("norm", self, p, dim, keepdim, dtype=dtype)
    def nansum(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return call("nansum", self, dim, keepdim, dtype=dtype)
    def nanmean(self, dim: Dims = None, keepdim: _bool = False, *, dtype: DTypeLike = None) -> Tensor:
        return call("nanmean", self, dim, keepdim, dtype=dtype)
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> Any:
        return call("aminmax", self, dim=dim, keepdim=keepdim)
    def count_nonzero(self, dim: Dims = None) -> Tensor: return call("count_nonzero", self, dim)
    def nonzero(self, *, as_tuple: _bool = False) -> Any: return call("nonzero", self, as_tuple=as_tuple)
    def argwhere(self) -> Tensor: return call("argwhere", self)
    def masked_select(self, mask: Operand) -> Tensor: return call("masked_select", self, mask)
    def unique(self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False,
               dim: _int | None = None) -> Any:
        return call("unique", self, sorted, return_inverse, return_counts, dim)
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False,
                           dim: _int | None = None) -> Any:
        return call("unique_consecutive", self, return_inverse, return_counts, dim)
    def dist(self, other: Operand, p: _float = 2) -> Tensor: return call("dist", self, other, p)

    # -- random numbers -----------------------------------------------------------------------------------------------
    def bernoulli(self, p: Operand = None, *, generator: Any = None) -> Tensor:
        return call("bernoulli", self, p, generator=generator)
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Any = None) -> Tensor:
        return call("multinomial", self, num_samples, replacement, generator=generator)

    def prelu(self, weight: Operand) -> Tensor: return call("prelu", self, weight)
    def hardshrink(self, lambd: _float = 0.5) -> Tensor: return call("hardshrink", self, lambd)
    def cov(self, *, correction: _int = 1, fweights: Operand = None, aweights: Operand = None) -> Tensor:
        return call("cov", self, correction=correction, fweights=fweights, aweights=aweights)
    def corrcoef(self) -> Tensor: return call("corrcoef", self)
    def is_nonzero(self) -> _bool:
        """Whether the only element is not 0, as bool(x); NaN is not.

        Returns:
            A bool.

        Raises:
            UserError: there are several elements, or none (MLC0344).

        Example:
            >>> mlc.tensor([0.5]).is_nonzero(), mlc.tensor(0).is_nonzero()
            (True, False)
        """
        return bool(self)

    # -- order --------------------------------------------------------------------------------------------------------
    def sort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Any:
        return call("sort", self, dim, descending, stable)
    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        return call("argsort", self, dim, descending, stable)
    def msort(self) -> Tensor: return call("msort", self)
    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Any:
        return call("topk", self, k, dim, largest, sorted)
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> Any:
        return call("kthvalue", self, k, dim, keepdim)
    def median(self, dim: _int | None = None, keepdim: _bool = False) -> Any: return call("median", self, dim, keepdim)
    def nanmedian(self, dim: _int | None = None, keepdim: _bool = False) -> Any:
        return call("nanmedian", self, dim, keepdim)
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> Any: return call("mode", self, dim, keepdim)
    def quantile(self, q: Operand, dim: _int | None = None, keepdim: _bool = False, *,
                 interpolation: str = "linear") -> Tensor:
        return call("quantile", self, q, dim, keepdim, interpolation=interpolation)
    def nanquantile(self, q: Operand, dim: _int | None = None, keepdim: _bool = False, *,
                    interpolation: str = "linear") -> Tensor:
        return call("nanquantile", self, q, dim, keepdim, interpolation=interpolation)
    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        return call("histc", self, bins, min, max)
    def bincount(self, weights: Operand = None, minlength: _int = 0) -> Tensor:
        return call("bincount", self, weights, minlength)
    def softmax(self, dim: _int, dtype: DTypeLike = None) -> Tensor: return call("softmax", self, dim, dtype)
    def log_softmax(self, dim: _int, dtype: DTypeLike = None) -> Tensor: return call("log_softmax", self, dim, dtype)

    # -- shapes -------------------------------------------------------------------------------------------------------
    def reshape(self, *shape: Any) -> Tensor: return call("reshape", self, listed(shape))
    def view(self, *shape: Any, dtype: DTypeLike = None) -> Tensor:
        """The same elements, in the same memory, under another shape, or their bits as elements of another dtype.

        A dtype of another width changes the last dimension: two elements of 16 bits make one of 32. Such a view has no
        derivative.

        Args:
            shape: Sizes, as separate arguments or as one sequence; one may be -1, which stands for what the others
                leave. Or one dtype.
            dtype: The dtype, in place of a shape.

        Returns:
            Tensor of that shape and the same dtype, or of that dtype, which shares the memory.

        Raises:
            UserError: the shape does not hold as many elements, or the last dimension does not make whole elements of
                the dtype (MLC0358), the elements do not lie in memory in that order (MLC0751), as after
                `mlc.transpose`: `mlc.reshape` copies them, a dtype of another width is given to a tensor without
                dimensions (MLC0364), or both a shape and a dtype are given (MLC0321).
            UserTypeError: The dtype is bool, which not all bits are (MLC0113).

        Example:
            >>> mlc.arange(6).view(2, -1)
            tensor([[0, 1, 2],
                    [3, 4, 5]], dtype=mlc.int64)
            >>> mlc.tensor([1.0, -0.0]).view(mlc.int32)
            tensor([ 1065353216, -2147483648], dtype=mlc.int32)
        """
        if len(shape) == 1 and dtype is None and is_dtype(shape[0]):
            return call("Tensor.view", self, shape[0])
        if dtype is None:
            return call("view", self, listed(shape))
        if shape:
            raise UserTypeError("view: takes a shape or a dtype, not both", code="MLC0321", loc=user_loc(),
                                hint="x.view(dtype).view(...)")
        return call("Tensor.view", self, dtype)
    def permute(self, *dims: Any) -> Tensor: return call("permute", self, listed(dims))
    def as_strided(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        return call("as_strided", self, size, stride, storage_offset)
    def new_empty_strided(self, size: Sequence[_int], stride: Sequence[_int], dtype: DTypeLike = None,
                          device: Any = None) -> Tensor:
        """A tensor with strides of its own, as `mlc.empty_strided`, of the dtype and on the device of this tensor.

        Args:
            size: Shape.
            stride: Distance between neighbours along each dimension, in elements.
            dtype: Dtype of the result; that of this tensor by default.
            device: Device of the result; that of this tensor by default.

        Returns:
            Tensor of shape `size`; its elements are 0 here.

        Raises:
            UserError: a number is negative (MLC0358), or there are not as many strides as sizes (MLC0357).

        Example:
            >>> mlc.zeros(2).new_empty_strided((2, 3), (1, 2)).stride()
            (1, 2)
        """
        like: Any = self
        return call("empty_strided", size, stride, dtype=dtype or like.dtype, device=device or like.device)
    def as_strided_scatter(self, src: Operand, size: Sequence[_int], stride: Sequence[_int],
                           storage_offset: _int | None = None) -> Tensor:
        return call("as_strided_scatter", self, src, size, stride, storage_offset)
    def transpose(self, dim0: _int, dim1: _int) -> Tensor: return call("transpose", self, dim0, dim1)
    def t(self) -> Tensor: return call("t", self)
    def adjoint(self) -> Tensor: return call("adjoint", self)
    def squeeze(self, dim: Dims = None) -> Tensor: return call("squeeze", self, dim)
    def unsqueeze(self, dim: _int) -> Tensor: return call("unsqueeze", self, dim)
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        return call("flatten", self, start_dim, end_dim)
    def ravel(self) -> Tensor: return call("ravel", self)
    def expand(self, *sizes: Any) -> Tensor: return call("expand", self, listed(sizes))
    def broadcast_to(self, size: Sequence[Dim]) -> Tensor: return call("broadcast_to", self, size)
    def repeat(self, *repeats: Any) -> Tensor:
        """The tensor repeated as a whole along its dimensions; see `mlc.tile`.

        Args:
            repeats: How often it is repeated along each dimension, as separate arguments or as one sequence; they are
                aligned from the last, so that more numbers than dimensions add dimensions before the first.

        Returns:
            Tensor of the same dtype, with sizes repeats[i] times as great.

        Raises:
            UserError: there are fewer numbers than dimensions (MLC0357), which `mlc.tile` permits, or a number is no
                integer (MLC0355) or negative (MLC0116).

        Example:
            >>> mlc.tensor([1, 2]).repeat(2, 2)
            tensor([[1, 2, 1, 2],
                    [1, 2, 1, 2]], dtype=mlc.int64)
        """
        like, numbers = self, listed(repeats)               # type: Any, Any
        if len(numbers) < like.ndim:
            raise UserError(f"repeat: {len(numbers)} numbers for a tensor of {like.ndim} dimensions", code="MLC0357",
                            loc=user_loc(), hint="give one for each dimension; mlc.tile takes those of the last ones")
        return call("tile", self, numbers)
    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]: return tuple(call("chunk", self, chunks, dim))
    def split(self, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        return tuple(call("split", self, split_size, dim))
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor: return call("narrow", self, dim, start, length)
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor:
        return call("narrow_copy", self, dim, start, length)
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        return tuple(call("chunk", self, chunks, dim))
    def unsafe_split(self, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        return tuple(call("split", self, split_size, dim))
    def unsafe_split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> Any:
        return call("split_with_sizes", self, split_sizes, dim)
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]: return tuple(call("unbind", self, dim))
    def tensor_split(self, indices_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        return tuple(call("tensor_split", self, indices_or_sections, dim))
    def hsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        return tuple(call("hsplit", self, indices_or_sections))
    def vsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        return tuple(call("vsplit", self, indices_or_sections))
    def dsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        return tuple(call("dsplit", self, indices_or_sections))
    def select(self, dim: _int, index: _int) -> Tensor: return call("select", self, dim, index)
    def unflatten(self, dim: _int, sizes: Sequence[Dim]) -> Tensor: return call("unflatten", self, dim, sizes)
    def movedim(self, source: Dims, destination: Dims) -> Tensor: return call("movedim", self, source, destination)
    def moveaxis(self, source: Dims, destination: Dims) -> Tensor: return call("movedim", self, source, destination)
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor: return call("transpose", self, axis0, axis1)
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor: return call("transpose", self, dim0, dim1)
    def view_as(self, other: Tensor) -> Tensor:
        """The same elements, in the same memory, under the shape of another tensor: x.view(other.shape).

        Args:
            other: Tensor of as many elements.

        Returns:
            Tensor of that shape and the dtype of this one, which shares the memory.

        Raises:
            UserError: the shape does not hold as many elements (MLC0358), or the elements do not lie in memory in that
                order (MLC0751).

        Example:
            >>> mlc.arange(4).view_as(mlc.zeros(2, 2))
            tensor([[0, 1],
                    [2, 3]], dtype=mlc.int64)
        """
        return call("view", self, other.shape)
    def reshape_as(self, other: Tensor) -> Tensor:
        """The same elements under the shape of another tensor: x.reshape(other.shape).

        Args:
            other: Tensor of as many elements.

        Returns:
            Tensor of that shape and the dtype of this one; it shares the memory where the order of the elements allows
            it.

        Raises:
            UserError: the shape does not hold as many elements (MLC0358).

        Example:
            >>> mlc.arange(4).reshape_as(mlc.zeros(2, 2))
            tensor([[0, 1],
                    [2, 3]], dtype=mlc.int64)
        """
        return call("reshape", self, other.shape)
    def expand_as(self, other: Tensor) -> Tensor:
        """The tensor repeated to the shape of another: x.expand(other.shape).

        Args:
            other: Tensor to whose shape that of this one broadcasts.

        Returns:
            Tensor of that shape and the dtype of this one, a view in which elements are repeated.

        Raises:
            UserError: the shapes do not broadcast (MLC0111).

        Example:
            >>> mlc.tensor([1, 2]).expand_as(mlc.zeros(2, 2))
            tensor([[1, 2],
                    [1, 2]], dtype=mlc.int64)
        """
        return call("expand", self, other.shape)
    def tile(self, *dims: Any) -> Tensor: return call("tile", self, listed(dims))
    def repeat_interleave(self, repeats: Any = None, dim: _int | None = None, *,
                          output_size: _int | None = None) -> Tensor:
        return call("repeat_interleave", self, repeats, dim, output_size=output_size)
    def fliplr(self) -> Tensor: return call("fliplr", self)
    def flipud(self) -> Tensor: return call("flipud", self)
    def rot90(self, k: _int = 1, dims: Sequence[_int] = (0, 1)) -> Tensor: return call("rot90", self, k, dims)
    def diag(self, diagonal: _int = 0) -> Tensor: return call("diag", self, diagonal)
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        return call("diagonal", self, offset, dim1, dim2)
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        return call("diag_embed", self, offset, dim1, dim2)
    def diagflat(self, offset: _int = 0) -> Tensor: return call("diagflat", self, offset)
    def take(self, index: Operand) -> Tensor: return call("take", self, index)
    def flip(self, *dims: Any) -> Tensor: return call("flip", self, listed(dims))
    def roll(self, shifts: Any, dims: Any = None) -> Tensor: return call("roll", self, shifts, dims)
    def tril(self, diagonal: _int = 0) -> Tensor: return call("tril", self, diagonal)
    def triu(self, diagonal: _int = 0) -> Tensor: return call("triu", self, diagonal)
    def index_select(self, dim: _int, index: Operand) -> Tensor: return call("index_select", self, dim, index)
    def gather(self, dim: _int, index: Operand) -> Tensor: return call("gather", self, dim, index)
    def take_along_dim(self, indices: Operand, dim: _int | None = None) -> Tensor:
        return call("take_along_dim", self, indices, dim)
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        return call("Tensor.unfold", self, dimension, size, step)
    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> Any:
        return call("split_with_sizes", self, split_sizes, dim)

    # -- scans and scatters -------------------------------------------------------------------------------------------
    def cumsum(self, dim: _int, *, dtype: DTypeLike = None) -> Tensor: return call("cumsum", self, dim, dtype=dtype)
    def cumprod(self, dim: _int, *, dtype: DTypeLike = None) -> Tensor: return call("cumprod", self, dim, dtype=dtype)
    def cummax(self, dim: _int) -> Any: return call("cummax", self, dim)
    def cummin(self, dim: _int) -> Any: return call("cummin", self, dim)
    def logcumsumexp(self, dim: _int) -> Tensor: return call("logcumsumexp", self, dim)
    def diff(self, n: _int = 1, dim: _int = -1) -> Tensor: return call("diff", self, n, dim)
    def scatter(self, dim: _int, index: Operand, src: Operand, *, reduce: str | None = None) -> Tensor:
        return call("scatter", self, dim, index, src, reduce=reduce)
    def scatter_add(self, dim: _int, index: Operand, src: Operand) -> Tensor:
        return call("scatter_add", self, dim, index, src)
    def scatter_reduce(self, dim: _int, index: Operand, src: Operand, reduce: str, *,
                       include_self: _bool = True) -> Tensor:
        return call("scatter_reduce", self, dim, index, src, reduce, include_self=include_self)
    def index_add(self, dim: _int, index: Operand, source: Operand, *, alpha: Operand = 1) -> Tensor:
        return call("index_add", self, dim, index, source, alpha=alpha)
    def index_copy(self, dim: _int, index: Operand, source: Operand) -> Tensor:
        return call("index_copy", self, dim, index, source)
    def index_fill(self, dim: _int, index: Operand, value: Operand) -> Tensor:
        return call("index_fill", self, dim, index, value)

    def select_scatter(self, src: Operand, dim: _int, index: _int) -> Tensor:
        return call("select_scatter", self, src, dim, index)
    def slice_scatter(self, src: Operand, dim: _int = 0, start: _int | None = None, end: _int | None = None,
                      step: _int = 1) -> Tensor:
        return call("slice_scatter", self, src, dim, start, end, step)
    def diagonal_scatter(self, src: Operand, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        return call("diagonal_scatter", self, src, offset, dim1, dim2)
    def masked_scatter(self, mask: Operand, source: Operand) -> Tensor:
        return call("masked_scatter", self, mask, source)
    def index_put(self, indices: Sequence[Operand], values: Operand, accumulate: _bool = False) -> Tensor:
        return call("index_put", self, indices, values, accumulate)
    def put(self, index: Operand, source: Operand, accumulate: _bool = False) -> Tensor:
        return call("put", self, index, source, accumulate)
    def sum_to_size(self, *size: Any) -> Tensor:
        """The sum over the dimensions along which a shape would broadcast to that of the tensor; the opposite of
        expand.

        Args:
            size: Sizes, as separate arguments or as one sequence: a shape that broadcasts to that of the tensor.

        Returns:
            Tensor of that shape; sums of integers and bools are int64.

        Raises:
            UserError: the shape does not broadcast to that of the tensor (MLC0111).

        Example:
            >>> mlc.ones(2, 3).sum_to_size(2, 1)
            tensor([[3.],
                    [3.]], dtype=mlc.float32)
        """
        return call("Tensor.sum_to_size", self, listed(size))
    def polygamma(self, n: _int) -> Tensor: return call("polygamma", n, self)

    # -- products -----------------------------------------------------------------------------------------------------
    def matmul(self, other: Operand) -> Tensor: return call("matmul", self, other)
    def mm(self, mat2: Operand) -> Tensor: return call("mm", self, mat2)
    def bmm(self, mat2: Operand) -> Tensor: return call("bmm", self, mat2)
    def mv(self, vec: Operand) -> Tensor: return call("mv", self, vec)
    def dot(self, tensor: Operand) -> Tensor: return call("dot", self, tensor)
    def outer(self, vec2: Operand) -> Tensor: return call("outer", self, vec2)
    def ger(self, vec2: Operand) -> Tensor: return call("outer", self, vec2)
    def inner(self, other: Operand) -> Tensor: return call("inner", self, other)
    def vdot(self, other: Operand) -> Tensor: return call("vdot", self, other)
    def kron(self, other: Operand) -> Tensor: return call("kron", self, other)
    def cross(self, other: Operand, dim: _int | None = None) -> Tensor: return call("cross", self, other, dim)
    def trace(self) -> Tensor: return call("trace", self)
    def addmm(self, mat1: Operand, mat2: Operand, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        return call("addmm", self, mat1, mat2, beta=beta, alpha=alpha)
    def addmv(self, mat: Operand, vec: Operand, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        return call("addmv", self, mat, vec, beta=beta, alpha=alpha)
    def addr(self, vec1: Operand, vec2: Operand, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        return call("addr", self, vec1, vec2, beta=beta, alpha=alpha)
    def baddbmm(self, batch1: Operand, batch2: Operand, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        return call("baddbmm", self, batch1, batch2, beta=beta, alpha=alpha)
    def addbmm(self, batch1: Operand, batch2: Operand, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        return call("addbmm", self, batch1, batch2, beta=beta, alpha=alpha)
    def cholesky(self, upper: _bool = False) -> Tensor: return call("cholesky", self, upper)
    def cholesky_solve(self, input2: Operand, upper: _bool = False) -> Tensor:
        return call("cholesky_solve", self, input2, upper)
    def cholesky_inverse(self, upper: _bool = False) -> Tensor: return call("cholesky_inverse", self, upper)
    def qr(self, some: _bool = True) -> Any: return call("qr", self, some)
    def pinverse(self, rcond: _float = 1e-15) -> Tensor: return call("pinverse", self, rcond)
    def lu_solve(self, LU_data: Operand, LU_pivots: Operand) -> Tensor:
        return call("lu_solve", self, LU_data, LU_pivots)
    def lu(self, pivot: _bool = True, get_infos: _bool = False) -> Any: return call("lu", self, pivot, get_infos)
    def orgqr(self, input2: Operand) -> Tensor: return call("orgqr", self, input2)
    def ormqr(self, input2: Operand, input3: Operand, left: _bool = True, transpose: _bool = False) -> Tensor:
        return call("ormqr", self, input2, input3, left, transpose)
    def triangular_solve(self, A: Operand, upper: _bool = True, transpose: _bool = False,
                         unitriangular: _bool = False) -> Any:
        return call("triangular_solve", self, A, upper, transpose, unitriangular)
    def det(self) -> Tensor: return call("linalg.det", self)
    def logdet(self) -> Tensor: return call("logdet", self)
    def slogdet(self) -> Any: return call("linalg.slogdet", self)
    def inverse(self) -> Tensor: return call("linalg.inv", self)
    def matrix_power(self, n: _int) -> Tensor: return call("linalg.matrix_power", self, n)
    def matrix_exp(self) -> Tensor: return call("linalg.matrix_exp", self)

    # -- sparse tensors -----------------------------------------------------------------------------------------------
    def to_dense(self, dtype: DTypeLike = None, *, masked_grad: _bool | None = None) -> Tensor:
        return call("Tensor.to_dense", self, dtype, masked_grad=masked_grad)
    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None, blocksize: Sequence[_int] | None = None,
                  dense_dim: _int | None = None) -> Tensor:
        return call("Tensor.to_sparse", self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)
    def to_sparse_coo(self) -> Tensor:
        """The tensor in the layout `mlc.sparse_coo`; see `Tensor.to_sparse`.

        Returns:
            Tensor of the same shape and dtype; itself if it has that layout.

        Example:
            >>> mlc.tensor([0.0, 2.0]).to_sparse_coo()
            tensor(indices=tensor([[1]]),
                   values=tensor([2.]),
                   size=(2,), nnz=1, dtype=mlc.float32, layout=mlc.sparse_coo)
        """
        return call("Tensor.to_sparse_coo", self)
    def to_sparse_csr(self, dense_dim: _int | None = None) -> Tensor:
        """The tensor in the layout `mlc.sparse_csr`, which stores the elements that are not zero by rows.

        Args:
            dense_dim: Number of last dimensions that each value has; 0 by default.

        Returns:
            Tensor of the same shape and dtype; itself if it has that layout.

        Raises:
            UserError: `dense_dim` does not fit (MLC0775), or other than two dimensions are left (MLC0772).

        Example:
            >>> mlc.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr()
            tensor(crow_indices=tensor([0, 1, 2]),
                   col_indices=tensor([1, 1]),
                   values=tensor([2., 3.]),
                   size=(2, 2), nnz=2, dtype=mlc.float32, layout=mlc.sparse_csr)
        """
        return call("Tensor.to_sparse_csr", self, dense_dim)
    def to_sparse_csc(self, dense_dim: _int | None = None) -> Tensor:
        """The tensor in the layout `mlc.sparse_csc`, which stores the elements that are not zero by columns.

        Args:
            dense_dim: Number of last dimensions that each value has; 0 by default.

        Returns:
            Tensor of the same shape and dtype; itself if it has that layout.

        Raises:
            UserError: `dense_dim` does not fit (MLC0775), or other than two dimensions are left (MLC0772).

        Example:
            >>> mlc.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csc()
            tensor(ccol_indices=tensor([0, 0, 2]),
                   row_indices=tensor([0, 1]),
                   values=tensor([2., 3.]),
                   size=(2, 2), nnz=2, dtype=mlc.float32, layout=mlc.sparse_csc)
        """
        return call("Tensor.to_sparse_csc", self, dense_dim)
    def to_sparse_bsr(self, blocksize: Sequence[_int], dense_dim: _int | None = None) -> Tensor:
        """The tensor in the layout `mlc.sparse_bsr`, which stores the blocks that are not zero by rows.

        Args:
            blocksize: Sizes of a block, which divide those of the matrix.
            dense_dim: Number of last dimensions that each element has; 0 by default.

        Returns:
            Tensor of the same shape and dtype; itself if it has that layout and these blocks.

        Raises:
            UserError: `blocksize` or `dense_dim` does not fit (MLC0775), or other than two dimensions are left
                (MLC0772).

        Example:
            >>> mlc.eye(4).to_sparse_bsr((2, 2)).values().shape
            (2, 2, 2)
        """
        return call("Tensor.to_sparse_bsr", self, blocksize, dense_dim)
    def to_sparse_bsc(self, blocksize: Sequence[_int], dense_dim: _int | None = None) -> Tensor:
        """The tensor in the layout `mlc.sparse_bsc`, which stores the blocks that are not zero by columns.

        Args:
            blocksize: Sizes of a block, which divide those of the matrix.
            dense_dim: Number of last dimensions that each element has; 0 by default.

        Returns:
            Tensor of the same shape and dtype; itself if it has that layout and these blocks.

        Raises:
            UserError: `blocksize` or `dense_dim` does not fit (MLC0775), or other than two dimensions are left
                (MLC0772).

        Example:
            >>> mlc.eye(4).to_sparse_bsc((2, 2)).values().shape
            (2, 2, 2)
        """
        return call("Tensor.to_sparse_bsc", self, blocksize, dense_dim)
    def sparse_mask(self, mask: Tensor) -> Tensor: return call("Tensor.sparse_mask", self, mask)
    def smm(self, mat2: Operand) -> Tensor: return call("smm", self, mat2)
    def sspaddmm(self, mat1: Operand, mat2: Operand, *, beta: _float = 1, alpha: _float = 1) -> Tensor:
        return call("sspaddmm", self, mat1, mat2, beta=beta, alpha=alpha)

    # -- special functions and the like -------------------------------------------------------------------------------
    def digamma(self) -> Tensor: return call("digamma", self)
    def lgamma(self) -> Tensor: return call("lgamma", self)
    def mvlgamma(self, p: _int) -> Tensor: return call("mvlgamma", self, p)
    def i0(self) -> Tensor: return call("i0", self)
    def igamma(self, other: Operand) -> Tensor: return call("igamma", self, other)
    def igammac(self, other: Operand) -> Tensor: return call("igammac", self, other)
    def nextafter(self, other: Operand) -> Tensor: return call("nextafter", self, other)
    def conj_physical(self) -> Tensor: return call("conj_physical", self)
    def sgn(self) -> Tensor: return call("sgn", self)
    def gcd(self, other: Operand) -> Tensor: return call("gcd", self, other)
    def lcm(self, other: Operand) -> Tensor: return call("lcm", self, other)
    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Tensor: return call("renorm", self, p, dim, maxnorm)
    def index_reduce(self, dim: _int, index: Operand, source: Operand, reduce: str, *,
                     include_self: _bool = True) -> Tensor:
        return call("index_reduce", self, dim, index, source, reduce, include_self=include_self)

    # -- second names -------------------------------------------------------------------------------------------------
    absolute, negative, fix, clip = abs, neg, trunc, clamp
    arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
    arcsinh, arccosh, arctanh = asinh, acosh, atanh
    subtract, multiply, divide, true_divide = sub, mul, div, div
    not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
