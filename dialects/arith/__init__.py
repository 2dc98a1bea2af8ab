"""arith: arithmetic on scalars, and on vectors and tiles element by element, as upstream defines it.

Integers are signless: an operation says which reading it means. Floating-point operations are IEEE 754 with one
rounding and no contraction. `ref` works on numpy scalars and arrays alike; an `index` is a Python int.
"""

from mlc.dialects.arith.casts import (
    Bitcast,
    Cast,
    ExtF,
    ExtSI,
    ExtUI,
    FPToSI,
    FPToUI,
    IndexCast,
    IndexCastUI,
    SIToFP,
    TruncF,
    TruncI,
    UIToFP,
)
from mlc.dialects.arith.compare import FLOAT_PREDICATES, INT_PREDICATES, CmpF, CmpI, Select
from mlc.dialects.arith.constant import Constant, constant, constant_text, constant_value, parse_constant
from mlc.dialects.arith.elementwise import (
    AddF,
    AddI,
    AndI,
    DivF,
    DivSI,
    DivUI,
    Elementwise,
    FloatBinary,
    FloorDivSI,
    IntBinary,
    MaximumF,
    MaxSI,
    MaxUI,
    MinimumF,
    MinSI,
    MinUI,
    MulF,
    MulI,
    NegF,
    OrI,
    RemF,
    RemSI,
    RemUI,
    ShLI,
    ShRSI,
    ShRUI,
    SubF,
    SubI,
    UnsignedBinary,
    XorI,
    one_bit,
    wrapped,
)
from mlc.dialects.arith.representation import store, unsigned, wide_to_odd
from mlc.dialects.arith.rules import (
    divide_by_one,
    multiply_by_one,
    multiply_by_zero,
    zero_on_the_left,
    zero_on_the_right,
)

__all__ = [
    "FLOAT_PREDICATES", "INT_PREDICATES", "AddF", "AddI", "AndI", "Bitcast", "Cast", "CmpF", "CmpI", "Constant",
    "DivF", "DivSI", "DivUI", "Elementwise", "ExtF", "ExtSI", "ExtUI", "FPToSI", "FPToUI", "FloatBinary",
    "FloorDivSI", "IndexCast", "IndexCastUI", "IntBinary", "MaxSI", "MaxUI", "MaximumF", "MinSI", "MinUI",
    "MinimumF", "MulF", "MulI", "NegF", "OrI", "RemF", "RemSI", "RemUI", "SIToFP", "Select", "ShLI", "ShRSI",
    "ShRUI", "SubF", "SubI", "TruncF", "TruncI", "UIToFP", "UnsignedBinary", "XorI", "constant", "constant_text",
    "constant_value", "divide_by_one", "multiply_by_one", "multiply_by_zero", "one_bit", "parse_constant", "store",
    "unsigned", "wide_to_odd", "wrapped", "zero_on_the_left", "zero_on_the_right",
]
