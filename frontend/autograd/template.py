"""`Template`: calls of an operation without their operands, of which derivatives are made."""

from __future__ import annotations

from itertools import repeat
from typing import Any, NamedTuple

from mlc.frontend import native_calls
from mlc.frontend.eager import Call, with_operands, without_shapes
from mlc.frontend.recorded_operation import Operation


class Template(NamedTuple):
    """A call without its operands.

    args, keywords  with a placeholder for each operand
    pattern         the key of the call, without shapes
    """

    op: Operation
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    pattern: Any

    @staticmethod
    def of(call: Call) -> Template:
        """The template of a call; what the program does to its lists concerns later calls."""
        args, keywords = placed(call.op, call.args, call.keywords, repeat(_PLACE))
        return Template(call.op, tuple(map(native_calls.own, args)),
                        {name: native_calls.own(x) for name, x in keywords.items()}, without_shapes(call.key))


def placed(op: Operation, args: tuple[Any, ...], keywords: dict[str, Any], pending: Any) -> Any:
    """Arguments with those of `pending` in place of the operands."""
    return (tuple(with_operands(x, op, op.parameter(i), pending) for i, x in enumerate(args)),
            {name: with_operands(x, op, name, pending) for name, x in keywords.items()})


_PLACE = object()
