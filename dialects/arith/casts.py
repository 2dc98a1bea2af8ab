"""arith, conversions between types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects.arith.constant import Constant, constant_value
from mlc.dialects.arith.elementwise import one_bit
from mlc.dialects.arith.representation import UNSIGNED, store, unsigned
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    FloatType,
    IndexType,
    IntType,
    ScalarType,
    ShapedType,
    Type,
    element,
    i1,
    index,
    like,
    to_numpy,
)

if TYPE_CHECKING:
    pass


class Cast(Op, pure=True):
    """An elementwise type conversion; subclasses set the source and target types."""

    x: Value
    type: ResultType
    source: ClassVar[tuple[Any, ...]]
    target: ClassVar[tuple[Any, ...]]
    format = "$x attr-dict `:` type($x) `to` type(result)"

    def infer(self) -> Type:
        source, target = element(self.x.type), element(self.result.type)
        if (not isinstance(source, self.source) or not isinstance(target, self.target)
                or like(self.x.type, target) != self.result.type or not self.fits(source, target)):
            self.fail(f"cannot convert {self.x.type} to {self.result.type}", code="MLC0109")
        return self.result.type  # type: ignore[no-any-return]

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return True

    def ref(self, x: Any) -> Any:
        return store(x, self.result.type)

    def fold(self) -> Any:
        if isinstance(self.x.op, Constant) and not isinstance(self.x.type, ShapedType):
            return self.ref(constant_value(self.x))
        return None


class ExtF(Cast, name="arith.extf"):
    """result = x in a wider float type, exactly"""

    source = target = (FloatType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width < target.width


class TruncF(Cast, name="arith.truncf"):
    """result = x rounded to a narrower float type, to nearest even"""

    source = target = (FloatType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width > target.width


class ExtSI(Cast, name="arith.extsi"):
    """result = x, signed, in a wider integer type"""

    source = target = (IntType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width < target.width

    def ref(self, x: Any) -> Any:
        return -store(x, self.result.type) if element(self.x.type) == i1 else store(x, self.result.type)


class ExtUI(Cast, name="arith.extui"):
    """result = x, unsigned, in a wider integer type"""

    source = target = (IntType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width < target.width

    def ref(self, x: Any) -> Any:
        return store(unsigned(x, self.x.type), self.result.type)


class TruncI(Cast, name="arith.trunci"):
    """result = x modulo 2^width"""

    source = target = (IntType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width > target.width

    def ref(self, x: Any) -> Any:
        return store(x & 1, self.result.type) if element(self.result.type) == i1 else store(x, self.result.type)


class SIToFP(Cast, name="arith.sitofp"):
    """result = x, signed, rounded to the float type"""

    source, target = (IntType,), (FloatType,)

    def ref(self, x: Any) -> Any:
        return store(one_bit(x) if element(self.x.type) == i1 else x, self.result.type)


class UIToFP(Cast, name="arith.uitofp"):
    """result = x, unsigned, rounded to the float type"""

    source, target = (IntType,), (FloatType,)

    def ref(self, x: Any) -> Any:
        return store(unsigned(x, self.x.type), self.result.type)


class FPToSI(Cast, name="arith.fptosi"):
    """result = trunc(x), signed; undefined where it does not fit"""

    source, target = (FloatType,), (IntType,)


class FPToUI(Cast, name="arith.fptoui"):
    """result = trunc(x), unsigned; undefined where it does not fit"""

    source, target = (FloatType,), (IntType,)

    def ref(self, x: Any) -> Any:
        wide: Any = np.asarray(x).astype(UNSIGNED[element(self.result.type).width])
        return store(wide.view(to_numpy(element(self.result.type))), self.result.type)


class IndexCast(Cast, name="arith.index_cast"):
    """result = x, signed, between an integer type and index"""

    source = target = (IntType, IndexType)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return (source == index) != (target == index)

    def ref(self, x: Any) -> Any:
        return _to_bits(one_bit(x) if element(self.x.type) == i1 else x, self.result.type)


class IndexCastUI(Cast, name="arith.index_castui"):
    """result = x, unsigned, between an integer type and index"""

    source = target = (IntType, IndexType)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return (source == index) != (target == index)

    def ref(self, x: Any) -> Any:
        return _to_bits(unsigned(x, self.x.type), self.result.type)


def _to_bits(x: Any, type: Type) -> Any:
    """An integer modulo 2^width of `type`, which may be i1 or index."""
    bits = np.asarray(x)
    wide: Any = bits.view(np.int64) if bits.dtype == np.uint64 else bits.astype(np.int64)
    return store(wide & 1 if element(type) == i1 else wide, type)


class Bitcast(Cast, name="arith.bitcast"):
    """result = the bits of x reinterpreted as another type of the same width"""

    source = target = (IntType, FloatType)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width == target.width

    def ref(self, x: Any) -> Any:
        bits = np.asarray(x, to_numpy(element(self.x.type))).view(to_numpy(element(self.result.type)))
        return store(bits, self.result.type)
