"""Functions on tensors under PyTorch's names, by family. Importing this fills `OPERATIONS`."""

from mlc.frontend.functions import contract, create, elementwise, index, losses, neural, reduce, shape

MODULES = (contract, create, elementwise, index, losses, neural, reduce, shape)
