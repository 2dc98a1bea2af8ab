"""tensor, promotion: type promotion by PyTorch's rules.

Two tensors promote to the smallest type of the higher of their kinds (bool < int < float < complex) that represents
both; a Python number can raise the kind of a tensor but not its width. PyTorch refuses ui16, ui32 and ui64 with other
integers; here the array API standard's rule holds, by which only ui64 and signed integers have no common type.

A number, or a 0-d array, is rounded to that type before the computation: float16 * 70000.0 is infinite. PyTorch keeps
it in float32 in some operations.
"""

from __future__ import annotations

from mlc.ir.diag import UserTypeError
from mlc.ir.types import (
    ComplexType,
    FloatType,
    ScalarType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    ui8,
    ui16,
    ui32,
    ui64,
)

_COLUMNS = (i1, i8, i16, i32, i64, ui8, f16, bf16, f32, f64)
_ROWS: tuple[tuple[ScalarType, ...], ...] = (
    # i1   i8   i16  i32  i64  ui8  f16  bf16  f32  f64
    (i1,   i8,  i16, i32, i64, ui8, f16, bf16, f32, f64),     # i1
    (i8,   i8,  i16, i32, i64, i16, f16, bf16, f32, f64),     # i8
    (i16,  i16, i16, i32, i64, i16, f16, bf16, f32, f64),     # i16
    (i32,  i32, i32, i32, i64, i32, f16, bf16, f32, f64),     # i32
    (i64,  i64, i64, i64, i64, i64, f16, bf16, f32, f64),     # i64
    (ui8,  i16, i16, i32, i64, ui8, f16, bf16, f32, f64),     # ui8
    (f16,  f16, f16, f16, f16, f16, f16, f32,  f32, f64),     # f16
    (bf16, bf16, bf16, bf16, bf16, bf16, f32, bf16, f32, f64),    # bf16
    (f32,  f32, f32, f32, f32, f32, f32, f32,  f32, f64),     # f32
    (f64,  f64, f64, f64, f64, f64, f64, f64,  f64, f64),     # f64
)
PROMOTIONS: dict[tuple[ScalarType, ScalarType], ScalarType] = {
    (a, b): c for a, row in zip(_COLUMNS, _ROWS) for b, c in zip(_COLUMNS, row)
}
_SIGNED, _UNSIGNED = (i8, i16, i32, i64), (ui8, ui16, ui32, ui64)
for _i, _unsigned in list(enumerate(_UNSIGNED))[1:]:       # of ui8, the table has all
    _wider = [(t, _unsigned) for t in (i1, *_UNSIGNED[:_i + 1])] + [(t, t) for t in (f16, bf16, f32, f64)]
    _wider += [(t, _SIGNED[max(_i + 1, k)]) for k, t in enumerate(_SIGNED) if _i < 3]
    PROMOTIONS.update({pair: c for t, c in _wider for pair in ((_unsigned, t), (t, _unsigned))})


def promote(a: ScalarType, b: ScalarType) -> ScalarType:
    """The element type of a result of elements `a` and `b`, as torch.promote_types."""
    if isinstance(a, ComplexType) or isinstance(b, ComplexType):
        part = promote(a.part if isinstance(a, ComplexType) else a, b.part if isinstance(b, ComplexType) else b)
        assert isinstance(part, FloatType)
        return ComplexType(part)
    if (common := PROMOTIONS.get((a, b))) is None:
        raise UserTypeError(f"{a} and {b} elements have no common type", code="MLC0341", hint="cast one of them first")
    return common
