"""States of modules: whether arrays by name fit the parameters and buffers of a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mlc.frontend.dtypes import DType
from mlc.frontend.location import user_loc
from mlc.frontend.operators import is_operand
from mlc.frontend.tensor import Tensor, as_array
from mlc.frontend.trace import state
from mlc.ir.diag import UserError, UserTypeError


class Incompatible(NamedTuple):
    """Mismatch of a state and a module: names that only the module has, and names that only the state has."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    def __str__(self) -> str:
        return repr(self)


def fitting(state_dict: Mapping[str, Any], own: Mapping[str, Tensor], ties: Mapping[str, Tensor], strict: bool,
            model: str, more_missing: Sequence[str] = (), errors: Sequence[str] = ()) -> tuple[dict[str, Tensor],
                                                                                             Incompatible]:
    """Copies of the arrays of a state that a module with the state `own` takes, and the names they do not share.

    While a function is recorded, tensors are given as they are.

    Args:
        state_dict: Arrays by name.
        own: The state of the module.
        ties: Every parameter under each of its names.
        strict: Whether both must have the same names.
        model: Name of the module's class.
        more_missing: Names of other things that the state lacks.
        errors: What is wrong besides.

    Raises:
        UserError: Names differ, or what is under several names of one parameter does (MLC0382).
        UserTypeError: Shapes or kinds of dtypes differ (MLC0382).
    """
    missing = [*(name for name in own if name not in state_dict), *more_missing]
    unexpected = [name for name in state_dict if name not in own]
    report = list(errors)
    if strict:
        report += [f"{what} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names) + "."
                   for what, names in (("Missing", missing), ("Unexpected", unexpected)) if names]
    new: dict[str, Tensor] = {}
    misfits = 0
    for name, old in own.items():
        if name not in state_dict:
            continue
        given = state_dict[name]
        if state.trace is None or not isinstance(given, Tensor):
            given = Tensor(as_array(given, None if is_operand(given) else old.dtype))
        if given.shape != old.shape:
            report.append(f"size mismatch for {name}: copying a param with shape {list(given.shape)} from checkpoint, "
                          f"the shape in current model is {list(old.shape)}.")
            misfits += 1
        elif _kind(given.dtype) != _kind(old.dtype):
            report.append(f"{name} is {given.dtype}{list(given.shape)}, expected {old.dtype}{list(old.shape)}")
            misfits += 1
        elif state.trace is None:
            new[name] = Tensor(np.array(given.array, old.backing_array.dtype, order="C")).to_device(old.device)
        else:
            new[name] = given
    first: dict[int, str] = {}
    for name, x in ties.items():
        other = first.setdefault(id(x), name) if name in new else name
        if other != name and state.trace is None and new[other].array.tobytes() != new[name].array.tobytes():
            report.append(f"{other} and {name} are one parameter, and differ")
    if report:
        kind = UserTypeError if misfits == len(report) else UserError
        raise kind(f"Error(s) in loading state_dict for {model}:\n\t" + "\n\t".join(report), code="MLC0382",
                   loc=user_loc(), hint=_hint(missing, unexpected))
    return new, Incompatible(missing, unexpected)


def _hint(missing: Sequence[str], unexpected: Sequence[str]) -> str:
    prefix = next((name.partition(".")[0] for name in unexpected), "")
    if unexpected and any(name.removeprefix(f"{prefix}.") in missing for name in unexpected):
        return f"names begin with {prefix!r} there: {{k.removeprefix('{prefix}.'): x for k, x in state.items()}}"
    if missing or unexpected:
        return "strict=False leaves out names that only one of the two has"
    return "make the model with the sizes of the one that was saved"


def _kind(dtype: DType) -> str:
    """Kind of an element type: bool, integer, float or complex. Arrays of a state may differ in type within a kind."""
    found = dtype.ir
    return "float" if found.is_float else "complex" if found.is_complex else "bool" if found.is_bool else "integer"
