"""Modules whose `forward` runs a program that another framework wrote; mlc.torch and mlc.onnx make them.

They are here since objects of this package's classes are state of the program, whose changes compiled code sees.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlc.frontend.location import user_loc
from mlc.frontend.tensor import wrap
from mlc.ir.diag import UserError
from mlc.nn.dropout import Keyed
from mlc.nn.module import Module, set_buffer
from mlc.nn.parameter import Parameter


class ImportedModule(Module):
    """A module whose `forward` runs a program; its parameters and buffers have the paths of the program's weights.

    The program does what the model did in the mode that it was exported in. A call in the other mode is refused, since
    it would not drop out, or would go on doing so.
    """

    _exported_in_training = False
    _keys: Keyed
    """Of a program that draws random numbers, the keys, as `nn.Dropout` has one."""

    def _check_mode(self) -> None:
        if self.training is self._exported_in_training:
            return
        made, call = ("training", "train") if self._exported_in_training else ("evaluation", "eval")
        raise UserError(f"the program was exported in {made}, and is called in the other mode", code="MLC0791",
                        loc=user_loc(), hint=f"call its {call}(), or export the model in the other mode")


def imported_module(name: str, parameters: Sequence[str], run: Callable[[Any, tuple[Any, ...]], Any],
                    weights: Mapping[str, tuple[Any, bool]], *, training: bool = False,
                    draws: bool = False) -> ImportedModule:
    """A module of a class of its own.

    name        of its class
    parameters  of its `forward`
    run         the result, for the module and the arguments
    weights     per path an array, and whether it is trained
    training    whether the program is one for training
    draws       whether it draws random numbers, with keys of `module._keys`
    """
    def forward(self: ImportedModule, *args: Any, **keywords: Any) -> Any:
        given = signature.bind(self, *args, **keywords).args[1:]
        self._check_mode()
        return run(self, given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, kind) for n in ("self", *parameters)])
    forward.__signature__ = signature  # type: ignore[attr-defined]
    out: ImportedModule = type(name, (ImportedModule,), {"forward": forward, "_exported_in_training": training,
                                                         "__module__": __name__})()
    if draws:
        out._keys = Keyed()
    for path, (array, trained) in weights.items():
        place(out, path, array, trained)
    return out.train(training)


def place(module: Module, path: str, array: Any, trained: bool) -> None:
    """Make an array the parameter or buffer at a path of a module; the modules on the way to it are made."""
    *owners, last = path.split(".")
    at: Any = module
    for part in owners:
        if not hasattr(at, part):
            setattr(at, part, Module())
        at = getattr(at, part)
    if trained:
        setattr(at, last, Parameter(wrap(array)))
    else:
        at.register_buffer(last, wrap(array))


def tensor_at(module: Module, path: str) -> Any:
    """The parameter or buffer at a path of a module."""
    at: Any = module
    for part in path.split("."):
        at = getattr(at, part)
    return at


def assign_at(module: Module, path: str, value: Any) -> None:
    """Replace the buffer at a path of a module."""
    owner, _, last = path.rpartition(".")
    set_buffer(tensor_at(module, owner) if owner else module, last, value)
