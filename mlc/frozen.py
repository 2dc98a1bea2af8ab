"""Frozen functions: the tensors that they reach are constants, of which all that can be is computed once.

The pass hoist_constants splits the code in two: one part computes what depends on the constants alone, such as weights
in the layout in which products read them, and runs when the function is compiled; the other part takes its results in
their place. The elements of the constants belong to the state that each call is guarded by: if they change, both are
made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.call import Signature
from mlc.dialects.func import CONSTANTS
from mlc.frontend import tree
from mlc.frontend.captures import CapturedTensor, Input
from mlc.frontend.devices import CPU
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.signature import Arguments
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
        raise _refusal(name, does)
    found = [i for i, (source, _, _) in enumerate(captures.inputs) if isinstance(source, CapturedTensor)]
    captures.read += captures.tensors()
    recorded.trace.function.attrs[CONSTANTS] = tuple(own + i for i in found)


def mark_weights(recorded: Recorded, signature: Signature, device: str) -> None:
    """Have the arrays of the module that a function was made of, its first arguments, be constants of its code.

    Raises UserError if it replaces one of them (MLC0995), or runs on a GPU (MLC0380).
    """
    check_device(signature.name, device)
    if recorded.assigned:
        raise _refusal(signature.name, "changes tensors that it reaches, or their gradients")
    own = Arguments(tree.leaves(signature.bound), tree.TreeDef()).slots
    recorded.trace.function.attrs[CONSTANTS] = tuple(range(sum(own)))


def check_device(name: str, device: str) -> None:
    """UserError unless a frozen function may run on a device (MLC0380)."""
    if device != CPU:
        raise UserError(f"freeze=True is for the CPU, and a call of {name} runs on {device}", code="MLC0380",
                        loc=user_loc(), hint="leave out freeze")


def _refusal(name: str, does: str) -> UserError:
    return UserError(f"{name} is compiled with freeze=True, and {does}", code="MLC0995", loc=user_loc(),
                     hint="compile it without freeze, or, if it is a model in training, after model.eval()")


def split(executable: Any) -> tuple[Any, Any] | None:
    """The entry that computes the constants and the one that takes them; None if nothing depends on them alone."""
    entries = [entry for entry in executable.entries.values() if entry.interface.sources]
    if not entries:
        return None
    once, entry = sorted(entries, key=lambda entry: min(entry.interface.sources) < 0)
    return once, entry


def without_constants(executable: Any, recorded: Recorded, own: int) -> Any:
    """The entry of the code that is called from now on, once the constants that it takes are computed."""
    captures = recorded.captures
    assert captures is not None
    sources = captures.sources()
    entries = split(executable)
    if entries is None:
        captures.constants = [*map(_constant, sources)]
        return executable.entry("main")
    once, entry = entries
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
