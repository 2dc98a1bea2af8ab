"""PyTorch's `torch.onnx.export`, of which mlc has the name alone: it reads models of this format, and writes none."""

from __future__ import annotations

from typing import Any, NoReturn

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> NoReturn:
    """Refuse to write a model in the format ONNX.

    Args:
        model: A module.
        args: Arguments of a call of it.
        f: Name of a file.
        options: Whatever else PyTorch takes.

    Returns:
        Nothing: it always raises.

    Raises:
        UserError: Always (MLC0767).

    Example:
        >>> try:
        ...     mlc.onnx.export(nn.Linear(2, 3), (mlc.ones(1, 2),), "model.onnx")
        ... except mlc.UserError as error:
        ...     print(error.code)
        MLC0767
    """
    raise UserError("mlc does not write ONNX", code="MLC0767", loc=user_loc(),
                    hint="mlc.save(mlc.compile(model), path, args=...) writes a file that needs no compiler, "
                         "mlc.extension.write an extension module")
