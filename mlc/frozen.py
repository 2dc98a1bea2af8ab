"""Frozen functions: the tensors that they reach are constants, of which all that can be is computed once.

The pass hoist_constants splits the code in two: one part computes what depends on the constants alone, such as weights
in the layout in which products read them, and runs when the function is compiled; the other part takes its results in
their place. The elements of the constants belong to the state that each call is guarded by: if they change, both are
made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlc.call import Signature
from mlc.dialects.func import CONSTANTS
from mlc.frontend import tree
from mlc.frontend.captured_inputs import CapturedTensor, Input
from mlc.frontend.devices import CPU, BackingArray
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.signature import Arguments
from mlc.frontend.tensor import wrap
from mlc.ir.abi import Interface
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


# -- the parts of the code --------------------------------------------------------------------------------------------
def parts(interfaces: Mapping[str, Interface]) -> tuple[str, str] | None:
    """The names of the function that computes the constants and of the one that takes them; None if there are none.

    These two have `sources`, and only the second takes results of the first, whose numbers are negative. ValueError if
    there are other than two.
    """
    found = sorted((name for name, interface in interfaces.items() if interface.sources),
                   key=lambda name: min(interfaces[name].sources) < 0)
    if not found:
        return None
    if len(found) != 2:
        raise ValueError("its constants are computed by other than one function")
    return found[0], found[1]


def taken(interface: Interface, own: range) -> Sequence[int]:
    """The sources of what a function takes in place of the constants, after the `own` arguments of a call.

    ValueError unless those come first.
    """
    if tuple(interface.sources[:len(own)]) != tuple(own):
        raise ValueError("the arguments of a call do not keep their order")
    return interface.sources[len(own):]


def check_parts(interfaces: Mapping[str, Interface], own: range) -> None:
    """ValueError unless the parts of @main, if it has any, take its constants and what one computes for the other.

    The constants are the arguments of @main beside the `own` ones of a call.
    """
    names = parts(interfaces)
    if names is None:
        return
    once, entry = (interfaces[name] for name in names)
    constants = {i: type for i, type in enumerate(interfaces["main"].inputs) if i not in own}
    made = {-1 - n: type for n, type in enumerate(once.results)}
    rest = taken(entry, own)
    if [constants.get(i) for i in once.sources] != list(once.inputs) or (
            [(constants | made).get(i) for i in rest] != list(entry.inputs[len(own):])) or (
            [interfaces["main"].inputs[i] for i in own] != list(entry.inputs[:len(own)])):
        raise ValueError("its constants are not those of its code")


def compute_constants(executable: Any, array: Callable[[int], BackingArray]) -> tuple[Any, dict[int, BackingArray]]:
    """The entry that each call uses, and by their sources the arrays that are computed for it, now.

    array  gives an argument of the whole function, a constant, by its number
    """
    names = parts({name: entry.interface for name, entry in executable.entries.items()})
    if names is None:
        return executable.entry("main"), {}
    once, entry = (executable.entries[name] for name in names)
    made = once.call([array(i) for i in once.interface.sources])
    return entry, {-1 - n: x for n, x in enumerate(made)}


def without_constants(executable: Any, recorded: Recorded, own: int) -> Any:
    """The entry of the code that is called from now on, once the constants that it takes are computed."""
    captures = recorded.captures
    assert captures is not None
    sources = captures.sources()

    def array(i: int) -> BackingArray:
        source = sources[i - own]
        assert isinstance(source, CapturedTensor), "constants are tensors that the function reaches"
        return source.tensor.backing_array

    entry, made = compute_constants(executable, array)
    numbers = taken(entry.interface, range(own)) if entry.interface.sources else range(own, own + len(sources))
    captures.constants = [CapturedTensor(wrap(made[i])) if i in made else _constant(sources[i - own]) for i in numbers]
    return entry


def _constant(source: Input) -> Input:
    """An input by its elements alone, which have no derivative."""
    return CapturedTensor(wrap(source.tensor.backing_array)) if isinstance(source, CapturedTensor) else source
