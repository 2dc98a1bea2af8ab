"""A folder of checkpoints, of which at every moment the last good one is there."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

from mlc.artifact import load, save
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import not_written
from mlc.ir.diag import UserError

_NAME = re.compile(r"step-(\d{10})\.mlc")


class Checkpoints:
    """The files `step-0000000120.mlc` of a folder.

    Each is written beside, synced and renamed, and carries a checksum: a process that is killed leaves the one before.

    Args:
        folder: Name of the folder, made if it is missing.
        keep: Number of the newest files to keep; older ones are deleted after a new one is written.

    Raises:
        UserError: The folder cannot be made (MLC0393).
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int) -> None:
        self.folder, self.keep = Path(folder), keep
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise not_written(folder, error) from None

    def paths(self) -> list[Path]:
        """The files of the folder, the oldest first."""
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def write(self, step: int, state: Any) -> Path:
        """Write the state of a step, and delete files beyond `keep`; UserError if it cannot be written (MLC0393)."""
        path = self.folder / f"step-{step:010d}.mlc"
        save(state, path)
        for old in self.paths()[:-self.keep]:
            if old != path:
                old.unlink(missing_ok=True)
        return path

    def newest(self) -> tuple[Path, Any] | None:
        """The newest file that is whole, and its state; None of an empty folder.

        Raises:
            UserError: There are files, and none is whole (MLC0750).
        """
        paths = self.paths()
        for path in reversed(paths):
            try:
                return path, load(path, weights_only=True)
            except UserError as error:
                if error.code not in ("MLC0766", "MLC0392"):
                    raise
                warnings.warn(f"{path} is damaged, so that the checkpoint before is used", stacklevel=2)
        if paths:
            raise UserError(f"none of the {len(paths)} checkpoints in {self.folder} is whole", code="MLC0750",
                            loc=user_loc(), hint="move them away, or train with resume=False")
        return None
