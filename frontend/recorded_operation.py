"""`Operation`: the body of a public function, and which of its parameters are arrays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend import tree
from mlc.frontend.arguments import FAILURES, as_coded, check_arguments, with_one_name
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.dispatch import Dispatcher
from mlc.frontend.functionalization import distinct, views
from mlc.frontend.location import user_loc
from mlc.frontend.operands import as_tensors
from mlc.frontend.operation_errors import as_user_error
from mlc.frontend.python_arithmetic import numbers
from mlc.frontend.symint import plain_sizes, symbolic_sizes
from mlc.frontend.tensor import OPERATIONS, Tensor, check_fits
from mlc.frontend.trace import emit, state
from mlc.frontend.tracer import Tracer
from mlc.ir.core import builder
from mlc.ir.diag import Error
from mlc.ir.types import to_numpy

MAY_RETURN_OPERAND = frozenset({"cast", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                                "feature_dropout", "positive"})
"""Operations that return an operand itself, where it is their result, and not a copy of it."""


def constant(x: Any) -> Any:
    """A tensor being recorded as a constant to all derivatives, as the results of operations within no_grad are."""
    return emit(T.StopGradient, x, weak=x.weak) if isinstance(x, Tracer) and x.type.dtype.is_inexact else x


class Operation(Dispatcher):
    """A public function: its body, and which of its parameters are arrays.

    literal   operands whose Python numbers are compile-time constants: `x ** 2` is not `x ** y`
    integers  operands of which only Python integers are: a factor of 1 is none
    stored    operands whose Python integers have to fit in the element type of another operand, since they are stored
              as they are and would otherwise wrap around
    view      whether results are views of the first operand, or a function on numpy arrays that makes such a view where
              the recording computes more than addresses
    static    operands whose sizes are constants of an eager kernel, as those of the weights of a recurrent layer are,
              where other sizes are multiples of each other
    autocast  how operands are cast in the scope of `autocast` (autocast.py), or a function of the arguments that says
    forgets   whether eager kernels say which operands they do not depend on
    known_views  of a view operation, how it runs for tensors of a type (frontend/views.py)

    The signature is inspected at the first call, since a program uses few of the functions that it imports.
    """

    forgets = False

    def __init__(self, body: Callable[..., Any], literal: Iterable[str], stored: Mapping[str, str],
                 name: str, view: bool | Callable[..., Any] = False, static: Iterable[str] = (),
                 autocast: str | Callable[..., str] = "", integers: Iterable[str] = ()) -> None:
        self.view = view
        self.autocast = autocast
        self.body = body
        self.name = name
        self.literal = frozenset(literal)
        self.integers = frozenset(integers)
        self.stored = stored
        self.static = frozenset(static)
        self.known_views: dict[Any, Any] = {}

    def is_literal(self, name: str, x: Any) -> bool:
        """Whether a Python number that is an operand is a compile-time constant."""
        return name in self.literal or (type(x) is int and name in self.integers)

    @functools.cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.body).parameters

    @functools.cached_property
    def operands(self) -> frozenset[str]:
        return frozenset(n for n, p in self.parameters.items() if "Operand" in str(p.annotation))

    @functools.cached_property
    def positional(self) -> tuple[str, ...]:
        return tuple(n for n, p in self.parameters.items() if p.kind is not inspect.Parameter.VAR_POSITIONAL)

    @functools.cached_property
    def inplace(self) -> int | None:
        """Position of the parameter that says whether the result is written to the operand."""
        return self.positional.index("inplace") if "inplace" in self.positional else None

    @functools.cached_property
    def rest(self) -> str:
        return next((n for n, p in self.parameters.items() if p.kind is inspect.Parameter.VAR_POSITIONAL), "")

    def parameter(self, position: int) -> str:
        """The name of the parameter that takes the positional argument `position`."""
        return self.positional[position] if position < len(self.positional) and not self.rest else (
            self.positional[position] if position < self._before_rest() else self.rest)

    def _before_rest(self) -> int:
        names = list(self.parameters)
        return names.index(self.rest) if self.rest else len(names)

    def operand_first(self, args: tuple[Any, ...], keywords: dict[str, Any]
                      ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a view operation with its operand among those by position."""
        if args:
            return args, keywords
        operand, = (x for name, x in keywords.items() if name == self.positional[0])
        return (operand,), {name: x for name, x in keywords.items() if name != self.positional[0]}

    def check_stored(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """UserError if a `stored` integer does not fit in its element type."""
        if int not in map(type, (*args, *keywords.values())):              # fast path: runs in every eager call
            return
        given = {**{self.parameter(i): x for i, x in enumerate(args)}, **with_one_name(self.parameters, keywords)}
        for name, into in self.stored.items():
            x, where = given.get(name), given.get(into)
            if type(x) is int and isinstance(where, Tensor | np.ndarray):
                check_fits(x, where.dtype if isinstance(where, np.ndarray) else to_numpy(where.dtype.ir))

    def static_operands(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
        """The operands of a call whose sizes are constants of its kernel."""
        for name, x in (*((self.parameter(i), x) for i, x in enumerate(args)), *keywords.items()):
            if name in self.static:
                yield from x if isinstance(x, list | tuple) else (x,)

    def record(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run the body on tracers, at the user's line."""
        loc = user_loc()
        saved, builder.loc = builder.loc, loc
        state.in_operation = True
        try:
            named = {n: plain_sizes(x) for n, x in with_one_name(self.parameters, keywords).items()}
            out = symbolic_sizes(self.body(*map(plain_sizes, args), **named))
            if not numbers.kept and not (type(out) is Tracer and not out.weak):
                out = as_tensors(out)
            out = out if mode.enabled else tree.map(constant, out)
            if self.view:
                (x, *rest), named = self.operand_first(args, keywords)
                return views(x, out, lambda y: OPERATIONS[self.name](y, *rest, **named), self.name)
            return out if self.name in MAY_RETURN_OPERAND else distinct(out, args)
        except Error as error:
            if error.code == "MLC0421":                    # from an operator in the body: an argument may be the cause
                check_arguments(self.body, self.name, args, keywords, loc)
            raise as_user_error(error, self.name, list(self._given(args, keywords)), loc) from None
        except FAILURES as error:
            as_coded(error, self.body, self.name, args, keywords, loc)
            raise
        finally:
            builder.loc = saved
            state.in_operation = False

    def _given(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
        """The operands of a call."""
        for name, x in (*((self.parameter(i), x) for i, x in enumerate(args)), *keywords.items()):
            if name in self.operands:
                yield from x if isinstance(x, tuple | list) and any(isinstance(t, Tensor) for t in x) else (x,)
