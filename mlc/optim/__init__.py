"""Optimizers as functions: `params, state = opt.update(gradients, state, params)`.

Parameters, gradients and state are trees. An optimizer holds only its settings, so an update is pure, compiles with
the step it belongs to, and takes the old buffers over if they are donated. Its learning rate is a number, or a
function of the step from `mlc.optim.schedules`.
"""

import sys
from typing import Any

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend import unsupported_api
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

__all__ = ["ASGD", "LBFGS", "SGD", "Accumulated", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion",
           "MovingAverage", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "clip_by_global_norm",
           "clip_by_value", "global_norm", "lr_scheduler", "schedules", "swa_utils"]


def __getattr__(name: str) -> Any:
    why = unsupported_api.PACKAGE["sparse"] if name == "SparseAdam" else None
    raise unsupported_api.error("mlc.optim", name, why, sys.modules[__name__])
