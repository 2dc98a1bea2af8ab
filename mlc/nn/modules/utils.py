"""Functions about the states of modules."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from mlc.frontend.arguments import coded

__all__ = ["consume_prefix_in_state_dict_if_present"]


@coded
def consume_prefix_in_state_dict_if_present(state_dict: MutableMapping[str, Any], prefix: str) -> None:
    """Remove a prefix from the names of a state, in place, as that of a module within `nn.DataParallel`.

    Args:
        state_dict: Tensors by name; those that are renamed come last.
        prefix: Prefix such as "module.".

    Example:
        >>> state = {"module.weight": mlc.ones(1), "bias": mlc.ones(1)}
        >>> nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        >>> list(state)
        ['bias', 'weight']
    """
    for name in [name for name in state_dict if name.startswith(prefix)]:
        state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
