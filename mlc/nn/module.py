"""Module: a tree of parameters with a `forward`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mlc.api import compile
from mlc.frontend import tree, unsupported_api
from mlc.frontend.arguments import FAILURES, as_coded, check_call
from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.autograd.tangents import tangent_of
from mlc.frontend.functionalization import may_be_written
from mlc.frontend.location import in_module, user_loc
from mlc.frontend.nested import call
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.ir.diag import Error, UserError, UserTypeError
from mlc.ir.profiling import state as profiling
from mlc.nn import hooks
from mlc.nn.compiled_module import as_compiled
from mlc.nn.conversion import Convertible
from mlc.nn.hierarchy import paths_in
from mlc.nn.hooks import Hooked
from mlc.nn.module_html import module_html
from mlc.nn.parameter import Parameter
from mlc.nn.stateful import Stateful
from mlc.nn.trainable import Trainable

M = TypeVar("M", bound="Module")


class Module(Hooked, Convertible, Stateful, Trainable, tree.AttributeTree):
    """Part of a model: a tree of parameters, buffers and modules, with a `forward`.

    Its parameters are the attributes that are assigned an `nn.Parameter`, in it and in the modules it holds, also in
    lists and dicts. A module is an argument and a result like any tree: `mlc.grad(loss)(model, x)` is a module that
    holds the gradients, and `opt.update(gradients, state, model)` gives a new model. Attributes without arrays (sizes,
    functions, flags) are part of what is compiled. Unlike in PyTorch, `super().__init__()` need not be called.

    A buffer (`register_buffer`) is a tensor that is state and not trained, such as the running mean of a BatchNorm: it
    has no gradient, optimizers leave it alone, and `forward` may assign it. The assignment reaches the caller of
    compiled functions and derivatives too, on the module that was passed or on the one that is returned. Any other
    tensor, such as a mask, has no gradient either and is not in `state_dict`.

    `train`, `eval`, `freeze`, `to` and `load_state_dict` change the module itself, as in PyTorch. Layers share a weight
    by holding the same tensor, `self.out.weight = self.embedding.weight`: one parameter, with one gradient, which
    `state_dict` has under both names.

    Example:
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         self.hidden = nn.Linear(4, 8)
        ...         self.scale = nn.Parameter(mlc.ones(8))
        ...     def forward(self, x):
        ...         return self.scale * mlc.relu(self.hidden(x))
        >>> net = Net()
        >>> net(mlc.ones(2, 4)).shape, net.num_parameters()
        ((2, 8), 48)
        >>> mlc.grad(lambda m, x: m(x).sum())(net, mlc.ones(2, 4)).scale.shape
        (8,)
    """

    _shown: tuple[str, ...] = ()                           # settings in the printed form; "inplace?" only if it is set
    _compiled_call: Callable[..., Any] | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", _blamed(vars(cls)["__init__"]))  # noqa: B010 (for mypy)

    def __init__(self) -> None:
        """An empty module."""

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Compute the result of the module; every module that is called defines it.

        Calling the module calls it, in a recorded function as a function of its own.

        Args:
            args: As the class says.
            keywords: As the class says.

        Returns:
            As the class says.

        Raises:
            UserTypeError: The class does not define it (MLC0349).

        Example:
            >>> class Twice(nn.Module):
            ...     def forward(self, x):
            ...         return 2 * x
            >>> Twice()(mlc.ones(2))
            tensor([2., 2.], dtype=mlc.float32)
        """
        raise UserTypeError(f"{type(self).__name__} has no forward", code="MLC0349", loc=user_loc(),
                            hint="define it, or call what the module holds")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call `forward` between the hooks; while a function is recorded, as a function of its own."""
        try:
            if state.trace is None:
                if self._compiled_call is not None:
                    return self._compiled_call(self, *args, **keywords)
                forward = self.forward
            else:
                forward = functools.partial(call, type(self).__name__, self.forward)
            if state.trace is not None or profiling.recorder is not None:
                with in_module(self, paths_in):
                    return hooks.call(self, forward, args, keywords) if hooks.has_any(self) else forward(
                        *args, **keywords)
            return hooks.call(self, forward, args, keywords) if hooks.has_any(self) else forward(*args, **keywords)
        except Error:
            raise
        except FAILURES as error:
            check = as_coded if type(self).__module__.startswith("mlc.") else _check_count
            check(error, self.forward, type(self).__name__, args, keywords)
            raise

    def __getattr__(self, name: str) -> Any:
        if hasattr(type(self), name):
            object.__getattribute__(self, name)              # raises the error of a property that failed
        why = unsupported_api.MODULE.get(name) or unsupported_api.MISTAKEN.get(name)
        raise unsupported_api.error(type(self).__name__, name, why, self)

    # -- its attributes ----------------------------------------------------------------------------------------------
    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)          # its setter says what becomes of it
            return
        if isinstance(value, Parameter) or (type(value) in _CONTAINERS and any(
                isinstance(x, Parameter) for x in tree.leaves(value))):
            self._parameters = (*(n for n in self._parameters if n != name), name)
            if name in self._buffers:
                self._buffers = tuple(n for n in self._buffers if n != name)
        if type(value) is Tensor and name in self._parameters:
            value = self._parameter_by_name(name, value)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        if name in self._parameters:                       # what is assigned to the name later is none by itself
            self._parameters = tuple(n for n in self._parameters if n != name)
        if name in self._buffers:
            self._buffers = tuple(n for n in self._buffers if n != name)

    def _parameter_by_name(self, name: str, value: Tensor) -> Tensor:
        """The tensor that becomes a parameter: itself, or one of the same elements if it has a history. A dual tensor
        takes the place of a parameter as it is."""
        if tangent_of(value) is not None:
            return value
        trained = name not in self._frozen_names if value.frozen is None else not value.frozen
        if trained:
            self._check_trained(name, value)
        return mark_parameter(value if value.is_leaf else value.detach(), trained)

    def _check_trained(self, name: str, value: Tensor) -> None:
        if not value.dtype.ir.is_inexact:
            raise UserTypeError(f"{type(self).__name__}.{name} is a parameter of {value.dtype.name}, and only floats "
                                "can be trained", code="MLC0359", loc=user_loc(),
                                hint="use a float dtype; register_buffer is for state of integers, and "
                                     "nn.Parameter(x, requires_grad=False) for constants")

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Make an attribute that is a parameter.

        Args:
            name: Name of the attribute.
            param: A tensor or parameter; None to keep the place for one that is assigned later.

        Raises:
            UserError: The name is no identifier, or that of another attribute (MLC0386).

        Example:
            >>> model = nn.Module()
            >>> model.register_parameter("scale", nn.Parameter(mlc.ones(2)))
            >>> model.scale.requires_grad
            True
        """
        if not str(name).isidentifier() or (hasattr(self, name) and name not in self._parameters):
            raise UserError(f"{name!r} cannot name a parameter of a {type(self).__name__}", code="MLC0386",
                            loc=user_loc(), hint="it is no name of Python, or that of an attribute already")
        setattr(self, name, param if param is None or isinstance(param, Parameter) else Parameter(param))
        self._parameters = (*(n for n in self._parameters if n != name), name)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make an attribute that is state, and no parameter.

        Args:
            name: Name of the attribute.
            tensor: A tensor, or None.
            persistent: Whether it is in `state_dict`.

        Raises:
            UserError: The name is no identifier, or that of another attribute (MLC0386).

        Example:
            >>> model = nn.Module()
            >>> model.register_buffer("mean", mlc.zeros(2))
            >>> list(model.state_dict())
            ['mean']
        """
        if not str(name).isidentifier() or (hasattr(self, name) and name not in self._buffers):
            raise UserError(f"{name!r} cannot name a buffer of a {type(self).__name__}", code="MLC0386", loc=user_loc(),
                            hint="it is no name of Python, or that of an attribute already")
        setattr(self, name, tensor)
        self._buffers = (*(n for n in self._buffers if n != name), name)
        self._unsaved = (*(n for n in self._unsaved if n != name), *[name] * (not persistent))

    def register_module(self, name: str, module: Module | None) -> None:
        """Make an attribute that is a module.

        Args:
            name: Name of the attribute.
            module: A module, or None.

        Raises:
            UserError: The name is empty, has a dot, or is that of another attribute (MLC0386).
            UserTypeError: It is no module (MLC0355).

        Example:
            >>> model = nn.Module()
            >>> model.register_module("layer", nn.ReLU())
            >>> model.layer
            ReLU()
        """
        if module is not None and not isinstance(module, Module):
            raise UserTypeError(f"{module!r} is no module", code="MLC0355", loc=user_loc())
        held = vars(self).get(name)
        if not name or "." in name or (hasattr(self, name) and held is not None and not isinstance(held, Module)) or (
                hasattr(type(self), name)):
            raise UserError(f"{name!r} cannot name a part of a {type(self).__name__}", code="MLC0386", loc=user_loc(),
                            hint="it is empty, has a dot, or is the name of an attribute already")
        setattr(self, name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make an attribute that is a module: `register_module`.

        Args:
            name: Name of the attribute.
            module: A module, or None.

        Example:
            >>> model = nn.Module()
            >>> model.add_module("layer", nn.Linear(2, 3))
            >>> model.layer
            Linear(in_features=2, out_features=3, bias=True)
        """
        self.register_module(name, module)

    # -- changing it --------------------------------------------------------------------------------------------------
    def apply(self: M, f: Callable[[Module], Any]) -> M:
        """Call a function on every module inside, then on this one.

        Args:
            f: Function of a module; its result is ignored.

        Returns:
            The module itself.

        Example:
            >>> def fill(module):
            ...     if isinstance(module, nn.Linear):
            ...         nn.init.ones_(module.weight)
            >>> nn.Sequential(nn.Linear(2, 1)).apply(fill)[0].weight.tolist()
            [[1.0, 1.0]]
        """
        for child in self.children():
            child.apply(f)
        f(self)
        return self

    def compile(self, *args: Any, **keywords: Any) -> None:
        """Have calls of the module run as compiled code from now on, as `mlc.compile` makes it.

        Args:
            args: Arguments of `mlc.compile` behind the function.
            keywords: Its keyword arguments.

        Example:
            >>> layer = nn.Linear(2, 3)
            >>> layer.compile()
            >>> layer(mlc.ones(1, 2)).shape
            (1, 3)
        """
        self._compiled_call = compile(_called, *args, **keywords)

    def _as_compiled(self, compiled: Any, options: Mapping[str, Any]) -> Module:
        """The module with calls of a compiled function, which `mlc.compile` has made of it."""
        return as_compiled(self, compiled, options)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)

    # -- its printed form ---------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """The settings that the printed form of the module shows; a class with some defines it.

        Returns:
            Text, such as "in_features=2, out_features=3"; several lines are shown one below the other.

        Example:
            >>> class Scale(nn.Module):
            ...     def extra_repr(self):
            ...         return "by=2"
            >>> Scale()
            Scale(by=2)
        """
        return ", ".join(f"{name.rstrip('?')}={getattr(self, name.rstrip('?'))!r}" for name in self._shown
                         if not name.endswith("?") or getattr(self, name.rstrip("?")))

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        return _printed(self._get_name(), extra.split("\n") if extra else [],
                        [f"({name}): {_indented(repr(child))}" for name, child in self._printed_children()])

    def _repr_html_(self) -> str:
        return module_html(self)

    def _printed_children(self) -> Iterator[tuple[str, Any]]:
        return self._child_modules()


def _printed(name: str, extra: Sequence[str], inside: Sequence[str]) -> str:
    """The text of a module: on one line if it shows one line of settings and nothing inside."""
    if len(extra) == 1 and not inside:
        return f"{name}({extra[0]})"
    lines = [*extra, *inside]
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def set_buffer(module: Module, name: str, new: Tensor) -> None:
    """Give a buffer other elements: in place, unless it is that of an argument of a function recorded by itself."""
    old = getattr(module, name)
    if type(old) is Tensor or may_be_written(old):
        with no_grad():
            old.copy_(new)
    else:
        setattr(module, name, new)


def _called(module: Module, *args: Any, **keywords: Any) -> Any:
    return module(*args, **keywords)


_CONTAINERS = frozenset({list, tuple, dict})


def _check_count(error: BaseException, f: Callable[..., Any], name: str, args: Sequence[Any],
                 keywords: dict[str, Any]) -> None:
    """As `as_coded` for a user-defined `forward`, whose annotations mlc does not enforce."""
    if isinstance(error, TypeError):
        check_call(f, name, args, keywords)


def _blamed(init: Callable[..., None]) -> Callable[..., None]:
    """Wraps an __init__ so that its errors have the user's line."""

    @functools.wraps(init)
    def located(self: Module, *args: Any, **keywords: Any) -> None:
        name = type(self).__name__
        try:
            init(self, *args, **keywords)
        except Error as error:
            if not error.loc.file:
                error.loc, error.message = user_loc(), f"{name}: {error.message}"
            raise
        except FAILURES as error:
            as_coded(error, init, name, (self, *args), keywords)
            raise

    return located


setattr(Module, "__init__", _blamed(Module.__init__))  # noqa: B010 (for mypy)
