"""Modules as notebooks show them: a tree that folds, with the parameters of each."""

from __future__ import annotations

from html import escape
from typing import Any

from mlc.frontend.tensor import Tensor
from mlc.ir import html


def module_html(module: Any, name: str = "", opened: bool = True) -> str:
    """A module, its parameters and buffers, and the modules within it."""
    count = sum(p.numel() for p in module.parameters())
    own = [(n, p) for n, p in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
           if isinstance(p, Tensor)]
    rows = [(n, str(list(p.shape)), str(p.dtype), "trained" if p.requires_grad else "") for n, p in own]
    inside = html.table(("name", "shape", "dtype", ""), rows) if rows else ""
    children = list(module.named_children())
    inside += "".join(module_html(child, child_name, len(children) <= 8) for child_name, child in children)
    settings = module.extra_repr()
    label = f"{name + ': ' if name else ''}{type(module).__name__}({settings}){f'  {count:,} parameters' * bool(count)}"
    return html.folded(label, inside, opened) if inside else f'<div style="margin-left:2em">{escape(label)}</div>'
