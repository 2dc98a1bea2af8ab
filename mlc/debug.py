"""Looking into programs while they run, compiled or not, as `jax.debug`: `print` and `breakpoint`.

    @mlc.compile
    def step(x):
        for i in range(3):
            x = x / 2
            mlc.debug.print("step {}: {:.2f}", i, x.sum())
        return x

A compiled function that has one of these runs in the interpreter before its own code, on the same arguments: what it
shows is in the order of the program, as often as loops run, and costs time. Remove it when you have seen enough.

Example:
    >>> mlc.debug.print("sum {:.1f}", mlc.ones(3).sum())
    sum 3.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.debug import check_formats, check_message, fields_of, shown, stopped
from mlc.frontend.arguments import coded
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import current, state
from mlc.ir.core import located
from mlc.ir.diag import UserError
from mlc.ir.types import to_numpy

__all__ = ["breakpoint", "print"]


@coded
def print(message: str, *args: Any, **keywords: Any) -> None:
    """Print a message with values in its fields, each time that the program comes here.

    Args:
        message: Text with fields as of `str.format`, such as "{}" and "{x:.3f}", without attributes or items. A format
            applies to each element of a tensor.
        args: Tensors or numbers for fields without names.
        keywords: Those for fields with names.

    Raises:
        UserError: A field has no value, a format is none for its dtype, or the message is ill-formed (MLC0695).

    Example:
        >>> @mlc.compile
        ... def f(x):
        ...     y = x / 2
        ...     mlc.debug.print("y is {}, its sum {s:.2f}", y, s=y.sum())
        ...     return y
        >>> _ = f(mlc.tensor([2.0, 1.0]))
        y is [1.  0.5], its sum 1.50
    """
    message, values = _named(message, args, keywords)
    _show(message, values, False)


@coded
def breakpoint(**values: Any) -> None:
    """Enter Python's debugger each time that the program comes here, with the arrays under their names.

    The dict `values` has all of them.

    Args:
        values: Tensors or numbers, by name.

    Example:
        >>> @mlc.compile
        ... def f(x):
        ...     y = x.exp()
        ...     mlc.debug.breakpoint(x=x, y=y)
        ...     return y
        >>> import sys
        >>> sys.breakpointhook = lambda: None
        >>> _ = f(mlc.zeros(2))                  # doctest: +ELLIPSIS
        stopped at ...: x, y in `values`
        >>> sys.breakpointhook = sys.__breakpointhook__
    """
    _show("", values, True)


def _named(message: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The message with a name in each field, and all values by name."""
    from string import Formatter
    numbers, parts = iter(range(len(args))), []
    fields_of(message)
    for literal, field, spec, conversion in Formatter().parse(message):
        parts.append(literal.replace("{", "{{").replace("}", "}}"))
        if field is None:
            continue
        number = next(numbers, None) if field == "" else None
        if field == "" and number is None:
            raise UserError(f"debug.print: the message has more fields than the {len(args)} values", code="MLC0695",
                            loc=user_loc(), hint="give a value for each")
        name = f"_{number}" if field == "" else f"_{field}" if field.isdecimal() else field
        parts.append("{" + name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}")
    if next(numbers, None) is not None and "{" not in "".join(parts).replace("{{", ""):
        raise UserError(f"debug.print: {len(args)} values, and the message has no fields", code="MLC0695",
                        loc=user_loc(), hint='write "{}" where a value is to stand')
    values = {**{f"_{i}": x for i, x in enumerate(args)}, **keywords}
    check_message("".join(parts), list(values))
    return "".join(parts), values


def _show(message: str, values: dict[str, Any], stops: bool) -> None:
    if state.trace is not None:
        with located(user_loc()):
            operands = tuple(current().local(tracer(x)) for x in values.values())
            check_formats(message, {n: (to_numpy(x.type.dtype), x.type.rank) for n, x in zip(values, operands)})
            tensor.Debug(operands, message, tuple(values), stops)
        return
    held = {name: x.numpy() if isinstance(x, Tensor) else x for name, x in values.items()}
    check_formats(message, {name: (np.asarray(x).dtype, np.ndim(x)) for name, x in held.items()})
    plain = {name: x.item() if getattr(x, "shape", None) == () else x for name, x in held.items()}
    if stops:
        stopped(plain, user_loc())
    else:
        import builtins
        builtins.print(shown(message, plain), flush=True)
