"""Functions on tensors under PyTorch's names, by family. Importing this fills `OPERATIONS`."""

from mlc.frontend.functions import (
    contract,
    convolution,
    create,
    dynamic,
    elementwise,
    fft,
    grids,
    index,
    linalg,
    losses,
    neural,
    normalization,
    pooling,
    random,
    reduce,
    resize,
    scan,
    scatter,
    shape,
    sort,
    trigonometry,
)

MODULES = (contract, convolution, create, dynamic, elementwise, fft, grids, index, linalg, losses, neural,
           normalization, pooling, random, reduce, resize, scan, scatter, shape, sort, trigonometry)
