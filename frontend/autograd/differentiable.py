"""The attributes and methods of tensors that concern autograd, as a base class of `Tensor`."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mlc.frontend.autograd.engine import LeafHooks, Root, run_backward
from mlc.frontend.autograd.grad_mode import GradMode, mode
from mlc.frontend.autograd.graph import AutogradMeta, Node, tensor_of
from mlc.frontend.autograd.hooks import Hook, RemovableHandle
from mlc.frontend.dtypes import DType
from mlc.frontend.location import user_loc
from mlc.frontend.methods import SYNTAX
from mlc.frontend.refusals import in_progress, refusal
from mlc.ir.diag import UserError, UserTypeError

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

T = TypeVar("T", bound="Differentiable")


class Differentiable:
    """Base of tensors that are differentiated by `backward`."""

    __slots__ = ("_autograd",)
    _autograd: AutogradMeta | None

    @property
    def autograd_meta(self) -> AutogradMeta:
        """The record that autograd keeps of the tensor, made if there is none."""
        if self._autograd is None:
            self._autograd = AutogradMeta()
        return self._autograd

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded, so that `backward` computes its gradient. It can be assigned.

        Raises:
            UserTypeError: True is assigned, and the dtype is not of floats (MLC0433).
            UserError: False is assigned to the result of a recorded operation (MLC0434).

        Example:
            >>> w = mlc.ones(2)
            >>> w.requires_grad = True
            >>> (w * 2).requires_grad
            True
        """
        meta = self._autograd
        return meta is not None and meta.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        """Set whether operations on the tensor are recorded, in place.

        Args:
            requires_grad: Whether they are.

        Returns:
            The tensor itself.

        Raises:
            UserTypeError: The dtype is not of floats (MLC0433).
            UserError: The tensor is the result of a recorded operation, which always requires a gradient (MLC0434).

        Example:
            >>> w = mlc.tensor([1.0, 2.0]).requires_grad_()
            >>> (w * w).sum().backward()
            >>> w.grad
            tensor([2., 4.], dtype=mlc.float32)
        """
        if requires_grad and not self.dtype.ir.is_inexact:
            raise UserTypeError(f"only tensors of floats can require a gradient, and this one is of {self.dtype.name}",
                                code="MLC0433", loc=user_loc(), hint="convert it first: x.to(mlc.float32)")
        if not requires_grad and not self.is_leaf:
            raise UserError("the result of a recorded operation requires a gradient: requires_grad can be set to False "
                            "for leaves only", code="MLC0434", loc=user_loc(),
                            hint="x.detach() is the tensor without its history")
        if mode.captures is not None and bool(requires_grad) != self.requires_grad:
            raise refusal("requires_grad of a tensor is set that the function which is recorded reaches by itself, or "
                          "makes of plain data", code="MLC0434", loc=user_loc(),
                          hint="set it outside of the function, or create the tensor with requires_grad=True")
        if requires_grad or self._autograd is not None:
            self.autograd_meta.requires_grad = bool(requires_grad)
        return self

    @property
    def frozen(self) -> bool | None:
        """Whether a parameter is not to be trained; None for a tensor that is no parameter.

        Example:
            >>> nn.Parameter(mlc.ones(2), requires_grad=False).frozen, mlc.ones(2).frozen
            (True, None)
        """
        meta = self._autograd
        return None if meta is None or not meta.is_parameter else not meta.requires_grad

    def __copy__(self: Any) -> Any:
        out = self.detach()                                # which shares the memory
        if self._autograd is not None:
            out.autograd_meta.is_parameter = self._autograd.is_parameter
            out.requires_grad_(self.requires_grad)
        return out

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise UserError("the result of a recorded operation has a history, which cannot be copied", code="MLC0434",
                            loc=user_loc(), hint="x.detach() has none; x.clone() is a copy that continues it")
        if mode.captures is not None:
            mode.captures.note_read(self)
        out = memo[id(self)] = object.__new__(type(self))
        out._array, out._autograd = SYNTAX["copied_array"](self, memo), None
        if self._autograd is not None:
            meta = out.autograd_meta
            meta.requires_grad, meta.is_parameter = self.requires_grad, self._autograd.is_parameter
        if self.grad is not None and not self._autograd.is_parameter:      # a copied model begins without gradients
            out.grad = copy.deepcopy(self.grad, memo)
        return out

    def __reduce__(self: Any) -> Any:
        return _restored, (type(self), self.array, self.device, self.requires_grad, self.frozen is not None)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation computed the tensor: `backward` accumulates in `grad` of leaves only.

        Example:
            >>> w = mlc.ones(2, requires_grad=True)
            >>> w.is_leaf, (w * 2).is_leaf
            (True, False)
        """
        meta = self._autograd
        return meta is None or meta.node is None

    @property
    def grad_fn(self) -> Node | None:
        """The recorded operation that computed the tensor, an `mlc.autograd.graph.Node`; None for a leaf.

        Example:
            >>> w = mlc.ones(2, requires_grad=True)
            >>> (w * 2).grad_fn.name()
            'MulBackward'
        """
        meta = self._autograd
        return None if meta is None else meta.node

    @property
    def retains_grad(self) -> bool:
        """Whether `backward` accumulates the gradient of the tensor although it is no leaf: `retain_grad` has it do so.

        Example:
            >>> y = mlc.ones(2, requires_grad=True) * 2
            >>> y.retain_grad()
            >>> y.retains_grad
            True
        """
        meta = self._autograd
        return meta is not None and meta.retains

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated; None before, and for results of recorded operations unless
        `retain_grad` was called. It can be assigned.

        Raises:
            UserError: what is assigned is no tensor, or one of another shape, dtype or device (MLC0435).

        Example:
            >>> w = mlc.tensor([1.0, 2.0], requires_grad=True)
            >>> (w * w).sum().backward()
            >>> w.grad
            tensor([2., 4.], dtype=mlc.float32)
        """
        if mode.captures is not None:
            return mode.captures.gradient(self)  # type: ignore[no-any-return]
        meta = self._autograd
        return None if meta is None else meta.grad

    @grad.setter
    def grad(self: Any, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Differentiable):
                raise UserTypeError(f"a gradient is a tensor or None, found {type(value).__name__}", code="MLC0435",
                                    loc=user_loc())
            for what in ("shape", "dtype", "device"):
                if getattr(value, what) != getattr(self, what):
                    raise UserError(f"the gradient has {what} {getattr(value, what)}, its tensor {getattr(self, what)}",
                                    code="MLC0435", loc=user_loc())
        if mode.captures is not None:
            mode.captures.set_gradient(self, value)
        elif value is not None or self._autograd is not None:
            self.autograd_meta.grad = value

    @property
    def data(self: Any) -> Any:
        """The tensor without its history, a view of its memory. Assigning it replaces the elements, unrecorded.

        Raises:
            UserTypeError: what is assigned is no tensor (MLC0435).

        Example:
            >>> w = mlc.ones(2, requires_grad=True)
            >>> w.data = mlc.tensor([3.0, 4.0])
            >>> w.data, w.requires_grad
            (tensor([3., 4.], dtype=mlc.float32), True)
        """
        recording: Any = in_progress.recording
        out = (self.view_as(self) if mode.captures is not None and not self.requires_grad else   # may be written to
               self.detach())
        if recording is not None:
            recording.root.data_of.append((self, weakref.ref(out)))
        return out

    @data.setter
    def data(self: Any, given: Any) -> None:
        value: Any = given
        if not isinstance(given, Differentiable):
            raise UserTypeError(f"the elements are those of a tensor, found {type(given).__name__}", code="MLC0435",
                                loc=user_loc())
        recording: Any = in_progress.recording
        if recording is None:
            self.replace_elements(value)
        elif any(self is x and value is data() for x, data in recording.root.data_of):
            return                                         # `x.data += y` has written to them
        elif _is_of_others(value):
            raise refusal("the elements that are assigned are those of another tensor, whose memory both would share, "
                          "while a function is recorded", code="MLC0756", loc=user_loc(), hint="assign a clone of them")
        elif _is_shared(self):
            raise refusal("elements are assigned to a tensor whose former ones another tensor still has, while a "
                          "function is recorded", code="MLC0756", loc=user_loc(), hint="copy them: x.copy_(y)")
        elif value.shape == self.shape and value.dtype == self.dtype:
            with GradMode(False):
                (self if mode.captures is not None and self.is_leaf else self.detach()).copy_(value)
        else:
            raise refusal(f"elements of shape {list(value.shape)} and {value.dtype.name} are assigned to a tensor of "
                          f"{list(self.shape)} and {self.dtype.name}, while a function is recorded", code="MLC0756",
                          loc=user_loc(), hint="assign it outside of the compiled function")

    def retain_grad(self) -> None:
        """Have `backward` accumulate the gradient of this result of a recorded operation in `grad`.

        Raises:
            UserError: The tensor does not require a gradient (MLC0430).

        Example:
            >>> x = mlc.tensor(3.0, requires_grad=True)
            >>> y = x * 2
            >>> y.retain_grad()
            >>> (y * y).backward()
            >>> y.grad
            tensor(12., dtype=mlc.float32)
        """
        recorded(self, "the tensor").retain()

    def register_hook(self, hook: Hook) -> RemovableHandle:
        """Call a function of the tensor's gradient whenever one has been computed.

        Args:
            hook: Function of the gradient that returns another one to go on with, or None.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Raises:
            UserError: The tensor does not require a gradient (MLC0430).

        Example:
            >>> x = mlc.tensor(3.0, requires_grad=True)
            >>> _ = x.register_hook(lambda gradient: 10 * gradient)
            >>> (x * x).backward()
            >>> x.grad
            tensor(60., dtype=mlc.float32)
        """
        meta = recorded(self, "the tensor")
        handle = RemovableHandle(meta.hooks)
        meta.add_hook(handle.key, hook)
        return handle

    def register_post_accumulate_grad_hook(self: Any, hook: Callable[[Any], None]) -> RemovableHandle:
        """Call a function of a leaf whenever its `grad` has been updated.

        Args:
            hook: Function of the tensor; its result is ignored.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Raises:
            UserError: The tensor does not require a gradient (MLC0430), or is no leaf (MLC0434).

        Example:
            >>> x = mlc.tensor(3.0, requires_grad=True)
            >>> _ = x.register_post_accumulate_grad_hook(lambda x: print(x.grad.item()))
            >>> (x * x).backward()
            6.0
        """
        meta = recorded(self, "the tensor")
        if meta.node is not None:
            raise UserError("only leaves accumulate gradients", code="MLC0434", loc=user_loc(),
                            hint="register_hook works for results of operations")
        LeafHooks.registered = True
        handle = RemovableHandle(meta.after)
        meta.after[handle.key] = hook, self
        return handle

    def backward(self: Any, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Sequence[Any] | Any = None) -> None:
        """Compute the gradient of this tensor with respect to leaves, and add it to their `grad`.

        Args:
            gradient: Cotangent of this tensor, of its shape: the gradient is v @ J. None stands for 1 if there is a
                single element.
            retain_graph: Whether what was saved for the gradient is kept, so that backward may be called again; None
                for the value of `create_graph`.
            create_graph: Whether the computation of the gradient is recorded in turn, for higher derivatives.
            inputs: The tensors whose `grad` is updated, one or several; None for all leaves that require it.

        Raises:
            UserError: The tensor does not require a gradient (MLC0430), what was saved has been dropped (MLC0431), or
                there are several elements and no cotangent, or one of another shape (MLC0432).

        Example:
            >>> w = mlc.tensor([1.0, 2.0, 3.0], requires_grad=True)
            >>> loss = (w * w).sum()
            >>> loss.backward()
            >>> w.grad
            tensor([2., 4., 6.], dtype=mlc.float32)
        """
        if mode.captures is not None:
            raise refusal("backward is called within the recorded function of a tensor that was computed outside",
                          code="MLC0720", loc=user_loc(), hint="call it outside, or compute the tensor within")
        only = None
        if inputs is not None:
            only = [recorded(x, f"input {i}") for i, x in enumerate(listed(inputs))]
        run_backward([root(self, gradient)], create_graph if retain_graph is None else retain_graph, create_graph, only)


def _restored(kind: Any, array: Any, device: str, requires_grad: bool, is_parameter: bool) -> Any:
    """A tensor that was pickled, as a leaf."""
    out = kind(array).to_device(device)
    if is_parameter:
        return mark_parameter(out, requires_grad)
    return out.requires_grad_() if requires_grad else out


def mark_parameter(tensor: T, requires_grad: bool) -> T:
    """The tensor itself, marked as a parameter that is trained or not."""
    meta = tensor.autograd_meta
    meta.is_parameter, meta.requires_grad = True, bool(requires_grad)
    return tensor


def listed(tensors: Any) -> Sequence[Any]:
    """The tensors of a sequence, or one tensor as a sequence."""
    one = isinstance(tensors, Differentiable) or not isinstance(tensors, Iterable)
    return (tensors,) if one else tuple(tensors)


def recorded(x: Any, what: str) -> AutogradMeta:
    """The record of a tensor that requires a gradient; UserError for one that does not."""
    meta = x._autograd if isinstance(x, Differentiable) else None
    if meta is None or not meta.requires_grad:
        why = "" if mode.enabled else ", and nothing is recorded within no_grad"
        raise UserError(f"{what} does not require a gradient: no operation that it comes from was recorded{why}",
                        code="MLC0430", loc=user_loc(),
                        hint="what to differentiate by needs requires_grad_() before it is used")
    return meta


def _one(x: Any) -> Any:
    """The cotangent 1 of a tensor of one element."""
    if type(x._array) is not np.ndarray:
        return x.new_ones(x.shape)
    return tensor_of(np.ones(x._array.shape, x._array.dtype), x)


def root(x: Any, gradient: Any, what: str = "the tensor") -> Root:
    """Where a backward pass starts: a tensor, and its cotangent, which is 1 by default."""
    meta = recorded(x, what)
    if gradient is None:
        if x.numel() != 1:
            raise UserError(f"{what} has shape {list(x.shape)}, and only one element has a gradient by itself",
                            code="MLC0432", loc=user_loc(),
                            hint="sum or average it, or pass its cotangent: y.backward(mlc.ones_like(y))")
        check_real(x.dtype, what)
        return meta, _one(x)
    if not isinstance(gradient, Differentiable | np.ndarray):
        raise UserTypeError(f"a cotangent is a tensor, found {type(gradient).__name__}", code="MLC0435", loc=user_loc())
    cotangent: Any = gradient if isinstance(gradient, Differentiable) else x.new_tensor(gradient)
    if cotangent.shape != x.shape:
        raise UserError(f"the cotangent has shape {list(cotangent.shape)}, {what} {list(x.shape)}", code="MLC0432",
                        loc=user_loc(), hint="it has an element for each of the tensor: mlc.ones_like(y)")
    check_kind(cotangent.dtype, x.dtype, what)
    return meta, cotangent.to(x.dtype)


def check_real(dtype: DType, what: str) -> None:
    """UserError for a complex number, which has no gradient by itself."""
    if dtype.is_complex:
        raise UserError(f"{what} is a complex number, and only a real one has a gradient by itself", code="MLC0432",
                        loc=user_loc(), hint="take its absolute value or real part, or pass its cotangent")


def check_kind(cotangent: DType, dtype: DType, what: str) -> None:
    """UserError unless a complex tensor has a complex cotangent, and a real one a real one."""
    if cotangent.is_complex != dtype.is_complex:
        raise UserError(f"the cotangent is of {cotangent.name}, {what} of {dtype.name}: both are complex, or none",
                        code="MLC0432", loc=user_loc())


def _is_shared(tensor: Any) -> bool:
    """Whether another tensor has the memory of one, in the function that is recorded."""
    captures: Any = mode.captures
    own = tensor if hasattr(tensor, "is_argument") or captures is None else captures.tensor(tensor)
    return own._view is not None or (own._storage is not None and any(x is not own for x in own._storage.tensors()))


def _is_of_others(value: Any) -> bool:
    """Whether a tensor is an argument or a captured tensor of the function that is recorded, or a view of one."""
    if hasattr(value, "is_argument"):
        base = value if value._view is None else value._view.base
        return bool(base.is_argument)
    recording: Any = in_progress.recording
    return mode.captures is not None and not any(value is x for x in recording.root.made)
