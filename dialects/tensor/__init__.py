"""tensor: pure values of any shape. One module per family; every operation class is also a name of this package.

Sizes are integers or symbols. There is no aliasing and no memory. Softmax, layer_norm and losses are composites:
named functions that a pass may take apart (composite.py; activation, along_axis, statistics, loss).
"""

from mlc.dialects.tensor.activation import Elu, Gelu, LeakyRelu, LogSigmoid, Relu, Silu, Softplus
from mlc.dialects.tensor.along_axis import ArgMax, ArgMin, LogSoftmax, LogSumExp, OneHot, Softmax
from mlc.dialects.tensor.assertion import FailIf
from mlc.dialects.tensor.attention import Attention
from mlc.dialects.tensor.binary import (
    Add,
    And,
    Div,
    FloorDiv,
    Fmod,
    Hypot,
    Maximum,
    Minimum,
    Mul,
    Or,
    Pow,
    Rem,
    Shl,
    Shr,
    Sub,
    Xor,
)
from mlc.dialects.tensor.compare import Cast, Compare, Select
from mlc.dialects.tensor.composite import Composite, StopGradient
from mlc.dialects.tensor.contract import DotGeneral
from mlc.dialects.tensor.control import Extent, FromScalar, Item, Witness
from mlc.dialects.tensor.convolution import Convolution
from mlc.dialects.tensor.cumulative import Cumulative, LogCumSumExp
from mlc.dialects.tensor.dynamic import DynamicSlice, DynamicUpdateSlice
from mlc.dialects.tensor.elementwise import (
    Abs,
    Atan,
    Ceil,
    Cos,
    Erf,
    Erfc,
    Exp,
    Exp2,
    Expm1,
    Floor,
    IsNan,
    Log,
    Log1p,
    Log2,
    Log10,
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
from mlc.dialects.tensor.fourier import Dft
from mlc.dialects.tensor.index import Take, TakeAlong
from mlc.dialects.tensor.linalg import Cholesky, Eigh, Lu, MatrixExp, Pinv, Qr, Solve, Svd, TriangularSolve
from mlc.dialects.tensor.loss import BinaryCrossEntropy, CrossEntropy, L1Loss, MseLoss
from mlc.dialects.tensor.map import Map
from mlc.dialects.tensor.pooling import MaxPool
from mlc.dialects.tensor.random import RandomBits
from mlc.dialects.tensor.reduce import ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, ReduceSum
from mlc.dialects.tensor.scatter import Scatter, ScatterAlong
from mlc.dialects.tensor.shape import BroadcastTo, Concat, Pad, Reshape, Reverse, Slice, Transpose
from mlc.dialects.tensor.sort import ArgSort, SearchSorted
from mlc.dialects.tensor.source import Constant, Full, Iota, Size
from mlc.dialects.tensor.special import ErfInv
from mlc.dialects.tensor.statistics import LayerNorm, Mean, RmsNorm, Standardize, Var
from mlc.dialects.tensor.trigonometry import Acos, Acosh, Asin, Asinh, Atan2, Atanh, Cosh, Sinh, Tan
from mlc.dialects.tensor.window import Pick, Place, Windows

__all__ = [
    "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "ArgSort", "Asin", "Asinh", "Atan", "Atan2", "Atanh",
    "Attention", "BinaryCrossEntropy", "BroadcastTo", "Cast", "Ceil", "Cholesky", "Compare", "Composite", "Concat",
    "Constant", "Convolution", "Cos", "Cosh", "CrossEntropy", "Cumulative", "Dft", "Div", "DotGeneral",
    "DynamicSlice", "DynamicUpdateSlice", "Eigh", "Elu", "Erf", "ErfInv", "Erfc", "Exp", "Exp2", "Expm1", "Extent",
    "FailIf", "Floor", "FloorDiv", "Fmod", "FromScalar", "Full", "Gelu", "Hypot", "Iota", "IsNan", "Item",
    "L1Loss", "LayerNorm", "LeakyRelu", "Log", "Log1p", "Log2", "Log10", "LogCumSumExp", "LogSigmoid",
    "LogSoftmax", "LogSumExp", "LogicalNot", "Lu", "Map", "MatrixExp", "MaxPool", "Maximum", "Mean", "Minimum",
    "MseLoss", "Mul", "Neg", "OneHot", "Or", "Pad", "Pick", "Pinv", "Place", "Pow", "Qr", "RandomBits",
    "Reciprocal", "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Rem",
    "Reshape", "Reverse", "RmsNorm", "Round", "Rsqrt", "Scatter", "ScatterAlong", "SearchSorted", "Select", "Shl",
    "Shr", "Sigmoid", "Sign", "Silu", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus", "Solve", "Sqrt",
    "Standardize", "StopGradient", "Sub", "Svd", "Take", "TakeAlong", "Tan", "Tanh", "Transpose",
    "TriangularSolve", "Var", "Windows", "Witness", "Xor",
]
