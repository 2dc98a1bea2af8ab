"""Decorator of the public functions that create tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from mlc.frontend.arguments import FAILURES, as_coded
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.devices import CPU, Devices, as_device
from mlc.frontend.location import user_loc
from mlc.frontend.operands import to_default_dtype
from mlc.frontend.operation_errors import as_user_error
from mlc.frontend.out_tensors import write_out
from mlc.frontend.placement import placed
from mlc.frontend.recorded_operation import constant
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import as_tracer, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import located
from mlc.ir.diag import BackendError, Error
from mlc.ir.profiling import state as profiling

P = ParamSpec("P")

R = TypeVar("R")


SHARING = ("asarray", "from_numpy", "from_dlpack", "frombuffer", "contiguous")
"""Functions whose results may be an argument, or share its memory."""


def creation(f: Callable[P, R]) -> Callable[P, R]:
    """Make `f` public; errors name the user's line. The result is on the device that the call names, or else on that of
    the first argument, if it is a tensor. With `requires_grad`, it is a leaf whose gradient is computed."""

    varargs = f.__code__.co_flags & inspect.CO_VARARGS     # zeros(2, 3), zeros((2, 3)) and zeros(size=(2, 3))

    @functools.wraps(f)
    def public(*args: P.args, **keywords: P.kwargs) -> R:
        if args and isinstance(args[0], Tensor) and args[0].composite:
            return args[0].run(f.__name__, f, args, keywords)  # type: ignore[no-any-return]
        if keywords.get("out") is not None:
            return write_out(f.__name__, public, args, keywords)  # type: ignore[no-any-return]
        loc = user_loc()
        if varargs and "size" in keywords:
            args = (*args, keywords.pop("size"))  # type: ignore[assignment]
        try:
            device = as_device(keywords.get("device"))
            if device is None and args and type(args[0]) is Tensor:
                device = args[0].device
            if device not in (None, CPU) and state.trace is None:
                Devices.check(device)                      # before the host's memory is filled
            if state.trace is None or state.in_operation:
                out = f(*args, **keywords)
            else:
                with located(loc):
                    if len(args) == 1 and isinstance(args[0], Tracer) and keywords.get("dtype") is None:
                        args = (to_default_dtype(args[0]),)  # type: ignore[assignment]
                    out = f(*args, **keywords) if mode.enabled else constant(f(*args, **keywords))
        except BackendError:
            raise                                          # there is no such device
        except Error as error:
            raise as_user_error(error, f.__name__, (), loc) from None
        except FAILURES as error:
            as_coded(error, f, f.__name__, args, keywords, loc)
            raise
        if device is not None and isinstance(out, Tensor):
            out = out.to_device(device)  # type: ignore[assignment]
            if args and type(args[0]) is Tensor and type(out) is Tensor:
                out = placed(out, args[0])  # type: ignore[assignment]
        if state.trace is not None and type(out) is Tensor and f.__name__ not in SHARING:
            state.trace.root.made.append(out)  # type: ignore[arg-type]
        if state.trace is None and profiling.recorder is not None:
            arrays = [x.backing_array if type(x) is Tensor else x for x in args if isinstance(x, Tensor | np.ndarray)]
            if arrays or f.__name__ not in SHARING:        # whether memory is shared can be seen of arrays
                profiling.recorder.made(f.__name__, arrays, out)
        if keywords.get("requires_grad"):
            if mode.captures is not None:                  # a leaf of the function that is recorded
                out = constant(as_tracer(out))
            out.requires_grad_()  # type: ignore[attr-defined]
        return out

    OPERATIONS[f.__name__] = public
    return public
