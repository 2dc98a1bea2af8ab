"""The hooks of all modules: part of the state of every function that reaches a module. mlc/nn/hooks.py calls them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

KINDS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
OF_ALL: dict[str, OrderedDict[int, Any]] = {kind: OrderedDict() for kind in KINDS}
"""They are called before those of the module."""
