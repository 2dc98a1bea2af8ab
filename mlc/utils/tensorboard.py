"""PyTorch's `torch.utils.tensorboard`: `SummaryWriter`, through the package tensorboardX.

The files are event files, which `tensorboard --logdir FOLDER` shows. It needs the package tensorboardX
(`pip install mlc[tensorboard]`).

Example:
    >>> import tempfile
    >>> with mlc.utils.tensorboard.SummaryWriter(tempfile.mkdtemp()) as writer:
    ...     writer.add_scalar("loss", mlc.tensor(0.5), global_step=1)
"""

from __future__ import annotations

import functools
from typing import Any

from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.tree import flatten
from mlc.ir.diag import UserAttributeError, UserError

__all__ = ["SummaryWriter"]

_METHODS = frozenset(
    "add_audio add_custom_scalars add_custom_scalars_marginchart add_custom_scalars_multilinechart add_embedding "
    "add_figure add_histogram add_histogram_raw add_hparams add_image add_image_with_boxes add_images add_mesh "
    "add_pr_curve add_pr_curve_raw add_scalar add_scalars add_text add_video close flush get_logdir".split())


class SummaryWriter:
    """Writer of the files that TensorBoard shows: `add_scalar`, `add_histogram`, `add_image` and so on.

    The methods are those of tensorboardX, with PyTorch's arguments, and take tensors. `close` writes what is left; in a
    `with` statement it is called at the end. Graphs of models (`add_graph`) are not written.

    Args:
        log_dir: Folder of the files; "runs/DATE_HOST" with `comment` by default.
        comment: End of the default folder's name.
        purge_step: Steps from this one on, of an earlier run in the folder, are hidden.
        max_queue: Number of entries that are kept before they are written.
        flush_secs: Seconds after which they are written at the latest.
        filename_suffix: End of the files' names.

    Raises:
        UserError: tensorboardX is not installed (MLC0793).

    Example:
        >>> import tempfile
        >>> try:
        ...     with mlc.utils.tensorboard.SummaryWriter(tempfile.mkdtemp()) as writer:
        ...         _ = writer.add_scalar("loss", mlc.tensor(0.5), global_step=1)
        ... except mlc.UserError as error:
        ...     assert error.code == "MLC0793"             # tensorboardX is not installed
    """

    def __init__(self, log_dir: str | None = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        try:
            import tensorboardX
        except ImportError as error:
            raise UserError(f"SummaryWriter needs the package tensorboardX: {error}", code="MLC0793", loc=user_loc(),
                            hint='pip install "mlc[tensorboard]", or pip install tensorboardX') from None
        self._writer = tensorboardX.SummaryWriter(log_dir, comment, purge_step, max_queue, flush_secs, filename_suffix)
        self.log_dir: str = self._writer.logdir

    def __getattr__(self, name: str) -> Any:
        if name == "add_graph":
            raise UserAttributeError("mlc writes no graphs of models for TensorBoard", code="MLC0338", loc=user_loc(),
                                     hint="print(mlc.lower(model, args).to_text()) shows the program")
        if name not in _METHODS:
            raise AttributeError(f"'SummaryWriter' has no attribute {name!r}", name=name, obj=self)
        method = getattr(self._writer, name)

        @functools.wraps(method)
        def with_arrays(*args: Any, **keywords: Any) -> Any:
            leaves, structure = flatten([args, keywords])
            args, keywords = structure.unflatten(
                [x.detach().cpu().numpy() if isinstance(x, Tensor) else x for x in leaves])
            return method(*args, **keywords)

        return with_arrays

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.close()
