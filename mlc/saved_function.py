"""Functions that `mlc.load` has read: how the code of a file is called."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.backends.executable import Entry, Executable
from mlc.backends.image import Image
from mlc.backends.target import part_of
from mlc.code import device_memory
from mlc.frontend import tree
from mlc.frontend.data_dependent import unpad
from mlc.frontend.devices import CPU, BackingArray
from mlc.frontend.leaf_keys import frozen_leaf
from mlc.frontend.location import user_loc
from mlc.frontend.signature import Arguments, Spec, at_the_call, consume
from mlc.frontend.tensor import Array, Tensor, wrap
from mlc.frozen import compute_constants, taken
from mlc.ir.abi import Interface
from mlc.ir.diag import BackendError, UserAssertionError, UserError, UserIndexError, UserTypeError
from mlc.ir.types import TensorType, from_numpy

if TYPE_CHECKING:
    from mlc.backends.cuda.executable import Entry as DeviceEntry
    from mlc.backends.cuda.image import DeviceImage


@dataclass
class Signature:
    """One way to call a saved function.

    structure  of (args, keywords)
    leaves     per leaf: None for an array, else [value]
    weak       per array: whether it was a Python number, whose type gives way to that of others
    outputs    per leaf of the result, as of Recorded
    assigned   (weight, result) of weights that a call replaces
    entry      the loaded code for a CPU
    constants  the arrays that it takes after those of a call, in place of the weights before them; None for these
    """

    structure: tree.TreeDef
    leaves: list[list[Any] | None]
    weak: list[bool]
    results: tree.TreeDef
    outputs: list[tuple[str, Any]]
    assigned: list[tuple[int, int]]
    image: Image | None
    gpu: list[DeviceImage]
    entry: Entry | None = field(default=None, repr=False)
    constants: list[BackingArray] | None = field(default=None, repr=False)

    def load(self, weights: Sequence[Array]) -> None:
        """Load the code for a CPU, and compute the constants of a frozen function once."""
        assert self.image is not None
        executable = Executable(self.image)
        self.entry, made = compute_constants(executable, lambda i: weights[i])
        if self.entry.interface.sources:
            numbers = taken(self.entry.interface, range(len(weights), len(weights) + len(self.weak)))
            self.constants = [made[i] if i in made else weights[i] for i in numbers]

    @property
    def images(self) -> list[Image | DeviceImage]:
        """The code for each target."""
        return [*([] if self.image is None else [self.image]), *self.gpu]

    @property
    def interface(self) -> Interface | None:
        """The interface of the code, the same for every target; None if nothing is computed."""
        return next((image.interfaces["main"] for image in self.images), None)

    def specifications(self) -> list[Spec | None]:
        """Per leaf: the type of an array whose place a Python number may take."""
        if self.interface is None:
            return [None] * len(self.leaves)
        types = iter(zip(self.interface.inputs[-len(self.weak):], self.weak))
        return [None if known is not None or (found := next(types))[1] else Spec(found[0]) for known in self.leaves]

    def matches(self, leaves: Sequence[Any], slots: Sequence[bool]) -> bool:
        """Whether these leaves match: arrays where the signature has arrays, equal values elsewhere."""
        return all(slot if known is None else frozen_leaf(known[0]) == frozen_leaf(x)
                   for x, slot, known in zip(leaves, slots, self.leaves))

    def fits(self, arguments: Arguments) -> bool:
        """Whether arrays are of the types that the code is for, as far as numbers and symbols tell at once."""
        if self.interface is None or arguments.weak != self.weak:
            return self.interface is None
        env = dict[str, int]()
        for type, array in zip(self.interface.inputs[-len(self.weak):], arguments.arrays):
            if type.rank != array.ndim or str(type.dtype) != _element(array):
                return False
            if any(env.setdefault(str(d), n) != n if not isinstance(d, int) else d != n
                   for d, n in zip(type.shape, array.shape)):
                return False
        return True

    def device_for(self, arguments: Arguments) -> str:
        """Device of a call: that of its arguments if there is code for it, else one that there is code for."""
        if self.gpu and (self.image is None or arguments.device != CPU):
            return arguments.device if arguments.device != CPU else f"{self.gpu[0].target.vendor}:0"
        return CPU

    def __str__(self) -> str:
        return str(self.interface.type) if self.interface is not None else "() -> ()"


def _element(array: BackingArray) -> str:
    return str(from_numpy(array.dtype))


class Loaded:
    """A saved function, called as the compiled one was.

    It runs where tensors among the arguments are, if it has code for that, else where it has code for; the weights move
    there with the first call.

    name        of the function or module
    signatures  the types of arrays that it has code for, weights first
    """

    def __init__(self, name: str, signatures: Sequence[Signature], weights: dict[str, Array], frozen: bool) -> None:
        self.name = name
        self._weights = {name: wrap(array) for name, array in weights.items()}
        self._frozen = frozen
        self._names = list(weights)
        self._signatures = list(signatures)
        self._on_device: dict[tuple[int, str], DeviceEntry] = {}
        for signature in self._signatures:
            if signature.image is not None:
                signature.load(list(weights.values()))

    @property
    def weights(self) -> dict[str, Tensor]:
        """The arrays of the module it was made from, by name; none of a frozen one, of whose code they are a part."""
        return {} if self._frozen else self._weights

    @property
    def signatures(self) -> list[str]:
        return [str(s) for s in self._signatures]

    @property
    def signature(self) -> str:
        """The first of `signatures`: most files have one."""
        return self.signatures[0]

    def described(self) -> tuple[list[tuple[str, TensorType]], list[TensorType]]:
        """The arrays that the first signature takes, by their names, and the types of those that it gives."""
        signature = self._signatures[0]
        if (interface := signature.interface) is None:
            return [], []
        first = len(interface.inputs) - len(signature.weak)
        named = zip(interface.arg_names[first:] or [""] * len(signature.weak), interface.inputs[first:])
        results = [x[0] if kind == "first" else x for kind, x in signature.outputs if kind != "value"]
        return ([(name or f"input{i}", type) for i, (name, type) in enumerate(named)],
                [interface.results[r] for r in results])

    def call_flat(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays that a call gives, with the arrays of its arguments one after the other."""
        signature, rest = self._signatures[0], iter(arrays)
        leaves = [next(rest) if known is None else known[0] for known in signature.leaves]
        args, keywords = signature.structure.unflatten(leaves)
        found = zip(signature.outputs, tree.leaves(self(*args, **keywords)))
        return [np.asarray(x.numpy() if isinstance(x, Tensor) else x) for (kind, _), x in found if kind != "value"]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        signature, arguments = self._find(args, keywords)
        leaves: list[Any] = []
        results: Sequence[BackingArray] = ()
        if signature.interface is not None:
            donated = [a - len(self._weights) for a in signature.interface.donated]
            device = signature.device_for(arguments)
            entry = signature.entry if device == CPU else self._device_entry(signature, device)
            assert entry is not None
            self._move(device)
            try:
                results = entry.call(self._arrays(signature, device, arguments))
            except (UserAssertionError, UserIndexError):   # the code has run, and may have written to them
                consume(arguments.given, donated, user_loc(), self.name)
                raise
            except UserError as error:
                at_the_call(error)
                raise
            consume(arguments.given, donated, user_loc(), self.name)
        for weight, result in signature.assigned:
            self._weights[self._names[weight]] = wrap(results[result])
        for kind, x in signature.outputs:
            leaves.append(x if kind == "value" else wrap(results[x]).item() if kind == "number" else
                          wrap(results[x] if kind == "result" else unpad(results, *x)))
        return signature.results.unflatten(leaves)

    def _arrays(self, signature: Signature, device: str, arguments: Arguments) -> list[BackingArray]:
        """The arguments of the code."""
        if device == CPU and signature.constants is not None:
            return [*arguments.arrays, *signature.constants]
        return [*(w.backing_array for w in self._weights.values()), *arguments.arrays]

    def _move(self, device: str) -> None:
        """Move the weights to a device."""
        for name, weight in self._weights.items():
            if weight.device != device:
                self._weights[name] = weight.to(device)

    def _device_entry(self, signature: Signature, device: str) -> DeviceEntry:
        """The code of a signature for a device, loaded there; BackendError at the call if there is no such device."""
        key = self._signatures.index(signature), device
        if key not in self._on_device:
            memory = device_memory(device)
            try:
                vendor = part_of(device.partition(":")[0], "toolchain")
                self._on_device[key] = vendor.entry(signature.gpu, memory, "main")
            except BackendError as error:
                error.loc = user_loc()
                raise
        return self._on_device[key]

    def _find(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Signature, Arguments]:
        """The signature for these arguments; if there is but one in question, its code says what does not fit.

        A number is one first, then what stands in the place of an array that was specified.
        """
        possible, misfit = [], None
        for specified, signature in itertools.product((False, True), self._signatures):
            try:
                leaves = tree.matching_leaves(signature.structure, (args, keywords))
            except UserTypeError:
                continue
            try:
                arguments = Arguments([x if known is None else None for x, known in zip(leaves, signature.leaves)],
                                      signature.structure, signature.specifications() if specified else None)
            except UserTypeError as error:                 # a number that is none of the type it should have
                misfit = error
                continue
            if signature.matches(leaves, arguments.slots):
                if signature.fits(arguments):
                    return signature, arguments
                if specified:
                    possible.append((signature, arguments))
        if len(possible) == 1:
            return possible[0]
        if misfit is not None and not possible:
            raise misfit
        raise UserTypeError(f"{self.name} was not saved for such arguments", code="MLC0572", loc=user_loc(),
                            notes=tuple(f"it was saved for {s}" for s in self._signatures))

    def __repr__(self) -> str:
        size = sum(math.prod(w.shape) for w in self._weights.values())
        return f"<mlc.load: {self.name}, {size} {'frozen ' * self._frozen}weights, {len(self._signatures)} signatures>"
