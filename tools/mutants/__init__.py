"""Faults that somebody might have made, each a small replacement in one source file, to see what finds them."""

from __future__ import annotations

from mlc.tools.mutants import (
    code,
    derivatives,
    images,
    loops,
    rewrites,
    unseen,
    unseen_eighth,
    unseen_fifth,
    unseen_fourth,
    unseen_latest,
    unseen_newer,
    unseen_seventh,
    unseen_sixth,
)
from mlc.tools.mutants.fault import Fault

FAULTS: tuple[Fault, ...] = (*derivatives.FAULTS, *rewrites.FAULTS, *loops.FAULTS, *images.FAULTS, *code.FAULTS)
UNSEEN = (*unseen.FAULTS, *unseen_newer.FAULTS, *unseen_latest.FAULTS, *unseen_fourth.FAULTS,
          *unseen_fifth.FAULTS, *unseen_sixth.FAULTS, *unseen_seventh.FAULTS,
          *unseen_eighth.FAULTS)
"""Those that somebody made who had not looked at the checks."""

__all__ = ["FAULTS", "UNSEEN", "Fault"]
