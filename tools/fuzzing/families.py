"""Families of operations that drawing operands by their types alone hardly ever gives: pieces at computed starts,
windows, complex and quantised numbers, spectra, and random bits. Each makes a value of a generator's `x`, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.ir.core import Value
from mlc.ir.sizes import Dim, symbol_name
from mlc.ir.types import IntType, TensorType, f32, f64, i1, i8, i32, i64, ui8, ui32

if TYPE_CHECKING:
    from mlc.tools.fuzzing.programs import Generator

Family = Callable[["Generator", Value], Value | None]


def pieces(g: Generator, x: Value) -> Value | None:
    """A piece of x at starts that may lie anywhere, or x with a piece replaced; sometimes several in a row."""
    rng = g.rng
    shape = [rng.randint(0, d) if isinstance(d, int) and rng.random() < 0.7 else d for d in x.type.shape]
    starts = tuple(_start(g) for _ in shape)
    if rng.random() < 0.5:
        return tn.DynamicSlice(x, starts, tuple(shape)).result
    for _ in range(rng.randint(1, 3)):
        x = tn.DynamicUpdateSlice(x, g.like(x.type.dtype, shape), starts).result
        starts = tuple(_start(g) if rng.random() < 0.5 else at for at in starts)
    return x


def _start(g: Generator) -> Value:
    """A start: a number, or one that is computed; both may be out of range, and are clamped then."""
    dtype = g.rng.choice((i64, i32))
    if g.rng.random() < 0.5:
        return tn.Full(g.rng.randint(-2, 9), (), dtype).result
    return g.other(dtype, ())


def windows(g: Generator, x: Value) -> Value | None:
    """Windows along an axis; as they are, put back and added, or an element of each."""
    rng, shape = g.rng, x.type.shape
    axes = [a for a, d in enumerate(shape) if isinstance(d, int) and d]
    if not axes:
        return None
    axis = rng.choice(axes)
    n: Any = shape[axis]
    stride, dilation = rng.randint(1, 3), rng.choice((1, 1, 2))
    size = rng.randint(1, max(1, min(4, (n - 1) // dilation + 1)))
    out = tn.Windows(x, axis, size, stride, dilation).result
    way = rng.random()
    if way < 0.4:
        return out
    if way < 0.7 and x.type.dtype.is_float:
        placed = tn.Place(out, axis, n, stride, dilation).result
        return placed if way < 0.5 else tn.ReduceSum(placed, (axis + 1,)).result
    spread = tn.BroadcastTo(tn.Reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1:])).result,
                            (*shape[: axis + 1], size, *shape[axis + 1:])).result
    return tn.Pick(spread, axis, stride, dilation).result


def complex_numbers(g: Generator, x: Value) -> Value | None:
    """A few steps on complex numbers, and the parts of what they give."""
    rng, dtype = g.rng, x.type.dtype
    if dtype not in (f32, f64):
        return None
    z: Value = tn.Complex(x, g.like(dtype, x.type.shape)).result
    if rng.random() < 0.2:
        z = tn.ViewAsComplex(tn.ViewAsReal(z).result).result
    for _ in range(rng.randint(1, 4)):
        z = _complex_step(g, z)
    part = rng.choice((tn.Real, tn.Imag, tn.ViewAsReal))
    return part(z).result


def _complex_step(g: Generator, z: Value) -> Value:
    part = z.type.dtype.part
    other = tn.Complex(g.like(part, z.type.shape), g.like(part, z.type.shape)).result
    way = g.rng.randrange(4)
    if way == 0:
        return g.rng.choice((tn.Add, tn.Sub, tn.Mul))(z, other).result
    if way == 1:
        return tn.Select(g.like(i1, z.type.shape), z, other).result
    return tn.Neg(z).result if way == 2 else g.rng.choice((tn.Reverse, tn.ReduceSum))(z, g.axes(z)).result


def spectrum(g: Generator, x: Value) -> Value | None:
    """The discrete Fourier transform of x along an axis, of real numbers or of pairs."""
    shape = x.type.shape
    axes = [a for a, d in enumerate(shape) if isinstance(d, int) and d <= 20]
    if x.type.dtype not in (f32, f64) or not axes:
        return None
    pairs = tn.BroadcastTo(tn.Reshape(x, (*shape, 1)).result, (*shape, 2)).result
    return tn.Dft(pairs, g.rng.choice(axes), g.rng.random() < 0.5).result


def quantised(g: Generator, x: Value) -> Value | None:
    """The numbers of blocks, some of them, or a product with them, exact or of integers."""
    rng = g.rng
    name = rng.choice(sorted(ENCODINGS))
    layout = ENCODINGS[name]
    rows, count = rng.choice((1, 2, 3, 5)), rng.choice((1, 2)) if layout.elements < 64 else 1
    blocks = g.argument(TensorType((rows, layout.bytes * count), ui8))
    numbers, terms = tn.Dequantize(blocks, name).result, layout.elements * count
    way = rng.random()
    if way < 0.3:
        return tn.Transpose(tn.Slice(numbers, (0, 3), (rows, 40 if terms > 40 else 9), (1, rng.choice((1, 2)))).result,
                            (1, 0)).result
    few = [(d,) for d in x.type.shape[:1] if symbol_name(d) is not None or (isinstance(d, int) and d < 5)]
    lead: tuple[Dim, ...] = rng.choice(((), (1,), (3,), *few))
    factor = g.argument(TensorType((*lead, terms), f32))
    if way < 0.6:
        return tn.DotGeneral(factor, numbers, (), ((len(lead), 1),)).result
    return tn.QuantizedDot(factor, blocks, name).result


def bytes_multiplied(g: Generator, x: Value) -> Value | None:
    """A product or a convolution of bytes: many columns, so that several terms are multiplied at a time."""
    rng = g.rng
    columns, terms = rng.choice((3, 16, 33, 48)), rng.choice((1, 3, 8, 37))
    own, other = rng.choice(((ui8, i8), (i8, ui8), (i8, i8)))
    if rng.random() < 0.3:
        size = rng.choice((3, 5, 9))
        image = g.argument(TensorType((rng.choice((1, 2)), terms, size, size), own))
        filters = g.argument(TensorType((columns, terms, rng.choice((1, 3)), rng.choice((1, 2, 3))), i8))
        return tn.Convolution(image, filters, (rng.choice((1, 2)), 1), (1, 0), (1, 0)).result
    rows: Dim = rng.choice((1, 20, 33, *(d for d in x.type.shape[:1] if symbol_name(d) is not None)))
    left, right = g.argument(TensorType((rows, terms), own)), g.argument(TensorType((columns, terms), other))
    wide = [tn.Cast(v, dtype=i32).result for v in (left, right)]
    if rng.random() < 0.5:
        wide[1] = tn.Transpose(wide[1], (1, 0)).result
        return tn.DotGeneral(wide[0], wide[1], (), ((1, 0),)).result
    return tn.DotGeneral(wide[0], wide[1], (), ((1, 1),)).result


def random_bits(g: Generator, x: Value) -> Value | None:
    """Random bits of a key; of a shape that x has."""
    key = g.argument(TensorType((2,), ui32))
    return tn.RandomBits(key, x.type.shape, IntType(g.rng.choice((8, 16, 32, 64)), unsigned=True)).result


def sorted_places(g: Generator, x: Value) -> Value | None:
    """The places of the elements of x among sorted numbers."""
    if not x.type.dtype.is_float and x.type.dtype not in (i32, i64):
        return None
    numbers = g.argument(TensorType((g.rng.choice((1, 4, 7)),), x.type.dtype))
    ascending = tn.TakeAlong(numbers, tn.ArgSort(numbers, 0).result, 0).result
    return tn.SearchSorted(ascending, x, g.rng.random() < 0.5).result


def statistics(g: Generator, x: Value) -> Value | None:
    """Normalised rows, accumulated exponentials, and a loss."""
    if not x.type.dtype.is_float or not x.type.rank or not all(map(g.positive, x.type.shape)):
        return None
    axis = g.rng.randrange(x.type.rank)
    if g.rng.random() < 0.5:
        return tn.LogCumSumExp(x, axis).result
    return tn.Standardize(x, (axis,), 1e-3).result


FAMILIES: tuple[tuple[Family, int], ...] = (
    (pieces, 2), (windows, 2), (complex_numbers, 1), (spectrum, 1), (quantised, 1), (bytes_multiplied, 1),
    (random_bits, 1), (sorted_places, 1), (statistics, 1))
"""The families, each with how often it is drawn."""
