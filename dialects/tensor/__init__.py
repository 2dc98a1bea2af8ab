"""tensor: pure values of any shape. One module per family; every operation class is also a name of this package.

Sizes are integers or symbols. There is no aliasing and no memory. Softmax, layer_norm and losses are composites:
named functions that a pass may take apart (composite.py; activation, along_axis, statistics, loss).
"""

from mlc.dialects.tensor.activation import Elu, Gelu, LeakyRelu, LogSigmoid, Relu, Silu, Softplus
from mlc.dialects.tensor.along_axis import ArgMax, ArgMin, LogSoftmax, LogSumExp, OneHot, Softmax
from mlc.dialects.tensor.binary import Add, And, Div, FloorDiv, Maximum, Minimum, Mul, Or, Pow, Rem, Shl, Shr, Sub, Xor
from mlc.dialects.tensor.compare import Cast, Compare, Select
from mlc.dialects.tensor.composite import Composite, StopGradient
from mlc.dialects.tensor.contract import DotGeneral
from mlc.dialects.tensor.elementwise import (
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Exp2,
    Expm1,
    Floor,
    IsNan,
    Log,
    Log1p,
    Log2,
    LogicalNot,
    Neg,
    Reciprocal,
    Round,
    Rsqrt,
    Sigmoid,
    Sign,
    Sin,
    Sqrt,
    Tanh,
)
from mlc.dialects.tensor.index import Take, TakeAlong
from mlc.dialects.tensor.loss import BinaryCrossEntropy, CrossEntropy, L1Loss, MseLoss
from mlc.dialects.tensor.map import Map
from mlc.dialects.tensor.reduce import ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, ReduceSum
from mlc.dialects.tensor.shape import BroadcastTo, Concat, Pad, Reshape, Reverse, Slice, Transpose
from mlc.dialects.tensor.source import Constant, Full, Iota, Size
from mlc.dialects.tensor.statistics import LayerNorm, Mean, RmsNorm, Var

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
