"""Normalization of operands: tracers of a common element type, axes and shapes in normal form.

Promotion is PyTorch's: the result has the smallest element type that holds those of the arrays; 0-d arrays, and after
them Python numbers, take part only if they are of a higher kind (bool < integer < float < complex).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.dialects.tensor.promotion import promote
from mlc.frontend import tree
from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import as_ir
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import as_tracer, current, emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import ComplexType, FloatType, IntType, ScalarType, bf16, c64, c128, f16, f32, f64, i1, i64, ui64

NUMBER = (bool, int, float, complex)


def kind(dtype: ScalarType) -> int:
    """Rank of a kind in promotion: 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    return 3 if dtype.is_complex else 2 if dtype.is_float else 0 if dtype.is_bool else 1


def refuse_several(value: Any) -> None:
    """Refuse a tensor or array with dimensions in place of a number."""
    if shape := getattr(value, "shape", ()):
        raise UserTypeError(f"expected a number, found a tensor of shape {list(shape)}", code="MLC0364",
                            hint="take one element, as in x[0]")


def number(value: bool | int | float | complex | Tensor, dtype: ScalarType, weak: bool = False) -> Tracer:
    """Record a Python number as a 0-d tensor; integers of 64 bits wrap around as in a cast. A 0-d tensor may stand for
    one."""
    if isinstance(value, Tensor):
        refuse_several(value)
        return cast(tracer(value), dtype, weak)
    if isinstance(value, int) and not -2**63 <= value < (2**64 if dtype == ui64 else 2**63):
        raise UserError(f"{value} does not fit in 64 bits"[-200:], code="MLC0348")
    if isinstance(dtype, IntType) and not dtype.is_bool:
        if isinstance(value, float | complex):
            raise UserTypeError(f"{value} is no {dtype}", code="MLC0352")
        bits, value = dtype.width, int(value)
        value &= (1 << bits) - 1
        value -= (1 << bits) if not dtype.unsigned and value >> (bits - 1) else 0
    elif dtype.is_bool:
        value = bool(value)
    return emit(T.Full, value, (), dtype, weak=weak)  # type: ignore[no-any-return]


def tracer(x: Operand) -> Tracer:
    """Convert an operand to a tracer: numbers become weakly typed float64, int64, or bool."""
    if isinstance(x, Tracer):
        return x
    if isinstance(x, Size):
        return emit(T.Size, x, i64, weak=True)  # type: ignore[no-any-return]
    if isinstance(x, NUMBER):
        return number(x, _dtype_of(x), weak=True)
    if x is None:
        raise UserTypeError("expected a tensor, found None", code="MLC0353")
    if isinstance(x, list | tuple):
        raise UserTypeError(f"expected a tensor, found a {type(x).__name__}", code="MLC0353",
                            hint="make one of it: mlc.tensor(...), or mlc.stack(...) of tensors")
    return as_tracer(x)


def _dtype_of(x: bool | int | float | complex) -> ScalarType:
    """The element type of a Python number."""
    return i1 if isinstance(x, bool) else i64 if isinstance(x, int) else f64 if isinstance(x, float) else c128


def cast(x: Tracer, dtype: ScalarType, weak: bool = False) -> Tracer:
    """x in another element type."""
    if x.type.dtype == dtype:
        return x if x.weak == weak else Tracer(x.value, x.owner, weak)
    if x.type.dtype.is_complex and not (dtype.is_complex or dtype.is_bool):
        raise UserTypeError(f"a {x.type} would lose its imaginary parts as {dtype}", code="MLC0785",
                            hint="apply the function to x.real and x.imag, or to abs(x)")
    return emit(T.Cast, x, dtype, weak=weak)  # type: ignore[no-any-return]


def to_default_dtype(x: Tracer) -> Tracer:
    """A tensor in place of a Python number: of float32 or complex64, the default dtypes, of a float or complex one."""
    if not x.weak:
        return x
    dtype = x.type.dtype
    return cast(x, f32 if dtype.is_float else c64 if dtype.is_complex else dtype)


def as_tensors(x: Any) -> Any:
    """A tree with tensors in the place of Python numbers that are computed: the result of a public function."""
    if not any(isinstance(leaf, Tracer) and leaf.weak for leaf in tree.leaves(x)):
        return x
    return tree.map(lambda leaf: to_default_dtype(leaf) if isinstance(leaf, Tracer) else leaf, x)


def common_dtype(xs: Sequence[Any]) -> tuple[ScalarType, bool]:
    """The promoted element type of operands, and whether it is weak, as when all are numbers."""
    found: list[list[ScalarType]] = [[], [], []]            # of arrays, of 0-d arrays, of numbers
    for x in xs:
        if isinstance(x, Tracer):
            found[2 if x.weak else 1 if not x.shape else 0].append(x.type.dtype)
        else:
            found[2].append(_dtype_of(x))
    return promoted(*found)


def promoted(*found: Sequence[ScalarType]) -> tuple[ScalarType, bool]:
    """`common_dtype` of the element types of arrays, of 0-d arrays and of numbers."""
    arrays, scalars, numbers = (reduce(promote, dtypes) if dtypes else None for dtypes in found)
    if arrays is not None and scalars is not None:
        scalars = _raised(arrays, scalars) if kind(scalars) > kind(arrays) else arrays
    result = scalars or arrays
    if result is None:
        assert numbers is not None, "no operands"
        return numbers, True
    if numbers is not None and kind(numbers) > kind(result):
        result = _raised(result, c64) if numbers.is_complex else f32 if numbers.is_float else i64
    return result, False


def _raised(dtype: ScalarType, scalar: ScalarType) -> ScalarType:
    """The element type of arrays of `dtype` with a 0-d array or a number of a higher kind, of which it takes the kind;
    the width of floats stays."""
    if isinstance(scalar, ComplexType) and isinstance(dtype, FloatType):
        return ComplexType(f64 if dtype == f64 else f32)
    return promote(dtype, scalar)


def plain(*xs: Operand) -> list[Any]:
    """Operands as tracers, but Python numbers as they are, whose dtype is that of others."""
    return [x if isinstance(x, NUMBER) else tracer(x) for x in xs]


def together(*xs: Operand, floating: bool = False, at_least: ScalarType | None = None) -> list[Tracer]:
    """Operands promoted to a common element type; `floating` makes integers float32."""
    prepared = plain(*xs)
    dtype, weak = common_dtype(prepared)
    if at_least is not None:
        dtype = promote(dtype, at_least)
    if floating and not dtype.is_inexact:
        dtype, weak = (f64 if weak else f32), weak
    return [number(x, dtype, weak) if isinstance(x, NUMBER) else cast(x, dtype, weak) for x in prepared]


def factors(*xs: Operand, floating: bool = False) -> list[Tracer]:
    """Operands of a product, promoted as by `together`; UserTypeError if they are of different float types.

    PyTorch does not multiply matrices of different types. Here integers are promoted to floats; but a batch of float64,
    numpy's default, would promote all activations of a float32 model.
    """
    prepared = plain(*xs)
    found = dict.fromkeys(x.dtype for x in prepared if isinstance(x, Tracer) and not x.weak
                          and x.type.dtype.is_inexact)
    if len(found) > 1:
        raise UserTypeError("a product of " + " and ".join(d.name for d in found), code="MLC0420",
                            hint="cast one of them, as in x.float(); numpy's arrays are float64 unless told otherwise")
    return together(*prepared, floating=floating)


def parameter(p: Operand, x: Tracer, name: str) -> Tracer:
    """A parameter cast to the element type of x; UserTypeError if x has the wider of two float types.

    Otherwise a float64 batch would make the results of a float32 layer float64; a float16 batch accepts float32
    parameters.
    """
    out = tracer(p)
    mine, theirs = out.type.dtype, x.type.dtype
    if not out.weak and isinstance(mine, FloatType) and isinstance(theirs, FloatType) and mine.width < theirs.width:
        raise UserTypeError(f"an input of {x.dtype.name} and a {name} of {out.dtype.name}", code="MLC0420",
                            hint="cast one of them, as in x.float(); numpy's arrays are float64 unless told otherwise")
    return cast(out, theirs)


def floating(x: Operand, dtype: DTypeLike = None) -> Tracer:
    """x as floats: in `dtype` if one is given; integers become float32."""
    out = tracer(x)
    if dtype is not None:
        return cast(out, as_ir(dtype))
    return out if out.type.dtype.is_inexact else cast(out, f64 if out.weak else f32, out.weak)


def reals(*xs: Operand) -> list[Tracer]:
    """Operands promoted to a common float type; UserTypeError if one is complex."""
    out = together(*xs, floating=True)
    if out[0].type.dtype.is_complex:
        raise UserTypeError(f"not defined on complex elements, {out[0].type.dtype}", code="MLC0785",
                            hint="apply it to x.real and x.imag, or to abs(x)")
    return out


def rounded_once(f: Callable[..., Operand], *xs: Tracer) -> Tensor:
    """f(*xs) for operands of one type, computed in float32 and rounded once if that is a narrower float.

    Rounding each step to 8 or 11 bits would accumulate errors, and x * x overflows in float16 above 256.
    """
    dtype, weak = xs[0].type.dtype, xs[0].weak
    wide = f32 if dtype in (f16, bf16) else dtype
    return cast(tracer(f(*(cast(x, wide, x.weak) for x in xs))), dtype, weak)


def boolean(x: Operand) -> Tracer:
    """x != 0"""
    found = tracer(x)
    return cast(found, i1, found.weak)


def integer(x: Operand, what: str) -> Tracer:
    """An operand that must be of an integer type."""
    out = tracer(x)
    if not isinstance(out.type.dtype, IntType) or out.type.dtype.is_bool:
        raise UserTypeError(f"{what} has element type {out.dtype}, expected an integer type", code="MLC0354")
    return out


def signed(x: Tracer) -> bool:
    return x.type.dtype.is_inexact or (isinstance(x.type.dtype, IntType) and not x.type.dtype.unsigned)


# -- axes and shapes --------------------------------------------------------------------------------------------------
def count_of(x: Any, what: str) -> int:
    """Convert to a number of elements; UserError if it is invalid."""
    n = plain_int(x, what)
    if not 0 <= n < MAX_ELEMENTS:
        raise UserError(f"{what} = {n} is no size", code="MLC0358")
    return n


def size(x: Any, what: str = "size") -> Dim:
    """A size: an integer or a symbolic size."""
    return x if isinstance(x, Size) else plain_int(x, what)


def same_shape(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Whether two shapes are equal for all values of their symbols; UserError if that depends on the values."""
    return len(a) == len(b) and all(map(sizes.is_equal, a, b))


def need(n: Dim, message: str) -> None:
    """Require n >= 0: raises UserError now, at the call of the compiled function, or, if data-dependent, as it runs."""
    if isinstance(n, int):
        if n < 0:
            raise UserError(message, code="MLC0363")
    elif sizes.symbols(n) & current().root.named:
        negative = emit(T.Compare, "lt", emit(T.Size, n, i64), number(0, i64))
        T.FailIf(T.Item(current().local(negative)).result, message)
    else:
        T.ConstrainSize(n, message)


def fail_unless(holds: Operand, message: str) -> None:
    """UserAssertionError, when the compiled function runs, if an element is False."""
    bad = emit(T.LogicalNot, tracer(holds))
    bad = emit(T.ReduceAny, bad, tuple(range(bad.ndim)))
    T.FailIf(T.Item(current().local(bad)).result, message)


def shape_of(x: Any) -> tuple[Dim, ...]:
    """The sizes in a shape argument: an integer, or a sequence of them."""
    return tuple(size(d) for d in x) if isinstance(x, tuple | list) else (size(x),)


def resolved(shape: Sequence[Dim], total: Dim) -> tuple[Dim, ...]:
    """A shape with its -1, if any, inferred from the number of elements `total`."""
    unknown = [i for i, d in enumerate(shape) if isinstance(d, int) and d == -1]
    if any(isinstance(d, int) and d < -1 for d in shape) or len(unknown) > 1:
        raise UserError(f"{list(shape)} is no shape: one size may be -1, the others are not negative", code="MLC0358")
    if not unknown:
        return tuple(shape)
    rest = sizes.product(d for i, d in enumerate(shape) if i != unknown[0])
    if rest == 0 or (isinstance(total % rest, int) and total % rest != 0) or isinstance(total % rest, Size):
        raise UserError(f"{total} elements do not fit shape {[str(d) for d in shape]}".replace("'", ""),
                        code="MLC0358", symbols=sizes.symbols(total, rest))
    return tuple(total // rest if i == unknown[0] else d for i, d in enumerate(shape))


def broadcast_shapes(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """The broadcast shape of several; UserError if they are incompatible."""
    out: list[Dim] = []
    for i in range(-max(map(len, shapes), default=0), 0):
        found = {s[i] for s in shapes if len(s) >= -i and s[i] != 1}
        if len(found) > 1:
            listed = " and ".join("[" + ", ".join(map(str, s)) + "]" for s in shapes)
            raise UserError(f"shapes {listed} do not broadcast", code="MLC0111", symbols=sizes.symbols(*found))
        out.append(found.pop() if found else 1)
    return tuple(out)


def broadcast_to(x: Tracer, shape: Sequence[Dim]) -> Tracer:
    return x if x.shape == tuple(shape) else emit(T.BroadcastTo, x, tuple(shape), weak=False)


def reshape(x: Tracer, shape: Sequence[Dim]) -> Tracer:
    return x if x.shape == tuple(shape) else emit(T.Reshape, x, tuple(shape), weak=x.weak)


def conjugate(x: Tracer) -> Tracer:
    """The complex conjugate of a tensor; the tensor itself if it is real."""
    if not x.type.dtype.is_complex:
        return x
    return emit(T.Complex, emit(T.Real, x), emit(T.Neg, emit(T.Imag, x)))  # type: ignore[no-any-return]


def full(value: bool | int | float | complex, like: Tracer, shape: Sequence[Dim] = ()) -> Tracer:
    """`value` in the element type of `like`."""
    return broadcast_to(number(value, like.type.dtype), shape)


def is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor | np.ndarray) or hasattr(type(x), "__dlpack__")
