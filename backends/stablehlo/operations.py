"""Operations on elements, reductions, products, and operations that move elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlc.backends.stablehlo.writer import Writer, array_type, ints, refused, row
from mlc.ir.core import Op
from mlc.ir.types import FloatType, IntType, ScalarType, TensorType, f32, i1, int_range

UNARY = {"neg": "negate", "abs": "abs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil",
         "round": "round_nearest_even", "exp": "exponential", "expm1": "exponential_minus_one", "log": "log",
         "log1p": "log_plus_one", "rsqrt": "rsqrt", "sin": "sine", "cos": "cosine", "tanh": "tanh",
         "sigmoid": "logistic", "tan": "tan", "erf": "chlo.erf", "erfc": "chlo.erfc", "asin": "chlo.asin",
         "acos": "chlo.acos", "sinh": "chlo.sinh", "cosh": "chlo.cosh", "asinh": "chlo.asinh", "acosh": "chlo.acosh",
         "atanh": "chlo.atanh", "atan": "chlo.atan", "real": "real", "imag": "imag"}
BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "pow": "power", "maximum": "maximum",
          "minimum": "minimum", "and": "and", "or": "or", "xor": "xor", "shl": "shift_left", "atan2": "atan2",
          "complex": "complex"}
NARROW = ("f16", "bf16")


def result(op: Op) -> TensorType:
    """The type of the only result."""
    return array_type(op.results[0].type, op)


def operands(w: Writer, op: Op) -> list[str]:
    """The operands, broadcast to the shape of the result."""
    shape = result(op).shape
    return [w.broadcast(w.of(x), shape) for x in op.operands]


@row(*(f"tensor.{n}" for n in UNARY))
def unary(w: Writer, op: Op) -> str:
    """One operation of one operand."""
    return w.op(UNARY[op.name.partition(".")[2]], [w.of(op.operands[0])], result(op))


@row(*(f"tensor.{n}" for n in BINARY))
def binary(w: Writer, op: Op) -> str:
    """One operation of two operands."""
    return w.op(BINARY[op.name.partition(".")[2]], operands(w, op), result(op))


@row("tensor.shr")
def shift_right(w: Writer, op: Op) -> str:
    """The sign of signed integers is kept."""
    dtype = result(op).dtype
    unsigned = isinstance(dtype, IntType) and (dtype.unsigned or dtype == i1)
    return w.op("shift_right_logical" if unsigned else "shift_right_arithmetic", operands(w, op), result(op))


@row("tensor.sign")
def sign(w: Writer, op: Op) -> str:
    """0 for NaN, where StableHLO has NaN."""
    x = w.of(op.operands[0])
    dtype = w.types[x].dtype
    if isinstance(dtype, IntType) and dtype.unsigned:
        return w.select(w.compare("NE", x, w.full(0, x)), w.full(1, x), w.full(0, x))
    found = w.op("sign", [x], result(op))
    return w.select(w.compare("NE", x, x), w.full(0, x), found) if dtype.is_float else found


@row("tensor.reciprocal")
def reciprocal(w: Writer, op: Op) -> str:
    """1 / x"""
    x = w.of(op.operands[0])
    return w.op("divide", [w.full(1, x), x], result(op))


@row("tensor.logical_not")
def logical_not(w: Writer, op: Op) -> str:
    """x == 0"""
    x = w.of(op.operands[0])
    return w.compare("EQ", x, w.full(0, x))


@row("tensor.isnan")
def isnan(w: Writer, op: Op) -> str:
    """x != x"""
    x = w.of(op.operands[0])
    return w.compare("NE", x, x)


@row("tensor.exp2", "tensor.log2", "tensor.log10")
def other_bases(w: Writer, op: Op) -> str:
    """Powers of 2, and logarithms to other bases."""
    x = w.of(op.operands[0])
    if op.name == "tensor.exp2":
        return w.op("power", [w.full(2, x), x], result(op))
    base = 2 if op.name == "tensor.log2" else 10
    return w.op("divide", [w.op("log", [x], result(op)), w.full(math.log(base), x)], result(op))


@row("tensor.silu")
def silu(w: Writer, op: Op) -> str:
    """x times its sigmoid"""
    x = w.of(op.operands[0])
    return w.op("multiply", [x, w.op("logistic", [x], result(op))], result(op))


@row("tensor.hypot")
def hypot(w: Writer, op: Op) -> str:
    """m sqrt(1 + (n / m)^2) of the larger absolute value m and the smaller n; infinite if m is."""
    type = result(op)
    a, b = (w.op("abs", [x], type) for x in operands(w, op))
    m, n = w.op("maximum", [a, b], type), w.op("minimum", [a, b], type)
    zero = w.full(0, m)
    usable = w.select(w.compare("EQ", m, zero), w.full(1, m), m)
    ratio = w.op("divide", [n, usable], type)
    one = w.full(1, m)
    found = w.op("multiply", [m, w.op("sqrt", [w.op("add", [one, w.op("multiply", [ratio, ratio], type)], type)],
                                      type)], type)
    infinite = w.full(math.inf, m)
    either = w.op("or", [w.compare("EQ", a, infinite), w.compare("EQ", b, infinite)], type.with_dtype(i1))
    return w.select(either, infinite, found)


@row("tensor.fmod", "tensor.rem", "tensor.floordiv")
def divisions(w: Writer, op: Op) -> str:
    """The remainder with the sign of the dividend, or of the divisor, and the quotient that is rounded down."""
    type, (a, b) = result(op), operands(w, op)
    zero = w.full(0, b)
    is_float = type.dtype.is_float
    nothing = w.compare("EQ", b, zero)
    safe = b if is_float else w.select(nothing, w.full(1, b), b)
    rest = w.op("remainder", [a, safe], type)
    if op.name == "tensor.fmod":
        found = rest
    else:
        differs = w.op("and", [w.compare("NE", rest, zero),
                               w.op("xor", [w.compare("LT", rest, zero), w.compare("LT", b, zero)],
                                    type.with_dtype(i1))], type.with_dtype(i1))
        if op.name == "tensor.rem":
            found = w.select(differs, w.op("add", [rest, safe], type), rest)
        elif is_float:
            found = w.op("floor", [w.op("divide", [a, b], type)], type)
        else:
            whole = w.op("divide", [a, safe], type)
            found = w.select(differs, w.op("subtract", [whole, w.full(1, whole)], type), whole)
    return found if is_float else w.select(nothing, zero, found)


@row("tensor.compare")
def compare(w: Writer, op: Any) -> str:
    """Elements beside each other."""
    return w.compare(op.predicate.upper(), *operands(w, op))


@row("tensor.select")
def select(w: Writer, op: Op) -> str:
    """a where the condition holds, else b"""
    return w.select(*operands(w, op))


@row("tensor.cast", "tensor.from_scalar")
def cast(w: Writer, op: Op) -> str:
    """The elements in another type."""
    return w.cast(w.of(op.operands[0]), result(op).dtype)


@row("tensor.bitcast")
def bitcast(w: Writer, op: Op) -> str:
    """The bits as another type."""
    return w.op("bitcast_convert", [w.of(op.operands[0])], result(op))


# -- constants --------------------------------------------------------------------------------------------------------
@row("tensor.constant", "tensor.full")
def constant(w: Writer, op: Any) -> str:
    """The numbers that it has."""
    return w.constant(op.value, result(op))


@row("tensor.iota")
def iota(w: Writer, op: Any) -> str:
    """The index along an axis."""
    return w.iota(op.axis, result(op))


@row("tensor.size", "tensor.extent")
def size(w: Writer, op: Any) -> str:
    """A size."""
    return w.cast(w.size(op.value), result(op).dtype)


# -- moving elements --------------------------------------------------------------------------------------------------
@row("tensor.reshape", "tensor.item", "tensor.stop_gradient")
def reshape(w: Writer, op: Op) -> str:
    """The elements in another shape."""
    return w.cast(w.reshape(w.of(op.operands[0]), result(op).shape), result(op).dtype)


@row("tensor.transpose")
def transpose(w: Writer, op: Any) -> str:
    """Axes in another order."""
    return w.op("transpose", [w.of(op.x)], result(op), {"permutation": listed(op.perm)})


def listed(numbers: Any) -> str:
    """A list of integers."""
    return ints(", ".join(map(str, numbers)))


@row("tensor.broadcast_to")
def broadcast_to(w: Writer, op: Any) -> str:
    """Elements repeated along axes."""
    return w.broadcast(w.of(op.x), result(op).shape)


@row("tensor.slice")
def slice_(w: Writer, op: Any) -> str:
    """Ranges of each axis; those that go down are turned around."""
    if any(s < 1 for s in op.steps):
        raise refused(op, "steps that are negative")
    stops = [b if not isinstance(n, int) else a + (n - 1) * s + 1 if n else a
             for a, b, n, s in zip(op.starts, op.stops, result(op).shape, op.steps)]
    return w.slice(w.of(op.x), op.starts, stops, op.steps, result(op))


@row("tensor.pad")
def pad(w: Writer, op: Any) -> str:
    """Elements around and between; tensor.pad also has those between behind the last element."""
    x, value = w.of(op.x), w.reshape(w.of(op.value), ())
    interior = list(op.interior)
    for axis, between in enumerate(op.interior):
        if between and not isinstance(w.types[x].shape[axis], int):
            x = _padded_behind(w, x, value, axis, between)
            interior[axis] = 0
    high = [b + (k if n != 0 else 0) for b, k, n in zip(op.high, interior, w.types[x].shape)]
    if all(isinstance(n, int) for n in (*op.low, *high)):
        return w.op("pad", [x, value], result(op), {
            "edge_padding_low": listed(op.low), "edge_padding_high": listed(high),
            "interior_padding": listed(interior)})
    return w.op("dynamic_pad", [x, value, w.shape(op.low), w.shape(high), w.shape(interior)], result(op))


def _padded_behind(w: Writer, x: str, value: str, axis: int, count: int) -> str:
    """An array with elements behind each one of an axis."""
    shape = w.types[x].shape
    n, wide = shape[axis], [*shape[:axis + 1], 1, *shape[axis + 1:]]
    zeros = [0] * len(wide)
    behind = [count if a == axis + 1 else 0 for a in range(len(wide))]
    wide[axis + 1] += count
    x = w.op("pad", [w.reshape(x, [*shape[:axis + 1], 1, *shape[axis + 1:]]), value], w.types[x].with_shape(wide), {
        "edge_padding_low": listed(zeros), "edge_padding_high": listed(behind), "interior_padding": listed(zeros)})
    return w.reshape(x, [*shape[:axis], n * (count + 1), *shape[axis + 1:]])


@row("tensor.concat")
def concat(w: Writer, op: Any) -> str:
    """Arrays one behind the other."""
    return w.op("concatenate", [w.of(x) for x in op.xs], result(op), {"dimension": f"{op.axis} : i64"})


@row("tensor.reverse")
def reverse(w: Writer, op: Any) -> str:
    """Axes turned around."""
    return w.op("reverse", [w.of(op.x)], result(op), {"dimensions": listed(op.axes)})


@row("tensor.dynamic_slice")
def dynamic_slice(w: Writer, op: Any) -> str:
    """A part at a place that is computed."""
    x, starts, type = w.of(op.x), [w.reshape(w.of(s), ()) for s in op.starts], result(op)
    if type.is_static or not starts:
        return w.op("dynamic_slice", [x, *starts], type, {"slice_sizes": listed(type.shape)})
    at = w.op("concatenate", [w.reshape(s, (1,)) for s in starts], TensorType((type.rank,), w.types[starts[0]].dtype),
              {"dimension": "0 : i64"})
    axes = list(range(type.rank))
    dims = f"#stablehlo.gather<offset_dims = {axes}, start_index_map = {axes}, index_vector_dim = 0>"
    return w.op("dynamic_gather", [x, at, w.shape(type.shape)], type, {
        "dimension_numbers": dims, "indices_are_sorted": "false"})


@row("tensor.dynamic_update_slice")
def dynamic_update_slice(w: Writer, op: Any) -> str:
    """An array with a part replaced."""
    starts = [w.reshape(w.of(s), ()) for s in op.starts]
    return w.op("dynamic_update_slice", [w.of(op.x), w.of(op.update), *starts], result(op))


@row("tensor.view_as_real")
def view_as_real(w: Writer, op: Any) -> str:
    """Real and imaginary parts as a last axis."""
    x, type = w.of(op.x), result(op)
    flat = type.with_shape(type.shape[:-1])
    parts = [w.reshape(w.op(n, [x], flat), (*flat.shape, 1)) for n in ("real", "imag")]
    return w.op("concatenate", parts, type, {"dimension": f"{flat.rank} : i64"})


@row("tensor.view_as_complex")
def view_as_complex(w: Writer, op: Any) -> str:
    """Complex numbers of a last axis of two parts."""
    x = w.of(op.x)
    type = w.types[x]
    half = type.with_shape((*type.shape[:-1], 1))
    parts = []
    for i in range(2):
        part = w.slice(x, [0] * (type.rank - 1) + [i], [*type.shape[:-1], i + 1], [1] * type.rank, half)
        parts.append(w.reshape(part, type.shape[:-1]))
    return w.op("complex", parts, result(op))


# -- reductions and products ------------------------------------------------------------------------------------------
REDUCED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "any": "or", "all": "and"}


def initial(kind: str, dtype: ScalarType) -> Any:
    """The number that changes no other by a combination."""
    if kind in ("add", "or"):
        return 0
    if kind in ("multiply", "and"):
        return 1
    if isinstance(dtype, FloatType):
        return -math.inf if kind == "maximum" else math.inf
    return int_range(dtype)[0 if kind == "maximum" else 1]


@row(*(f"tensor.reduce_{n}" for n in REDUCED))
def reduce(w: Writer, op: Any) -> str:
    """A reduction, of 16-bit floats in f32."""
    kind, x = REDUCED[op.name.removeprefix("tensor.reduce_")], w.of(op.x)
    dtype = w.types[x].dtype
    if kind in ("or", "and") and dtype != i1:
        x = w.compare("NE", x, w.full(0, x))
    if dtype.is_float and str(dtype) in NARROW:
        x = w.cast(x, f32)
    inner = w.types[x].dtype
    start = w.constant(initial(kind, inner), TensorType((), inner))
    found = w.combined("reduce", [x, start], result(op).with_dtype(inner), {"dimensions": listed(op.axes)}, kind)
    return w.cast(found, result(op).dtype)


@row("tensor.cumulative")
def cumulative(w: Writer, op: Any) -> str:
    """A window that begins before the first element, or ends behind the last."""
    kind = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}[op.kind]
    x = w.of(op.x)
    dtype = w.types[x].dtype
    if dtype.is_float and str(dtype) in NARROW:
        x = w.cast(x, f32)
    type = w.types[x]
    n = type.shape[op.axis]
    if n == 0:
        return w.of(op.x)
    start = w.constant(initial(kind, type.dtype), TensorType((), type.dtype))
    if not isinstance(n, int):
        return w.cast(_along_all(w, op, x, start, kind), dtype)
    around = np.zeros((type.rank, 2), np.int64)
    around[op.axis] = (0, n - 1) if op.reverse else (n - 1, 0)
    window = [n if a == op.axis else 1 for a in range(type.rank)]
    found = w.combined("reduce_window", [x, start], type, {
        "window_dimensions": listed(window), "padding": f"dense<{around.tolist()}> : tensor<{type.rank}x2xi64>"}, kind)
    return w.cast(found, dtype)


def _along_all(w: Writer, op: Any, x: str, start: str, kind: str) -> str:
    """Windows of as many elements as an axis has, whose number is a symbol, in the form that XLA refines."""
    type = w.types[x]
    n, ones = type.shape[op.axis], w.shape([1] * type.rank)
    window = w.shape([n if a == op.axis else 1 for a in range(type.rank)])
    around = [(0, 0)] * type.rank
    around[op.axis] = (0, n - 1) if op.reverse else (n - 1, 0)
    padding = w.reshape(w.shape([d for pair in around for d in pair]), (type.rank, 2))
    return w.op("custom_call", [x, start, window, ones, ones, ones, padding], type, {
        "api_version": "2 : i32", "call_target_name": '"stablehlo.dynamic_reduce_window"',
        "called_computations": f"[@{w.combination(kind, type.dtype)}]"})


@row("tensor.dot_general")
def dot_general(w: Writer, op: Any) -> str:
    """Products of a batch; of 16-bit floats in f32."""
    x, y = w.of(op.lhs), w.of(op.rhs)
    dims = ", ".join(f"{side}_{name}_dimensions = [{', '.join(str(p[i]) for p in pairs)}]"
                     for i, side in enumerate(("lhs", "rhs"))
                     for name, pairs in (("batching", op.batch), ("contracting", op.contract)))
    type = result(op)
    wide = type.with_dtype(f32) if str(type.dtype) in NARROW else type
    exact = "#stablehlo<precision HIGHEST>"
    found = w.op("dot_general", [x, y], wide, {"dot_dimension_numbers": f"#stablehlo.dot<{dims}>",
                                               "precision_config": f"[{exact}, {exact}]"})
    return w.cast(found, type.dtype)
