"""Variants of a function, one per signature, as stored in files and extension modules: without any arrays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from mlc.call import Call, Signature
from mlc.frontend import tree
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.signature import Arguments, roots

if TYPE_CHECKING:
    from mlc.backends.cuda.image import DeviceImage
    from mlc.backends.image import Image


@dataclass(frozen=True)
class Variant:
    """Compiled form of a function for one signature, without the arguments of a bound module.

    structure  of (args, keywords)
    leaves     its leaves, None in place of arrays
    slots      per leaf: whether it is an array
    weak       per array: whether it is a Python number, whose type gives way to that of others
    bound      what the code depends on of the bound module
    images     the code, for each machine that it is for; none if there is nothing to compute
    """

    structure: tree.TreeDef
    leaves: list[Any]
    slots: list[bool]
    weak: list[bool]
    bound: Any
    recorded: Recorded
    images: list[Image | DeviceImage]


def variant_of(call: Call, recorded: Recorded, images: list[Any]) -> Variant:
    """Variant compiled for a call, without the arrays that it was compiled for."""
    signature = call.signature
    known, slots = iter(call.slots), list[bool]()
    for name, x in roots(signature.names, call.args, call.keywords):
        count = len(tree.leaves(x))
        if name in signature.static:
            next(known)
        slots += [False] * count if name in signature.static else islice(known, count)
    leaves, structure = tree.flatten((call.args[len(signature.bound):], call.keywords))
    slots = slots[len(tree.leaves(signature.bound)):]
    weak = call.weak[len(call.weak) - sum(slots):]
    return Variant(structure, [None if slot else x for x, slot in zip(leaves, slots)], slots, weak,
                   bound_key(signature), recorded, images)


def bound_key(signature: Signature) -> Any:
    """The types of the bound module's arrays, and what else it holds: whether it is in training, for one."""
    return Arguments(*tree.flatten(signature.bound if signature.module is None else (signature.module,))).key
