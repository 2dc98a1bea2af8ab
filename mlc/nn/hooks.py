"""Hooks of modules: functions that are called before and after `forward`, and as a gradient goes through a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node, alone
from mlc.frontend.autograd.hooks import RemovableHandle
from mlc.frontend.global_hooks import OF_ALL
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import captured, state
from mlc.ir.diag import UserError, UserTypeError


class Hook(NamedTuple):
    """A registered function.

    with_kwargs  whether it is given the keyword arguments of the call too
    always_call  whether it is called although the call fails
    """

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


Hooks = Mapping[int, Hook]
NONE: Hooks = MappingProxyType({})


def add(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Register a function, and return what removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.key] = hook
    if prepend:
        hooks.move_to_end(handle.key, last=False)
    return handle


class Hooked:
    """Base of modules: what is registered to be called with them."""

    _forward_pre_hooks: Hooks = NONE
    _forward_hooks: Hooks = NONE
    _backward_pre_hooks: Hooks = NONE
    _backward_hooks: Hooks = NONE

    def _hooks_of(self, kind: str) -> OrderedDict[int, Hook]:
        """The hooks of a kind that the module has itself, as a dict to add to."""
        held: OrderedDict[int, Hook] = vars(self).setdefault(kind, OrderedDict())
        return held

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call a function before each call of `forward`: hook(module, args), or hook(module, args, kwargs).

        Args:
            hook: Function that returns None, or new positional arguments, and with `with_kwargs` a pair of these and
                the keyword arguments.
            prepend: Whether it is called before those that are registered already.
            with_kwargs: Whether it is given the keyword arguments.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> layer = nn.Identity()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
            >>> layer(mlc.tensor(1.0))
            tensor(2., dtype=mlc.float32)
        """
        return add(self._hooks_of("_forward_pre_hooks"), Hook(hook, with_kwargs), prepend)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call a function after each call of `forward`: hook(module, args, output); args, kwargs with `with_kwargs`.

        Args:
            hook: Function that returns None, or what stands in for the output.
            prepend: Whether it is called before those that are registered already.
            with_kwargs: Whether it is given the keyword arguments.
            always_call: Whether it is called although `forward` fails; its output is then None.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> layer = nn.Identity()
            >>> handle = layer.register_forward_hook(lambda module, args, output: 10 * output)
            >>> layer(mlc.tensor(1.0))
            tensor(10., dtype=mlc.float32)
        """
        return add(self._hooks_of("_forward_hooks"), Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call a function when `backward` has the gradients of the inputs: hook(module, grad_input, grad_output).

        Only `backward` calls it: a function that is recorded, as by `mlc.grad`, refuses modules with such hooks.

        Args:
            hook: Function of the module and two tuples, one item per positional argument and result, None where there
                is no gradient; it returns None, or what stands in for `grad_input`.
            prepend: Whether it is called before those that are registered already.

        Returns:
            A handle whose `remove()` unregisters the hook.

        Example:
            >>> layer = nn.Identity()
            >>> handle = layer.register_full_backward_hook(lambda module, inputs, outputs: (2 * inputs[0],))
            >>> x = mlc.tensor(1.0, requires_grad=True)
            >>> layer(x).backward()
            >>> x.grad
            tensor(2., dtype=mlc.float32)
        """
        return add(self._hooks_of("_backward_hooks"), Hook(hook), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call a function when `backward` has computed the gradients of the results: hook(module, grad_output).

        Args:
            hook: Function that returns None, or what stands in for `grad_output`.
            prepend: Whether it is called before those that are registered already.

        Returns:
            A handle whose `remove()` unregisters the hook.
        """
        return add(self._hooks_of("_backward_pre_hooks"), Hook(hook), prepend)


# -- hooks of all modules ---------------------------------------------------------------------------------------------
@coded
def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function before each call of any module, as `Module.register_forward_pre_hook`.

    Args:
        hook: Function of the module and its positional arguments.

    Returns:
        A handle whose `remove()` unregisters the hook.

    Example:
        >>> with nn.modules.module.register_module_forward_pre_hook(lambda m, args: print(type(m).__name__)):
        ...     _ = nn.Identity()(mlc.ones(1))
        Identity
    """
    return add(OF_ALL["_forward_pre_hooks"], Hook(hook))


@coded
def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Call a function after each call of any module, as `Module.register_forward_hook`.

    Args:
        hook: Function of the module, its positional arguments and its output.
        with_kwargs: Whether it is given the keyword arguments.
        always_call: Whether it is called although `forward` fails.

    Returns:
        A handle whose `remove()` unregisters the hook.

    Example:
        >>> with nn.modules.module.register_module_forward_hook(lambda m, args, output: output + 1):
        ...     nn.Identity()(mlc.tensor(1.0))
        tensor(2., dtype=mlc.float32)
    """
    return add(OF_ALL["_forward_hooks"], Hook(hook, with_kwargs, always_call))


@coded
def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function as gradients leave any module, as `Module.register_full_backward_hook`.

    Args:
        hook: Function of the module, `grad_input` and `grad_output`.

    Returns:
        A handle whose `remove()` unregisters the hook.

    Example:
        >>> x = mlc.tensor(1.0, requires_grad=True)
        >>> with nn.modules.module.register_module_full_backward_hook(lambda m, inputs, outputs: (3 * inputs[0],)):
        ...     nn.Identity()(x).backward()
        >>> x.grad
        tensor(3., dtype=mlc.float32)
    """
    return add(OF_ALL["_backward_hooks"], Hook(hook))


@coded
def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function as gradients enter any module, as `Module.register_full_backward_pre_hook`.

    Args:
        hook: Function of the module and `grad_output`.

    Returns:
        A handle whose `remove()` unregisters the hook.

    Example:
        >>> x = mlc.tensor(1.0, requires_grad=True)
        >>> with nn.modules.module.register_module_full_backward_pre_hook(lambda m, outputs: (3 * outputs[0],)):
        ...     nn.Identity()(x).backward()
        >>> x.grad
        tensor(3., dtype=mlc.float32)
    """
    return add(OF_ALL["_backward_pre_hooks"], Hook(hook))


# -- calls ------------------------------------------------------------------------------------------------------------
def has_any(module: Hooked) -> bool:
    """Whether a call of the module calls anything but `forward`."""
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
                or module._backward_pre_hooks or any(OF_ALL.values()))


def _of(module: Hooked, kind: str) -> list[tuple[int, Hook]]:
    return [*OF_ALL[kind].items(), *getattr(module, kind).items()]


def call(module: Any, forward: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The result of a module between its hooks."""
    called = set[int]()
    result = None
    try:
        args, keywords = _before(module, args, keywords)
        backward = _BackwardHooks.of(module)
        result = forward(*(args if backward is None else backward.at_inputs(args)), **keywords)
        for key, hook in _of(module, "_forward_hooks"):
            called.add(key)
            result = _after(module, hook, args, keywords, result)
        return result if backward is None else backward.at_outputs(result)
    except BaseException:
        for key, hook in _of(module, "_forward_hooks"):
            if hook.always_call and key not in called:
                result = _after(module, hook, args, keywords, result)
        raise


def _before(module: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the hooks leave them."""
    for _, hook in _of(module, "_forward_pre_hooks"):
        f = captured(hook.function)
        found = f(module, args, keywords) if hook.with_kwargs else f(module, args)
        if found is None:
            continue
        if not hook.with_kwargs:
            args = found if isinstance(found, tuple) else (found,)
            continue
        if not (isinstance(found, tuple) and len(found) == 2):
            raise UserTypeError(f"a forward pre-hook with keyword arguments returned {type(found).__name__}, expected "
                                "None or a pair of the positional and the keyword arguments", code="MLC0736",
                                loc=user_loc())
        args, keywords = found
    return args, keywords


def _after(module: Any, hook: Hook, args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> Any:
    f = captured(hook.function)
    found = f(module, args, keywords, result) if hook.with_kwargs else f(module, args, result)
    return result if found is None else found


class _GradientNode(Node):
    """The identity, whose cotangents go through a function."""

    __slots__ = ("through",)

    def __init__(self, operands: Sequence[Tensor], results: Sequence[Tensor],
                 through: Callable[[Sequence[Tensor | None]], Sequence[Tensor | None]]) -> None:
        super().__init__(operands, results)
        self.through = through

    def name(self) -> str:
        return "BackwardHookFunctionBackward"

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        return self.through(cotangents)

    def check_saved(self) -> None:
        """Nothing is saved."""


class _BackwardHooks:
    """The backward hooks of one call of a module: nodes at its inputs and at its results.

    inputs   the number of positional arguments
    reached  the positions of those that require a gradient
    """

    def __init__(self, module: Any, before: list[Hook], after: list[Hook]) -> None:
        self.module, self.before, self.after = module, before, after
        self.grad_output: tuple[Tensor | None, ...] = ()
        self.inputs, self.reached = 0, list[int]()

    @staticmethod
    def of(module: Any) -> _BackwardHooks | None:
        """Those of a module, None if it has none or no gradient is recorded."""
        before, after = ([hook for _, hook in _of(module, kind)] for kind in ("_backward_pre_hooks", "_backward_hooks"))
        if not (before or after) or not mode.enabled:
            return None
        if state.trace is not None:
            raise UserError(f"{type(module).__name__} has backward hooks, and is called in a function that is recorded",
                            code="MLC0737", loc=user_loc(),
                            hint="only backward() calls them: remove the hooks, or call the function eagerly")
        return _BackwardHooks(module, before, after)

    def at_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments behind a node that calls the hooks."""
        self.inputs = len(args)
        out, self.reached = _behind(args, self._leave)
        return out

    def at_outputs(self, result: Any) -> Any:
        """The results in front of a node that calls the pre-hooks."""
        if isinstance(result, Tensor):
            return _behind((result,), lambda cts: self._enter(cts, 1, [0]))[0][0]
        if type(result) is not tuple:
            return result
        numbers = list[int]()
        out, found = _behind(result, lambda cts: self._enter(cts, len(result), numbers))
        numbers += found
        return out

    def _enter(self, cotangents: Sequence[Tensor | None], count: int, numbers: list[int]) -> Sequence[Tensor | None]:
        given = _spread(cotangents, numbers, count)
        for hook in self.before:
            if (found := hook.function(self.module, given)) is not None:
                given = _as_tuple(found, count, "grad_output")
        self.grad_output = given
        if not self.reached:
            for hook in self.after:
                hook.function(self.module, (None,) * self.inputs, given)
        return [given[i] for i in numbers]

    def _leave(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        given = _spread(cotangents, self.reached, self.inputs)
        for hook in self.after:
            if (found := hook.function(self.module, given, self.grad_output)) is not None:
                given = _as_tuple(found, self.inputs, "grad_input")
        return [given[i] for i in self.reached]


def _behind(values: tuple[Any, ...], through: Callable[..., Any]) -> tuple[tuple[Any, ...], list[int]]:
    """The values with aliases of those that require a gradient, and their positions."""
    numbers = [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
    if not numbers:
        return values, numbers
    aliases = [alone(values[i]) for i in numbers]
    _GradientNode([values[i] for i in numbers], aliases, through)
    new: Iterator[Tensor] = iter(aliases)
    return tuple(next(new) if i in numbers else x for i, x in enumerate(values)), numbers


def _spread(cotangents: Sequence[Tensor | None], numbers: Sequence[int], count: int) -> tuple[Tensor | None, ...]:
    by_number = dict(zip(numbers, cotangents))
    return tuple(by_number.get(i) for i in range(count))


def _as_tuple(found: Any, count: int, what: str) -> tuple[Tensor | None, ...]:
    out = found if isinstance(found, tuple) else (found,)
    if len(out) != count:
        raise UserError(f"a backward hook returned {len(out)} gradients in place of the {count} of {what}",
                        code="MLC0736", loc=user_loc())
    return out
