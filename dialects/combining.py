"""Combining kinds of reductions, scans, scatters and atomic updates, at every level.

The names are those of upstream's `vector.kind`. Maximum and minimum of floats are IEEE 754-2019's `maximum` and
`minimum`: NaN if either is, and -0 < +0. Upstream's `maxnumf` and `minnumf`, which ignore NaN, are not supported.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from mlc.dialects import arith
from mlc.ir.core import Value
from mlc.ir.types import FloatType, IntType, ScalarType, element, i1, int_range


class CombiningKind(Enum):
    """A commutative operation on two elements.

    Tensor operations, whose integer types have signedness, use generic names such as `max`, which `of` resolves.
    """

    ADD = "add"
    MUL = "mul"
    AND = "and"
    OR = "or"
    XOR = "xor"
    MINUI = "minui"
    MINSI = "minsi"
    MAXUI = "maxui"
    MAXSI = "maxsi"
    MINIMUMF = "minimumf"
    MAXIMUMF = "maximumf"

    @staticmethod
    def of(name: str, dtype: ScalarType) -> CombiningKind:
        """The kind with the generic `name` for an element type; bools are unsigned.

            >>> from mlc.ir.types import f32
            >>> CombiningKind.of("max", f32).name, CombiningKind.of("add", f32).name
            ('MAXIMUMF', 'ADD')
        """
        if name not in ("max", "min"):
            return CombiningKind(name)
        if isinstance(dtype, FloatType):
            return CombiningKind(f"{name}imumf")
        unsigned = isinstance(dtype, IntType) and (dtype.unsigned or dtype == i1)
        return CombiningKind(f"{name}{'u' if unsigned else 's'}i")

    @property
    def ufunc(self) -> np.ufunc:
        """The numpy ufunc, for elements with their own signedness; it may differ in the sign of zeros."""
        return _FORMS[self].ufunc

    @property
    def atomic(self) -> str:
        """Corresponding kind of `memref.atomic_rmw`; empty if there is no atomic form."""
        return _FORMS[self].atomic

    @property
    def llvm_atomic(self) -> str:
        """Corresponding kind of `llvm.atomicrmw`; empty if there is no atomic form."""
        return _FORMS[self].llvm_atomic

    @property
    def associative_op(self) -> type[arith.Elementwise]:
        """The associative arith operation: the one on integers, if there are two."""
        forms = _FORMS[self]
        op = forms.integers or forms.floats
        assert op is not None
        return op

    def is_associative(self, dtype: ScalarType) -> bool:
        """Whether the result is independent of the order: not for sums and products of floats, which round."""
        return self not in (CombiningKind.ADD, CombiningKind.MUL) or not isinstance(dtype, FloatType)

    def identity(self, dtype: ScalarType) -> float | int | bool:
        """The identity element, in the element type."""
        number: float | int
        match self.name[:3]:
            case "MUL":
                number = 1
            case "MIN":
                number = highest(dtype)
            case "MAX":
                number = lowest(dtype)
            case "AND":
                number = 1 if dtype == i1 else -1
            case _:
                number = 0
        return float(number) if isinstance(dtype, FloatType) else bool(number) if dtype == i1 else number

    def combine(self, a: Any, b: Any) -> Any:
        """The reference on numpy arrays in the memory representation, where integers are signless."""
        if self in (CombiningKind.MAXIMUMF, CombiningKind.MINIMUMF):
            return self.associative_op.f(a, b)
        a, b = np.asarray(a), np.asarray(b)
        if self not in (CombiningKind.MAXUI, CombiningKind.MINUI) or a.dtype == bool:
            return self.ufunc(a, b)
        bits = f"u{a.dtype.itemsize}"
        return self.ufunc(a.view(bits), b.view(bits)).view(a.dtype)

    def emit(self, a: Value, b: Value) -> Value:
        """Build the arith operation on two scalars or vectors, at the insertion point."""
        forms = _FORMS[self]
        op = forms.floats if isinstance(element(a.type), FloatType) else forms.integers
        assert op is not None, f"{self.value} does not combine {a.type}"
        return op(a, b).result


class _Forms(NamedTuple):
    floats: type[arith.Elementwise] | None
    integers: type[arith.Elementwise] | None
    ufunc: np.ufunc
    atomic: str = ""
    llvm_atomic: str = ""


_FORMS = {
    CombiningKind.ADD: _Forms(arith.AddF, arith.AddI, np.add, "addi", "add"),
    CombiningKind.MUL: _Forms(arith.MulF, arith.MulI, np.multiply),
    CombiningKind.AND: _Forms(None, arith.AndI, np.bitwise_and),
    CombiningKind.OR: _Forms(None, arith.OrI, np.bitwise_or),
    CombiningKind.XOR: _Forms(None, arith.XorI, np.bitwise_xor),
    CombiningKind.MINUI: _Forms(None, arith.MinUI, np.minimum, "minu", "umin"),
    CombiningKind.MINSI: _Forms(None, arith.MinSI, np.minimum),
    CombiningKind.MAXUI: _Forms(None, arith.MaxUI, np.maximum),
    CombiningKind.MAXSI: _Forms(None, arith.MaxSI, np.maximum),
    CombiningKind.MINIMUMF: _Forms(arith.MinimumF, None, np.minimum),
    CombiningKind.MAXIMUMF: _Forms(arith.MaximumF, None, np.maximum),
}
KINDS = tuple(kind.value for kind in CombiningKind)
"""The names of the kinds, as used in attributes."""


def lowest(dtype: ScalarType) -> float | int:
    """The minimum of an element type; of floats minus infinity."""
    return -np.inf if isinstance(dtype, FloatType) else int_range(dtype)[0]


def highest(dtype: ScalarType) -> float | int:
    """The maximum of an element type; of floats infinity."""
    return np.inf if isinstance(dtype, FloatType) else int_range(dtype)[1]
