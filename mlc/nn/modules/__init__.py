"""The modules of `mlc.nn` under the names of files that PyTorch has."""

from mlc.nn.modules import (
    activation,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    loss,
    module,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
    utils,
)

__all__ = ["activation", "batchnorm", "container", "conv", "distance", "dropout", "flatten", "fold", "instancenorm",
           "linear", "loss", "module", "normalization", "padding", "pixelshuffle", "pooling", "rnn", "sparse",
           "transformer", "upsampling", "utils"]
