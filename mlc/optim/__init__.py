"""Optimisers as functions: `params, state = opt.update(gradients, state, params)`.

Parameters, gradients and state are trees. An optimiser holds only its settings, so an update is pure, compiles with
the step it belongs to, and takes the old buffers over if they are donated.
"""

from mlc.optim.adamw import AdamW
from mlc.optim.optimizer import Optimizer
from mlc.optim.sgd import SGD

__all__ = ["SGD", "AdamW", "Optimizer"]
