"""Neural networks: modules, which are trees of parameters, and the functions they are made of.

A module's parameters are those of its attributes that are `Parameter`s, and those of the modules among its attributes,
under names with points. Calling a module calls its `forward`. A module is a tree, so transforms and compiled functions
take it as an argument; `functional` has the functions without parameters, `init` initial values.

Example:
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> [(name, tuple(p.shape)) for name, p in model.named_parameters()]
    [('0.weight', (4, 3)), ('0.bias', (4,)), ('2.weight', (1, 4)), ('2.bias', (1,))]
    >>> model(mlc.ones(2, 3)).shape
    (2, 1)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import mlc.api  # noqa: F401 (it gives the frontend its compiler)

if TYPE_CHECKING:
    # isort: off
    from mlc.nn import functional, grad, init, modules, parallel, quantized, utils
    from mlc.nn.activations import (
        GELU, GLU, LogSigmoid, LogSoftmax, Mish, Sigmoid, SiLU, Softmax, Softmax2d, Softmin, Softplus, Softsign, Tanh,
        Tanhshrink,
    )
    from mlc.nn.adaptive_pooling import (
        AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
        AdaptiveMaxPool3d,
    )
    from mlc.nn.attention import MultiheadAttention
    from mlc.nn.batch_normalization import (
        BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d,
    )
    from mlc.nn.classification import (
        BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, MultiLabelMarginLoss, MultiLabelSoftMarginLoss, MultiMarginLoss,
        NLLLoss, NLLLoss2d,
    )
    from mlc.nn.containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
    from mlc.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
    from mlc.nn.distances import CosineSimilarity, PairwiseDistance
    from mlc.nn.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
    from mlc.nn.lazy import (
        LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d, LazyLinear,
    )
    from mlc.nn.lazy_normalization import (
        LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d,
    )
    from mlc.nn.linear import Bilinear, Embedding, EmbeddingBag, Identity, Linear
    from mlc.nn.losses import (
        CosineEmbeddingLoss, CTCLoss, GaussianNLLLoss, HingeEmbeddingLoss, HuberLoss, KLDivLoss, L1Loss,
        MarginRankingLoss, MSELoss, PoissonNLLLoss, SmoothL1Loss, SoftMarginLoss, TripletMarginLoss,
        TripletMarginWithDistanceLoss,
    )
    from mlc.nn.module import Module
    from mlc.nn.normalization import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm
    from mlc.nn.padding import (
        CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d, ReflectionPad1d,
        ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d, ReplicationPad3d, ZeroPad1d, ZeroPad2d,
        ZeroPad3d,
    )
    from mlc.nn.parameter import Parameter
    from mlc.nn.pooling import (
        AvgPool1d, AvgPool2d, AvgPool3d, LPPool1d, LPPool2d, LPPool3d, MaxPool1d, MaxPool2d, MaxPool3d,
    )
    from mlc.nn.rectifiers import (
        CELU, ELU, SELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, PReLU, ReLU, ReLU6, RReLU,
        Softshrink, Threshold,
    )
    from mlc.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell, RNNCellBase
    from mlc.nn.saving import load_safetensors, save_safetensors
    from mlc.nn.shape import (
        ChannelShuffle, Flatten, Fold, PixelShuffle, PixelUnshuffle, Unflatten, Unfold, Upsample,
        UpsamplingBilinear2d, UpsamplingNearest2d,
    )
    from mlc.nn.synchronized_normalization import SyncBatchNorm
    from mlc.nn.transformer import (
        Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer,
    )
    from mlc.nn.unpooling import FractionalMaxPool2d, FractionalMaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d
    from mlc.nn.vocabulary import AdaptiveLogSoftmaxWithLoss, LinearCrossEntropyLoss
    # isort: on

_HOMES = {
    "activations": (
        "GELU GLU LogSigmoid LogSoftmax Mish Sigmoid SiLU Softmax Softmax2d Softmin Softplus Softsign Tanh "
        "Tanhshrink"),
    "adaptive_pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d"),
    "attention": "MultiheadAttention",
    "batch_normalization": (
        "BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d"),
    "classification": (
        "BCELoss BCEWithLogitsLoss CrossEntropyLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss "
        "MultiMarginLoss NLLLoss NLLLoss2d"),
    "containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "convolution": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "distances": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "lazy": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyLinear",
    "lazy_normalization": (
        "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
        "LazyInstanceNorm3d"),
    "linear": "Bilinear Embedding EmbeddingBag Identity Linear",
    "losses": (
        "CosineEmbeddingLoss CTCLoss GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss "
        "MarginRankingLoss MSELoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss"),
    "module": "Module",
    "normalization": "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d "
        "ZeroPad2d ZeroPad3d"),
    "parameter": "Parameter",
    "pooling": "AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d",
    "rectifiers": (
        "CELU ELU SELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU PReLU ReLU ReLU6 RReLU Softshrink "
        "Threshold"),
    "recurrent": "GRU LSTM RNN GRUCell LSTMCell RNNBase RNNCell RNNCellBase",
    "saving": "load_safetensors save_safetensors",
    "shape": (
        "ChannelShuffle Flatten Fold PixelShuffle PixelUnshuffle Unflatten Unfold Upsample "
        "UpsamplingBilinear2d UpsamplingNearest2d"),
    "synchronized_normalization": "SyncBatchNorm",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "unpooling": "FractionalMaxPool2d FractionalMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    "vocabulary": "AdaptiveLogSoftmaxWithLoss LinearCrossEntropyLoss",
}
"""The names of each file: a program imports the files of the names that it uses, and of those they need."""
_FILES = frozenset({"functional", "grad", "init", "modules", "parallel", "quantized", "utils", *_HOMES})
_HOME_OF = {name: file for file, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d", "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss", "BCEWithLogitsLoss",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "CTCLoss", "ChannelShuffle", "CircularPad1d",
    "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d",
    "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Embedding", "EmbeddingBag",
    "FeatureAlphaDropout", "Flatten", "Fold", "FractionalMaxPool2d", "FractionalMaxPool3d", "GRUCell",
    "GaussianNLLLoss", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss",
    "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss", "L1Loss",
    "LPPool1d", "LPPool2d", "LPPool3d", "LSTMCell", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
    "LeakyReLU", "Linear", "LinearCrossEntropyLoss", "LocalResponseNorm", "LogSigmoid",
    "LogSoftmax", "MSELoss", "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d",
    "MaxUnpool2d", "MaxUnpool3d", "Mish", "Module", "ModuleDict", "ModuleList", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "MultiheadAttention", "NLLLoss", "NLLLoss2d", "PReLU",
    "PairwiseDistance", "Parameter", "ParameterDict", "ParameterList", "PixelShuffle", "PixelUnshuffle",
    "PoissonNLLLoss", "RMSNorm", "RNNBase", "RNNCell", "RNNCellBase", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Sequential",
    "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus",
    "Softshrink", "Softsign", "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "Transformer",
    "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "functional", "grad", "init", "load_safetensors",
    "modules", "parallel",
    "quantized", "save_safetensors", "utils",
]


def __getattr__(name: str) -> Any:
    """A public name, on first use."""
    if name in _FILES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
