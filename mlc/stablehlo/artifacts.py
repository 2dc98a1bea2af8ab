"""Portable artifacts of StableHLO, which are bytecode, as text.

jaxlib reads them. It is native code that a damaged file can end (as `jaxlib` 0.10 does for some), so it runs in another
process.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.stablehlo import artifact_process

CODE = "MLC0863"
SECONDS = 120
"""Time that reading may take, and as much again for each 16 MiB."""


def text_of(data: bytes) -> str:
    """The text of a portable artifact; UserError MLC0863 if it cannot be read."""
    if importlib.util.find_spec("jaxlib") is None:
        raise UserError("a portable artifact is read by jaxlib, which is not installed", code=CODE, loc=user_loc(),
                        hint="pip install jaxlib, or save the program as text")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    try:
        done = subprocess.run([sys.executable, "-P", str(Path(artifact_process.__file__))], input=data,
                              env=environment, capture_output=True, timeout=SECONDS * (1 + (len(data) >> 24)),
                              check=False)
    except subprocess.TimeoutExpired:
        raise _unreadable("jaxlib does not come to an end with it") from None
    if done.returncode == 0:
        return done.stdout.decode("utf-8")
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    if done.returncode == artifact_process.UNREADABLE and said:
        raise _unreadable(said[-1])
    raise _unreadable("the process in which jaxlib reads it ends with "
                      + (f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"))


def _unreadable(reason: str) -> UserError:
    return UserError(f"the portable artifact cannot be read: {reason}"[:300], code=CODE, loc=user_loc())
