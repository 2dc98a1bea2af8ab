"""Neural networks: modules, which are trees of parameters, and the functions they are made of."""

from mlc.nn import functional, init
from mlc.nn.layers import (
    ELU,
    GELU,
    CrossEntropyLoss,
    Embedding,
    Flatten,
    Identity,
    L1Loss,
    LayerNorm,
    LeakyReLU,
    Linear,
    LogSoftmax,
    Mish,
    MSELoss,
    ReLU,
    RMSNorm,
    Sequential,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from mlc.nn.module import Module

__all__ = ["ELU", "GELU", "CrossEntropyLoss", "Embedding", "Flatten", "Identity", "L1Loss", "LayerNorm", "LeakyReLU",
           "Linear", "LogSoftmax", "MSELoss", "Mish", "Module", "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid",
           "Softmax", "Softplus", "Tanh", "functional", "init"]
