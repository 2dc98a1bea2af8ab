"""Frozen functions: the tensors that they reach are constants, of which all that can be is computed once.

The pass hoist_constants splits the code in two: one part computes what depends on the constants alone, such as weights
in the layout in which products read them, and runs when the function is compiled; the other part takes its results in
their place. The elements of the constants belong to the state that each call is guarded by: if they change, both are
made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects.func import CONSTANTS
from mlc.frontend.captures import CapturedTensor, Input
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.tensor import wrap
from mlc.ir.diag import UserError


def mark_constants(recorded: Recorded, own: int, name: str) -> None:
    """Have the tensors that a recorded function with `own` arguments reaches be constants of its code.

    Raises UserError if it changes what it reaches (MLC0995).
    """
    captures = recorded.captures
    assert captures is not None, "a call of a compiled function records what it reaches"
    does = ("changes tensors that it reaches, or their gradients" if recorded.has_effects or recorded.assigned else
            "computes gradients" if recorded.differentiates else "")
    if does:
        raise UserError(f"{name} is compiled with freeze=True, and {does}", code="MLC0995", loc=user_loc(),
                        hint="compile it without freeze, or, if it is a model in training, after model.eval()")
    found = [i for i, (source, _, _) in enumerate(captures.inputs) if isinstance(source, CapturedTensor)]
    captures.read += captures.tensors()
    recorded.trace.function.attrs[CONSTANTS] = tuple(own + i for i in found)


def without_constants(executable: Any, recorded: Recorded, own: int) -> Any:
    """The entry of the code that is called from now on, once the constants that it takes are computed."""
    captures = recorded.captures
    assert captures is not None
    sources = captures.sources()
    split = [entry for entry in executable.entries.values() if entry.interface.sources]
    if not split:                                          # nothing depends on the constants alone
        captures.constants = [*map(_constant, sources)]
        return executable.entry("main")
    once, entry = sorted(split, key=lambda entry: min(entry.interface.sources) < 0)
    made = once.call([sources[i - own].tensor.backing_array for i in once.interface.sources])
    captures.constants = [_constant(sources[i - own]) if i >= 0 else CapturedTensor(wrap(made[-1 - i]))
                          for i in _captured(entry.interface.sources, own)]
    return entry


def _constant(source: Input) -> Input:
    """An input by its elements alone, which have no derivative."""
    return CapturedTensor(wrap(source.tensor.backing_array)) if isinstance(source, CapturedTensor) else source


def _captured(sources: Sequence[int], own: int) -> Sequence[int]:
    """The sources of the captured inputs, which come after all arguments."""
    assert tuple(sources[:own]) == tuple(range(own)), "the arguments stay in their places"
    return sources[own:]
