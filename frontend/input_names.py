"""Names of what a recorded function reaches by itself: `model.layers.0.weight`, `opt.state[model.weight].exp_avg`.

They are for messages and profiles. A tensor is often reached by several ways: one that a module holds has the name that
the module gives it, whose own is the shortest that there is, and the state of an optimizer that of its parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mlc.frontend import tree
from mlc.frontend.captured_inputs import (
    CapturedBuffer,
    CapturedGradient,
    CapturedKey,
    CapturedNumber,
    CapturedTensor,
    Input,
)
from mlc.frontend.captures import Captures
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.reached_state import Payload
from mlc.frontend.tensor import Tensor

_SELF = re.compile(r"^self\b")
"""The name in `Reached` of the object whose method is compiled, which goes by its class as in locations."""


def input_names(captures: Captures, reached: Reached, arguments: Sequence[str]) -> list[str]:
    """The names of the inputs of a function besides its arguments, which have names already; "" of one without."""
    kinds = {type(place.x).__name__ for place in reached.places if place.path == "self"}       # of a compiled module
    owner = min(kinds, default="self")
    places = sorted(((_SELF.sub(owner, place.path), place.x) for place in reached.places if not isinstance(
        place, Payload)), key=lambda row: len(row[0]))
    names: dict[int, str] = {}
    for path, x in places:
        if isinstance(x, tree.AttributeTree):
            for name, leaf in zip(tree.names(x), tree.leaves(x)):
                if isinstance(leaf, Tensor):
                    names.setdefault(id(leaf), f"{path}.{name}")
    for path, x in places:
        for key, state in x.items() if isinstance(x, Mapping) else ():
            if type(key) is Tensor and isinstance(state, Mapping):
                for name, value in state.items():
                    names.setdefault(id(value), f"{path}[{names.get(id(key), '')}].{name}")
    for place in reached.places:
        if isinstance(place, Payload):
            names.setdefault(id(place.x), _SELF.sub(owner, place.path))
    mappings = {id(x): path for path, x in places}
    return [_name(source, names, mappings, arguments) for source, _, _ in captures.inputs]


def _name(source: Input, names: Mapping[int, str], mappings: Mapping[int, str], arguments: Sequence[str]) -> str:
    if isinstance(source, CapturedTensor):
        return names.get(id(source.tensor), "")
    if isinstance(source, CapturedBuffer):
        path = mappings.get(id(source.module), "")
        return f"{path}.{source.name}" if path else ""
    if isinstance(source, CapturedGradient):
        owner = source.owner
        name = arguments[owner] if isinstance(owner, int) else names.get(id(owner), "")
        return f"{name}.grad" if name else ""
    if isinstance(source, CapturedNumber):
        path = mappings.get(id(source.mapping), "")
        return f"{path}[{source.key!r}]" + ("" if source.index is None else f"[{source.index}]") if path else ""
    return "random key" if isinstance(source, CapturedKey) else ""
