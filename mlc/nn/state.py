"""States of modules: whether arrays by name fit the parameters and buffers of a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlc.frontend.location import user_loc
from mlc.frontend.operators import is_operand
from mlc.frontend.tensor import Tensor, as_array
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import from_numpy


class Incompatible(NamedTuple):
    """Mismatch of a state and a module: names that only the module has, and names that only the state has."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def fitting(state_dict: Mapping[str, Any], own: Mapping[str, Tensor], ties: Mapping[str, Tensor],
            strict: bool) -> tuple[dict[str, Tensor], Incompatible]:
    """Copies of the arrays of a state that a module with the state `own` takes, and the names they do not share.

    Args:
        state_dict: Arrays by name.
        own: The state of the module.
        ties: Every parameter under each of its names.
        strict: Whether both must have the same names.

    Raises:
        UserError: Names differ, or what is under several names of one parameter does (MLC0382).
        UserTypeError: It is no mapping, or shapes or kinds of dtypes differ (MLC0382).
    """
    if not isinstance(state_dict, Mapping):
        raise UserTypeError(f"a state is a dict of arrays by name, found {type(state_dict).__name__}",
                            code="MLC0382", loc=user_loc())
    missing = [name for name in own if name not in state_dict]
    unexpected = [name for name in state_dict if name not in own]
    report = [f"{what} {_some(names)}" for what, names in (("missing", missing), ("unexpected", unexpected))
              if names and strict]
    new: dict[str, Tensor] = {}
    misfits = 0
    for name, old in own.items():
        if name not in state_dict:
            continue
        given = state_dict[name]
        array = as_array(given, None if is_operand(given) else old.dtype)
        if array.shape != old.shape or _kind(array.dtype) != _kind(old.backing_array.dtype):
            report.append(f"{name} is {Tensor(array).dtype}{list(array.shape)}, expected "
                          f"{old.dtype}{list(old.shape)}")
            misfits += 1
        else:
            new[name] = Tensor(np.array(array, old.backing_array.dtype, order="C")).to_device(old.device)
    first: dict[int, str] = {}
    for name, x in ties.items():
        other = first.setdefault(id(x), name) if name in new else name
        if other != name and new[other].array.tobytes() != new[name].array.tobytes():
            report.append(f"{other} and {name} are one parameter, and differ")
    if report:
        kind = UserTypeError if misfits == len(report) else UserError
        raise kind("the state does not fit the module: " + "; ".join(report), code="MLC0382", loc=user_loc())
    return new, Incompatible(missing, unexpected)


def _kind(dtype: np.dtype[Any]) -> str:
    """Kind of an element type: bool, integer or float. Arrays of a state may differ in element type within a kind."""
    found = from_numpy(dtype)
    return "float" if found.is_float else "bool" if found.is_bool else "integer"


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
