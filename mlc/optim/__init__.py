"""Optimizers as functions: `params, state = opt.update(gradients, state, params)`.

Parameters, gradients and state are trees. An optimizer holds only its settings, so an update is pure, compiles with
the step it belongs to, and takes the old buffers over if they are donated. Its learning rate is a number, or a
function of the step from `mlc.optim.schedules`.

Example:
    >>> opt, params = mlc.optim.SGD(lr=0.5), {"w": mlc.tensor([1.0])}
    >>> params, state = opt.update({"w": mlc.tensor([2.0])}, opt.init(params), params)
    >>> params
    {'w': tensor([0.], dtype=mlc.float32)}
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.optim import lr_scheduler, schedules, swa_utils
from mlc.optim.adafactor import Adafactor
from mlc.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from mlc.optim.adaptive import Adadelta, Adagrad, RMSprop
from mlc.optim.averaging import MovingAverage
from mlc.optim.gradients import Accumulated, clip_by_global_norm, clip_by_value, global_norm
from mlc.optim.lbfgs import LBFGS
from mlc.optim.muon import Muon
from mlc.optim.optimizer import Optimizer
from mlc.optim.rprop import Rprop
from mlc.optim.sgd import ASGD, SGD, Lion
from mlc.optim.sparse_adam import SparseAdam

__all__ = ["ASGD", "LBFGS", "SGD", "Accumulated", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion",
           "MovingAverage", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam",
           "clip_by_global_norm", "clip_by_value", "global_norm", "lr_scheduler", "schedules", "swa_utils"]
