"""Upstream MLIR, as jaxlib ships it: parse and verify our text."""

from __future__ import annotations

from functools import cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext


@cache
def _registry() -> Any:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


@cache
def _context(unregistered: bool) -> Any:
    """Made once: loading the dialects takes longer than most texts."""
    context = ir.Context()
    context.append_dialect_registry(_registry())
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = unregistered
    return context


def verify_text(text: str, unregistered: bool = False) -> Any:
    """Parse and verify a module; dialects that upstream does not have are allowed only if asked for."""
    with _context(unregistered):
        module = ir.Module.parse(text)
        module.operation.verify()
        return module
