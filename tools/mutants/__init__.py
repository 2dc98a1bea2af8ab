"""Faults that somebody might have made, each a small replacement in one source file, to see what finds them."""

from __future__ import annotations

from mlc.tools.mutants import code, derivatives, loops, rewrites
from mlc.tools.mutants.fault import Fault

FAULTS: tuple[Fault, ...] = (*derivatives.FAULTS, *rewrites.FAULTS, *loops.FAULTS, *code.FAULTS)

__all__ = ["FAULTS", "Fault"]
