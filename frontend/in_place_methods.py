"""In-place methods of tensors: x.add_(y), x.copy_(y), x.squeeze_(). Importing the module attaches them."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.tangents import active, duals, put_tangent, tangent_of
from mlc.frontend.dispatch import GATE
from mlc.frontend.in_place import check_number, check_writable, converted, store
from mlc.frontend.location import user_loc
from mlc.frontend.methods import OPERATIONS
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError


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
        check_number(src, self)
        return store(self, OPERATIONS["_copied"](self, src))
    base = self if self._view is None else self._view.base
    if active() is not None or (mode.enabled and (base.requires_grad or (type(src) is Tensor and src.requires_grad))):
        return store(self, OPERATIONS["_copied"](self, src))
    array = converted(src, self)
    storage = self._storage
    if storage is not None and not (array.shape == self.shape and self._view is None
                                    and (not isinstance(array, np.ndarray) or array.flags.c_contiguous)
                                    and storage.replace(self, array)):
        storage.write(self, array)
    elif storage is None:
        self._array = array if array.shape == self.shape else np.full(self.shape, array, array.dtype)
    return self


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
    """Drop the tensor's history, in place. Its views keep the history that they have.

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
        method.__wrapped__ = getattr(Tensor, name)         # type: ignore[attr-defined] # whose parameters are the same
        setattr(Tensor, f"{name}_", method)
    for name in RESHAPING:
        method = reshaping_method_of({"swapdims": "transpose"}.get(name, name))
        method.__name__, method.__qualname__ = f"{name}_", f"Tensor.{name}_"
        method.__wrapped__ = getattr(Tensor, name)         # type: ignore[attr-defined]
        setattr(Tensor, f"{name}_", method)
    for second, name in SECOND_NAMES.items():
        setattr(Tensor, f"{second}_", getattr(Tensor, f"{name}_"))
    for f in (copy_, fill_, fill_diagonal_, zero_, detach_):
        setattr(Tensor, f.__name__, f)


EXAMPLES = {
    "add": "mlc.tensor([1.0, 2.0]).add_(mlc.tensor([10.0, 20.0]), alpha=2) -> tensor([21., 42.], dtype=mlc.float32)",
    "sub": "mlc.tensor([5, 7]).sub_(2) -> tensor([3, 5], dtype=mlc.int64)",
    "mul": "mlc.tensor([1.0, 2.0]).mul_(3) -> tensor([3., 6.], dtype=mlc.float32)",
    "div": "mlc.tensor([1.0, 2.0]).div_(4) -> tensor([0.25, 0.5 ], dtype=mlc.float32)",
    "pow": "mlc.tensor([2.0, 3.0]).pow_(2) -> tensor([4., 9.], dtype=mlc.float32)",
    "neg": "mlc.tensor([1, -2]).neg_() -> tensor([-1,  2], dtype=mlc.int64)",
    "abs": "mlc.tensor([1, -2]).abs_() -> tensor([1, 2], dtype=mlc.int64)",
    "exp": "mlc.tensor([0.0]).exp_() -> tensor([1.], dtype=mlc.float32)",
    "sqrt": "mlc.tensor([4.0, 9.0]).sqrt_() -> tensor([2., 3.], dtype=mlc.float32)",
    "relu": "mlc.tensor([-1.0, 2.0]).relu_() -> tensor([0., 2.], dtype=mlc.float32)",
    "clamp": "mlc.tensor([-2.0, 0.5, 3.0]).clamp_(0, 1) -> tensor([0. , 0.5, 1. ], dtype=mlc.float32)",
    "round": "mlc.tensor([0.5, 1.7]).round_() -> tensor([0., 2.], dtype=mlc.float32)",
    "lt": "mlc.tensor([1.0, 5.0]).lt_(2) -> tensor([1., 0.], dtype=mlc.float32)",
    "lerp": "mlc.tensor([0.0, 2.0]).lerp_(mlc.tensor([4.0, 4.0]), 0.5) -> tensor([2., 3.], dtype=mlc.float32)",
    "addcmul": "mlc.tensor([1.0]).addcmul_(mlc.tensor([2.0]), mlc.tensor([3.0]), value=0.5)"
               " -> tensor([4.], dtype=mlc.float32)",
    "addcdiv": "mlc.tensor([1.0]).addcdiv_(mlc.tensor([2.0]), mlc.tensor([4.0])) -> tensor([1.5], dtype=mlc.float32)",
    "masked_fill": "mlc.tensor([1, 2, 3]).masked_fill_(mlc.tensor([True, False, True]), 0)"
                   " -> tensor([0, 2, 0], dtype=mlc.int64)",
    "index_add": "mlc.zeros(3).index_add_(0, mlc.tensor([0, 2, 0]), mlc.ones(3))"
                 " -> tensor([2., 0., 1.], dtype=mlc.float32)",
    "scatter": "mlc.zeros(3).scatter_(0, mlc.tensor([2, 0]), mlc.tensor([5.0, 7.0]))"
               " -> tensor([7., 0., 5.], dtype=mlc.float32)",
    "scatter_add": "mlc.zeros(2).scatter_add_(0, mlc.tensor([0, 0, 1]), mlc.ones(3))"
                   " -> tensor([2., 1.], dtype=mlc.float32)",
    "cumsum": "mlc.tensor([1, 2, 3]).cumsum_(0) -> tensor([1, 3, 6], dtype=mlc.int64)",
    "squeeze": "mlc.ones(1, 2).squeeze_() -> tensor([1., 1.], dtype=mlc.float32)",
    "unsqueeze": "mlc.ones(2).unsqueeze_(0) -> tensor([[1., 1.]], dtype=mlc.float32)",
    "t": "mlc.tensor([[1, 2], [3, 4]]).t_() -> tensor([[1, 3],\n        [2, 4]], dtype=mlc.int64)",
    "transpose": "mlc.zeros(2, 3).transpose_(0, 1).shape -> (3, 2)",
}
"""Calls of the methods that are used most, and what they give."""


def describe() -> None:
    """Give the methods the functions' documentation, once the functions are there."""
    for name in (*FUNCTIONS, *RESHAPING):
        method = getattr(Tensor, f"{name}_")
        method.__doc__ = documentation(OPERATIONS[name].__doc__ or "", reshapes=name in RESHAPING)
        if example := EXAMPLES.get(name):
            call, _, result = example.partition(" -> ")
            method.__doc__ += "\n\nExample:\n    >>> " + call + "\n    " + result.replace("\n", "\n    ")


def documentation(text: str, reshapes: bool) -> str:
    """The documentation of an in-place method, from that of the function, whose `input` is the tensor itself.

    Args:
        text: Documentation of the function.
        reshapes: Whether the method gives the tensor another shape.

    Returns:
        What the function computes, its other arguments and its errors, and what writing the result adds.

    Example:
        >>> text = documentation("-input, elementwise.\\n\\nArgs:\\n    input: Tensor.\\n", reshapes=False)
        >>> text.split("\\n")[0], "Args" in text
        ('In place: -input, elementwise.', False)
    """
    text = inspect.cleandoc(text)                          # Python 3.13 has no indentation in it
    parts = dict(zip(("", *PARTS.findall(text)), PARTS.split(text)))
    first, blank, remarks = parts[""].rstrip().partition("\n\n")
    is_word = first.partition(" ")[0].istitle()            # and no name such as NaN
    out = [f"In place: {first[0].lower() if is_word else first[0]}{first[1:]}{blank}{remarks}",
           RESHAPES if reshapes else WRITES]
    if entries := INPUT.sub("", parts.get("Args:\n", "")).rstrip():
        out.append(f"Args:\n{entries}")
    out.append("Returns:\n    The tensor itself.")
    errors = parts.get("Raises:\n", "").rstrip()
    out.append(f"Raises:\n{errors}{chr(10) * bool(errors)}{NOT_RESHAPED if reshapes else NOT_WRITTEN}")
    return "\n\n".join(out)


PARTS = re.compile(r"(?m)^(?:Args|Returns|Raises|Example):\n")
INPUT = re.compile(r"(?m)^    (?:input|inplace): .*\n?(?:        .*\n?)*")
WRITES = "The result is written to the memory of `input`, this tensor, in its dtype; tensors that share it see that."
RESHAPES = "`input`, this tensor, gets the shape and the strides of the result, and keeps its elements."
NOT_WRITTEN = """\
    UserError: the result has another shape, or numbers that the dtype does not have, such as floats in place of
        integers (MLC0439), or the write would go unrecorded (MLC0439; MLC0756 in a compiled function)."""
NOT_RESHAPED = """\
    UserError: the tensor is a view, has views or is recorded (MLC0760), or the change would go unrecorded (MLC0439;
        MLC0756 in a compiled function)."""


_attach()
