"""Derivatives of functions that run operation by operation, under the names of torch.autograd.functional.

Each runs the function operation by operation, with its Python effects, and goes through the recorded graph. The
functions of `mlc.func` record the function instead, and compile its derivative.

Example:
    >>> mlc.autograd.functional.hessian(lambda x: (x ** 3).sum(), mlc.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]], dtype=mlc.float32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.autograd.calls import grad
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.batching import hessian as recorded_hessian
from mlc.frontend.batching import jacfwd, jacrev
from mlc.frontend.functions.create import zeros_like
from mlc.frontend.functions.shape import stack
from mlc.frontend.location import user_loc
from mlc.frontend.signature import name_of
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserTypeError

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Any
"""A tensor, or a tuple of tensors."""
STRATEGIES = ("reverse-mode", "forward-mode")


@coded
def vjp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """Vector-Jacobian product: func(*inputs), and v @ J.

    Args:
        func: Function of tensors that returns a tensor, or a tuple of tensors.
        inputs: A tensor, or a tuple of tensors.
        v: Cotangent of the result, of its structure and shapes; None for 1, where the result has a single element.
        create_graph: Whether the product is recorded, to be differentiated in turn.
        strict: Whether it is an error that a result does not depend on an input, rather than a product of zeros.

    Returns:
        The result, and the product: a tensor, or a tuple with one for each input.

    Raises:
        UserError: v has other shapes, or is missing (MLC0735), or a result does not depend on an input (MLC0734).
        UserTypeError: An input or a result is no tensor (MLC0735).

    Example:
        >>> mlc.autograd.functional.vjp(lambda x: x * x, mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 10.0]))
        (tensor([1., 4.], dtype=mlc.float32), tensor([ 2., 40.], dtype=mlc.float32))
    """
    call = _Call(func, inputs, create_graph, strict)
    vector = call.vector(v, call.results, "result")
    found = call.filled(_grad(call.results, call.inputs, vector, create_graph), call.inputs)
    return call.given_back(call.results, call.one_result), call.given_back(found, call.one_input)


@coded
def jvp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """Jacobian-vector product: func(*inputs), and J @ v, by the derivative of the vector-Jacobian product.

    Args:
        func: Function of tensors that returns a tensor, or a tuple of tensors.
        inputs: A tensor, or a tuple of tensors.
        v: Tangent of the inputs, of their structure and shapes; None for 1, where the input has a single element.
        create_graph: Whether the product is recorded, to be differentiated in turn.
        strict: Whether it is an error that a result does not depend on an input, rather than a product of zeros.

    Returns:
        The result, and the product: a tensor, or a tuple with one for each result.

    Raises:
        UserError: v has other shapes, or is missing (MLC0735), or a result does not depend on an input (MLC0734).
        UserTypeError: An input or a result is no tensor (MLC0735).

    Example:
        >>> mlc.autograd.functional.jvp(lambda x: x * x, mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 10.0]))
        (tensor([1., 4.], dtype=mlc.float32), tensor([ 2., 40.], dtype=mlc.float32))
    """
    call = _Call(func, inputs, create_graph, strict)
    found = call.pushed(call.results, call.vector(v, call.inputs, "input"))
    return call.given_back(call.results, call.one_result), call.given_back(found, call.one_result)


@coded
def vhp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """Vector-Hessian product: func(*inputs), and v @ H, by the gradient of the gradient.

    Args:
        func: Function of tensors that returns a tensor of one element.
        inputs: A tensor, or a tuple of tensors.
        v: Vector of the structure and shapes of the inputs; None for 1, where the input has a single element.
        create_graph: Whether the product is recorded, to be differentiated in turn.
        strict: Whether it is an error that a result does not depend on an input, rather than a product of zeros.

    Returns:
        The result, and the product: a tensor, or a tuple with one for each input.

    Raises:
        UserError: v has other shapes, or is missing (MLC0735), or the result has several elements (MLC0735) or does not
            depend on an input (MLC0734).
        UserTypeError: An input or the result is no tensor (MLC0735).

    Example:
        >>> mlc.autograd.functional.vhp(lambda x: (x**3).sum(), mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 0.0]))
        (tensor(9., dtype=mlc.float32), tensor([6., 0.], dtype=mlc.float32))
    """
    call = _Call(func, inputs, create_graph, strict)
    call.needs_number()
    vector = call.vector(v, call.inputs, "input")
    gradient = call.filled(_grad(call.results, call.inputs, None, True), call.inputs)
    found = call.filled(_grad(gradient, call.inputs, vector, create_graph), call.inputs, "the gradient")
    return call.given_back(call.results, call.one_result), call.given_back(found, call.one_input)


@coded
def hvp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Any, Any]:
    """Hessian-vector product: func(*inputs), and H @ v. `vhp` is the same where H is symmetric, and takes less work.

    Args:
        func: Function of tensors that returns a tensor of one element.
        inputs: A tensor, or a tuple of tensors.
        v: Vector of the structure and shapes of the inputs; None for 1, where the input has a single element.
        create_graph: Whether the product is recorded, to be differentiated in turn.
        strict: Whether it is an error that a result does not depend on an input, rather than a product of zeros.

    Returns:
        The result, and the product: a tensor, or a tuple with one for each input.

    Raises:
        UserError: v has other shapes, or is missing (MLC0735), or the result has several elements (MLC0735) or does not
            depend on an input (MLC0734).
        UserTypeError: An input or the result is no tensor (MLC0735).

    Example:
        >>> mlc.autograd.functional.hvp(lambda x: (x**3).sum(), mlc.tensor([1.0, 2.0]), mlc.tensor([1.0, 0.0]))
        (tensor(9., dtype=mlc.float32), tensor([6., 0.], dtype=mlc.float32))
    """
    call = _Call(func, inputs, create_graph, strict)
    call.needs_number()
    vector = call.vector(v, call.inputs, "input")
    gradient = call.filled(_grad(call.results, call.inputs, None, True), call.inputs)
    found = call.pushed(gradient, vector, "the gradient")
    return call.given_back(call.results, call.one_result), call.given_back(found, call.one_input)


@coded
def jacobian(func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """Jacobian of a function: y[i, j] = d func(x)[i] / d x[j].

    Args:
        func: Function of tensors that returns a tensor, or a tuple of tensors.
        inputs: A tensor, or a tuple of tensors.
        create_graph: Whether the Jacobian is recorded, to be differentiated in turn.
        strict: Whether it is an error that a result does not depend on an input, rather than a Jacobian of zeros.
        vectorize: Whether the function is recorded, and all rows or columns are computed at once; with `create_graph`
            they are computed one by one in any case.
        strategy: "reverse-mode", or with `vectorize` also "forward-mode".

    Returns:
        Tensor of shape (*result.shape, *input.shape); a tuple of them if there are several results or inputs, and a
        tuple of tuples, by the result and the input, if there are both.

    Raises:
        UserError: A result does not depend on an input (MLC0734), or arguments exclude each other (MLC0732).
        UserTypeError: An input or a result is no tensor (MLC0735).

    Example:
        >>> mlc.autograd.functional.jacobian(lambda x: x * x, mlc.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]], dtype=mlc.float32)
    """
    _check_strategy(strategy, vectorize, strict)
    if vectorize and not create_graph:
        return _recorded(jacfwd if strategy == "forward-mode" else jacrev, func, inputs)
    call = _Call(func, inputs, create_graph, strict)
    rows = []
    for i, y in enumerate(call.results):
        columns: list[list[Any]] = [[] for _ in call.inputs]
        for element in range(y.numel()):
            cotangent = _unit(y, element)
            found = call.filled(_grad([y], call.inputs, [cotangent], create_graph, True), call.inputs, f"result {i}")
            for column, x in zip(columns, found):
                column.append(x)
        whole = [stack(column, 0).reshape((*y.shape, *x.shape)) if column else x.new_zeros((*y.shape, *x.shape))
                 for column, x in zip(columns, call.inputs)]
        rows.append(call.given_back(whole, call.one_input))
    return rows[0] if call.one_result else tuple(rows)


@coded
def hessian(func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Hessian of a function: y[i, j] = d2 func(x) / d x[i] d x[j].

    Args:
        func: Function of tensors that returns a tensor of one element.
        inputs: A tensor, or a tuple of tensors.
        create_graph: Whether the Hessian is recorded, to be differentiated in turn.
        strict: Whether it is an error that the result does not depend on an input, rather than a Hessian of zeros.
        vectorize: Whether the function is recorded, and all rows are computed at once; with `create_graph` they are
            computed one by one in any case.
        outer_jacobian_strategy: "reverse-mode", or with `vectorize` also "forward-mode", which is how it is computed
            then in any case.

    Returns:
        Tensor of shape (*input.shape, *input.shape); a tuple of tuples of them if the inputs are a tuple.

    Raises:
        UserError: The result has several elements (MLC0735) or does not depend on an input (MLC0734), or arguments
            exclude each other (MLC0732).
        UserTypeError: An input or the result is no tensor (MLC0735).

    Example:
        >>> mlc.autograd.functional.hessian(lambda x: (x**3).sum(), mlc.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]], dtype=mlc.float32)
    """
    _check_strategy(outer_jacobian_strategy, vectorize, strict)

    def number(*xs: Any) -> Any:
        out = func(*xs)
        return out.reshape(()) if isinstance(out, Tensor) and out.numel() == 1 else _several(func)

    if vectorize and not create_graph:
        return _recorded(recorded_hessian, number, inputs)

    def gradient(*xs: Any) -> Any:
        return jacobian(number, xs, create_graph=True, strict=strict)

    found = jacobian(gradient, inputs, create_graph=create_graph, strict=strict)
    return found[0] if isinstance(inputs, Tensor) else found


class _Call:
    """One call of a function whose derivative is taken.

    inputs   tensors of their own, so that what the function captures is told apart from its arguments
    results  what it returned
    """

    def __init__(self, func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool) -> None:
        self.func, self.create_graph, self.strict = func, create_graph, strict
        given, self.one_input = _tensors(inputs, "the inputs are")
        self.inputs = [x.clone() if create_graph and x.requires_grad else x.detach().requires_grad_() for x in given]
        with GradMode(True):
            out = func(*self.inputs)
        self.results, self.one_result = _tensors(out, f"{name_of(func)} returned")

    def needs_number(self) -> None:
        if not self.one_result or self.results[0].numel() != 1:
            _several(self.func)

    def vector(self, v: Any, like: Sequence[Any], what: str) -> list[Any]:
        """The vector that a product is taken with; for None, 1."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise UserError(f"v is missing, and the {what} has several elements", code="MLC0735", loc=user_loc(),
                                hint=f"pass a vector of the structure of the {what}s")
            return [like[0].new_ones(like[0].shape)]
        vectors, _ = _tensors(v, "v is")
        found, wanted = [list(x.shape) for x in vectors], [list(x.shape) for x in like]
        if found != wanted:
            raise UserError(f"v has the shapes {found}, the {what}s have {wanted}", code="MLC0735", loc=user_loc())
        return vectors if self.create_graph else [x.detach() for x in vectors]

    def pushed(self, of: Sequence[Any], vector: Sequence[Any], what: str = "a result") -> list[Any]:
        """The Jacobian of values times a vector: the derivative of the pullback, which is linear in its argument."""
        with GradMode(True):
            zero = [zeros_like(x).requires_grad_() for x in of]
            pulled = self.filled(_grad(of, self.inputs, zero, True), self.inputs, what)
            return self.filled(_grad(pulled, zero, vector, self.create_graph), zero, what)

    def filled(self, found: Sequence[Any], like: Sequence[Any], what: str = "a result") -> list[Any]:
        """Gradients with zeros for None; UserError if there is one and the call is strict."""
        for i, x in enumerate(found):
            if self.strict and (x is None or (self.create_graph and not x.requires_grad)):
                does = f"{what} of {name_of(self.func)} does" if x is None else f"a gradient of {what} does"
                raise UserError(f"{does} not depend on input {i}", code="MLC0734", loc=user_loc(),
                                hint="without strict=True the derivative is zero")
        return [y.new_zeros(y.shape) if x is None else x for x, y in zip(found, like)]

    def given_back(self, tensors: Sequence[Any], one: bool) -> Any:
        out = tuple(x if self.create_graph else x.detach() for x in tensors)
        return out[0] if one else out


def _grad(outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any] | None, create_graph: bool,
          retain_graph: bool | None = None) -> Sequence[Any]:
    """The gradients by the inputs, None for those that the outputs do not depend on."""
    pairs = [(y, None if cotangents is None else cotangents[i]) for i, y in enumerate(outputs) if y.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    return grad([y for y, _ in pairs], inputs, [ct for _, ct in pairs], create_graph=create_graph,
                retain_graph=retain_graph, allow_unused=True)


def _unit(like: Any, element: int) -> Any:
    """1 at one element and 0 elsewhere."""
    flat = [0.0] * like.numel()
    flat[element] = 1.0
    return like.new_tensor(flat).reshape(like.shape)


def _tensors(x: Any, what: str) -> tuple[list[Any], bool]:
    """The tensors of a tuple, or one tensor, and whether it was one."""
    one = not isinstance(x, tuple | list)
    found = [x] if one else list(x)
    for y in found:
        if not isinstance(y, Tensor):
            raise UserTypeError(f"{what} {'' if one else 'a tuple with '}a {type(y).__name__}", code="MLC0735",
                                loc=user_loc(), hint="expected a tensor, or a tuple of tensors")
    return found, one


def _several(func: Callable[..., Any]) -> Any:
    raise UserError(f"{name_of(func)} returned no tensor of one element, and the Hessian is that of a number",
                    code="MLC0735", loc=user_loc(), hint="sum or average what it returns")


def _check_strategy(strategy: str, vectorize: bool, strict: bool) -> None:
    if strategy not in STRATEGIES:
        raise UserError(f"the strategy is {strategy!r}", code="MLC0732", loc=user_loc(),
                        hint=f"it is one of {', '.join(map(repr, STRATEGIES))}")
    if strategy == "forward-mode" and not vectorize:
        raise UserError("the strategy is 'forward-mode' without vectorize", code="MLC0732", loc=user_loc(),
                        hint="pass vectorize=True too")
    if vectorize and strict:
        raise UserError("strict and vectorize exclude each other", code="MLC0732", loc=user_loc(),
                        hint="leave out one of them")


def _recorded(transform: Callable[..., Any], func: Callable[..., Any], inputs: Any) -> Any:
    """The Jacobian or Hessian of a function that is recorded."""
    given, one = _tensors(inputs, "the inputs are")
    return transform(func, 0 if one else tuple(range(len(given))))(*(x.detach() for x in given))
