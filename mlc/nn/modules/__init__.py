"""The modules of `mlc.nn` under the names of files that PyTorch has.

Programs that import a class from the file in which PyTorch has it, such as `torch.nn.modules.conv`, find the class of
`mlc.nn` under the same name.

Example:
    >>> nn.modules.conv.Conv2d is nn.Conv2d
    True
"""

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
