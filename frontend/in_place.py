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
from mlc.frontend.autograd.graph import Node, kept
from mlc.frontend.autograd.tangents import NoTangents, active, duals, put_tangent, tangent_of
from mlc.frontend.autograd.view_node import CopySlices, ViewNode
from mlc.frontend.dispatch import GATE
from mlc.frontend.location import user_loc
from mlc.frontend.methods import OPERATIONS, SYNTAX
from mlc.frontend.refusals import refusal
from mlc.frontend.storage import overlaps, storage_of
from mlc.frontend.tensor import Tensor, as_backing_array, wrap
from mlc.frontend.trace import Tracer, as_tracer, state
from mlc.ir.diag import UserError, UserTypeError

Array = np.ndarray[Any, Any]


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
        return new
    if _kind(new) > _kind(x):
        raise UserTypeError(f"a result of {new.dtype.name} does not fit in place of {x.dtype.name}",
                            code="MLC0439", loc=user_loc(), hint="convert the tensor first, as in x = x.float()")
    return new.to(x.dtype)


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


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of another tensor or a number, broadcast and converted, in place.

    Args:
        src: Tensor, array or number whose shape broadcasts to that of this tensor.
        non_blocking: Accepted for PyTorch's sake.

    Returns:
        The tensor itself.

    Raises:
        UserError: The shapes do not broadcast (MLC0111), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.zeros(2, 2).copy_(mlc.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]], dtype=mlc.float32)
    """
    check_writable(self)
    if state.trace is not None:
        return store(self, OPERATIONS["_copied"](self, src))
    base = self if self._view is None else self._view.base
    if active() is not None or (mode.enabled and (base.requires_grad or (type(src) is Tensor and src.requires_grad))):
        return store(self, OPERATIONS["_copied"](self, src))
    array = _converted(src, self)
    storage = self._storage
    if storage is not None and not (array.shape == self.shape and self._view is None
                                    and (not isinstance(array, np.ndarray) or array.flags.c_contiguous)
                                    and storage.replace(self, array)):
        storage.write(self, array)
    elif storage is None:
        self._array = array if array.shape == self.shape else np.array(np.broadcast_to(array, self.shape), order="C")
    return self


def put_number(x: Tensor, key: Any, value: int | float) -> bool:
    """x[key] = value for a key of integers, None and slices, where no history has to be continued, x has all of its
    memory, and the number fits; False if the general path has to look."""
    storage = x._storage
    if (storage is None or state.trace is not None or x._view is not None or x._autograd is not None
            or active() is not None or not storage.is_whole(x) or not _fits(value, x._array.dtype)):
        return False
    assert storage.memory is not None
    try:
        storage.memory[key] = value
    except IndexError:
        return False
    storage.touch()
    return True


_FLOAT32, _FLOAT64, _INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)


def _fits(value: int | float, dtype: np.dtype[Any]) -> bool:
    """Whether a number is known to fit in a dtype."""
    if dtype is _FLOAT32:
        return -3e38 < value < 3e38
    return (dtype is _FLOAT64 and type(value) is float) or (dtype is _INT64 and type(value) is int
                                                            and -2**63 <= value < 2**63)


def _converted(src: Any, like: Tensor) -> Any:
    """An array of the elements of `src`, in the dtype and on the device of `like`, that broadcasts to its shape."""
    if type(src) is complex and not like.dtype.is_complex:
        raise UserTypeError(f"complex numbers do not fit in {like.dtype.name}", code="MLC0790", loc=user_loc(),
                            hint="write the real part, as in x.real")
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
        return array if array.shape == like.shape else OPERATIONS["broadcast_to"](given, like.shape)._array
    shared = given._storage is not None or (type(src) is not Tensor and np.may_share_memory(array, src))
    return array.copy() if shared else array


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number to all elements, in place.

    Args:
        value: A number, or a tensor of one element.

    Returns:
        The tensor itself.

    Raises:
        UserError: `value` has dimensions (MLC0111), or the write would go unrecorded (MLC0439).

    Example:
        >>> mlc.zeros(2).fill_(7)
        tensor([7., 7.], dtype=mlc.float32)
    """
    if getattr(value, "shape", ()):
        raise UserError(f"fill_ takes one number, found a tensor of shape {list(value.shape)}", code="MLC0111",
                        loc=user_loc(), hint="x.copy_(value) broadcasts")
    return copy_(self, value)


def zero_(self: Tensor) -> Tensor:
    """Write zeros to all elements, in place.

    Returns:
        The tensor itself.

    Raises:
        UserError: The write would go unrecorded (MLC0439).

    Example:
        >>> mlc.ones(2).zero_()
        tensor([0., 0.], dtype=mlc.float32)
    """
    return copy_(self, 0)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one number to the elements whose indices are equal, in place.

    Args:
        fill_value: The number.
        wrap: Whether the diagonal of a tall matrix begins anew below its end, after a row.

    Returns:
        The tensor itself.

    Raises:
        UserError: The tensor has fewer than 2 dimensions (MLC0364), or more, of different sizes (MLC0367), or the write
            would go unrecorded (MLC0439).

    Example:
        >>> mlc.zeros(2, 2).fill_diagonal_(3)
        tensor([[3., 0.],
                [0., 3.]], dtype=mlc.float32)
    """
    check_writable(self)
    shape = tuple(self.shape)
    if len(shape) < 2:
        raise UserError(f"a tensor of {len(shape)} dimensions has no diagonal", code="MLC0364", loc=user_loc())
    if len(shape) > 2 and len(set(shape)) > 1:
        raise UserError(f"shape {list(shape)}: more than 2 dimensions have a diagonal if their sizes are equal",
                        code="MLC0367", loc=user_loc())
    step = sum(math.prod(shape[i + 1:]) for i in range(len(shape)))
    stop = math.prod(shape) if wrap or len(shape) > 2 else shape[1] * shape[1]
    at = OPERATIONS["arange"](math.prod(shape)).reshape(shape)
    return store(self, OPERATIONS["masked_fill"](self, (at % step == 0) & (at < stop), fill_value))


def detach_(self: Tensor) -> Tensor:
    """Drop the tensor's history, in place.

    Returns:
        The tensor itself.

    Raises:
        UserError: The tensor is a view (MLC0439).

    Example:
        >>> x = mlc.ones(2, requires_grad=True) * 2
        >>> x.detach_().requires_grad
        False
    """
    if state.trace is not None:
        return store(self, OPERATIONS["detach"](self))
    if self._view is not None and self._view.base.requires_grad:
        raise UserError("a view cannot be detached in place: the history is that of the tensor that it is a view of",
                        code="MLC0439", loc=user_loc(), hint="x = x.detach()")
    self._autograd = None
    if duals.level is not None:
        duals.level.put(self, None)
    return self


class PutNode(Node):
    """A recorded write to the elements that arrays of indices or masks pick.

    key  the subscript; slices stand for dimensions that are whole
    """

    __slots__ = ("key", "of_source", "of_target")

    def __init__(self, target: Tensor, source: Tensor, new: Tensor, key: tuple[Any, ...]) -> None:
        self.key = tuple(kept(k) for k in key)
        self.of_target, self.of_source = target.requires_grad, source.requires_grad
        super().__init__([x for x in (target, source) if x.requires_grad], [new])

    def name(self) -> str:
        return "IndexPutBackward"

    def pull(self, cotangents: Any) -> Any:
        cotangent, = cotangents
        if cotangent is None:
            return [None] * len(self.edges)
        found = []
        if self.of_target:
            rest = cotangent.clone()
            rest[self.key] = 0
            found.append(rest)
        return [*found, cotangent[self.key]] if self.of_source else found

    def check_saved(self) -> None:
        """Nothing is saved."""


def put(x: Tensor, key: tuple[Any, ...], value: Any) -> None:
    """x[key] = value, for a key of index arrays, masks, and slices of whole dimensions."""
    check_writable(x)
    if state.trace is not None:
        store(x, _with_put(as_tracer(x), key, value))
        return
    arrays = tuple(k.array if type(k) is Tensor else k for k in key)
    if type(value) in (bool, int, float, complex):
        source = wrap(np.asarray(_converted(value, x)))    # which has all digits of a float
    else:
        source = value if type(value) is Tensor else wrap(np.asarray(as_backing_array(value)))
        source = source.to(x.dtype)
    picked = x._array[arrays].shape
    source = OPERATIONS["broadcast_to"](without_leading_ones(source, len(picked)), picked)
    elements = source._array
    storage = storage_of(x)
    storage.writable(x)[arrays] = elements
    storage.touch()
    base = x if x._view is None else x._view.base
    if mode.enabled and (source.requires_grad or base.requires_grad):
        new = wrap(x._array)
        PutNode(x, source, new, key)
        continue_history(x, new)
    if (level := active()) is not None and not (level.get(x) is None and level.get(source) is None):
        tangent = level.get(source)
        with NoTangents():
            put(level.writable(x), key, 0 if tangent is None else tangent)


def _with_put(x: Tracer, key: tuple[Any, ...], value: Any) -> Tensor:
    """x while it is recorded, after x[key] = value."""
    f, arrays, dims, at = OPERATIONS, [k for k in key if not isinstance(k, slice)], list[int](), 0
    for k in key:
        covers = 1 if isinstance(k, slice) or "bool" not in str(k.dtype) else k.ndim
        dims += [] if isinstance(k, slice) else range(at, at + covers)
        at += covers
    if len(arrays) == 1 and "bool" in str(arrays[0].dtype) and all(d == 1 for d in getattr(value, "shape", ())):
        shape = [1] * dims[0] + list(arrays[0].shape) + [1] * (x.ndim - dims[-1] - 1)
        value = f["reshape"](value, ()) if hasattr(value, "shape") else value
        return f["masked_fill"](x, f["reshape"](arrays[0], shape), f["cast"](value, x.dtype))  # type: ignore[no-any-return]
    if len(arrays) == 1 and "bool" in str(arrays[0].dtype) and len(dims) == x.ndim and getattr(value, "ndim", 0) == 1:
        return f["masked_scatter"](x, arrays[0], f["cast"](value, x.dtype))  # type: ignore[no-any-return]
    picked = f["getitem"](x, key)
    value = f["broadcast_to"](without_leading_ones(value, picked.ndim), picked.shape)
    count, lead = picked.ndim - (x.ndim - len(dims)), dims[0]
    if dims[-1] - lead == len(dims) - 1:                   # else the indexed dimensions come first
        value = f["movedim"](value, list(range(lead, lead + count)), list(range(count)))
    leading = list(range(len(dims)))
    new = f["index_put"](f["movedim"](x, dims, leading), arrays, value)
    return f["movedim"](new, leading, dims)  # type: ignore[no-any-return]


def without_leading_ones(x: Any, rank: int) -> Any:
    """A value to assign, without those leading dimensions of size 1 that exceed `rank`."""
    while getattr(x, "ndim", 0) > rank and x.shape[0] == 1:
        x = x[0]
    return x


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


def method_of(name: str) -> Callable[..., Any]:
    """The in-place method of the public function `name`."""
    method = getattr(Tensor, name)

    def in_place(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        if GATE.cell_contents is not None or self._autograd is not None or self._view is not None:
            check_writable(self)
        return store(self, method(self, *args, **keywords), (*args, *keywords.values()) if keywords else args)
    return in_place


def check_alone(x: Tensor, name: str, hint: str) -> None:
    """UserError if the shape of a tensor cannot change in place."""
    check_writable(x)
    shared = x._storage is not None and len(x._storage.tensors()) > 1
    if isinstance(x, Tracer) or x._view is not None or shared:
        raise refusal(f"{name} would change the shape of a tensor in place that is recorded, a view, or has views",
                      code="MLC0760", loc=user_loc(), hint=hint)


def reshaping_method_of(name: str) -> Callable[..., Any]:
    """The method that changes the shape of a tensor in place, for the public view function `name`."""
    def in_place(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        check_alone(self, f"{name}_", f"x = x.{name}(...)")
        view = OPERATIONS[name](self, *args, **keywords)
        self._array, self._autograd = view._array, view._autograd
        put_tangent(self, tangent_of(view))
        return self
    return in_place


RESHAPING = ("as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze")
"""Views that have an in-place method."""
FUNCTIONS = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min conj_physical
copysign cos cosh cumprod cumsum deg2rad digamma div eq erf erfc erfinv exp exp2 expm1 float_power floor floor_divide
fmod frac gcd ge gt heaviside hypot i0 igamma igammac index_add index_copy index_fill index_put index_reduce lcm ldexp
le lerp lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt masked_fill masked_scatter
mul mvlgamma nan_to_num ne neg nextafter polygamma pow put rad2deg reciprocal relu remainder renorm round rsqrt
scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc sinh sqrt square sub tan tanh tril triu trunc xlogy
""".split()
"""Public functions that have an in-place method."""
SECOND_NAMES = {"absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
                "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div",
                "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
                "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
                "true_divide": "div"}
"""Second names of some of them."""


def _attach() -> None:
    for name in FUNCTIONS:
        method = method_of(name)
        method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
        method.__doc__ = f"`{name}` of this tensor, in place; returns the tensor itself."
        method.__wrapped__ = getattr(Tensor, name)         # type: ignore[attr-defined] # whose parameters are the same
        setattr(Tensor, f"{name}_", method)
    for name in RESHAPING:
        method = reshaping_method_of({"swapdims": "transpose"}.get(name, name))
        method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
        method.__doc__ = f"`{name}` of this tensor, in place; returns the tensor itself."
        method.__wrapped__ = getattr(Tensor, name)         # type: ignore[attr-defined]
        setattr(Tensor, f"{name}_", method)
    for second, name in SECOND_NAMES.items():
        setattr(Tensor, f"{second}_", getattr(Tensor, f"{name}_"))
    for f in (copy_, fill_, fill_diagonal_, zero_, detach_):
        setattr(Tensor, f.__name__, f)


_attach()
