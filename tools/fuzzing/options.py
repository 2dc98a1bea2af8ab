"""Options of calls of public functions: keywords of their signatures, and operands of other types.

The names of parameters are PyTorch's, so that a call means the same in both. A value is drawn by the name of its
parameter or, where that says nothing, by the type of its default.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import mlc
from mlc.frontend.in_place_methods import RESHAPING

VALUES: dict[str, tuple[str, ...]] = {
    "dim": ("0", "-1", "1", "(0,)", "(0, -1)", "(-1,)"), "axis": ("0", "-1"), "dims": ("0", "(0, 1)", "(-1,)"),
    "p": ("0", "1", "2", "3", "-1", "-2.5", "float('inf')"), "ord": ("1", "2", "-1", "0", "float('inf')", "'fro'"),
    "correction": ("0", "1", "2"), "n": ("1", "2", "5"), "k": ("1", "2", "-1"), "diagonal": ("1", "-1", "2"),
    "offset": ("1", "-1"), "alpha": ("2", "-0.5"), "beta": ("2", "0.5"), "value": ("2", "-0.5"), "eps": ("0.1",),
    "fill_value": ("2", "-0.5"), "shifts": ("1", "-2"), "repeats": ("2",), "chunks": ("2",),
    "decimals": ("1", "-1"), "norm": ("'ortho'", "'forward'"), "mode": ("'reduced'", "'constant'", "'mean'"),
    "reduction": ("'none'", "'sum'"), "rounding_mode": ("'floor'", "'trunc'"), "min": ("-0.5",), "max": ("0.5",),
    "dtype": ("T.float64", "T.int64", "T.complex128"), "bins": ("4",), "maxnorm": ("0.5",), "q": ("0.3",),
}
"""Values of parameters by their names, as text."""
OPERANDS = ("{x}", "T.round({x} * 3).long()", "({x} > 0)", "T.complex({x}, {x} * 0.5)", "{x}.sum()", "{x}.sum().long()",
            "T.complex({x}, {x} + 1).sum()", "2", "0.5", "1j", "True")
"""Ways to give a tensor to a function: as it is, in other types, of no dimensions, or numbers in its place."""
NOT_WRITING = ("requires_grad_", "detach_", "share_memory_", "rename_", "apply_", "map_", "resize_",
               "logical_not_", "logical_and_", "logical_or_", "logical_xor_", *(f"{name}_" for name in RESHAPING))
"""Methods whose names end as if they wrote to a tensor, those that a recorded tensor does not have, and those that have
the derivative of what was there before in PyTorch."""


def keywords_of(f: Callable[..., Any], rng: random.Random, first: int) -> list[str]:
    """Some keyword arguments of a function, of those after its `first` parameters."""
    out = []
    for parameter in parameters(f)[first:]:
        if rng.random() < 0.5 and (texts := values_of(parameter)):
            out.append(f"{parameter.name}={rng.choice(texts)}")
    return out


def values_of(parameter: inspect.Parameter) -> tuple[str, ...]:
    """Values of a parameter, as text; none where neither its name nor its default tells."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        return ()
    if isinstance(parameter.default, bool):
        return (str(not parameter.default),)
    if (texts := VALUES.get(parameter.name)) is not None:
        return texts
    number = type(parameter.default)
    return ("1", "2") if number is int else ("0.5", "2.0") if number is float else ()


def parameters(f: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, as far as they are known."""
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return []


@cache
def in_place_methods() -> list[str]:
    """The methods of a tensor that write to it."""
    return sorted(name for name in dir(mlc.Tensor) if name.endswith("_") and not name.startswith("_")
                  and name not in NOT_WRITING)


def function_named(name: str) -> Callable[..., Any]:
    """The public function of a name, as `T.` has it."""
    found: Any = mlc
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]
