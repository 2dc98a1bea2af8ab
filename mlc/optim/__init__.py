"""Optimizers as functions: `params, state = opt.update(gradients, state, params)`.

Parameters, gradients and state are trees. An optimizer holds only its settings, so an update is pure, compiles with
the step it belongs to, and takes the old buffers over if they are donated. Its learning rate is a number, or a
function of the step from `mlc.optim.schedules`.
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.optim import lr_scheduler, schedules
from mlc.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from mlc.optim.adaptive import Adadelta, Adagrad, RMSprop
from mlc.optim.averaging import MovingAverage
from mlc.optim.gradients import Accumulated, clip_by_global_norm, clip_by_value, global_norm
from mlc.optim.lbfgs import LBFGS
from mlc.optim.optimizer import Optimizer
from mlc.optim.sgd import SGD, Lion

__all__ = ["LBFGS", "SGD", "Accumulated", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "MovingAverage",
           "NAdam", "Optimizer", "RAdam", "RMSprop", "clip_by_global_norm", "clip_by_value", "global_norm",
           "lr_scheduler", "schedules"]
