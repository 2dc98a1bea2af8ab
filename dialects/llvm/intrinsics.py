"""Arithmetic intrinsics, with the semantics of their counterparts in math, arith or vector."""

from __future__ import annotations

from typing import Any, ClassVar

from mlc.dialects import arith, math, vector
from mlc.dialects.combining import CombiningKind
from mlc.ir.core import Op, Value
from mlc.ir.types import ScalarType, VectorType

_UNARY = "`(` $x `)` attr-dict `:` functional-type"
_BINARY = "`(` $lhs `,` $rhs `)` attr-dict `:` functional-type"


class Intrinsic(Op):
    """An arithmetic intrinsic; `in_ptx` tells whether LLVM's NVPTX backend supports it."""

    in_ptx: ClassVar[bool]


class FMA(math.Fma, Intrinsic, name="llvm.intr.fma"):
    """result = a * b + c, rounded once"""

    in_ptx = True
    format = "`(` $a `,` $b `,` $c `)` attr-dict `:` functional-type"


class Sqrt(math.Sqrt, Intrinsic, name="llvm.intr.sqrt"):
    """result = the float nearest to the square root of x"""

    in_ptx = True
    format = _UNARY


class Exp2(math.Exp2, Intrinsic, name="llvm.intr.exp2"):
    """result = 2^x: of a GPU, the instruction ex2.approx.ftz; there is no code for CPUs"""

    in_ptx = True
    format = _UNARY


class FAbs(math.AbsF, Intrinsic, name="llvm.intr.fabs"):
    """result = |x|: the sign bit cleared, also of NaN"""

    in_ptx = True
    format = _UNARY


class Floor(math.Floor, Intrinsic, name="llvm.intr.floor"):
    """result = the largest integer <= x"""

    in_ptx = True
    format = _UNARY


class Ceil(math.Ceil, Intrinsic, name="llvm.intr.ceil"):
    """result = the smallest integer >= x"""

    in_ptx = True
    format = _UNARY


class RoundEven(math.RoundEven, Intrinsic, name="llvm.intr.roundeven"):
    """result = the integer nearest to x, ties to even"""

    in_ptx = True
    format = _UNARY


class TruncF(math.Trunc, Intrinsic, name="llvm.intr.trunc"):
    """result = the integer nearest to x towards zero"""

    in_ptx = True
    format = _UNARY


class CopySign(math.CopySign, Intrinsic, name="llvm.intr.copysign"):
    """result = the magnitude of lhs with the sign bit of rhs"""

    in_ptx = True
    format = _BINARY


class Maximum(arith.MaximumF, Intrinsic, name="llvm.intr.maximum"):
    """result = max(lhs, rhs); NaN if either is NaN; +0 > -0"""

    in_ptx = True
    format = _BINARY


class Minimum(arith.MinimumF, Intrinsic, name="llvm.intr.minimum"):
    """result = min(lhs, rhs); NaN if either is NaN; -0 < +0"""

    in_ptx = True
    format = _BINARY


class SMax(arith.MaxSI, Intrinsic, name="llvm.intr.smax"):
    """result = max(lhs, rhs), signed"""

    in_ptx = True
    format = _BINARY


class SMin(arith.MinSI, Intrinsic, name="llvm.intr.smin"):
    """result = min(lhs, rhs), signed"""

    in_ptx = True
    format = _BINARY


class UMax(arith.MaxUI, Intrinsic, name="llvm.intr.umax"):
    """result = max(lhs, rhs), unsigned"""

    in_ptx = True
    format = _BINARY


class UMin(arith.MinUI, Intrinsic, name="llvm.intr.umin"):
    """result = min(lhs, rhs), unsigned"""

    in_ptx = True
    format = _BINARY


class Reduce(Op, pure=True):
    """result = the lanes of a vector reduced by `kind`, one of the kinds of `vector.reduction`"""

    vector: Value
    kind: ClassVar[str]
    format = "`(` $vector `)` attr-dict `:` functional-type"

    def infer(self) -> ScalarType:
        type = self.vector.type
        if not isinstance(type, VectorType) or type.rank != 1 or not isinstance(
                type.dtype, CombiningKind(self.kind).associative_op.accepts):
            self.fail(f"does not work on {type}", code="MLC0166")
        return type.dtype

    def ref(self, x: Any) -> Any:
        return vector.join_lanes(self.kind, list(x), self.result.type)


class ReduceAdd(Reduce, name="llvm.intr.vector.reduce.add"):
    """result = the sum of the lanes modulo 2^width"""

    kind = "add"


class ReduceMul(Reduce, name="llvm.intr.vector.reduce.mul"):
    """result = the product of the lanes modulo 2^width"""

    kind = "mul"


class ReduceAnd(Reduce, name="llvm.intr.vector.reduce.and"):
    """result = the bitwise and of all lanes"""

    kind = "and"


class ReduceOr(Reduce, name="llvm.intr.vector.reduce.or"):
    """result = the bitwise or of all lanes"""

    kind = "or"


class ReduceXor(Reduce, name="llvm.intr.vector.reduce.xor"):
    """result = the bitwise xor of all lanes"""

    kind = "xor"


class ReduceSMax(Reduce, name="llvm.intr.vector.reduce.smax"):
    """result = the largest lane, signed"""

    kind = "maxsi"


class ReduceSMin(Reduce, name="llvm.intr.vector.reduce.smin"):
    """result = the smallest lane, signed"""

    kind = "minsi"


class ReduceUMax(Reduce, name="llvm.intr.vector.reduce.umax"):
    """result = the largest lane, unsigned"""

    kind = "maxui"


class ReduceUMin(Reduce, name="llvm.intr.vector.reduce.umin"):
    """result = the smallest lane, unsigned"""

    kind = "minui"


class ReduceFMaximum(Reduce, name="llvm.intr.vector.reduce.fmaximum"):
    """result = the largest lane; NaN if any is NaN"""

    kind = "maximumf"


class ReduceFMinimum(Reduce, name="llvm.intr.vector.reduce.fminimum"):
    """result = the smallest lane; NaN if any is NaN"""

    kind = "minimumf"
