"""In-place operations: `x.add_(y)`, `x[i] = y`, `x += y`.

The result is computed as by the operation that is not in place. Then the tensor takes it over: its elements, for all
tensors that share its memory to see, and its history.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.frontend import functionalization
from mlc.frontend.autograd.grad_mode import GradMode, mode
from mlc.frontend.autograd.tangents import active
from mlc.frontend.autograd.view_node import CopySlices, ViewNode
from mlc.frontend.location import user_loc
from mlc.frontend.methods import OPERATIONS, SYNTAX
from mlc.frontend.placement import placed
from mlc.frontend.refusals import refusal
from mlc.frontend.storage import overlaps
from mlc.frontend.tensor import Tensor, as_backing_array, check_fits, wrap
from mlc.frontend.trace import as_tracer, state
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import to_numpy


def check_writable(x: Tensor) -> None:
    """UserError if a write to the tensor would go unrecorded."""
    if state.trace is not None and isinstance(found := functionalization.captured(x), Tracer):
        return functionalization.check_write(found)
    if state.trace is not None:
        raise refusal("a tensor would be changed in place that was made outside of the recorded function, or in it of "
                      "plain data", code="MLC0756", loc=user_loc(),
                      hint="pass it to the function as an argument, or begin with mlc.zeros or x.clone()")
    view = x._view
    base = x if view is None else view.base
    if base._autograd is None or not mode.enabled or not base.requires_grad:
        return
    if base.is_leaf:
        what = "a leaf" if view is None else "a view of a leaf"
        raise UserError(f"{what} that requires a gradient would be changed in place while operations are recorded",
                        code="MLC0439", loc=user_loc(), hint="update it within mlc.no_grad, or write x = x + y")
    if view is not None and not view.recorded:
        raise UserError("a view that was made within no_grad would be changed in place while operations are recorded",
                        code="MLC0439", loc=user_loc(), hint="make the view outside of no_grad, or write within it")


def store(x: Tensor, new: Tensor, operands: tuple[Any, ...] = ()) -> Tensor:
    """Have `x` take over the result of an operation on it, and on other operands; returns x."""
    if x.composite:
        return x.take_over(new)  # type: ignore[no-any-return]
    old, made = x._array, new._array
    if type(old) is not np.ndarray or type(made) is not np.ndarray or old.shape != made.shape or (
            old.dtype is not made.dtype):
        new = _fitting(x, new)
    if state.trace is not None:
        functionalization.write(as_tracer(x), as_tracer(new))
        return x
    fresh = new._storage is None and new is not x and id(new) not in map(id, operands)
    storage = x._storage
    if storage is None:
        x._array = new._array if fresh else new._array.copy()
    elif not (fresh and x._view is None and storage.replace(x, new._array)):
        storage.write(x, new._array)
    if new._autograd is not None or x._autograd is not None or x._view is not None:
        continue_history(x, new)
    if (level := active()) is not None and new is not x:
        level.overwrite(x, level.get(new))
    return x


def _fitting(x: Tensor, new: Tensor) -> Tensor:
    """The result of an operation in the dtype of `x`, in whose place it is put."""
    if new.shape != x.shape:
        raise UserError(f"a result of shape {list(new.shape)} does not fit in place of {list(x.shape)}",
                        code="MLC0439", loc=user_loc())
    if new.dtype is x.dtype:
        return placed(new, x)
    if _kind(new) > _kind(x):
        raise UserTypeError(f"a result of {new.dtype.name} does not fit in place of {x.dtype.name}",
                            code="MLC0439", loc=user_loc(), hint="convert the tensor first, as in x = x.float()")
    return placed(new.to(x.dtype), x)


def _kind(x: Tensor) -> int:
    return 3 if x.dtype.is_complex else 2 if x.dtype.is_floating_point else 0 if x.dtype.name == "bool" else 1


def continue_history(x: Tensor, new: Tensor) -> None:
    """Give `x`, and the tensors that share its memory, the history of its new elements."""
    if not mode.enabled:
        return
    view = x._view
    base = x if view is None else view.base
    if new._autograd is None and base._autograd is None:
        return
    if not (new.requires_grad or base.requires_grad):
        return
    shared = [base] if base._storage is None else base._storage.tensors()
    retaining = [t for t in shared if t.retains_grad]
    if view is not None:
        CopySlices(base, new, view.steps)
    else:
        meta, before = new._autograd, x._autograd
        if meta is not None and before is not None:
            meta.is_parameter = before.is_parameter
        x._autograd = meta
    views_follow(base)
    for t in retaining:
        if t._autograd is not None:
            t._autograd.retain()


def views_follow(base: Tensor) -> None:
    """Give the views of a tensor a history that begins at its present one."""
    if base._storage is None or not base.requires_grad:
        return
    for t in base._storage.tensors():
        if t._view is not None and t._view.base is base and t._view.recorded:
            if overlaps(t._array):                         # whose gradient is a sum, which the steps know
                t._autograd = t._view.of(base)._autograd
            else:
                ViewNode(base, t, t._view.steps, "AsStridedBackward")


def check_number(src: Any, like: Tensor) -> None:
    """UserError if a number that is to be written to a tensor of integers does not fit, as in `converted`."""
    if type(src) not in (int, float) or (dtype := to_numpy(like.dtype.ir)).kind not in "iu":
        return
    try:
        check_fits(int(src), dtype)
    except (OverflowError, ValueError):                    # inf and NaN
        raise UserError(f"{src} does not fit in {like.dtype.name}", code="MLC0348", loc=user_loc()) from None


def converted(src: Any, like: Tensor) -> Any:
    """An array of the elements of `src`, in the dtype and on the device of `like`, that broadcasts to its shape."""
    src = as_real(src, like)
    if type(src) is int and isinstance(like._array, np.ndarray) and like._array.dtype.kind in "iu":
        check_fits(src, like._array.dtype)
        src = src % (1 << 8 * like._array.itemsize) if src < 0 and like._array.dtype.kind == "u" else src
    if type(src) in (bool, int, float, complex) and isinstance(like._array, np.ndarray):
        try:
            with np.errstate(over="ignore"):
                array = np.asarray(src, like._array.dtype)
            if type(src) is float and math.isfinite(src) and array.dtype.kind not in "biu" and np.isinf(array):
                raise OverflowError
            return array
        except (OverflowError, ValueError):
            raise UserError(f"{src} does not fit in {like.dtype.name}", code="MLC0348", loc=user_loc()) from None
    given = src if type(src) is Tensor else wrap(as_backing_array(src))
    check_real(given, like)
    if type(given._array) is not np.ndarray or type(like._array) is not np.ndarray or (
            given._array.dtype is not like._array.dtype):
        with GradMode(False):
            given = given.to(like.dtype).to_device(like.device)
    array = given._array
    if array.shape != like._array.shape:
        try:
            fits = np.broadcast_shapes(array.shape, like.shape) == like.shape
        except ValueError:
            fits = False
        if not fits:
            raise UserError(f"shape {list(array.shape)} does not broadcast to {list(like.shape)}", code="MLC0111",
                            loc=user_loc())
    if not isinstance(array, np.ndarray):
        if array.shape != like.shape:
            array = OPERATIONS["broadcast_to"](given, like.shape)._array
        return array.placed_like(like._array)
    shared = given._storage is not None or (type(src) is not Tensor and np.may_share_memory(array, src))
    return array.copy() if shared else array


def as_real(src: Any, like: Any) -> Any:
    """A Python number that is written to a tensor: its real part if the tensor is real, and there is no other."""
    if not isinstance(src, complex) or like.dtype.is_complex or like.dtype.name == "bool":
        return src
    if src.imag != 0:
        raise UserTypeError(f"complex numbers do not fit in {like.dtype.name}", code="MLC0790", loc=user_loc(),
                            hint="write the real part, as in x.real")
    return src.real


def check_real(src: Any, like: Any) -> None:
    """UserTypeError if complex elements would lose their imaginary parts; a bool says whether one is not 0."""
    if src.dtype.is_complex and not like.dtype.is_complex and like.dtype.name != "bool":
        raise UserTypeError(f"{src.dtype.name} elements do not fit in {like.dtype.name}", code="MLC0790",
                            loc=user_loc(), hint="write the real part, as in x.real")


def augmented(name: str, x: Any, other: Any) -> Any:
    """`x += other`, in place, for the operation of this name."""
    if state.trace is not None:
        changed = functionalization.captured(x)
        if not isinstance(changed, Tracer) or changed.weak:            # plain data, or a Python number
            return getattr(x, f"{name}_")(other) if not isinstance(changed, Tracer) else NotImplemented
    return getattr(x, f"{name}_")(other)


SYNTAX["augmented"], SYNTAX["store"] = augmented, store


def write_inplace(function: Callable[..., Any], position: int, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`function(x, ..., inplace=True)`, where `inplace` may be the argument at `position`: its result, written to x."""
    wanted = args[position] if len(args) > position else keywords["inplace"]
    keywords = {name: x for name, x in keywords.items() if name != "inplace"}
    args = args[:position] + args[position + 1:]
    if wanted is not True:
        raise UserTypeError(f"inplace is True or False, found {type(wanted).__name__}", code="MLC0321", loc=user_loc())
    return written(args[0] if args else keywords.get("input"), lambda: function(*args, **keywords))


def written(x: Any, result: Callable[[], Any]) -> Any:
    """The result, written to x if that is a tensor."""
    if not isinstance(x, Tensor):
        return result()
    check_writable(x)
    return store(x, result())
