"""tensor: pure values of any shape. One module per family; every operation class is also a name of this package.

Sizes are integers or symbols. There is no aliasing and no memory. Softmax, layer_norm and losses are composites:
named functions that a pass may take apart (composite.py).
"""

from mlc.dialects.tensor.compare import Cast, Compare, Select
from mlc.dialects.tensor.composite import (
    ArgMax,
    ArgMin,
    BinaryCrossEntropy,
    Composite,
    CrossEntropy,
    Elu,
    Gelu,
    L1Loss,
    LayerNorm,
    LeakyRelu,
    LogSigmoid,
    LogSoftmax,
    LogSumExp,
    Mean,
    MseLoss,
    OneHot,
    Relu,
    RmsNorm,
    Silu,
    Softmax,
    Softplus,
    StopGradient,
    Var,
)
from mlc.dialects.tensor.contract import DotGeneral
from mlc.dialects.tensor.elementwise import (
    Abs,
    Add,
    And,
    Ceil,
    Cos,
    Div,
    Erf,
    Exp,
    Exp2,
    Expm1,
    Floor,
    FloorDiv,
    IsNan,
    Log,
    Log1p,
    Log2,
    LogicalNot,
    Maximum,
    Minimum,
    Mul,
    Neg,
    Or,
    Pow,
    Reciprocal,
    Rem,
    Round,
    Rsqrt,
    Shl,
    Shr,
    Sigmoid,
    Sign,
    Sin,
    Sqrt,
    Sub,
    Tanh,
    Xor,
)
from mlc.dialects.tensor.index import Take, TakeAlong
from mlc.dialects.tensor.map import Map
from mlc.dialects.tensor.reduce import ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, ReduceSum
from mlc.dialects.tensor.shape import BroadcastTo, Concat, Pad, Reshape, Reverse, Slice, Transpose
from mlc.dialects.tensor.source import Constant, Full, Iota, Size

__all__ = [
    "Abs", "Add", "And", "ArgMax", "ArgMin", "BinaryCrossEntropy", "BroadcastTo", "Cast", "Ceil", "Compare",
    "Composite", "Concat", "Constant", "Cos", "CrossEntropy", "Div", "DotGeneral", "Elu", "Erf", "Exp", "Exp2",
    "Expm1", "Floor", "FloorDiv", "Full", "Gelu", "Iota", "IsNan", "L1Loss", "LayerNorm", "LeakyRelu", "Log",
    "Log1p", "Log2", "LogSigmoid", "LogSoftmax", "LogSumExp", "LogicalNot", "Map", "Maximum", "Mean", "Minimum",
    "MseLoss", "Mul", "Neg", "OneHot", "Or", "Pad", "Pow", "Reciprocal", "ReduceAll", "ReduceAny", "ReduceMax",
    "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Rem", "Reshape", "Reverse", "RmsNorm", "Round", "Rsqrt",
    "Select", "Shl", "Shr", "Sigmoid", "Sign", "Silu", "Sin", "Size", "Slice", "Softmax", "Softplus", "Sqrt",
    "StopGradient", "Sub", "Take", "TakeAlong", "Tanh", "Transpose", "Var", "Xor",
]
